"""Rows of the table of models, from settled facts.

In: names, claims and the overlay.  Out: the table as JSON, and what the overlay does not answer.

Laws: the same input gives the same bytes. Models with the same facts share a row; their limits,
the date of retirement and the successor are beside the name. A snapshot is left out if its alias
says all of its facts. A model that only a literal of an SDK has gets its kind and its APIs.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from model_claims import Claim, Facts, Rule, Settled, Value, settle
from model_profiles import LEVELS

_OF_A_LITERAL: Final = ("kind", "endpoints", "retired", "successor")
_GROUPS: Final = ("efforts", "sampling")
"""Facts that are objects, of which a row has the number."""
_BESIDE_THE_NAME: Final = ("context_window", "max_output_tokens", "retired", "successor")
"""Facts beside the name, in the order in which deltafold/dialects/model_table.py reads them."""


class Overlay(NamedTuple):
    """Knowledge of the tool itself.

    Attributes:
        vendors: vendor of each family, by the pattern of the whole canonical name.
        rules: settlements of facts, the first match wins.
        required: facts that each described chat model of a vendor must have.
        special: pattern of the models that may lack them.
        month: month of the sources, as "YYYY-MM".
        dropped: names of chat models that the sources no longer list.
        ruled: pattern of chat models that the rules describe, and no source.
    """

    vendors: Sequence[tuple[str, str]]
    rules: Sequence[Rule]
    required: Mapping[str, Sequence[str]]
    special: str
    month: str
    dropped: Sequence[str] = ()
    ruled: str = ""

    def vendor_of(self, model: str) -> str | None:
        """Return the vendor of a model, None for a name of no family."""
        name = model.partition("@")[0]
        return next((vendor for vendor, names in self.vendors if re.fullmatch(names, name)), None)

    def is_special(self, model: str) -> bool:
        """Return whether a model may lack required facts."""
        return re.fullmatch(self.special, model.partition("@")[0]) is not None


@dataclass(frozen=True, slots=True)
class Table:
    """A built table.

    Attributes:
        data: the content of the file.
        settled: the settled claims.
        unknown: names of no family or of no kind.
        missing: facts that a described model should have, as `model: fact`.
        bare: models that only a literal of an SDK has.
    """

    data: dict[str, Any]
    settled: Settled
    unknown: list[str]
    missing: list[str]
    bare: list[str]

    @property
    def problems(self) -> list[str]:
        """Return what the overlay has to answer before the table can be written."""
        return [
            *(f"unknown: {name}" for name in self.unknown),
            *(f"disagreement: {found}" for found in self.settled.unsettled),
            *(f"no source and no rule: {missing}" for missing in self.missing),
            *(f"rule without effect: {rule.models} {rule.facts}" for rule in self.settled.idle),
        ]


def build(
    keys: Iterable[str],
    claims: Sequence[Claim],
    overlay: Overlay,
    literals: Iterable[str] = (),
    versions: Mapping[str, str] | None = None,
) -> Table:
    """Build the table.

    Args:
        keys: canonical names, with `@` before a snapshot.
        claims: the claims about these names.
        overlay: families and rules.
        literals: names of sources that describe nothing; a model without another source is bare.
        versions: versions of the sources.
    """
    names = sorted({*keys})
    described = {claim.model for claim in claims if claim.source not in {*literals}}
    described |= {name for name in names if re.fullmatch(overlay.ruled, name)}
    bare = [name for name in names if name not in described]
    settled = settle(names, _of_their_kind(names, claims, overlay.rules), overlay.rules)
    for name in bare:
        facts = settled.facts[name]
        settled.facts[name] = {fact: facts[fact] for fact in _OF_A_LITERAL if fact in facts}
    unknown, rows = list[str](), dict[str, dict[str, Any]]()
    for name in names:
        vendor, facts = overlay.vendor_of(name), settled.facts[name]
        if vendor is None or "kind" not in facts:
            unknown.append(name)
        else:
            rows[name] = row_of(vendor, facts)
    missing = [
        f"{name}: {fact}"
        for name, row in rows.items()
        if name in described and row["kind"] == "chat" and not overlay.is_special(name)
        for fact in overlay.required.get(row["vendor"], ())
        if not _has(row, fact)
    ]
    sources = {"month": overlay.month, **dict(sorted((versions or {}).items()))}
    return Table(_shared(_with_aliases(rows), sources), settled, unknown, missing, bare)


def _of_their_kind(
    names: Iterable[str], claims: Sequence[Claim], rules: Sequence[Rule]
) -> list[Claim]:
    """Return the claims without those about the chat of a model of another kind."""
    about = [claim for claim in claims if claim.fact == "kind"]
    kinds = settle(names, about, [rule for rule in rules if rule.facts == "kind"]).facts
    return [
        claim
        for claim in claims
        if claim.fact in {"kind", *_BESIDE_THE_NAME} or kinds[claim.model].get("kind") == "chat"
    ]


def row_of(vendor: str, facts: Facts) -> dict[str, Any]:
    """Return the row of settled facts."""
    kind = facts["kind"]
    row: dict[str, Any] = {"kind": kind, "vendor": vendor}
    if kind != "chat":
        return row | {fact: facts[fact] for fact in _BESIDE_THE_NAME if fact in facts}
    sampling: dict[str, Value] = {}
    for fact, value in facts.items():
        group, dot, setting = fact.partition(".")
        if group == "sampling":
            sampling[setting] = value
        elif not dot:
            row[fact] = list(value) if isinstance(value, tuple) else value
    if sampling:
        row["sampling"] = sampling
    efforts = _efforts(facts)
    if efforts:
        row["efforts"] = efforts
    return row


def _efforts(facts: Facts) -> dict[str, list[str]]:
    """Return the efforts of each API, without an API of which one level is not known."""
    endpoints = facts.get("endpoints", ())
    if not isinstance(endpoints, tuple):
        return {}
    if facts.get("thinking") == "never":
        return {api: [] for api in endpoints}
    found: dict[str, list[str]] = {}
    for api in endpoints:
        taken = [
            facts.get(f"effort.{level}@{api}", facts.get(f"effort.{level}")) for level in LEVELS
        ]
        if None not in taken:
            found[api] = [level for level, is_taken in zip(LEVELS, taken, strict=True) if is_taken]
    return found


def _has(row: Mapping[str, Any], fact: str) -> bool:
    """Return whether a row has a fact, or needs none of this name."""
    if fact == "efforts":
        return {*row.get("efforts", ())} >= {*row.get("endpoints", ())}
    if fact == "chat_tools":
        return fact in row or "openai-chat" not in row.get("endpoints", ())
    if fact in {"thinking_forms", "thinking_off", "default_effort"}:
        never, always = row.get("thinking") == "never", row.get("thinking") == "always"
        return fact in row or never or (always and fact == "thinking_off")
    group, _, setting = fact.partition(".")
    return setting in row.get(group, {}) if setting else fact in row


def _with_aliases(rows: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the rows with an alias for each model, and without the snapshots that repeat it."""
    found = {name: row for name, row in rows.items() if "@" not in name}
    for name in sorted(rows, reverse=True):
        found.setdefault(name.partition("@")[0], rows[name])
    for name, row in rows.items():
        alias = found[name.partition("@")[0]]
        if not _is_within(row, alias):
            found[name] = row
    return found


def _is_within(row: Mapping[str, Any], alias: Mapping[str, Any]) -> bool:
    return all(name in alias and alias[name] == value for name, value in row.items())


def _shared(rows: Mapping[str, Mapping[str, Any]], sources: Mapping[str, str]) -> dict[str, Any]:
    """Return the table, in which models with the same facts share a row."""
    groups = {group: _numbered(row.get(group) for row in rows.values()) for group in _GROUPS}
    texts = dict[str, str]()
    for name, row in rows.items():
        facts = {fact: row[fact] for fact in row if fact not in _BESIDE_THE_NAME}
        for group in _GROUPS:
            if group in facts:
                facts[group] = groups[group][_sorted(facts[group])]
        texts[name] = _sorted(facts)
    numbers = {text: number for number, text in enumerate(sorted({*texts.values()}))}
    models = dict[str, list[Any]]()
    for name in sorted(rows):
        own = [rows[name].get(fact) for fact in _BESIDE_THE_NAME]
        while own and own[-1] is None:
            own.pop()
        models[name] = [numbers[texts[name]], *own]
    return {
        "sources": dict(sources),
        **{group: [json.loads(text) for text in groups[group]] for group in _GROUPS},
        "rows": [json.loads(text) for text in numbers],
        "models": models,
    }


def _numbered(values: Iterable[object]) -> dict[str, int]:
    texts = sorted({_sorted(value) for value in values if value is not None})
    return {text: number for number, text in enumerate(texts)}


def _sorted(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return how a table differs from an older one, one line for each fact."""
    before, after = _facts(old), _facts(new)
    lines = list[str]()
    for name in sorted({*before, *after}):
        if name not in before:
            lines.append(f"{name}: new")
        elif name not in after:
            lines.append(f"{name}: no longer listed")
        else:
            was, now = before[name], after[name]
            lines.extend(
                f"{name}: {fact}: {was.get(fact)!r} becomes {now.get(fact)!r}"
                for fact in sorted({*was, *now})
                if was.get(fact) != now.get(fact)
            )
    return lines


def _facts(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the facts of each model, without numbers of rows and objects."""
    found = dict[str, dict[str, Any]]()
    for name, (row, *own) in data["models"].items():
        facts = data["rows"][row] | dict(zip(_BESIDE_THE_NAME, own, strict=False))
        found[name] = facts | {
            group: data[group][facts[group]] for group in _GROUPS if group in facts
        }
    return found


def text_of(data: Mapping[str, Any]) -> str:
    """Return the text of the file, with one line for each object, row and model."""
    parts = [f'"sources":{_compact(data["sources"])}']
    for name in (*_GROUPS, "rows"):
        lines = ",\n".join(_compact(row) for row in data[name])
        parts.append(f'"{name}":[\n{lines}\n]')
    models = [f"{_compact(name)}:{_compact(row)}" for name, row in data["models"].items()]
    parts.append('"models":{\n' + ",\n".join(models) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
