"""Readers that turn one provider's stream into another's: ours, the hand-written one, a peer's.

In: the dialects and feeds.  Out: a function that reads them all once and returns its output.

linguafranca reads and writes events as dicts; orjson and the framing around it are what its caller
writes.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from deltafold import Fold, Transcoder

if TYPE_CHECKING:
    from any_name import AnyName

Write: TypeAlias = Callable[[], bytes]

TRANSCODER: Final = "deltafold Transcoder"
HAND_WRITTEN: Final = "hand-written, orjson"
LINGUAFRANCA: Final = "orjson, linguafranca"
FIRST_PAIR: Final = "openai-chat to anthropic-messages"


def transcoder(source: "AnyName", target: "AnyName", chunks: Sequence[bytes]) -> Write:
    """Bytes to bytes, with what each feed gives."""
    source = source.partition(",")[0]

    def write() -> bytes:
        transcoding = Transcoder(source, target)
        written = [transcoding.feed(chunk) for chunk in chunks]
        written.append(transcoding.close())
        return b"".join(written)

    return write


def folded(chunks: Sequence[bytes]) -> Write:
    """Bytes of Chat to the message: what a transcoding is compared with."""

    def write() -> bytes:
        folding = Fold("openai-chat")
        for chunk in chunks:
            folding.feed(chunk)
        folding.close()
        return folding.message.text.encode()

    return write


def hand_written(chunks: Sequence[bytes]) -> Write:
    """Chat to Messages by the fixed baseline."""
    # The baseline is untyped and stays as it was measured.
    module: Any = import_module("hand_written_transcode")

    def write() -> bytes:
        return b"".join(module.ChatToMessages(orjson.loads, orjson.dumps).run(chunks))

    return write


def linguafranca(chunks: Sequence[bytes]) -> Write:
    """Chat to Messages by linguafranca."""
    module: Any = import_module("linguafranca")
    names = module.FormatName

    def events() -> Iterator[object]:
        rest = b""
        for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    yield orjson.loads(line[6:])

    def write() -> bytes:
        found = module.convert_response_stream_json(
            events(),
            source_format=names.OPENAI_CHAT_COMPLETIONS,
            target_format=names.ANTHROPIC_MESSAGES,
        )
        return b"".join(
            b"event: " + event["type"].encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n"
            for event in found
        )

    return write
