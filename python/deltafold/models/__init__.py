"""Models: one way to call any provider.

Names load on first use, so that importing deltafold imports no SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deltafold.models.anthropic import AnthropicModel
    from deltafold.models.base import Model
    from deltafold.models.bedrock_converse import BedrockConverseModel
    from deltafold.models.cohere_chat import CohereChatModel
    from deltafold.models.config import (
        AnthropicConfig,
        BedrockConverseConfig,
        CacheConfig,
        Capability,
        CohereChatConfig,
        GeminiConfig,
        LocalConfig,
        MistralConfig,
        ModelConfig,
        ModelInfo,
        OllamaConfig,
        OpenAIChatConfig,
        OpenAIResponsesConfig,
        RequestMetadata,
        ToolChoice,
        ToolSpec,
    )
    from deltafold.models.gemini import GeminiModel
    from deltafold.models.hooks import Hooks, RequestContext
    from deltafold.models.loading import load_model
    from deltafold.models.local import LocalModel
    from deltafold.models.mistral import MistralModel
    from deltafold.models.ollama import OllamaModel
    from deltafold.models.openai_chat import OpenAIChatModel
    from deltafold.models.openai_responses import OpenAIResponsesModel
    from deltafold.models.vendors import (
        VENDORS,
        Vendor,
    )
    from deltafold.transports.http1 import Http1Client
    from deltafold.transports.response_info import RateLimit, ResponseInfo
    from deltafold.transports.timeouts import Timeouts

__all__ = [
    "VENDORS",
    "AnthropicConfig",
    "AnthropicModel",
    "BedrockConverseConfig",
    "BedrockConverseModel",
    "CacheConfig",
    "Capability",
    "CohereChatConfig",
    "CohereChatModel",
    "GeminiConfig",
    "GeminiModel",
    "Hooks",
    "Http1Client",
    "LocalConfig",
    "LocalModel",
    "MistralConfig",
    "MistralModel",
    "Model",
    "ModelConfig",
    "ModelInfo",
    "OllamaConfig",
    "OllamaModel",
    "OpenAIChatConfig",
    "OpenAIChatModel",
    "OpenAIResponsesConfig",
    "OpenAIResponsesModel",
    "RateLimit",
    "RequestContext",
    "RequestMetadata",
    "ResponseInfo",
    "Timeouts",
    "ToolChoice",
    "ToolSpec",
    "Vendor",
    "load_model",
]

_MODULES: Final = {
    "AnthropicConfig": "models.config",
    "AnthropicModel": "models.anthropic",
    "BedrockConverseConfig": "models.config",
    "BedrockConverseModel": "models.bedrock_converse",
    "CacheConfig": "models.config",
    "Capability": "models.config",
    "CohereChatConfig": "models.config",
    "CohereChatModel": "models.cohere_chat",
    "GeminiConfig": "models.config",
    "GeminiModel": "models.gemini",
    "Hooks": "models.hooks",
    "Http1Client": "transports.http1",
    "LocalConfig": "models.config",
    "LocalModel": "models.local",
    "MistralConfig": "models.config",
    "MistralModel": "models.mistral",
    "Model": "models.base",
    "ModelConfig": "models.config",
    "ModelInfo": "models.config",
    "OllamaConfig": "models.config",
    "OllamaModel": "models.ollama",
    "OpenAIChatConfig": "models.config",
    "OpenAIChatModel": "models.openai_chat",
    "OpenAIResponsesConfig": "models.config",
    "OpenAIResponsesModel": "models.openai_responses",
    "RateLimit": "transports.response_info",
    "RequestContext": "models.hooks",
    "RequestMetadata": "models.config",
    "ResponseInfo": "transports.response_info",
    "Timeouts": "transports.timeouts",
    "ToolChoice": "models.config",
    "ToolSpec": "models.config",
    "VENDORS": "models.vendors",
    "Vendor": "models.vendors",
    "load_model": "models.loading",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"deltafold.{_MODULES[name]}"), name)
    return value
