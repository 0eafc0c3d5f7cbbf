"""The tools of a release: its findings, the reports about wheels, and the bounds of extras."""

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest

import extras
import release_check
import wheels
from corpus import ROOT

WORKFLOW: Final = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
CHANGELOG: Final = "# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [1.0.0] - 2026-01-01\n\n- Old.\n"


def test_the_tag_is_the_version() -> None:
    assert release_check.tag_findings("v1.0.0", "1.0.0") == []
    assert release_check.tag_findings(None, "1.0.0") == []
    assert release_check.tag_findings("1.0.0", "1.0.0") != []
    assert release_check.tag_findings("v1.0.1", "1.0.0") != []


@pytest.mark.parametrize(
    ("version", "tag", "count"),
    [("1.0.0", "v1.0.0", 0), ("1.1.0", "v1.1.0", 1), ("1.1.0", None, 0)],
)
def test_a_tag_needs_a_section_of_the_changelog(version: str, tag: str | None, count: int) -> None:
    assert len(release_check.changelog_findings(CHANGELOG, version, tag)) == count


def test_an_empty_section_is_a_finding() -> None:
    empty = CHANGELOG.replace("- New.", "")
    assert len(release_check.changelog_findings(empty, "1.1.0", None)) == 1


def test_the_workflow_publishes_with_trust_and_attestations() -> None:
    assert release_check.publish_findings(WORKFLOW) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("id-token: write", "id-token: none"),
        ("environment: pypi", "environment: test"),
        ("pypa/gh-action-pypi-publish@", "somebody/publish@"),
        ("\n  publish:\n", "\n  other:\n"),
        ("    environment: pypi", "    environment: pypi\n    with:\n      password: x"),
        ("    environment: pypi", "    environment: pypi\n    with:\n      attestations: false"),
    ],
)
def test_a_workflow_without_them_is_a_finding(before: str, after: str) -> None:
    assert before in WORKFLOW
    assert release_check.publish_findings(WORKFLOW.replace(before, after)) != []


def test_a_wheel_without_a_list_of_its_crates_is_a_finding(tmp_path: Path) -> None:
    complete, bare = tmp_path / "complete.whl", tmp_path / "bare.whl"
    with zipfile.ZipFile(complete, "w") as archive:
        archive.writestr("deltafold-1.dist-info/sboms/deltafold.cyclonedx.json", "{}")
    with zipfile.ZipFile(bare, "w") as archive:
        archive.writestr("deltafold/__init__.py", "")
    assert release_check.sbom_findings([complete]) == []
    assert release_check.sbom_findings([complete, bare]) == [
        "bare.whl has no SBOM in its .dist-info/sboms"
    ]


def test_the_newest_glibc_of_a_report_is_compared_by_number() -> None:
    assert wheels.newest_glibc("GLIBC_2.9, GLIBC_2.17 and GLIBC_2.2.5") == (2, 17)
    assert wheels.newest_glibc("no versions") == (2, 0)


def test_a_wheel_fits_the_version_that_it_was_built_for() -> None:
    interpreter = wheels.Interpreter(Path("python"), (3, 12))
    assert wheels.fits(Path("deltafold-1-cp312-cp312-manylinux_2_17_x86_64.whl"), interpreter)
    assert not wheels.fits(Path("deltafold-1-cp311-abi3-manylinux_2_17_x86_64.whl"), interpreter)
    assert not wheels.fits(Path("deltafold-1-cp312-cp312t-manylinux_2_17_x86_64.whl"), interpreter)


def test_lower_bounds_become_exact_versions() -> None:
    assert extras.pinned(["openai>=2", "pydantic>=2.11,<3"]) == ["openai==2", "pydantic==2.11"]
    assert extras.pinned(["uvloop>=0.21; os_name == 'posix'"]) == [
        "uvloop==0.21; os_name == 'posix'"
    ]


@pytest.mark.parametrize("requirement", ["openai", "openai<3", "openai~=2.0"])
def test_a_requirement_without_a_lower_bound_is_refused(requirement: str) -> None:
    with pytest.raises(ValueError, match="has no lower bound"):
        extras.pinned([requirement])


def test_every_extra_has_a_suite_or_a_reason_and_every_suite_its_files() -> None:
    table = extras.read_extras((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = {extra for suite in extras.SUITES.values() for extra in suite.extras}
    assert named | extras.NOT_RUN.keys() == table.keys()
    for suite in extras.SUITES.values():
        assert all((ROOT / path).is_file() for path in suite.tests)
        for extra in suite.extras:
            extras.pinned(table[extra])


METADATA: Final = (
    "Metadata-Version: 2.4\nName: deltafold\nVersion: 1.0.0\nLicense-File: LICENSE\n"
    "License-Expression: MIT\nDescription-Content-Type: text/markdown; charset=UTF-8\n"
    "Project-URL: Homepage, https://example.com\nProject-URL: Documentation, https://example.com\n"
    "Project-URL: Changelog, https://example.com\n\n"
    f"{(ROOT / 'README.md').read_text(encoding='utf-8')}"
)


def archives(folder: Path, metadata: str) -> tuple[Path, Path]:
    """Write a wheel and an sdist with this metadata."""
    wheel, sdist = folder / "deltafold-1.0.0-py3-none-any.whl", folder / "deltafold-1.0.0.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("deltafold-1.0.0.dist-info/METADATA", metadata)
    with tarfile.open(sdist, "w:gz") as archive:
        member = tarfile.TarInfo("deltafold-1.0.0/PKG-INFO")
        member.size = len(metadata.encode())
        archive.addfile(member, io.BytesIO(metadata.encode()))
    return wheel, sdist


def test_the_metadata_of_a_release_is_whole(tmp_path: Path) -> None:
    for archive in archives(tmp_path, METADATA):
        assert release_check.metadata_findings(archive, "1.0.0") == []
        assert len(release_check.metadata_findings(archive, "1.0.1")) == 1


@pytest.mark.parametrize(
    "lost",
    ["License-Expression: MIT\n", "Project-URL: Changelog, https://example.com\n", "# deltafold"],
)
def test_metadata_that_lacks_something_is_a_finding(tmp_path: Path, lost: str) -> None:
    assert lost in METADATA
    for archive in archives(tmp_path, METADATA.replace(lost, "", 1)):
        assert len(release_check.metadata_findings(archive, "1.0.0")) == 1
