"""Rules of the table of models for OpenAI.

In: nothing.  Out: `RULES`, the first match wins.

Laws: those of `model_overlay.py`.
"""

from typing import Final

from model_claims import Rule

_READ: Final = "2026-11"
_PROFILES: Final = "pydantic_ai/profiles/openai.py, measured by its authors"
_BRIDGE: Final = "litellm/responses/bridge_check.py, measured by its authors"
_SERIES: Final = "litellm/llms/openai/chat/gpt_reasoning_transformation.py"

_STOPPABLE: Final = (
    r"gpt-5\.1|gpt-5\.2|gpt-5\.3-codex|gpt-5\.4(?:-mini|-nano)?|gpt-5\.5|gpt-5\.6-(?:sol|terra|luna)"
    r"|gpt-6-(?:sol|luna)|gpt-6\.1-terra"
)
"""Models that take the effort `none`."""

RULES: Final = (
    # Kinds and APIs.
    Rule(r"gpt-audio.*", "kind", "openai.types.shared.chat_model", _READ, value="chat"),
    Rule(
        r"gpt-5\.1-codex|gpt-5\.2-pro",
        "endpoints",
        "litellm, supported_endpoints: the Chat literal keeps names without a Chat endpoint",
        _READ,
        prefer="litellm",
    ),
    Rule(
        r"gpt-[56](?:\.6)?-cyber",
        "endpoints",
        "openai.types.shared.responses_model",
        _READ,
        prefer="openai",
    ),
    Rule(
        r"gpt-5\.4(?:-mini|-nano)?",
        "chat_tools",
        f"{_BRIDGE}: refused with an effort; the default effort is none",
        _READ,
        value="unless_effort",
    ),
    Rule(
        r"gpt-5\.5|gpt-5\.6-.*|gpt-6-(?:sol|luna)|gpt-6\.1-terra",
        "chat_tools",
        f"{_BRIDGE}: refused with an effort, and without one",
        _READ,
        value="effort_none",
    ),
    Rule(
        r"gpt-6-astra(?:-law)?|gpt-6\.1-sol",
        "chat_tools",
        f"{_BRIDGE}: refused while the model thinks, and it always thinks",
        _READ,
        value="never",
    ),
    Rule(
        r"(?:gpt-(?:3\.5|4|4o|4\.1|5|5\.[123])(?:-(?!codex|pro|image|search|audio|realtime|transcribe|tts).*)?"
        r"|chatgpt-4o|o[134](?:-mini)?)",
        "chat_tools",
        f"{_BRIDGE}: refused from gpt-5.4 on",
        _READ,
        value="always",
    ),
    # Efforts.
    Rule(
        r"gpt-5(?:\.\d)?-pro",
        "effort.minimal",
        f"{_PROFILES}: gpt-5-pro takes high alone",
        _READ,
        prefer="pydantic-ai",
    ),
    Rule(
        r"gpt-5\.[1-5].*",
        "effort.minimal",
        "litellm, supports_minimal_reasoning_effort: minimal is an effort of gpt-5 alone",
        _READ,
        prefer="litellm",
    ),
    Rule(
        _STOPPABLE,
        "effort.(low|medium|high)",
        f"{_SERIES}: a level without a flag is never refused",
        _READ,
        value=True,
    ),
    Rule(
        r"gpt-.*|o\d.*",
        "effort.max@openai-chat",
        "pydantic_ai/profiles/openai.py: Chat Completions refuses max on every model",
        _READ,
        value=False,
    ),
    Rule(
        r"gpt-5(?:-mini|-nano)?|gpt-5\.[23]-chat|gpt-5\.1-chat|gpt-5\.6-.*|gpt-6-(?:sol|luna)|gpt-6\.1-terra"
        r"|gpt-5\.5",
        "default_effort",
        f"{_PROFILES}: medium by default",
        _READ,
        value="medium",
    ),
    Rule(
        r"o3-mini",
        "default_effort",
        "https://openrouter.ai/openai/o3-mini",
        _READ,
        value="medium",
    ),
    Rule(r"gpt-5-pro", "default_effort", f"{_PROFILES}: its only one", _READ, value="high"),
    # Tools and sampling.
    Rule(
        r"(?:gpt-(?:3\.5|4|4o|4\.1|5|6)(?:\.\d)?(?:-.*)?|chatgpt-4o|o[134](?:-.*)?)",
        "forced_tools",
        "openai/types/chat/chat_completion_tool_choice_option_param.py; no profile restricts it",
        _READ,
        value="always",
    ),
    Rule(
        r"(?:gpt-4o(?:-mini)?|gpt-4\.1.*|gpt-5.*|gpt-6.*|o[134].*)",
        "strict_tools",
        "pydantic_ai/profiles/openai.py: from gpt-4o-2024-08-06 on",
        _READ,
        value=True,
    ),
    Rule(
        r"gpt-[34].*|chatgpt-4o|gpt-5-chat",
        "sampling.stop_sequences",
        "openai/types/chat/completion_create_params.py",
        _READ,
        value="always",
    ),
    Rule(
        r"o[34].*|gpt-[56].*",
        "sampling.stop_sequences",
        f"{_SERIES}; openai/types/chat/completion_create_params.py for o3 and o4-mini",
        _READ,
        value="never",
    ),
    Rule(
        r"gpt-3\.5.*|gpt-4|gpt-4-32k",
        "images",
        "OpenAI's list of models",
        _READ,
        value=False,
    ),
    # Dates and limits.
    Rule(
        r"gpt-.*|o\d.*",
        "retired",
        "openai.types.shared.chat_model, section Deprecated values",
        _READ,
        prefer="openai",
    ),
    Rule(
        r"gpt-4\.1.*|gpt-5\.5(?:-pro)?",
        "context_window",
        "litellm: genai-prices rounds the number",
        _READ,
        prefer="litellm",
    ),
    # Azure's name gpt-5-chat is not the alias gpt-5-chat-latest of OpenAI.
    Rule(
        r"gpt-5-chat",
        "(tools|parallel_tools|successor)",
        "litellm, row gpt-5-chat-latest",
        _READ,
        prefer="litellm gpt-5-chat-latest",
    ),
)
