"""Streamed answers: an ASGI response that reads the upstream and writes the client's stream.

In: `ClientRequest`, an upstream and options.  Out: the messages of an ASGI response.

Laws: between two reads an answer costs one call of the encoder and one of `send`: no task, no timer
that is set anew, and no generator an event. It is written in a task of its own, because the event
loop resumes all coroutines of a task for each event: those of the server, of the middlewares and of
the routes are in another task. A slow client holds back the upstream, because nothing is read
before the last bytes were sent. The hook has the message before the client has the last bytes, so
that a client which asks again at once finds its response stored. After a lost upstream, open blocks
stay open for the client, and `on_cut` selects how its stream ends.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from deltafold._core import DeltaBatch, Encoder, MessageDelta, dialect_content_type
from deltafold.contract.kinds import DeltaKind, ErrorCode
from deltafold.errors.model_error import ModelError
from deltafold.errors.public_text import public_message
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.guarded_text import Guard
from deltafold.gateway.hooks import AnswerOptions
from deltafold.gateway.leaving import client_left
from deltafold.gateway.model_call import next_upstream, open_rest, open_stream
from deltafold.gateway.pass_through import (
    BEFORE_CONTENT,
    KEEP_ALIVE,
    PassedBytes,
    can_pass,
    is_event_stream,
    passed_bytes,
)
from deltafold.gateway.protocols import OnCut, protocol_of
from deltafold.gateway.refusals import failure_of
from deltafold.gateway.table import Upstream
from deltafold.message.fallbacks import declined_calls
from deltafold.models.spliced import CLOSINGS, Splice
from deltafold.streams.encoded import encode_error

_SSE: Final = "text/event-stream"

_LOST: Final = {ErrorCode.TIMEOUT, ErrorCode.CONNECTION_LOST, ErrorCode.PROTOCOL_ERROR}
"""Failures of an upstream that was lost: a cut, silence, garbage."""
_NOT_OF_THE_UPSTREAM: Final = {*_LOST, ErrorCode.CANCELLED}
"""Failures that the upstream's bytes do not tell the client."""

_BREAK_AFTER: Final = 0.1
"""Seconds between an error event and the break. A client that reads slowly would lose the event.

Source: Node's fetch and aiohttp, which drop what they have not read when a body breaks off.
"""


class StreamedResponse(Response):
    """A streamed answer.  The upstream is called when the response is.

    Attributes:
        send_body: sends the messages after the first one; None sends them as the first one.

    Raises:
        ModelError: the request cannot be translated; its status is 400.
    """

    def __init__(self, asked: ClientRequest, upstream: Upstream, options: AnswerOptions) -> None:
        self.background = None
        self.send_body: Send | None = None
        self._asked = asked
        self._options = options
        self._begun = self._told = self._has_left = self._breaks = False
        self._is_putting = self._is_over = False
        self._unsent = b""
        self._writing: asyncio.Future[None] | None = None
        self._stopped: ModelError | None = None
        self._open(upstream)

    def _open(self, upstream: Upstream) -> None:
        asked, options = self._asked, self._options
        self._upstream = upstream
        # A new guard for each upstream: text that it holds back must not enter the next answer.
        self._guard: Guard | None = None
        if options.on_delta is not None:
            self._guard = Guard(asked, options.on_delta, options.hold_back)
        self._splice = (
            Splice() if options.continue_answers and upstream.fallback is not None else None
        )
        is_passed = options.passthrough and options.on_delta is None and self._splice is None
        passed = passed_bytes(asked) if is_passed and can_pass(asked, upstream) else None
        self._passed = passed
        self._encoder = self._made_encoder()
        self._is_edited = self._splice is not None or self._guard is not None
        self._start: MessageDelta | None = None
        self._stream = open_stream(asked, upstream, tee=None if passed is None else passed.add)

    def _made_encoder(self) -> Encoder:
        """Make the encoder of the answer, or of the error after bytes that pass."""
        encoding = self._asked.options.copy()
        encoding["declined_calls"] = declined_calls(self._upstream.model.get_config().extra_body)
        if self._passed is not None:
            # The client has the upstream's id, unless a sign of life begins the stream here.
            encoding["request_id"] = encoding.pop("response_id", None)
        return Encoder(self._asked.target, **encoding)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write the answer; the first bytes decide its status."""
        self._send = send
        self._send_body = self.send_body or send
        self._pulse = Pulse(self._options.keep_alive, self._beat)
        writing = self._writing = asyncio.ensure_future(self._answer(scope, receive))
        leaving = asyncio.ensure_future(self._cancel_when_left(receive))
        task = asyncio.current_task()
        cancelling = 0 if task is None else task.cancelling()
        try:
            await writing
        except asyncio.CancelledError:
            # That of this task, or that of the writing task alone, whose client has left.
            if not leaving.done() or (task is not None and task.cancelling() > cancelling):
                raise
        finally:
            leaving.cancel()

    async def _answer(self, scope: Scope, receive: Receive) -> None:
        """Write the answer of the first upstream that gives one."""
        try:
            while not await (self._write_edited() if self._is_edited else self._write()):
                pass
        except asyncio.CancelledError:
            # The server ends. A client whose answer waits for the hook gets the answer, any other
            # client an end of its stream.
            if not self._has_left and not self._is_over:
                rest = self._unsent + self._rest(is_ended=self._told)
                await self._put(rest, is_last=True)
            raise
        except Exception as error:  # the next upstream cannot be called, or nobody foresaw it
            if self._begun:
                raise
            body = encode_error(failure_of(error, self._asked.protocol), self._asked.protocol)
            response = Response(body.body, body.status, dict(body.headers))
            await response(scope, receive, self._send)
        finally:
            self._pulse.stop()
            if self._pulse.beating is not None:
                self._pulse.beating.cancel()
            await self._stream.aclose()

    async def _write(self) -> bool:
        """Write the answer of the upstream; return False when another one is to be read."""
        stream, pulse, send = self._stream, self._pulse, self._send_body
        last: Callable[[DeltaBatch], bytes] = self._pass
        write = last
        if self._passed is None:
            last, write = self._encoded_last, self._encoder.feed
        async for batch in stream.batches():
            is_last = batch.ends_stream
            if is_last and await self._is_replaced():
                return False
            data = last(self._without_address(batch)) if is_last else write(batch)
            del batch  # its deltas need more memory than their bytes
            if not data:
                continue
            if is_last:
                await self._tell_before(data)
            elif self._begun and pulse.beating is None:
                await send({"type": "http.response.body", "body": data, "more_body": True})
                pulse.last = pulse.time()
                continue
            await self._put(data)
            if self._passed is not None:
                write = self._events
        await self._end()
        return True

    async def _write_edited(self) -> bool:
        """Write an answer that a hook changes, or that another upstream may continue."""
        async for batch in self._stream.batches():
            is_last = batch.ends_stream
            if is_last and await self._is_replaced():
                return False
            data = await self._spliced(self._without_address(batch) if is_last else batch)
            del batch  # as in `_write`
            if data is None:
                return False
            if data:
                if is_last:
                    await self._tell_before(data)
                await self._put(data)
            if self._stopped is not None:
                break
        await self._end()
        return True

    async def _end(self) -> None:
        """Write what follows the last deltas."""
        self._pulse.stop()
        if self._breaks:
            await self._break()
            return
        data = self._rest(is_ended=True)
        await self._tell_before(data)
        self._writing = None  # a server reports the end of a response as a disconnect
        await self._put(data, is_last=True)

    async def _break(self) -> None:
        """Leave the body unfinished, for which the server breaks the connection off."""
        await self._tell_before(b"")
        self._writing = None
        self._is_over = True
        if self._way == "event_and_break":
            await asyncio.sleep(_BREAK_AFTER)

    @property
    def _way(self) -> OnCut:
        return self._options.on_cut or protocol_of(self._asked.protocol).on_cut

    def _encoded_last(self, deltas: Iterable[MessageDelta]) -> bytes:
        """Encode the last deltas; those of a lost upstream close nothing."""
        error = self._stream.error if self._stream.status == "error" else None
        if error is None or error.code not in _LOST or self._stopped is not None:
            return b"".join(map(self._encoder.feed, deltas))
        content = list(deltas)
        failure = [content.pop()] if content and content[-1].kind is DeltaKind.ERROR else []
        while failure and content and content[-1].kind in CLOSINGS:
            content.pop()
        data = b"".join(map(self._encoder.feed, content))
        return data + b"".join(map(self._failed, failure))

    def _failed(self, failure: MessageDelta) -> bytes:
        """Encode the failure of a lost upstream: an HTTP error, an event, a break, or both."""
        self._breaks = self._encoder.status is not None and self._way != "event"
        return b"" if self._breaks and self._way == "break" else self._encoder.feed(failure)

    def _rest(self, *, is_ended: bool) -> bytes:
        """Return what ends the answer, an error where the upstream did not end it."""
        if self._passed is None or not is_ended:
            return self._encoder.close()
        return self._passed.close() if self._stream.error is None else b""

    async def _is_replaced(self) -> bool:
        """Call the next upstream if this one failed before its first byte."""
        if self._stream.status != "error":
            return False
        if self._pulse.beating is not None:
            await self._pulse.beating
        upstream = next_upstream(self._upstream, self._stream.error)
        if self._begun or upstream is None:
            return False
        await self._stream.aclose()
        self._open(upstream)
        return True

    def _without_address(self, batch: DeltaBatch) -> DeltaBatch:
        """Return the last batch without the address of the upstream in its error."""
        error = self._stream.error if self._stream.status == "error" else None
        if error is None:
            return batch
        message = public_message(error)
        has_begun = self._begun or self._passed is not None
        has_begun = has_begun or any(delta.kind not in BEFORE_CONTENT for delta in batch)
        if error.code in _LOST and has_begun:
            message = f"connection lost: {message}"  # words on which agents ask again, such as pi
        if message == error.message:
            return batch
        return batch._with_error_texts(message, error.provider_code) or batch  # noqa: SLF001 - made for texts that must not leave

    async def _spliced(self, batch: DeltaBatch) -> bytes | None:
        """Return the bytes of a batch as part of one answer, None if another upstream goes on."""
        splice = self._splice
        if splice is None:
            return await self._edited(batch)
        data = await self._edited(splice.deltas(batch))
        if self._stream.status == "error" and self._stopped is None:
            if await self._goes_on(data, splice):
                return None
            data += await self._edited(splice.failed())
        return data

    async def _goes_on(self, data: bytes, splice: Splice) -> bool:
        """Let the next upstream continue an answer that broke off, and tell the client."""
        partial = self._stream.snapshot()
        rest = open_rest(self._asked, self._upstream, self._stream.error, partial)
        if rest is None:
            return False
        await self._stream.aclose()
        self._upstream, self._stream = rest
        splice.continue_after(partial, self._upstream.model.dialect)
        count = len(partial.text)
        if dialect_content_type(self._asked.target) == _SSE:  # others have no comments
            data += b": the answer broke off after %d characters; another goes on\n\n" % count
        await self._put(data)
        return True

    async def _put(self, data: bytes, *, is_last: bool = False) -> None:
        pulse = self._pulse
        self._is_putting = True
        if pulse.beating is not None:
            await pulse.beating
        if not self._begun:
            await self._begin()
        self._unsent, self._is_over = b"", is_last  # a cancelled `send` has written its message
        message = {"type": "http.response.body", "body": data, "more_body": not is_last}
        await self._send_body(message)
        pulse.last = pulse.time()
        self._is_putting = False

    async def _begin(self) -> None:
        self._begun = True
        encoder = self._encoder
        if encoder.status is None:  # of bytes that pass
            encoder = Encoder(self._asked.target)
            encoder.keep_alive()
        headers = encoder.headers or {}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        status = encoder.status or 200
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    def _events(self, _read: object = None) -> bytes:
        """Return the whole events that arrived; the deltas of their read are unused."""
        passed = self._passed
        if passed is None:
            return b""
        passed.is_failing = self._stream.holds_error
        return passed.take()

    def _is_other(self, passed: PassedBytes) -> bool:
        """Return whether an upstream refuses, or answers with something else than events."""
        return passed.is_json or not is_event_stream(self._stream.response)

    def _pass(self, batch: DeltaBatch) -> bytes:
        """Return the bytes that arrived, and after a failure of the stream the client's error."""
        passed = self._passed
        if self._start is None and passed is not None and self._is_other(passed):
            self._passed = passed = None
            self._encoder = self._made_encoder()
            if self._begun:  # by a comment of the upstream
                self._encoder.keep_alive()
        if passed is None:
            return self._encoded_last(batch) if batch.ends_stream else self._encoder.feed(batch)
        if self._start is None:
            self._start = next(iter(batch), None)
            if self._start is not None:
                self._encoder.feed(self._start)
            self._encoder.keep_alive()  # an error after this is one inside of a stream
        end = self._stream.ended_at
        passed.is_failing = self._stream.holds_error or self._stream.status == "error"
        if not batch.ends_stream or self._stream.status != "error":
            return passed.take_until(end)
        error = list(batch)[-1]
        if error.error_code in _NOT_OF_THE_UPSTREAM:
            data = passed.take_until(end, without_last=True)
            if error.error_code in _LOST:
                return data + self._failed(error)
            return data + self._encoder.feed(error)
        data = passed.last() if end is None else passed.take_until(end)
        # Gemini sends an error as a bare JSON object between events, and routers send events of
        # other protocols, which clients skip.
        return data if passed.tells_failure else data + self._encoder.feed(error)

    async def _edited(self, deltas: Iterable[MessageDelta]) -> bytes:
        """Encode the deltas that the hook leaves, or the error that it raises."""
        guard = self._guard
        if guard is None:
            return self._encoded_last(deltas)
        left: list[MessageDelta] = []
        try:
            left += [delta async for delta in guard.deltas(deltas)]
        except ModelError as error:
            self._stopped = error
            left += guard.end(error)
        return self._encoded_last(left)

    async def _tell_before(self, data: bytes) -> None:
        """Tell the hook the message before the client has the last bytes."""
        self._unsent = data
        if not self._told:
            self._told = True
            if self._options.on_message is not None:
                stream = self._stream
                error = self._stopped or stream.error
                asked = self._asked if self._passed is None else self._asked.passed()
                await self._options.on_message(asked, stream.snapshot(), error)

    async def _beat(self) -> None:
        """Tell a waiting client that the connection lives."""
        if self._is_putting:
            return  # the bytes that wait for this function are older than any that it could make
        data = b""
        if self._passed is not None and is_event_stream(self._stream.response):
            # Events without a delta, such as the upstream's own signs of life. Bytes of a failure
            # wait for the end of the stream, where it is known which of them may leave.
            if self._stream.status != "error":
                data = self._events()
            data = data or (KEEP_ALIVE if self._begun else b"")
        if not data:
            # The beginning of bytes that pass waits for `on_message`: nothing else may begin.
            if self._encoder.finished or (self._passed is not None and self._start is not None):
                return
            self._passed = None  # the beginning of the stream is written here
            data = self._encoder.keep_alive()
        if not self._begun:
            await self._begin()
        await self._send_body({"type": "http.response.body", "body": data, "more_body": True})

    async def _cancel_when_left(self, receive: Receive) -> None:
        """End the answer when the client has closed its connection."""
        await client_left(receive)
        self._has_left = True
        if self._writing is not None:
            self._writing.cancel()


class Pulse:
    """Calls a function after each silence of so many seconds, in a task of its own.

    Attributes:
        last: when something was sent last, in seconds of `time`.
        time: the clock of the event loop.
        beating: the task that calls the function, None before the first silence.
    """

    def __init__(
        self, seconds: float | None, beat: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._beat = beat
        self.time = self._loop.time
        self.last = self.time()
        self._timer: asyncio.TimerHandle | None = None
        self.beating: asyncio.Task[None] | None = None
        if seconds is not None:
            self._timer = self._loop.call_later(seconds, self._look, seconds)

    def stop(self) -> None:
        """Beat no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, seconds: float) -> None:
        now, due = self.time(), self.last + seconds
        # uvloop counts milliseconds, and a timer of it may be early by the rounding of a float.
        if due - now < 0.001:  # noqa: PLR2004 - a millisecond
            if self.beating is None or self.beating.done():
                self.last = now
                self.beating = self._loop.create_task(self._beat())
            due = now + seconds
        self._timer = self._loop.call_at(due, self._look, seconds)
