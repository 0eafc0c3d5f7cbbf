"""The Python face of `Decoder`, `DeltaBatch` and `Limits`."""

import json
import pickle
import re
from datetime import timedelta
from typing import Any, cast, get_type_hints

import pytest

from deltafold import (
    ChoicesDecoder,
    Decoder,
    DeltaBatch,
    ErrorCode,
    Fold,
    Limits,
    MessageDelta,
    UnknownDialectError,
    dialect_names,
)
from deltafold.streams.options import ChoicesOptions, DecoderOptions
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    WHOLE,
    anthropic,
    block,
    call_chunk,
    event,
    finish,
    message_end,
    message_start,
    said,
)
from splits import NOW, decode, now

# Keywords.


def test_the_docstring_and_the_types_name_the_same_keywords() -> None:
    """The row of a keyword in Rust writes its entry of the docstring."""
    arguments = (Decoder.__doc__ or "").partition("Args:\n")[2].partition("\n\n")[0]
    named = re.findall(r"^    (\w+): ", arguments, re.MULTILINE)
    assert named == ["dialect", "choice", *ChoicesOptions.__annotations__]
    assert {"choice", *ChoicesOptions.__annotations__} == set(get_type_hints(DecoderOptions))


@pytest.mark.parametrize("kind", [Decoder, ChoicesDecoder, Fold])
def test_a_wrong_keyword_is_named(kind: Any) -> None:  # noqa: ANN401 - three classes
    with pytest.raises(TypeError, match="unexpected keyword argument 'unknown'"):
        kind(CHAT, unknown=1)
    with pytest.raises(TypeError, match="argument 'run_id': "):
        kind(CHAT, run_id=1)
    with pytest.raises(TypeError, match="argument 'logprobs': "):
        kind(CHAT, logprobs=None)


# Batches.


def test_a_batch_is_an_immutable_sequence_of_its_deltas() -> None:
    decoder = Decoder(CHAT, run_id="run", clock=now)
    batch = decoder.feed(said("a", "b") + call_chunk("{}", name="f", index=0, id="c"))
    assert isinstance(batch, DeltaBatch)
    assert (batch.run_id, batch.timestamp, batch.text) == ("run", NOW, "ab")
    deltas = list(batch)
    kinds = ["start", "text", "text", "part_end", "tool_call_start"]
    assert [str(delta.kind) for delta in deltas] == kinds
    assert len(batch) == 5
    assert list(batch) == deltas
    assert [batch[n] for n in range(-5, 5)] == deltas * 2
    for n in (5, -6):
        with pytest.raises(IndexError):
            batch[n]
    decoder.feed(said("later"))
    assert list(batch) == deltas
    assert [delta.seq for delta in deltas] == [1, 2, 3, 4, 5]
    assert all(delta.timestamp == NOW for delta in deltas)


def test_an_empty_batch_is_empty() -> None:
    batch = Decoder(CHAT).feed(b"")
    assert (len(batch), list(batch), batch.text) == (0, [], "")


def test_a_delta_outlives_its_batch_and_its_decoder() -> None:
    delta = next(iter(Decoder(CHAT, run_id="run").feed(said("kept"))))
    assert delta.run_id == "run"


# Limits.


def test_limits_have_the_documented_defaults_and_compare_by_value() -> None:
    limits = Limits()
    assert (limits.event_bytes, limits.depth) == (32 << 20, 128)
    assert limits == Limits(event_bytes=32 << 20)
    assert limits != Limits(depth=5)
    assert hash(limits) == hash(Limits())
    assert "depth=5" in repr(Limits(depth=5))
    strangers: list[object] = [None, 5, "limits"]
    assert all(limits != stranger for stranger in strangers)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"event_bytes": 0}, ValueError),
        ({"depth": 1_001}, ValueError),
        ({"parts": -1}, OverflowError),
        ({"parts": "x"}, TypeError),
        ({"unknown": 1}, TypeError),
    ],
)
def test_a_bound_that_is_none_is_refused(given: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Limits(**given)


# Options of a decoder.


def test_dialects_are_listed_and_an_unknown_one_is_told_them() -> None:
    assert {ANTHROPIC, CHAT} <= set(dialect_names())
    with pytest.raises(UnknownDialectError, match=ANTHROPIC):
        Decoder(cast("Any", "anthropic"))


def test_the_callers_names_stand_in_where_the_body_has_none() -> None:
    nameless = event({"choices": [{"delta": {"content": "a"}}]}) + DONE
    deltas, _ = decode(CHAT, [nameless], model_id="asked", request_id="given")
    assert (deltas[0].model_id, deltas[0].request_id) == ("asked", "given")
    deltas, _ = decode(CHAT, [nameless])
    assert (deltas[0].model_id, deltas[0].request_id) == ("", "run")
    deltas, _ = decode(CHAT, [WHOLE[CHAT]], model_id="asked", request_id="given")
    assert (deltas[0].model_id, deltas[0].request_id) == ("m", "chatcmpl-1")


def test_provider_state_names_the_model_that_was_asked_for() -> None:
    thinking = block(0, {"type": "thinking"}, {"type": "signature_delta", "signature": "s"})
    body = message_start() + thinking + message_end()
    for options, model in (({}, "m"), ({"model_id": "alias"}, "alias")):
        given = cast("dict[str, Any]", options)
        _, assembler = decode(ANTHROPIC, [body], **given)
        state = assembler.parts[0].provider_state
        assert state is not None
        assert state["modelId"] == model


def test_a_run_id_is_made_up_when_none_is_given() -> None:
    one, other = Decoder(CHAT), Decoder(CHAT)
    assert one.run_id
    assert one.run_id != other.run_id
    assert next(iter(one.feed(said("a")))).run_id == one.run_id


def test_the_frame_rides_on_its_first_delta_when_asked_for() -> None:
    body = said("a") + call_chunk("1", name="f", index=0, id="c") + finish("stop") + DONE
    deltas, _ = decode(CHAT, [body], provider_raw=True)
    frames = [json.loads(part[6:]) for part in body.split(b"\n\n")[:-2]]
    carried = [delta.provider_raw for delta in deltas if delta.provider_raw is not None]
    assert [frame for frame in carried if frame in frames] == carried
    assert carried[0] == frames[0]
    assert deltas[1].provider_raw is None
    plain, _ = decode(CHAT, [body])
    assert [delta.payload for delta in plain] == [delta.payload for delta in deltas]


def test_one_of_several_choices_is_followed() -> None:
    body = b"".join(
        event({"choices": [{"index": n, "delta": {"content": text}}]})
        for n, text in ((0, "a"), (1, "x"), (0, "b"), (1, "y"))
    )
    for choice, text in ((0, "ab"), (1, "xy")):
        deltas, assembler = decode(CHAT, [body + DONE], choice=choice)
        assert assembler.text == text
        assert [warning["code"] for warning in deltas[-1].warnings] == ["other_choices"]


def test_failing_takes_every_evidence_of_the_transport() -> None:
    decoder = Decoder(CHAT, run_id="run", headers={"x-request-id": "q"})
    [_, error] = decoder.fail(
        ErrorCode.RATE_LIMITED,
        "slow",
        retryable=False,
        retry_after=2.0,
        status=429,
        provider_code="p",
    )
    assert (error.error_code, error.error_message) == (ErrorCode.RATE_LIMITED, "slow")
    assert (error.retryable, error.retry_after, error.status) == (False, 2.0, 429)
    assert (error.provider_code, error.http_request_id) == ("p", "q")
    assert decoder.finished
    with pytest.raises(ValueError, match="teapot"):
        Decoder(CHAT).fail("teapot", "x")


# Values that JSON can say and Python cannot hold as they are.


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("9007199254740993", 9007199254740993),
        (str(2**64), 2**64),
        ("9" * 5_000, "9" * 5_000),
        ("1e400", "1e400"),
        ("-1e400", "-1e400"),
        ("1e-400", 0.0),
        ("0.1", 0.1),
        ("-0", 0),
        (r'"\ud800"', "\ufffd"),
    ],
)
def test_values_of_a_provider_block_stay_what_can_be_written_again(raw: str, value: object) -> None:
    start = '{"type":"content_block_start","index":0,"content_block":{"type":"future","n":%s}}'
    opening = f"data: {start % raw}\n\n".encode()
    stop = anthropic("content_block_stop", index=0)
    deltas, assembler = decode(ANTHROPIC, [message_start() + opening + stop + message_end()])
    message = assembler.build_final_message()
    [part] = message.parts
    assert part.kind == "provider"
    assert part.block == {"type": "future", "n": value}
    assert type(message).from_json(message.to_json()).same_content(message)
    for delta in deltas:
        assert MessageDelta.from_json(delta.to_json()) == delta
        assert pickle.loads(pickle.dumps(delta)) == delta  # noqa: S301


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ((NOW + timedelta(seconds=90)).strftime("%a, %d %b %Y %H:%M:%S GMT"), 90.0)],
)
def test_retry_after_of_a_refused_request_is_seconds_or_a_date(value: str, seconds: float) -> None:
    decoder = Decoder(CHAT, status=429, headers={"Retry-After": value}, clock=now)
    decoder.feed(b'{"error":{"message":"slow down","code":"rate_limit_exceeded"}}')
    assert decoder.close()[-1].retry_after == seconds


def test_two_calls_at_one_index_without_ids_are_two_calls_even_when_the_first_takes_nothing() -> (
    None
):
    body = call_chunk("{}", name="f", index=0) + call_chunk('{"x":1}', name="g", index=0)
    _, assembler = decode(CHAT, [body + finish("tool_calls") + DONE])
    calls = [(call.tool_name, call.args_text) for call in assembler.tool_calls.values()]
    assert calls == [("f", "{}"), ("g", '{"x":1}')]
