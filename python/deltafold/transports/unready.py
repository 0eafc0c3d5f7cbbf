"""Refuse objects that `stream()` cannot read, and name the object to pass instead.

In: the argument of `stream()` or `astream()`.  Out: nothing, or a `MisuseError` that names the call
that returns a response.

Laws: methods and class names decide, nothing is imported.  A refused coroutine is closed, so that
Python does not warn that it was never awaited.
"""

import json
import sys
from collections.abc import AsyncIterable, Awaitable, Coroutine, Iterable, Mapping
from io import TextIOBase
from os import PathLike
from typing import Final, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import json_object

# Suffixes of class names of the SDKs, and the call whose stream has the bytes.
_CALLS: Final = (
    ("ChatCompletionStreamManager", "client.chat.completions.create(..., stream=True)"),
    ("MessageStreamManager", "client.messages.create(..., stream=True)"),
    ("ResponseStreamManager", "client.responses.create(..., stream=True)"),
)
_STREAMING: Final = {
    "google.genai.types": "client.models.generate_content_stream(...)",
    "mistralai": "client.chat.stream(...)",
    "cohere": "client.chat_stream(...)",
    "botocore": "client.converse_stream(...)",
}
"""The call that streams, by the module of a whole answer, or its package.

Other SDKs stream by the argument `stream=True`.
"""
_LINE_ITERATORS: Final = frozenset({"iter_lines", "aiter_lines"})
_MOCKS: Final = "unittest.mock"
_OF_RESPONSES: Final = frozenset(
    {"iter_bytes", "aiter_bytes", "iter_content", "content", "response", "http_response"}
)
FED: Final = "_deltafold_fed"
"""Attribute of an HTTP response whose bytes are handed out by `transports/followed.py`."""

_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:")


def refuse_unready(response: object, entry: str) -> None:
    """Raise for an object that has to be awaited, entered or requested in another way.

    Args:
        response: the argument.
        entry: the name of the function that it was passed to.

    Raises:
        MisuseError: the error names the object to pass instead.
    """
    name = type(response).__qualname__
    _refuse_no_response(response, entry)
    if isinstance(response, Coroutine):
        cast("Coroutine[object, object, object]", response).close()
        raise MisuseError(
            f"a {name} that was not awaited: {entry}(await client.…(..., stream=True))"
        )
    for ending, call in _CALLS:
        if name.endswith(ending):
            given = f"await {call}" if "Async" in name else call
            raise MisuseError(f"a {name} parses its stream itself; pass {entry}({given})")
    if is_line_iterator(response):
        raise lines_without_ends()
    _refuse_whole(response, entry)
    if isinstance(response, Iterable | AsyncIterable):
        return
    if isinstance(response, Awaitable):
        raise MisuseError(f"a {name} that was not awaited: {entry}(await …)")
    for method, keyword in (("__enter__", "with"), ("__aenter__", "async with")):
        if hasattr(type(response), method) and not _has_status(response):
            raise MisuseError(
                f"a {name} that was not entered: {keyword} … as response: {entry}(response)"
            )


def _refuse_no_response(response: object, entry: str) -> None:
    if response is None:
        raise MisuseError(
            f"None is no response: what was called for {entry}(…) returned nothing, such as a "
            "function without return, or a mock without an answer"
        )
    name = type(response).__qualname__
    if isinstance(response, PathLike) and not isinstance(response, Iterable):  # a mock is both
        raise MisuseError(f"a {name} is no body: pass its bytes, path.read_bytes()")
    if isinstance(response, TextIOBase):
        raise MisuseError(f"a {name} gives text: open the file with mode 'rb'")


def _refuse_whole(response: object, entry: str) -> None:
    """Raise for an answer that came whole, and that an SDK has parsed."""
    kind = type(response)
    name, module = kind.__qualname__, kind.__module__
    if "ResponseMetadata" in (json_object(response) or ()):
        name, module = "whole answer of boto3", "botocore"
    elif not hasattr(kind, "model_fields"):
        return
    package = module.partition(".")[0]
    call = _STREAMING.get(module) or _STREAMING.get(package, "client.…(..., stream=True)")
    call = f"await {call}" if entry == "astream" else call
    raise MisuseError(f"a {name} is parsed already: ask for the stream, {entry}({call})")


def is_mocked_iterator(response: object) -> bool:
    """Return whether an object is a mock of a stream's iterator.

    A mock has every attribute that it is asked for. One that a test gave no method or member of an
    HTTP response stands for what is iterated.
    """
    return type(response).__module__ == _MOCKS and not any(
        was_given(response, name) for name in _OF_RESPONSES
    )


def was_given(response: object, name: str) -> bool:
    """Return whether a member of an object is more than what a mock makes when it is asked."""
    if type(response).__module__ != _MOCKS or name in vars(response):
        return True
    child = cast("Mapping[str, object]", getattr(response, "_mock_children", {})).get(name)
    return child is not None and _says_something(child)


def _says_something(child: object) -> bool:
    """Return whether a test has given a mock a value to return, an effect or a member."""
    if type(child).__module__ != _MOCKS:
        return True
    held = vars(child)
    default = cast("object", sys.modules[_MOCKS].DEFAULT)
    if held.get("_mock_return_value", default) is not default or held.get("_mock_side_effect"):
        return True
    return any(map(_says_something, held.get("_mock_children", {}).values()))


def is_line_iterator(response: object) -> bool:
    """Return whether an object is a generator that httpx or requests makes for lines."""
    return getattr(response, "__name__", None) in _LINE_ITERATORS


def _has_status(response: object) -> bool:
    return hasattr(response, "status_code") or hasattr(response, "status")


def refuse_begun(response: object, entry: str) -> None:
    """Raise for an HTTP response that was read in part, or closed before it was read.

    Raises:
        MisuseError: the rest would be half a message, or there is none.
    """
    if _was_begun(response):
        raise MisuseError(
            f"a part of this {type(response).__qualname__} was read already, and the rest is half "
            f"a message: pass it to {entry}() before anything reads it"
        )
    if _was_closed(response):
        raise MisuseError(
            f"this {type(response).__qualname__} was closed before {entry}() read it: pass it "
            "while it is open, inside of its with block"
        )


def _was_closed(response: object) -> bool:
    """Return whether a response of httpx was closed without its content."""
    if not hasattr(response, "is_stream_consumed") or hasattr(response, "_content"):
        return False
    return getattr(response, "is_closed", False) is True


def _was_begun(response: object) -> bool:
    if hasattr(response, FED) and was_given(response, FED):
        return False
    if hasattr(response, "is_stream_consumed"):  # httpx; its `read()` keeps all
        consumed = cast("bool", getattr(response, "is_stream_consumed", False))
        return consumed and not hasattr(response, "_content")
    if hasattr(response, "iter_content"):  # requests; urllib3 shows no chunk that was read whole
        raw = getattr(response, "raw", None)
        read = getattr(raw, "_fp_bytes_read", 0) or getattr(raw, "chunk_left", None) is not None
        over = getattr(response, "_content_consumed", False)
        return bool(read or over) and getattr(response, "_content", False) is False
    content = getattr(response, "content", None)
    if hasattr(content, "iter_any"):  # aiohttp: bytes taken out of the reader
        return bool(getattr(content, "_cursor", 0))
    return False


def lines_without_ends() -> MisuseError:
    """Make the error for the lines of a body that have lost their ends."""
    return MisuseError(
        "lines without their ends, as iter_lines() returns them, cannot be decoded: pass the "
        "response itself to stream() or astream()"
    )


class LineWatch:
    """Observer of the first two chunks of a body, which may be lines that have lost their ends."""

    __slots__ = ("_first", "is_over")

    def __init__(self) -> None:
        self._first: bytes | bytearray | None = None
        self.is_over = False

    def __call__(self, chunk: object) -> None:
        """Look at a chunk; empty ones and views change nothing.

        Raises:
            MisuseError: the first two chunks are lines.
        """
        if self.is_over or isinstance(chunk, memoryview):
            return
        if not isinstance(chunk, bytes | bytearray):
            self.is_over = True  # an event
            return
        if not chunk:
            return
        if self._first is not None:
            self.is_over = True
            refuse_lines(self._first, chunk)
        elif b"\n" in chunk or b"\r" in chunk:
            self.is_over = True
        else:
            self._first = chunk


def refuse_lines(first: bytes | bytearray, second: bytes | bytearray) -> None:
    """Raise if the first two chunks of a body are lines without their ends.

    A chunk may end anywhere. But no line begins directly after a complete line without a line end.

    Raises:
        MisuseError: both are lines.
    """
    begins = _FIELDS if first.startswith(_FIELDS) else b"{"
    if second.startswith(begins) and _is_whole_line(first):
        raise lines_without_ends()


def _is_whole_line(chunk: bytes | bytearray) -> bool:
    """Return whether a chunk is one complete line of events or of JSON, without its end."""
    if b"\n" in chunk or b"\r" in chunk:
        return False
    if chunk.startswith((b"event:", b"id:", b"retry:")):
        return True
    text = chunk.removeprefix(b"data:").strip()
    if text == b"[DONE]":
        return True
    try:
        return isinstance(json.loads(text), Mapping)
    except (ValueError, RecursionError):
        return False
