"""Settings of ollama: Ollama's own chat API."""

from typing import Final, Literal

from pydantic import ConfigDict

from deltafold.dialects.settings import Count, Flag, ModelConfig, Number, Object, Whole
from deltafold.dialects.settings_table import (
    COMMON,
    SettingTable,
    converted,
    copied,
    no_member,
    same,
)


class OllamaConfig(ModelConfig):
    """Settings of ollama.

    Attributes:
        think: switches thinking on or off, or sets its level; some models accept only levels.
        format: `"json"`, or the JSON Schema of the answer.
        keep_alive: time for which the model stays loaded: a duration ("5m"), or seconds.
        options: further members of the provider's `options` (`num_ctx` …), under the provider's
            names.
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


_OPTIONS: Final = ("options",)

SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("think", "format", "keep_alive", "truncate", "shift", "logprobs", "top_logprobs"),
    **same("temperature", "top_p", "top_k", "seed", within=_OPTIONS),
    "max_tokens": copied(*_OPTIONS, "num_predict"),
    "stop_sequences": copied(*_OPTIONS, "stop"),
    "options": converted("options"),
    "tool_choice": no_member("none sends no tools; any other choice is noted"),
}
"""Counterpart of each setting in the request body."""
