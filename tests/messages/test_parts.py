"""Parts: both forms of input, the one wire form of output, and the refused input."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from deltafold.contract.exceptions import ContractError
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    MessagePart,
    ToolCallPart,
    part_from_wire,
)
from sample_parts import PARTS

MESSAGE_PART: TypeAdapter[MessagePart] = TypeAdapter(MessagePart)


def flat_form(part: MessagePart) -> dict[str, object]:
    return {name: getattr(part, name) for name in type(part).model_fields}


@pytest.mark.parametrize(("part", "wire"), PARTS)
def test_a_part_has_one_wire_form_and_is_read_from_it_and_from_its_fields(
    part: MessagePart, wire: dict[str, object]
) -> None:
    assert part.model_dump(mode="json") == wire
    assert json.loads(part.model_dump_json()) == wire
    assert part.model_dump(by_alias=True) == wire
    assert MESSAGE_PART.validate_python(wire) == part
    assert MESSAGE_PART.validate_json(json.dumps(wire)) == part
    assert MESSAGE_PART.validate_python(flat_form(part)) == part
    assert MESSAGE_PART.validate_python({"kind": wire["kind"], **flat_wire(wire)}) == part


def flat_wire(wire: dict[str, Any]) -> dict[str, object]:
    state = {"providerState": wire["providerState"]} if "providerState" in wire else {}
    return {**wire["payload"], **state}


@pytest.mark.parametrize(("part", "wire"), PARTS)
def test_a_part_is_frozen_and_survives_copies(part: MessagePart, wire: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(part, "provider_state", {})  # noqa: B010 - a checker refuses the assignment, rightly
    for twin in (copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(part))):  # noqa: S301
        assert twin == part
        assert twin.model_dump() == wire
        assert repr(twin) == repr(part)


BAD_PARTS: list[tuple[object, str]] = [
    ({"kind": "text"}, "text.text\n  Field required"),
    ({"kind": "text", "payload": {}}, "text.text\n  Field required"),
    ({"kind": "text", "payload": 5}, "payload must be an object, not int"),
    ({"kind": "text", "payload": {"text": 5}}, "text.text\n  Input should be a valid string"),
    ({"kind": "text", "payload": {"text": b"x"}}, "Input should be a valid string"),
    ({"kind": "text", "payload": {"text": "x\ud800"}}, "lone surrogate at character 1"),
    ({"kind": "text", "payload": {"text": "x", "colour": 1}}, "text.colour\n  Extra"),
    ({"kind": "text", "payload": {"text": "x"}, "text": "y"}, "text stands inside payload"),
    ({"kind": "text", "payload": {"text": "x", "providerState": {}}}, "stands beside payload"),
    ({"kind": "text", "payload": {"text": "x"}, "providerState": 1}, "valid dictionary"),
    ({"kind": "audio", "payload": {}}, "'audio' found using 'kind'"),
    ({"payload": {"text": "x"}}, "Unable to extract tag using discriminator 'kind'"),
    ("text", "valid dictionary"),
    ({"kind": "image", "mime_type": "image/png"}, "either data or url"),
    ({"kind": "image", "mime_type": "i", "data": "", "url": ""}, "either data or url"),
    ({"kind": "image", "url": "u"}, "image.mimeType\n  Field required"),
    ({"kind": "file_ref", "path": "p", "size": -1}, "greater than or equal to 0"),
    ({"kind": "file_ref", "path": "p", "size": "3"}, "valid integer"),
    ({"kind": "tool_call", "tool_name": "f"}, "tool_call.toolCallId\n  Field required"),
    (
        {"kind": "tool_call", "tool_call_id": "c", "tool_name": "f", "arguments": [1]},
        "valid dictionary",
    ),
    (
        {
            "kind": "tool_call",
            "tool_call_id": "c",
            "tool_name": "f",
            "arguments": {"a": 1},
            "incomplete": True,
        },
        "an incomplete call has no arguments",
    ),
    (
        {
            "kind": "tool_call",
            "tool_call_id": "c",
            "tool_name": "f",
            "arguments": {"a": float("nan")},
        },
        "Out of range float values",
    ),
    (
        {"kind": "tool_call", "tool_call_id": "c", "tool_name": "f", "arguments": {"a": {1}}},
        "cannot be written as JSON",
    ),
    (
        {"kind": "tool_call", "tool_call_id": "c", "tool_name": "f", "input_format": "xml"},
        "'json' or 'text'",
    ),
    (
        {"kind": "tool_call", "tool_call_id": "c", "tool_name": "f", "raw_args_text": 5},
        "valid string",
    ),
    ({"kind": "tool_result", "tool_call_id": "c", "content": 5}, "tool_result.content"),
    (
        {
            "kind": "tool_result",
            "tool_call_id": "c",
            "content": [{"kind": "tool_call", "payload": {}}],
        },
        "'tool_call' found using 'kind'",
    ),
    ({"kind": "provider", "dialect": "d", "block": []}, "valid dictionary"),
]


@pytest.mark.parametrize(("data", "complaint"), BAD_PARTS)
def test_a_bad_part_is_refused_with_the_place_of_the_fault(data: object, complaint: str) -> None:
    with pytest.raises(ValidationError) as caught:
        MESSAGE_PART.validate_python(data)
    assert complaint in str(caught.value)


def test_a_tool_call_is_made_of_a_mapping_only() -> None:
    with pytest.raises(ValidationError, match="valid dictionary"):
        ToolCallPart.model_validate(5)


def test_arguments_that_are_null_are_not_runnable() -> None:
    call = ToolCallPart(tool_call_id="c", tool_name="f", arguments=None)
    assert (call.arguments, call.raw_args_text) == (None, "")


def test_a_tool_call_made_by_hand_writes_its_raw_text() -> None:
    call = ToolCallPart(tool_call_id="c", tool_name="f", arguments={"ü": [1, None]})
    assert call.raw_args_text == '{"ü":[1,null]}'
    assert ToolCallPart(tool_call_id="c", tool_name="f").arguments == {}
    assert (
        len({call, ToolCallPart(tool_call_id="c", tool_name="f", arguments={"ü": [1, None]})}) == 1
    )


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {"kind": "text", "payload": {"text": "x"}},
        {"kind": "provider", "payload": {"dialect": "d"}},
        {"kind": "image", "payload": {"mimeType": "image/png"}},
        {"kind": "file_ref", "payload": {"path": 3}},
        {"kind": "provider", "payload": None},
    ],
)
def test_a_bad_whole_part_is_a_contract_error(wire: dict[str, object]) -> None:
    with pytest.raises(ContractError, match=r"^part") as caught:
        part_from_wire(wire)
    assert caught.value.field == "part"


def test_a_file_is_read_into_its_part(tmp_path: Path) -> None:
    image, file = tmp_path / "a b.png", tmp_path / "à la carte.pdf"
    image.write_bytes(b"\x89PNG")
    file.write_bytes(b"%PDF-")
    assert ImagePart.from_file(image) == ImagePart(mime_type="image/png", data="iVBORw==")
    assert FileRefPart.from_file(str(file)) == FileRefPart(
        path="data:application/pdf;name=%C3%A0%20la%20carte.pdf;base64,JVBERi0=",
        mime_type="application/pdf",
        size=5,
    )
    assert FileRefPart.from_file(image, mime_type="text/x").mime_type == "text/x"


def test_a_file_that_cannot_be_read_or_named_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ImagePart.from_file(tmp_path / "missing.png")
    unnamed = tmp_path / "unnamed"
    unnamed.write_bytes(b"x")
    with pytest.raises(ValueError, match="'unnamed' tells no type: pass mime_type"):
        FileRefPart.from_file(unnamed)
