"""Builders of an SDK's objects: the result of the SDK's own `construct_type`, made faster.

In: the type that an SDK makes of a frame, and its `construct_type`.  Out: a function from the
frame's JSON value to the object.

The SDK walks the fields of a class in Python for each frame. Here each class becomes one validator
of pydantic-core, compiled when it is first needed, that does the same in Rust.

Laws: an object equals the one of `construct_type` (`==`, `model_dump()`, `model_extra`,
`model_fields_set`). A value that a validator does not cover goes to `construct_type` itself. A
class without unions around it is constructed: its values are not checked. A union is validated, and
constructed only if the validation fails.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticUndefined, SchemaValidator, core_schema

from deltafold.compat.tagged import with_tags

Builder: TypeAlias = Callable[[object], object]
"""Makes the object of a JSON value."""


class Construct:
    """The `construct_type` of an SDK, which takes keyword arguments."""

    def __init__(self, construct_type: Callable[..., object]) -> None:
        """Keep the function."""
        self._construct_type: Final = construct_type

    def __call__(self, type_: object, metadata: object = None) -> Builder:
        """Return the SDK's own builder of a type."""
        construct_type = self._construct_type

        def construct(value: object) -> object:
            return construct_type(value=value, type_=type_, metadata=metadata)

        return construct


@cache
def builder_of(type_: object, construct: Construct) -> Builder:
    """Return the builder of a type: of a class, or of a union of classes with a discriminator.

    >>> build = builder_of(ChatCompletionChunk, Construct(openai._models.construct_type))
    >>> build({"id": "a", "choices": []}).id
    'a'
    """
    if _is_model(type_):
        return _constructor(cast("type[BaseModel]", type_), construct)
    return _union_builder(type_, construct)


def _is_model(type_: object) -> bool:
    return isinstance(type_, type) and issubclass(type_, BaseModel) and get_origin(type_) is None


@cache
def _constructor(model: type[BaseModel], construct: Construct) -> Builder:
    """Return a builder that does not check values, as the SDK's `construct` does not."""
    whole = construct(model)
    schema = _model_schema(model, construct)
    validate = None if schema is None else _compiled(schema)
    if validate is None:
        return whole

    def build(value: object) -> object:
        return validate(value) if value.__class__ is dict else whole(value)

    return build


def _compiled(schema: CoreSchema) -> Builder | None:
    """Compile a schema whose classes have other schemas than their own.

    pydantic-core uses the validator that a class has, not the schema that is given for the class.
    A setting changes this. Returns None if the installed version does not have the setting.
    """
    try:
        validator: SchemaValidator = cast("Any", SchemaValidator)(schema, _use_prebuilt=False)
    except TypeError:
        return None
    return validator.validate_python


def _union_builder(type_: object, construct: Construct) -> Builder:
    """Return a builder that selects the variant by its discriminator.

    The discriminator is a required literal of each variant, so that no other variant can be valid.
    """
    whole = construct(type_)
    variants, name = _variants(type_)
    builders: dict[object, Builder] = {}

    def build(value: object) -> object:
        if value.__class__ is not dict:
            return whole(value)
        tag = cast("dict[str, object]", value).get(name)
        if not isinstance(tag, str) or tag not in variants:
            return whole(value)
        found = builders.get(tag)
        if found is None:
            found = builders[tag] = _checked(variants[tag], construct)
        return found(value)

    return build


def _checked(model: type[BaseModel], construct: Construct) -> Builder:
    """Return a builder that validates, and constructs without validation if that fails."""
    validate = _validate(model)

    def build(value: object) -> object:
        try:
            return validate(value)
        except ValueError:
            return _constructor(model, construct)(value)

    return build


@cache
def _validate(model: type[BaseModel]) -> Builder:
    model.model_rebuild()
    validate = _compiled(with_tags(model.__pydantic_core_schema__))
    return model.__pydantic_validator__.validate_python if validate is None else validate


def _variants(type_: object) -> tuple[Mapping[str, type[BaseModel]], str]:
    """Return the variants of a union by the values of its discriminator; none if it has none."""
    bare, metadata = _unwrapped(type_)
    name = _discriminator(metadata)
    variants: dict[str, type[BaseModel]] = {}
    for variant in get_args(bare) if name else ():
        model, _ = _unwrapped(variant)
        field = model.model_fields.get(name) if _is_model(model) else None
        if field is None or not field.is_required() or field.alias is not None:
            return {}, ""
        words = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        if not words or not variants.keys().isdisjoint(words):
            return {}, ""
        variants.update(dict.fromkeys(words, model))
    return variants, name


def _unwrapped(type_: object) -> tuple[Any, tuple[object, ...]]:
    if get_origin(type_) is Annotated:
        bare, *metadata = get_args(type_)
        return bare, tuple(metadata)
    return type_, ()


def _discriminator(metadata: tuple[object, ...]) -> str:
    """Return the name that an annotation of openai or of anthropic gives."""
    for one in metadata:
        for attribute in ("discriminator", "field_name"):
            name = getattr(one, attribute, None)
            if isinstance(name, str):
                return name
    return ""


def _model_schema(model: type[BaseModel], construct: Construct) -> CoreSchema | None:
    """Return the schema that constructs a class; None where only the SDK can.

    With an alias, `construct` writes the value twice: as a field, and as an extra.
    """
    if model.model_config.get("extra") != "allow" or "__pydantic_extra__" in _hints(model):
        return None
    fields: dict[str, core_schema.ModelField] = {}
    for name, field in model.model_fields.items():
        default = _default(field)
        if field.alias is not None or default is not None:
            return None
        schema = _field_schema(field.annotation, field.metadata, construct)
        fields[name] = core_schema.model_field(
            core_schema.with_default_schema(schema, default=default)
        )
    inner = core_schema.model_fields_schema(fields, extra_behavior="allow")
    schema = core_schema.model_schema(model, inner)
    return core_schema.no_info_after_validator_function(_unset_extras, schema)


def _unset_extras(made: BaseModel) -> BaseModel:
    """Take the extras out of `model_fields_set`: `construct` has them in `model_extra` alone."""
    extras = made.__pydantic_extra__
    if extras:
        made.__pydantic_fields_set__.difference_update(extras)
    return made


def _hints(model: type[BaseModel]) -> frozenset[str]:
    """Return the names that the classes of the SDK annotate."""
    own = (base for base in model.__mro__ if base is not BaseModel and issubclass(base, BaseModel))
    return frozenset(name for base in own for name in vars(base).get("__annotations__", {}))


def _default(field: FieldInfo) -> object:
    default: object = field.get_default()
    return None if default is PydanticUndefined else default


_UNCHECKED: Final = frozenset({str, int, bool, object, Any, NoneType})
"""Types whose values `construct_type` passes through."""

_COERCED: Final[Mapping[object, CoreSchema]] = {
    int: core_schema.int_schema(),
    bool: core_schema.bool_schema(),
    float: core_schema.float_schema(),
}
"""Types whose values a union coerces."""


def _field_schema(type_: object, metadata: list[object] | None, construct: Construct) -> CoreSchema:
    """Return the schema that does what `construct_type` does with a value of this type."""
    bare, own = _unwrapped(type_)
    origin = get_origin(bare)
    if bare in _UNCHECKED or origin is Literal:
        return core_schema.any_schema()
    fallback = core_schema.no_info_plain_validator_function(construct(type_, metadata))
    if origin is list:
        item = _field_schema(get_args(bare)[0], None, construct)
        return _first_of(core_schema.none_schema(), core_schema.list_schema(item), fallback)
    if origin is Union or origin is UnionType:
        return _optional_schema(bare, fallback, construct) if not (own or metadata) else fallback
    if _is_model(bare):
        schema = _model_schema(bare, construct)
        known = () if schema is None else (schema,)
        return _first_of(core_schema.none_schema(), *known, fallback)
    return fallback


def _optional_schema(bare: object, fallback: CoreSchema, construct: Construct) -> CoreSchema:
    """Return the schema of a union, which is validated first."""
    kinds = [kind for kind in get_args(bare) if kind is not NoneType]
    if len(kinds) != 1 or len(kinds) == len(get_args(bare)):
        return fallback
    kind: Any = kinds[0]
    if kind is str or _is_literal_of_text(kind):
        # Neither is coerced, and a value that does not fit stays as it is.
        return core_schema.any_schema()
    if kind in _COERCED:
        return _first_of(core_schema.none_schema(), _COERCED[kind], core_schema.any_schema())
    validate = _validate(kind) if _is_model(kind) else TypeAdapter(kind).validator.validate_python
    valid = core_schema.no_info_plain_validator_function(cast("Any", validate))
    steps: list[CoreSchema] = [core_schema.none_schema(), valid]
    if _is_model(kind):
        schema = _model_schema(kind, construct)
        steps += [] if schema is None else [schema]
    return _first_of(*steps, fallback)


def _is_literal_of_text(kind: object) -> bool:
    return get_origin(kind) is Literal and all(isinstance(word, str) for word in get_args(kind))


def _first_of(*schemas: CoreSchema) -> CoreSchema:
    return core_schema.union_schema(list(schemas), mode="left_to_right")
