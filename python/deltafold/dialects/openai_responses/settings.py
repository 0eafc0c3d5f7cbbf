"""Settings of openai-responses: OpenAI's Responses API."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from deltafold.dialects.settings import Flag, ModelConfig, Object, Positive


class OpenAIResponsesConfig(ModelConfig):
    """Settings of openai-responses.

    Attributes:
        store: whether the provider keeps the response; False, the default here, makes every request
            whole in itself. None sends nothing, which at OpenAI means yes.
        encrypted_reasoning: whether to ask for reasoning that can be sent back without being
            stored. None asks where `store` is False and the model reasons: `reasoning` is set, or
            its name is that of a reasoning model; others refuse the question.
        reasoning: `{effort, summary}`.
        text: `{format, verbosity}`; structured output is a format.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
