"""The table of the founding documents: every name in it exists, and so does every test."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"\| [^|]+ \| [^|]+ \| `(deltafold[\w.]*)` \| `(test_\w+\.py)::(test_\w+)` \|")
ROWS = ROW.findall((ROOT / "docs" / "blueprint.md").read_text())


def test_the_table_is_read_whole() -> None:
    lines = (ROOT / "docs" / "blueprint.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| 00")]
    assert len(rows) == len(ROWS) > 100


@pytest.mark.parametrize("name", sorted({row[0] for row in ROWS}))
def test_a_name_of_the_table_can_be_imported(name: str) -> None:
    module, *members = name.split(".")
    found: object = import_module(module)
    for member in members:
        module = f"{module}.{member}"
        found = getattr(found, member, None) or import_module(module)
    assert found is not None


@pytest.mark.parametrize(("file", "test"), sorted({row[1:] for row in ROWS}))
def test_a_test_of_the_table_exists(file: str, test: str) -> None:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
