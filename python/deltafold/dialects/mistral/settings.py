"""Settings of mistral: Mistral's chat API."""

from pydantic import ConfigDict

from deltafold.dialects.settings import Count, Flag, ModelConfig, Object, Penalty


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
