"""Settings of openai-chat: OpenAI's Chat Completions API."""

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from deltafold.dialects.settings import Flag, ModelConfig, Object, Penalty, Whole
from deltafold.dialects.settings_table import (
    COMMON,
    SettingTable,
    converted,
    copied,
    no_member,
    same,
)


class OpenAIChatConfig(ModelConfig):
    """Settings of openai-chat.

    Attributes:
        replay_reasoning: the member in which this vendor wants its reasoning back; None, as OpenAI
            wants it, sends none.
        replay_reasoning_turns: the turns whose reasoning is sent: those of the open tool loop,
            those with tool calls too, or all.
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
        Literal["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"] | None
    ) = None
    replay_reasoning_turns: Literal["open", "tool_turns", "all"] = "open"


SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("temperature", "top_p", "frequency_penalty", "presence_penalty", "seed"),
    **same("parallel_tool_calls", "reasoning_effort", "verbosity", "response_format"),
    **same("service_tier", "logprobs", "top_logprobs", "metadata", "store"),
    **same("prompt_cache_key", "safety_identifier", "modalities", "audio"),
    "stop_sequences": copied("stop"),
    "max_tokens": converted("max_completion_tokens", "max_tokens"),
    "max_tokens_member": no_member("selects the member of max_tokens"),
    "include_usage": converted("stream_options"),
    "tool_choice": converted("tool_choice"),
    "replay_reasoning": no_member("selects the member of assistant messages that has reasoning"),
    "replay_reasoning_turns": no_member("selects the assistant messages that have reasoning"),
}
"""Counterpart of each setting in the request body."""
