"""Checks what Cargo.lock pulls in: licences, sources, duplicate versions.

In: `cargo metadata --locked`.  Out: one line per finding; exit code 1 when there is one.

Laws: every package outside the workspace comes from one package registry (never from a git
repository), states a licence expression that the allow-list satisfies, and is there in one version.
The release workflow runs cargo-deny as well, which also knows yanked versions and advisories; this
check needs nothing but cargo.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TypedDict, cast

ALLOWED = frozenset(
    {
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "Unicode-3.0",
        "Unlicense",
        "Zlib",
    }
)


class Package(TypedDict):
    """The members of a `cargo metadata` package that are read here."""

    name: str
    version: str
    license: str | None
    source: str | None


def is_allowed(expression: str) -> bool:
    """Return whether the allow-list satisfies an SPDX expression; `A/B` means `A OR B`."""
    tokens: list[str] = re.findall(r"\(|\)|[^()\s]+", expression.replace("/", " OR "))
    position = 0

    def peek() -> str | None:
        return tokens[position] if position < len(tokens) else None

    def take() -> str:
        nonlocal position
        position += 1
        return tokens[position - 1]

    def alternatives() -> bool:
        satisfied = conjunction()
        while peek() == "OR":
            take()
            satisfied = conjunction() or satisfied
        return satisfied

    def conjunction() -> bool:
        satisfied = licence()
        while peek() == "AND":
            take()
            satisfied = licence() and satisfied
        return satisfied

    def licence() -> bool:
        name = take()
        if name == "(":
            satisfied = alternatives()
            take()
            return satisfied
        if peek() == "WITH":
            take()
            name = f"{name} WITH {take()}"
        return name in ALLOWED

    return bool(tokens) and alternatives()


def findings(packages: list[Package]) -> list[str]:
    """Return a sentence for each package with a forbidden licence."""
    found: list[str] = []
    versions: defaultdict[str, list[str]] = defaultdict(list)
    registries = {package["source"] for package in packages if package["source"] is not None}
    if len(registries) > 1:
        found.append(f"{len(registries)} registries are used, one is allowed")
    for package in packages:
        if package["source"] is None:
            continue  # a crate of this workspace
        label = f"{package['name']} {package['version']}"
        versions[package["name"]].append(package["version"])
        if not package["source"].startswith(("registry+", "sparse+")):
            found.append(f"{label}: comes from {package['source']}, which is no package registry")
        if not is_allowed(package["license"] or ""):
            found.append(f"{label}: licence {package['license']!r} is not on the allow-list")
    found.extend(
        f"{name}: {len(seen)} versions ({', '.join(sorted(seen))}), one is allowed"
        for name, seen in sorted(versions.items())
        if len(seen) > 1
    )
    return found


def main() -> int:
    """Check the workspace that this file belongs to."""
    root = Path(__file__).resolve().parent.parent
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE)
    packages = cast("list[Package]", json.loads(done.stdout)["packages"])
    found = findings(packages)
    for line in found:
        print(line)
    if not found:
        print(f"licences, sources and versions of {len(packages)} packages are fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
