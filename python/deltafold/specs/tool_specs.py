"""Tools that a model may call, and the choice among them, in the same form for every provider.

Law: both classes are immutable.
"""

from collections.abc import Callable
from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from deltafold.contract.short_repr import ShortRepr
from deltafold.specs.tool_schema import described, schema_of_function, schema_of_model

ToolChoiceMode: TypeAlias = Literal["auto", "required", "none", "tool"]


def _no_parameters() -> dict[str, object]:
    return {"type": "object", "properties": {}}


class ToolSpec(ShortRepr, BaseModel):
    """A tool as the model sees it.

    Names in camelCase are accepted too, as in messages (`parameterSchema`).

    >>> def weather(city: str, days: int = 1) -> str:
    ...     "The weather in a city."
    >>> ToolSpec.from_function(weather).parameter_schema["required"]
    ['city']

    Attributes:
        parameter_schema: JSON Schema of the arguments, an object schema.
        strict: whether the provider must hold the arguments to the schema; None leaves it to the
            provider.
        extra: members of the provider's own that stand beside these (`cache_control`,
            `defer_loading` …), sent as they are.
        dialect: the dialect that `extra` belongs to; other dialects leave `extra` out, with a note.
            None sends it in every dialect.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )

    name: str = Field(min_length=1)
    description: str | None = None
    parameter_schema: dict[str, object] = Field(default_factory=_no_parameters)
    strict: bool | None = None
    extra: dict[str, object] = Field(default_factory=dict[str, object])
    dialect: str | None = None

    @classmethod
    def from_function(
        cls, function: Callable[..., object], *, name: str | None = None, strict: bool | None = None
    ) -> Self:
        """Describe a function by its signature, type hints and docstring.

        A parameter's description is that of its `Annotated[..., Field(description=...)]`, else the
        line about it under `Args:`. Synchronous and asynchronous functions are alike.

        Raises:
            ValueError: a parameter has no name to pass it by (`*args`, `**kwargs`,
                positional-only), or its type has no JSON Schema; the error names it.
        """
        summary, schema = schema_of_function(function)
        return cls(
            name=name or getattr(function, "__name__", type(function).__name__),
            description=summary,
            parameter_schema=schema,
            strict=strict,
        )

    @classmethod
    def from_pydantic(
        cls,
        model: type[BaseModel],
        name: str | None = None,
        description: str | None = None,
        *,
        strict: bool | None = None,
    ) -> Self:
        """Make the specification of a tool whose arguments are the fields of a pydantic model.

        The default description is the docstring of the model.
        """
        return cls(
            name=name or model.__name__,
            description=description or described(model),
            parameter_schema=schema_of_model(model),
            strict=strict,
        )


class ToolChoice(ShortRepr, BaseModel):
    """Choice of a tool: `auto`, `required`, `none`, or one tool by name.

    >>> deltafold.ToolChoice.tool("weather")
    ToolChoice(mode='tool', name='weather')

    Attributes:
        allowed_tools: the tools that `auto` and `required` choose from; () is all tools.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: ToolChoiceMode
    name: str | None = None
    allowed_tools: tuple[str, ...] = ()

    @classmethod
    def tool(cls, name: str) -> Self:
        """Make the choice of one tool."""
        return cls(mode="tool", name=name)

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: object) -> object:
        return {"mode": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _names_its_tool(self) -> Self:
        if (self.mode == "tool") != (self.name is not None):
            raise ValueError("a tool choice has a name exactly when its mode is 'tool'")
        if self.allowed_tools and self.mode not in {"auto", "required"}:
            raise ValueError(f"a tool choice of mode {self.mode!r} has no allowed_tools")
        return self
