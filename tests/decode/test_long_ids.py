"""Ids of any length: stored once per stream, shared by everything that repeats them."""

import tracemalloc

import pytest

from deltafold import Decoder, ErrorCode, Fold, Limits, MessageDelta
from protocol_bodies import CHAT, DONE, call_chunk, finish

LONG = "c" * (60 << 10)


def streamed(*ids: str, fragments: int) -> list[bytes]:
    """Write calls with these ids whose arguments come by turns, an event each."""
    events = [call_chunk('"', name="f", id=one, index=at) for at, one in enumerate(ids)]
    events += [call_chunk("1", index=n % len(ids)) for n in range(fragments)]
    return [*events, finish("tool_calls") + DONE]


@pytest.mark.parametrize("ids", [(LONG,), (LONG + "1", LONG + "2")])
def test_deltas_of_one_call_share_its_id(ids: tuple[str, ...]) -> None:
    decoder = Decoder(CHAT)
    found: dict[str, set[int]] = {one: set() for one in ids}
    kept: list[MessageDelta] = []
    for event in streamed(*ids, fragments=50):
        for delta in decoder.feed(event):
            if delta.kind == "tool_call_args":
                call_id = delta.tool_call_id
                assert call_id is not None
                assert delta.payload["toolCallId"] is call_id
                found[call_id].add(id(call_id))
                kept.append(delta)
    assert len(kept) == 50 + len(ids)
    assert {len(objects) for objects in found.values()} == {1}


def test_a_listed_batch_holds_a_long_id_once() -> None:
    body = b"".join(streamed(LONG, fragments=2_000))
    decoder = Decoder(CHAT)
    batch = decoder.feed(body)
    tracemalloc.start()
    deltas = list(batch)
    ids = [delta.tool_call_id for delta in deltas]
    payloads = [delta.payload for delta in deltas]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ids) == len(payloads) > 2_000
    # 2,000 copies of the id would be 120 MB.
    assert held < 4 << 20


def test_a_message_is_folded_by_calls_with_long_ids_by_turns() -> None:
    fold = Fold(CHAT)
    for event in streamed(LONG + "1", LONG + "2", fragments=100):
        fold.feed(event)
    fold.close()
    message = fold.snapshot()
    assert [call.tool_call_id for call in message.tool_calls] == [LONG + "1", LONG + "2"]
    assert [call.raw_args_text for call in message.tool_calls] == ['"' + "1" * 50] * 2


@pytest.mark.parametrize(
    "event",
    [
        call_chunk("{}", name="f", id="c" * 101, index=0),
        call_chunk("{}", name="f" * 101, id="c", index=0),
    ],
)
def test_an_identifier_over_its_limit_ends_the_stream(event: bytes) -> None:
    decoder = Decoder(CHAT, limits=Limits(identifier_bytes=100))
    last = decoder.feed(event + finish("stop") + DONE)[-1]
    assert last.error_code is ErrorCode.PROTOCOL_ERROR
    assert last.error_message == "limit reached: identifier_bytes (100)"
