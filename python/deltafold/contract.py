"""Closed lists of the delta contract, its usage record, and deltas as pydantic fields.

In: nothing.  Out: the names that all stages of the package and the extension share.

Laws: the wire uses camelCase, Python uses snake_case. A closed list grows only with
`CONTRACT_VERSION`. An unknown count is None, never 0.
Source: `contract.schema.json` at the root of the project is the same contract in JSON Schema.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from deltafold._core import LazyDict, LazyField

CONTRACT_VERSION: Final = "1.2"
"""Version of the delta contract.

1.1 added the delta kind `part` and the part kind `provider` to the nine kinds of 1.0. 1.2 added the
delta kind `part_end`.
"""


class DeltaKind(StrEnum):
    """Kind of a `MessageDelta`."""

    START = "start"
    TEXT = "text"
    THINKING = "thinking"
    TOOL_CALL_START = "tool_call_start"
    TOOL_CALL_ARGS = "tool_call_args"
    TOOL_CALL_END = "tool_call_end"
    USAGE = "usage"
    DONE = "done"
    ERROR = "error"
    PART = "part"
    PART_END = "part_end"


class FinishReason(StrEnum):
    """Why a message ended, whatever word its provider used for it."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    PAUSE = "pause"
    ERROR = "error"
    OTHER = "other"


class ErrorCode(StrEnum):
    """Error code of a failed request or stream, independent of the provider's code."""

    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    INVALID_REQUEST = "invalid_request"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    RATE_LIMITED = "rate_limited"
    QUOTA_EXCEEDED = "quota_exceeded"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"
    CONTENT_BLOCKED = "content_blocked"
    PROTOCOL_ERROR = "protocol_error"
    CANCELLED = "cancelled"


_SLOTS: Final = ("__pydantic_extra__", "__pydantic_private__", "__pydantic_fields_set__")

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


class WireModel(BaseModel):
    """Model with camelCase names on the wire, and a serializer that leaves out default values."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    if not TYPE_CHECKING:  # a checker would take the method as leave for any attribute

        def __getattr__(self, name: str) -> object:
            """Fill pydantic's slots, which a folded model leaves empty until they are read."""
            if name not in _SLOTS:
                return super().__getattr__(name)
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


class Usage(WireModel):
    """Tokens that one request has used so far, and the cost that the provider stated.

    `input_tokens` counts the whole prompt, cached tokens included. `output_tokens` counts all
    generated tokens, reasoning included. `total_tokens` is their sum. `cost` is in US dollars. An
    unknown member is None.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    total_tokens: int | None = Field(default=None, ge=0)
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_read_tokens: int | None = Field(default=None, ge=0)
    cache_write_tokens: int | None = Field(default=None, ge=0)
    reasoning_tokens: int | None = Field(default=None, ge=0)
    details: dict[str, object] | None = None

    if not TYPE_CHECKING:  # a checker would take the attribute as leave for any
        __dict__ = LazyDict("Usage")

    @model_serializer(mode="plain")
    def _to_wire(self) -> dict[str, object]:
        wire: dict[str, object] = {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "totalTokens": self.total_tokens,
        }
        rare = {
            "cost": self.cost,
            "cacheReadTokens": self.cache_read_tokens,
            "cacheWriteTokens": self.cache_write_tokens,
            "reasoningTokens": self.reasoning_tokens,
            "details": self.details,
        }
        wire.update((name, value) for name, value in rare.items() if value is not None)
        return wire


USAGE_BLUEPRINT: Final = blueprint(Usage, **dict.fromkeys(Usage.model_fields))
"""A usage record that a fold has counted."""

make_lazy(Usage, Usage.model_fields)


def json_object(value: object) -> Mapping[str, object] | None:
    """Return the value if it is a JSON object, else None."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def json_array(value: object) -> list[object]:
    """Return the value if it is a JSON array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


class WireObject(Protocol):
    """Extension class that can be a pydantic field: it converts to the wire form and back."""

    def to_dict(self) -> dict[str, object]:
        """Return the wire form."""
        ...

    @classmethod
    def from_dict(cls, data: Mapping[str, object], /) -> Self:
        """Make the object of its wire form."""
        ...


def delta_core_schema(
    cls: type[WireObject],
    source: object,  # noqa: ARG001 - pydantic hands it over; the class itself is all that is needed
    handler: GetCoreSchemaHandler,  # noqa: ARG001 - as above
) -> CoreSchema:
    """Allow `MessageDelta` as the type of a field in a pydantic model.

    An instance passes unchanged; a mapping in wire names is read by `from_dict`. A dump in JSON
    mode is the wire form; a dump in Python mode keeps the instance. An error of `from_dict` becomes
    pydantic's `ValidationError`.
    """
    return _core_schema(cls, _delta_json_schema)


def logprobs_core_schema(
    cls: type[WireObject],
    source: object,  # noqa: ARG001 - as above
    handler: GetCoreSchemaHandler,  # noqa: ARG001 - as above
) -> CoreSchema:
    """Let `Logprobs` be the type of a field in a pydantic model, by the rules of a delta."""
    return _core_schema(cls, _logprobs_json_schema)


def _core_schema(
    cls: type[WireObject], json_schema: Callable[[CoreSchema, object], dict[str, Any]]
) -> CoreSchema:
    from_wire: Callable[[dict[str, object]], WireObject] = cls.from_dict
    wire = core_schema.no_info_after_validator_function(
        from_wire, core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())
    )
    return core_schema.json_or_python_schema(
        json_schema=wire,
        python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), wire]),
        serialization=core_schema.plain_serializer_function_ser_schema(
            _object_to_wire, when_used="json"
        ),
        metadata={"pydantic_js_functions": [json_schema]},
    )


def _object_to_wire(value: WireObject) -> dict[str, object]:
    return value.to_dict()


def _delta_json_schema(_schema: CoreSchema, _handler: object) -> dict[str, Any]:
    return {
        "title": "MessageDelta",
        "type": "object",
        "properties": {
            "runId": {"type": "string"},
            "seq": {"type": "integer", "minimum": 1},
            "kind": {"enum": [kind.value for kind in DeltaKind]},
            "payload": {"type": "object"},
            "timestamp": {"type": "string", "format": "date-time"},
            "providerRaw": {"type": "object"},
        },
        "required": ["runId", "seq", "kind", "payload", "timestamp"],
    }


def _logprobs_json_schema(_schema: CoreSchema, _handler: object) -> dict[str, Any]:
    return {
        "title": "Logprobs",
        "type": "object",
        "properties": {
            "tokens": {"type": "array", "items": {"type": ["string", "null"]}},
            "logprobs": {"type": "array", "items": {"type": ["number", "null"]}},
            "tokenIds": {"type": "array", "items": {"type": ["integer", "null"]}},
            "top": {"type": "array", "items": {"type": ["array", "null"]}},
        },
    }
