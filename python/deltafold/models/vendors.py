"""Vendors that speak a known protocol: data only, one row each.

A row says which dialect, where, the environment variable that holds the key (None: no key is
needed), and how the vendor differs from the dialect.  A vendor that needs code needs an adapter,
not a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor.

    Attributes:
        base_url: as its SDK takes it, None for the SDK's own default.
        defaults: configuration fields that this vendor wants set, weaker than the caller's.
    """

    name: str
    dialect: str
    base_url: str | None
    key_variable: str | None
    defaults: Mapping[str, object] = field(default_factory=dict[str, object])


# What most vendors accept in place of OpenAI's newer max_completion_tokens (openai-chat.md, part
# 8).
_OLD_LIMIT: Mapping[str, object] = {"max_tokens_member": "max_tokens"}
# Vendors that want their reasoning back on the assistant turns of an open tool loop (part 8).
_REASONING_BACK: Mapping[str, object] = {**_OLD_LIMIT, "replay_reasoning": "reasoning_content"}
_DETAILS_BACK: Mapping[str, object] = {**_OLD_LIMIT, "replay_reasoning": "reasoning_details"}

_ANTHROPIC = "anthropic-messages"
_CHAT = "openai-chat"

_ROWS = (
    Vendor("anthropic", _ANTHROPIC, None, "ANTHROPIC_API_KEY"),
    Vendor("openai", _CHAT, None, "OPENAI_API_KEY"),
    Vendor("cerebras", _CHAT, "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    Vendor(
        "dashscope",
        _CHAT,
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        _OLD_LIMIT,
    ),
    Vendor("deepseek", _CHAT, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", _REASONING_BACK),
    Vendor(
        "fireworks", _CHAT, "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", _OLD_LIMIT
    ),
    Vendor("groq", _CHAT, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    Vendor("huggingface", _CHAT, "https://router.huggingface.co/v1", "HF_TOKEN", _OLD_LIMIT),
    Vendor("llama-cpp", _CHAT, "http://127.0.0.1:8080/v1", None, _OLD_LIMIT),
    Vendor("lm-studio", _CHAT, "http://127.0.0.1:1234/v1", None, _OLD_LIMIT),
    Vendor("moonshot", _CHAT, "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", _REASONING_BACK),
    Vendor("ollama", _CHAT, "http://127.0.0.1:11434/v1", None, _OLD_LIMIT),
    Vendor(
        "openrouter", _CHAT, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", _DETAILS_BACK
    ),
    Vendor("perplexity", _CHAT, "https://api.perplexity.ai", "PERPLEXITY_API_KEY", _OLD_LIMIT),
    Vendor("together", _CHAT, "https://api.together.xyz/v1", "TOGETHER_API_KEY", _OLD_LIMIT),
    Vendor("vllm", _CHAT, "http://127.0.0.1:8000/v1", None, _OLD_LIMIT),
    Vendor("xai", _CHAT, "https://api.x.ai/v1", "XAI_API_KEY", _OLD_LIMIT),
    Vendor("zai", _CHAT, "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", _REASONING_BACK),
)

VENDORS: Mapping[str, Vendor] = {row.name: row for row in _ROWS}
