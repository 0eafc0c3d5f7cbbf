"""The Python face of `MessageDelta`: its attributes, its JSON, and the input that it refuses."""

import copy
import json
import pickle
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any, TypeAlias

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from deltafold import (
    ContractError,
    Decoder,
    DeltaKind,
    ErrorCode,
    FinishReason,
    Logprobs,
    MessageDelta,
    Usage,
)
from deltafold.message.parts import part_from_wire
from protocol_bodies import (
    CHAT,
    said,
)
from splits import NOW
from wire_deltas import PROVIDER_PART, STATE, TIME, WARNING

Wire: TypeAlias = dict[str, object]

# Value of each accessor for a delta of another kind.
NOTHING: Wire = {
    "part_index": None,
    "text": None,
    "annotations": None,
    "refusal": False,
    "redacted": False,
    "logprobs": None,
    "provider_state": None,
    "tool_call_id": None,
    "tool_name": None,
    "args_text": None,
    "input_format": None,
    "incomplete": False,
    "usage": None,
    "model_id": None,
    "request_id": None,
    "finish_reason": None,
    "raw_finish_reason": None,
    "warnings": [],
    "error_code": None,
    "error_message": None,
    "retryable": None,
    "retry_after": None,
    "status": None,
    "provider_code": None,
    "http_request_id": None,
    "part": None,
    "audio": None,
}

COUNTS: Wire = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}

# A payload of each kind, whole and with the least it needs, and what the accessors say.
ROWS: list[tuple[DeltaKind, Wire, Wire]] = [
    (
        DeltaKind.START,
        {"modelId": "m", "requestId": "r"},
        {"model_id": "m", "request_id": "r"},
    ),
    (DeltaKind.TEXT, {"textDelta": "a"}, {"text": "a"}),
    (DeltaKind.TEXT, {"textDelta": "a", "partIndex": 2}, {"text": "a", "part_index": 2}),
    (
        DeltaKind.TEXT,
        {
            "textDelta": "",
            "partIndex": 0,
            "annotations": [{"n": 1}],
            "refusal": True,
            "logprobs": {"tokens": ["a"], "logprobs": [-0.5]},
            "providerState": STATE,
        },
        {
            "text": "",
            "part_index": 0,
            "annotations": [{"n": 1}],
            "refusal": True,
            "logprobs": Logprobs.from_dict({"tokens": ["a"], "logprobs": [-0.5]}),
            "provider_state": STATE,
        },
    ),
    (DeltaKind.THINKING, {"textDelta": "é", "partIndex": 0}, {"text": "é", "part_index": 0}),
    (
        DeltaKind.THINKING,
        {"textDelta": "", "redacted": True, "providerState": STATE},
        {"text": "", "redacted": True, "provider_state": STATE},
    ),
    (
        DeltaKind.TOOL_CALL_START,
        {"toolCallId": "c", "toolName": "f"},
        {"tool_call_id": "c", "tool_name": "f", "input_format": "json"},
    ),
    (
        DeltaKind.TOOL_CALL_START,
        {
            "toolCallId": "c",
            "toolName": "f",
            "partIndex": 1,
            "inputFormat": "text",
            "providerState": STATE,
        },
        {
            "tool_call_id": "c",
            "tool_name": "f",
            "part_index": 1,
            "input_format": "text",
            "provider_state": STATE,
        },
    ),
    (
        DeltaKind.TOOL_CALL_ARGS,
        {"toolCallId": "c", "argsTextDelta": "{"},
        {"tool_call_id": "c", "args_text": "{"},
    ),
    (DeltaKind.TOOL_CALL_END, {"toolCallId": "c"}, {"tool_call_id": "c"}),
    (
        DeltaKind.TOOL_CALL_END,
        {"toolCallId": "c", "incomplete": True, "providerState": STATE},
        {"tool_call_id": "c", "incomplete": True, "provider_state": STATE},
    ),
    (
        DeltaKind.USAGE,
        {"inputTokens": None, "outputTokens": None, "totalTokens": None},
        {"usage": Usage()},
    ),
    (
        DeltaKind.USAGE,
        {
            **COUNTS,
            "cost": 0.5,
            "cacheReadTokens": 1,
            "cacheWriteTokens": 0,
            "reasoningTokens": 2,
            "details": {"raw": {"n": 2**70}},
        },
        {
            "usage": Usage(
                input_tokens=3,
                output_tokens=4,
                total_tokens=7,
                cost=0.5,
                cache_read_tokens=1,
                cache_write_tokens=0,
                reasoning_tokens=2,
                details={"raw": {"n": 2**70}},
            )
        },
    ),
    (DeltaKind.DONE, {"finishReason": "stop"}, {"finish_reason": FinishReason.STOP}),
    (
        DeltaKind.DONE,
        {
            "finishReason": "tool_calls",
            "rawFinishReason": "tool_use",
            "modelId": "n",
            "warnings": [WARNING],
        },
        {
            "finish_reason": FinishReason.TOOL_CALLS,
            "raw_finish_reason": "tool_use",
            "model_id": "n",
            "warnings": [WARNING],
        },
    ),
    (DeltaKind.ERROR, {"errorCode": "timeout"}, {"error_code": ErrorCode.TIMEOUT}),
    (
        DeltaKind.ERROR,
        {
            "errorCode": "rate_limited",
            "message": "slow",
            "retryable": True,
            "retryAfter": 1.5,
            "status": 429,
            "providerCode": "rate_limit_error",
            "httpRequestId": "q",
            "warnings": [WARNING],
        },
        {
            "error_code": ErrorCode.RATE_LIMITED,
            "error_message": "slow",
            "retryable": True,
            "retry_after": 1.5,
            "status": 429,
            "provider_code": "rate_limit_error",
            "http_request_id": "q",
            "warnings": [WARNING],
        },
    ),
    (DeltaKind.PART, {"part": PROVIDER_PART}, {"part": part_from_wire(PROVIDER_PART)}),
    (
        DeltaKind.PART,
        {"partIndex": 3, "part": PROVIDER_PART},
        {"part": part_from_wire(PROVIDER_PART), "part_index": 3},
    ),
    (DeltaKind.PART_END, {"partIndex": 3}, {"part_index": 3}),
    (DeltaKind.AUDIO, {"audioDelta": "UklGRg=="}, {"audio": "UklGRg=="}),
]

EVERY = pytest.mark.parametrize(("kind", "payload", "said_of_it"), ROWS)


def make(kind: str, payload: Mapping[str, object], **changes: Any) -> MessageDelta:  # noqa: ANN401 - any argument of the constructor
    given: dict[str, Any] = {
        "run_id": "run",
        "seq": 7,
        "kind": kind,
        "payload": payload,
        "timestamp": TIME,
    }
    return MessageDelta(**(given | changes))


def test_there_is_a_row_of_every_kind() -> None:
    assert {kind for kind, _, _ in ROWS} == set(DeltaKind)


@EVERY
def test_accessors_say_what_the_payload_holds_and_nothing_else(
    kind: DeltaKind, payload: Wire, said_of_it: Wire
) -> None:
    delta = make(kind, payload)
    assert {name: getattr(delta, name) for name in NOTHING} == NOTHING | said_of_it
    assert (delta.run_id, delta.seq, delta.kind) == ("run", 7, kind)
    assert isinstance(delta.kind, DeltaKind)
    assert delta.provider_raw is None


def test_accessors_give_the_members_of_the_closed_lists() -> None:
    assert isinstance(make("done", {"finishReason": "stop"}).finish_reason, FinishReason)
    assert isinstance(make("error", {"errorCode": "timeout"}).error_code, ErrorCode)
    assert isinstance(make("usage", COUNTS).usage, Usage)


@EVERY
def test_the_payload_is_a_fresh_mapping_in_wire_names(
    kind: DeltaKind, payload: Wire, said_of_it: Wire
) -> None:
    delta = make(kind, payload)
    assert said_of_it
    assert delta.payload == payload
    delta.payload.clear()
    assert delta.payload == payload


@EVERY
def test_a_delta_goes_through_dict_json_pickle_and_copy_unchanged(
    kind: DeltaKind, payload: Wire, said_of_it: Wire
) -> None:
    assert said_of_it
    delta = make(kind, payload, provider_raw={"type": "x", "n": [1, None]})
    wire = delta.to_dict()
    assert wire == {
        "runId": "run",
        "seq": 7,
        "kind": str(kind),
        "payload": payload,
        "timestamp": TIME,
        "providerRaw": {"type": "x", "n": [1, None]},
    }
    assert json.loads(delta.to_json()) == wire
    twins = [
        MessageDelta.from_dict(wire),
        MessageDelta.from_dict(MappingProxyType(wire)),
        MessageDelta.from_json(delta.to_json()),
        MessageDelta.from_json(delta.to_json().encode()),
        *(pickle.loads(pickle.dumps(delta, number)) for number in range(6)),  # noqa: S301
        copy.copy(delta),
        copy.deepcopy(delta),
    ]
    for twin in twins:
        assert twin == delta
        assert hash(twin) == hash(delta)
        assert twin.same_content(delta)
        assert twin.to_dict() == wire


def test_the_json_is_compact_unicode_on_one_line() -> None:
    text = make("text", {"textDelta": "é\n\u2028"}).to_json()
    assert text.startswith('{"runId":"run","seq":7,"kind":"text","payload":{"textDelta":"é\\n')
    assert "\n" not in text


def test_deltas_are_equal_when_all_they_say_is_equal() -> None:
    delta = make("text", {"textDelta": "a", "partIndex": 0})
    assert delta == make("text", {"partIndex": 0, "textDelta": "a"})
    for other in (
        make("text", {"textDelta": "b", "partIndex": 0}),
        make("text", {"textDelta": "a", "partIndex": 1}),
        make("text", {"textDelta": "a"}),
        make("thinking", {"textDelta": "a", "partIndex": 0}),
        make("text", {"textDelta": "a", "partIndex": 0}, seq=8),
        make("text", {"textDelta": "a", "partIndex": 0}, run_id="other"),
        make("text", {"textDelta": "a", "partIndex": 0}, provider_raw={}),
    ):
        assert delta != other
        assert not delta.same_content(other)
    strangers: list[object] = [None, 7, "text", delta.to_dict()]
    assert all(delta != stranger for stranger in strangers)
    assert len({delta, make("text", {"textDelta": "a", "partIndex": 0})}) == 1


def test_content_is_the_same_at_another_time_and_in_another_order_of_members() -> None:
    one = make("text", {"textDelta": "a", "annotations": [{"x": 1, "y": 2}]})
    other = make("text", {"textDelta": "a", "annotations": [{"y": 2, "x": 1}]}, timestamp=NOW)
    assert one.same_content(other)
    assert one != other


def test_times_are_aware_in_utc_and_exact_to_the_millisecond() -> None:
    moment = datetime(2026, 3, 4, 5, 6, 7, 891_234, tzinfo=timezone(timedelta(hours=2)))
    delta = make("text", {"textDelta": "a"}, timestamp=moment)
    assert delta.timestamp == datetime(2026, 3, 4, 3, 6, 7, 891_000, tzinfo=UTC)
    assert delta.timestamp.utcoffset() == timedelta(0)
    assert delta.to_dict()["timestamp"] == "2026-03-04T03:06:07.891Z"
    assert make("text", {"textDelta": "a"}, timestamp="2026-03-04T05:06:07.891+02:00") == delta
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    stamped = make("text", {"textDelta": "a"}, timestamp=None).timestamp
    assert before <= stamped <= datetime.now(UTC)


def test_the_repr_is_short_and_says_what_it_is() -> None:
    assert repr(make("text", {"textDelta": "a"})) == "<MessageDelta 7 text {'textDelta': 'a'}>"
    assert len(repr(make("text", {"textDelta": "é" * 10_000}))) < 130
    batch = Decoder(CHAT).feed(said("x" * 10_000))
    assert len(repr(batch)) < 130
    assert len(repr(Decoder(CHAT, run_id="run"))) < 130


def test_a_delta_cannot_be_changed() -> None:
    delta = make("text", {"textDelta": "a"})
    for name in ("text", "seq", "new_one"):
        with pytest.raises(AttributeError):
            setattr(delta, name, "b")


# Validation: the message names the field and the type of the value.

WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "seq a string": ({"seq": "1"}, "seq", "str"),
    "seq a bool": ({"seq": True}, "seq", "bool"),
    "seq negative": ({"seq": -1}, "seq", "int"),
    "seq 0": ({"seq": 0}, "seq", "0"),
    "seq too large": ({"seq": 2**70}, "seq", "int"),
    "run_id None": ({"run_id": None}, "runId", "run"),
    "run_id bytes": ({"run_id": b"run"}, "runId", "bytes"),
    "run_id no Unicode": ({"run_id": "\ud800"}, "runId", "surrogate"),
    "kind unknown": ({"kind": "video"}, "kind", "video"),
    "kind an int": ({"kind": 5}, "kind", "int"),
    "payload a list": ({"payload": []}, "payload", "list"),
    "timestamp an int": ({"timestamp": 5}, "timestamp", "int"),
    "timestamp naive": ({"timestamp": datetime(2026, 1, 1)}, "timestamp", "offset"),  # noqa: DTZ001
    "timestamp no time": ({"timestamp": "soon"}, "timestamp", "soon"),
    "timestamp before 1970": ({"timestamp": datetime(1960, 1, 1, tzinfo=UTC)}, "timestamp", "1970"),
    "provider_raw a string": ({"provider_raw": "x"}, "providerRaw", "str"),
}


@pytest.mark.parametrize(("changes", "field", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_member_of_a_delta_is_named(
    changes: dict[str, Any], field: str, words: str
) -> None:
    given: dict[str, Any] = {"kind": "text", "payload": {"textDelta": "a"}}
    with pytest.raises(ContractError, match=words) as raised:
        make(**(given | changes))
    assert field in str(raised.value)


WRONG_PAYLOADS: dict[str, tuple[str, Wire, str, str]] = {
    "no text": ("text", {}, "textDelta", "textDelta"),
    "text an int": ("text", {"textDelta": 5}, "textDelta", "int"),
    "text None": ("text", {"textDelta": None}, "textDelta", "textDelta"),
    "text bytes": ("thinking", {"textDelta": b"a"}, "textDelta", "bytes"),
    "text no Unicode": ("text", {"textDelta": "\ud83d"}, "textDelta", "surrogate"),
    "part index a string": ("text", {"textDelta": "a", "partIndex": "0"}, "partIndex", "str"),
    "part index negative": ("text", {"textDelta": "a", "partIndex": -1}, "partIndex", "int"),
    "annotations an object": ("text", {"textDelta": "a", "annotations": {}}, "annotations", "dict"),
    "annotations no JSON": (
        "text",
        {"textDelta": "a", "annotations": [float("nan")]},
        "annotations",
        "JSON",
    ),
    "logprobs a list": ("text", {"textDelta": "a", "logprobs": []}, "logprobs", "list"),
    "refusal a string": ("text", {"textDelta": "a", "refusal": "yes"}, "refusal", "str"),
    "state a string": ("text", {"textDelta": "a", "providerState": "s"}, "providerState", "str"),
    "no model": ("start", {"requestId": "r"}, "modelId", "modelId"),
    "no call id": ("tool_call_start", {"toolName": "f"}, "toolCallId", "toolCallId"),
    "unknown format": (
        "tool_call_start",
        {"toolCallId": "c", "toolName": "f", "inputFormat": "xml"},
        "inputFormat",
        "xml",
    ),
    "args an object": (
        "tool_call_args",
        {"toolCallId": "c", "argsTextDelta": {}},
        "argsTextDelta",
        "dict",
    ),
    "incomplete an int": (
        "tool_call_end",
        {"toolCallId": "c", "incomplete": 1},
        "incomplete",
        "int",
    ),
    "a count missing": ("usage", {"inputTokens": 1}, "outputTokens", "outputTokens"),
    "a count a float": ("usage", {**COUNTS, "inputTokens": 1.5}, "inputTokens", "float"),
    "a count a bool": ("usage", {**COUNTS, "inputTokens": True}, "inputTokens", "bool"),
    "cost a string": ("usage", {**COUNTS, "cost": "1"}, "cost", "str"),
    "details a list": ("usage", {**COUNTS, "details": []}, "details", "list"),
    "unknown reason": ("done", {"finishReason": "bored"}, "finishReason", "bored"),
    "warnings an object": (
        "done",
        {"finishReason": "stop", "warnings": {}},
        "warnings",
        "dict",
    ),
    "unknown code": ("error", {"errorCode": "teapot"}, "errorCode", "teapot"),
    "status too large": ("error", {"errorCode": "timeout", "status": 99_999}, "status", "status"),
    "wait not finite": (
        "error",
        {"errorCode": "timeout", "retryAfter": float("inf")},
        "retryAfter",
        "finite",
    ),
    "no part": ("part", {"partIndex": 0}, "part", "part"),
    "part a string": ("part", {"part": "x"}, "part", "str"),
}


@pytest.mark.parametrize(
    ("kind", "payload", "field", "words"), WRONG_PAYLOADS.values(), ids=WRONG_PAYLOADS
)
def test_a_wrong_member_of_a_payload_is_named_with_its_seq(
    kind: str, payload: Wire, field: str, words: str
) -> None:
    with pytest.raises(ContractError, match=words) as raised:
        make(kind, payload)
    assert (raised.value.field, raised.value.seq) == (field, 7)
    assert field in str(raised.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "null", b"\xff", "{}"])
def test_json_that_is_no_delta_is_a_contract_error(text: str | bytes) -> None:
    with pytest.raises((ContractError, TypeError)):
        MessageDelta.from_json(text)


def test_a_delta_is_a_field_of_pydantic_models_alone_and_in_containers() -> None:
    class Record(BaseModel):
        deltas: list[MessageDelta]
        last: MessageDelta | None = None

    delta = make("text", {"textDelta": "a"})
    record = Record(deltas=[delta], last=delta)
    assert record.deltas[0] is delta
    assert Record.model_validate_json(record.model_dump_json()) == record
    assert record.model_dump(mode="json")["last"] == delta.to_dict()
    schema = TypeAdapter(MessageDelta).json_schema()
    assert schema["type"] == "object"
    assert set(schema["required"]) >= {"runId", "seq", "kind", "payload"}
    with pytest.raises(ValidationError, match="textDelta"):
        Record.model_validate({"deltas": [{**delta.to_dict(), "payload": {}}]})
