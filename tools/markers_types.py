"""Types of the official SDKs, as one small tree of shapes.

In: pydantic classes, TypedDicts, enums, unions and literals of an SDK, and shapes of botocore.
Out: `Shape`: a record, a choice, words, a list, a map or a plain value.

Laws: the members of a record are read when they are needed, so that types may contain themselves.
An alternative that stands for "absent" or "not known to this SDK" is none.
"""

import enum
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
)

import pydantic
from pydantic.fields import FieldInfo
from typing_extensions import TypeAliasType, get_type_hints, is_typeddict


@dataclass(frozen=True)
class Plain:
    """A value without members: string, integer, number, boolean, base64, time or any."""

    kind: str


@dataclass(frozen=True)
class Words:
    """One word of a list."""

    values: tuple[str | int | bool, ...]


@dataclass(frozen=True)
class Many:
    """A list."""

    item: "Shape"


@dataclass(frozen=True)
class Mapped:
    """An object with free names."""

    value: "Shape"


@dataclass(frozen=True)
class Choice:
    """One of several shapes."""

    alternatives: tuple["Shape", ...]


@dataclass(frozen=True)
class Member:
    """A member of a record."""

    shape: "Shape"
    is_required: bool
    is_nullable: bool = False


@dataclass(frozen=True)
class Record:
    """An object with named members, by their names on the wire."""

    key: object
    name: str
    read: Callable[[], Mapping[str, Member]] = field(compare=False)

    @cached_property
    def members(self) -> Mapping[str, Member]:
        """Members by their names on the wire."""
        return self.read()

    @property
    def full_name(self) -> str:
        """Name of the class with its module; two classes of an SDK may have one name."""
        return f"{self.key.__module__}.{self.name}" if isinstance(self.key, type) else self.name

    @property
    def tag(self) -> str:
        """Word that tells this record from the others of a union, else the name of the class."""
        for name in _TAGS:
            member = self.members.get(name)
            if member is not None and isinstance(member.shape, Words):
                words = member.shape.values
                if len(words) == 1:
                    return str(words[0])
        return self.name


Shape: TypeAlias = Plain | Words | Many | Mapped | Choice | Record

_TAGS: Final = ("type", "event_type", "role", "object", "status")
_PLAIN: Final[Mapping[object, "Shape"]] = {
    str: Plain("string"),
    int: Plain("integer"),
    float: Plain("number"),
    bool: Plain("boolean"),
    bytes: Plain("base64"),
    datetime: Plain("time"),
    date: Plain("time"),
    object: Plain("any"),
    Any: Plain("any"),
    dict: Mapped(Plain("any")),
    Mapping: Mapped(Plain("any")),
    list: Many(Plain("any")),
    tuple: Many(Plain("any")),
}
_NO_ALTERNATIVE: Final = ("Unset", "UnrecognizedStr", "UnrecognizedInt")
"""Classes of generated SDKs for an absent member and for a value that the SDK does not know."""


def shape_of(hint: object) -> Shape:
    """Return the shape of a type.

    Raises:
        TypeError: the type is of no known form.
    """
    hint = unwrapped(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        return Words(tuple(cast("Iterable[str | int | bool]", arguments)))
    if origin in {Union, types.UnionType}:
        return choice_of(shape_of(argument) for argument in alternatives_of(hint))
    if is_record(hint):
        return Record(hint, cast("type", hint).__name__, lambda: members_of(hint))
    shape = _shape_of_container(origin, arguments) or _shape_of_class(hint)
    if shape is None:
        message = f"a type of no known form: {hint!r}"
        raise TypeError(message)
    return shape


def _shape_of_container(origin: object, arguments: tuple[object, ...]) -> Shape | None:
    if origin is _FILE:
        return Plain("base64")
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Mapped(shape_of(arguments[1]))
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return Many(shape_of(arguments[0]))
    return None


def _shape_of_class(hint: object) -> Shape | None:
    if not isinstance(hint, type):
        return None
    if issubclass(hint, enum.Enum):
        return Words(tuple(cast("str", member.value) for member in hint))
    if issubclass(hint, pydantic.BaseModel):
        return Plain("any")  # a class of any members
    return Plain(_OPAQUE[hint.__name__]) if hint.__name__ in _OPAQUE else None


_FILE: Final = cast("object", typing.IO)
_REQUIRED: Final[set[object]] = {Required}
_OPAQUE: Final[Mapping[str, str]] = {
    "Image": "any",
    "IOBase": "base64",
    "PathLike": "base64",
    "Path": "base64",
}
"""Classes of a request that no JSON holds."""


_ALIAS: Final = (TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType))


def unwrapped(hint: object) -> object:
    """Return a type without its annotations and aliases."""
    while True:
        origin = get_origin(hint)
        if isinstance(hint, _ALIAS):
            hint = cast("Any", hint).__value__
        elif isinstance(origin, _ALIAS):  # an alias with parameters
            hint = cast("Any", origin).__value__[get_args(hint)]
        elif origin in {Annotated, Required, NotRequired}:
            hint = get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        else:
            return hint


def alternatives_of(hint: object) -> Iterator[object]:
    """Yield the alternatives of a type, those of nested unions too."""
    hint = unwrapped(hint)
    if get_origin(hint) in {Union, types.UnionType}:
        for argument in get_args(hint):
            yield from alternatives_of(argument)
    elif not is_absent(hint):
        yield hint


def is_absent(hint: object) -> bool:
    """Return whether an alternative stands for an absent or an unknown value."""
    if hint is type(None):
        return True
    name = getattr(hint, "__name__", "")
    if name in _NO_ALTERNATIVE:
        return True
    # A generated class for a value whose tag the SDK does not know.
    return name.startswith("Unknown") and "raw" in getattr(hint, "model_fields", ())


def is_nullable(hint: object) -> bool:
    """Return whether a member may be null."""
    hint = unwrapped(hint)
    is_union = get_origin(hint) in {Union, types.UnionType}
    return hint is type(None) or (is_union and any(map(is_nullable, get_args(hint))))


def choice_of(shapes: Iterable[Shape]) -> Shape:
    """Return a choice; the words of all literals are one alternative."""
    words: dict[str | int | bool, None] = {}
    found: dict[Shape, None] = {}
    for shape in shapes:
        if isinstance(shape, Words):
            words.update(dict.fromkeys(shape.values))
        else:
            found[shape] = None
    if words:  # beside a list of words, any value stands for a word that is not listed
        found = {shape: None for shape in found if shape != Plain("any")}
        found = {Words(tuple(words)): None, **found}
    return next(iter(found)) if len(found) == 1 else Choice(tuple(found))


def is_record(hint: object) -> bool:
    """Return whether a type has named members."""
    if is_typeddict(hint):
        return True
    return (
        isinstance(hint, type) and issubclass(hint, pydantic.BaseModel) and bool(hint.model_fields)
    )


def members_of(hint: object) -> Mapping[str, Member]:
    """Return the members of a pydantic class or of a TypedDict by their names on the wire."""
    if is_typeddict(hint):
        hints = get_type_hints(hint, include_extras=True)
        required = cast("Any", hint).__required_keys__
        # The interpreter does not see `Required` in annotations that are strings.
        return {
            name: Member(
                shape_of(value),
                name in required or get_origin(value) in _REQUIRED,
                is_nullable(value),
            )
            for name, value in hints.items()
        }
    model = cast("type[pydantic.BaseModel]", hint)
    model.model_rebuild()
    found = {
        wire_name(name, info): Member(
            shape_of(info.annotation), info.is_required(), is_nullable(info.annotation)
        )
        for name, info in model.model_fields.items()
    }
    for name, member in found.items():
        # A tag has a default in some SDKs, and is always on the wire.
        if isinstance(member.shape, Words) and len(member.shape.values) == 1:
            found[name] = Member(member.shape, is_required=True)
    return found


def wire_name(name: str, info: FieldInfo) -> str:
    """Return the name of a member on the wire."""
    for extra in info.metadata:
        alias = getattr(extra, "alias", None)
        if isinstance(alias, str):
            return alias  # annotated by cohere's own class
    return info.serialization_alias or info.alias or name


def shape_of_botocore(shape: Any) -> Shape:  # noqa: ANN401 - botocore is untyped
    """Return the shape of a service model's shape."""
    kind = shape.type_name
    if getattr(shape, "is_document_type", False):
        found: Shape = Plain("any")
    elif kind == "structure" and shape.is_tagged_union:
        found = choice_of(_alternative(shape, name) for name in shape.members)
    elif kind == "structure":
        found = Record(shape.name, shape.name, lambda: _structure(shape))
    elif kind == "list":
        found = Many(shape_of_botocore(shape.member))
    elif kind == "map":
        found = Mapped(shape_of_botocore(shape.value))
    else:
        words = kind == "string" and shape.enum
        found = Words(tuple(shape.enum)) if words else Plain(_BOTOCORE[kind])
    return found


def _alternative(shape: Any, name: str) -> Record:  # noqa: ANN401 - botocore is untyped
    def read() -> Mapping[str, Member]:
        return {name: Member(shape_of_botocore(shape.members[name]), is_required=True)}

    return Record((shape.name, name), shape.name, read)


def _structure(shape: Any) -> Mapping[str, Member]:  # noqa: ANN401 - botocore is untyped
    required = set(shape.required_members)
    return {
        name: Member(shape_of_botocore(member), name in required)
        for name, member in shape.members.items()
    }


_BOTOCORE: Final[Mapping[str, str]] = {
    "string": "string",
    "integer": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "boolean": "boolean",
    "blob": "base64",
    "timestamp": "time",
}
