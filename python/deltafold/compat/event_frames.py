"""Frames: the JSON object of each server-sent event of a response.

In: a response of httpx or httpx2, or a stream of an SDK.  Out: dicts.

Laws: those of `object_streams.py`. Values that are no JSON objects are skipped, as `[DONE]` is.
"""

from typing import TypeAlias, cast

from deltafold.compat.object_streams import (
    DONE,
    SKIPPED,
    AsyncObjectStream,
    ObjectStream,
    Reading,
    Skipped,
    parse_json,
)
from deltafold.errors.model_error import ModelError
from deltafold.message import data_types
from deltafold.transports.responses import async_source_of, source_of

Frame: TypeAlias = dict[str, object]


def frames(
    response: object, dialect: "data_types.ProtocolName | None" = None
) -> ObjectStream[Frame]:
    """Return the frames of a response, whose events are server-sent; all members are kept.

    >>> with httpx.stream("POST", url, json=request) as response:
    ...     for frame in deltafold.compat.frames(response, "openai-chat"):
    ...         print(frame["choices"])

    Args:
        response: an unread response of httpx or httpx2, or an unread stream of an SDK.
        dialect: the wire protocol. With it, the iteration raises `ModelError` if the body ends
            before the stream does, and the stream has a `message`.

    Raises:
        MisuseError: the response was read in part, or must be awaited.
        UnknownDialectError: no dialect has this name.
        TypeError: the object is no response.
    """
    return ObjectStream(_Frames(dialect), source_of(response))


def aframes(
    response: object, dialect: "data_types.ProtocolName | None" = None
) -> AsyncObjectStream[Frame]:
    """Return the frames of an asynchronous response; as `frames` in all other respects.

    >>> async for frame in deltafold.compat.aframes(response, "openai-chat"):
    ...     print(frame["choices"])
    """
    return AsyncObjectStream(_Frames(dialect), async_source_of(response))


class _Frames(Reading[Frame]):
    def read(self, event: bytes, data: bytes) -> Frame | Skipped:  # noqa: ARG002 - the data has it
        if data.startswith(DONE):
            self.ended = True
            return SKIPPED
        value = parse_json(data)
        return cast("Frame", value) if isinstance(value, dict) else SKIPPED

    def cut(self, error: ModelError) -> Exception:
        return error
