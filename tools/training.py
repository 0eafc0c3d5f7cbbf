"""Program of streams that shows a release build which code is hot (profile-guided optimization).

In: the streams of `benches/bodies.py` and the wires of tests/fixtures/streams.  Out: nothing; the
instrumented extension writes its profile when the process ends.

Laws: the common protocols and the public path run most often, at the sizes that providers send.
Every fixture runs in a few ways, so that each dialect, error and repair was called. The program
imports only deltafold.

usage: tools/training.py    `maturin build --pgo` calls it (`pgo-command` in pyproject.toml)
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import deltafold
from deltafold import Decoder, Encoder, Fold, MessageAssembler, ModelError, Transcoder
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.timeouts import AsyncTimedChunks, Limits, watch

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benches"))
from bodies import (  # noqa: E402 - of another folder
    DIALECTS,
    arguments_feeds,
    feeds,
    large_feeds,
    logprob_body,
    logprob_feeds,
)
from other_bodies import SOURCES, TARGETS, source_body  # noqa: E402 - of another folder

if TYPE_CHECKING:
    from any_name import AnyName

ARGUMENTS: Final = b'{"path": "src/main.py", "lines": [1, 2, 3], "text": "a \\"b\\" c\\n"}' * 30
ROUNDS: Final = 6
SHORT_ROUNDS: Final = 300

# An event of SSE, a line of NDJSON, or 64 bytes of another framing.
EVENT: Final = re.compile(rb".*?(?:\r?\n){2}|.+?\n|.{1,64}", re.DOTALL)


def read_deltas(dialect: "AnyName", chunks: Sequence[bytes]) -> None:
    """Read each delta and its text, then the message."""
    with deltafold.stream(iter(chunks), dialect) as deltas:
        for delta in deltas:
            _ = delta.text
        read_message(deltas.final_message())


def read_text(dialect: "AnyName", chunks: Sequence[bytes]) -> None:
    """Read the text as it arrives, then the message."""
    with deltafold.stream(iter(chunks), dialect) as deltas:
        for _ in deltas.text():
            pass
        read_message(deltas.final_message())


class ReceivedHeaders:
    """Headers of httpx, as far as a stream looks at them."""

    raw: ClassVar = [(b"Content-Type", b"text/event-stream"), (b"X-Request-Id", b"r1")]


class Received:
    """A response of httpx from a connection, as far as a stream looks at it."""

    status_code = 200
    headers = ReceivedHeaders()

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks
        self.extensions = {"network_stream": self}

    def read(self, _bytes: int, timeout: float | None = None) -> bytes:
        """Refuse a read of the connection, which the chunks do not need."""
        raise RuntimeError(f"nothing is read within {timeout} s")

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the chunks of the body."""
        yield from self._chunks

    def close(self) -> None:
        """Do nothing: nothing is open."""


def read_response(dialect: "AnyName", chunks: Sequence[bytes]) -> None:
    """Read the message of an HTTP client's response."""
    with deltafold.stream(Received(chunks), dialect) as deltas:
        read_message(deltas.final_message())


async def read_asynchronously(dialect: "AnyName", chunks: Sequence[bytes]) -> None:
    """Read each delta from an asynchronous source."""

    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async with deltafold.astream(source(), dialect) as deltas:
        async for delta in deltas:
            _ = delta.text
        read_message(await deltas.final_message())


def read_message(message: Any) -> None:  # noqa: ANN401 - of either kind
    """Read what every caller reads, and the JSON."""
    _ = message.text, message.meta.usage, message.meta.finish_reason
    for call in message.tool_calls:
        _ = call.arguments
    message.to_json()


def fold(dialect: "AnyName", chunks: Sequence[bytes]) -> None:
    """Fold bytes to the message."""
    folding = Fold(dialect)
    for chunk in chunks:
        folding.feed(chunk)
    folding.close()
    read_message(folding.message)


def batches(dialect: "AnyName", chunks: Sequence[bytes]) -> None:
    """Decode to batches and assemble them, with the JSON of each delta."""
    decoder, assembler = Decoder(dialect), MessageAssembler()
    for chunk in chunks:
        batch = decoder.feed(chunk)
        assembler.consume(batch)
        for delta in batch:
            delta.to_json()
    assembler.consume(decoder.close())
    read_message(assembler.build_final_message())


def transcode(dialect: "AnyName", chunks: Sequence[bytes]) -> None:
    """Write the stream in other protocols."""
    for target in TARGETS:
        transcoding = Transcoder(dialect, target)
        for chunk in chunks:
            transcoding.feed(chunk)
        transcoding.close()


class Arriving:
    """A transport whose body is waited for before each chunk, as on a connection."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    def open(self, request: HttpRequest) -> Source:
        """Refuse a synchronous call, which the program never makes."""
        raise RuntimeError(f"{request.url}: the training calls Models asynchronously")

    async def open_async(self, request: HttpRequest) -> AsyncSource:
        """Return the body."""
        left = iter(self._chunks)

        async def read() -> bytes:
            await asyncio.sleep(0)
            return next(left, b"")

        async def close() -> None:
            pass

        timed = AsyncTimedChunks(read, Limits(request.timeouts), watch(), ends_empty=True)
        return AsyncSource(timed, close, 200, {"content-type": "text/event-stream"})


async def relay(dialect: str, chunks: Sequence[bytes], rounds: int) -> None:
    """Call a Model, as a gateway does: write each read in other protocols, or hand on its bytes."""
    make: Any = {
        "openai-chat": deltafold.OpenAIChatModel,
        "anthropic-messages": deltafold.AnthropicModel,
    }[dialect]
    model = make({"model_id": "m"}, client=Arriving(chunks), api_key="unused")
    for _ in range(rounds):
        for target in ("openai-chat", "anthropic-messages", "openai-responses"):
            encoder = Encoder(target)
            async with model.stream("What is this?") as stream:
                async for batch in stream.batches():
                    encoder.feed(batch)
            encoder.close()
        passed: list[bytes] = []
        async with model.stream("What is this?", tee=passed.append) as stream:
            read_message(await stream.final_message())


def every_way(dialect: "AnyName", chunks: Sequence[bytes], rounds: int) -> None:
    """Read a stream in every way, so many times."""
    for _ in range(rounds):
        for read in (read_deltas, read_text, read_response, fold, batches):
            read(dialect, chunks)
        asyncio.run(read_asynchronously(dialect, chunks))
        deltafold.fold(b"".join(chunks), dialect)


def common() -> None:
    """Run the streams that most callers read."""
    for dialect in DIALECTS:
        every_way(dialect, feeds(dialect, 2000, "1 event"), ROUNDS)
        every_way(dialect, feeds(dialect, 2000, "16 KiB"), ROUNDS)
        every_way(dialect, feeds(dialect, 20, "1 event"), SHORT_ROUNDS)
        every_way(dialect, arguments_feeds(dialect, ARGUMENTS, 8), ROUNDS)
        asyncio.run(relay(dialect, feeds(dialect, 2000, "1 event"), ROUNDS))
        asyncio.run(relay(dialect, feeds(dialect, 20, "1 event"), SHORT_ROUNDS))
    every_way("openai-chat", logprob_feeds(500, 5), ROUNDS)
    for alternatives in (0, 5):
        for _ in range(SHORT_ROUNDS // 10):
            read_message(deltafold.fold(logprob_body(500, alternatives), "openai-chat"))
    for source in SOURCES:
        dialect, pieces = source.partition(",")[0], large_feeds([source_body(source, 2000)])
        every_way(dialect, pieces, 1)
        for _ in range(2):
            transcode(dialect, pieces)


def rare() -> None:
    """Run every fixture; a failure that the fixture is about ends its stream."""
    for wire in sorted((ROOT / "tests" / "fixtures" / "streams").glob("*/*/wire.*")):
        chunks = EVENT.findall(wire.read_bytes())
        for run in (read_deltas, batches, fold, transcode):
            try:
                run(wire.parent.parent.name, chunks)
            except ModelError:
                continue


if __name__ == "__main__":
    common()
    rare()
