"""JSON output of a model, in the same form for every provider.

Law: the class is immutable.
"""

from collections.abc import Mapping
from typing import Self, cast

from pydantic import BaseModel, ConfigDict, model_validator

from deltafold.contract.short_repr import ShortRepr
from deltafold.specs.tool_schema import split_schema


class OutputSchema(ShortRepr, BaseModel):
    """JSON Schema that the answer must follow.

    A mapping without the member `json_schema` is read as the JSON Schema itself.

    >>> OutputSchema.model_validate({"type": "object"}).json_schema
    {'type': 'object'}

    Attributes:
        json_schema: JSON Schema of the answer. None asks for any JSON object.
        name: name of the schema. APIs that require a name get "response" where it is None.
        description: purpose of the answer, for the model.
        strict: whether the provider must hold the answer to the schema; None leaves it to the
            provider.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    json_schema: dict[str, object] | None = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None

    @classmethod
    def from_pydantic(
        cls, model: type[BaseModel], name: str | None = None, *, strict: bool | None = None
    ) -> Self:
        """Make the schema of an answer with the fields of a pydantic model."""
        description, schema = split_schema(model.model_json_schema())
        return cls(
            json_schema=schema,
            name=name or model.__name__,
            description=description,
            strict=strict,
        )

    @model_validator(mode="before")
    @classmethod
    def _from_schema(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        given = cast("Mapping[str, object]", value)
        return given if given.keys() <= cls.model_fields.keys() else {"json_schema": dict(given)}
