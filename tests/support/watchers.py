"""Code that watches the streams of an SDK, in the shapes that tracing packages have.

In: a client of openai or anthropic.  Out: the same client, and what its watcher has seen.

The shapes: a proxy that a method of the client returns (as wrapt makes it), an object that passes
on the members of the stream, a subclass of the stream that the client is asked to make, and a
stream whose iterator was replaced by a generator.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import new_class
from typing import Any, Final, get_origin


@dataclass
class Seen:
    """What a watcher saw: the objects, and how each stream ended."""

    items: list[object] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    def end(self, how: str) -> None:
        """Note the end of a stream that has none yet."""
        if not self.ends:
            self.ends.append(how)


class Passing:
    """An object that passes on the members of a stream, and sees its objects."""

    def __init__(self, stream: Any, seen: Seen) -> None:  # noqa: ANN401 - of any SDK
        self.__dict__["__wrapped"] = stream
        self.__dict__["seen"] = seen

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the stream
        return getattr(self.__dict__["__wrapped"], name)

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        try:
            item = next(self.__dict__["__wrapped"])
        except StopIteration:
            self.seen.end("whole")
            raise
        except BaseException as error:
            self.seen.end(type(error).__name__)
            raise
        self.seen.items.append(item)
        return item

    def __aiter__(self) -> AsyncIterator[object]:
        return self

    async def __anext__(self) -> object:
        try:
            item = await anext(self.__dict__["__wrapped"])
        except StopAsyncIteration:
            self.seen.end("whole")
            raise
        except BaseException as error:
            self.seen.end(type(error).__name__)
            raise
        self.seen.items.append(item)
        return item

    def close(self) -> object:
        """Close the stream, which an asynchronous one must await."""
        self.seen.end("closed")
        return self.__dict__["__wrapped"].close()


class Proxy(Passing):
    """A proxy: it says that it has the class of the stream, and gives the stream new members."""

    @property
    def __wrapped__(self) -> object:
        """The stream."""
        return self.__dict__["__wrapped"]

    @property  # type: ignore[misc]  # a proxy says that it has another class
    def __class__(self) -> Any:  # noqa: ANN401 # pyright: ignore[reportIncompatibleMethodOverride]
        """The class of the stream."""
        return self.__dict__["__wrapped"].__class__

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["__wrapped"], name, value)


async def _awaited(made: AsyncIterator[object], seen: Seen) -> AsyncIterator[object]:
    try:
        async for item in made:
            seen.items.append(item)
            yield item
    except Exception as error:
        seen.end(type(error).__name__)
        raise
    else:
        seen.end("whole")
    finally:
        seen.end("closed")


def _waited(made: Iterator[object], seen: Seen) -> Iterator[object]:
    try:
        for item in made:
            seen.items.append(item)
            yield item
    except Exception as error:
        seen.end(type(error).__name__)
        raise
    else:
        seen.end("whole")
    finally:
        seen.end("closed")


def _generated(stream: Any, seen: Seen) -> Any:  # noqa: ANN401 - of any SDK
    """Replace the iterator of a stream by a generator, and its method `close`."""
    inner, close = stream._iterator, stream.close

    def closed() -> object:
        seen.end("closed")
        return close()

    is_async = hasattr(stream, "__aiter__")
    stream._iterator = _awaited(inner, seen) if is_async else _waited(inner, seen)
    stream.close = closed
    return stream


_SUPER: Final[Any] = super


def _subclass(base: Any, seen: Seen) -> type:  # noqa: ANN401 - a class with its parameters
    """Make a subclass of a stream that sees what the class over it makes."""
    watching: Any = _awaited if hasattr(get_origin(base) or base, "__aiter__") else _waited

    def make(stream: object) -> object:
        over: Any = _SUPER(made, stream)
        return watching(over.__stream__(), seen)

    made: Any = new_class("Watched", (base,), {}, lambda names: names.update(__stream__=make))
    kind: type = made
    return kind


def _with_results(client: Any, change: Callable[[Any], Any]) -> None:  # noqa: ANN401 - of any SDK
    """Change what the method `request` of a client returns."""
    request = client.request
    if type(client).__name__.startswith("Async"):

        async def send(*given: Any, **options: Any) -> Any:  # noqa: ANN401 - of the SDK
            return change(await request(*given, **options))

        client.request = send
    else:

        def wait(*given: Any, **options: Any) -> Any:  # noqa: ANN401 - of the SDK
            return change(request(*given, **options))

        client.request = wait


def _with_class(client: Any, seen: Seen) -> None:  # noqa: ANN401 - of any SDK
    request = client.request

    def asked(*given: Any, **options: Any) -> Any:  # noqa: ANN401 - of the SDK
        return request(*given, **{**options, "stream_cls": _subclass(options["stream_cls"], seen)})

    async def awaited(*given: Any, **options: Any) -> Any:  # noqa: ANN401 - of the SDK
        return await asked(*given, **options)

    client.request = awaited if type(client).__name__.startswith("Async") else asked


_SHAPES: Final[Mapping[str, Callable[[Any, Seen], None]]] = {
    "proxy": lambda client, seen: _with_results(client, lambda stream: Proxy(stream, seen)),
    "passing": lambda client, seen: _with_results(client, lambda stream: Passing(stream, seen)),
    "generator": lambda client, seen: _with_results(client, lambda made: _generated(made, seen)),
    "subclass": _with_class,
}

SHAPES: Final = tuple(_SHAPES)


def watch(shape: str, client: Any) -> Seen:  # noqa: ANN401 - of any SDK
    """Let the streams of a client be watched, and return what will be seen."""
    seen = Seen()
    _SHAPES[shape](client, seen)
    return seen
