"""Work of a stream between two reads, the same for synchronous and asynchronous streams.

In: the outcome of a read: the end, the failure of the transport, or a chunk that needs attention.
Out: deltas, and an assembler that has folded them.  The extension's `Cursor` handles all other
chunks by itself.

Laws: no I/O and no waiting. A failure of the transport becomes an error delta; a mistake of the
caller does not. The error mapper classifies a refusal, whichever client received it. Nothing
changes after the end.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import (
    TYPE_CHECKING,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
)

from deltafold import _core
from deltafold._core import (
    FIRST_REFUSAL,
    OVER,
    Cursor,
    DeltaBatch,
    StreamTimes,
    set_late_fields,
)
from deltafold.contract.exceptions import DeltafoldError, UnknownDialectError
from deltafold.contract.foreign_text import well_formed
from deltafold.contract.kinds import DeltaKind, ErrorCode
from deltafold.errors.mapper import ErrorFields, ErrorMapper
from deltafold.errors.model_error import ModelError
from deltafold.message import data_types
from deltafold.streams import excerpts
from deltafold.streams.call_facts import call_facts, cost_of_answer
from deltafold.streams.mistakes import CallerError, is_misuse
from deltafold.streams.options import DecoderOptions
from deltafold.transports.headers import RawHeaders
from deltafold.transports.response_info import ResponseHook, ResponseInfo
from deltafold.transports.secrets import NOTHING_TO_REDACT, Redactor
from deltafold.transports.sources import AsyncSource, Source

if TYPE_CHECKING:
    from deltafold.errors.sdk_exceptions import SdkName
    from deltafold.message.notebook import LiveDisplay

M = TypeVar("M", "data_types.Message", None)
T = TypeVar("T")

Status: TypeAlias = Literal["idle", "started", "done", "error"]

# Outcome of a read: a chunk, the failure of the transport, or the end of the body.
Read: TypeAlias = bytes | Exception | None


class Observer(Protocol):
    """Observer of a stream, for telemetry; it must not raise."""

    def ended(self, core: "StreamCore") -> None:
        """Learn that the stream has ended, whole, in an error, or given up."""


@dataclass(slots=True)
class CallContext:
    """The call of a stream, as far as the stream needs it; nothing changes it.

    A Model has its own class of calls; the methods of this one are for bytes that no Model
    requested.

    Attributes:
        vendor: the name of the vendor's row; "" if it is unknown.
        model_id: the requested model.
        after_headers: the caller's hook that receives the response before its body is read.
        invocation_state: the caller's own objects, for the hooks.
        notes: losses of rendering, as warnings of the message.
    """

    vendor: str
    model_id: str
    after_headers: ResponseHook | None
    invocation_state: Mapping[str, object] = field(repr=False)
    notes: Sequence[Mapping[str, object]]

    def begin(self) -> Observer | None:
        """Return the observer of the call, when the request is sent; None if none is needed yet."""
        return None

    def observer_of_end(self) -> Observer | None:
        """Return the observer of a call that failed or has a warning, if it has no other."""
        return None

    def redactor(self) -> Redactor:
        """Return the redactor of the call's secrets; it is needed after a failure."""
        return NOTHING_TO_REDACT

    def called_sdk(self) -> "tuple[SdkName, str] | None":
        """Return the SDK whose client was called, and the address; None for other clients."""
        return None

    def advice(self, _error: ModelError) -> str | None:
        """Return what to do about the failure of the call, None if nothing is known."""
        return None

    def joined(self, message: M) -> "M | data_types.Message":
        """Return the message of the call, None if it has none, with what the request determines."""
        return message


NO_CALL: Final = CallContext("", "", None, {}, ())
"""Context of bytes that no call of a client brought."""


_OK: Final = 200
_OWN_MODULES: Final = frozenset(
    {__name__, "deltafold.streams.readers", "deltafold.transports.timeouts"}
)


class Verdict(NamedTuple):
    """Decision about an exception that a read has raised.

    Attributes:
        raises: the exception to raise; None for a failure of the transport, which is folded in.
        releases: whether the source is released before.
        failure: the failure of the transport.
    """

    raises: BaseException | None
    releases: bool
    failure: Exception | None = None


Step: TypeAlias = Callable[..., T | None]
"""Step of a `Cursor` in one form: without an argument it returns what is left, or begins a read."""


class StreamCore:
    """One stream without its transport: its cursor, and the work that most reads do not need.

    Attributes:
        cursor: the decoder, the assembler and the position of the readers.
        options: the options of the decoder.
        call: the call of the stream.
        has_rest: whether the body continues after the terminal.
        is_attached: whether the chunks have no response.
        recent: the last bytes, for the report of a failure; None if no person reads it.
        interruption: the message of the error after a `KeyboardInterrupt` or a cancellation.
    """

    interruption: ClassVar[str] = "reading was interrupted"

    __slots__ = (
        "_cause",
        "_failure_body",
        "_head",
        "_observer",
        "_own_mapper",
        "_own_redactor",
        "_refusal",
        "_response",
        "assembler",
        "call",
        "cursor",
        "decoder",
        "display",
        "error_mapper",
        "has_rest",
        "is_attached",
        "options",
        "recent",
    )

    def __init__(
        self,
        dialect: "data_types.ProtocolName | None",
        error_mapper: ErrorMapper | None,
        options: DecoderOptions,
        call: CallContext,
    ) -> None:
        cursor = self.cursor = Cursor(dialect, options)
        self.decoder = cursor.decoder
        self.assembler = cursor.assembler
        self.error_mapper = error_mapper
        self.options = options
        self.call = call
        self.has_rest = self.is_attached = False
        self.recent: excerpts.RecentBytes | None = None
        self.display: LiveDisplay | None = None
        self._cause: Exception | None = None
        self._failure_body: str | None = None
        self._head: tuple[int, Mapping[str, str]] | None = None
        self._observer: Observer | None = None
        self._own_mapper: ErrorMapper | None = None
        self._own_redactor: Redactor | None = None
        self._refusal: bytearray | None = None
        self._response: ResponseInfo | None = None

    def observed_by(self, observer: Observer) -> None:
        """Let an observer learn of the end."""
        self._observer = observer

    def opened(self, source: Source | AsyncSource) -> None:
        """Take the response's status and headers, now that they are known."""
        options = self.options
        status = options.get("status", source.status)
        headers = options.get("headers", source.headers) or {}
        self._head = status, headers
        if status != _OK or headers:
            # The decoder needs few of the texts.
            raw = headers.raw if type(headers) is RawHeaders else headers
            self.decoder.set_response(status, raw)
        if status >= FIRST_REFUSAL:
            self._refusal = bytearray()

    @property
    def is_diverted(self) -> bool:
        """True if Python handles each chunk, because the stream is a refusal or is displayed."""
        return self._refusal is not None or self.display is not None

    @property
    def ended(self) -> bool:
        """True after the end of the stream."""
        return self.cursor.ended

    @property
    def went_well(self) -> bool:
        """True if the stream ended without an error and without a warning."""
        return self.cursor.went_well

    def times(self) -> StreamTimes:
        """Return the times so far."""
        return self.cursor.times()

    @property
    def dialect(self) -> str:
        """The wire protocol, for a person."""
        return self.decoder.dialect or "of a protocol not known yet"

    @property
    def status(self) -> Status:
        """Status of the stream: idle, started, done or error."""
        return self.assembler.status

    @property
    def response(self) -> ResponseInfo | None:
        """Facts of the headers, None before they arrive."""
        if self._response is None and (self._head is not None or self._reads_attached):
            status, given = self._head or (_OK, self.options.get("headers") or {})
            headers = {well_formed(name): well_formed(value) for name, value in given.items()}
            self._response = ResponseInfo(status, headers, self.call.invocation_state)
        return self._response

    @property
    def _reads_attached(self) -> bool:
        return self.is_attached and self.cursor.started

    def after_headers(self) -> Awaitable[None] | None:
        """Call the caller's hook with the response, and return its result."""
        hook = self.call.after_headers
        if hook is None or self.response is None:
            return None
        try:
            return hook(self.response)
        except Exception as exception:
            raise CallerError from exception

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
        decoder = self.decoder
        try:
            batch = decoder.close() if read is None else decoder.feed(read)
        except BaseException as raised:
            self._interrupted(raised)
            raise
        if decoder.finished:
            batch = self._without_secrets(batch)
        self.cursor.receive(batch)
        if read is None or decoder.finished:
            self._end(has_rest=read is not None)
        return batch

    def over(self, step: Step[T]) -> T | None:
        """Take the deltas of the chunk that has brought the terminal, if they were not taken yet.

        Return their first value in the form of a step, None or `OVER` if there is none.
        """
        cursor = self.cursor
        if cursor.ended:
            return None
        batch = cursor.take_last()
        if batch is not None:
            batch = self._without_secrets(batch)
            cursor.receive(batch)
        self._end(has_rest=True)
        value = None if batch is None else step(batch)
        return None if value is OVER else value

    def cancel(self, message: str) -> None:
        """End the stream at the caller's wish, unless it has ended by itself."""
        if not self.ended:
            self.assembler.consume(self.decoder.fail(ErrorCode.CANCELLED, message))
            self._end(has_rest=False)

    def verdict(self, raised: BaseException, *, decoding: bool) -> Verdict:
        """Decide whether an exception of a read is raised or folded in.

        Args:
            raised: the exception of the source, of the caller's code, or of a step.
            decoding: whether a step has raised it.
        """
        if isinstance(raised, UnknownDialectError):
            # A caller that names the dialect then must not read the rest of the same source.
            self.cancel("the body does not tell its protocol")
            return Verdict(raised, releases=True)
        if decoding:
            self._interrupted(raised)
            return Verdict(raised, releases=False)
        if isinstance(raised, CallerError):
            self.cancel("the caller's own code raised")
            return Verdict(raised.__cause__ or raised, releases=True)
        if isinstance(raised, GeneratorExit):
            self.cancel("the task that read was given up")
            return Verdict(raised, releases=False)  # nobody waits any more
        if not isinstance(raised, Exception):
            self.cancel(self.interruption)
            return Verdict(raised, releases=True)
        misuse = self._misuse(raised)
        return Verdict(misuse, misuse is None, None if misuse else raised)

    def _misuse(self, exception: Exception) -> Exception | None:
        """Return an exception that reports a mistake of the caller, without secrets.

        Return None for other exceptions: they are failures of the transport, and end the stream.
        """
        if not is_misuse(exception):
            return None
        return self.redactor.exception(exception)

    def final_message(self) -> "data_types.Message":
        """Return the message, with the notes of rendering, its cost and its timing.

        Raises:
            ModelError: the stream ended in an error.
            MisuseError: the stream has not ended yet.
        """
        try:
            message = self.assembler.build_final_message()
        except ModelError as error:
            completed = self._completed(error)
            raise completed from completed.__cause__
        return self._with_facts(message)

    def raise_failure(self) -> None:
        """Raise the error that ended the stream, if one did.

        Raises:
            ModelError: the stream ended in an error.
        """
        if self.status == "error":
            self.final_message()

    def snapshot(self) -> "data_types.Message":
        """Return the message so far; after the end with the notes, the cost and the timing."""
        message = self.assembler.snapshot()
        if self.ended:
            return self._with_facts(message)
        return self.call.joined(message)

    def error(self) -> ModelError | None:
        """Return the error that ended the stream; None while it runs and after success."""
        error = self.assembler.get_error()
        return None if error is None else self._completed(error)

    @property
    def cost(self) -> "data_types.Cost":
        """Cost of the call so far."""
        call, answer = self.call, self.assembler
        return cost_of_answer(answer.usage, call.vendor, call.model_id, answer.model_id)

    @property
    def timing(self) -> "data_types.Timing":
        """Speed of the stream so far."""
        from deltafold.message.timing import timing_of  # noqa: PLC0415 - as above

        usage = self.assembler.usage
        return timing_of(self.times(), None if usage is None else usage.output_tokens)

    @property
    def redactor(self) -> Redactor:
        """Redactor of the call's secrets; made after a failure."""
        if self._own_redactor is None:
            self._own_redactor = self.call.redactor()
        return self._own_redactor

    @property
    def _mapper(self) -> ErrorMapper:
        if self._own_mapper is None:
            clock = self.options.get("clock")
            self._own_mapper = self.error_mapper or (
                ErrorMapper() if clock is None else ErrorMapper(clock=clock)
            )
        return self._own_mapper

    def _completed(self, error: ModelError) -> ModelError:
        # An error within the stream came as the provider wrote it, with its own object.
        error.message = self.redactor.text(error.message)
        error.args = (error.message,)
        if error.provider_code is not None:
            error.provider_code = self.redactor.text(error.provider_code)
        error.body = self._failure_body or (error.body and self.redactor.text(error.body))
        recent = self.recent
        if recent is not None and self._failure_body is None:
            dialect, redacted = self.decoder.dialect or None, self.redactor.content
            excerpt = excerpts.excerpt_of(recent.read, recent.tail(), dialect, redacted)
            excerpts.explain(error, excerpt)
        error.__cause__ = self._cause_of(error)
        error.hint = self.call.advice(error)
        error.warnings = [*map(dict, self.call.notes), *error.warnings]
        if error.partial_message is not None:
            error.partial_message = self._with_facts(error.partial_message)
        else:
            error.partial_message = self.call.joined(None)
        return error

    def _cause_of(self, error: ModelError) -> Exception | None:
        """Return the exception of the client; one of its SDK, if a client of an SDK was called."""
        called = self.call.called_sdk()
        if called is None or error.code is ErrorCode.CANCELLED:
            return self._cause
        # A stream that ends well needs no such exception.
        from deltafold.errors.sdk_exceptions import sdk_cause  # noqa: PLC0415 - as said

        package, url = called
        return sdk_cause(error, package, self.redactor.text(url), self._cause)

    def _with_facts(self, message: "data_types.Message") -> "data_types.Message":
        """Add the facts about the call of a Model; bytes that no Model requested have none."""
        call = self.call
        if not call.vendor:
            return message
        served = self.assembler.model_id
        facts = partial(call_facts, call.vendor, call.model_id, served, self.times())
        if not set_late_fields(message, facts):
            for name, value in facts(message.meta.usage).items():
                setattr(message.meta, name, value)
        if call.notes:
            meta = message.meta
            meta.warnings = [*map(dict, call.notes), *meta.warnings]
        return call.joined(message)

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

        Its traceback, and those of its causes, begin below the frames of the stream. Those frames
        hold this stream, and a reference cycle would keep both until the garbage collector runs.
        """
        chain: BaseException | None = failure
        while chain is not None:
            traceback = chain.__traceback__
            while (
                traceback is not None
                and traceback.tb_frame.f_globals.get("__name__") in _OWN_MODULES
            ):
                traceback = traceback.tb_next
            chain.__traceback__ = traceback
            chain = chain.__cause__
        self._cause = self.redactor.exception(failure)

    def _refused(self, body: bytearray, read: bytes | None) -> DeltaBatch:
        """Collect the body of a refusal, which contains the error."""
        if read is not None:
            nothing = self.decoder.feed(b"")
            self.cursor.receive(nothing)
            body += read[: _core.MAX_REFUSAL_BYTES - len(body)]
            if len(body) < _core.MAX_REFUSAL_BYTES:
                return nothing
        has_rest = read is not None
        status = None if self.response is None else self.response.status
        headers: Mapping[str, str] = {} if self.response is None else self.response.headers
        redactor = self.redactor
        known = {name: redactor.text(value) for name, value in headers.items()}
        fields = self._mapper.map_response(status, known, redactor.content(bytes(body)))
        return self._fail(fields, has_rest=has_rest)

    def _fail(self, failure: ErrorFields, *, has_rest: bool = False) -> DeltaBatch:
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
        self._end(has_rest=has_rest)
        return batch

    def _interrupted(self, raised: BaseException) -> None:
        """End the stream where a signal handler raised: the rest of the chunk is lost."""
        if not isinstance(raised, (DeltafoldError, TypeError)):
            self.cancel("reading was interrupted")

    def settle(self) -> bool:
        """Drop the deltas that were not taken, and return whether the stream has ended."""
        self.cursor.settle()
        return self.cursor.ended

    def _end(self, *, has_rest: bool) -> None:
        self.has_rest = has_rest
        self.cursor.end()
        observer = self._observer
        if observer is None and not self.went_well:
            observer = self.call.observer_of_end()
        if observer is not None:
            observer.ended(self)


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
