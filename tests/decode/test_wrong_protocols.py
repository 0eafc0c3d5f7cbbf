"""A body of one protocol that is read as another, and one whose protocol is not named at all.

Source: docs/protocols/decoding.md#g16.
"""

from typing import TYPE_CHECKING, Any, Final

import pytest

import deltafold
from any_name import AnyName
from deltafold import ErrorCode, Message, ModelError, UnknownDialectError
from deltafold._core import event_ends
from event_stream import event as framed
from protocol_bodies import CHAT, DONE, event, finish, message_start, said
from splits import everywhere, sized
from ten_protocols import BODIES, CALL, PIECES, TEXT, streams

if TYPE_CHECKING:
    from collections.abc import Callable

END: Final = finish("stop") + DONE
NAMES: Final = tuple(deltafold.dialect_names())
_OF_CHAT: Final = frozenset({CHAT, "mistral"})
_FRAMED: Final = "bedrock-invoke"

every_kind = pytest.mark.parametrize("kind", BODIES)


def reads(name: str, source: str, kind: str) -> bool:
    """Return whether the reader of a protocol reads a body of another one as its own."""
    if name == source or {name, source} <= _OF_CHAT:
        return True
    # Outside of its frames an answer is its model's own.
    own = (
        {CHAT, "mistral", "anthropic-messages", "bedrock-converse"} if "whole" in kind else _OF_CHAT
    )
    return name == _FRAMED and source in own


def assert_right(message: Message, kind: str) -> None:
    calls = [(call.tool_name, call.arguments) for call in message.runnable_tool_calls]
    assert (message.text, calls) == (TEXT, [CALL] if "call" in kind else [])


def assert_named(error: ModelError, source: str) -> None:
    assert error.code is ErrorCode.PROTOCOL_ERROR
    assert not error.retryable
    assert f"this is {source};" in error.message


@every_kind
@pytest.mark.parametrize("name", NAMES)
def test_a_body_of_another_protocol_is_its_answer_or_an_error_that_names_it(
    kind: str, name: AnyName
) -> None:
    for source, body in BODIES[kind]().items():
        if reads(name, source, kind):
            assert_right(deltafold.fold(body, name), kind)
            continue
        with pytest.raises(ModelError) as caught:
            deltafold.fold(body, name)
        assert_named(caught.value, source)


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_of_another_protocol_is_named_wherever_it_is_cut(name: AnyName) -> None:
    kind = "a stream with a call"
    for source, body in BODIES[kind]().items():
        if reads(name, source, kind):
            continue
        for end in event_ends(body, source):
            with pytest.raises(ModelError) as caught:
                deltafold.fold([body[:end], body[end : end + 1]], name)
            assert_named(caught.value, source)


@pytest.mark.parametrize("source", NAMES)
def test_what_is_said_does_not_depend_on_the_chunking(source: str) -> None:
    body = streams(calls=True)[source]
    told, _ = everywhere(None, body)
    assert told == everywhere(source, body)[0]
    other = NAMES[NAMES.index(source) - 1]
    everywhere(other, body)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bytes_", [b": comment\n\n", b'data: {"choi', b"event: message_start\n"])
def test_bytes_without_a_whole_event_are_a_cut(name: AnyName, bytes_: bytes) -> None:
    for dialect in (name, None):
        with pytest.raises(ModelError) as caught:
            deltafold.fold(bytes_, dialect)
        assert caught.value.code is ErrorCode.CONNECTION_LOST
        assert caught.value.retryable


BESIDE: Final = {
    "a ping": event({"type": "ping"}),
    "a named ping": event({"at": 1}, "ping"),
    "an empty object": event({}),
    "an object of a gateway": event({"gateway": "eu-1", "queue": 3}),
    "a new event": event({"type": "response.news"}),
}


@pytest.mark.parametrize("beside", BESIDE)
def test_an_event_of_a_gateway_decides_nothing(beside: str) -> None:
    first = BESIDE[beside]
    own = event({"id": "c", "object": "chat.completion.chunk", "choices": []})
    if beside != "a new event":
        with pytest.raises(ModelError) as cut:
            deltafold.fold(first + own, CHAT)
        assert cut.value.code is ErrorCode.CONNECTION_LOST
        assert deltafold.fold(first + said(TEXT) + END).text == TEXT
        with pytest.raises(ModelError) as caught:
            deltafold.fold(first + message_start(), CHAT)
        assert_named(caught.value, "anthropic-messages")
    assert deltafold.fold(first + said(TEXT) + END, CHAT).text == TEXT


@every_kind
def test_without_a_name_every_body_is_read(kind: str) -> None:
    for source, body in BODIES[kind]().items():
        assert_right(deltafold.fold(body), kind)
        assert deltafold.decode_response(body)[-1].kind == "done"
        fold, decoder = deltafold.Fold(), deltafold.Decoder()
        assert decoder.dialect == ""
        for piece in sized(body, 7):
            fold.feed(piece)
            decoder.feed(piece)
        fold.close()
        decoder.close()
        assert_right(fold.message, kind)
        assert decoder.dialect == source


def test_a_decoder_that_was_told_the_protocol_reads_on_at_once() -> None:
    decoder = deltafold.Decoder()
    assert not decoder.feed(said(PIECES[0])[:40])
    assert decoder.feed(said(PIECES[0])[40:]).text == PIECES[0]
    assert decoder.feed(said(PIECES[1])).text == PIECES[1]


SAID_ALIKE: Final = {
    "nothing": (b"", "the body is empty"),
    "a page": (b"<html>Bad gateway</html>", "the body is a page"),
    "a long page": (b"<html>" + b"x" * (1 << 17), "the body is a page"),
    "a compressed body": (b"\x1f\x8b\x08\x00rest", "compressed"),
    "an error that two send": (b'data: {"error":{"message":"Slow down"}}\n\n', "Slow down"),
}


@pytest.mark.parametrize(("body", "message"), SAID_ALIKE.values(), ids=SAID_ALIKE)
def test_what_every_protocol_reads_alike_needs_no_name(body: bytes, message: str) -> None:
    everywhere(None, body[:64])
    for pieces in (body, [body], sized(body, 4096)):
        with pytest.raises(ModelError, match=message):
            deltafold.fold(pieces)


def test_the_status_of_a_refusal_needs_no_name() -> None:
    with pytest.raises(ModelError) as caught:
        deltafold.fold(b"Too many requests", status=429)
    assert caught.value.code is ErrorCode.RATE_LIMITED


UNKNOWN: Final = {
    "no protocol": (event({"hello": 1}) * 2, "fits no dialect"),
    "two protocols": (framed("news", {"at": 1}) * 2, "bedrock-converse and bedrock-invoke"),
    "an error of two": (event({"error": "no"}), "ollama and openai-chat"),
    "more than is held": (b": still thinking\n\n" * (1 << 13), "fits no dialect"),
}


@pytest.mark.parametrize(("body", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_body_that_does_not_tell_its_protocol_is_an_error_of_the_caller(
    body: bytes, message: str
) -> None:
    ways: list[Callable[[], object]] = [
        lambda: deltafold.fold(body),
        lambda: deltafold.fold([body]),
        lambda: deltafold.fold(sized(body, 4096)),
        lambda: deltafold.fold(iter(sized(body, 4096))),
        lambda: deltafold.fold_many([said(TEXT) + END, body]),
        lambda: deltafold.fold_choices(body),
        lambda: deltafold.fold_choices(sized(body, 4096)),
        lambda: deltafold.decode_response(body),
        lambda: deltafold.transcode(body, None, "gemini"),
        lambda: deltafold.transcode_response(body, None, "gemini"),
        lambda: list(deltafold.transcode_chunks(sized(body, 4096), None, "gemini")),
    ]
    for way in ways:
        with pytest.raises(UnknownDialectError, match=message):
            way()


def test_a_decoder_that_was_told_nothing_takes_the_failure_of_the_transport() -> None:
    decoder = deltafold.Decoder()
    decoder.feed(b": comment\n\n")
    assert decoder.fail("connection_lost", "reset")[-1].error_code == ErrorCode.CONNECTION_LOST
    assert decoder.finished


def test_many_bodies_may_be_of_many_protocols_and_texts() -> None:
    bodies = streams(calls=False)
    texts: list[bytes | memoryview | str] = [
        bodies["gemini"].decode(),
        memoryview(bodies["ollama"]),
    ]
    folded = deltafold.fold_many([*bodies.values(), *texts], threads=2)
    assert [one.text for one in folded] == [TEXT] * len(folded)
    with pytest.raises(UnknownDialectError, match=r"bodies\[1\] fits no dialect"):
        deltafold.fold_many([bodies["gemini"], event({"hello": 1})])


def test_every_answer_is_read_without_a_name() -> None:
    two = b"".join(
        event({"id": "c", "choices": [{"index": index, "delta": {"content": text}}]})
        for index, text in enumerate(PIECES)
    )
    body = two + DONE
    pieces: list[Any] = [body, body.decode(), sized(body, 5), iter(sized(body, 5))]
    for given in pieces:
        folded = deltafold.fold_choices(given, ends_without_reason=True)
        assert {number: one.text for number, one in folded.items()} == dict(enumerate(PIECES))
    one = deltafold.fold_choices(sized(streams(calls=False)["ollama"], 9))
    assert {number: answer.text for number, answer in one.items()} == {0: TEXT}


def test_transcoding_needs_no_name() -> None:
    for source, body in streams(calls=True).items():
        written = deltafold.transcode(body, source, "openai-chat")
        transcoder = deltafold.Transcoder(None, "openai-chat")
        pieces = b"".join(transcoder.feed(piece) for piece in sized(body, 7)) + transcoder.close()
        whole = deltafold.transcode(body, None, "openai-chat")
        for found in (pieces, whole):
            assert deltafold.fold(found).parts == deltafold.fold(written).parts
        assert transcoder.decoder.dialect == source


def test_events_tell_their_protocol_by_the_first() -> None:
    events = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"delta": {"text": TEXT}}},
    ]
    end = {"messageStop": {"stopReason": "end_turn"}}
    assert deltafold.fold([*events, end]).text == TEXT
    decoder = deltafold.Decoder()
    decoder.feed(events[0])
    assert decoder.dialect == "bedrock-converse"
    with pytest.raises(UnknownDialectError, match="fits no dialect"):
        deltafold.Fold().feed({"hello": 1})
