"""Settings of ollama: Ollama's own chat API."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import ConfigDict

from deltafold.contract.kinds import json_object
from deltafold.dialects.portable import LOGPROBS, only_schema
from deltafold.dialects.reasoning import BUDGET, DYNAMIC, EFFORT, effort_of
from deltafold.dialects.settings import Count, Flag, ModelConfig, Number, Object, Whole
from deltafold.dialects.settings_table import (
    AS_MEMBER,
    COMMON,
    Conversion,
    Counterpart,
    SettingTable,
    converted,
    copied,
    each_stays,
    no_member,
    same,
    written,
)
from deltafold.specs.output_schema import OutputSchema


class OllamaConfig(ModelConfig):
    """Settings of ollama.

    >>> OllamaConfig(model_id="qwen3", think=False, options={"num_ctx": 8192}).options
    {'num_ctx': 8192}

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
    frequency_penalty: Number | None = None
    presence_penalty: Number | None = None
    think: Flag | Literal["low", "medium", "high", "max"] | None = None
    format: Literal["json"] | Object | None = None
    keep_alive: str | Whole | Number | None = None
    truncate: Flag | None = None
    shift: Flag | None = None
    logprobs: Flag | None = None
    top_logprobs: Count | None = None
    options: Object | None = None


_LEVELS: Final = ("low", "medium", "high", "max")


def _read_think(value: bool | str, _conversion: Conversion) -> Mapping[str, object]:
    if isinstance(value, str):
        return {EFFORT: value}
    return {BUDGET: DYNAMIC} if value else {EFFORT: "none"}


def _write_think(values: Mapping[str, Any], conversion: Conversion) -> object:
    """Write a level to the models that take one, else whether to think.

    The server refuses a level of most models ("think value … is not supported for this model").
    """
    budget, effort = values.get(BUDGET), values.get(EFFORT)
    if effort == "none" or (effort is None and budget == 0):
        return False
    has_levels = "gpt-oss" in conversion.model_id
    if effort is None and budget is not None and budget < 0:
        return True
    level = effort_of(values, conversion, _LEVELS if has_levels else ())
    if level is None or has_levels:
        return level
    conversion.change(EFFORT, f"{conversion.model_id} takes no level: true is sent")
    return True


def _read_format(value: object, _conversion: Conversion) -> Mapping[str, object]:
    schema = json_object(value)
    return {"output_schema": OutputSchema(json_schema=None if schema is None else dict(schema))}


def _write_format(values: Mapping[str, Any], conversion: Conversion) -> object:
    schema = only_schema(values, conversion).json_schema
    return "json" if schema is None else dict(schema)


_OPTIONS: Final = ("options",)

SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("top_logprobs"),
    **same("temperature", "top_p", "top_k", "seed", within=_OPTIONS),
    **same("frequency_penalty", "presence_penalty", within=_OPTIONS),
    **each_stays("the memory of a local server", same("keep_alive", "truncate", "shift")),
    "logprobs": copied("logprobs").means(LOGPROBS),
    "think": copied("think").means(Counterpart((EFFORT, BUDGET), (), _read_think, _write_think)),
    "reasoning_effort": written("think", reason=AS_MEMBER),
    "format": copied("format").means(
        Counterpart(("output_schema",), (), _read_format, _write_format)
    ),
    "output_schema": written("format", reason=AS_MEMBER),
    "max_tokens": copied(*_OPTIONS, "num_predict"),
    "stop_sequences": copied(*_OPTIONS, "stop"),
    "options": converted("options").stays("options of a local server"),
    "tool_choice": no_member("none sends no tools; any other choice is noted").means(
        Counterpart(("tool_choice",))
    ),
}
"""Counterpart of each setting in the request body."""
