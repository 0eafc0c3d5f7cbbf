"""Encode request bodies as JSON, and find the member that JSON cannot hold.

In: the members of a body.  Out: its bytes, or a `ValueError` that names the path of a member.

Laws: a body that cannot be encoded is the caller's error and raises before anything is sent.  JSON
cannot hold NaN, infinities, cycles, lone surrogates and foreign objects.  The search for the member
runs only after the encoder has refused the body.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from deltafold._core import plain_json

_MAX_DEPTH: Final = 500
_MAX_PATH_CHARACTERS: Final = 120
_MAX_INTEGER_BITS: Final = 14_000
"""About 4,214 digits; `str` refuses an integer of 4,301."""


def encoded(
    body: Mapping[str, object],
    sources: Mapping[str, object] | None = None,
    *,
    opaque: bool = False,
) -> bytes:
    """Return the body as compact JSON.

    Args:
        body: the members.
        sources: values of the caller that the body contains, by name; they are searched first.
        opaque: whether foreign objects become null instead of an error: an SDK may encode
            them.

    Raises:
        ValueError: JSON cannot hold a member; the error names its path and the reason.
    """
    plain = plain_json(body)
    if plain is not None:
        return plain
    try:
        return (_OPAQUE if opaque else _COMPACT).encode(body).encode()
    except (ValueError, TypeError, RecursionError) as error:
        for name, source in {**(sources or {}), "the request body": body}.items():
            refuse_no_json(source, name)
        raise ValueError(f"the request body cannot be encoded as JSON: {error}") from error


def refuse_no_json(value: object, name: str) -> None:
    """Raise where JSON cannot hold a value.

    Raises:
        ValueError: the error names the path of the member.
    """
    waiting = [_Place(value, name, frozenset())]
    while waiting:
        place = waiting.pop()
        fault = _fault_of(place)
        if fault is not None:
            path = place.path
            if len(path) > _MAX_PATH_CHARACTERS:
                path = f"{path[:_MAX_PATH_CHARACTERS]}…"
            raise ValueError(f"{path} {fault}, which JSON cannot hold")
        waiting += place.members()


@dataclass(frozen=True, slots=True)
class _Place:
    """A value inside a body, its path, and the ids of the containers around it."""

    value: object
    path: str
    outer: frozenset[int]

    def members(self) -> Iterator["_Place"]:
        value, outer = self.value, self.outer | {id(self.value)}
        if isinstance(value, dict):
            for key, member in cast("dict[object, object]", value).items():
                yield _Place(member, f"{self.path}.{_shown(key)}", outer)
        elif isinstance(value, list | tuple):
            for index, member in enumerate(cast("list[object]", value)):
                yield _Place(member, f"{self.path}[{index}]", outer)


def _fault_of(place: _Place) -> str | None:
    value = place.value
    if id(value) in place.outer:
        return "contains itself"
    if len(place.outer) > _MAX_DEPTH:
        return f"lies deeper than {_MAX_DEPTH} levels"
    if isinstance(value, dict):
        keys = cast("dict[object, object]", value)
        return next(filter(None, (_fault_of_key(key) for key in keys)), None)
    if isinstance(value, list | tuple):
        return None
    return _fault_of_scalar(value)


def _fault_of_key(key: object) -> str | None:
    if isinstance(key, str | int | float | None):
        fault = _fault_of_scalar(key)
        return None if fault is None else f"has a key that {fault}"
    return f"has a key of type {type(key).__qualname__}"


def _fault_of_scalar(value: object) -> str | None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return f"has a lone surrogate at character {error.start}"
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {value}"
    if isinstance(value, int):
        return (
            None if value.bit_length() <= _MAX_INTEGER_BITS else "is an integer of too many digits"
        )
    return None if value is None else f"is of type {type(value).__qualname__}"


def _shown(key: object) -> str:
    return key if isinstance(key, str) and key.isprintable() else repr(key)


def _null(_value: object) -> None:
    """Return null for an object that only an SDK can encode."""


_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_OPAQUE: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_null
)
"""Encoders of bodies that are not plain: `json.dumps` with options makes a new one each time."""
