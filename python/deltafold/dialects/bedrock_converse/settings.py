"""Settings of bedrock-converse: Amazon Bedrock's Converse API."""

from pydantic import ConfigDict

from deltafold.dialects.settings import ModelConfig, Object


class BedrockConverseConfig(ModelConfig):
    """Settings of bedrock-converse; objects among them are the provider's own.

    Attributes:
        additional_model_request_fields: what Converse has no member for: `thinking`, `top_k` ….
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
