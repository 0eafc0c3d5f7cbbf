"""Settings of cohere-chat: Cohere's v2 chat API."""

from typing import Annotated

from pydantic import ConfigDict, Field

from deltafold.dialects.settings import Count, Flag, ModelConfig, Object, Share, Whole


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
