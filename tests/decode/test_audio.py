"""Audio arrives in pieces: each is a delta, a part has all of it, and none is written twice."""

import json
from typing import Final

import pytest

import deltafold
from any_name import AnyName
from corpus import FIXTURES
from deltafold import Decoder, DeltaKind, Message, MessageAssembler, ProviderPart, Transcoder

BODIES: Final = {
    dialect: (FIXTURES / dialect / "audio" / "wire.sse").read_bytes()
    for dialect in ("openai-chat", "openai-responses")
}


def whole_audio(message: Message) -> list[object]:
    return [part.block["data"] for part in message.parts if isinstance(part, ProviderPart)]


def events(body: bytes) -> list[bytes]:
    return [event + b"\n\n" for event in body.split(b"\n\n") if event]


@pytest.mark.parametrize("dialect", BODIES)
def test_each_piece_is_a_delta_of_its_event(dialect: AnyName) -> None:
    body = BODIES[dialect]
    decoder = Decoder(dialect)
    pieces: list[str] = []
    for event in events(body):
        heard = [delta.audio for delta in decoder.feed(event) if delta.kind is DeltaKind.AUDIO]
        sent = event.count(b'"data":"') + event.count(b'"type":"response.audio.delta"')
        assert len(heard) == sent
        pieces += [piece for piece in heard if piece]
    assert len(pieces) > 1
    assert whole_audio(deltafold.fold(body, dialect)) == ["".join(pieces)]


@pytest.mark.parametrize("dialect", BODIES)
def test_a_message_without_the_pieces_is_the_same(dialect: AnyName) -> None:
    decoder = Decoder(dialect)
    deltas = [*decoder.feed(BODIES[dialect]), *decoder.close()]
    assembler = MessageAssembler()
    for delta in deltas:
        if delta.kind is not DeltaKind.AUDIO:
            assembler.consume(delta)
    assert assembler.build_final_message().parts == deltafold.fold(BODIES[dialect], dialect).parts


@pytest.mark.parametrize("source", BODIES)
@pytest.mark.parametrize("target", BODIES)
@pytest.mark.parametrize("size", [1, 40, 100_000])
def test_a_writer_sends_each_piece_once_and_at_once(
    source: AnyName, target: AnyName, size: int
) -> None:
    body = BODIES[source]
    transcoder = Transcoder(source, target)
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    written = [transcoder.feed(chunk) for chunk in chunks] + [transcoder.close()]
    before_the_end = b"".join(written[:-2]) if size < 100 else b"".join(written)
    assert before_the_end.count(b'"data":"') + before_the_end.count(b'audio.delta","seq') > 1
    folded = deltafold.fold(b"".join(written), target)
    assert whole_audio(folded) == whole_audio(deltafold.fold(body, source))
    assert folded.text == deltafold.fold(body, source).text
    assert [note for note in transcoder.notes if note["code"] == "part"] == []


@pytest.mark.parametrize("source", BODIES)
def test_a_whole_body_of_chat_has_the_audio_once(source: AnyName) -> None:
    message = deltafold.fold(BODIES[source], source)
    body = deltafold.encode_message(message, "openai-chat").json
    text = json.dumps(body)
    assert text.count('"data":') == 1
    assert whole_audio(deltafold.fold(text.encode(), "openai-chat")) == whole_audio(message)


def test_a_target_without_audio_names_the_loss_once() -> None:
    body = BODIES["openai-chat"]
    transcoder = Transcoder("openai-chat", "anthropic-messages")
    written = transcoder.feed(body) + transcoder.close()
    assert deltafold.fold(written, "anthropic-messages").text == "Hello"
    lost = [note for note in transcoder.notes if note["code"] == "part"]
    assert lost == [{"code": "part", "what": "a part of openai-chat", "count": 1}]


def test_each_piece_is_an_event() -> None:
    with deltafold.stream([BODIES["openai-chat"]], "openai-chat") as stream:
        kinds = [(str(event.kind), event.delta.audio) for event in stream.events()]
    heard = [audio for kind, audio in kinds if kind == "audio"]
    assert heard == ["AAEC", "AwQF"]
    assert [kind for kind, audio in kinds if audio] == ["audio", "audio"]
