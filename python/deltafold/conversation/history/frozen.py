"""Immutable values of entries: mappings, metadata, and copies of messages.

In: mappings and messages of a caller.  Out: values that the caller cannot change afterwards.

Law: a value that an entry hands out is immutable or a copy.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pydantic import BaseModel

from deltafold.message.messages import Message

MAX_METADATA_BYTES: Final = 2048
"""Limit of the metadata of an entry, as JSON; larger data belongs into an attachment.

>>> MAX_METADATA_BYTES
2048
"""

_MUTABLE: Final = (dict, list, BaseModel)
_SNAKE_CASE: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class FrozenMapping(Mapping[str, object]):
    """Immutable mapping with immutable contents.

    >>> mapping = FrozenMapping({"ports": ["Brest"]})
    >>> mapping["ports"]
    ('Brest',)
    """

    __slots__ = ("_members",)

    def __init__(self, members: Mapping[str, object] | None = None) -> None:
        self._members = {name: frozen(value) for name, value in (members or {}).items()}

    def __getitem__(self, name: str) -> object:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return repr(self._members)


def frozen(value: object) -> object:
    """Return an immutable copy of a value of JSON's types."""
    if isinstance(value, Mapping):
        return FrozenMapping(cast("Mapping[str, object]", value))
    if isinstance(value, list | tuple):
        return tuple(frozen(item) for item in cast("Sequence[object]", value))
    return value


def frozen_json(value: object, place: str) -> object:
    """Return an immutable copy of a value that JSON can hold and give back.

    Raises:
        ValueError: a member has another type, or is not a finite number; the error names it.
    """
    _check_json(value, place)
    return frozen(value)


_MAX_DEPTH: Final = 128
"""Bound on nested objects and lists, which is that of the arguments of a call."""

_MAX_INTEGER: Final = 10**4300
"""Bound on integers: CPython writes and reads no more digits."""


def _check_json(value: object, place: str, depth: int = 0) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError(f"{place} is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        for name, member in cast("Mapping[object, object]", value).items():
            if not isinstance(name, str):
                raise ValueError(f"{place}: the name {name!r} must be a string")  # noqa: TRY004 - of the value
            _check_json(member, f"{place}[{name!r}]", depth + 1)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(cast("Sequence[object]", value)):
            _check_json(item, f"{place}[{number}]", depth + 1)
    else:
        _check_scalar(value, place)


def _check_scalar(value: object, place: str) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{place} has a lone surrogate at {error.start}") from error
    elif not isinstance(value, int | float | None):
        raise ValueError(f"{place} must be a value of JSON, not {type(value).__name__}")  # noqa: TRY004 - of the value
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place} must be a finite number, not {value}")
    elif isinstance(value, int) and not -_MAX_INTEGER < value < _MAX_INTEGER:
        raise ValueError(f"{place} has more digits than Python writes")


def thawed(mapping: Mapping[str, object]) -> dict[str, object]:
    """Return a copy that may be changed, of JSON's own types."""
    return cast("dict[str, object]", thawed_value(mapping))


def thawed_value(value: object) -> object:
    """Return a copy of an immutable value that may be changed, of JSON's own types."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        return {name: thawed_value(member) for name, member in members.items()}
    if isinstance(value, list | tuple):
        return [thawed_value(item) for item in cast("Sequence[object]", value)]
    return value


def checked_metadata(metadata: Mapping[str, object]) -> FrozenMapping:
    """Return an immutable copy of metadata.

    Raises:
        ValueError: a key is not in snake case, a value is not JSON, or the metadata is too large;
            the error names the key.
    """
    metadata = thawed(metadata)
    sizes: dict[str, int] = {}
    for key, value in metadata.items():
        if _SNAKE_CASE.fullmatch(str(key)) is None:
            raise ValueError(f"metadata[{key!r}]: the key must be in snake_case")
        _check_json(value, f"metadata[{key!r}]")
        sizes[key] = len(json.dumps({key: value}, ensure_ascii=False).encode())
    if sum(sizes.values()) > MAX_METADATA_BYTES:
        largest = max(sizes, key=lambda key: sizes[key])
        raise ValueError(
            f"metadata has {sum(sizes.values())} bytes, most of them in {largest!r}; the maximum "
            f"is {MAX_METADATA_BYTES}; put it into an attachment"
        )
    return FrozenMapping(metadata)


def copied(message: Message) -> Message:
    """Return a copy of a message that shares no mutable value with it."""
    changed = {"parts": [_copied(part) for part in message.parts], "meta": _copied(message.meta)}
    return message.model_copy(update=changed)


def _copied(value: Any) -> Any:  # noqa: ANN401 - of the type that was given
    """Copy the containers within a value; what cannot change stays the same object.

    `copy.deepcopy` takes several times as long, because it has to expect any object.
    """
    if isinstance(value, dict):
        members = cast("dict[object, object]", value)
        return {name: _copied(member) for name, member in members.items()}
    if isinstance(value, list):
        return [_copied(item) for item in cast("list[object]", value)]
    if not isinstance(value, BaseModel):
        return value
    fields = cast("dict[str, object]", value.__dict__)
    changed = {
        name: _copied(field) for name, field in fields.items() if isinstance(field, _MUTABLE)
    }
    if not changed and value.model_config.get("frozen"):
        return value
    made = value.model_copy(update=changed)
    if made.__pydantic_extra__:
        made.__pydantic_extra__.update(_copied(dict(made.__pydantic_extra__)))
    return made


class _KeptPart:
    """Field of an attachment that keeps a copy of a part and hands out copies."""

    def __get__(self, attachment: object | None, owner: type) -> Any:  # noqa: ANN401 - of the part's type
        """Return a copy of the part, which is the same object if it cannot be changed."""
        if attachment is None:
            raise AttributeError("part")  # the field has no default value
        return _copied(vars(attachment)["part"])

    def __set__(self, attachment: object, part: object) -> None:
        """Keep a copy of the part."""
        vars(attachment)["part"] = _copied(part)


KEPT_PART: Final[Any] = _KeptPart()
"""Value of a field that keeps a part."""


class _KeptMessage:
    """Field of an entry that keeps a copy of a message and hands out copies.

    It is the default value of the field `message` of a dataclass, for which it gives `None`.
    """

    def __get__(self, entry: object | None, owner: type) -> Message | None:
        """Return a copy of the message."""
        kept = None if entry is None else kept_message(entry)
        return None if kept is None else copied(kept)

    def __set__(self, entry: object, message: Message | None) -> None:
        """Keep a copy of the message."""
        vars(entry)["message"] = None if message is None else copied(message)


KEPT_MESSAGE: Final[Any] = _KeptMessage()
"""Default value of a field that keeps a message."""


def kept_message(entry: object) -> Message | None:
    """Return the message of an entry itself, for readers that do not change it."""
    kept: Message | None = vars(entry).get("message")
    return kept
