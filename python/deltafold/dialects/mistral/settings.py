"""Settings of mistral: Mistral's chat API."""

from typing import Final

from pydantic import ConfigDict

from deltafold.dialects.settings import Count, Flag, ModelConfig, Object, Penalty
from deltafold.dialects.settings_table import COMMON, SettingTable, converted, copied, same


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


SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("max_tokens", "temperature", "top_p", "frequency_penalty", "presence_penalty"),
    **same("parallel_tool_calls", "reasoning_effort", "prompt_mode", "response_format"),
    **same("safe_prompt", "guardrails", "metadata", "prediction"),
    "seed": copied("random_seed"),
    "stop_sequences": copied("stop"),
    "tool_choice": converted("tool_choice"),
}
"""Counterpart of each setting in the request body."""
