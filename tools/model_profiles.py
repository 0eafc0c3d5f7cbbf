"""Facts in the profiles of pydantic-ai.

In: the profile of one model at its vendor.  Out: facts in the words of the table.

Laws: a value that a profile function gives to every unknown name makes no claim. An effort that the
profile passes through unchanged is not known.
Source: pydantic_ai/profiles and pydantic_ai/providers; most values were measured by the authors.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from model_claims import Value

Profile: TypeAlias = Mapping[str, Any]
Found: TypeAlias = Iterator[tuple[str, Value]]

LEVELS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def profile_facts(vendor: str, name: str, profile: Profile) -> Found:
    """Yield the facts in a profile."""
    yield from _READERS.get(vendor, _plain)(name, profile)


def _levels(taken: frozenset[str]) -> Found:
    for level in LEVELS:
        yield f"effort.{level}", level in taken


def _thinking(profile: Profile) -> str:
    if not profile.get("supports_thinking"):
        return "never"
    if profile.get("thinking_always_enabled"):
        return "always"
    return "default" if profile.get("thinking_enabled_by_default") else "optional"


_SAMPLING: Final = (
    "frequency_penalty",
    "logprobs",
    "presence_penalty",
    "temperature",
    "top_logprobs",
    "top_p",
)
"""Settings of `SAMPLING_PARAMS` in pydantic_ai/profiles/openai.py that are portable settings."""

_PLAIN_OPENAI: Final = re.compile(r"gpt-[34].*|chatgpt-.*|gpt-5-chat.*")
"""Models of OpenAI that do not think; the profile of an unknown name looks the same."""


def _openai(name: str, profile: Profile) -> Found:
    thinks = bool(profile["supports_thinking"])
    if not thinks and _PLAIN_OPENAI.fullmatch(name) is None:
        return
    yield "audio", bool(profile["supports_audio_file_input"])
    yield "late_system", bool(profile["supports_inline_system_prompts"])
    condition = "always"
    if thinks:
        stops = profile["openai_supports_reasoning_effort_none"]
        condition = "effort_none" if stops else "never"
        if stops:
            yield "thinking_off", "effort_none"
    for setting in _SAMPLING:
        yield f"sampling.{setting}", condition
    yield "thinking", _thinking(profile)
    if not thinks:
        return
    yield "thinking_forms", ("effort",)
    if "openai_reasoning_efforts" in profile:
        yield from _levels(profile["openai_reasoning_efforts"])
    else:
        yield "effort.none", bool(profile["openai_supports_reasoning_effort_none"])
        yield "effort.minimal", bool(profile["openai_supports_minimal_reasoning_effort"])
        yield "effort.max", bool(profile["openai_responses_supports_max_reasoning_effort"])


def _anthropic(name: str, profile: Profile) -> Found:
    yield "thinking", _thinking(profile) if _thinks_known(name) else "never"
    takes_effort = profile["anthropic_supports_effort"]
    taken = {"low", "medium", "high"} if takes_effort else set[str]()
    if takes_effort and profile["anthropic_supports_xhigh_effort"]:
        taken.add("xhigh")
    if takes_effort and profile["anthropic_supports_max_effort"]:
        taken.add("max")
    yield from _levels(frozenset(taken))
    yield from _anthropic_settings(name, profile)
    if not _thinks_known(name):
        return
    if profile["anthropic_supports_adaptive_thinking"]:
        only = profile["anthropic_disallows_budget_thinking"]
        yield "thinking_forms", ("adaptive",) if only else ("adaptive", "budget")
    else:
        yield "thinking_forms", ("budget",)
    if not profile["thinking_always_enabled"]:
        between = profile["anthropic_disables_thinking_with_between_tools"]
        yield "thinking_off", "between_tools" if between else "disabled"
        if profile["anthropic_disallows_top_effort_when_thinking_disabled"]:
            yield "efforts_when_off", ("low", "medium", "high")


def _thinks_known(name: str) -> bool:
    """Return whether a Claude model can think: the profile gives every name this ability."""
    return (
        re.match(r"claude-(?:[12]|v|instant|3-(?!7)|(?:opus|sonnet|haiku)-3(?!-7))", name) is None
    )


def _anthropic_settings(name: str, profile: Profile) -> Found:
    beside = "unless_thinking" if _thinks_known(name) else "always"
    if not profile["supports_forced_tool_choice"]:
        yield "forced_tools", "never"
    else:
        adaptive = profile["anthropic_supports_adaptive_thinking"]
        yield "forced_tools", "always" if adaptive else beside
    for setting in ("temperature", "top_k", "top_p"):
        refused = profile["anthropic_disallows_sampling_settings"]
        yield f"sampling.{setting}", "never" if refused else beside
    yield "late_system", bool(profile["supports_inline_system_prompts"])
    yield "binds_thinking", bool(profile["anthropic_binds_thinking_blocks"])
    yield "output_format", bool(profile["supports_json_schema_output"])
    yield "strict_tools", bool(profile["supports_json_schema_output"])
    yield "fits_window", bool(profile["anthropic_rejects_max_tokens_beyond_context_window"])
    if profile["anthropic_max_output_tokens"]:
        yield "max_output_tokens", profile["anthropic_max_output_tokens"]


def _google(name: str, profile: Profile) -> Found:
    del name
    thinks = profile["supports_thinking"]
    always = profile["thinking_always_enabled"]
    yield "thinking", "always" if always else "default" if thinks else "never"
    yield "strict_tools", bool(profile["google_supports_strict_tool_definition"])
    yield "tools", bool(profile["supports_tools"])
    if not thinks:
        return
    if not profile["google_supports_thinking_level"]:
        yield "thinking_forms", ("budget",)
        yield from _levels(frozenset())
        if not always:
            yield "thinking_off", "budget_zero"
        return
    yield "thinking_forms", ("level",)
    levels = profile.get("google_thinking_levels", ("MINIMAL", "LOW", "MEDIUM", "HIGH"))
    yield from _levels(frozenset(level.lower() for level in levels))


def _xai(name: str, profile: Profile) -> Found:
    del name
    efforts = profile["grok_reasoning_efforts"]
    if efforts:
        yield "thinking", "always" if profile["thinking_always_enabled"] else "default"
        yield "thinking_forms", ("effort",)
        yield from _levels(efforts)
        if "none" in efforts:
            yield "thinking_off", "effort_none"


def _groq(name: str, profile: Profile) -> Found:
    del name
    yield "thinking", "always" if profile["thinking_always_enabled"] else "default"
    if profile["groq_supports_graded_reasoning_effort"]:
        yield "thinking_forms", ("effort",)
        yield from _levels(frozenset({"low", "medium", "high"}))


def _deepseek(name: str, profile: Profile) -> Found:
    yield from _plain(name, profile)
    if not profile["supports_forced_tool_choice"]:
        yield "forced_tools", "never"
    else:
        restricted = not profile["supports_forced_tool_choice_with_thinking"]
        yield "forced_tools", "unless_thinking" if restricted else "always"


def _moonshot(name: str, profile: Profile) -> Found:
    yield from _plain(name, profile)
    if not profile["supports_forced_tool_choice"]:
        yield "forced_tools", "never"
    off = profile.get("openai_chat_thinking_false_body", {})
    if off.get("thinking") == {"type": "disabled"}:
        yield "thinking_off", "disabled"


def _zai(name: str, profile: Profile) -> Found:
    yield from _plain(name, profile)
    words = profile.get("zai_reasoning_effort_mapping")
    if words:
        yield from _levels(frozenset(words.values()))
    elif profile.get("supports_thinking") and not profile.get("zai_supports_reasoning_effort"):
        yield from _levels(frozenset())


def _plain(name: str, profile: Profile) -> Found:
    """Yield how the model thinks, where the profile says more than that it can."""
    del name
    found = _thinking(profile)
    if found in {"default", "always"}:
        yield "thinking", found
    if profile.get("supports_inline_system_prompts"):
        yield "late_system", True


def _mistral(name: str, profile: Profile) -> Found:
    yield from _plain(name, profile)
    if _thinking(profile) == "optional":  # the models reason with `high`, and not without an effort
        yield "thinking", "optional"
        yield "thinking_off", "effort_none"
        yield "thinking_forms", ("effort",)


def _silent(name: str, profile: Profile) -> Found:
    """Yield nothing: a profile that describes only schemas has no fact of the table."""
    del name, profile
    yield from ()


_READERS: Final[Mapping[str, Callable[[str, Profile], Found]]] = {
    "anthropic": _anthropic,
    "deepseek": _deepseek,
    "google": _google,
    "gpt-oss": _groq,
    "mistral": _mistral,
    "moonshot": _moonshot,
    "openai": _openai,
    "qwen": _silent,
    "xai": _xai,
    "zai": _zai,
}
