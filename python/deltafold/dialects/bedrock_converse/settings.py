"""Settings of bedrock-converse: Amazon Bedrock's Converse API."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ConfigDict

from deltafold.contract.kinds import json_object
from deltafold.dialects.portable import (
    no_json_mode,
    only_schema,
    schema_of,
    words,
    write_nothing,
)
from deltafold.dialects.reasoning import (
    BUDGET,
    EFFORT,
    SUMMARY,
    claude_plan,
    claude_sampling,
    effort_of,
    read_claude_thinking,
    write_claude_sampling,
    write_claude_thinking,
)
from deltafold.dialects.settings import ModelConfig, Object
from deltafold.dialects.settings_table import (
    AS_MEMBER,
    COMMON,
    MODEL_ID,
    PROVIDER_TOOLS,
    TOOL_POSITIONS,
    Conversion,
    Counterpart,
    SettingTable,
    Writing,
    converted,
    copied,
    no_member,
    written,
)


class BedrockConverseConfig(ModelConfig):
    """Settings of bedrock-converse. Objects have the form of the provider's API.

    >>> config = BedrockConverseConfig(
    ...     model_id="m", additional_model_request_fields={"top_k": 5}
    ... )
    >>> config.fields_set()["additional_model_request_fields"]
    {'top_k': 5}

    Attributes:
        additional_model_request_fields: settings of the model that Converse has no member for:
            `thinking`, `top_k` ….
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    additional_model_request_fields: Object | None = None
    additional_model_response_field_paths: tuple[str, ...] | None = None
    guardrail_config: Object | None = None
    performance_config: Object | None = None
    service_tier: Object | None = None
    output_config: Object | None = None
    prompt_variables: Object | None = None
    request_metadata: dict[str, str] | None = None


_CLAUDE: Final = re.compile("claude")
_NOVA: Final = re.compile("nova")
_REASONING_NOVA: Final = re.compile(r"nova-(?:[2-9]|premier)")
_GPT: Final = re.compile(r"openai\.|gpt-oss")
_NAMED: Final = re.compile("claude|nova|openai|gpt-oss")


def _only(model: "re.Pattern[str]", write: Writing) -> Writing:
    """Return a conversion that writes for some models alone."""

    def write_for(values: Mapping[str, Any], conversion: Conversion) -> object:
        return write(values, conversion) if model.search(conversion.model_id) else None

    return write_for


def _write_nova(values: Mapping[str, Any], conversion: Conversion) -> object:
    effort = effort_of(values, conversion, ("none", "low", "medium", "high"))
    if effort == "none":
        return {"type": "disabled"}
    return {"type": "enabled"} | ({} if effort is None else {"maxReasoningEffort": effort})


def _read_nova(value: Mapping[str, object], _conversion: Conversion) -> Mapping[str, object]:
    if value.get("type") == "disabled":
        return {EFFORT: "none"}
    return {EFFORT: value["maxReasoningEffort"]} if "maxReasoningEffort" in value else {BUDGET: -1}


def _read_reasoning(value: object, conversion: Conversion) -> Mapping[str, object]:
    """Read the word of some models, and the object of others."""
    members = json_object(value)
    return {EFFORT: value} if members is None else read_claude_thinking(members, conversion)


def _write_effort(values: Mapping[str, Any], conversion: Conversion) -> object:
    """Write the member of Converse, which takes an effort for any model."""
    if _CLAUDE.search(conversion.model_id):
        return claude_plan(values, conversion).effort
    if _NAMED.search(conversion.model_id):
        return None
    return effort_of(values, conversion, ("low", "medium", "high", "xhigh", "max"))


def _read_format(value: Mapping[str, object], _conversion: Conversion) -> Mapping[str, object]:
    structure = json_object(value.get("structure")) or {}
    members = dict(json_object(structure.get("jsonSchema")) or {})
    try:
        members["schema"] = json.loads(str(members.get("schema")))
    except ValueError:
        members["schema"] = {}
    return {"output_schema": schema_of(members)}


def _write_format(values: Mapping[str, Any], conversion: Conversion) -> object:
    schema = only_schema(values, conversion, keeps={"name", "description"})
    if no_json_mode(schema, conversion):
        return None
    members: Object = {"schema": json.dumps(schema.json_schema)}
    if schema.name is not None:
        members["name"] = schema.name
    if schema.description is not None:
        members["description"] = schema.description
    return {"type": "json_schema", "structure": {"jsonSchema": members}}


_AMOUNT: Final = (EFFORT, BUDGET)

_INFERENCE: Final = ("inferenceConfig",)
_WRITE_TOP_K: Final = write_claude_sampling("top_k", float("inf"))

SETTINGS: Final[SettingTable] = {
    **COMMON,
    "model_id": no_member("part of the path").shapes(MODEL_ID),
    "max_tokens": copied(*_INFERENCE, "maxTokens"),
    "temperature": copied(*_INFERENCE, "temperature").means(claude_sampling("temperature", 1)),
    "top_p": copied(*_INFERENCE, "topP").means(claude_sampling("top_p", 1)),
    "stop_sequences": copied(*_INFERENCE, "stopSequences"),
    "tool_choice": converted("toolConfig"),
    "provider_tools": converted("toolConfig").stays(PROVIDER_TOOLS),
    "provider_tool_positions": converted("toolConfig").shapes(TOOL_POSITIONS),
    "cache_config": written(
        "toolConfig", "system", "messages", reason="parse keeps each cache mark as a block"
    ),
    "output_config": copied("outputConfig").means(
        Counterpart(_AMOUNT, ("effort",), write=_write_effort),
        Counterpart(("output_schema",), ("textFormat",), _read_format, _write_format),
    ),
    "additional_model_request_fields": copied("additionalModelRequestFields").means(
        Counterpart(
            (EFFORT, BUDGET, SUMMARY),
            ("thinking",),
            read_claude_thinking,
            _only(_CLAUDE, write_claude_thinking),
        ),
        Counterpart(_AMOUNT, ("reasoningConfig",), _read_nova, _only(_REASONING_NOVA, _write_nova)),
        Counterpart(_AMOUNT, ("reasoning_effort",), write=_only(_GPT, effort_of)),
        Counterpart(_AMOUNT, ("reasoning_config",), _read_reasoning, write_nothing),
        Counterpart(_AMOUNT, ("output_config", "effort"), write=write_nothing),
        Counterpart(("top_k",), ("top_k",), write=_only(_CLAUDE, _WRITE_TOP_K)),
        Counterpart(("top_k",), ("inferenceConfig", "topK"), write=_only(_NOVA, _WRITE_TOP_K)),
    ),
    "reasoning_effort": written("outputConfig", "additionalModelRequestFields", reason=AS_MEMBER),
    "output_schema": written("outputConfig", reason=AS_MEMBER),
    "additional_model_response_field_paths": copied("additionalModelResponseFieldPaths").stays(
        "members of Bedrock's answer"
    ),
    "guardrail_config": copied("guardrailConfig").stays("a guardrail of the AWS account"),
    "performance_config": copied("performanceConfig").stays("a function of Bedrock"),
    "service_tier": copied("serviceTier").means(
        words(
            "service_tier",
            {"default": "default", "flex": "flex", "priority": "priority"},
            member=("type",),
        )
    ),
    "prompt_variables": copied("promptVariables").stays("a prompt of the AWS account"),
    "request_metadata": copied("requestMetadata").means(Counterpart(("metadata",))),
}
"""Counterpart of each setting in the request body."""
