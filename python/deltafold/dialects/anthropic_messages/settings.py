"""Settings of anthropic-messages: Anthropic's Messages API."""

from typing import Final

from pydantic import ConfigDict

from deltafold.dialects.settings import Count, Flag, ModelConfig, Object
from deltafold.dialects.settings_table import COMMON, SettingTable, converted, same


class AnthropicConfig(ModelConfig):
    """Settings of anthropic-messages. Objects have the form of the provider's API.

    Attributes:
        parallel_tool_calls: False allows one call at a time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Count | None = None
    thinking: Object | None = None
    output_config: Object | None = None
    metadata: Object | None = None
    service_tier: str | None = None
    parallel_tool_calls: Flag | None = None


SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("max_tokens", "temperature", "top_p", "top_k", "stop_sequences"),
    **same("thinking", "output_config", "metadata", "service_tier"),
    "tool_choice": converted("tool_choice"),
    "parallel_tool_calls": converted("tool_choice"),
    "cache_config": converted("cache_control"),
}
"""Counterpart of each setting in the request body."""
