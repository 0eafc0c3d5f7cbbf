"""What a stream does between two reads, whoever waits for them.

In: what a read brought: a chunk, the end, or the failure of the transport.  Out: deltas, and an
assembler that has folded them.

Laws: no I/O and no waiting; the transport's failure becomes an error delta, the caller's mistake
does not; nothing changes after the end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict

from deltafold._core import Decoder, DeltaBatch, Limits, MessageAssembler, MessageDelta
from deltafold.contract import DeltaKind, ErrorCode
from deltafold.errors import ErrorMapper, MisuseError
from deltafold.models.transport import AsyncSource, Source

Status: TypeAlias = Literal["idle", "started", "done", "error"]

# What a read can bring: a chunk, the failure of the transport, or the end of the body.
Read: TypeAlias = bytes | Exception | None

# Exceptions of httpx and its kin that say that the caller's code is wrong, not the network.
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
    choice: int
    provider_raw: bool
    logprobs: bool
    limits: Limits | None
    clock: Callable[[], datetime] | None


class StreamCore:
    """One stream without its transport.

    Attributes:
        pending: deltas of the last batch that nobody has taken yet.
        busy: a read is under way.
        ended: there is nothing more to read.
    """

    __slots__ = (
        "_dialect",
        "_mapper",
        "_options",
        "assembler",
        "busy",
        "decoder",
        "ended",
        "pending",
    )

    def __init__(
        self, dialect: str, error_mapper: ErrorMapper | None, options: DecoderOptions
    ) -> None:
        tools = options.get("tools")
        if isinstance(tools, Iterator):
            # The decoder is made again when the response is there, and an iterator is read once.
            options = {**options, "tools": tuple(tools)}
        self.decoder = Decoder(dialect, **options)
        self.assembler = MessageAssembler(self.decoder.run_id)
        self.pending: Iterator[MessageDelta] = iter(())
        self.busy = False
        self.ended = False
        self._dialect = dialect
        self._options: DecoderOptions = {**options, "run_id": self.decoder.run_id}
        self._mapper = error_mapper or ErrorMapper()

    def opened(self, source: Source | AsyncSource) -> None:
        """Start over with the response's status and headers, now that they are known."""
        options: DecoderOptions = {**self._options}
        options.setdefault("status", source.status)
        options.setdefault("headers", source.headers)
        self.decoder = Decoder(self._dialect, **options)

    def begin_read(self) -> None:
        """Note that a read begins; whoever reads says when it is over."""
        if self.busy:
            raise MisuseError("this stream is being read already: one reader at a time")
        self.busy = True

    def step(self, read: Read) -> DeltaBatch:
        """Decode what a read brought, fold it, and hand the deltas out."""
        if isinstance(read, Exception):
            return self._fail(read)
        batch = self.decoder.close() if read is None else self.decoder.feed(read)
        self.assembler.consume(batch)
        self.ended = read is None or self.decoder.finished
        return batch

    def step_into(self, read: Read) -> None:
        """Decode what a read brought straight into the assembler, which costs no Python object."""
        if isinstance(read, Exception):
            self._fail(read)
            return
        if read is None:
            self.decoder.close_into(self.assembler)
        else:
            self.decoder.feed_into(self.assembler, read)
        self.ended = read is None or self.decoder.finished

    def cancel(self, message: str) -> None:
        """End the stream at the caller's wish, unless it has ended by itself."""
        if not self.ended:
            self.ended = True
            self.assembler.consume(self.decoder.fail(ErrorCode.CANCELLED, message))

    def _fail(self, exception: Exception) -> DeltaBatch:
        self.ended = True
        failure = self._mapper.map(exception)
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
        return batch


def is_misuse(exception: Exception) -> bool:
    """Whether an exception says that the caller's code is wrong, not the transport."""
    if isinstance(exception, MisuseError | TypeError | AttributeError):
        return True
    return any(base.__name__ in _MISUSE_NAMES for base in type(exception).__mro__)


def text_of(deltas: Iterator[MessageDelta]) -> Iterator[str]:
    """Yield what the text deltas say."""
    for delta in deltas:
        if delta.kind == DeltaKind.TEXT and (text := delta.text):
            yield text
