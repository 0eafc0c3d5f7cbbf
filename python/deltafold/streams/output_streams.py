"""Streams whose answer is an output: the value so far, and the validated value at the end.

In: an `Expected` and the arguments of a stream.  Out: deltas as from every stream, the partial
output, its changes, and the output.

Laws: iterating deltas costs as much as with every stream, because the text is read when the partial
output is requested. Each reader parses each byte of the answer once. The partial output is one
object that grows in place, so that following it costs as much as the changes.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, cast

from deltafold._core import MessageAssembler
from deltafold.message import data_types
from deltafold.streams.delta_streams import AsyncDeltaStream, DeltaStream
from deltafold.streams.outputs import WRAPPED, Output, P, T
from deltafold.transports.sources import AsyncSource, Source

Path: TypeAlias = tuple[str | int, ...]
Change: TypeAlias = tuple[Path, Literal["set", "append"], object]
"""Change of a partial output: a path, `set` or `append`, and the value or the added text."""

_EMPTY: Final[dict[object, Callable[[], object]]] = {"object": dict, "array": list, "string": str}
"""Partial output before the first byte, by its type in JSON Schema."""


@dataclass(frozen=True)  # with slots, Python 3.11 cannot call the class with type arguments
class Expected(Generic[T, P]):
    """Output that an answer is expected to hold.

    Attributes:
        output: the type of the output.
        tool_name: name of the tool whose arguments are the output; None if it is the text.
    """

    output: Output[T, P]
    tool_name: str | None = None


class _Outcome(Generic[T, P]):
    """Output of a stream: its type, the readers of its text, and its final value."""

    __slots__ = ("changes", "empty", "expected", "final", "is_wrapped", "live")

    def __init__(self, expected: Expected[T, P], assembler: MessageAssembler) -> None:
        self.final: list[T] = []
        self.follow(expected, assembler)

    def follow(self, expected: Expected[T, P], assembler: MessageAssembler) -> None:
        """Read the output of a message from now on."""
        self.expected = expected
        self.live: Callable[[], object] = assembler.follow_json(expected.tool_name).live
        self.is_wrapped = expected.output.is_wrapped
        self.changes = assembler.follow_json(expected.tool_name).changes
        make = _EMPTY.get(expected.output.root_type)
        self.empty = None if make is None else make()


class _Outputs(Generic[T, P]):
    """Members that both kinds of stream share."""

    __slots__ = ()

    _outcome: _Outcome[T, P]

    @property
    def partial(self) -> P:
        """The output so far, not validated: members that have begun, and strings that still grow.

        All reads return one object that grows in place; copy it to keep a state. Before the first
        byte an object or array is empty. The cost is the size of the text since the last read.

        >>> async for delta in stream:
        ...     show(stream.partial.get("title", ""))
        """
        outcome = self._outcome
        value = outcome.live()
        if outcome.is_wrapped and value is not None:
            value = cast("dict[str, object]", value).get(WRAPPED)
        return cast("P", outcome.empty if value is None else value)

    def changes(self) -> list[Change]:
        """Return the changes of the output since the last call, as `PartialJson.changes` does.

        The first call returns the changes that build the value so far.
        """
        found = self._outcome.changes()
        if self._outcome.is_wrapped:
            return [(path[1:], sign, value) for path, sign, value in found if path]
        return found


class OutputStream(_Outputs[T, P], DeltaStream, Generic[T, P]):
    """Stream whose answer is an output.  Made by `Model.stream_sync(..., output=...)`.

    >>> with model.stream_sync("A soup, please.", output=Recipe) as stream:
    ...     for delta in stream:
    ...         show(stream.partial)
    ...     recipe = stream.final_output()
    """

    __slots__ = ("_outcome",)

    def __init__(
        self,
        expected: Expected[T, P],
        origin: Callable[[], Source] | Iterator[bytes],
        dialect: "data_types.ProtocolName",
        **settings: Any,  # noqa: ANN401 - those of `DeltaStream`
    ) -> None:
        super().__init__(origin, dialect, **settings)
        self._outcome = _Outcome(expected, self._core.assembler)

    def final_output(self) -> T:
        """Read to the end, validate the output once, and return it.

        Raises:
            ModelError: the stream ended in an error.
            OutputError: the answer is not the output.
        """
        outcome = self._outcome
        if not outcome.final:
            outcome.final.append(outcome.expected.output.of_message(self.final_message()))
        return outcome.final[0]


class AsyncOutputStream(_Outputs[T, P], AsyncDeltaStream, Generic[T, P]):
    """Stream whose answer is an output.  Made by `Model.stream(..., output=...)`.

    >>> async with model.stream("A soup, please.", output=Recipe) as stream:
    ...     async for delta in stream:
    ...         show(stream.partial)
    ...     recipe = await stream.final_output()
    """

    __slots__ = ("_outcome",)

    def __init__(
        self,
        expected: Expected[T, P],
        open_source: Callable[[], Awaitable[AsyncSource]],
        dialect: "data_types.ProtocolName",
        **settings: Any,  # noqa: ANN401 - those of `AsyncDeltaStream`
    ) -> None:
        super().__init__(open_source, dialect, **settings)
        self._outcome = _Outcome(expected, self._core.assembler)

    async def final_output(self) -> T:
        """Read to the end, validate the output once, and return it.

        Raises:
            ModelError: the stream ended in an error.
            OutputError: the answer is not the output.
        """
        outcome = self._outcome
        if not outcome.final:
            outcome.final.append(outcome.expected.output.of_message(await self.final_message()))
        return outcome.final[0]
