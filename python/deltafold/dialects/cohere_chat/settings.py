"""Settings of cohere-chat: Cohere's v2 chat API."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from deltafold.dialects.settings import Count, Flag, ModelConfig, Object, Share, Whole
from deltafold.dialects.settings_table import COMMON, SettingTable, converted, copied, same


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


SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("strict_tools", "documents", "citation_options", "response_format", "safety_mode"),
    **same("max_tokens", "stop_sequences", "temperature", "seed"),
    **same("frequency_penalty", "presence_penalty", "logprobs", "thinking", "priority"),
    "top_k": copied("k"),
    "top_p": copied("p"),
    "tool_choice": converted("tool_choice"),
}
"""Counterpart of each setting in the request body."""
