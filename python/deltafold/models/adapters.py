"""Adapters: one class per dialect, which joins a row of the registry and an SDK.

Laws: a class adds only behaviour that its row cannot state.  The row derives the name of its class,
which `deltafold.models` exports.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from deltafold.dialects import DIALECTS, Dialect
from deltafold.dialects.anthropic_messages.settings import AnthropicConfig
from deltafold.dialects.bedrock_converse.settings import BedrockConverseConfig
from deltafold.dialects.cohere_chat.settings import CohereChatConfig
from deltafold.dialects.gemini.settings import GeminiConfig
from deltafold.dialects.mistral.settings import MistralConfig
from deltafold.dialects.ollama.settings import OllamaConfig
from deltafold.dialects.openai_chat.settings import OpenAIChatConfig
from deltafold.dialects.openai_responses.settings import OpenAIResponsesConfig
from deltafold.models.base import Model
from deltafold.transports import sdks
from deltafold.transports.sdks import Sdk

__all__ = [
    "AnthropicConfig",
    "AnthropicModel",
    "BedrockConverseConfig",
    "BedrockConverseModel",
    "CohereChatConfig",
    "CohereChatModel",
    "GeminiConfig",
    "GeminiModel",
    "MistralConfig",
    "MistralModel",
    "OllamaConfig",
    "OllamaModel",
    "OpenAIChatConfig",
    "OpenAIChatModel",
    "OpenAIResponsesConfig",
    "OpenAIResponsesModel",
]


class AnthropicModel(Model[AnthropicConfig]):
    """A model behind Anthropic's Messages API; Vertex and Bedrock through the SDK's clients.

    >>> model = AnthropicModel({"model_id": "claude-opus-4-8", "max_tokens": 500})
    >>> model.send_message_sync("When?").text
    'At 17:42.'
    """

    row: ClassVar[Dialect] = DIALECTS["anthropic-messages"]
    sdk: ClassVar[Sdk | None] = sdks.ANTHROPIC


class OpenAIChatModel(Model[OpenAIChatConfig]):
    """A model behind OpenAI's Chat Completions API, or a vendor's copy of it.

    >>> model = OpenAIChatModel({"model_id": "gpt-5.6-terra"})
    >>> model.send_message_sync("When?").text
    'At 17:42.'
    """

    row: ClassVar[Dialect] = DIALECTS["openai-chat"]
    sdk: ClassVar[Sdk | None] = sdks.OPENAI_CHAT


class OpenAIResponsesModel(Model[OpenAIResponsesConfig]):
    """A model behind OpenAI's Responses API, or a vendor's copy of it.

    >>> model = OpenAIResponsesModel({"model_id": "gpt-5.6-terra"})
    >>> model.send_message_sync("When?").text
    'At 17:42.'
    """

    row: ClassVar[Dialect] = DIALECTS["openai-responses"]
    sdk: ClassVar[Sdk | None] = sdks.OPENAI_RESPONSES


class GeminiModel(Model[GeminiConfig]):
    """A model behind the Gemini API, of AI Studio or of Vertex.

    >>> model = GeminiModel({"model_id": "gemini-3.8-flash"})
    >>> model.send_message_sync("When?").text
    'At 17:42.'
    """

    row: ClassVar[Dialect] = DIALECTS["gemini"]

    def _path(self, config: GeminiConfig, *, stream: bool) -> str:
        # Vertex has the version, the project and the publisher in its address.
        path = super()._path(config, stream=stream)
        return path.removeprefix("/v1beta") if self._on_vertex else path

    def _key_headers(self, key: str) -> Mapping[str, str]:
        return self.row.token_headers(key) if self._on_vertex else super()._key_headers(key)

    @property
    def _on_vertex(self) -> bool:
        return self._vendor.name == "google-vertex"


class BedrockConverseModel(Model[BedrockConverseConfig]):
    """A model behind Bedrock's Converse API.

    >>> BedrockConverseModel({"model_id": "anthropic.claude-opus-4-8"}).dialect
    'bedrock-converse'
    """

    row: ClassVar[Dialect] = DIALECTS["bedrock-converse"]
    sdk: ClassVar[Sdk | None] = sdks.BEDROCK


class OllamaModel(Model[OllamaConfig]):
    """A model of an Ollama server, through Ollama's own protocol.

    >>> OllamaModel({"model_id": "qwen3"}).dialect
    'ollama'
    """

    row: ClassVar[Dialect] = DIALECTS["ollama"]


class CohereChatModel(Model[CohereChatConfig]):
    """A model behind Cohere's v2 chat API.

    >>> CohereChatModel({"model_id": "command-a"}).dialect
    'cohere-chat'
    """

    row: ClassVar[Dialect] = DIALECTS["cohere-chat"]


class MistralModel(Model[MistralConfig]):
    """A model behind Mistral's chat API.

    >>> MistralModel({"model_id": "mistral-large-latest"}).dialect
    'mistral'
    """

    row: ClassVar[Dialect] = DIALECTS["mistral"]
    sdk: ClassVar[Sdk | None] = sdks.MISTRAL


def adapter_of(dialect: str) -> type[Model[Any]] | None:
    """Return the adapter of a dialect, None if the dialect has no adapter."""
    row = DIALECTS.get(dialect)
    return None if row is None else cast("type[Model[Any]]", globals()[row.model])
