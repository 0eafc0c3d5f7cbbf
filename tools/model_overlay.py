"""Overlay of the table of models: families, and rules for what the sources do not settle.

In: the rules of each vendor.  Out: `OVERLAY`.

Laws: a rule holds for a family, never for a single request, and names its page, file or measurement
with the month in which it was read. A fact that no source establishes has no rule.
"""

from typing import Final

from model_rows import Overlay
from model_rules_claude import RULES as CLAUDE
from model_rules_openai import RULES as OPENAI
from model_rules_others import MISTRAL
from model_rules_others import RULES as OTHERS

MONTH: Final = "2026-11"
"""Month in which the pinned packages were the newest ones."""

_OPENAI: Final = (
    r"(?:gpt|chatgpt|chat|o\d|codex|computer-use|dall-e|sora|tts|whisper|text-embedding"
    r"|text-moderation|omni-moderation|davinci|babbage|daybreak)(?:-.*)?"
)

VENDORS: Final = (
    ("anthropic", r"claude(?:-.*)?"),
    ("gpt-oss", r"gpt-oss-.*"),
    ("openai", _OPENAI),
    ("google", r"(?:gemini|gemma|nano-banana|lyria|veo|imagen|learnlm|deep-research)-?.*"),
    ("xai", r"grok-.*"),
    ("mistral", MISTRAL),
    # Bedrock's names of DeepSeek end with the vendor's version alone.
    ("deepseek", r"deepseek-.*|r1|v3(?:\.\d)?"),
    ("moonshot", r"(?:kimi|moonshot)-.*"),
    ("zai", r"(?:zai-)?glm(?:-.*)?"),
    ("qwen", r"(?:qwen|qwq).*"),
    ("cohere", r"(?:command|c4ai|embed|rerank|parse)(?:-.*)?"),
    ("amazon", r"(?:nova|titan|amazon)-.*"),
    ("meta", r"llama.*"),
    ("ai21", r"(?:j2|jamba)-.*"),
    ("minimax", r"minimax-.*"),
    ("nvidia", r"nemotron-.*"),
    ("writer", r"palmyra-.*"),
    ("twelvelabs", r"pegasus-.*"),
    ("groq", r"compound-.*"),
    ("playai", r"playai-.*"),
    ("canopylabs", r"orpheus-.*"),
)

DROPPED: Final = (
    "claude-3-sonnet",
    "gemini-2.0-flash",
    "gemini-2.0-flash-lite",
    "gemini-3-pro-preview",
)
"""Chat models that the sources no longer list, and that recordings and deployments still name."""

RULED: Final = r"grok-4(?:-fast|-1-fast)?"
"""Models that only a literal has, and that the rules describe."""

_SETTINGS: Final = ("thinking", "forced_tools", "sampling.temperature")
REQUIRED: Final = {
    "anthropic": (
        *_SETTINGS,
        "endpoints",
        "tools",
        "parallel_tools",
        "thinking_forms",
        "thinking_off",
        "efforts",
        "prefill",
        "late_system",
        "output_format",
        "sampling.stop_sequences",
        "context_window",
    ),
    "openai": (
        *_SETTINGS,
        "endpoints",
        "chat_tools",
        "efforts",
        "default_effort",
        "sampling.stop_sequences",
        "context_window",
    ),
    "google": ("thinking", "endpoints", "forced_tools", "efforts"),
    "gpt-oss": ("thinking", "efforts", "endpoints"),
}

SPECIAL: Final = (
    r".*(?:audio|codex|computer|cyber|daybreak|deep-research|live|rosalind|search|preview|law).*"
    r"|chat|gpt-3\.5-turbo.*|gpt-4|gpt-4-32k|gpt-5\.1-mini|gpt-5\.\d-pro|gpt-6-astra|gpt-6\.1-sol|o1.*|o3|o3-pro|o4-mini|r1|gemini-(?:exp|flash|pro|omni|robotics|gemma).*"
    r"|gemma.*|learnlm.*|claude(?:-v\d|-instant.*)?|claude-[a-z]+-(?:3|3-5)"
)
"""Models of which some required facts are not established: models of one task, previews, older
models, floating names, and OpenAI's models without a documented default effort."""

OVERLAY: Final = Overlay(
    vendors=VENDORS,
    rules=(*CLAUDE, *OPENAI, *OTHERS),
    required=REQUIRED,
    special=SPECIAL,
    dropped=DROPPED,
    ruled=RULED,
    month=MONTH,
)
