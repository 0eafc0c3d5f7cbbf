"""The table of the founding documents: names exist, words are quoted, tests check behaviour."""

import ast
import re
from functools import cache
from importlib import import_module

import pytest

from blueprint_table import (
    TABLE,
    TESTS,
    Row,
    fault_of_quotation,
    fault_of_test,
    rows_of,
)

ROWS = rows_of(TABLE.read_text())


@cache
def source_of(file: str) -> str:
    return TESTS[file].read_text()


def test_the_table_is_read_whole() -> None:
    assert len(ROWS) > 150
    assert {row.place[:3] for row in ROWS} == {"000", "001", "002", "003", "004"}
    assert len(set(ROWS)) == len(ROWS)


@pytest.mark.parametrize("name", sorted({row.name for row in ROWS}))
def test_a_name_of_the_table_can_be_imported(name: str) -> None:
    module, *members = name.split(".")
    found: object = import_module(module)
    for member in members:
        module = f"{module}.{member}"
        found = getattr(found, member, None) or import_module(module)
    assert found is not None


@pytest.mark.parametrize(("file", "test"), sorted({(row.file, row.test) for row in ROWS}))
def test_a_test_of_the_table_exists(file: str, test: str) -> None:
    assert f"def {test}(" in source_of(file)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.test}")
def test_a_row_quotes_its_document_and_its_test_checks_behaviour(row: Row) -> None:
    assert fault_of_quotation(row.asked) is None
    assert fault_of_test(row.name, row.test, source_of(row.file)) is None


def test_a_row_and_its_test_quote_the_same_words() -> None:
    rows = [row for row in ROWS if row.place.startswith("004")]
    quoted = {(row.file, row.test): tuple(re.findall(r'"([^"]+)"', row.asked)) for row in rows}
    assert len(quoted) == len(rows) > 30
    assert quoted == {
        (file, test): words
        for file in {row.file for row in rows}
        for test, words in quoted_by_tests(file).items()
    }


def quoted_by_tests(file: str) -> dict[str, tuple[str, ...]]:
    """Return the words that the decorator `words` gives to each test of a file."""
    found: dict[str, tuple[str, ...]] = {}
    for function in ast.parse(source_of(file)).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in function.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "words":
                found[function.name] = tuple(ast.literal_eval(quote) for quote in call.args)
    return found


# The rules themselves.

INVENTED = """
import pytest
from package import Thing, make

CONSTANT = Thing.KIND


def helper():
    return Thing(1)


def helper_of_a_helper():
    return helper()


class Own(Thing):
    def run(self):
        return 1


def test_that_imports_it():
    from package import Thing
    assert make() == 1


def test_that_finds_it():
    assert Thing is not None
    assert hasattr(Thing, "run")
    assert make() == 1


def test_that_finds_it_and_asserts_nothing_else():
    found = getattr(import_module("package"), "Thing")
    assert callable(found)


def test_that_compares_a_constant():
    assert Thing.KIND == "thing"


def test_that_annotates_it():
    thing: Thing = make()
    assert thing == 1


def test_that_renames_it():
    other = Thing
    Thing
    assert make() == 1


def test_that_asserts_nothing():
    Thing(1).run()


def test_that_expects_an_error_of_nothing():
    with pytest.raises(ValueError):
        Thing


def test_two_helpers_away():
    assert helper_of_a_helper() == 1


def test_that_calls_it():
    assert Thing(1).run() == 1


def test_that_passes_it():
    assert isinstance(make(), Thing)


def test_that_looks_at_a_result():
    made = [Thing(number) for number in range(2)]
    assert made[1].run() == 1


def test_that_expects_an_error():
    with pytest.raises(ValueError, match="number"):
        Thing("one")


def test_with_a_helper():
    assert helper().run() == 1


def test_with_a_class_of_its_own():
    assert Own().run() == 1
"""


@pytest.mark.parametrize(
    ("test", "fault"),
    [
        ("that_is_missing", "does not exist"),
        ("that_imports_it", "use Thing"),
        ("that_finds_it", "use Thing"),
        ("that_finds_it_and_asserts_nothing_else", "asserts nothing that it observed"),
        ("that_compares_a_constant", "asserts nothing that it observed"),
        ("that_annotates_it", "use Thing"),
        ("that_renames_it", "use Thing"),
        ("that_asserts_nothing", "asserts nothing that it observed"),
        ("that_expects_an_error_of_nothing", "asserts nothing that it observed"),
        ("two_helpers_away", "use Thing"),
    ],
)
def test_a_test_that_only_finds_the_name_is_a_fault(test: str, fault: str) -> None:
    assert fault in (fault_of_test("package.Thing", f"test_{test}", INVENTED) or "no fault")


@pytest.mark.parametrize(
    "test",
    [
        "that_calls_it",
        "that_passes_it",
        "that_looks_at_a_result",
        "that_expects_an_error",
        "with_a_helper",
        "with_a_class_of_its_own",
    ],
)
def test_a_test_that_uses_the_name_and_checks_a_result_is_none(test: str) -> None:
    assert fault_of_test("package.Thing", f"test_{test}", INVENTED) is None


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ("a thing that runs", "begin with a quotation"),
        ('the seed says "a thing"', "begin with a quotation"),
        ('"a" (too short)', "fewer than four"),
        ('"永不修改已有数据"', "English meaning"),
        ('"永不修改" (never changes) … "已有数据"', "English meaning"),
        ('"永不修改已有数据" (永不)', "not in quotation marks"),
        ('"永不修改已有数据" (never changes what is there)', None),
        ('"`tool` message" … "唯一 `toolCallId`" (one id for a message)', None),
        ('"永不修改已有数据" (never changes what is there) … "string Raw"', None),
        ('"string RawArguments"', None),
    ],
)
def test_a_quotation_has_the_words_and_their_meaning(asked: str, fault: str | None) -> None:
    found = fault_of_quotation(asked)
    assert found is None if fault is None else fault in (found or "")


def test_a_row_has_five_cells_and_may_have_a_bar_in_a_quotation() -> None:
    table = '| head |\n| 001 | "`idle\\|failed`" | `package.Thing` | `test_a.py::test_b` | no |'
    assert rows_of(table) == [
        Row("001", '"`idle\\|failed`"', "package.Thing", "test_a.py", "test_b", "no")
    ]
    with pytest.raises(ValueError, match="not a row"):
        rows_of("| 001 | words | `package.Thing` | a test | |")
