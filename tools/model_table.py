"""The table of models: builds it, and lists the disagreements of its sources.

    python tools/model_table.py                  writes python/deltafold/dialects/model_table.json
    python tools/model_table.py --compare        fails if the file would change
    python tools/model_table.py --newest         fails if the newest packages would change it

In: the packages of `requirements/modeltable.in`, and the overlay of `model_overlay.py`.  Out: the
file, the number of unknown names, and each disagreement with what settles it.

Laws: a disagreement that no rule settles, an unknown name, a missing fact and a rule without effect
fail, and then nothing is written. A second run writes the same bytes.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from deltafold.dialects.model_names import without_place
from model_claims import Claim, Name, Value
from model_litellm import litellm_claims, litellm_rows
from model_overlay import OVERLAY
from model_profiles import profile_facts
from model_rows import Table, build, differences, text_of
from model_sources import (
    PACKAGES,
    PROFILES,
    SDKS,
    literal_names,
    priced_windows,
    profile_of,
    sdk_retirements,
    unstreamed_limits,
    versions,
)

PATH: Final = Path(__file__).parents[1] / "python/deltafold/dialects/model_table.json"

Said = tuple[str, str, str, str, Value]
"""Key of a model, fact, source, the name as the source writes it, and the value."""


def collect() -> tuple[set[str], list[Claim]]:
    """Return the canonical names and the claims of all sources."""
    literals, listed = list(literal_names()), list(litellm_rows())
    dropped = (Name(written, "overlay", "chat") for written in OVERLAY.dropped)
    names = [*literals, *(name for name, _ in listed), *dropped]
    keys = {name.key for name in names}
    said = [
        *_of_literals(literals),
        *(
            (name.key, "kind", name.source, name.written, "chat")
            for name in names
            if name.source == "overlay"
        ),
        *_of_list(names, listed),
        *_of_profiles(names),
        *_of_prices(names),
        *_of_sdks(keys),
    ]
    return keys, list(_claims(said))


def _claims(said: list[Said]) -> Iterator[Claim]:
    """Yield one claim for each source; a source that contradicts itself speaks by its names."""
    grouped: dict[tuple[str, str, str], dict[Value, str]] = {}
    for key, fact, source, written, value in said:
        grouped.setdefault((key, fact, source), {}).setdefault(value, written)
    for (key, fact, source), values in grouped.items():
        for value, written in values.items():
            yield Claim(key, fact, source if len(values) == 1 else f"{source} {written}", value)


def _of_literals(literals: list[Name]) -> Iterator[Said]:
    chat = {name.written for name in literals if name.is_of_chat}
    for name in literals:
        if name.kind is not None:
            yield name.key, "kind", name.source, name.written, name.kind
        if name.source == "openai" and name.kind == "chat":
            apis = ("openai-chat", "openai-responses")
            taken = apis if name.written in chat else apis[1:]
            yield name.key, "endpoints", name.source, name.written, taken


def _hosts(names: list[Name]) -> Mapping[str, set[str]]:
    """Return the hosts that count for each model: its vendor, else all that have it."""
    found: dict[str, set[str]] = {}
    for name in names:
        found.setdefault(name.key, set()).add(name.host)
    for key, hosts in found.items():
        vendor = OVERLAY.vendor_of(key)
        if vendor in hosts:
            found[key] = {vendor}
    return found


def _of_list(names: list[Name], listed: list[tuple[Name, Mapping[str, object]]]) -> Iterator[Said]:
    hosts = _hosts(names)
    for name, row in listed:
        if name.host in hosts[name.key]:
            for fact, value in litellm_claims(name, row):
                yield name.key, fact, "litellm", name.written, value


def _of_profiles(names: list[Name]) -> Iterator[Said]:
    spelled: dict[str, set[str]] = {}
    for name in names:
        if name.kind in {"chat", None}:
            spelled.setdefault(name.key, set()).add(without_place(name.written))
    for name in names:
        if name.kind not in {"chat", None}:
            spelled.pop(name.key, None)
    for profile in PROFILES:
        for key, written in spelled.items():
            model = key.partition("@")[0]
            if OVERLAY.vendor_of(key) != profile.vendor or not re.fullmatch(profile.names, model):
                continue
            for spelling in written:
                asked = f"{profile.prefix}{spelling}"
                for fact, value in profile_facts(profile.vendor, model, profile_of(profile, asked)):
                    yield key, fact, "pydantic-ai", spelling, value


def _of_prices(names: list[Name]) -> Iterator[Said]:
    hosts = _hosts(names)
    for name, window in priced_windows():
        counted = hosts.get(name.key, set())
        if name.host in counted or counted == {""}:
            yield name.key, "context_window", "genai-prices", name.written, window


def _of_sdks(keys: set[str]) -> Iterator[Said]:
    for written, sdk, date in sdk_retirements():
        key = Name(written, sdk).key
        if key in keys:
            yield key, "retired", sdk, written, date
    for written, limit in unstreamed_limits():
        key = Name(written, "anthropic").key
        if key in keys:
            yield key, "max_unstreamed_tokens", "anthropic", written, limit


def report(table: Table) -> None:
    """Print the disagreements, the counts and the problems."""
    rows, models = len(table.data["rows"]), len(table.data["models"])
    print(f"{models} names, {rows} rows, {len(OVERLAY.rules)} rules")
    disagreements, unsettled = table.settled.disagreements, table.settled.unsettled
    for found in disagreements:
        print(found)
    print(f"{len(disagreements)} disagreements, {len(unsettled)} unsettled")
    print(f"{len(table.bare)} names that only a literal has: {', '.join(table.bare)}")
    print(f"{len(table.unknown)} unknown")
    for problem in table.problems:
        print(problem, file=sys.stderr)


def compare(data: Mapping[str, Any]) -> int:
    """Print how the file would change, and return the exit status."""
    lines = differences(json.loads(PATH.read_bytes()), data)
    for line in lines:
        print(line)
    if lines:
        print(f"{PATH.name} differs from its sources: make bless NAME=models", file=sys.stderr)
    return 1 if lines else 0


def newest() -> int:
    """Run the comparison with the newest sources, above the pinned environment."""
    with tempfile.TemporaryDirectory() as folder:
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run(
            (sys.executable, *pip, "--no-deps", "--upgrade", "--target", folder, *PACKAGES),
            check=True,
        )
        path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        command = (sys.executable, __file__, "--compare")
        return subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, check=False
        ).returncode


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description="Builds the table of models from its sources.")
    parser.add_argument("--compare", action="store_true", help="fail if the file would change")
    parser.add_argument("--newest", action="store_true", help="compare with the newest packages")
    arguments = parser.parse_args()
    if arguments.newest:
        return newest()
    keys, claims = collect()
    table = build(keys, claims, OVERLAY, (*SDKS, "overlay"), versions())
    report(table)
    if arguments.compare:
        return compare(table.data) or (1 if table.problems else 0)
    if table.problems:
        return 1
    PATH.write_text(text_of(table.data), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
