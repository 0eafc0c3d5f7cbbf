"""A second, simpler count of the alternatives of a type, which guards the walk.

In: a type of an SDK, and the alternatives that the values hold.  Out: the classes of which an
alternative was not made.

Law: the count shares no code with the walk: it reads annotations, and the service model's JSON.
"""

import enum
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
)

import pydantic
from typing_extensions import TypeAliasType, get_type_hints, is_typeddict

from markers_sdks import Root

_WRAPPERS: Final = (Annotated, Required, NotRequired)
_UNKNOWN: Final = ("Unset", "UnrecognizedStr", "UnrecognizedInt")


def alternatives(hint: Any) -> Iterator[Any]:  # noqa: ANN401 - any type
    """Yield what may be at a place, inside of lists and maps too."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, TypeAliasType):
        yield from alternatives(hint.__value__)
    elif isinstance(origin, TypeAliasType):
        yield from alternatives(cast("Any", origin).__value__[arguments])
    elif origin in _WRAPPERS:
        yield from alternatives(arguments[0])
    elif origin in {Union, types.UnionType}:
        found = [each for argument in arguments for each in alternatives(argument)]
        is_listed = any(isinstance(each, str) for each in found)
        yield from (each for each in found if not (is_listed and each in {object, Any}))
    elif origin is Literal:
        yield from map(repr, arguments)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from alternatives(arguments[1])
    elif isinstance(origin, type) and issubclass(origin, Iterable):
        yield from alternatives(arguments[0])
    elif isinstance(hint, type) and issubclass(hint, enum.Enum):
        yield from (repr(member.value) for member in hint)
    elif not _is_no_alternative(cast("object", hint)):
        yield hint


def _is_no_alternative(hint: object) -> bool:
    name = str(getattr(hint, "__name__", ""))
    is_unknown = (
        name.startswith("Unknown")
        and hasattr(hint, "model_fields")
        and "raw" in cast("Any", hint).model_fields
    )
    return hint is type(None) or name in _UNKNOWN or is_unknown


def members(hint: Any) -> Mapping[str, object]:  # noqa: ANN401 - any class
    """Return the annotations of the members of a class, none for a plain value."""
    if is_typeddict(hint):
        return get_type_hints(hint, include_extras=True)
    if isinstance(hint, type) and issubclass(hint, pydantic.BaseModel) and hint.model_fields:
        hint.model_rebuild()
        fields: Mapping[str, Any] = hint.model_fields
        # A generic class has its arguments in its fields alone.
        return {name: field.annotation for name, field in fields.items()}
    return {}


def counted(hint: object) -> Counter[str]:
    """Return the number of the alternatives of each class below a type."""
    counts: Counter[str] = Counter()
    waiting, seen = [each for each in alternatives(hint) if members(each)], set[object]()
    while waiting:
        owner = waiting.pop()
        if owner in seen:
            continue
        seen.add(owner)
        for annotation in members(owner).values():
            found = {_leaf(each) for each in alternatives(annotation)}
            counts[f"{owner.__module__}.{owner.__name__}"] += len(found)
            waiting += [each for each in alternatives(annotation) if members(each)]
    return counts


_PLAIN: Final[Mapping[object, str]] = {
    object: "any",
    Any: "any",
    dict: "any",
    list: "any",
    tuple: "any",
    types.NoneType: "none",
    bytes: "file",
}


_FILES: Final = ("PathLike", "IOBase", "IO", "Path")


def _leaf(each: object) -> object:
    """Return what an alternative counts as: files and values without known members are one each."""
    if str(getattr(each, "__name__", each)) in _FILES or "typing.IO" in str(each):
        return "file"
    return "any" if _is_model(each) and not members(each) else _PLAIN.get(each, each)


def _is_model(each: object) -> bool:
    return isinstance(each, type) and issubclass(each, pydantic.BaseModel)


def counted_botocore(operation: str) -> Counter[str]:
    """Return the number of the alternatives of each structure in the answer of an operation."""
    loader: Any = import_module("botocore.loaders").Loader()
    service = loader.load_service_model("bedrock-runtime", "service-2")
    shapes = service["shapes"]
    counts: Counter[str] = Counter()
    waiting, seen = [service["operations"][operation]["output"]["shape"]], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for member in shapes[name].get("members", {}).values():
            target = member["shape"]
            while shapes[target]["type"] in {"list", "map"}:
                inner = shapes[target]
                target = (inner.get("member") or inner["value"])["shape"]
            counts[name] += len(shapes[target].get("enum", ())) or 1
            if shapes[target]["type"] == "structure" and not shapes[target].get("document"):
                waiting.append(target)
    return counts


def not_made(root: Root, made: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return the classes whose alternatives the values do not hold all, with both numbers."""
    counts = Counter(record for record, _, _ in made if record)
    if root.sdk == "botocore":
        wanted = counted_botocore(root.module)
        if root.form == "stream":
            del wanted["ConverseStreamResponse"]  # the response around the events
    else:
        wanted = counted(root.hint)
    return [
        f"{root.sdk} {name}: {counts[name]} of {number} alternatives"
        for name, number in sorted(wanted.items())
        if counts[name] != number
    ]
