"""Settings of gemini: Google's Gemini API."""

import re
from typing import Final

from pydantic import ConfigDict

from deltafold.dialects.settings import Count, ModelConfig, Number, Object, Whole
from deltafold.dialects.settings_table import (
    COMMON,
    SettingTable,
    converted,
    copied,
    no_member,
    same,
)


class GeminiConfig(ModelConfig):
    """Settings of gemini.

    Attributes:
        thinking: the provider's `thinkingConfig`: `{includeThoughts, thinkingBudget |
            thinkingLevel}`.
        response_schema: JSON Schema of the answer; implies JSON unless `response_mime_type` is set.
        generation_config: further members of the provider's `generationConfig`, under the
            provider's names.
        tool_config: further members of the provider's `toolConfig`, under the provider's names.
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


OLD_MODEL: Final = re.compile(r"(?:.*/)?(?:gemini-[12](?:\D|$)|gemma)")
"""Models before Gemini 3: they require no signature and accept no media in a response."""

_GENERATION: Final = ("generationConfig",)

SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("temperature", "seed", within=_GENERATION),
    "model_id": no_member("part of the path"),
    "max_tokens": copied(*_GENERATION, "maxOutputTokens"),
    "top_p": copied(*_GENERATION, "topP"),
    "top_k": copied(*_GENERATION, "topK"),
    "stop_sequences": copied(*_GENERATION, "stopSequences"),
    "frequency_penalty": copied(*_GENERATION, "frequencyPenalty"),
    "presence_penalty": copied(*_GENERATION, "presencePenalty"),
    "response_mime_type": copied(*_GENERATION, "responseMimeType"),
    "response_schema": copied(*_GENERATION, "responseJsonSchema"),
    "response_modalities": copied(*_GENERATION, "responseModalities"),
    "thinking": copied(*_GENERATION, "thinkingConfig"),
    "media_resolution": copied(*_GENERATION, "mediaResolution"),
    "generation_config": converted("generationConfig"),
    "safety_settings": copied("safetySettings"),
    "cached_content": copied("cachedContent"),
    "tool_choice": converted("toolConfig"),
    "tool_config": converted("toolConfig"),
}
"""Counterpart of each setting in the request body."""
