"""`contract.schema.json` agrees with `contract/kinds.py` and the message models."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from corpus import ROOT
from deltafold._core import Logprobs, MessageDelta
from deltafold.contract.exceptions import ContractError
from deltafold.contract.kinds import CONTRACT_VERSION, DeltaKind, ErrorCode, FinishReason
from deltafold.contract.usage import Usage
from deltafold.message.messages import KINDS_OF_ROLE, Message, Meta, Role
from deltafold.message.parts import (
    FileRefPart,
    ImagePart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

SCHEMA: dict[str, Any] = json.loads((ROOT / "contract.schema.json").read_text(encoding="utf-8"))
DEFINITIONS: dict[str, Any] = SCHEMA["$defs"]
CONTRACT = Draft202012Validator(SCHEMA, format_checker=FormatChecker())


def complaints(document: object) -> list[str]:
    """Return what the schema has against a document."""
    validator: Any = CONTRACT  # its types know no `object`
    return [str(error.message) for error in validator.iter_errors(document)]


TIME = "2026-01-02T03:04:05.678Z"
STATE: dict[str, object] = {"dialect": "anthropic-messages", "modelId": "m", "data": {}}
USAGE: dict[str, object] = {"inputTokens": 3, "outputTokens": None, "totalTokens": None}
IMAGE = {"kind": "image", "payload": {"mimeType": "image/png", "data": "aGk="}}

PAYLOADS: dict[str, list[dict[str, object]]] = {
    "start": [{"modelId": "", "requestId": "r"}],
    "text": [
        {"textDelta": "hi"},
        {
            "textDelta": "",
            "partIndex": 0,
            "annotations": [{}],
            "refusal": True,
            "logprobs": {"tokens": ["a"], "logprobs": [-0.5]},
            "providerState": STATE,
        },
    ],
    "thinking": [{"textDelta": "", "redacted": True, "providerState": STATE}],
    "tool_call_start": [
        {"toolCallId": "c", "toolName": "f"},
        {"toolCallId": "c", "toolName": "f", "partIndex": 1, "inputFormat": "text"},
    ],
    "tool_call_args": [
        {"toolCallId": "c", "argsTextDelta": "{"},
        {"toolCallId": "c", "argsTextDelta": "{", "partIndex": 1},
    ],
    "tool_call_end": [
        {"toolCallId": "c"},
        {"toolCallId": "c", "partIndex": 1, "incomplete": True},
    ],
    "usage": [
        USAGE,
        {
            **USAGE,
            "cost": 0.5,
            "cacheReadTokens": 1,
            "cacheWriteTokens": 1,
            "reasoningTokens": 1,
            "details": {"raw": {}},
        },
    ],
    "done": [
        {"finishReason": "stop"},
        {
            "finishReason": "other",
            "rawFinishReason": "x",
            "modelId": "m",
            "warnings": [{"code": "noise", "message": "m", "offset": 0}],
        },
    ],
    "error": [
        {"errorCode": "timeout"},
        {
            "errorCode": "rate_limited",
            "message": "m",
            "retryable": True,
            "retryAfter": 1.5,
            "status": 429,
            "providerCode": "p",
            "httpRequestId": "h",
            "warnings": [],
        },
    ],
    "part": [{"partIndex": 0, "part": IMAGE}],
    "part_end": [{"partIndex": 0}],
    "audio": [{"audioDelta": "UklGRg=="}],
}


def delta(kind: str, payload: dict[str, object]) -> dict[str, object]:
    return {"runId": "r", "seq": 1, "kind": kind, "payload": payload, "timestamp": TIME}


DELTAS = [delta(kind, payload) for kind, payloads in PAYLOADS.items() for payload in payloads]


def test_it_is_a_schema_and_names_the_version() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["version"] == CONTRACT_VERSION


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("DeltaKind", DeltaKind),
        ("FinishReason", FinishReason),
        ("ErrorCode", ErrorCode),
        ("Role", Role),
    ],
)
def test_closed_lists_agree(name: str, members: Iterable[str]) -> None:
    assert DEFINITIONS[name]["enum"] == [str(member) for member in members]


def test_every_delta_kind_has_its_definition() -> None:
    refs = DEFINITIONS["MessageDelta"]["oneOf"]
    definitions = [DEFINITIONS[ref["$ref"].rpartition("/")[2]] for ref in refs]
    kinds = [definition["properties"]["kind"]["const"] for definition in definitions]
    assert kinds == list(DeltaKind)
    assert set(PAYLOADS) == set(DeltaKind)


@pytest.mark.parametrize("model", [Usage, Meta])
def test_members_of_the_records_agree(model: type[BaseModel]) -> None:
    names = {to_camel(name) for name in model.model_fields}
    assert set(DEFINITIONS[model.__name__]["properties"]) == names


@pytest.mark.parametrize(
    "model",
    [TextPart, ThinkingPart, ToolCallPart, ToolResultPart, ImagePart, FileRefPart, ProviderPart],
)
def test_members_of_the_parts_agree(model: type[BaseModel]) -> None:
    definition = DEFINITIONS[model.__name__]["properties"]
    names = {to_camel(name) for name in model.model_fields} - {"kind", "providerState"}
    assert definition["kind"]["const"] == model.model_fields["kind"].default
    assert set(definition["payload"]["properties"]) == names


def test_the_roles_agree() -> None:
    found = {
        rule["properties"]["role"]["const"]: tuple(
            rule["properties"]["parts"]["items"]["properties"]["kind"]["enum"]
        )
        for rule in DEFINITIONS["Message"]["oneOf"]
    }
    assert found == {str(role): kinds for role, kinds in KINDS_OF_ROLE.items()}


@pytest.mark.parametrize("document", DELTAS)
def test_a_delta_is_valid_and_goes_through_the_class_unchanged(
    document: dict[str, object],
) -> None:
    assert complaints(document) == []
    assert MessageDelta.from_dict(document).to_dict() == document


@pytest.mark.parametrize(
    "document",
    [
        {**delta("start", {"modelId": "m", "requestId": "r"}), "seq": 0},
        {**delta("start", {"modelId": "m", "requestId": "r"}), "runId": None},
        delta("start", {"modelId": "m"}),
        delta("text", {}),
        delta("text", {"textDelta": 5}),
        delta("text", {"textDelta": "x", "partIndex": -1}),
        delta("video", {}),
        delta("tool_call_start", {"toolCallId": "c", "toolName": "f", "inputFormat": "xml"}),
        delta("tool_call_args", {"toolCallId": "c"}),
        delta("usage", {"inputTokens": 1}),
        delta("usage", {**USAGE, "inputTokens": -1}),
        delta("done", {"finishReason": "bored"}),
        delta("error", {"errorCode": "teapot"}),
        delta("part", {"partIndex": 0, "part": {"kind": "text", "payload": {"text": "x"}}}),
        delta("part", {"partIndex": 0, "part": {"kind": "image", "payload": {"mimeType": "i"}}}),
    ],
)
def test_a_bad_delta_is_refused_by_the_schema_and_by_the_class(
    document: dict[str, object],
) -> None:
    assert complaints(document)
    with pytest.raises(ContractError):
        MessageDelta.from_dict(document)


def test_a_delta_is_a_field_of_a_users_model() -> None:
    class Frame(BaseModel):
        delta: MessageDelta

    document = {"delta": DELTAS[1]}
    frame = Frame.model_validate(document)
    assert frame.delta == MessageDelta.from_dict(DELTAS[1])
    assert Frame.model_validate({"delta": frame.delta}).delta is frame.delta
    assert Frame.model_validate_json(json.dumps(document)).delta == frame.delta
    assert frame.model_dump()["delta"] is frame.delta
    assert json.loads(frame.model_dump_json()) == document
    properties = Frame.model_json_schema()["properties"]["delta"]["properties"]
    assert set(properties) == set(DEFINITIONS["MessageDelta"]["properties"])
    values: list[object] = [{}, 5, None]
    for value in values:
        with pytest.raises(ValidationError):
            Frame.model_validate({"delta": value})


MESSAGES = [
    Message.system("s"),
    Message.user("u", ImagePart(mime_type="i", url="u"), FileRefPart(path="p", size=1)),
    Message.assistant(
        ThinkingPart(text="", redacted=True, provider_state=dict(STATE)),
        TextPart(text="t", annotations=[], refusal=True),
        ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text="[]"),
        ToolCallPart(tool_call_id="d", tool_name="f", raw_args_text="{", incomplete=True),
        ProviderPart(dialect="d", block={}),
        run_id="r",
    ),
    Message.tool_result("c", [TextPart(text="t")], is_error=True, status="s"),
    Message.tool_result("c", {"k": 1}),
    Message(
        role=Role.ASSISTANT,
        parts=[],
        meta=Meta(
            usage=Usage(input_tokens=1),
            cost_usd=0.1,
            finish_reason=FinishReason.STOP,
            is_api_error_message=True,
            parse_errors=[{"toolCallId": "c", "message": "m"}],
            warnings=[{"code": "noise", "message": "m"}],
            logprobs=Logprobs.from_dict({"tokens": ["a", None], "top": [[{"token": "b"}], []]}),
            trace={},
            approvals=[{}],
        ),
    ),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_valid(message: Message) -> None:
    assert complaints(message.to_dict()) == []


BAD_CHANGES: list[dict[str, object]] = [
    {"id": 5},
    {"timestamp": "2026-01-02"},
    {"role": "robot"},
    {"role": "tool"},
    {"role": "user"},
    {"parts": [{"kind": "text", "payload": {}}]},
    {"parts": [{"kind": "text", "payload": {"text": "x"}, "text": "x"}]},
    {"parts": [IMAGE | {"payload": {"mimeType": "i"}}]},
    {"meta": {"finishReason": "bored"}},
    {"content": "x"},
]


@pytest.mark.parametrize("changes", BAD_CHANGES)
def test_a_bad_message_is_refused_by_the_schema_and_by_the_model(
    changes: dict[str, object],
) -> None:
    document = {**MESSAGES[2].to_dict(), **changes}
    assert complaints(document)
    if "timestamp" not in changes:  # the model brings any aware time to the wire's form
        with pytest.raises(ValidationError):
            Message.from_dict(document)
