"""What a caller says to a Model, and what a Model says of itself.

Laws: the field names are the ones of the contract, whatever a provider calls them; a field that an
adapter does not know is an error that names the nearest one it does; every class is immutable.
"""

import difflib
from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

ToolChoiceMode: TypeAlias = Literal["auto", "required", "none", "tool"]


def _no_parameters() -> dict[str, object]:
    return {"type": "object", "properties": {}}


class Capability(StrEnum):
    """What a model may be able to do, for `Model.supports`."""

    TOOLS = "tools"
    PARALLEL_TOOL_CALLS = "parallel_tool_calls"
    THINKING = "thinking"
    IMAGES = "images"
    CACHING = "caching"


class CacheConfig(BaseModel):
    """How prompts are cached: `auto` asks the provider to, where it must be asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: Literal["auto", "none"] = "auto"


class ToolSpec(BaseModel):
    """A tool as the model sees it.

    Attributes:
        parameter_schema: JSON Schema of the arguments, an object schema.
        strict: whether the provider must hold the arguments to the schema; None leaves it to the
            provider.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    description: str | None = None
    parameter_schema: dict[str, object] = Field(default_factory=_no_parameters)
    strict: bool | None = None


class ToolChoice(BaseModel):
    """Which tools the model may or must call: `auto`, `required`, `none`, or one by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: ToolChoiceMode
    name: str | None = None

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
        return self


class RequestMetadata(BaseModel):
    """Where a request belongs; `run_id` becomes the deltas' run id."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    session_id: str | None = None
    run_id: str | None = None
    trace_id: str | None = None


class ModelInfo(BaseModel):
    """What is known of a model without asking its provider."""

    model_config = ConfigDict(frozen=True)

    provider_id: str
    specification: str
    model_id: str
    capabilities: frozenset[Capability] = frozenset()
    context_window_tokens: int | None = None
    max_output_tokens: int | None = None


class ModelConfig(BaseModel):
    """Settings that every adapter knows; an adapter's own class adds its provider's.

    This class takes any further field and leaves the checking to the adapter that it is given to.

    Attributes:
        extra_body: members that go into the request body as they are, over all others.
        extra_headers: headers of the request.
        extra_query: query parameters of the request.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    model_id: str = Field(min_length=1)
    temperature: float | None = None
    max_tokens: int | None = Field(default=None, ge=0)
    top_p: float | None = None
    stop_sequences: tuple[str, ...] | None = None
    tool_choice: ToolChoice | None = None
    cache_config: CacheConfig | None = None
    extra_body: Mapping[str, object] = Field(default_factory=dict[str, object])
    extra_headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    extra_query: Mapping[str, object] = Field(default_factory=dict[str, object])

    @model_validator(mode="before")
    @classmethod
    def _suggest_known_fields(cls, value: object) -> object:
        given: object = value
        if cls.model_config.get("extra") == "forbid" and isinstance(given, Mapping):
            for name in cast("Mapping[object, object]", given):
                if name not in cls.model_fields:
                    near = difflib.get_close_matches(str(name), cls.model_fields, n=1, cutoff=0.5)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    raise ValueError(f"{cls.__name__} has no field {name!r}{hint}")
        return value

    def fields_set(self) -> dict[str, object]:
        """Return the fields that were given, extra ones too, by name."""
        given: dict[str, object] = {name: getattr(self, name) for name in self.model_fields_set}
        return given


class AnthropicConfig(ModelConfig):
    """Settings of anthropic-messages; objects among them are the provider's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: int | None = None
    thinking: dict[str, object] | None = None
    output_config: dict[str, object] | None = None
    metadata: dict[str, object] | None = None
    service_tier: str | None = None


class OpenAIChatConfig(ModelConfig):
    """Settings of openai-chat.

    Attributes:
        replay_reasoning: the member in which this vendor wants its reasoning back while a tool loop
            is open; None, as OpenAI wants it, sends none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    response_format: dict[str, object] | None = None
    service_tier: str | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    max_tokens_member: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens"
    include_usage: bool = True
    replay_reasoning: Literal["reasoning_content", "reasoning_details"] | None = None
