"""Ours in its forms, and the hand-written baseline.

In: a dialect and feeds.  Out: a function that reads them all once and returns the text or the
arguments of the tool call, so that a bench can check that each reader did the whole job.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from deltafold import Decoder, Fold, Message, MessageAssembler, stream

if TYPE_CHECKING:
    from any_name import AnyName

Said: TypeAlias = str | dict[str, object]
Read: TypeAlias = Callable[[], Said]
MakeRead: TypeAlias = Callable[[str, Sequence[bytes]], Read]


def said_by(message: Message) -> Said:
    """Return the text of a message, or else the arguments of its tool call."""
    return message.text or message.tool_calls[0].arguments or {}


def all_of(message: Message) -> Said:
    """Read what every caller reads: text, usage, finish reason and the arguments of the calls."""
    said: Said = message.text
    for call in message.tool_calls:
        said = call.arguments or {}
    if message.meta.usage is None or message.meta.finish_reason is None:
        raise ValueError("the stream brought no usage or no finish reason")
    return said


def stream_deltas(dialect: "AnyName", chunks: Sequence[bytes]) -> Read:
    """The public path: each delta and its text, then the message."""

    def read() -> Said:
        with stream(iter(chunks), dialect) as deltas:
            for delta in deltas:
                _ = delta.text
            return all_of(deltas.final_message())

    return read


def stream_text(dialect: "AnyName", chunks: Sequence[bytes]) -> Read:
    """The public path: the text as it arrives, then the message."""

    def read() -> Said:
        with stream(iter(chunks), dialect) as deltas:
            for _ in deltas.text():
                pass
            return all_of(deltas.final_message())

    return read


def stream_message(dialect: "AnyName", chunks: Sequence[bytes]) -> Read:
    """The public path: the message."""

    def read() -> Said:
        with stream(iter(chunks), dialect) as deltas:
            return all_of(deltas.final_message())

    return read


def fold(dialect: "AnyName", chunks: Sequence[bytes]) -> Read:
    """Bytes to the final message: what replaces an assembler."""

    def read() -> Said:
        folding = Fold(dialect)
        for chunk in chunks:
            folding.feed(chunk)
        folding.close()
        return said_by(folding.message)

    return read


def fold_text(dialect: "AnyName", chunks: Sequence[bytes]) -> Read:
    """Bytes to the text, without a message."""

    def read() -> Said:
        folding = Fold(dialect)
        for chunk in chunks:
            folding.feed(chunk)
        folding.close()
        return folding.text

    return read


def batches(dialect: "AnyName", chunks: Sequence[bytes]) -> Read:
    """The deltas of each feed together, then the message."""

    def read() -> Said:
        decoder = Decoder(dialect)
        assembler = MessageAssembler()
        for chunk in chunks:
            assembler.consume(decoder.feed(chunk))
        assembler.consume(decoder.close())
        return said_by(assembler.build_final_message())

    return read


def deltas(dialect: "AnyName", chunks: Sequence[bytes]) -> Read:
    """Every delta as an object of its own, its text read."""

    def read() -> Said:
        decoder = Decoder(dialect)
        said: list[str] = []
        for chunk in chunks:
            for delta in decoder.feed(chunk):
                text = delta.text
                if text is not None:
                    said.append(text)
        decoder.close()
        return "".join(said)

    return read


def hand_written_message(
    loads: Callable[..., object], dialect: str, chunks: Iterable[bytes], *, as_str: bool
) -> dict[str, Any]:
    """Run the hand-written assembler and return its message; raises for an error in the stream."""
    # The baseline is untyped and stays as it was measured.
    module: Any = import_module("hand_written")
    assembler_class = module.OpenAIChat if dialect == "openai-chat" else module.Anthropic
    assembler = assembler_class(loads, as_str)
    for _ in assembler.run(chunks):
        pass
    message: dict[str, Any] = assembler.message
    return message


def _hand_written(loads: Callable[..., object], *, as_str: bool) -> MakeRead:
    def make(dialect: str, chunks: Sequence[bytes]) -> Read:
        def read_chat() -> Said:
            message = hand_written_message(loads, dialect, chunks, as_str=as_str)
            said: Said = message["text"] or message["tool_calls"][0]["input"]
            return said

        def read_anthropic() -> Said:
            message = hand_written_message(loads, dialect, chunks, as_str=as_str)
            block = message["content"][-1]
            said: Said = block["input"] if block["type"] == "tool_use" else block["text"]
            return said

        return read_chat if dialect == "openai-chat" else read_anthropic

    return make


FOLD: Final = "deltafold Fold"
FOLD_TEXT: Final = "deltafold Fold, text only"
BATCHES: Final = "deltafold batches"
DELTAS: Final = "deltafold deltas"
ORJSON: Final = "hand-written, orjson"

# The first reader is the one that the others are compared with.
OURS: Final[dict[str, MakeRead]] = {
    FOLD: fold,
    FOLD_TEXT: fold_text,
    BATCHES: batches,
    DELTAS: deltas,
}
STREAM_MESSAGE: Final = "stream(), final_message()"
STREAM_TEXT: Final = "stream(), text()"
STREAM_DELTAS: Final = "stream(), every delta"

PUBLIC: Final[dict[str, MakeRead]] = {
    STREAM_MESSAGE: stream_message,
    STREAM_TEXT: stream_text,
    STREAM_DELTAS: stream_deltas,
}
HAND_WRITTEN: Final[dict[str, MakeRead]] = {
    ORJSON: _hand_written(orjson.loads, as_str=False),
    "hand-written, json": _hand_written(json.loads, as_str=True),
}
