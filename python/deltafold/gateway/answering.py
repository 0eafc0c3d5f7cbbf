"""Answers: a request of a client becomes a call of a Model, and its stream the client's answer.

In: `Asked` and an upstream.  Out: a response of Starlette.

Laws: the status of a failure before all content is that of the failure. When the client goes away,
the call of the upstream ends. A slow client holds back the upstream, because nothing is read before
the last bytes were sent. A cut upstream never ends in the client's success.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from deltafold._core import Encoder
from deltafold.dialects import migrate_config
from deltafold.encoding import EncodedBody, encode_error, encode_message
from deltafold.errors import ModelError
from deltafold.gateway.asking import Asked, refusal
from deltafold.gateway.table import Upstream
from deltafold.messages import Message
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
        return _StreamedResponse(asked, stream, keep_alive, on_message)
    return await _whole(asked, stream, request, on_message)


def error_response(error: ModelError, target: str) -> Response:
    """Return a failure as the HTTP error of a client's protocol.

    >>> error_response(refusal("the body is empty"), "openai-chat").status_code
    400
    """
    return _response(encode_error(error, target))


def _response(body: EncodedBody) -> Response:
    return Response(body.body, body.status, dict(body.headers))


class _StreamedResponse(Response):
    """A streamed answer: an ASGI response that reads the upstream when it is called.

    Law: between two reads it costs one call of the encoder and one of `send`: no task, no timer
    that is set anew, and no generator an event.
    """

    def __init__(
        self,
        asked: Asked,
        stream: AsyncDeltaStream,
        keep_alive: float | None,
        on_message: OnMessage | None,
    ) -> None:
        self.background = None
        self._encoder = Encoder(asked.target, **asked.options)
        self._asked = asked
        self._stream = stream
        self._keep_alive = keep_alive
        self._on_message = on_message
        self._begun = self._told = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write the answer; the first bytes decide its status."""
        del scope
        self._send = send
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        leaving = loop.create_task(self._watch(receive))
        self._pulse = _Pulse(loop, self._keep_alive, self._beat)
        try:
            await self._write()
        except asyncio.CancelledError:
            if self._task is None or not leaving.done() or self._task.uncancel():
                raise
        finally:
            self._pulse.stop()
            leaving.cancel()
            await self._stream.aclose()

    async def _write(self) -> None:
        encoder, pulse = self._encoder, self._pulse
        feed = encoder.feed
        async for batch in self._stream.batches():
            if data := feed(batch):
                if encoder.finished:
                    await self._tell()
                if pulse.beating is not None:
                    await pulse.beating
                if not self._begun:
                    await self._begin()
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
                pulse.seen()
        pulse.stop()
        if pulse.beating is not None:
            await pulse.beating
        data = encoder.close()
        await self._tell()
        if not self._begun:
            await self._begin()
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def _begin(self) -> None:
        self._begun = True
        headers = self._encoder.headers or {}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        status = self._encoder.status or 200
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _tell(self) -> None:
        """Tell the hook the message before the client has the last bytes, and may ask again."""
        if not self._told:
            self._told = True
            if self._on_message is not None:
                await self._on_message(self._asked, self._stream.snapshot(), self._stream.error)

    async def _beat(self) -> None:
        """Tell a waiting client that the connection lives."""
        if self._encoder.finished:
            return
        data = self._encoder.keep_alive()
        if data:
            if not self._begun:
                await self._begin()
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _watch(self, receive: Receive) -> None:
        """End the answer when the client has closed its connection."""
        while (await receive())["type"] != "http.disconnect":
            pass
        if self._task is not None:
            self._task.cancel()


class _Pulse:
    """Calls a function after each silence of so many seconds, in a task of its own."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float | None,
        beat: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._beat = beat
        self._last = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self.beating: asyncio.Task[None] | None = None
        if seconds is not None:
            self._timer = loop.call_later(seconds, self._look)

    def seen(self) -> None:
        """Note that something was sent."""
        self._last = self._loop.time()

    def stop(self) -> None:
        """Beat no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        assert self._seconds is not None
        now = self._loop.time()
        if now - self._last >= self._seconds and (self.beating is None or self.beating.done()):
            self._last = now
            self.beating = self._loop.create_task(self._beat())
        self._timer = self._loop.call_at(self._last + self._seconds, self._look)


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
