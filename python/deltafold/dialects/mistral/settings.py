"""Settings of mistral: Mistral's chat API."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from deltafold.dialects.portable import LOGPROBS, RESPONSE_FORMAT, within, words
from deltafold.dialects.reasoning import ANY_EFFORT
from deltafold.dialects.settings import Count, Flag, ModelConfig, Object, Penalty, Positive
from deltafold.dialects.settings_table import (
    AS_MEMBER,
    COMMON,
    SettingTable,
    converted,
    copied,
    each_stays,
    same,
    written,
)


class MistralConfig(ModelConfig):
    """Settings of mistral.

    >>> MistralConfig(model_id="mistral-large-latest", safe_prompt=True).safe_prompt
    True

    Attributes:
        seed: the provider's `random_seed`.
        candidate_count: the provider's `n`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: Count | None = None
    top_k: Count | None = None
    candidate_count: Positive | None = None
    logprobs: Flag | None = None
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=20)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    parallel_tool_calls: Flag | None = None
    prompt_mode: str | None = None
    response_format: Object | None = None
    safe_prompt: Flag | None = None
    guardrails: tuple[Object, ...] | None = None
    metadata: Object | None = None
    prediction: Object | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None


SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("max_tokens", "top_p", "top_k", "top_logprobs", "parallel_tool_calls"),
    **same("metadata", "prediction", "prompt_cache_key"),
    **each_stays("a moderation of Mistral", same("safe_prompt", "guardrails")),
    "prompt_mode": copied("prompt_mode").stays("a system prompt of Mistral"),
    "temperature": copied("temperature").means(within("temperature", 0, 1.5)),
    "frequency_penalty": copied("frequency_penalty").means(within("frequency_penalty", -2, 2)),
    "presence_penalty": copied("presence_penalty").means(within("presence_penalty", -2, 2)),
    "logprobs": copied("logprobs").means(LOGPROBS),
    "candidate_count": copied("n"),
    "reasoning_effort": copied("reasoning_effort").means(ANY_EFFORT),
    "response_format": copied("response_format").means(RESPONSE_FORMAT),
    "output_schema": written("response_format", reason=AS_MEMBER),
    "service_tier": copied("service_tier").means(
        words("service_tier", {"auto": "auto", "standard_only": "default"})
    ),
    "seed": copied("random_seed"),
    "stop_sequences": copied("stop"),
    "tool_choice": converted("tool_choice"),
}
"""Counterpart of each setting in the request body."""
