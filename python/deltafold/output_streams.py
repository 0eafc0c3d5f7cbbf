"""Streams whose answer is an output: the value so far, and the validated value at the end.

In: an `Expected` and the arguments of a stream.  Out: deltas as from every stream, the partial
output, its changes, and the output.

Laws: iterating deltas costs as much as with every stream, because the text is read when the partial
output is requested. Each byte of the answer is parsed once. The partial output is one object that
grows in place, so that following it costs as much as the changes.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, cast

from deltafold._core import MessageAssembler, PartialJson
from deltafold.outputs import Output, P, T
from deltafold.stream_core import StreamCore
from deltafold.streams import AsyncDeltaStream, DeltaStream
from deltafold.transports.sources import AsyncSource, Source

Path: TypeAlias = tuple[str | int, ...]
Change: TypeAlias = tuple[Path, Literal["set", "append"], object]
"""Change of a partial output: a path, `set` or `append`, and the value or the added text."""

_EMPTY: Final[dict[object, Callable[[], object]]] = {"object": dict, "array": list, "string": str}
"""Partial output before the first byte, by its type in JSON Schema."""


@dataclass(frozen=True, slots=True)
class Expected(Generic[T, P]):
    """Output that an answer is expected to hold.

    Attributes:
        output: the type of the output.
        tool_name: name of the tool whose arguments are the output; None if it is the text.
    """

    output: Output[T, P]
    tool_name: str | None = None


class _Following:
    """Changes of an output, read from an assembler."""

    __slots__ = ("_assembler", "_has_begun", "_head", "_is_wrapped", "_place", "_reader", "_tool")

    def __init__(self, assembler: MessageAssembler, expected: Expected[Any, Any]) -> None:
        self._assembler = assembler
        self._tool = expected.tool_name
        self._is_wrapped = expected.output.is_wrapped
        self._place = (0, 0)
        self._reader = PartialJson()
        self._head = ""
        self._has_begun = expected.tool_name is not None

    def changes(self) -> list[Change]:
        """Return the changes since the last call."""
        text, self._place = self._assembler.text_since(self._place, self._tool)
        if not text:
            return []
        if not self._has_begun:
            text = self._begin(text)
        self._reader.feed(text)
        found = self._reader.changes()
        if self._is_wrapped:
            return [(path[1:], sign, value) for path, sign, value in found if path]
        return found

    def _begin(self, text: str) -> str:
        """Return the text without a fence before the JSON; "" while more of a fence may follow."""
        head = (self._head + text).lstrip()
        if head.startswith("`") and "\n" not in head:
            self._head = head
            return ""
        self._has_begun = bool(head)
        self._head = ""
        return head.partition("\n")[2] if head.startswith("```") else head


class _Partial:
    """Partial output that grows in place."""

    __slots__ = ("_following", "value")

    def __init__(self, assembler: MessageAssembler, expected: Expected[Any, Any]) -> None:
        self._following = _Following(assembler, expected)
        empty = _EMPTY.get(expected.output.root_type)
        self.value: Any = None if empty is None else empty()

    def advance(self) -> object:
        """Apply the changes since the last call, and return the value."""
        for path, sign, added in self._following.changes():
            if path:
                self._apply(path, sign, added)
            else:
                self.value = added if sign == "set" else self.value + added
        return self.value

    def _apply(self, path: Path, sign: str, added: Any) -> None:  # noqa: ANN401 - JSON
        holder: Any = self.value
        for name in path[:-1]:
            holder = holder[name]
        key: Any = path[-1]
        if sign == "append":
            text = holder[key]
            # CPython adds to a string in place if it is referenced once.
            holder[key] = None
            text += added
            holder[key] = text
        elif type(key) is int and key == len(holder):
            holder.append(added)
        else:
            holder[key] = added


class _Outcome(Generic[T, P]):
    """Output of a stream: its type, the readers of its text, and its final value."""

    __slots__ = ("changing", "expected", "final", "partial")

    def __init__(self, expected: Expected[T, P]) -> None:
        self.expected = expected
        self.partial: _Partial | None = None
        self.changing: _Following | None = None
        self.final: list[T] = []


class _Outputs(Generic[T, P]):
    """Members that both kinds of stream share."""

    __slots__ = ()

    _core: StreamCore
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
        if outcome.partial is None:
            outcome.partial = _Partial(self._core.assembler, outcome.expected)
        return cast("P", outcome.partial.advance())

    def changes(self) -> list[Change]:
        """Return the changes of the output since the last call, as `PartialJson.changes` does.

        The first call returns the changes that build the value so far.
        """
        outcome = self._outcome
        if outcome.changing is None:
            outcome.changing = _Following(self._core.assembler, outcome.expected)
        return outcome.changing.changes()


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
        dialect: str,
        **settings: Any,  # noqa: ANN401 - those of `DeltaStream`
    ) -> None:
        super().__init__(origin, dialect, **settings)
        self._outcome = _Outcome(expected)

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
        dialect: str,
        **settings: Any,  # noqa: ANN401 - those of `AsyncDeltaStream`
    ) -> None:
        super().__init__(open_source, dialect, **settings)
        self._outcome = _Outcome(expected)

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
