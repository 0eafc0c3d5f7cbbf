"""`provider_raw`: the JSON of each frame that brought a delta, on the first delta of the frame."""

import pytest

import event_stream as aws
from any_name import AnyName
from deltafold import Decoder, MessageDelta
from fuzz_inputs import Seed, seeds
from protocol_bodies import CHAT, DONE, chunk, event, finish, said

SEEDS = [seed for seed in seeds() if b"data:" in seed.wire or seed.wire[:1] == b"\x00"]


def frames_of(wire: bytes) -> list[bytes]:
    """Cut a body after every event or binary frame."""
    if wire[:1] != b"\x00":
        pieces = wire.replace(b"\r\n", b"\n").split(b"\n\n")
        return [piece + b"\n\n" for piece in pieces if piece]
    frames: list[bytes] = []
    while len(wire) >= 16:
        size = max(int.from_bytes(wire[:4], "big"), 16)
        frames.append(wire[:size])
        wire = wire[size:]
    return frames


@pytest.mark.parametrize("seed", SEEDS, ids=[seed.name for seed in SEEDS])
def test_every_frame_that_brought_a_delta_is_kept(seed: Seed) -> None:
    decoder = Decoder(seed.dialect, provider_raw=True)
    for frame in frames_of(seed.wire):
        deltas = list(decoder.feed(frame))
        shown = [delta.provider_raw for delta in deltas if delta.provider_raw is not None]
        corrupt = bool(deltas) and deltas[-1].error_code == "protocol_error"
        if deltas and b"{" in frame and not corrupt:
            assert shown, (frame, deltas)


def raw_of(deltas: list[MessageDelta], kind: str) -> object:
    return next(delta.provider_raw for delta in deltas if delta.kind == kind)


def decoded(dialect: AnyName, body: bytes, status: int = 200) -> list[MessageDelta]:
    decoder = Decoder(dialect, provider_raw=True, status=status)
    return [*decoder.feed(body), *decoder.close()]


def test_the_terminal_has_the_frame_that_said_how_the_stream_ends() -> None:
    done = raw_of(decoded(CHAT, said("a") + finish("stop") + DONE), "done")
    assert done == {
        "id": "chatcmpl-1",
        "model": "m",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    }
    error = {"message": "busy"}
    body = said("a") + chunk({"content": ""}, "error", error=error) + DONE
    found = raw_of(decoded(CHAT, body), "error")
    assert isinstance(found, dict)
    assert found["error"] == error


def test_a_refusing_body_and_an_exception_frame_are_kept() -> None:
    refusal = {"error": {"message": "no"}}
    assert raw_of(decoded(CHAT, event(refusal)[6:], status=400), "start") == refusal
    body = aws.exception("throttlingException", {"message": "slow"})
    assert raw_of(decoded("bedrock-converse", body), "start") == {"message": "slow"}
