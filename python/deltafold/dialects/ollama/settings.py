"""Settings of ollama: Ollama's own chat API."""

from typing import Literal

from pydantic import ConfigDict

from deltafold.dialects.settings import Count, Flag, ModelConfig, Number, Object, Whole


class OllamaConfig(ModelConfig):
    """Settings of ollama.

    Attributes:
        think: whether, or how hard, to think; some models take only levels.
        format: `"json"`, or the JSON Schema of the answer.
        keep_alive: how long the model stays loaded: a duration ("5m"), or seconds.
        options: further members of the provider's `options` (`num_ctx` …), in its own names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Count | None = None
    seed: Whole | None = None
    think: Flag | Literal["low", "medium", "high", "max"] | None = None
    format: Literal["json"] | Object | None = None
    keep_alive: str | Whole | Number | None = None
    truncate: Flag | None = None
    shift: Flag | None = None
    logprobs: Flag | None = None
    top_logprobs: Count | None = None
    options: Object | None = None
