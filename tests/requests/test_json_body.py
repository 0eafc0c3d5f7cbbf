"""Request bodies as JSON: the extension writes plain values as `json` does, and no others."""

import json
import math
from collections import OrderedDict
from enum import StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltafold._core import plain_json
from deltafold.models.json_body import encoded

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
)


class Word(StrEnum):
    """A text that is an object of another class."""

    YES = "yes"


class Number(int):
    """A number of another class."""


def dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_plain_values_are_written_as_json_writes_them(value: object) -> None:
    assert plain_json(value) == dumped(value)


@pytest.mark.parametrize("character", [chr(code) for code in range(0x80)] + ["é", "\u2028", "😀"])
def test_every_character_is_written_as_json_writes_it(character: str) -> None:
    assert plain_json({character: character}) == dumped({character: character})


@pytest.mark.parametrize(
    "value",
    [
        Word.YES,
        Number(3),
        OrderedDict[str, int](a=1),
        {1: "a"},
        {None: "a"},
        1 << 64,
        nested(300),
    ],
    ids=["enum", "int", "dict", "number as key", "None as key", "huge", "deep"],
)
def test_other_values_are_left_to_json(value: object) -> None:
    assert plain_json(value) is None
    assert encoded({"value": value}) == dumped({"value": value})


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", object(), {1, 2}])
def test_what_json_cannot_hold_is_refused_with_its_path(value: object) -> None:
    assert plain_json({"value": value}) is None
    with pytest.raises(ValueError, match=r"the request body\.value"):
        encoded({"value": value})


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert plain_json(loop) is None
    with pytest.raises(ValueError, match="contains itself"):
        encoded({"value": loop})
