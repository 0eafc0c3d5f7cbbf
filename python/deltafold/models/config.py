"""What a caller says to a Model, and what a Model says of itself.

Laws: the field names are the ones of the contract, whatever a provider calls them; a field that an
adapter does not know is an error that names the nearest one it does; every class is immutable.
"""

import difflib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from deltafold.cost import Prices
from deltafold.models.tool_schema import described, schema_of_function, schema_of_model

ToolChoiceMode: TypeAlias = Literal["auto", "required", "none", "tool"]

Whole = Annotated[int, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Temperature = Annotated[float, Field(strict=True, ge=0)]
Penalty = Annotated[float, Field(strict=True, ge=-2, le=2)]
Flag = Annotated[bool, Field(strict=True)]
Object: TypeAlias = dict[str, object]


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
    """How prompts are cached: `auto` asks the provider to, where it must be asked.

    Attributes:
        lifetime: how long the provider keeps what it was asked to; None is its own default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: Literal["auto", "none"] = "auto"
    lifetime: Literal["5m", "1h"] | None = None


class ToolSpec(BaseModel):
    """A tool as the model sees it.

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
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    description: str | None = None
    parameter_schema: dict[str, object] = Field(default_factory=_no_parameters)
    strict: bool | None = None
    extra: Object = Field(default_factory=dict[str, object])

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
        """Describe a tool whose arguments are the fields of a pydantic model.

        The description is the model's docstring unless it is given.
        """
        return cls(
            name=name or model.__name__,
            description=description or described(model),
            parameter_schema=schema_of_model(model),
            strict=strict,
        )


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
    prices: Prices | None = None


# Arguments of a call, by the names that SDKs use for them.
_ARGUMENTS: Final[Mapping[object, str]] = {
    "tools": "tool_specs",
    "functions": "tool_specs",
    "system": "system_prompt",
    "system_instruction": "system_prompt",
    "instructions": "system_prompt",
}


class ModelConfig(BaseModel):
    """Settings that every adapter knows; an adapter's own class adds its provider's.

    This class takes any further field and leaves the checking to the adapter that it is given to.

    Attributes:
        provider_tools: tools that the provider itself runs or defines, in its own form; they stand
            behind the caller's.
        extra_body: members that go into the request body as they are, over all others.
        extra_headers: headers of the request.
        extra_query: query parameters of the request.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    model_id: str = Field(min_length=1)
    temperature: Temperature | None = None
    max_tokens: Count | None = None
    top_p: Share | None = None
    stop_sequences: tuple[str, ...] | None = None
    tool_choice: ToolChoice | None = None
    cache_config: CacheConfig | None = None
    provider_tools: tuple[Object, ...] = ()
    extra_body: Mapping[str, object] = Field(default_factory=dict[str, object], repr=False)
    extra_headers: Mapping[str, str] = Field(default_factory=dict[str, str], repr=False)
    extra_query: Mapping[str, object] = Field(default_factory=dict[str, object], repr=False)

    @model_validator(mode="before")
    @classmethod
    def _suggest_known_fields(cls, value: object) -> object:
        given: object = value
        if cls.model_config.get("extra") == "forbid" and isinstance(given, Mapping):
            for name in cast("Mapping[object, object]", given):
                if name not in cls.model_fields:
                    if name in _ARGUMENTS:
                        raise ValueError(
                            f"{cls.__name__} has no field {name!r}: pass {_ARGUMENTS[name]} to "
                            "stream() or send_message() (docs/models.md)"
                        )
                    near = difflib.get_close_matches(str(name), cls.model_fields, n=1, cutoff=0.5)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    raise ValueError(f"{cls.__name__} has no field {name!r}{hint}")
        return value

    def fields_set(self) -> dict[str, object]:
        """Return the fields that were given, extra ones too, by name."""
        given: dict[str, object] = {name: getattr(self, name) for name in self.model_fields_set}
        return given


class AnthropicConfig(ModelConfig):
    """Settings of anthropic-messages; objects among them are the provider's own.

    Attributes:
        parallel_tool_calls: False asks for one call at a time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Count | None = None
    thinking: Object | None = None
    output_config: Object | None = None
    metadata: Object | None = None
    service_tier: str | None = None
    parallel_tool_calls: Flag | None = None


class OpenAIChatConfig(ModelConfig):
    """Settings of openai-chat.

    Attributes:
        replay_reasoning: the member in which this vendor wants its reasoning back while a tool loop
            is open; None, as OpenAI wants it, sends none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    seed: Whole | None = None
    parallel_tool_calls: Flag | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    response_format: Object | None = None
    service_tier: str | None = None
    logprobs: Flag | None = None
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=20)] | None = None
    metadata: Object | None = None
    store: Flag | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    modalities: tuple[str, ...] | None = None
    audio: Object | None = None
    max_tokens_member: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens"
    include_usage: bool = True
    replay_reasoning: (
        Literal["reasoning_content", "reasoning_details", "thinking_blocks"] | None
    ) = None


class OpenAIResponsesConfig(ModelConfig):
    """Settings of openai-responses.

    Attributes:
        store: whether the provider keeps the response; False, the default here, makes every request
            whole in itself. None sends nothing, which at OpenAI means yes.
        encrypted_reasoning: whether to ask for reasoning that can be sent back without being
            stored. None asks where `store` is False and the model reasons: `reasoning` is set, or
            its name is that of a reasoning model; others refuse the question.
        reasoning: `{effort, summary}`.
        text: `{format, verbosity}`; structured output is a format.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    store: Flag | None = False
    encrypted_reasoning: Flag | None = None
    reasoning: Object | None = None
    text: Object | None = None
    include: tuple[str, ...] | None = None
    parallel_tool_calls: Flag | None = None
    max_tool_calls: Positive | None = None
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=20)] | None = None
    previous_response_id: str | None = None
    conversation: str | Object | None = None
    truncation: Literal["auto", "disabled"] | None = None
    background: Flag | None = None
    metadata: Object | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None


class GeminiConfig(ModelConfig):
    """Settings of gemini.

    Attributes:
        thinking: the provider's `thinkingConfig`: `{includeThoughts, thinkingBudget |
            thinkingLevel}`.
        response_schema: JSON Schema of the answer; implies JSON unless `response_mime_type` says
            otherwise.
        generation_config: further members of the provider's `generationConfig`, in its own names.
        tool_config: further members of the provider's `toolConfig`, in its own names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Count | None = None
    seed: Whole | None = None
    frequency_penalty: Number | None = None
    presence_penalty: Number | None = None
    thinking: Object | None = None
    response_mime_type: str | None = None
    response_schema: Object | None = None
    response_modalities: tuple[str, ...] | None = None
    media_resolution: str | None = None
    safety_settings: tuple[Object, ...] | None = None
    cached_content: str | None = None
    generation_config: Object | None = None
    tool_config: Object | None = None


class BedrockConverseConfig(ModelConfig):
    """Settings of bedrock-converse; objects among them are the provider's own.

    Attributes:
        additional_model_request_fields: what Converse has no member for: `thinking`, `top_k` ….
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    additional_model_request_fields: Object | None = None
    additional_model_response_field_paths: tuple[str, ...] | None = None
    guardrail_config: Object | None = None
    performance_config: Object | None = None
    service_tier: Object | None = None
    output_config: Object | None = None
    prompt_variables: Object | None = None
    request_metadata: dict[str, str] | None = None


class OllamaConfig(ModelConfig):
    """Settings of ollama.

    Attributes:
        think: whether, or how hard, to think; some models take only levels.
        format: `"json"`, or the JSON Schema of the answer.
        keep_alive: how long the model stays loaded: a duration ("5m"), or seconds.
        options: further members of the provider's `options` (`num_ctx` …), in its own names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Count | None = None
    seed: Whole | None = None
    think: Flag | Literal["low", "medium", "high", "max"] | None = None
    format: Literal["json"] | Object | None = None
    keep_alive: str | Whole | Number | None = None
    truncate: Flag | None = None
    shift: Flag | None = None
    logprobs: Flag | None = None
    top_logprobs: Count | None = None
    options: Object | None = None


class CohereChatConfig(ModelConfig):
    """Settings of cohere-chat.

    Attributes:
        top_k: the provider's `k`.
        thinking: `{type: "enabled" | "disabled", token_budget}`.
        response_format: structured output: `{type: "json_object", json_schema}`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Annotated[int, Field(strict=True, ge=0, le=500)] | None = None
    seed: Whole | None = None
    frequency_penalty: Share | None = None
    presence_penalty: Share | None = None
    thinking: Object | None = None
    response_format: Object | None = None
    strict_tools: Flag | None = None
    documents: tuple[str | Object, ...] | None = None
    citation_options: Object | None = None
    safety_mode: str | None = None
    logprobs: Flag | None = None
    priority: Count | None = None


class MistralConfig(ModelConfig):
    """Settings of mistral.

    Attributes:
        seed: the provider's `random_seed`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: Count | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    parallel_tool_calls: Flag | None = None
    reasoning_effort: str | None = None
    prompt_mode: str | None = None
    response_format: Object | None = None
    safe_prompt: Flag | None = None
    guardrails: tuple[Object, ...] | None = None
    metadata: Object | None = None
    prediction: Object | None = None


class LocalConfig(ModelConfig):
    """Settings of a `transformers` pipeline in this process.

    Attributes:
        do_sample: whether to sample; None samples where a temperature above 0 is set.
        seed: makes sampling repeatable.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Count | None = None
    min_p: Share | None = None
    do_sample: Flag | None = None
    num_beams: Positive | None = None
    repetition_penalty: Annotated[float, Field(strict=True, gt=0)] | None = None
    no_repeat_ngram_size: Count | None = None
    seed: Count | None = None
