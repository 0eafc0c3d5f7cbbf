"""The adapter of anthropic-messages: Anthropic's Messages API."""

from collections.abc import Mapping
from typing import ClassVar, Final

from deltafold.dialects import anthropic_messages
from deltafold.dialects.rendered import DialectModule
from deltafold.models.base import Model
from deltafold.models.config import AnthropicConfig, ModelConfig
from deltafold.transports import sdks
from deltafold.transports.sdks import Sdk

# The API insists on a version, and there is this one.
_VERSION: Final = {"anthropic-version": "2023-06-01"}


class AnthropicModel(Model[AnthropicConfig]):
    """A model behind Anthropic's Messages API; Vertex and Bedrock through the SDK's clients."""

    protocol: ClassVar[DialectModule] = anthropic_messages
    config_class: ClassVar[type[ModelConfig]] = AnthropicConfig
    author: ClassVar[str] = "anthropic"
    sdk: ClassVar[Sdk | None] = sdks.ANTHROPIC

    def _key_headers(self, key: str) -> Mapping[str, str]:
        return {"x-api-key": key, **_VERSION}

    def _token_headers(self, token: str) -> Mapping[str, str]:
        return {**super()._token_headers(token), **_VERSION}
