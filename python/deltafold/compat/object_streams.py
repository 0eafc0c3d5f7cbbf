"""Reading of a response as the objects of another package: bytes in, objects out.

In: the chunks of a body (`Source`, `AsyncSource`).  Out: objects, one for each event, and the
folded message of the whole stream.

Laws: an object is yielded before the next chunk is awaited. A body that ends without its terminal
event raises. A half event at the end of the body is not parsed. The source is closed when the
iteration ends, fails or is abandoned.
"""

import json
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Final, Generic, Literal, Self, TypeAlias, TypeVar, cast

from pydantic_core import from_json

from deltafold._core import EventFramer, Fold
from deltafold.contract.kinds import ErrorCode
from deltafold.errors.model_error import ModelError
from deltafold.message import data_types
from deltafold.transports.drain import adrain, drain
from deltafold.transports.sources import AsyncSource, Source

ObjectT = TypeVar("ObjectT")

DONE: Final = b"[DONE]"
"""Begin of the data of the event that ends a stream of OpenAI's protocols."""


class Skip(Enum):
    """Result of reading an event without an object; None is an object."""

    SKIPPED = "skipped"


SKIPPED: Final = Skip.SKIPPED
Skipped: TypeAlias = Literal[Skip.SKIPPED]


class Reading(Generic[ObjectT]):
    """State of one stream, without input and output.

    Attributes:
        framing: the framing of the body, as `EventFramer` calls it.
        fold: folds the same bytes; None if the dialect is unknown.
        begun: whether the iteration has begun.
        ended: whether the event that ends the stream was read.
    """

    framing: Literal["sse", "aws-event-stream"] = "sse"

    def __init__(
        self, dialect: "data_types.ProtocolName | None", *, ends_without_reason: bool = False
    ) -> None:
        """Begin before the first byte."""
        self.fold: Fold | None = None
        if dialect is not None:
            self.fold = Fold(dialect, ends_without_reason=ends_without_reason)
        self.begun: bool = False
        self.ended: bool = False
        self._framer = EventFramer(self.framing)
        self._empty = True

    def take(self, chunk: bytes) -> Iterator[ObjectT]:
        """Yield the objects that a chunk completes."""
        if self.fold is not None:
            self.fold.feed(chunk)
        # One loop: a generator for each event would take a tenth of the whole time.
        for event, data in self._framer.feed(chunk):
            found = self.read(event, data)
            if found is not SKIPPED:
                self._empty = False
                yield found
            elif self.ended:
                return

    def finish(self) -> Iterator[ObjectT]:
        """Yield the object that no blank line ended; raise if the body was cut."""
        if not self.ended:
            for event, data in self._framer.finish():
                found = self.read(event, data) if _is_json(data) else SKIPPED
                if found is not SKIPPED:
                    self._empty = False
                    yield found
        if self.fold is None:
            return
        self.fold.close()
        error = self.fold.assembler.get_error()
        is_cut = self._empty or self._framer.broken
        if error is not None and (is_cut or error.code is ErrorCode.CONNECTION_LOST):
            raised = self.cut(error)
            raise raised from (None if raised is error else error)

    def begin(self) -> None:
        """Note that the first chunk is about to be read."""

    def end(self, failure: Exception | None) -> None:
        """Note that the iteration has ended, or failed."""

    def settle(self) -> None:
        """End the message of a stream that failed or was left: its calls may not run."""
        if self.fold is not None:
            self.fold.close()

    def failure(self, failure: Exception) -> Exception:
        """Return the exception to raise for a failure of the transport."""
        return failure

    @abstractmethod
    def read(self, event: bytes, data: bytes) -> ObjectT | Skipped:
        """Return the object of an event, if it has one; raise what the event stands for.

        The event that ends the stream has no object, and sets `ended`.
        """

    @abstractmethod
    def cut(self, error: ModelError) -> Exception:
        """Return the exception for a body that was cut, or that holds no event stream."""


class PassedObjects(Reading[ObjectT]):
    """Reading of objects that another program has made: they pass unchanged, and are folded."""

    def take(self, chunk: object) -> Iterator[ObjectT]:
        """Yield an object; what cannot be folded passes too."""
        if self.fold is not None:
            with suppress(TypeError):
                self.fold.feed(chunk)
        yield cast("ObjectT", chunk)

    def finish(self) -> Iterator[ObjectT]:
        """Yield nothing, and raise nothing: a cut is in the message alone."""
        return iter(())

    def read(self, event: bytes, data: bytes) -> Skipped:  # noqa: ARG002 - no bytes come here
        """Return no object."""
        return SKIPPED

    def cut(self, error: ModelError) -> Exception:
        """Return the error itself."""
        return error


def parse_json(data: bytes) -> object:
    """Return the value of a JSON text, as `json.loads` does and faster.

    Raises:
        json.JSONDecodeError: the text is not valid JSON.
        UnicodeDecodeError: the bytes are not valid UTF-8.
    """
    try:
        return cast("object", from_json(data))
    except ValueError:
        # `json.loads` accepts lone surrogates, and has the exception that callers know.
        return cast("object", json.loads(data.decode()))


def member(value: object, name: str) -> object:
    """Return a member of a JSON object; None if there is no such member, or no object."""
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None


def _is_json(data: bytes) -> bool:
    if data.startswith(DONE):
        return True
    try:
        parse_json(data)
    except ValueError:
        return False
    return True


class _Read(Generic[ObjectT]):
    """The members that both kinds of streams have."""

    _reading: Reading[ObjectT]

    @property
    def message(self) -> "data_types.Message":
        """Message of everything that was received so far; its usage counts each token once.

        Raises:
            AttributeError: the stream is one of frames whose dialect is unknown.
        """
        if self._reading.fold is None:
            raise AttributeError("only frames of a known dialect have a message: name the dialect")
        return self._reading.fold.snapshot()


class ObjectStream(_Read[ObjectT]):
    """Objects of a response, read synchronously; a context manager that closes the response."""

    def __init__(self, reading: Reading[ObjectT], source: Source) -> None:
        """Keep the source; nothing is read."""
        self._reading = reading
        self._source = source
        self._objects = objects_of(reading, lambda: source)

    def __iter__(self) -> Iterator[ObjectT]:
        return self._objects

    def __next__(self) -> ObjectT:
        return next(self._objects)

    def close(self) -> None:
        """Close the response, which ends the iteration; another thread may be reading."""
        with suppress(ValueError):  # the generator is running, in another thread
            self._objects.close()
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncObjectStream(_Read[ObjectT]):
    """Objects of a response, read asynchronously; a context manager that closes the response."""

    def __init__(self, reading: Reading[ObjectT], source: AsyncSource) -> None:
        """Keep the source; nothing is read."""
        self._reading = reading
        self._source = source
        self._objects = async_objects_of(reading, lambda: source)

    def __aiter__(self) -> AsyncIterator[ObjectT]:
        return self._objects

    async def __anext__(self) -> ObjectT:
        return await anext(self._objects)

    async def close(self) -> None:
        """Close the response, which ends the iteration."""
        await self._objects.aclose()
        await self._source.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def objects_of(reading: Reading[ObjectT], open_source: Callable[[], Source]) -> Generator[ObjectT]:
    """Open a source when the first object is asked for, yield its objects, then close it."""
    source = open_source()
    try:
        reading.begun = True
        reading.begin()
        while not reading.ended:
            try:
                chunk = next(source.chunks, None)
            except Exception as failure:
                raised = reading.failure(failure)
                if raised is failure:
                    raise
                raise raised from failure
            if chunk is None:
                break
            yield from reading.take(chunk)
        yield from reading.finish()
        if reading.ended:
            drain(source)
        reading.end(None)
    except Exception as failure:
        reading.end(failure)
        raise
    finally:
        reading.settle()
        source.close()


async def async_objects_of(
    reading: Reading[ObjectT], open_source: Callable[[], AsyncSource]
) -> AsyncGenerator[ObjectT]:
    """Open a source when the first object is asked for, yield its objects, then close it."""
    source = open_source()
    try:
        reading.begun = True
        reading.begin()
        while not reading.ended:
            try:
                chunk = await anext(source.chunks, None)
            except Exception as failure:
                raised = reading.failure(failure)
                if raised is failure:
                    raise
                raise raised from failure
            if chunk is None:
                break
            for found in reading.take(chunk):
                yield found
        for found in reading.finish():
            yield found
        if reading.ended and source.has_rest:
            await adrain(source)
        reading.end(None)
    except Exception as failure:
        reading.end(failure)
        raise
    finally:
        reading.settle()
        await source.close()
