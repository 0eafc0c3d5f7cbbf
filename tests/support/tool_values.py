"""Values and exceptions of tools, drawn by chance.

In: a source of chance.  Out: a function that returns such a value or raises such an exception, and
the tools that call it in each way that a tool can be written.

Laws: nothing here ends an interpreter or waits; a function may be called once.
"""

import asyncio
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import pathlib
import random
import types
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

import pydantic

from deltafold import FileRefPart, ImagePart, ProviderPart, TextPart
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.conversation.history.sections import LevelOfDetailSections
from deltafold.conversation.history.tool_calls import ContextAttachment, HistoryToolCallResult

Function: TypeAlias = Callable[[], object]


class Named(pydantic.BaseModel):
    """Value with a name."""

    name: Any


@dataclasses.dataclass
class Record:
    """Value with one member."""

    member: Any


class Pair(NamedTuple):
    """Two values."""

    one: Any
    other: Any


class Colour(enum.Enum):
    """Value of an enumeration."""

    RED = b"\xff"


class LeaveError(BaseException):
    """Exception of a library that `except Exception` does not catch."""


class WithoutTextError(Exception):
    """Exception whose text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class LeavingTextError(Exception):
    """Exception whose text raises something that is no Exception."""

    def __str__(self) -> str:
        raise LeaveError("no text")


class OddTextError(Exception):
    """Exception whose text is no text."""

    def __str__(self) -> str:
        return self.args[0] if self.args else ""


class Raising:
    """Object that raises an exception wherever it is read.

    Args:
        error: the exception.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error

    def __iter__(self) -> NoReturn:
        raise self.error

    def __len__(self) -> int:
        raise self.error

    def __eq__(self, _: object) -> bool:
        raise self.error

    __hash__ = object.__hash__


class RaisingList(list[Any]):
    """List whose items cannot be read."""

    def __iter__(self) -> NoReturn:
        raise LookupError("no items")


class RaisingMapping(Mapping[str, object]):
    """Mapping whose members cannot be read."""

    def __getitem__(self, key: str) -> object:
        raise LookupError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(("a", "b"))

    def __len__(self) -> int:
        return 2


def deep(levels: int, wrapped: Callable[[object], object]) -> object:
    """Return a value inside of so many others."""
    found: object = "end"
    for _ in range(levels):
        found = wrapped(found)
    return found


def _endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def _texts(chance: random.Random) -> str:
    return chance.choice(
        (
            "",
            "ok",
            "a\udce9b",
            "\ud83d",
            "\x00\x1b[31m\x7f",
            "é😀" * 400,
            "x" * 70_000,
            "null",
            '{"a":',
        )
    )


_ERRORS: Final[tuple[Callable[[str], BaseException], ...]] = (
    ValueError,
    KeyError,
    StopIteration,
    StopAsyncIteration,
    GeneratorExit,
    SystemExit,
    TimeoutError,
    RecursionError,
    MemoryError,
    RuntimeError,
    ConnectionResetError,
    LeaveError,
    WithoutTextError,
    LeavingTextError,
    OddTextError,
    asyncio.CancelledError,
    lambda _: OddTextError(5),
    lambda _: SystemExit(None),
    lambda text: UnicodeDecodeError("utf-8", b"\xff", 0, 1, text),
    lambda text: ExceptionGroup(text, [ValueError(text), WithoutTextError()]),
    lambda text: BaseExceptionGroup(text, [SystemExit(1), LeaveError()]),
    lambda text: BaseExceptionGroup(text, [asyncio.CancelledError(text)]),
)
"""Exceptions that fail a call, each with a text."""

INTERRUPTS: Final[tuple[Callable[[], BaseException], ...]] = (
    KeyboardInterrupt,
    lambda: BaseExceptionGroup("g", [KeyboardInterrupt()]),
    lambda: BaseExceptionGroup("g", [ValueError(), BaseExceptionGroup("h", [KeyboardInterrupt()])]),
)
"""Exceptions that end a run."""


def error_of(chance: random.Random) -> BaseException:
    """Return an exception that fails a call."""
    return chance.choice(_ERRORS)(_texts(chance))


def _odd_part(chance: random.Random) -> object:
    """Return a part with members that pydantic did not check, or that no request can carry."""
    known: list[tuple[Callable[..., object], dict[str, Any]]] = [
        (TextPart.model_construct, {"text": chance.choice(("a\udce9b", 5, None))}),
        (ImagePart.model_construct, {"mime_type": "image/png", "data": 5}),
        (ImagePart.model_construct, {"mime_type": "image/png"}),
        (ImagePart.model_construct, {}),
        (ImagePart, {"mime_type": "image/png", "url": "https://example.com/a\udce9.png"}),
        (ImagePart, {"mime_type": "image/\udce9", "data": "AAAA"}),
        (FileRefPart.model_construct, {"path": None}),
        (FileRefPart.model_construct, {}),
        (FileRefPart, {"path": "a\udce9.pdf"}),
        (FileRefPart, {"path": "https://example.com/a\udce9.pdf", "size": 10**30}),
        (ProviderPart.model_construct, {"dialect": "openai-chat", "block": "text"}),
        (ProviderPart, {"dialect": "openai-chat", "block": {"type": "\ud800", "a": {1}}}),
    ]
    make, members = chance.choice(known)
    return make(**members)


def _leaf(chance: random.Random) -> object:
    return chance.choice(
        (
            lambda: _texts(chance),
            lambda: None,
            lambda: chance.random() < 0.5,
            lambda: chance.choice((0, -1, 2**63, -(2**64), 10**400, 10**5_000)),
            lambda: chance.choice((0.5, float("nan"), float("inf"), -0.0, 1e308)),
            lambda: complex(1, 2),
            lambda: decimal.Decimal("NaN"),
            lambda: fractions.Fraction(1, 3),
            lambda: chance.choice((b"", b"\xff\xfe", bytearray(b"\x80"), memoryview(b"\xff"))),
            lambda: dt.datetime.max.replace(tzinfo=dt.UTC),
            lambda: dt.timedelta.min,
            lambda: uuid.UUID(int=0),
            lambda: pathlib.PurePosixPath("a\udce9b"),
            lambda: Colour.RED,
            object,
            lambda: Raising(error_of(chance)),
            RaisingMapping,
            lambda: RaisingList([1]),
            lambda: error_of(chance),
            lambda: chance.choice((int, len, lambda: 5, types, NotImplemented, ...)),
            lambda: _odd_part(chance),
            lambda: iter(()),
            lambda: range(10**9),
        )
    )()


def value_of(chance: random.Random, depth: int = 0) -> object:
    """Return a value of any kind, some of them inside of others."""
    if depth > 3 or chance.random() < 0.5:
        return _leaf(chance)
    inner = partial(value_of, chance, depth + 1)
    return chance.choice(
        (
            lambda: [inner() for _ in range(chance.randrange(4))],
            lambda: (inner(), inner()),
            lambda: {"a": inner(), "\ud800": inner()},
            lambda: {5: inner(), None: inner(), (1, 2): inner()},
            lambda: collections.deque([inner()]),
            lambda: frozenset(("a", 1, None)),
            lambda: Record(inner()),
            lambda: Pair(inner(), inner()),
            lambda: Named.model_construct(name=inner()),
            lambda: types.SimpleNamespace(a=inner()),
            lambda: types.MappingProxyType({"a": inner()}),
            lambda: deep(chance.choice((50, 900, 30_000)), lambda found: [found]),
            lambda: deep(chance.choice((50, 900, 30_000)), lambda found: {"a": found}),
            _endless,
            lambda: HistoryToolCallResult(
                "other",
                "call_9",
                chance.choice((ToolExecutionStatus.SUCCESS, ToolExecutionStatus.FAILED)),
                LevelOfDetailSections.of_text(_texts(chance)),
                dt.timedelta.max,
                chance.choice(
                    ((), [ContextAttachment(ImagePart.model_construct(mime_type="image/png"))])
                ),
            ),
        )
    )()


def of_value(value: object) -> Function:
    """Return a function that returns a value."""

    def returns() -> object:
        """Return a value."""
        return value

    return returns


def of_error(error: BaseException) -> Function:
    """Return a function that raises an exception."""

    def raises() -> object:
        """Raise an exception."""
        raise error

    return raises


def function_of(chance: random.Random) -> Function:
    """Return a function that returns any value or raises any exception."""
    if chance.random() < 0.4:
        return of_error(error_of(chance))
    return of_value(value_of(chance))


# Ways to write a tool.


def itself(function: Function) -> Function:
    """Return the function."""
    return function


def awaited(function: Function) -> Function:
    """Return a coroutine function."""

    async def asynchronous() -> object:
        """Do the same in the event loop."""
        return function()

    return asynchronous


def awaited_later(function: Function) -> Function:
    """Return a function that returns an awaitable."""
    asynchronous = awaited(function)

    def returns() -> object:
        """Return what is to be awaited."""
        return asynchronous()

    return returns


def yielded(function: Function) -> Function:
    """Return a generator function, whose last value is the result."""

    def generator() -> Iterator[object]:
        """Do the same in a generator."""
        yield "progress"
        yield function()

    return generator


def returned(function: Function) -> Function:
    """Return a generator function, whose return value is the result."""

    def generator() -> Generator[object, None, object]:
        """Do the same at the end of a generator."""
        yield "progress"
        return function()

    return generator


def yielded_later(function: Function) -> Function:
    """Return an asynchronous generator function."""

    async def generator() -> AsyncIterator[object]:
        """Do the same in an asynchronous generator."""
        yield "progress"
        yield function()

    return generator


FORMS: Final[dict[str, Callable[[Function], Function]]] = {
    "synchronous": itself,
    "asynchronous": awaited,
    "awaitable": awaited_later,
    "generator": yielded,
    "generator that returns": returned,
    "asynchronous generator": yielded_later,
}
"""Ways to write a tool that does what a function does."""
