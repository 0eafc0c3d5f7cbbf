"""Names and types of settings for type checkers, so that an editor shows a misspelled one.

In: nothing.  Out: the keyword arguments of `load_model`, and of the calls of a Model.

Law: the names are those of the configurations of all dialects and of the arguments of a Model; a
test compares them. The configurations check the values, and which dialect has which setting.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from deltafold.dialects.settings import CacheConfig
from deltafold.errors.mapper import ErrorMapper
from deltafold.message.messages import Message
from deltafold.models.call_inputs import (
    Metadata,
    Notes,
    Repair,
    SystemContent,
    Telemetry,
    ToolChoiceLike,
)
from deltafold.models.hooks import Hooks
from deltafold.specs.output_schema import OutputSchema
from deltafold.transports.timeouts import Timeouts


class CallSettings(TypedDict, total=False):
    """Fields of a configuration that one call may set."""

    model_id: str
    additional_model_request_fields: Mapping[str, Any] | None
    additional_model_response_field_paths: Sequence[str] | None
    audio: Mapping[str, Any] | None
    background: bool | None
    cache_config: CacheConfig | Mapping[str, Any] | None
    cached_content: str | None
    candidate_count: int | None
    citation_options: Mapping[str, Any] | None
    conversation: str | Mapping[str, Any] | None
    do_sample: bool | None
    documents: Sequence[str | Mapping[str, Any]] | None
    encrypted_reasoning: bool | None
    extra_body: Mapping[str, Any]
    extra_headers: Mapping[str, str]
    extra_query: Mapping[str, Any]
    format: Literal["json"] | Mapping[str, Any] | None
    frequency_penalty: float | None
    generation_config: Mapping[str, Any] | None
    guardrail_config: Mapping[str, Any] | None
    guardrails: Sequence[Mapping[str, Any]] | None
    include: Sequence[str] | None
    include_usage: bool
    joined_choices: bool
    keep_alive: str | int | float | None
    known_as: str | None
    logprobs: bool | None
    lone_references: bool
    max_tokens: int | None
    max_tokens_member: Literal["max_tokens", "max_completion_tokens"]
    max_tool_calls: int | None
    media_resolution: str | None
    metadata: Mapping[str, Any] | None
    min_p: float | None
    modalities: Sequence[str] | None
    no_repeat_ngram_size: int | None
    num_beams: int | None
    options: Mapping[str, Any] | None
    output_config: Mapping[str, Any] | None
    output_format: Mapping[str, Any] | None
    output_schema: OutputSchema | Mapping[str, Any] | None
    parallel_tool_calls: bool | None
    performance_config: Mapping[str, Any] | None
    prediction: Mapping[str, Any] | None
    presence_penalty: float | None
    previous_response_id: str | None
    priority: int | None
    prompt_cache_key: str | None
    prompt_mode: str | None
    prompt_variables: Mapping[str, Any] | None
    provider_tool_positions: Sequence[int] | None
    provider_tools: Sequence[Mapping[str, Any]]
    reasoning: Mapping[str, Any] | None
    reasoning_effort: str | None
    reasoning_placeholder: str | None
    repetition_penalty: float | None
    replay_reasoning: (
        Literal["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"] | None
    )
    replay_reasoning_turns: Literal["open", "tool_turns", "all"]
    response_format: Mapping[str, Any] | None
    response_mime_type: str | None
    response_modalities: Sequence[str] | None
    response_schema: Mapping[str, Any] | None
    safe_prompt: bool | None
    safety_identifier: str | None
    safety_mode: str | None
    safety_settings: Sequence[Mapping[str, Any]] | None
    seed: int | None
    service_tier: str | Mapping[str, Any] | None
    shift: bool | None
    stop_sequences: Sequence[str] | None
    store: bool | None
    strict_settings: bool
    strict_tools: bool | None
    system_as_instructions: bool
    system_messages: Literal["anywhere", "first"] | None
    temperature: float | None
    text: Mapping[str, Any] | None
    think: bool | Literal["low", "medium", "high", "max"] | None
    thinking: Mapping[str, Any] | None
    tool_config: Mapping[str, Any] | None
    top_k: int | None
    top_logprobs: int | None
    top_p: float | None
    truncate: bool | None
    truncation: Literal["auto", "disabled"] | None
    user: str | None
    verbosity: str | None


class StreamOptions(CallSettings, total=False):
    """Keyword arguments of `Model.stream` beside the conversation and the output."""

    tool_choice: ToolChoiceLike | None
    system_prompt_content: SystemContent | None
    invocation_state: Mapping[str, object] | None
    request_metadata: Metadata | None
    repair: Repair
    strict: bool
    continue_from: Message | None
    notes: Notes
    tee: Any


class OutputOptions(StreamOptions, total=False):
    """Keyword arguments of `Model.stream` and `Model.send_message` with an output."""

    system_prompt: str | None
    stream: bool


class LoadSettings(CallSettings, total=False):
    """Keyword arguments of `load_model`: fields of a configuration, and arguments of a Model."""

    tool_choice: ToolChoiceLike | Mapping[str, Any] | None
    request_metadata: Mapping[str, str] | None
    client: object
    error_mapper: ErrorMapper | None
    base_url: str | None
    api_key: str | None
    transport: str
    timeouts: Timeouts | None
    resend_lost: bool
    max_connections: int
    hooks: Hooks | None
    starts_in_thinking: bool
    ends_without_reason: bool | None
    telemetry: Telemetry | None
