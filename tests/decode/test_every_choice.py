"""Every answer of one response: each is what a decoder of it alone gives, in any chunking."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

import deltafold
from any_name import AnyName
from choice_chunks import called, chat, finished, said
from corpus import FIXTURES
from deltafold import ChoicesDecoder, Decoder, ErrorCode, Limits, MessageAssembler, MisuseError
from event_stream import chunk as bedrock_chunk
from protocol_bodies import CHAT, DONE
from splits import now

if TYPE_CHECKING:
    from deltafold.streams.options import ChoicesOptions


def gemini(count: int) -> bytes:
    def candidate(choice: int, text: str, rest: str = "") -> bytes:
        content = f'{{"parts":[{{"text":"{text}"}}],"role":"model"}}'
        body = f'{{"candidates":[{{"content":{content},"index":{choice}{rest}}}]}}'
        return f"data: {body}\r\n\r\n".encode()

    text = b"".join(
        candidate(choice, f" {choice}w{word}") for word in range(5) for choice in range(count)
    )
    ends = b"".join(candidate(choice, ".", ',"finishReason":"STOP"') for choice in range(count))
    return text + ends


WHOLE_CHAT = (
    b'{"id":"c","object":"chat.completion","model":"m","choices":['
    b'{"index":0,"message":{"content":"one"},"finish_reason":"stop"},'
    b'{"index":1,"message":{"content":"two"},"finish_reason":"length"},'
    b'{"index":2,"message":{"content":"three"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":6,"total_tokens":7}}'
)

BODIES: Final[dict[str, tuple[AnyName, bytes, int]]] = {
    "chat of 2": (CHAT, chat(2), 2),
    "chat of 8": (CHAT, chat(8), 8),
    "mistral of 8": ("mistral", chat(8), 8),
    "gemini of 2": ("gemini", gemini(2), 2),
    "gemini of 8": ("gemini", gemini(8), 8),
    "whole chat": (CHAT, WHOLE_CHAT, 3),
}


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


def decoded(decoder: ChoicesDecoder, chunks: Iterator[bytes]) -> dict[int, list[dict[str, object]]]:
    found: dict[int, list[dict[str, object]]] = {}
    batches = [*map(decoder.feed, chunks), decoder.close()]
    for answers in batches:
        for choice, batch in answers.items():
            assert len(batch)
            found.setdefault(choice, []).extend(delta.to_dict() for delta in batch)
    assert decoder.finished
    assert decoder.choices == tuple(sorted(found))
    return found


def without_others(deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the deltas of an answer that is followed alone without the warning of the others."""
    (warning,) = deltas[-1]["payload"].pop("warnings")
    assert warning["code"] == "other_choices"
    return deltas


@pytest.mark.parametrize("name", BODIES)
def test_each_choice_is_that_of_a_decoder_of_it_alone(name: str) -> None:
    dialect, body, count = BODIES[name]
    for size in (*range(1, 18), len(body)):
        decoder = Decoder(dialect, choice="all", run_id="run", clock=now)
        found = decoded(decoder, pieces(body, size))
        assert sorted(found) == list(range(count))
        for choice, deltas in found.items():
            alone = deltafold.decode_response(body, dialect, choice=choice, run_id="run", clock=now)
            assert deltas == without_others([delta.to_dict() for delta in alone])


def same(one: MessageAssembler, choice: int, body: bytes, dialect: AnyName) -> None:
    """Compare the message of a choice with that of a fold of it alone."""
    alone = deltafold.fold(body, dialect, choice=choice, run_id="run", clock=now)
    message = one.build_final_message()
    assert alone.meta.warnings
    assert not message.meta.warnings
    alone.meta.warnings = message.meta.warnings
    assert (message.parts, message.meta) == (alone.parts, alone.meta)
    assert (message.timestamp, one.run_id) == (alone.timestamp, "run")


@pytest.mark.parametrize("name", BODIES)
def test_each_message_is_that_of_a_fold_of_it_alone(name: str) -> None:
    dialect, body, count = BODIES[name]

    async def chunks(size: int) -> AsyncIterator[bytes]:
        for piece in pieces(body, size):
            yield piece

    options: ChoicesOptions = {"run_id": "run", "clock": now}
    for size in (1, 7, 17, 1000):
        for folded in (
            deltafold.fold_choices(pieces(body, size), dialect, **options),
            asyncio.run(deltafold.afold_choices(chunks(size), dialect, **options)),
        ):
            assert list(folded) == list(range(count))
            for choice, one in folded.items():
                same(one, choice, body, dialect)
    kinds: list[bytes | bytearray | memoryview[int]] = [body, bytearray(body), memoryview(body)]
    for whole in kinds:
        folded = deltafold.fold_choices(whole, dialect, **options)
        assert list(folded) == list(range(count))
        for choice, one in folded.items():
            same(one, choice, body, dialect)
        again = asyncio.run(deltafold.afold_choices(whole, dialect, **options))
        assert [one.text for one in again.values()] == [one.text for one in folded.values()]


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        ("bedrock-invoke/titan-two-answers", ["abc", "xy"]),
        ("bedrock-invoke/whole-body-results", ["one", "two"]),
        ("gemini/candidates-without-index", ["one", "two"]),
        ("openai-chat/choices-without-index", ["ab", "xy"]),
        ("openai-chat/whole-body-two-choices", ["one", "two"]),
        ("anthropic-messages/cache-usage", None),
        ("openai-responses/after-the-end", None),
    ],
)
def test_recorded_bodies(case: str, texts: list[str] | None) -> None:
    (wire,) = (FIXTURES / case).glob("wire.*")
    dialect = cast("Any", case.partition("/")[0])
    folded = deltafold.fold_choices(wire.read_bytes(), dialect)
    assert list(folded) == ([0] if texts is None else [0, 1])
    if texts is not None:
        assert [one.text for one in folded.values()] == texts
    assert len({one.run_id for one in folded.values()}) == 1


def test_calls_without_an_id_get_one_that_no_other_choice_has() -> None:
    folded = deltafold.fold_choices(b"".join(map(called, range(8))) + DONE, CHAT, run_id="run")
    ids = [call for one in folded.values() for call in one.tool_calls]
    assert len(set(ids)) == len(ids) == 8


def test_an_error_ends_every_choice() -> None:
    error = b'data: {"error":{"message":"overloaded","code":503}}\n\n'
    begun = said(0, "a") + said(1, "b")
    for folded in (
        deltafold.fold_choices(begun + error, CHAT),
        deltafold.fold_choices(iter([begun, error, said(0, "never")]), CHAT),
    ):
        assert {choice: one.text for choice, one in folded.items()} == {0: "a", 1: "b"}
        for one in folded.values():
            assert one.status == "error"
            with pytest.raises(deltafold.ModelError, match="overloaded") as raised:
                one.build_final_message()
            assert raised.value.partial_message is not None


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"error":{"message":"no"}}', b"data: [DONE]\n\n"]
)
def test_a_body_without_a_choice_has_choice_0_alone(body: bytes) -> None:
    folded = deltafold.fold_choices(body, CHAT)
    assert list(folded) == [0]
    alone = deltafold.decode_response(body, CHAT)
    assert folded[0].status == ("error" if alone[-1].kind == "error" else "done")


def test_a_failure_of_the_transport_ends_every_choice() -> None:
    def broken() -> Iterator[bytes]:
        yield said(0, "a") + said(1, "b") + finished(1, "stop")
        raise ConnectionResetError("reset by peer")

    async def broken_later() -> AsyncIterator[bytes]:
        for piece in broken():
            yield piece

    for folded in (
        deltafold.fold_choices(broken(), CHAT, clock=now),
        asyncio.run(deltafold.afold_choices(broken_later(), CHAT)),
    ):
        assert [one.status for one in folded.values()] == ["error", "done"]
        error = folded[0].error
        assert error is not None
        assert error.code is ErrorCode.CONNECTION_LOST


def test_a_mistake_of_the_caller_is_raised() -> None:
    with pytest.raises(TypeError):
        deltafold.fold_choices(cast("Any", ["text"]), CHAT)
    with pytest.raises(TypeError):
        deltafold.fold_choices(cast("Any", 5), CHAT)

    def mistaken() -> Iterator[bytes]:
        yield said(0, "a")
        raise TypeError("mine")

    async def mistaken_later() -> AsyncIterator[bytes]:
        for piece in mistaken():
            yield piece

    with pytest.raises(TypeError, match="mine"):
        deltafold.fold_choices(mistaken(), CHAT)
    with pytest.raises(TypeError, match="mine"):
        asyncio.run(deltafold.afold_choices(mistaken_later(), CHAT))


def test_a_limit_bounds_the_number_of_choices() -> None:
    body = b"".join(said(choice, "x") for choice in range(5))
    folded = deltafold.fold_choices(body, CHAT, limits=Limits(choices=3))
    assert list(folded) == [0, 1, 2]
    for one in folded.values():
        error = one.error
        assert error is not None
        assert error.message == "limit reached: choices (3)"
    assert Limits().choices == 1024


def test_the_decoder_of_every_choice_is_another_class() -> None:
    decoder = Decoder(cast("Any", CHAT + "+qwen-xml"), choice="all", run_id="run")
    assert isinstance(decoder, ChoicesDecoder)
    assert (decoder.dialect, decoder.markup, decoder.run_id) == (CHAT, "qwen-xml", "run")
    assert repr(decoder) == "<ChoicesDecoder of openai-chat+qwen-xml, run run>"
    assert repr(ChoicesDecoder(CHAT, run_id="r")) == "<ChoicesDecoder of openai-chat, run r>"
    assert not decoder.finished
    assert decoder.choices == ()
    with pytest.raises(TypeError, match="choice"):
        ChoicesDecoder(CHAT, **cast("Any", {"choice": 1}))
    with pytest.raises(ValueError, match='a number, "all" or "joined", not \'some\''):
        Decoder(CHAT, choice=cast("Any", "some"))
    with pytest.raises(deltafold.UnknownDialectError):
        Decoder(cast("Any", "nonsense"), choice="all")
    with pytest.raises(TypeError):
        pickle.dumps(decoder)


def test_what_reads_one_message_says_what_to_do_for_all() -> None:
    everything = cast("Any", {"choice": "all"})
    with pytest.raises(ValueError, match="fold_choices"):
        deltafold.Fold(CHAT, **everything)
    with pytest.raises(ValueError, match="fold_choices"):
        deltafold.stream([b""], CHAT, **everything)
    with pytest.raises(TypeError, match="fold_choices"):
        Decoder(CHAT, choice="all").feed_into(MessageAssembler(), b"")


def test_the_body_ends_once() -> None:
    decoder = Decoder(CHAT, choice="all")
    assert decoder.feed(b"") == {}
    decoder.feed(said(0, "a") + said(1, "b"))
    batches = decoder.fail(ErrorCode.CANCELLED, "stopped", status=499)
    assert {choice: batch[-1].error_code for choice, batch in batches.items()} == {
        0: "cancelled",
        1: "cancelled",
    }
    assert decoder.finished
    assert decoder.close() == decoder.close() == {}
    with pytest.raises(MisuseError, match="after close"):
        decoder.feed(b"")
    with pytest.raises(ValueError, match="unknown error code"):
        decoder.fail("nonsense", "")


def test_a_refusal_has_one_choice() -> None:
    decoder = Decoder(CHAT, choice="all")
    decoder.set_response(429, {"retry-after": "7"})
    decoder.feed(b'{"error":{"message":"slow down"}}')
    with pytest.raises(MisuseError, match="set_response"):
        decoder.set_response(200, {})
    ((choice, batch),) = decoder.close().items()
    assert (choice, batch[-1].error_code, batch[-1].payload["retryAfter"]) == (0, "rate_limited", 7)


def test_frames_of_bedrock_hold_every_choice() -> None:
    body = b"".join(
        bedrock_chunk({"outputText": text, "index": choice})
        for choice, text in [(0, "a"), (1, "x"), (0, "b"), (1, "y")]
    )
    folded = deltafold.fold_choices(body, "bedrock-invoke")
    assert [one.text for one in folded.values()] == ["ab", "xy"]


def test_a_big_feed_is_decoded_in_slices() -> None:
    body = said(0, "x" * 1000) * 1500 + said(1, "y" * 1000) * 1500 + DONE
    decoder = Decoder(CHAT, choice="all")
    batches = decoder.feed(body)
    assert {choice: len(batch.text) for choice, batch in batches.items()} == {
        0: 1_500_000,
        1: 1_500_000,
    }
