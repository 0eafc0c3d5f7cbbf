"""Settings of openai-responses: OpenAI's Responses API."""

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from deltafold.dialects.settings import Flag, ModelConfig, Object, Positive
from deltafold.dialects.settings_table import (
    COMMON,
    SettingTable,
    converted,
    copied,
    no_member,
    same,
)


class OpenAIResponsesConfig(ModelConfig):
    """Settings of openai-responses.

    Attributes:
        store: whether the provider keeps the response. The default False makes each request
            self-contained. None sends no member, which means True at OpenAI.
        system_as_instructions: whether the first system message is sent as `instructions`, which do
            not carry over through `previous_response_id`; otherwise it is a message of the input.
        encrypted_reasoning: whether to ask for reasoning that can be sent back without being
            stored. None asks if `store` is False and the model reasons: `reasoning` is set, or the
            model has the name of a reasoning model. Other models refuse this request.
        reasoning: `{effort, summary}`.
        text: `{format, verbosity}`; structured output is a format.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system_as_instructions: bool = False
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


SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("temperature", "top_p", "top_logprobs", "parallel_tool_calls", "max_tool_calls"),
    **same("reasoning", "text", "store", "previous_response_id", "conversation"),
    **same("truncation", "background", "metadata", "service_tier"),
    **same("prompt_cache_key", "safety_identifier"),
    "max_tokens": copied("max_output_tokens"),
    "stop_sequences": no_member("the API has no stop sequences"),
    "tool_choice": converted("tool_choice"),
    "include": converted("include"),
    "encrypted_reasoning": converted("include"),
    "system_as_instructions": converted("instructions", "input"),
}
"""Counterpart of each setting in the request body."""
