"""Types of the fields of entries: how pydantic reads and writes each one.

In: values of an entry, or their JSON.  Out: the same values, or their JSON with camelCase names.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, cast

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, PlainValidator, TypeAdapter
from pydantic.alias_generators import to_camel

from deltafold.conversation.history.frozen import thawed_value
from deltafold.conversation.history.sections import LevelOfDetailSections
from deltafold.message.messages import Message

WIRE: Final = ConfigDict(
    alias_generator=to_camel,
    validate_by_name=True,
    validate_by_alias=True,
    extra="forbid",
    ser_json_timedelta="float",
)
"""Configuration of every record: camelCase in JSON, unknown members are errors."""

JsonMapping = Annotated[Mapping[str, object], PlainSerializer(thawed_value)]
"""Type of a field with an immutable object of JSON."""

JsonValue = Annotated[object, PlainSerializer(thawed_value)]
"""Type of a field with any immutable value of JSON."""


def _message_of(given: object) -> object:
    return Message.from_dict(cast("dict[str, object]", given)) if isinstance(given, dict) else given


KeptMessage = Annotated[
    Message,
    BeforeValidator(_message_of),
    PlainSerializer(lambda message: message.to_dict(), return_type=dict[str, object]),
]
"""Type of the field of an entry that keeps a message."""


def _sections_of(given: object) -> object:
    if not isinstance(given, dict):
        return given
    return LevelOfDetailSections.from_dict(cast("dict[str, list[list[str]]]", given))


KeptSections = Annotated[
    LevelOfDetailSections,
    PlainValidator(_sections_of),
    PlainSerializer(lambda sections: sections.to_dict(), return_type=dict[str, object]),
]
"""Type of a field with texts in three levels of detail."""


@cache
def adapter_of(cls: type) -> TypeAdapter[Any]:
    """Return what reads and writes the entries of a class."""
    return TypeAdapter(cls)
