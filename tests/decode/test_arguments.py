"""Arguments text to object: every rule, one row each, and input that is meant to hurt."""

import inspect
import json
import sys
import time
from typing import Literal
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltafold.contract.call_arguments import (
    MAX_DEPTH,
    MAX_INTEGER_DIGITS,
    ParsedArguments,
    parse_arguments,
)

LONGEST_INTEGER = "9" * MAX_INTEGER_DIGITS


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("", {}),
        ("{}", {}),
        (' {"a": 1}\n', {"a": 1}),
        ('{"a": {"b": [1, 2.5, true, null, "x"]}}', {"a": {"b": [1, 2.5, True, None, "x"]}}),
        ('{"id": 9007199254740993}', {"id": 9007199254740993}),
        (f'{{"n": -{LONGEST_INTEGER}}}', {"n": -int(LONGEST_INTEGER)}),
        ('{"s": "\\ud83d\\ude00"}', {"s": "😀"}),
        ('{"s": "\\\\ud83d"}', {"s": "\\ud83d"}),
        ('{"s": "\\u0000"}', {"s": "\0"}),
        ('{"s": "\u2028\x85"}', {"s": "\u2028\x85"}),
        ('{"": 0}', {"": 0}),
        ('{"n": 1e308}', {"n": 1e308}),
        ('{"n": 1e-999}', {"n": 0.0}),
    ],
)
def test_an_object_or_nothing_is_taken_without_remark(raw: str, value: dict[str, object]) -> None:
    assert parse_arguments(raw) == (value, None, None)


@pytest.mark.parametrize(
    ("raw", "value", "warning"),
    [
        ("null", {}, "null"),
        (" null ", {}, "null"),
        ('{"a": 1, "a": 2}', {"a": 2}, "repeated"),
        ('{"o": {"k": 1, "k": [3]}}', {"o": {"k": [3]}}, "repeated"),
        (json.dumps('{"a": 1}'), {"a": 1}, "string"),
        (json.dumps(' {"a": "\\ud800"} '), {"a": "\ufffd"}, "surrogate"),
        ('{"s": "\\ud83d"}', {"s": "\ufffd"}, "surrogate"),
        ('{"s": "\\uDE00 \\ud83d\\u0041"}', {"s": "\ufffd \ufffdA"}, "2 lone surrogate"),
        ('{"\\ud800": 1}', {"\ufffd": 1}, "surrogate"),
        ('{"\\ud800": 1, "\\ud801": 2}', {"\ufffd": 2}, "repeated"),
    ],
)
def test_what_was_repaired_is_said(raw: str, value: dict[str, object], warning: str) -> None:
    parsed = parse_arguments(raw)
    assert parsed.value == value
    assert parsed.error is None
    assert warning in (parsed.warning or "")


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ("[]", "an array"),
        ("1", "a number"),
        ("1.5", "a number"),
        ("true", "a boolean"),
        ('"text"', "a string"),
        ('""', "a string"),
        (json.dumps("[1]"), "a string"),
        (json.dumps(json.dumps('{"a": 1}')), "a string"),
        (json.dumps('{"a": '), "at character"),
        (" ", "at character 1"),
        ("{", "at character 1"),
        ('{"a": }', "at character"),
        ("{'a': 1}", "at character"),
        ('{"a": 1} {"b": 2}', "at character 9"),
        ('{"a": 1}{"a": 1}', "at character 8"),
        ('{"path": "C:\\users"}', "at character"),
        ('{"s": "\n"}', "at character"),
        ('{"a": 01}', "at character"),
        ('{"a": NaN}', "NaN"),
        ('{"a": Infinity}', "Infinity"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": 1e999}', "too large"),
        (f'{{"n": {LONGEST_INTEGER}0}}', f"{MAX_INTEGER_DIGITS} digits"),
        (f'{{"n": -{LONGEST_INTEGER}0}}', f"{MAX_INTEGER_DIGITS} digits"),
        ("\ufeff{}", "BOM"),
        ("undefined", "at character 0"),
    ],
)
def test_what_is_no_object_is_an_error_and_never_an_exception(raw: str, error: str) -> None:
    parsed = parse_arguments(raw)
    assert parsed.value is None
    assert error in (parsed.error or "")


@pytest.mark.parametrize("raw", ["", "ls -l", '{"a": 1}', "null", "NaN", "*** Begin Patch\n"])
def test_free_text_is_handed_over_as_input(raw: str) -> None:
    assert parse_arguments(raw, "text") == ({"input": raw}, None, None)


@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH])
@pytest.mark.parametrize("bracket", ["[]", "{}"])
def test_nesting_is_taken_up_to_the_bound(levels: int, bracket: Literal["[]", "{}"]) -> None:
    opening = '{"k":' if bracket == "{}" else "["
    raw = '{"a":' + opening * (levels - 1) + "0" + bracket[1] * (levels - 1) + "}"
    assert parse_arguments(raw).error is None


@pytest.mark.parametrize(
    "raw",
    [
        '{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}",
        "[" * 1_000_000,
        '{"a":' * 200_000,
        json.dumps('{"a":' + "[" * 1_000),
    ],
)
def test_a_nesting_bomb_is_an_error(raw: str) -> None:
    parsed = parse_arguments(raw)
    assert parsed.value is None
    assert f"deeper than {MAX_DEPTH}" in (parsed.error or "")


def test_a_caller_near_the_recursion_limit_gets_an_error_too() -> None:
    def parse_below(frames: int) -> ParsedArguments:
        return parse_below(frames - 1) if frames else parse_arguments(raw)

    raw = '{"a":' + "[" * 100 + "]" * 100 + "}"
    room = sys.getrecursionlimit() - len(inspect.stack())
    outcomes: list[ParsedArguments] = []
    for frames in range(room - 150, room):
        try:
            outcomes.append(parse_below(frames))
        except RecursionError:
            break  # of the frames above: parsing was not reached
    assert outcomes[0].value is not None
    for parsed in outcomes:
        assert parsed.error in {None, "nested too deeply"}


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
DAMAGE = st.sampled_from(
    [
        "",
        '"',
        "\\",
        "\\u",
        "\\ud800",
        "{",
        "]",
        ",",
        "0",
        "-",
        "1e999",
        "\x01",
        "\ud800",
        '"a":1,',
        " ",
    ]
)


@given(
    value=VALUES,
    ascii_only=st.booleans(),
    indent=st.none() | st.just(1),
    at=st.floats(0, 1),
    lost=st.integers(0, 2),
    found=DAMAGE,
)
def test_what_the_extension_reads_is_what_would_be_explained(
    *, value: object, ascii_only: bool, indent: int | None, at: float, lost: int, found: str
) -> None:
    text = json.dumps({"a": value}, ensure_ascii=ascii_only, indent=indent)
    place = int(at * len(text))
    for raw in (text, text[:place] + found + text[place + lost :]):
        parsed = parse_arguments(raw)
        with mock.patch("deltafold.contract.call_arguments.read_json", side_effect=ValueError):
            explained = parse_arguments(raw)
        # The same, and of the same types: 1 is no 1.0.
        assert repr(parsed) == repr(explained)


def test_brackets_inside_strings_are_not_nesting() -> None:
    text = '\\"[{' * 1_000
    assert parse_arguments(json.dumps({"s": text})).value == {"s": text}
    flat = [[index] for index in range(1_000)]
    assert parse_arguments(json.dumps({"rows": flat, "s": text})).value == {"rows": flat, "s": text}


@pytest.mark.parametrize(
    "unit",
    ['"', '\\"', '"\\', "\\ud800", "[", '{"a":', '["', '\\ud83d\\ude00"', "1,"],
)
def test_time_is_linear_in_hostile_text(unit: str) -> None:
    def seconds(size: int) -> float:
        raw = "[" * (MAX_DEPTH + 1) + unit * (size // len(unit))
        begun = time.perf_counter()
        assert parse_arguments(raw).value is None
        return time.perf_counter() - begun

    # A quadratic walk takes minutes for this size; a linear one takes milliseconds.
    assert seconds(1_000_000) < 5


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values), st.booleans())
def test_every_json_object_comes_back(value: dict[str, object], ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_arguments(raw) == (value, None, None)


@given(st.text() | st.text(alphabet='{}[]",:\\u0d8eE+-.1 nultrfasNI'))
def test_no_text_raises_and_none_goes_without_a_reason(raw: str) -> None:
    parsed = parse_arguments(raw)
    assert (parsed.value is None) == (parsed.error is not None)
    if parsed.value is not None:
        json.dumps(parsed.value, allow_nan=False, ensure_ascii=False).encode()
