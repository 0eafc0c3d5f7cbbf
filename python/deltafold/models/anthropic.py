"""The adapter of anthropic-messages: Anthropic's Messages API."""

from collections.abc import Mapping
from typing import ClassVar

from deltafold.dialects import anthropic_messages
from deltafold.dialects.rendered import DialectModule
from deltafold.models import sdks
from deltafold.models.base import Model
from deltafold.models.config import AnthropicConfig, ModelConfig
from deltafold.models.sdks import Sdk


class AnthropicModel(Model[AnthropicConfig]):
    """A model behind Anthropic's Messages API; Vertex and Bedrock through the SDK's clients."""

    protocol: ClassVar[DialectModule] = anthropic_messages
    config_class: ClassVar[type[ModelConfig]] = AnthropicConfig
    author: ClassVar[str] = "anthropic"
    sdk: ClassVar[Sdk | None] = sdks.ANTHROPIC

    def _key_headers(self, key: str) -> Mapping[str, str]:
        # The API insists on a version, and there is this one.
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}
