"""Settings of anthropic-messages: Anthropic's Messages API."""

from pydantic import ConfigDict

from deltafold.dialects.settings import Count, Flag, ModelConfig, Object


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
