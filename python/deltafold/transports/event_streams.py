"""Answers of boto3 and aiobotocore as the HTTP bodies below their parsed events.

In: the answer of an operation with an event stream, or the event stream in it.  Out: the body,
with the status and the headers where the whole answer is given, and the dialect of the operation.

Laws: nothing is imported; the module of a class decides. An object of another package in the place
of the event stream, such as that of a tracer, is none: its events are read. An event stream is
refused from which an event was read.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import json_object
from deltafold.transports.headers import header_text

if TYPE_CHECKING:
    from deltafold.contract.names import ProtocolName

_MODULES: Final = frozenset({"botocore.eventstream", "aiobotocore.eventstream"})
_MEMBERS: Final = ("stream", "body")
"""Members of an answer that have its event stream.

Source: the service description of bedrock-runtime in botocore 1.43.
"""
_FACTS: Final = "ResponseMetadata"
_OPERATIONS: Final[Mapping[str, "ProtocolName"]] = {
    "ConverseStream": "bedrock-converse",
    "InvokeModelWithResponseStream": "bedrock-invoke",
}
_OK: Final = 200


class EventStreamBody(NamedTuple):
    """The body below an event stream of botocore.

    Attributes:
        raw: the response of urllib3, or of aiohttp below aiobotocore.
        close: closes the body.
        status: the HTTP status, 200 where the event stream alone was given.
        headers: the headers of the response, names in lower case; {} without the whole answer.
        dialect: the dialect of the operation, None for another service.
        is_awaited: whether the body is asynchronous.
    """

    raw: Any
    close: Callable[[], object]
    status: int
    headers: Mapping[str, str]
    dialect: "ProtocolName | None"
    is_awaited: bool


def event_stream_body(response: object) -> EventStreamBody | None:
    """Return the body of an answer or of its event stream; None for other objects.

    Raises:
        MisuseError: an event was read already, or this version of botocore hides the bytes.
    """
    stream = streamed_member(response)
    kind = type(stream)
    if kind.__module__ not in _MODULES:
        return None
    events = cast("object", getattr(stream, "_event_generator", None))
    # botocore 1.43: the only member of EventStream with the unparsed events.
    raw = cast("object", getattr(stream, "_raw_stream", None))
    if raw is None:
        raise MisuseError("this botocore hides the bytes of its streams: pass an httpx client")
    if _has_begun(events):
        raise MisuseError(
            f"a part of this {kind.__qualname__} was read already, and the rest is half a message: "
            "pass it before anything reads it"
        )
    status, headers = (_OK, {}) if stream is response else _facts(response)
    operation = cast("object", getattr(stream, "_operation_name", None))
    dialect = _OPERATIONS.get(operation) if isinstance(operation, str) else None
    close = cast("Any", stream).close
    return EventStreamBody(raw, close, status, headers, dialect, hasattr(kind, "__aiter__"))


def streamed_member(response: object) -> object:
    """Return what an answer of botocore has as its stream; other objects are returned unchanged."""
    answer = json_object(response)
    if answer is None or _FACTS not in answer:
        return response
    streams = (answer.get(name) for name in _MEMBERS)
    return next((one for one in streams if _is_stream(one)), response)


def _is_stream(member: object) -> bool:
    return hasattr(member, "__iter__") and not isinstance(member, str | Mapping)


def _has_begun(events: object) -> bool:
    """Return whether the generator of the events has yielded or ended."""
    for kind in ("gi", "ag"):
        if getattr(events, f"{kind}_suspended", False):
            return True
        if getattr(events, f"{kind}_frame", events) is None:
            return True
    return False


def _facts(answer: object) -> tuple[int, dict[str, str]]:
    facts = cast("Mapping[str, Any]", answer)[_FACTS]
    pairs = facts.get("HTTPHeaders", {}).items()
    headers = {header_text(name).lower(): header_text(value) for name, value in pairs}
    return facts.get("HTTPStatusCode", _OK), headers
