"""Models: one way to call any provider.

Names load on first use, so that importing deltafold imports no SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltafold.models.anthropic import AnthropicModel
    from deltafold.models.base import Model
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
    from deltafold.models.openai_chat import OpenAIChatModel
    from deltafold.models.vendors import VENDORS, Vendor

__all__ = [
    "VENDORS",
    "AnthropicConfig",
    "AnthropicModel",
    "BedrockConverseConfig",
    "CacheConfig",
    "Capability",
    "CohereChatConfig",
    "GeminiConfig",
    "LocalConfig",
    "MistralConfig",
    "Model",
    "ModelConfig",
    "ModelInfo",
    "OllamaConfig",
    "OpenAIChatConfig",
    "OpenAIChatModel",
    "OpenAIResponsesConfig",
    "RequestMetadata",
    "ToolChoice",
    "ToolSpec",
    "Vendor",
]

_MODULES = {
    "AnthropicModel": "anthropic",
    "Model": "base",
    "OpenAIChatModel": "openai_chat",
    "VENDORS": "vendors",
    "Vendor": "vendors",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES.get(name, 'config')}")
    value: object = getattr(module, name)
    return value
