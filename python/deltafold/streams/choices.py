"""Folds of every choice: a body whose request asked for several answers (`n > 1`), into messages.

In: bytes.  Out: the assemblers of the messages, by the number of the choice.

Laws: the message of a choice is that of `fold(choice=number)`. A failure of one choice does not
touch the others, and a failure of the transport ends them all. The bytes are read once.
"""

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Final, Unpack

from deltafold._core import ChoicesDecoder, DeltaBatch, MessageAssembler, fold_body_choices
from deltafold.errors.mapper import ErrorMapper
from deltafold.message import data_types
from deltafold.streams.bodies import WholeBody, whole_body
from deltafold.streams.mistakes import is_misuse
from deltafold.streams.options import ChoicesOptions
from deltafold.transports.addresses import dialect_of_address
from deltafold.transports.followed import followed, followed_async
from deltafold.transports.responses import async_source_of, is_sdk_response, source_of
from deltafold.transports.unready import refuse_unready

_END: Final = object()

__all__ = ["ChoicesDecoder", "afold_choices", "fold_choices"]


class ChoiceMessages:
    """The messages of the choices, while the chunks of a body arrive."""

    def __init__(
        self,
        dialect: "data_types.ProtocolName | None",
        options: ChoicesOptions,
        mapper: ErrorMapper | None = None,
    ) -> None:
        self.decoder = ChoicesDecoder(dialect, **options)
        self.folded: dict[int, MessageAssembler] = {}
        clock = options.get("clock")
        own = mapper or (ErrorMapper() if clock is None else ErrorMapper(clock=clock))
        self._mapper = own
        self._ended: set[int] = set()

    def feed(self, chunk: object) -> list[int]:
        """Fold a chunk, and return the choices that have ended with it."""
        return self._consume(self.decoder.feed(chunk))

    def fail(self, failure: Exception) -> list[int]:
        """End every choice by a failure of the transport; a mistake of the caller is raised."""
        if is_misuse(failure):
            raise failure
        fields = self._mapper.map(failure)
        return self._consume(
            self.decoder.fail(
                fields.code,
                fields.message,
                fields.retryable,
                retry_after=fields.retry_after,
                status=fields.status,
                provider_code=fields.provider_code,
                http_request_id=fields.http_request_id,
            )
        )

    def close(self) -> list[int]:
        """Take the end of the body, and return the choices that have ended with it."""
        return self._consume(self.decoder.close())

    def in_order(self) -> dict[int, MessageAssembler]:
        """Return the assemblers by the number of the choice, lowest first."""
        return dict(sorted(self.folded.items()))

    def _consume(self, batches: Mapping[int, DeltaBatch]) -> list[int]:
        ended: list[int] = []
        for choice, batch in batches.items():
            if choice not in self.folded:
                self.folded[choice] = MessageAssembler(self.decoder.run_id)
            folded = self.folded[choice]
            folded.consume(batch)
            if choice not in self._ended and folded.status in {"done", "error"}:
                self._ended.add(choice)
                ended.append(choice)
        return ended


def fold_choices(
    body: WholeBody | Iterable[object],
    dialect: "data_types.ProtocolName | None" = None,
    **options: Unpack[ChoicesOptions],
) -> dict[int, MessageAssembler]:
    """Fold a whole body, its chunks, events or an SDK's stream, into every message.

    For a request that asked for several answers (`n=8`, `candidateCount`). The result has one
    assembler per choice, lowest number first. Each one makes its message on demand and reports a
    failure in `error`, as those of `fold_many()` do. A body without a choice has choice 0 alone,
    with its error. A body in one piece is folded with the GIL released.

    >>> folded = deltafold.fold_choices(body, "openai-chat")
    >>> [one.text for one in folded.values() if one.error is None]

    Args:
        body: the response body, an iterable of its chunks or events, or the stream of an SDK.
        dialect: the wire protocol; None takes it from the first events, or from the address of a
            response.
        options: the options of `Decoder` except `choice`.

    Raises:
        UnknownDialectError: no dialect has this name, or the body does not tell its own.
        TypeError: the body, or a chunk of it, is neither bytes nor an event.
    """
    if isinstance(body, bytes | bytearray | memoryview | str):
        return fold_body_choices(ChoicesDecoder(dialect, **options), whole_body(body))
    messages = ChoiceMessages(dialect or dialect_of_address(body), options)
    # The bytes below an SDK's stream cost less than its objects.
    source = source_of(body) if is_sdk_response(body) else None
    if source is None:
        refuse_unready(body, "fold_choices")
    follower = None if source is None else followed(body, source)
    chunks = iter(body) if source is None else source.chunks
    try:
        while not messages.decoder.finished:
            try:
                chunk = next(chunks, _END)
            except Exception as failure:  # noqa: BLE001 - of any client
                messages.fail(failure)
                break
            if chunk is _END:
                break
            messages.feed(chunk)
        if follower is not None:
            follower.is_over = True
    finally:
        if source is not None:
            source.close()
    messages.close()
    return messages.in_order()


async def afold_choices(
    chunks: WholeBody | AsyncIterable[object] | Iterable[object],
    dialect: "data_types.ProtocolName | None" = None,
    **options: Unpack[ChoicesOptions],
) -> dict[int, MessageAssembler]:
    """Fold a whole body, or its asynchronous chunks, as `fold_choices()` does.

    >>> folded = await deltafold.afold_choices([body], "openai-chat")
    >>> texts = {choice: one.text for choice, one in folded.items()}
    """
    if not isinstance(chunks, AsyncIterable):
        return fold_choices(chunks, dialect, **options)
    messages = ChoiceMessages(dialect or dialect_of_address(chunks), options)
    source = async_source_of(chunks) if is_sdk_response(chunks) else None
    follower = None if source is None else followed_async(chunks, source)
    reading = aiter(chunks) if source is None else source.chunks
    try:
        while not messages.decoder.finished:
            try:
                chunk = await anext(reading, _END)
            except Exception as failure:  # noqa: BLE001 - of any client
                messages.fail(failure)
                break
            if chunk is _END:
                break
            messages.feed(chunk)
        if follower is not None:
            follower.is_over = True
    finally:
        if source is not None:
            await source.close()
    messages.close()
    return messages.in_order()
