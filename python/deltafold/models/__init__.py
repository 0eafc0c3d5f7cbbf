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
    from deltafold.models.hooks import (
        Hooks,
        RateLimit,
        RequestContext,
        ResponseInfo,
    )
    from deltafold.models.http import Timeouts
    from deltafold.models.http1 import Http1Client
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
    "AnthropicConfig": "config",
    "AnthropicModel": "anthropic",
    "BedrockConverseConfig": "config",
    "BedrockConverseModel": "bedrock_converse",
    "CacheConfig": "config",
    "Capability": "config",
    "CohereChatConfig": "config",
    "CohereChatModel": "cohere_chat",
    "GeminiConfig": "config",
    "GeminiModel": "gemini",
    "Hooks": "hooks",
    "Http1Client": "http1",
    "LocalConfig": "config",
    "LocalModel": "local",
    "MistralConfig": "config",
    "MistralModel": "mistral",
    "Model": "base",
    "ModelConfig": "config",
    "ModelInfo": "config",
    "OllamaConfig": "config",
    "OllamaModel": "ollama",
    "OpenAIChatConfig": "config",
    "OpenAIChatModel": "openai_chat",
    "OpenAIResponsesConfig": "config",
    "OpenAIResponsesModel": "openai_responses",
    "RateLimit": "hooks",
    "RequestContext": "hooks",
    "RequestMetadata": "config",
    "ResponseInfo": "hooks",
    "Timeouts": "http",
    "ToolChoice": "config",
    "ToolSpec": "config",
    "VENDORS": "vendors",
    "Vendor": "vendors",
    "load_model": "loading",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
