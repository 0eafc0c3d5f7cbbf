"""Deltas and log probabilities as the types of pydantic fields.

In: an extension class that converts to the wire form and back.  Out: its core schema.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from deltafold.contract.kinds import DeltaKind


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
