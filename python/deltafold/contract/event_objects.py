"""Events that another package has parsed: objects of an SDK, dicts of the wire, and their likeness.

In: one event, as an SDK's iterator, a wrapper of it or a mock of a test has it.  Out: its JSON.

Laws: a member that an object was never given is left out, because SDKs have None for it. Members
that the class of an SDK does not know are kept. Names are those of the wire.
"""

import json
import reprlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time
from enum import Enum
from math import isfinite
from operator import attrgetter, methodcaller
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, cast

from deltafold.contract.kinds import json_object

_MAX_DEPTH: Final = 200
_NO_EVENTS: Final = (str, int, float, list, tuple, AbstractSet, type, ModuleType, FunctionType)
_MOCKS: Final = "unittest.mock"
_OF_MOCKS: Final = frozenset({"method_calls"})


def json_of_event(event: object, place: int) -> str:
    """Return the JSON of an event.

    Args:
        event: a dict, an object of pydantic, or an object whose attributes are the members.
        place: the number of events and chunks before it, for the error.

    Raises:
        TypeError: the object is neither a dict nor one with attributes.
    """
    if type(event).__name__ == "CompletionEvent":  # of mistralai, whose chunk is inside
        event = cast("object", getattr(event, "data", event))
    if _may_be_event(event):
        members = json_object(_plain(event, _MAX_DEPTH))
        # An object of an SDK may have nothing that its class knows, as a dict may be empty.
        may_be_empty = _is_mapping(event) or hasattr(type(event), "model_dump")
        if members or (members is not None and may_be_empty):
            kind = {"type": members["type"]} if "type" in members else {}
            return json.dumps({**kind, **members})  # the type first, as on the wire
    raise TypeError(
        f"data must be bytes, bytearray, memoryview or an event (a dict, or an object of an SDK), "
        f"not {type(event).__qualname__}: {reprlib.repr(event)} is item {place}, counted from 0"
    )


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _may_be_event(value: object) -> bool:
    return value is not None and not isinstance(value, _NO_EVENTS)


def _plain(value: object, depth: int) -> object:
    """Return a value in JSON's own types."""
    if depth == 0:
        raise TypeError(f"an event has more than {_MAX_DEPTH} levels")
    if value is None:
        return None
    for kinds, form in _FORMS:
        if isinstance(value, kinds):
            return form(value)
    members = _members(value)
    if members is not None:
        return {name: _plain(member, depth - 1) for name, member in members.items()}
    if isinstance(value, Iterable):
        return [_plain(item, depth - 1) for item in cast("Iterable[object]", value)]
    return str(value)


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


_FORMS: Final[tuple[tuple[Any, Callable[[Any], object]], ...]] = (
    (Enum, attrgetter("value")),
    (str, str),
    (bool, bool),
    (int, int),
    (float, _finite),
    ((bytes, bytearray, memoryview), _base64),
    ((date, time), methodcaller("isoformat")),
)
"""Types of values that have no members, and their forms in JSON, the first that fits."""


def _members(value: object) -> Mapping[str, object] | None:
    """Return the members of an object; None for a list and for a value that has none."""
    if isinstance(value, Mapping):
        return {
            str(name): member for name, member in cast("Mapping[object, object]", value).items()
        }
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        found: Mapping[str, object] = dump(value, exclude_unset=True, by_alias=True, warnings=False)
        return found
    if isinstance(value, list | tuple | AbstractSet):
        return None
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    held: dict[str, Any] | None = getattr(value, "__dict__", None)
    if held is None:
        return None
    # A mock has the mocks that a test gave it in a dict of its own.
    members = {**held, **held.get("_mock_children", {})}
    return {
        name: member
        for name, member in members.items()
        if not (name.startswith("_") or name in _OF_MOCKS or _says_nothing(member))
    }


def _says_nothing(member: object) -> bool:
    """Return whether a member is a method, or a mock that only came to be by being asked for."""
    if isinstance(member, FunctionType | MethodType):
        return True
    return type(member).__module__ == _MOCKS and not _members(member)
