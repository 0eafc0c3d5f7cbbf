"""Settings of gemini: Google's Gemini API."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, cast

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from deltafold.contract.kinds import json_object
from deltafold.dialects.gemini.schemas import json_schema_of
from deltafold.dialects.portable import (
    LOGPROBS,
    at_most_stops,
    only_schema,
    within,
    words,
    write_nothing,
)
from deltafold.dialects.reasoning import BUDGET, EFFORT, SUMMARY, budget_of, effort_of
from deltafold.dialects.settings import (
    Count,
    Flag,
    ModelConfig,
    Number,
    Object,
    Positive,
    Whole,
)
from deltafold.dialects.settings_table import (
    AS_MEMBER,
    COMMON,
    MODEL_ID,
    Conversion,
    Counterpart,
    SettingTable,
    converted,
    copied,
    no_member,
    written,
)
from deltafold.specs.output_schema import OutputSchema
from deltafold.specs.tool_specs import ToolChoice


class GeminiConfig(ModelConfig):
    """Settings of gemini.

    >>> GeminiConfig(
    ...     model_id="gemini-3.8-flash", thinking={"thinkingLevel": "low"}
    ... ).thinking
    {'thinkingLevel': 'low'}

    Attributes:
        logprobs: the provider's `responseLogprobs`.
        top_logprobs: the provider's `logprobs`.
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
    candidate_count: Positive | None = None
    logprobs: Flag | None = None
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=20)] | None = None
    thinking: Object | None = None
    response_mime_type: str | None = None
    response_schema: Object | None = None
    response_modalities: tuple[str, ...] | None = None
    media_resolution: str | None = None
    safety_settings: tuple[Object, ...] | None = None
    cached_content: str | None = None
    service_tier: str | None = None
    generation_config: Object | None = None
    tool_config: Object | None = None


OLD_MODEL: Final = re.compile(r"(?:.*/)?(?:gemini-[12](?:\D|$)|gemma)")
"""Models before Gemini 3: they require no signature, accept no media in a response, and take a
budget of thinking instead of a level."""

_BUDGETS: Final = (
    (re.compile("gemini-2.5-pro"), 128, 32768),
    (re.compile("gemini-2.5-flash-lite"), 512, 24576),
    (re.compile("gemini-2.5"), 1, 24576),
)
"""Smallest and greatest budget of the models; 0 switches thinking off where 128 is not the smallest
(Google's guide on thinking, read 2026-11)."""

_LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")


def _read_thinking(value: Mapping[str, object], conversion: Conversion) -> Mapping[str, object]:
    members = {to_camel(name) if "_" in name else name: item for name, item in value.items()}
    found: Object = {}
    if members.get("thinkingBudget") is not None:
        found[BUDGET] = members["thinkingBudget"]
    if members.get("thinkingLevel") is not None:
        found[EFFORT] = str(members["thinkingLevel"]).lower()
    if members.get("includeThoughts") is not None:
        found[SUMMARY] = bool(members["includeThoughts"])
    for name in members.keys() - {"thinkingBudget", "thinkingLevel", "includeThoughts"}:
        conversion.drop(f"thinking.{name}", "a member of this API")
    return found


def _write_thinking(values: Mapping[str, Any], conversion: Conversion) -> object:
    thinking: Object = {}
    if EFFORT in values or BUDGET in values:
        is_old = OLD_MODEL.match(conversion.model_id) is not None
        thinking = _budget(values, conversion) if is_old else _level(values, conversion)
    if SUMMARY in values:
        thinking["includeThoughts"] = values[SUMMARY]
    return thinking or None


def _budget(values: Mapping[str, Any], conversion: Conversion) -> Object:
    limits = next((row for row in _BUDGETS if row[0].search(conversion.model_id)), None)
    if limits is None:
        conversion.drop(
            EFFORT if EFFORT in values else BUDGET, f"{conversion.model_id} cannot think"
        )
        return {}
    budget = budget_of(values, conversion)
    if budget is None:
        return {}
    _, least, most = limits
    can_stop = least != 128  # noqa: PLR2004 - the model that always thinks
    sent = budget
    if budget > 0 or (budget == 0 and not can_stop):
        sent = min(max(budget, least), most)
    if sent != budget:
        conversion.change(BUDGET, f"{conversion.model_id} takes {least} to {most}: {sent} is sent")
    return {"thinkingBudget": sent}


def _level(values: Mapping[str, Any], conversion: Conversion) -> Object:
    budget = values.get(BUDGET)
    if values.get(EFFORT) is None and budget is not None and budget != 0:
        return {"thinkingBudget": budget}
    level = effort_of(values, conversion, _LEVELS)
    return {} if level is None else {"thinkingLevel": level}


def _read_mime_type(value: str, conversion: Conversion) -> Mapping[str, object]:
    if value not in {"application/json", "text/plain"}:
        conversion.drop("response_mime_type", f"{value} is a form of this API")
    return {"output_schema": OutputSchema()} if value == "application/json" else {}


def _write_mime_type(values: Mapping[str, Any], _conversion: Conversion) -> object:
    is_bare = cast("OutputSchema", values["output_schema"]).json_schema is None
    return "application/json" if is_bare else None


def _read_schema(value: Mapping[str, object], _conversion: Conversion) -> Mapping[str, object]:
    return {"output_schema": OutputSchema(json_schema=dict(value))}


def _write_schema(values: Mapping[str, Any], conversion: Conversion) -> object:
    return only_schema(values, conversion).json_schema


def _read_old_schema(value: object, _conversion: Conversion) -> Mapping[str, object]:
    schema = json_object(json_schema_of(value)) or {}
    return {"output_schema": OutputSchema(json_schema=dict(schema))}


def _read_modalities(value: Sequence[str], _conversion: Conversion) -> Mapping[str, object]:
    return {"modalities": tuple(word.lower() for word in value)}


def _write_modalities(values: Mapping[str, Any], _conversion: Conversion) -> object:
    return tuple(str(word).upper() for word in values["modalities"])


def _read_calling(value: Mapping[str, object], conversion: Conversion) -> Mapping[str, object]:
    """Read the modes that do not choose a tool in other APIs."""
    members = {to_camel(name) if "_" in name else name: item for name, item in value.items()}
    mode = members.pop("mode", None)
    allowed = cast("list[str]", members.pop("allowedFunctionNames", None) or [])
    for name in members:
        conversion.drop(f"tool_config.functionCallingConfig.{name}", "a member of this API")
    if mode != "VALIDATED":
        if mode is not None:
            reason = f"{mode} is a mode of this API"
            conversion.drop("tool_config.functionCallingConfig.mode", reason)
        return {}
    conversion.change("tool_config", "VALIDATED becomes auto: elsewhere a tool has `strict`")
    return {"tool_choice": ToolChoice(mode="auto", allowed_tools=tuple(allowed))}


def _write_seed(values: Mapping[str, Any], conversion: Conversion) -> object:
    if -(2**31) <= values["seed"] < 2**31:
        return values["seed"]
    conversion.drop("seed", "gemini takes 32 bits")
    return None


_SCHEMA: Final = ("output_schema",)
_MEDIA: Final = "a function of Gemini"
_GENERATION: Final = ("generationConfig",)

SETTINGS: Final[SettingTable] = {
    **COMMON,
    "temperature": copied(*_GENERATION, "temperature").means(within("temperature", 0, 2)),
    "seed": copied(*_GENERATION, "seed").means(Counterpart(("seed",), write=_write_seed)),
    "model_id": no_member("part of the path").shapes(MODEL_ID),
    "max_tokens": copied(*_GENERATION, "maxOutputTokens"),
    "top_p": copied(*_GENERATION, "topP"),
    "top_k": copied(*_GENERATION, "topK"),
    "stop_sequences": copied(*_GENERATION, "stopSequences").means(at_most_stops(5)),
    "frequency_penalty": copied(*_GENERATION, "frequencyPenalty"),
    "presence_penalty": copied(*_GENERATION, "presencePenalty"),
    "candidate_count": copied(*_GENERATION, "candidateCount"),
    "logprobs": copied(*_GENERATION, "responseLogprobs").means(LOGPROBS),
    "top_logprobs": copied(*_GENERATION, "logprobs"),
    "response_schema": copied(*_GENERATION, "responseJsonSchema").means(
        Counterpart(_SCHEMA, (), _read_schema, _write_schema)
    ),
    "generation_config": converted("generationConfig").means(
        Counterpart(_SCHEMA, ("responseSchema",), _read_old_schema, write_nothing)
    ),
    "response_mime_type": copied(*_GENERATION, "responseMimeType").means(
        Counterpart(_SCHEMA, (), _read_mime_type, _write_mime_type)
    ),
    "output_schema": written("generationConfig", reason=AS_MEMBER),
    "response_modalities": copied(*_GENERATION, "responseModalities").means(
        Counterpart(("modalities",), (), _read_modalities, _write_modalities)
    ),
    "thinking": copied(*_GENERATION, "thinkingConfig").means(
        Counterpart((EFFORT, BUDGET, SUMMARY), (), _read_thinking, _write_thinking)
    ),
    "reasoning_effort": written("generationConfig", reason=AS_MEMBER),
    "service_tier": copied("serviceTier").means(
        words(
            "service_tier",
            {"standard": "default", "flex": "flex", "priority": "priority", "unspecified": "auto"},
        )
    ),
    "media_resolution": copied(*_GENERATION, "mediaResolution").stays(_MEDIA),
    "safety_settings": copied("safetySettings").stays(_MEDIA),
    "cached_content": copied("cachedContent").stays("the provider has the cached messages"),
    "tool_choice": converted("toolConfig"),
    "tool_config": converted("toolConfig").means(
        Counterpart(("tool_choice",), ("functionCallingConfig",), _read_calling, write_nothing)
    ),
}
"""Counterpart of each setting in the request body."""
