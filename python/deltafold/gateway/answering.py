"""Answers: a request of a client becomes a call of a Model, and its stream the client's answer.

In: `Asked` and an upstream.  Out: a response of Starlette.

Laws: the status of a failure before all content is that of the failure. When the client goes away,
the call of the upstream ends. A slow client holds back the upstream, because nothing is read before
the last bytes were sent. A cut upstream never ends in the client's success.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias, cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from deltafold._core import DeltaBatch, Encoder
from deltafold.dialects import migrate_config
from deltafold.encoding import EncodedBody, encode_error, encode_message
from deltafold.errors import ModelError
from deltafold.gateway.asking import Asked, refusal
from deltafold.gateway.table import Upstream
from deltafold.messages import Message
from deltafold.pauses import with_pauses
from deltafold.streams import AsyncDeltaStream

OnMessage: TypeAlias = Callable[[Asked, Message, ModelError | None], Awaitable[None]]
"""Is told the message of each call, whole or partial, and the error that ended it."""


def open_stream(asked: Asked, upstream: Upstream) -> AsyncDeltaStream:
    """Begin the call of the upstream; nothing is sent before the stream is read.

    Settings of the request are translated to the upstream's protocol; those that it does not have
    are warnings of the message. A history that the upstream would refuse is repaired.

    >>> table = ModelTable({"m": "openai/gpt-5"}, api_key="k")
    >>> asked = read_request("openai-chat", b'{"model":"m","messages":[]}')
    >>> stream = open_stream(asked, table.find(asked.model_id))

    Raises:
        ModelError: the request cannot be translated; its status is 400.
    """
    model, model_id = upstream
    try:
        migrated = migrate_config(asked.parsed, model.dialect, model_id=model_id)
        settings: dict[str, Any] = migrated.config.fields_set()
        stream: AsyncDeltaStream = model.stream(
            asked.messages, asked.parsed.tools or None, repair="auto", **settings
        )
    except ValueError as error:
        raise refusal(str(error)) from error
    return stream


async def respond(
    asked: Asked,
    upstream: Upstream,
    *,
    request: Request | None = None,
    keep_alive: float | None = 15.0,
    on_message: OnMessage | None = None,
) -> Response:
    """Call the upstream, and return the answer in the client's protocol.

    >>> from deltafold.gateway import respond
    >>> table = ModelTable({"m": "openai/gpt-5"}, api_key="k")
    >>> asked = read_request("openai-chat", b'{"model":"m","messages":[]}')
    >>> response = await respond(asked, table.find(asked.model_id))
    >>> await table.aclose()

    Args:
        asked: the request.
        upstream: the Model, and the name of the model.
        request: the client's request; an answer that is not streamed ends when its client leaves.
        keep_alive: seconds of silence after which a streaming client is told that the connection
            lives. The first one decides the status for 200. None sends none.
        on_message: is told the message when the call has ended.

    Raises:
        ModelError: the request cannot be translated; `error_response` makes the answer of it.
    """
    stream = open_stream(asked, upstream)
    if asked.streams:
        return await _streamed(_Answer(asked, stream, keep_alive, on_message))
    return await _whole(asked, stream, request, on_message)


def error_response(error: ModelError, target: str) -> Response:
    """Return a failure as the HTTP error of a client's protocol.

    >>> error_response(refusal("the body is empty"), "openai-chat").status_code
    400
    """
    return _response(encode_error(error, target))


def _response(body: EncodedBody) -> Response:
    return Response(body.body, body.status, dict(body.headers))


class _Answer:
    """A streamed answer while it is written."""

    def __init__(
        self,
        asked: Asked,
        stream: AsyncDeltaStream,
        keep_alive: float | None,
        on_message: OnMessage | None,
    ) -> None:
        self.encoder = Encoder(asked.target, **asked.options)
        self._asked = asked
        self._stream = stream
        self._keep_alive = keep_alive
        self._on_message = on_message

    async def bytes(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the answer; the first ones decide its status."""
        encoder, stream = self.encoder, self._stream
        batches = self._batches()
        try:
            async for batch in batches:
                if batch is not None:
                    data = encoder.feed(batch)
                else:
                    data = b"" if encoder.finished else encoder.keep_alive()
                if data:
                    yield data
            if data := encoder.close():
                yield data
            if self._on_message is not None:
                await self._on_message(self._asked, stream.snapshot(), stream.error)
        finally:
            # A read that waits during a pause ends first: two cannot read one stream.
            await batches.aclose()
            await stream.aclose()

    async def _batches(self) -> "AsyncGenerator[DeltaBatch | None]":
        """Yield the deltas of each read, and None after each pause."""
        batches = self._stream.batches()
        if self._keep_alive is None:
            async for batch in batches:
                yield batch
            return
        async with aclosing(with_pauses(batches, self._keep_alive)) as timed:
            async for item in timed:
                yield item


async def _streamed(answer: _Answer) -> Response:
    chunks = answer.bytes()
    first = await anext(chunks, b"")
    status = answer.encoder.status or 200
    headers = answer.encoder.headers or {}

    async def all_chunks() -> AsyncIterator[bytes]:
        try:
            yield first
            async for chunk in chunks:
                yield chunk
        finally:
            # Starlette cancels here when the client goes away.
            await cast("Any", chunks).aclose()

    return StreamingResponse(all_chunks(), status, headers)


async def _whole(
    asked: Asked,
    stream: AsyncDeltaStream,
    request: Request | None,
    on_message: OnMessage | None,
) -> Response:
    error = None
    async with stream:
        reading = asyncio.ensure_future(stream.final_message())
        leaving = None if request is None else asyncio.ensure_future(_left(request))
        try:
            waited: set[asyncio.Future[Any]] = {reading, *([leaving] if leaving else [])}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                return Response(status_code=499)  # nobody reads it
            message = reading.result()
        except ModelError as failure:
            error = failure
            message = failure.partial_message or Message.assistant()
        finally:
            for task in (reading, leaving):
                if task is not None and not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, ModelError):
                        await task
    if on_message is not None:
        await on_message(asked, message, error)
    if error is not None:
        return error_response(error, asked.protocol)
    return _response(encode_message(message, asked.protocol, **asked.options))


async def _left(request: Request) -> None:
    """Wait until the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
