"""Bodies of refusals: bytes, text or parsed JSON in, the object that describes the error out.

In: the body of a response with an error status, or the `body` that an SDK's exception keeps.  Out:
the parsed document, its error object, and the text that a reader of logs wants.

Laws: a body may be one JSON document, server-sent events, or lines of JSON; the first document that
holds an error object counts.  Nothing in a body raises: an integer that `int` refuses stays text.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final, cast

from deltafold.contract import json_array, json_object

_MAX_CHARACTERS: Final = 64 * 1024
"""Limit of an error body; real ones (moderation details, echoed schemas) need a quarter of it."""

_MAX_INTEGER_DIGITS: Final = 300
"""Limit of an integer in an error body; a longer one stays text."""

_UNREADABLE: Final = object()


def parse_body(body: object) -> object:
    """Return the document of a body that is bytes or text, any other body as it is.

    Text that holds no JSON is returned as text.
    """
    if isinstance(body, (bytes, bytearray)):
        body = body[: 4 * _MAX_CHARACTERS].decode("utf-8", errors="replace")
    if not isinstance(body, str):
        return body
    text = body[:_MAX_CHARACTERS]
    document = _read(text)
    if document is not _UNREADABLE:
        return document
    documents = (_read(piece) for piece in _pieces(text))
    return next((one for one in documents if error_object(one) is not None), text)


def error_object(document: object) -> Mapping[str, object] | None:
    """Find the object that describes the error in the shapes that providers and SDKs hand out."""
    first = next(iter(json_array(document)), document)  # Gemini without SSE sends an array
    members = json_object(first)
    if members is None:
        return None
    for name in ("error", "Error"):
        inner = json_object(members.get(name))
        if inner is not None:
            return inner
    if any(name in members for name in ("message", "error", "code", "detail")):
        return members  # the inner object itself (openai's SDK), or a flat error
    return None


def shown_body(body: object) -> str | None:
    """Return the beginning of a body as text."""
    if isinstance(body, (bytes, bytearray)):
        body = body[: 4 * _MAX_CHARACTERS].decode("utf-8", errors="replace")
    if body is not None and not isinstance(body, str):
        body = as_json(body)
    return body[:_MAX_CHARACTERS] if body else None


def as_json(value: object) -> str:
    """Return a document as JSON text, "" where it cannot be encoded."""
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def _read(text: str) -> object:
    try:
        return cast("object", json.loads(text, parse_int=_integer))
    except (ValueError, RecursionError):
        return _UNREADABLE


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_INTEGER_DIGITS else digits


def _pieces(text: str) -> Iterator[str]:
    """Yield the data of each server-sent event, then each line that may be a JSON object."""
    data: list[str] = []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for line in (*lines, ""):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data.clear()
    yield from (line for line in lines if line.startswith("{"))
