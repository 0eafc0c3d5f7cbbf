"""Settings of gemini: Google's Gemini API."""

from pydantic import ConfigDict

from deltafold.dialects.settings import Count, ModelConfig, Number, Object, Whole


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
