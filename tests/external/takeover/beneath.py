"""Iterables that fold the objects of an SDK and hand on the same objects.

In: what an assembler reads: a stream of openai or anthropic, or the iterable that a test has put in
its place.  Out: the same objects, in the same order; their counts in `COUNTED`.

Laws: each object goes through `deltafold.stream` before the assembler sees it. An answer that ends
in an error raises the `ModelError` where the assembler would see the end. The folded text must be
the text of the objects. The hook below a real stream is the iterator of the SDK's `Stream`. A test
that puts another iterable in place of a stream is hooked where the project reads it (`readings`).
"""

from collections import Counter, deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from functools import wraps
from typing import Any, Final

import anthropic
import openai
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

import deltafold
from any_name import AnyName

COUNTED: Final = Counter[str]()
"""Streams, objects, and the codes of the errors in which answers ended."""

_HOLDS: Final = "_folded_by_the_check"


def folded(objects: Iterable[Any], dialect: AnyName) -> Iterator[Any]:
    """Yield the objects of a stream, each after it was folded."""
    passed, texts = deque[Any](), list[str]()
    with deltafold.stream(objects, dialect, tee=passed.append) as stream:
        COUNTED["streams"] += 1
        for _ in stream:
            while passed:
                yield _seen(passed.popleft(), texts)
        while passed:
            yield _seen(passed.popleft(), texts)
        _hold(_ending(stream), texts)


async def afolded(objects: AsyncIterable[Any], dialect: AnyName) -> AsyncIterator[Any]:
    """Yield the objects of an asynchronous stream, each after it was folded."""
    passed, texts = deque[Any](), list[str]()

    async def keep(one: object) -> None:
        passed.append(one)

    async with deltafold.astream(objects, dialect, tee=keep) as stream:
        COUNTED["streams"] += 1
        async for _ in stream:
            while passed:
                yield _seen(passed.popleft(), texts)
        while passed:
            yield _seen(passed.popleft(), texts)
        _hold(_ending(stream), texts)


def _ending(stream: deltafold.DeltaStream | deltafold.AsyncDeltaStream) -> deltafold.Message:
    """Return the message of a stream that was read to its end.

    Raises:
        ModelError: the answer ended in an error.
    """
    if stream.error is not None:
        COUNTED[f"ended: {stream.error.code}"] += 1
        raise stream.error
    COUNTED["ended: whole"] += 1
    return stream.snapshot()


def _seen(one: Any, texts: list[str]) -> Any:
    """Count an object and note its text, as a program that joins it by hand would."""
    COUNTED["objects"] += 1
    for choice in (getattr(one, "choices", None) or ())[:1]:
        texts.extend(getattr(choice.delta, name, None) or "" for name in ("content", "refusal"))
    if getattr(one, "type", None) in {"response.output_text.delta", "response.refusal.delta"}:
        texts.append(one.delta)
    if getattr(one, "type", None) == "content_block_delta":
        texts.append(getattr(one.delta, "text", None) or "")
    return one


def _hold(message: deltafold.Message, texts: list[str]) -> None:
    """Compare the folded text with the text of the objects."""
    joined = "".join(texts)
    if message.text != joined:
        raise AssertionError(f"the fold has the text {message.text!r}, its objects {joined!r}")


_DIALECTS: Final[tuple[tuple[object, str], ...]] = (
    (ChatCompletionChunk, "openai-chat"),
    (ResponseStreamEvent, "openai-responses"),
    (anthropic.types.RawMessageStreamEvent, "anthropic-messages"),
    (anthropic.types.beta.BetaRawMessageStreamEvent, "anthropic-messages"),
)
"""The dialect of the streams whose objects are of a type."""


def fold_streams() -> None:
    """Fold the objects of each stream that openai and anthropic make from now on."""
    for sdk in (openai, anthropic):
        _fold_iterator(sdk.Stream, folded)
        _fold_iterator(sdk.AsyncStream, afolded)


def _fold_iterator(kind: Any, through: Callable[[Any, str], object]) -> None:
    """Let the streams of a class iterate over folded objects."""
    made = kind.__init__

    @wraps(made)
    def make(self: Any, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        dialect = next((name for of, name in _DIALECTS if of == self._cast_to), None)
        if dialect is not None:
            self._iterator = through(self._iterator, dialect)
            setattr(self, _HOLDS, True)

    kind.__init__ = make


def beneath(objects: Any, dialect: str) -> Any:
    """Return an iterable over the same objects; a whole answer and a folded stream are left."""
    if getattr(objects, _HOLDS, False) is True or hasattr(type(objects), "model_fields"):
        return objects
    if isinstance(objects, AsyncIterable):
        return afolded(objects, dialect)
    return folded(objects, dialect) if isinstance(objects, Iterable) else objects
