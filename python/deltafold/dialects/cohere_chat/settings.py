"""Settings of cohere-chat: Cohere's v2 chat API."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from deltafold.contract.kinds import json_object
from deltafold.dialects.portable import at_most_stops, only_schema, within
from deltafold.dialects.reasoning import BUDGET, DYNAMIC, EFFORT, budget_of
from deltafold.dialects.settings import Count, Flag, ModelConfig, Object, Share, Whole
from deltafold.dialects.settings_table import (
    AS_MEMBER,
    COMMON,
    Conversion,
    Counterpart,
    SettingTable,
    converted,
    copied,
    each_stays,
    same,
    written,
)
from deltafold.specs.output_schema import OutputSchema


class CohereChatConfig(ModelConfig):
    """Settings of cohere-chat.

    >>> CohereChatConfig(model_id="command-a-03-2025", safety_mode="STRICT").safety_mode
    'STRICT'

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


def _read_thinking(value: Mapping[str, object], _conversion: Conversion) -> Mapping[str, object]:
    if value.get("type") == "disabled":
        return {EFFORT: "none"}
    return {BUDGET: value.get("token_budget") or DYNAMIC}


def _write_thinking(values: Mapping[str, Any], conversion: Conversion) -> object:
    budget = budget_of(values, conversion)
    if budget is None:
        return None
    if budget == 0:
        return {"type": "disabled"}
    return {"type": "enabled"} | ({"token_budget": budget} if budget > 0 else {})


def _read_format(value: Mapping[str, object], _conversion: Conversion) -> Mapping[str, object]:
    if value.get("type") == "text":
        return {}
    schema = json_object(value.get("json_schema", value.get("schema")))
    return {"output_schema": OutputSchema(json_schema=None if schema is None else dict(schema))}


def _write_format(values: Mapping[str, Any], conversion: Conversion) -> object:
    schema = only_schema(values, conversion).json_schema
    return {"type": "json_object"} | ({} if schema is None else {"json_schema": dict(schema)})


_GROUNDING: Final = "grounding of Cohere"


SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("max_tokens", "temperature", "seed", "logprobs"),
    **each_stays(_GROUNDING, same("documents", "citation_options")),
    "strict_tools": copied("strict_tools").stays("elsewhere a member of each tool"),
    "safety_mode": copied("safety_mode").stays("a system prompt of Cohere"),
    "priority": copied("priority").stays("the place in a queue of Cohere"),
    "stop_sequences": copied("stop_sequences").means(at_most_stops(5)),
    "frequency_penalty": copied("frequency_penalty").means(within("frequency_penalty", 0, 1)),
    "presence_penalty": copied("presence_penalty").means(within("presence_penalty", 0, 1)),
    "thinking": copied("thinking").means(
        Counterpart((EFFORT, BUDGET), (), _read_thinking, _write_thinking)
    ),
    "reasoning_effort": written("thinking", reason=AS_MEMBER),
    "response_format": copied("response_format").means(
        Counterpart(("output_schema",), (), _read_format, _write_format)
    ),
    "output_schema": written("response_format", reason=AS_MEMBER),
    "top_k": copied("k").means(within("top_k", 0, 500)),
    "top_p": copied("p").means(within("top_p", 0.01, 0.99)),
    "tool_choice": converted("tool_choice"),
}
"""Counterpart of each setting in the request body."""
