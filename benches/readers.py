"""Who is measured: ours three ways, the hand-written baseline, and the SDKs in this process.

In: a dialect and feeds.  Out: a function that reads them all once and returns the text, so that a
bench can check that everybody did the whole job.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias

import anthropic
import httpx2
import openai
import orjson

from deltafold import Decoder, Fold, MessageAssembler

Read: TypeAlias = Callable[[], str]
MakeRead: TypeAlias = Callable[[str, Sequence[bytes]], Read]


def fold(dialect: str, chunks: Sequence[bytes]) -> Read:
    """Bytes to the final message: what replaces an assembler."""

    def read() -> str:
        folding = Fold(dialect)
        for chunk in chunks:
            folding.feed(chunk)
        folding.close()
        return folding.message.text

    return read


def batches(dialect: str, chunks: Sequence[bytes]) -> Read:
    """The deltas of each feed together, then the message."""

    def read() -> str:
        decoder = Decoder(dialect)
        assembler = MessageAssembler()
        for chunk in chunks:
            assembler.consume(decoder.feed(chunk))
        assembler.consume(decoder.close())
        return assembler.build_final_message().text

    return read


def deltas(dialect: str, chunks: Sequence[bytes]) -> Read:
    """Every delta as an object of its own, its text read."""

    def read() -> str:
        decoder = Decoder(dialect)
        said: list[str] = []
        for chunk in chunks:
            said.extend(delta.text for delta in decoder.feed(chunk) if delta.text is not None)
        decoder.close()
        return "".join(said)

    return read


def _hand_written(loads: Callable[..., object], *, as_str: bool) -> MakeRead:
    # The baseline is untyped and stays as it was measured.
    module: Any = import_module("hand_written")

    def make(dialect: str, chunks: Sequence[bytes]) -> Read:
        assembler_class = module.OpenAIChat if dialect == "openai-chat" else module.Anthropic

        def read() -> str:
            assembler = assembler_class(loads, as_str)
            for _ in assembler.run(chunks):
                pass
            message = assembler.message
            if dialect == "openai-chat":
                return str(message["text"])
            return "".join(block["text"] for block in message["content"])

        return read

    return make


class _Body(httpx2.SyncByteStream):
    """A response body that is there already."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


class _Transport(httpx2.BaseTransport):
    """Answers every request with the same chunks."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=_Body(self._chunks), request=request)


def _openai_client(chunks: Sequence[bytes]) -> openai.OpenAI:
    http_client = httpx2.Client(transport=_Transport(chunks))
    return openai.OpenAI(
        base_url="http://test/v1", api_key="unused", http_client=http_client, max_retries=0
    )


def _anthropic_client(chunks: Sequence[bytes]) -> anthropic.Anthropic:
    http_client = httpx2.Client(transport=_Transport(chunks))
    return anthropic.Anthropic(
        base_url="http://test", api_key="unused", http_client=http_client, max_retries=0
    )


def sdk_helper(dialect: str, chunks: Sequence[bytes]) -> Read:
    """The SDK's stream helper, to its final message."""
    if dialect == "openai-chat":
        chat = _openai_client(chunks).chat.completions

        def read_chat() -> str:
            with chat.stream(model="m", messages=[{"role": "user", "content": "?"}]) as stream:
                return stream.get_final_completion().choices[0].message.content or ""

        return read_chat
    messages = _anthropic_client(chunks).messages

    def read_anthropic() -> str:
        with messages.stream(
            model="m", max_tokens=10, messages=[{"role": "user", "content": "?"}]
        ) as stream:
            return stream.get_final_text()

    return read_anthropic


def sdk_create(dialect: str, chunks: Sequence[bytes]) -> Read:
    """The SDK's events one by one, their text joined."""
    if dialect == "openai-chat":
        chat = _openai_client(chunks).chat.completions

        def read_chat() -> str:
            stream = chat.create(
                model="m", messages=[{"role": "user", "content": "?"}], stream=True
            )
            return "".join(
                choice.delta.content or "" for chunk in stream for choice in chunk.choices
            )

        return read_chat
    messages = _anthropic_client(chunks).messages

    def read_anthropic() -> str:
        stream = messages.create(
            model="m", max_tokens=10, messages=[{"role": "user", "content": "?"}], stream=True
        )
        return "".join(
            event.delta.text
            for event in stream
            if event.type == "content_block_delta" and event.delta.type == "text_delta"
        )

    return read_anthropic


# The first reader is the one that the others are compared with.
READERS: Final[dict[str, MakeRead]] = {
    "deltafold Fold": fold,
    "deltafold batches": batches,
    "deltafold deltas": deltas,
    "hand-written, json": _hand_written(json.loads, as_str=True),
    "hand-written, orjson": _hand_written(orjson.loads, as_str=False),
    "SDK create, iterated": sdk_create,
    "SDK helper, final message": sdk_helper,
}
