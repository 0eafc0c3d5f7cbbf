"""Both assemblers, the extension's and the reference: built messages and refused deltas.

Deltas are given in their wire form, and every table runs on both classes.
"""

import pickle
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TypeAlias, cast

import pytest

import reference
from deltafold import _core
from deltafold._core import Decoder, MessageDelta
from deltafold.contract.exceptions import ContractError, MisuseError
from deltafold.contract.kinds import ErrorCode, FinishReason
from deltafold.contract.usage import Usage
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message, ProviderPart, Role, TextPart, ThinkingPart
from wire_deltas import (
    PROVIDER_PART,
    STATE,
    TIME,
    WARNING,
    Assembler,
    Wire,
    args,
    assert_same,
    call,
    call_states,
    consume,
    delta,
    done,
    end,
    error,
    numbered,
    part,
    start,
    state,
    text,
    thinking,
    usage,
)


@pytest.fixture(
    params=[reference.MessageAssembler, _core.MessageAssembler], ids=["reference", "extension"]
)
def assembler_class(request: pytest.FixtureRequest) -> type[Assembler]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def assembler(assembler_class: type[Assembler]) -> Assembler:
    return assembler_class()


def test_an_idle_assembler_shows_an_empty_assistant_message(assembler: Assembler) -> None:
    snapshot = assembler.snapshot()
    assert snapshot.role is Role.ASSISTANT
    assert snapshot.parts == []
    assert snapshot.meta.model_dump() == {}
    assert snapshot.run_id is None
    assert snapshot.timestamp.tzinfo is not None
    assert assembler.status == "idle"
    assert assembler.last_seq == 0
    assert assembler.parts == []
    assert assembler.tool_calls == {}
    assert assembler.text == ""
    for nothing in (assembler.run_id, assembler.usage, assembler.error, assembler.get_error()):
        assert nothing is None
    with pytest.raises(MisuseError, match="idle"):
        assembler.build_final_message()


def test_a_whole_stream_becomes_a_message(assembler: Assembler) -> None:
    consume(
        assembler,
        start(),
        thinking("let ", partIndex=0),
        thinking("me see", partIndex=0),
        thinking("", partIndex=0, providerState=STATE),
        text("It ", partIndex=1),
        text("is", partIndex=1, annotations=[{"n": 1}]),
        text("", partIndex=1, annotations=[{"n": 2}]),
        call("a", partIndex=2),
        call("b", partIndex=3, inputFormat="text", providerState=STATE),
        args('{"q":', "a"),
        args("ls", "b"),
        args(" 1}", "a"),
        end("b"),
        end("a"),
        part(4),
        usage(),
        usage(outputTokens=5, totalTokens=8, cost=0.5),
        done("tool_calls", rawFinishReason="tool_use", modelId="other", warnings=[WARNING]),
    )
    assert assembler.status == "done"
    message = assembler.build_final_message()
    assert isinstance(message, Message)
    assert message.to_dict() == {
        "id": str(message.id),
        "runId": "run",
        "role": "assistant",
        "parts": [
            {"kind": "thinking", "payload": {"text": "let me see"}, "providerState": STATE},
            {"kind": "text", "payload": {"text": "It is", "annotations": [{"n": 1}, {"n": 2}]}},
            {
                "kind": "tool_call",
                "payload": {
                    "toolCallId": "a",
                    "toolName": "f",
                    "arguments": {"q": 1},
                    "rawArgsText": '{"q": 1}',
                },
            },
            {
                "kind": "tool_call",
                "payload": {
                    "toolCallId": "b",
                    "toolName": "f",
                    "arguments": {"input": "ls"},
                    "rawArgsText": "ls",
                    "inputFormat": "text",
                },
                "providerState": STATE,
            },
            PROVIDER_PART,
        ],
        "timestamp": TIME,
        "meta": {
            "usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8, "cost": 0.5},
            "responseId": "resp",
            "modelId": "other",
            "finishReason": "tool_calls",
            "rawFinishReason": "tool_use",
            "warnings": [WARNING],
        },
    }
    assert assembler.snapshot() == message == assembler.build_final_message()
    assert [found.tool_call_id for found in message.runnable_tool_calls] == ["a", "b"]
    assert assembler.usage == message.meta.usage
    assert assembler.text == message.text == "It is"
    assert pickle.loads(pickle.dumps(message)) == message  # noqa: S301
    assert Message.from_json(message.to_json()) == message


@pytest.mark.parametrize(
    ("deltas", "parts"),
    [
        ([], []),
        ([text("a"), text("b")], [TextPart(text="ab")]),
        (
            [text("a"), thinking("b"), thinking("c"), text("d")],
            [TextPart(text="a"), ThinkingPart(text="bc"), TextPart(text="d")],
        ),
        (
            [text("a", partIndex=0), text("b", partIndex=1), text("c", partIndex=0), text("d")],
            [TextPart(text="ac"), TextPart(text="bd")],
        ),
        (
            [text("a"), part(1), text("b")],
            [
                TextPart(text="a"),
                ProviderPart(dialect="d", block={"type": "x"}),
                TextPart(text="b"),
            ],
        ),
        (
            [text("no", refusal=True), text("!")],
            [TextPart(text="no!", refusal=True)],
        ),
        (
            [text("a", providerState={"v": 1}), text("b", providerState={"v": 2}), text("c")],
            [TextPart(text="abc", provider_state={"v": 2})],
        ),
        (
            [
                text("a", logprobs={"tokens": ["a"], "logprobs": [-1.0]}),
                text("b"),
                text("c", logprobs={"tokens": ["c"], "logprobs": [-2.0]}),
            ],
            [TextPart(text="abc")],
        ),
        (
            [thinking("", redacted=True, providerState=STATE), thinking("x", partIndex=1)],
            [
                ThinkingPart(text="", redacted=True, provider_state=STATE),
                ThinkingPart(text="x"),
            ],
        ),
        ([text("a\0b\u2028😀")], [TextPart(text="a\0b\u2028😀")]),
    ],
)
def test_text_and_thinking_fall_into_parts(
    assembler: Assembler, deltas: list[tuple[str, Wire]], parts: list[object]
) -> None:
    consume(assembler, start(), *deltas)
    assert assembler.parts == parts
    assert assembler.snapshot().parts == parts
    consume(assembler, done())
    assert assembler.build_final_message().parts == parts


Expected: TypeAlias = tuple[str, bool, bool, dict[str, object] | None]

GROWING_CALLS: list[tuple[list[tuple[str, Wire]], Expected]] = [
    ([call()], ("", False, False, None)),
    ([call(), args('{"a": 1}')], ('{"a": 1}', False, False, None)),
    ([call(), end()], ("", True, False, {})),
    ([call(), args("{"), args("}"), end()], ("{}", True, False, {})),
    ([call(), args('{"a'), end(incomplete=True)], ('{"a', True, True, None)),
    ([call(), end(incomplete=True)], ("", True, True, None)),
    ([call(), args("[]"), end()], ("[]", True, False, None)),
]


@pytest.mark.parametrize(("deltas", "expected"), GROWING_CALLS)
def test_a_tool_call_grows_until_it_ends(
    assembler: Assembler,
    deltas: list[tuple[str, Wire]],
    expected: Expected,
) -> None:
    consume(assembler, start(), text("hi"), *deltas)
    args_text, ended, incomplete, arguments = expected
    assert call_states(assembler) == {"c": ("c", "f", args_text, 1, "json", ended, incomplete)}
    [found] = assembler.snapshot().tool_calls
    assert found.raw_args_text == args_text
    assert found.incomplete is incomplete
    assert found.arguments == arguments
    assert (found.parse_error is not None) == (args_text == "[]")


def test_the_mapping_of_tool_calls_is_a_read_only_copy(assembler: Assembler) -> None:
    consume(assembler, start(), call())
    before = assembler.tool_calls
    assert isinstance(before, MappingProxyType)
    consume(assembler, args("{}"))
    assert before["c"].args_text == ""
    assert assembler.tool_calls["c"].args_text == "{}"


def test_provider_state_at_the_end_of_a_call_replaces_the_one_at_its_start(
    assembler: Assembler,
) -> None:
    consume(assembler, start(), call(providerState={"v": 1}), end(providerState={"v": 2}))
    assert assembler.parts[0].provider_state == {"v": 2}


def test_a_snapshot_does_not_change_when_more_comes(assembler: Assembler) -> None:
    consume(assembler, start(), text("a", annotations=[1], logprobs={"tokens": ["a"]}), call())
    snapshot = assembler.snapshot()
    before = snapshot.to_dict()
    consume(assembler, text("b", partIndex=0, annotations=[2], logprobs={"tokens": ["b"]}), end())
    assert snapshot.to_dict() == before
    later = assembler.snapshot()
    assert later.id == snapshot.id
    assert later.timestamp == snapshot.timestamp
    assert later.text == "ab"


def test_the_message_has_the_time_of_the_first_delta(assembler: Assembler) -> None:
    assembler.consume(delta(1, *start()))
    assembler.consume(delta(2, *text("x"), timestamp="2027-01-01T00:00:00.000Z"))
    assert assembler.snapshot().timestamp == datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def test_ids_that_are_empty_are_not_known(assembler: Assembler) -> None:
    consume(assembler, start(modelId="", requestId=""), done())
    meta = assembler.build_final_message().meta
    assert (meta.model_id, meta.response_id) == (None, None)
    assert meta.finish_reason is FinishReason.STOP


def test_an_error_keeps_what_came_and_raises_at_the_end(assembler: Assembler) -> None:
    consume(
        assembler,
        start(),
        text("so far"),
        call(),
        args('{"a'),
        end(incomplete=True),
        usage(),
        error(
            "rate_limited",
            message="slow down",
            retryable=True,
            retryAfter=1.5,
            status=429,
            providerCode="rate_limit_error",
            httpRequestId="req",
            warnings=[WARNING],
        ),
    )
    assert assembler.status == "error"
    with pytest.raises(ModelError) as caught:
        assembler.build_final_message()
    for failure in (caught.value, assembler.error, assembler.get_error()):
        assert failure is not None
        assert failure.code is ErrorCode.RATE_LIMITED
        assert failure.message == "slow down"
        assert failure.retryable is True
        assert failure.retry_after == 1.5
        assert failure.status == 429
        assert failure.provider_code == "rate_limit_error"
        assert failure.http_request_id == "req"
        assert failure.warnings == [WARNING]
        partial = failure.partial_message
        assert partial is not None
        assert partial.text == "so far"
        assert partial.runnable_tool_calls == []
        assert partial.tool_calls[0].incomplete
        assert partial.meta.is_api_error_message is True
        assert partial.meta.warnings == [WARNING]
        assert partial.meta.finish_reason is None
        assert partial.meta.usage == Usage(input_tokens=3, output_tokens=4, total_tokens=7)
        assert partial == assembler.snapshot()
        assert pickle.loads(pickle.dumps(failure)).partial_message == partial  # noqa: S301


def test_an_error_without_members_has_the_defaults_of_its_code(assembler: Assembler) -> None:
    consume(assembler, start(), error("overloaded"))
    failure = assembler.error
    assert failure is not None
    assert (failure.retryable, failure.message, failure.status) == (True, "", None)
    assert failure.warnings == []


def test_before_the_end_there_is_no_final_message(assembler: Assembler) -> None:
    consume(assembler, start(), text("x"))
    with pytest.raises(MisuseError, match=r"started.*snapshot"):
        assembler.build_final_message()


OPEN_CALL = [start(), call()]
SOME_TEXT = [start(), text("hi")]

BROKEN: list[tuple[str, list[tuple[str, Wire]], Wire]] = [
    ("no start", [], delta(1, *text("x"))),
    ("done before start", [], delta(1, *done())),
    ("second start", [start()], delta(2, *start())),
    ("seq repeated", SOME_TEXT, delta(2, *text("x"))),
    ("seq falls", SOME_TEXT, delta(1, *text("x"))),
    ("seq zero", [], delta(0, *start())),
    ("another run", SOME_TEXT, delta(3, *text("x"), runId="other")),
    ("text after done", [start(), done()], delta(3, *text("x"))),
    ("second done", [start(), done()], delta(3, *done())),
    ("error after done", [start(), done()], delta(3, *error())),
    ("done after error", [start(), error()], delta(3, *done())),
    ("start after done", [start(), done()], delta(3, *start())),
    ("empty text", [start()], delta(2, *text(""))),
    ("empty thinking", [start()], delta(2, *thinking(""))),
    ("empty text with an index", SOME_TEXT, delta(3, *text("", partIndex=0))),
    ("text leaves a gap", SOME_TEXT, delta(3, *text("x", partIndex=2))),
    ("text onto thinking", [start(), thinking("x")], delta(3, *text("x", partIndex=0))),
    ("thinking onto text", SOME_TEXT, delta(3, *thinking("x", partIndex=0))),
    ("text onto a call", OPEN_CALL, delta(3, *text("x", partIndex=0))),
    ("text onto a whole part", [start(), part(0)], delta(3, *text("x", partIndex=0))),
    ("call onto text", SOME_TEXT, delta(3, *call(partIndex=0))),
    ("call leaves a gap", SOME_TEXT, delta(3, *call(partIndex=2))),
    ("call started twice", OPEN_CALL, delta(3, *call())),
    ("call id used again", [*OPEN_CALL, end()], delta(4, *call())),
    ("args of no call", [start()], delta(2, *args("{}"))),
    ("args of another call", OPEN_CALL, delta(3, *args("{}", "d"))),
    ("args after the end", [*OPEN_CALL, end()], delta(4, *args("{}"))),
    ("end of no call", [start()], delta(2, *end())),
    ("end twice", [*OPEN_CALL, end()], delta(4, *end())),
    ("done with an open call", OPEN_CALL, delta(3, *done())),
    ("part onto a part", SOME_TEXT, delta(3, *part(0))),
    ("part leaves a gap", SOME_TEXT, delta(3, *part(2))),
    (
        "a text as whole part",
        [start()],
        delta(2, *part(0, {"kind": "text", "payload": {"text": "x"}})),
    ),
    (
        "a whole part without its members",
        [start()],
        delta(2, *part(0, {"kind": "image", "payload": {"mimeType": "image/png"}})),
    ),
    ("unknown kind", [start()], delta(2, "video", {})),
    ("payload without a member", [start()], delta(2, "text", {})),
    ("payload with a wrong type", [start()], delta(2, "text", {"textDelta": 5})),
    ("usage without a count", [start()], delta(2, "usage", {"inputTokens": 1})),
    ("unknown finish reason", [start()], delta(2, *done("bored"))),
    ("unknown error code", [start()], delta(2, *error("teapot"))),
    ("no members at all", [start()], {}),
]


def test_an_error_ends_the_open_calls_as_incomplete(assembler: Assembler) -> None:
    """A producer other than a decoder may fail in the middle of a call."""
    calls = [call(), call("d"), args('{"a"', "d"), call("e"), end("e")]
    consume(assembler, start(), *calls, error())
    found = {
        one.tool_call_id: (one.raw_args_text, one.incomplete)
        for one in assembler.snapshot().tool_calls
    }
    assert found == {"c": ("", True), "d": ('{"a"', True), "e": ("", False)}
    assert assembler.status == "error"
    with pytest.raises(ModelError) as failed:
        assembler.build_final_message()
    assert failed.value.partial_message is not None
    assert (
        failed.value.partial_message.runnable_tool_calls == assembler.snapshot().runnable_tool_calls
    )


@pytest.mark.parametrize(
    ("before", "bad"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_a_broken_law_is_refused_and_changes_nothing(
    assembler: Assembler, before: list[tuple[str, Wire]], bad: Wire
) -> None:
    consume(assembler, *before)
    seen = state(assembler)
    for _ in range(2):
        with pytest.raises(ContractError):
            assembler.consume(bad)
        assert state(assembler) == seen


def test_what_follows_a_refused_delta_is_taken(assembler: Assembler) -> None:
    consume(assembler, start(), text("a"))
    with pytest.raises(ContractError):
        assembler.consume(delta(3, *text("x", partIndex=7)))
    assembler.consume(delta(3, *text("b")))
    assembler.consume(delta(9, *done()))
    assert assembler.build_final_message().text == "ab"
    assert assembler.last_seq == 9


def test_a_refusal_names_the_delta_and_its_member(assembler: Assembler) -> None:
    consume(assembler, start())
    with pytest.raises(ContractError) as caught:
        assembler.consume(delta(2, *args("{}", "nobody")))
    assert caught.value.seq == 2
    assert caught.value.field == "toolCallId"


@pytest.mark.parametrize("thing", [None, 5, "start", b"start", [], [delta(1, *start())], object()])
def test_what_is_no_delta_is_a_type_error(assembler: Assembler, thing: object) -> None:
    seen = state(assembler)
    with pytest.raises(TypeError):
        assembler.consume(cast("Wire", thing))
    assert state(assembler) == seen


def test_a_given_run_id_binds_and_a_learned_one_is_forgotten(
    assembler_class: type[Assembler],
) -> None:
    bound = assembler_class("mine")
    assert bound.run_id == "mine"
    with pytest.raises(ContractError, match="mine"):
        bound.consume(delta(1, *start()))
    bound.consume(delta(1, *start(), runId="mine"))
    bound.reset()
    assert bound.run_id == "mine"

    learning = assembler_class(run_id=None)
    learning.consume(delta(1, *start()))
    learned = [learning.run_id]
    learning.reset()
    learned.append(learning.run_id)
    learning.consume(delta(1, *start(), runId="other"))
    assert [*learned, learning.run_id] == ["run", None, "other"]


@pytest.mark.parametrize("run_id", [5, b"run", ["run"]])
def test_a_run_id_of_the_wrong_type_is_refused(
    assembler_class: type[Assembler], run_id: object
) -> None:
    with pytest.raises(TypeError):
        assembler_class(cast("str", run_id))


@pytest.mark.parametrize("last", [text("x"), done(), error(), call()])
def test_reset_returns_to_idle(assembler: Assembler, last: tuple[str, Wire]) -> None:
    empty = state(assembler)
    consume(assembler, start(), usage(), last)
    first = assembler.snapshot().id
    assembler.reset()
    assert state(assembler) == empty
    consume(assembler, start(), text("again"), done())
    message = assembler.build_final_message()
    assert message.text == "again"
    assert message.meta.usage is None
    assert message.id != first


def test_a_delta_object_and_any_mapping_do_as_well(assembler: Assembler) -> None:
    first, second, third = numbered(start(), text("a"), done())
    assembler.consume(MessageDelta.from_dict(first))
    assembler.consume(MappingProxyType(second))
    assembler.consume(MessageDelta.from_dict(third))
    assert assembler.build_final_message().text == "a"


CHAT_STREAM = b"""\
data: {"id":"resp","model":"model","choices":[{"index":0,"delta":{"content":"Hel"}}]}

data: {"id":"resp","model":"model","choices":[{"index":0,"delta":{"content":"lo"}}]}

data: {"id":"resp","model":"model","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

"""


def test_a_batch_is_its_deltas_in_order(assembler_class: type[Assembler]) -> None:
    whole, one_by_one = assembler_class(), assembler_class()
    decoder = Decoder("openai-chat", run_id="run")
    for batch in (decoder.feed(CHAT_STREAM), decoder.close()):
        whole.consume(batch)
        for one in batch:
            one_by_one.consume(one)
    assert whole.build_final_message().text == "Hello"
    assert_same(whole, one_by_one)


def test_a_refused_batch_keeps_what_came_before_its_bad_delta(
    assembler_class: type[Assembler],
) -> None:
    batch = Decoder("openai-chat", run_id="run").feed(CHAT_STREAM)
    elsewhere, again = assembler_class("other"), assembler_class()
    untouched = state(elsewhere)
    with pytest.raises(ContractError):
        elsewhere.consume(batch)
    assert state(elsewhere) == untouched
    again.consume(batch)
    seen = state(again)
    with pytest.raises(ContractError):
        again.consume(batch)
    assert state(again) == seen


def test_the_cost_of_a_long_stream_is_linear(assembler: Assembler) -> None:
    count = 50_000
    pieces = [MessageDelta.from_dict(delta(seq, *text("x"))) for seq in range(2, count)]
    assembler.consume(delta(1, *start()))
    for seq, piece in enumerate(pieces):
        assembler.consume(piece)
        if seq % 1_000 == 0:
            assert len(assembler.text) == seq + 1
    assert len(assembler.text) == count - 2
