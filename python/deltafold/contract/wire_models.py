"""Base of the pydantic models whose wire form has camelCase names, and their lazy construction.

In: a model class.  Out: a blueprint, from which the extension builds the models that it folds.

Laws: a model that a fold has built equals a validated one. With pydantic 2.14 or later, the
validator and the serializer of a class are made when one of them is first used.
"""

from collections.abc import Callable, Iterable
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pydantic import VERSION, BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from deltafold._core import LazyField
from deltafold.contract.short_repr import ShortRepr

DEFER_BUILD: Final = tuple(int(number) for number in VERSION.split(".")[:2]) >= (2, 14)
"""Whether pydantic makes validators and serializers when they are first used.

Earlier versions cannot write a model inside another value before its class was used by itself
(`MockValSer`), and two threads that use a class first at the same moment break it.
"""

_SLOTS: Final = ("__pydantic_extra__", "__pydantic_private__", "__pydantic_fields_set__")

_FILLING: Final = RLock()
"""Held while slots are filled. The garbage collector may run code that fills those of another."""

_SET_FIELDS: Final[Callable[[BaseModel, object], None]] = BaseModel.__dict__["__dict__"].__set__


class Blueprint(NamedTuple):
    """Builder of pydantic models from fields that are known to be valid, at the cost of one dict.

    `model_construct` walks over all aliases and defaults, which costs more than the whole fold of a
    short message. The extension builds the models that it folds from the same blueprints.
    """

    cls: type[BaseModel]
    fields: dict[str, object]
    """Default values of the fields, without the fields that are computed when first read."""

    def build(self, fields: dict[str, Any]) -> Any:  # noqa: ANN401 - a model of `cls`
        """Make the model; the dict belongs to it from then on."""
        model = self.cls.__new__(self.cls)
        _SET_FIELDS(model, {**self.fields, **fields})
        return model


def blueprint(cls: type[BaseModel], **fields: object) -> Blueprint:
    """Return the blueprint of a model class, given the default values of its fields."""
    return Blueprint(cls, {name: fields[name] for name in cls.model_fields if name in fields})


def make_lazy(cls: type[BaseModel], names: Iterable[str]) -> None:
    """Let the fields of a class be made when they are first read, if the extension made the model.

    The class also has a `LazyDict` as its `__dict__`, so that pydantic sees all fields.
    """
    for name in names:
        setattr(cls, name, LazyField(cls.__name__, name))


class LateModel(BaseModel):
    """Model whose validator and serializer are made when one of them is first used."""

    model_config = ConfigDict(defer_build=DEFER_BUILD)

    if not TYPE_CHECKING:  # a checker has the signature of pydantic

        @classmethod
        def model_json_schema(cls, *args: object, **options: object) -> dict[str, Any]:
            """Return the JSON Schema, as pydantic does.

            pydantic looks whether the class is built, and builds it then. If another thread builds
            it in between, pydantic fails.
            """
            cls.model_rebuild(raise_errors=False)
            return super().model_json_schema(*args, **options)


class WireModel(ShortRepr, LateModel):
    """Model with camelCase names on the wire, and a serializer that leaves out default values."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )

    if not TYPE_CHECKING:  # a checker would take the method as leave for any attribute

        def __getattr__(self, name: str) -> object:
            """Fill pydantic's slots, which a folded model leaves empty until they are read."""
            if name not in _SLOTS:
                return super().__getattr__(name)
            with _FILLING:
                try:
                    return object.__getattribute__(self, name)  # another thread was first
                except AttributeError:
                    allows_extra = self.model_config.get("extra") == "allow"
                    set_slot = object.__setattr__
                    set_slot(self, "__pydantic_extra__", {} if allows_extra else None)
                    set_slot(self, "__pydantic_private__", None)
                    set_slot(self, "__pydantic_fields_set__", set(type(self).model_fields))
                    return object.__getattribute__(self, name)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe the fields in either mode: of the serializer pydantic knows only "an object"."""
        return handler(_without_serializer(core_schema))


def _without_serializer(schema: CoreSchema) -> CoreSchema:
    members: dict[str, Any] = {**schema}
    members.pop("serialization", None)
    if members["type"].startswith("function-"):  # a validator stands around the model
        members["schema"] = _without_serializer(members["schema"])
    return cast("CoreSchema", members)
