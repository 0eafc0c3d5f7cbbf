"""The reference, `__all__` and the stub name the same things, and most of them have an example.

In: the pages of docs/reference, the package, its stub.  Out: names that only some of them have.
"""

import ast
import inspect
import re
from typing import Final

import pytest

import deltafold
from corpus import ROOT
from documentation import text_of
from public_names import PUBLIC

FRAMEWORKS: Final = sorted(
    path.parent.name for path in (ROOT / "python/deltafold/integrations").glob("*/__init__.py")
)
PAGES: Final = sorted(
    path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/reference/*.md")
)
ENTRIES: Final = [
    entry for page in PAGES for entry in re.findall(r"^::: ([\w.]+)$", text_of(page), re.MULTILINE)
]


def names_of_source(path: str) -> list[str]:
    """Return `__all__` of a module that may not be importable here."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    (found,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return list(found)


INTEGRATED: Final = {
    f"deltafold.integrations.{framework}.{name}"
    for framework in FRAMEWORKS
    for name in names_of_source(f"python/deltafold/integrations/{framework}/__init__.py")
}
WHOLE_MODULES: Final = {"deltafold.otel"}
"""Modules with one entry for all of their names."""


def test_every_public_name_has_one_entry_and_every_entry_is_public() -> None:
    assert len(ENTRIES) == len(set(ENTRIES))
    assert set(ENTRIES) == {*PUBLIC, *INTEGRATED, *WHOLE_MODULES}


def test_every_page_of_the_reference_is_listed() -> None:
    index = text_of("docs/reference/index.md")
    listed = {f"docs/reference/{page}" for page in re.findall(r"\]\((\w+\.md)\)", index)}
    assert listed == {*PAGES} - {"docs/reference/index.md"}


def test_every_page_is_in_the_navigation() -> None:
    before, _, navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    named = set(re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE))
    for_maintainers = set(
        re.findall(r"^  /([\w-]+\.md)$", before.partition("not_in_nav:")[2], re.MULTILINE)
    )
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert named - pages == {"changelog.md", "contributing.md", "security.md"}
    assert for_maintainers == {"blueprint.md"}
    assert pages - named == for_maintainers


def test_the_stub_has_the_names_of_the_package() -> None:
    tree = ast.parse((ROOT / "python/deltafold/__init__.pyi").read_text(encoding="utf-8"))
    (listed,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and node.value is not None
        and ast.unparse(node.target) == "__all__"
    )
    adapters = names_of_source("python/deltafold/models/adapters.py")
    assert sorted({*listed, *adapters}) == sorted(deltafold.__all__)
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {*listed} - imported == set()


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_has_a_docstring(name: str) -> None:
    value = PUBLIC[name]
    if inspect.isclass(value) or inspect.isroutine(value):
        assert inspect.getdoc(value)
