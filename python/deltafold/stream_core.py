"""Work of a stream between two reads, the same for synchronous and asynchronous streams.

In: the outcome of a read: a chunk, the end, or the failure of the transport.  Out: deltas, and an
assembler that has folded them.

Laws: no I/O and no waiting. A failure of the transport becomes an error delta; a mistake of the
caller does not. The error mapper classifies a refusal, whichever client received it. Nothing
changes after the end.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, Protocol, TypeAlias, TypedDict

from deltafold import _core
from deltafold._core import Decoder, DeltaBatch, Limits, MessageAssembler, MessageDelta
from deltafold.contract import DeltaKind, ErrorCode
from deltafold.cost import Cost, cost_of
from deltafold.error_mapping import ErrorFields, ErrorMapper
from deltafold.errors import ModelError
from deltafold.exceptions import DeltafoldError, MisuseError
from deltafold.foreign_text import well_formed
from deltafold.messages import Message
from deltafold.timing import Stopwatch, Timing
from deltafold.transports.response_info import ResponseHook, ResponseInfo
from deltafold.transports.secrets import NOTHING_TO_REDACT, Redactor
from deltafold.transports.sources import AsyncSource, Source

Status: TypeAlias = Literal["idle", "started", "done", "error"]

# Outcome of a read: a chunk, the failure of the transport, or the end of the body.
Read: TypeAlias = bytes | Exception | None

# Exceptions of httpx and its relatives for mistakes of the caller, as opposed to network failures.
_MISUSE_NAMES = frozenset({"StreamConsumed", "StreamClosed"})


class DecoderOptions(TypedDict, total=False):
    """The keyword options of `Decoder`, which every entry of this module takes."""

    run_id: str | None
    model_id: str | None
    request_id: str | None
    status: int
    headers: Mapping[str, str] | None
    tools: Iterable[object] | None
    markup: str | None
    starts_in_thinking: bool
    tool_names: Mapping[str, str] | None
    choice: int
    provider_raw: bool
    logprobs: bool
    limits: Limits | None
    clock: Callable[[], datetime] | None


class CallerError(Exception):
    """Carries an exception of the caller's code past the handling of transport failures."""


class Observer(Protocol):
    """Observer of a stream, for telemetry; it must not raise."""

    def ended(self, core: "StreamCore") -> None:
        """Learn that the stream has ended, whole, in an error, or given up."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """Facts of a Model about the call of a stream.

    Attributes:
        vendor: the name of the vendor's row; "" if it is unknown.
        model_id: the requested model.
        after_headers: the caller's hook that receives the response before its body is read.
        invocation_state: the caller's own objects, for the hooks.
        notes: losses of rendering, as warnings of the message.
        begin: makes the observer of the end, when the request is sent.
        redactor: makes the redactor of the call's secrets, after a failure.
    """

    vendor: str = ""
    model_id: str = ""
    after_headers: ResponseHook | None = None
    invocation_state: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    notes: tuple[Mapping[str, object], ...] = ()
    begin: Callable[[], Observer | None] | None = field(default=None, repr=False)
    redactor: Callable[[], Redactor] = field(default=lambda: NOTHING_TO_REDACT, repr=False)


_NO_CALL: Final = CallContext()


class StreamCore:
    """One stream without its transport.

    Attributes:
        pending: deltas of the last batch that were not taken yet.
        busy: a read is in progress.
        ended: everything was read.
        has_rest: the body continues after the terminal event.
        response: facts of the headers, None before they arrive.
        call: facts about the call.
    """

    __slots__ = (
        "_cause",
        "_dialect",
        "_failure_body",
        "_mapper",
        "_observer",
        "_options",
        "_redactor",
        "_refusal",
        "assembler",
        "busy",
        "call",
        "decoder",
        "ended",
        "has_rest",
        "pending",
        "response",
        "stopwatch",
    )

    def __init__(
        self,
        dialect: str,
        error_mapper: ErrorMapper | None,
        options: DecoderOptions,
        call: CallContext | None = None,
    ) -> None:
        self.call = call or _NO_CALL
        self.stopwatch = Stopwatch()
        self.response: ResponseInfo | None = None
        self._observer: Observer | None = None
        self._refusal: bytearray | None = None
        self._failure_body: str | None = None
        self._redactor: Redactor | None = None
        self._cause: Exception | None = None
        tools = options.get("tools")
        if isinstance(tools, Iterator):
            # The decoder is made again when the response is there, and an iterator is read once.
            options = {**options, "tools": tuple(tools)}
        self.decoder = Decoder(dialect, **options)
        self.assembler = MessageAssembler(self.decoder.run_id)
        self.pending: Iterator[MessageDelta] = iter(())
        self.busy = False
        self.ended = False
        self.has_rest = False
        self._dialect = dialect
        self._options: DecoderOptions = {**options, "run_id": self.decoder.run_id}
        clock = options.get("clock")
        self._mapper = error_mapper or (
            ErrorMapper() if clock is None else ErrorMapper(clock=clock)
        )

    def begin_request(self) -> None:
        """Note that the request is sent."""
        self.stopwatch.start()
        if self.call.begin is not None:
            self._observer = self.call.begin()

    def opened(self, source: Source | AsyncSource) -> None:
        """Start over with the response's status and headers, now that they are known."""
        options: DecoderOptions = {**self._options}
        options.setdefault("status", source.status)
        given = options.get("headers", source.headers) or {}
        headers = {well_formed(name): well_formed(value) for name, value in given.items()}
        options["headers"] = headers
        self.decoder = Decoder(self._dialect, **options)
        status = options.get("status", source.status)
        self.response = ResponseInfo(status, headers, self.call.invocation_state)
        if status >= _core.FIRST_REFUSAL:
            self._refusal = bytearray()

    def after_headers(self) -> Awaitable[None] | None:
        """Call the caller's hook with the response, and return its result."""
        hook = self.call.after_headers
        if hook is None or self.response is None:
            return None
        try:
            return hook(self.response)
        except Exception as exception:
            raise CallerError from exception

    def begin_read(self) -> None:
        """Note that a read begins; the reader resets `busy` at its end."""
        if self.busy:
            raise MisuseError("this stream is already being read; it supports one reader at a time")
        self.busy = True

    def step(self, read: Read) -> DeltaBatch:
        """Decode and fold the outcome of a read, and return the deltas."""
        if self._refusal is not None:
            # A refusal that breaks off stays a refusal, because its status is more specific.
            if isinstance(read, Exception):
                self._note_cause(read)
                read = None
            return self._refused(self._refusal, read)
        if isinstance(read, Exception):
            self._note_cause(read)
            return self._fail(self._mapper.map(read))
        try:
            batch = self.decoder.close() if read is None else self.decoder.feed(read)
        except BaseException as raised:
            self._interrupted(raised)
            raise
        if self.decoder.finished:
            batch = self._without_secrets(batch)
        self.assembler.consume(batch)
        self._note_read(len(batch))
        self._note_end(read)
        return batch

    def step_into(self, read: Read) -> None:
        """Decode the outcome of a read straight into the assembler, without Python objects."""
        if read is None or isinstance(read, Exception) or self._refusal is not None:
            self.step(read)
            return
        try:
            count = self.decoder.feed_into(self.assembler, read)
        except BaseException as raised:
            self._interrupted(raised)
            raise
        self._note_read(count)
        if self.decoder.finished:
            self.has_rest = True
            self._end()

    def cancel(self, message: str) -> None:
        """End the stream at the caller's wish, unless it has ended by itself."""
        if not self.ended:
            self.assembler.consume(self.decoder.fail(ErrorCode.CANCELLED, message))
            self._end()

    def misuse(self, exception: Exception) -> Exception | None:
        """Return an exception that reports a mistake of the caller, without secrets.

        Return None for other exceptions: they are failures of the transport, and end the stream.
        """
        if not _is_misuse(exception):
            return None
        return self.redactor.exception(exception)

    def final_message(self) -> Message:
        """Return the message, with the notes of rendering.

        Raises:
            ModelError: the stream ended in an error.
            MisuseError: the stream has not ended yet.
        """
        try:
            message = self.assembler.build_final_message()
        except ModelError as error:
            completed = self._completed(error)
            raise completed from completed.__cause__
        if self.call.notes:
            message.meta.warnings = [*map(dict, self.call.notes), *message.meta.warnings]
        return message

    def error(self) -> ModelError | None:
        """Return the error that ended the stream; None while it runs and after success."""
        error = self.assembler.get_error()
        return None if error is None else self._completed(error)

    @property
    def cost(self) -> Cost:
        """Cost of the call so far."""
        return cost_of(self.assembler.usage, self.call.vendor, self.call.model_id)

    @property
    def timing(self) -> Timing:
        """Speed of the stream so far."""
        usage = self.assembler.usage
        return self.stopwatch.timing(None if usage is None else usage.output_tokens)

    @property
    def redactor(self) -> Redactor:
        """Redactor of the call's secrets; made after a failure."""
        if self._redactor is None:
            self._redactor = self.call.redactor()
        return self._redactor

    def _completed(self, error: ModelError) -> ModelError:
        # An error within the stream came as the provider wrote it.
        error.message = self.redactor.text(error.message)
        error.args = (error.message,)
        if error.provider_code is not None:
            error.provider_code = self.redactor.text(error.provider_code)
        error.body = self._failure_body
        error.__cause__ = self._cause
        error.warnings = [*map(dict, self.call.notes), *error.warnings]
        return error

    def _without_secrets(self, batch: DeltaBatch) -> DeltaBatch:
        """Redact the error that ends a batch: a provider may repeat the key that it refuses."""
        last = batch[-1] if len(batch) else None
        if last is None or last.kind != DeltaKind.ERROR:
            return batch
        redactor, message, code = self.redactor, last.error_message or "", last.provider_code
        texts = redactor.text(message), code and redactor.text(code)
        if texts == (message, code):
            return batch
        return batch._with_error_texts(*texts) or batch  # noqa: SLF001 - made for this

    def _note_cause(self, failure: Exception) -> None:
        """Keep the exception of the client, without secrets, as the cause of later `ModelError`s.

        Its traceback begins below the frame that caught it. That frame holds this stream, and a
        reference cycle would keep both until the garbage collector runs.
        """
        traceback = failure.__traceback__
        failure = failure.with_traceback(traceback and traceback.tb_next)
        self._cause = self.redactor.exception(failure)

    def _refused(self, body: bytearray, read: bytes | None) -> DeltaBatch:
        """Collect the body of a refusal, which contains the error."""
        if read is not None:
            self._note_read(0)
            body += read[: _core.MAX_REFUSAL_BYTES - len(body)]
            if len(body) < _core.MAX_REFUSAL_BYTES:
                return self.decoder.feed(b"")
            self.has_rest = True
        status = None if self.response is None else self.response.status
        headers: Mapping[str, str] = {} if self.response is None else self.response.headers
        redactor = self.redactor
        known = {name: redactor.text(value) for name, value in headers.items()}
        return self._fail(self._mapper.map_response(status, known, redactor.content(bytes(body))))

    def _fail(self, failure: ErrorFields) -> DeltaBatch:
        failure = _redacted(failure, self.redactor)
        self._failure_body = failure.body
        batch = self.decoder.fail(
            failure.code,
            failure.message,
            failure.retryable,
            retry_after=failure.retry_after,
            status=failure.status,
            provider_code=failure.provider_code,
            http_request_id=failure.http_request_id,
        )
        self.assembler.consume(batch)
        self._end()
        return batch

    def _interrupted(self, raised: BaseException) -> None:
        """End the stream where a signal handler raised: the rest of the chunk is lost."""
        if not isinstance(raised, (DeltafoldError, TypeError)):
            self.cancel("reading was interrupted")

    def _note_read(self, deltas: int) -> None:
        stopwatch = self.stopwatch
        stopwatch.read(deltas)
        if stopwatch.wants_text and deltas and self.assembler.text:
            stopwatch.text_came()

    def _note_end(self, read: bytes | None) -> None:
        if read is None or self.decoder.finished:
            self.has_rest = read is not None
            self._end()

    def _end(self) -> None:
        self.ended = True
        self.stopwatch.end()
        if self._observer is not None:
            self._observer.ended(self)


def _redacted(fields: ErrorFields, redactor: Redactor) -> ErrorFields:
    """Return the fields of a failure without secrets."""
    code, request_id, body = fields.provider_code, fields.http_request_id, fields.body
    return replace(
        fields,
        message=redactor.text(fields.message),
        provider_code=code and redactor.text(code),
        http_request_id=request_id and redactor.text(request_id),
        body=body and redactor.text(body),
    )


def _is_misuse(exception: Exception) -> bool:
    """Return whether the caller's code is wrong, as opposed to the transport."""
    if isinstance(exception, MisuseError | TypeError | AttributeError):
        return True
    return any(base.__name__ in _MISUSE_NAMES for base in type(exception).__mro__)


def text_of(deltas: Iterator[MessageDelta]) -> Iterator[str]:
    """Yield the text of the text deltas."""
    for delta in deltas:
        if delta.kind == DeltaKind.TEXT and (text := delta.text):
            yield text
