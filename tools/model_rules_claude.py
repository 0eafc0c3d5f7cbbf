"""Rules of the table of models for Claude.

In: nothing.  Out: `RULES`, the first match wins.

Laws: those of `model_overlay.py`.
"""

from typing import Final

from model_claims import Rule

_READ: Final = "2026-11"
_PROFILES: Final = "pydantic_ai/profiles/anthropic.py, measured by its authors"
_WORKS_WITH: Final = "https://platform.claude.com/docs/en/build-with-claude/working-with-messages"

RULES: Final = (
    Rule(r"claude(?:-.*)?", "endpoints", "anthropic/types/model.py", _READ, ("anthropic-messages",)),
    Rule(
        r"claude-(?:sonnet|haiku)-5.*",
        "late_system",
        f"{_PROFILES}: sonnet-5 answers 200 and ignores it, the others read it as the user's",
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
    # The profile takes this retired preview for a model before 4.5.
    Rule(
        r"claude-mythos-preview",
        "effort.(none|minimal|low|medium|high|xhigh|max)",
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
        f"{_WORKS_WITH}: not supported from Claude 4.6 on",
        _READ,
        value=False,
    ),
    Rule(
        r"claude-(?:[a-z]+-(?:3|3-5|3-7|4|4-1|4-5))",
        "prefill",
        f"{_WORKS_WITH}: not supported from Claude 4.6 on",
        _READ,
        value=True,
    ),
    Rule(
        r"claude-(?:opus-4-1|(?:opus|sonnet|haiku)-4-[56])",
        "one_sampling",
        "Anthropic's guide on migrating to Claude 4.5",
        _READ,
        value=True,
    ),
    Rule(
        r"claude-[a-z]+-\d.*",
        "sampling.stop_sequences",
        "https://platform.claude.com/docs/en/api/messages",
        _READ,
        value="always",
    ),
    Rule(
        r"claude-[a-z]+-\d.*",
        "parallel_tools",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use",
        _READ,
        value=True,
    ),
    Rule(
        r"claude-[a-z]+-\d.*",
        "tools",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview",
        _READ,
        value=True,
    ),
    Rule(
        r"claude-opus-4-[56]",
        "default_effort",
        "Anthropic's skill on migrating to Claude Opus 4.5, reference on effort",
        _READ,
        value="high",
    ),
    # One region's row lists the window without the 4,096 tokens of output.
    Rule(r"claude-haiku-3", "context_window", "genai-prices", _READ, prefer="genai-prices"),
)
