"""Rules of the table of models for Claude.

In: nothing.  Out: `RULES`, the first match wins.

Laws: those of `model_overlay.py`.
"""

from typing import Final

from model_claims import Rule

_READ: Final = "2026-11"
_PROFILES: Final = "pydantic_ai/profiles/anthropic.py, measured by its authors"
_OTHERS: Final = "litellm, the same switch of the other Claude models"
_KNOWN: Final = "Anthropic's overview of models"

RULES: Final = (
    Rule(
        r"claude(?:-.*)?", "endpoints", "anthropic/types/model.py", _READ, ("anthropic-messages",)
    ),
    Rule(
        r"claude-(?:sonnet|haiku)-5.*",
        "late_system",
        f"{_PROFILES}: sonnet-5 answers 200 and ignores it, sonnet-5-5 credits it to the user,"
        " haiku-5-5 follows a block of text better",
        _READ,
        prefer="pydantic-ai",
    ),
    Rule(
        r"claude-sonnet-5-5",
        "thinking",
        f"{_PROFILES}: between_tools stops it",
        _READ,
        prefer="pydantic-ai",
    ),
    # The profile takes this retired preview for a model before 4.5. The row has no flag for a level
    # below those of the newest models.
    Rule(
        r"claude-mythos-preview",
        "effort.(low|medium|high)",
        "litellm, row claude-mythos-preview: it takes xhigh and max",
        _READ,
        value=True,
    ),
    Rule(
        r"claude-mythos-preview",
        "effort.(xhigh|max)",
        "litellm, row claude-mythos-preview",
        _READ,
        prefer="litellm",
    ),
    Rule(
        r"claude-mythos-preview",
        "(thinking_forms|output_format)",
        "litellm, row claude-mythos-preview",
        _READ,
        prefer="litellm",
    ),
    Rule(
        r"claude-mythos-preview",
        "sampling.(temperature|top_k|top_p)",
        "litellm, row claude-mythos-preview",
        _READ,
        prefer="litellm",
    ),
    Rule(
        r"claude-.*",
        "retired",
        "anthropic/resources/messages/messages.py, DEPRECATED_MODELS",
        _READ,
        prefer="anthropic",
    ),
    Rule(
        r"claude-[a-z]+-(?:4-[6-9]|[5-9](?:-\d)?)",
        "prefill",
        f"{_OTHERS}: true up to 4.5, false from 4.6 on",
        _READ,
        value=False,
    ),
    Rule(
        r"claude-(?:[a-z]+-(?:3|3-5|3-7|4|4-1|4-5))",
        "prefill",
        f"{_OTHERS}: true up to 4.5, false from 4.6 on",
        _READ,
        value=True,
    ),
    Rule(
        r"claude-(?:opus-4-1|(?:opus|sonnet|haiku)-4-[56])",
        "one_sampling",
        "Anthropic's guide on migrating to Claude 4.5, as deltafold/dialects/reasoning.py has it",
        _READ,
        value=True,
    ),
    Rule(
        r"claude-[a-z]+-\d.*",
        "sampling.stop_sequences",
        "anthropic/types/message_create_params.py",
        _READ,
        value="always",
    ),
    Rule(
        r"claude-[a-z]+-\d.*",
        "parallel_tools",
        "anthropic/types/tool_choice_auto_param.py",
        _READ,
        value=True,
    ),
    Rule(
        r"claude-[a-z]+-\d.*",
        "tools",
        _OTHERS,
        _READ,
        value=True,
    ),
    Rule(
        r"claude-opus-4-5",
        "default_effort",
        "claude-code, plugin claude-opus-4-5-migration, reference on effort",
        _READ,
        value="high",
    ),
    Rule(
        r"claude-[a-z]+-[3-9].*",
        "images",
        _OTHERS,
        _READ,
        value=True,
    ),
    Rule(
        r"claude-[a-z]+-(?:3-[57]|[4-9].*)",
        "pdf",
        _OTHERS,
        _READ,
        value=True,
    ),
    # Bedrock's rows have its older limits.
    Rule(
        r"claude-sonnet-3-7",
        "max_output_tokens",
        _KNOWN,
        _READ,
        value=64_000,
    ),
    Rule(
        r"claude-sonnet-3",
        "max_output_tokens",
        _KNOWN,
        _READ,
        value=4_096,
    ),
    # One region's row lists the window without the 4,096 tokens of output.
    Rule(r"claude-haiku-3", "context_window", "genai-prices", _READ, prefer="genai-prices"),
)
