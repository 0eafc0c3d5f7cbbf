"""The table of the founding documents: every name in it exists, and so does every test.

A row that quotes its document has a test that quotes the same words.
"""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"\| [^|]+ \| [^|]+ \| `(deltafold[\w.]*)` \| `(test_\w+\.py)::(test_\w+)` \|")
QUOTING = re.compile(r"\| 004 [^|]+ \| ([^|]+) \| `[^`]+` \| `(test_\w+\.py)::(test_\w+)` \|")
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


def test_a_row_and_its_test_quote_the_same_words() -> None:
    rows = QUOTING.findall((ROOT / "docs" / "blueprint.md").read_text())
    quoted = {(file, test): tuple(re.findall(r'"([^"]+)"', words)) for words, file, test in rows}
    assert len(quoted) == len(rows) > 30
    assert quoted == {
        (file, test): words
        for file in {file for _, file, _ in rows}
        for test, words in quoted_by_tests(file).items()
    }


def quoted_by_tests(file: str) -> dict[str, tuple[str, ...]]:
    """Return the words that the decorator `words` gives to each test of a file."""
    tree = ast.parse((ROOT / "tests" / file).read_text())
    found: dict[str, tuple[str, ...]] = {}
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in function.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "words":
                found[function.name] = tuple(ast.literal_eval(quote) for quote in call.args)
    return found
