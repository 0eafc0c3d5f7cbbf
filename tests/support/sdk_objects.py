"""Comparison of the objects that an SDK's own stream yields with those of `deltafold.compat`.

In: the iterator of either.  Out: `Read`, the objects and the exception that ended them.

Law: equal objects have the same class, the same members, set members and extras, and dump to the
same values.
"""

import json
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from pydantic import BaseModel

from corpus import CORPUS, FIXTURES

CUT = "a body that ends before its stream raises"
NO_STREAM = "a body that is no stream raises the error that it has"
LAST_EVENT = "the last event needs no blank line after it"
ERROR_FIELD = "an error in a field `error` raises; the SDK skips this field"

LISTED_RECORDINGS: dict[str, dict[str, str]] = {
    "openai-chat": {
        "ruby-llm__chat_with_extended_thinking_gpustack_qwen3_"
        "streams_thinking_content_when_available": ERROR_FIELD,
    },
    "openai-responses": {},
    "anthropic-messages": {
        "anthropic-sdk__fallback_credit_response": LAST_EVENT,
        "anthropic-sdk__incomplete_partial_json_response": LAST_EVENT,
    },
}
"""Recordings whose objects differ from those of the SDK, with the reason."""


class Read(NamedTuple):
    """Items of an iteration, and the exception that ended it."""

    objects: list[object]
    raised: Exception | None


def read(objects: Iterable[object]) -> Read:
    """Iterate to the end."""
    found: list[object] = []
    try:
        found.extend(objects)
    except Exception as raised:  # noqa: BLE001 - compared with the other's
        return Read(found, raised)
    return Read(found, None)


async def aread(objects: AsyncIterable[object]) -> Read:
    """Iterate to the end."""
    found: list[object] = []
    try:
        async for one in objects:
            found.append(one)  # noqa: PERF401 - what came before an exception counts
    except Exception as raised:  # noqa: BLE001 - compared with the other's
        return Read(found, raised)
    return Read(found, None)


def difference(theirs: Read, ours: Read) -> str | None:
    """Return the first difference, None if there is none."""
    for index, (one, other) in enumerate(zip(theirs.objects, ours.objects, strict=False)):
        if shape(one) != shape(other):
            return f"object {index}: {one!r} and {other!r}"
    if len(theirs.objects) != len(ours.objects):
        return f"{len(theirs.objects)} and {len(ours.objects)} objects"
    if facts(theirs.raised) != facts(ours.raised):
        return f"{theirs.raised!r} and {ours.raised!r}"
    return None


def shape(value: object) -> object:
    """Return everything that can be seen of an object."""
    if isinstance(value, BaseModel):
        held = {name: shape(one) for name, one in vars(value).items()}
        extra = list((value.model_extra or {}).items())
        return (type(value), list(held.items()), extra, value.model_fields_set, repr(value))
    if isinstance(value, list):
        return [shape(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        return {name: shape(one) for name, one in cast("dict[str, object]", value).items()}
    return (type(value), value)


def facts(raised: Exception | None) -> object:
    """Return what a handler sees of an exception."""
    if raised is None:
        return None
    known = ("message", "body", "code", "type", "param", "status_code", "request_id")
    members = {name: getattr(raised, name, None) for name in known}
    return (type(raised), str(raised), members, type(raised.__cause__))


def fixtures(dialect: str) -> Iterator[tuple[str, bytes]]:
    """Yield the fixtures of a dialect."""
    for wire in sorted(FIXTURES.glob(f"{dialect}/*/wire.*")):
        yield wire.parent.name, wire.read_bytes()


def recordings(dialect: str) -> Iterator[tuple[str, bytes]]:
    """Yield the recordings of a dialect."""
    with (CORPUS / "manifest.jsonl").open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line["dialect"] == dialect:
                yield line["id"].partition("/")[2], (CORPUS / line["file"]).read_bytes()


def differences(
    streams: Iterable[tuple[str, bytes]],
    theirs: Callable[[Sequence[bytes]], Iterable[object]],
    ours: Callable[[Sequence[bytes]], Iterable[object]],
    listed: Mapping[str, str],
) -> dict[str, str | None]:
    """Return the difference of each stream that differs, or that is listed and does not."""
    found = {name: difference(read(theirs([body])), read(ours([body]))) for name, body in streams}
    return {name: how for name, how in found.items() if (how is None) == (name in listed)}


def dumps(objects: Iterable[object]) -> list[object]:
    """Return the dumps of models, of the members that were set."""
    models = [one for one in objects if isinstance(one, BaseModel)]
    return [one.model_dump(exclude_unset=True, warnings=False) for one in models]
