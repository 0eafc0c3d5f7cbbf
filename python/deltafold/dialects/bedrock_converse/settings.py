"""Settings of bedrock-converse: Amazon Bedrock's Converse API."""

from typing import Final

from pydantic import ConfigDict

from deltafold.dialects.settings import ModelConfig, Object
from deltafold.dialects.settings_table import (
    COMMON,
    SettingTable,
    converted,
    copied,
    no_member,
    written,
)


class BedrockConverseConfig(ModelConfig):
    """Settings of bedrock-converse. Objects have the form of the provider's API.

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


_INFERENCE: Final = ("inferenceConfig",)

SETTINGS: Final[SettingTable] = {
    **COMMON,
    "model_id": no_member("part of the path"),
    "max_tokens": copied(*_INFERENCE, "maxTokens"),
    "temperature": copied(*_INFERENCE, "temperature"),
    "top_p": copied(*_INFERENCE, "topP"),
    "stop_sequences": copied(*_INFERENCE, "stopSequences"),
    "tool_choice": converted("toolConfig"),
    "provider_tools": converted("toolConfig"),
    "provider_tool_positions": converted("toolConfig"),
    "cache_config": written(
        "toolConfig", "system", "messages", reason="parse keeps each cache mark as a block"
    ),
    "additional_model_request_fields": copied("additionalModelRequestFields"),
    "additional_model_response_field_paths": copied("additionalModelResponseFieldPaths"),
    "guardrail_config": copied("guardrailConfig"),
    "performance_config": copied("performanceConfig"),
    "service_tier": copied("serviceTier"),
    "output_config": copied("outputConfig"),
    "prompt_variables": copied("promptVariables"),
    "request_metadata": copied("requestMetadata"),
}
"""Counterpart of each setting in the request body."""
