"""Checks that a release would succeed, as far as this machine can know.

In: the tree, the wheels and the sdist in `dist/`, and optionally the tag of the release.  Out: a
line for each finding; exit code 1 when there is one.

Laws: the tag is `v` and the version in Cargo.toml. The changelog has a section for the version of a
tag; without a tag, changes under `[Unreleased]` are enough. Each wheel has a list of its crates.
Wheels and sdist have this version, the project's addresses, its licence and its README. The
workflow publishes by trusted publishing, without a password, and with attestations.

usage: tools/release_check.py [--tag v1.2.3]
"""

import argparse
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, cast

from wheels import has_sbom

ROOT: Final = Path(__file__).resolve().parent.parent


def main() -> int:
    """Check everything; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", help="the tag of the release; the workflow passes it")
    tag = cast("str | None", parser.parse_args().tag)
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    version = cast("str", cargo["workspace"]["package"]["version"])
    found = [
        *tag_findings(tag, version),
        *changelog_findings((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version, tag),
        *publish_findings((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")),
        *sbom_findings((ROOT / "dist").glob("*.whl")),
        *(
            finding
            for archive in sorted((ROOT / "dist").iterdir())
            for finding in metadata_findings(archive, version)
        ),
    ]
    for line in found:
        print(line)
    if not found:
        print(f"release check: {version} is fine")
    return 1 if found else 0


def tag_findings(tag: str | None, version: str) -> list[str]:
    """Compare the tag with the version in Cargo.toml."""
    if tag is None or tag == f"v{version}":
        return []
    return [f"the tag is {tag!r}, the version in Cargo.toml is {version!r}"]


def changelog_findings(changelog: str, version: str, tag: str | None) -> list[str]:
    """Look for the section of the version, or of unreleased changes without a tag."""
    sections = dict(
        re.findall(r"^## \[([^\]]+)\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    )
    names = [version] if tag is not None else [version, "Unreleased"]
    if any(sections.get(name, "").strip() for name in names):
        return []
    return [f"CHANGELOG.md has no changes under {' or '.join(f'[{name}]' for name in names)}"]


def publish_findings(workflow: str) -> list[str]:
    """Look for trusted publishing and attestations in the job `publish`."""
    _, _, job = workflow.partition("\n  publish:\n")
    found: list[str] = []
    if "uses: pypa/gh-action-pypi-publish@" not in job:
        found.append("release.yml: the job `publish` does not use pypa/gh-action-pypi-publish")
    found.extend(
        f"release.yml: the job `publish` has no `{line}` (trusted publishing)"
        for line in ("id-token: write", "environment: pypi")
        if not re.search(rf"^\s+{line}\b", job, re.MULTILINE)
    )
    if re.search(r"^\s+password:", job, re.MULTILINE):
        found.append("release.yml: the job `publish` has a password; trusted publishing needs none")
    if re.search(r"^\s+attestations:\s*false", job, re.MULTILINE):
        found.append("release.yml: the job `publish` turns attestations off")
    return found


def sbom_findings(wheels: Iterable[Path]) -> list[str]:
    """Look for the list of crates in each wheel."""
    return [
        f"{wheel.name} has no SBOM in its .dist-info/sboms"
        for wheel in wheels
        if not has_sbom(wheel)
    ]


def metadata_findings(archive: Path, version: str) -> list[str]:
    """Compare the metadata of a wheel or an sdist with what an index shows of a project."""
    text = _metadata_of(archive)
    if text is None:
        return []
    head, _, description = text.partition("\n\n")
    found = [
        f"{archive.name}: its metadata has no `{line}`"
        for line in (
            f"Version: {version}",
            "License-Expression: MIT",
            "License-File: LICENSE",
            "Description-Content-Type: text/markdown",
            *(f"Project-URL: {name}," for name in ("Homepage", "Documentation", "Changelog")),
        )
        if not any(one.startswith(line) for one in head.splitlines())
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if description.strip() != readme.strip():
        found.append(f"{archive.name}: its description is not README.md")
    return found


def _metadata_of(archive: Path) -> str | None:
    """Return the metadata of a wheel or an sdist, None for another file."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            (name,) = (one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
            return wheel.read(name).decode()
    if archive.name.endswith(".tar.gz"):
        with tarfile.open(archive) as sdist:
            (info,) = (one for one in sdist.getnames() if one.endswith("/PKG-INFO"))
            member = sdist.extractfile(info)
            return None if member is None else member.read().decode()
    return None


if __name__ == "__main__":
    sys.exit(main())
