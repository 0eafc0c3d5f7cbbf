"""Rules of families of models, as their vendors document them, and a judge of requests by them.

The table of models is not read. Sources, read 2026-11: OpenAI's API reference and the guides to the
reasoning models ("Parameter compatibility"); Anthropic's pages "Effort", "Adaptive thinking",
"Extended thinking" and "Migration guide"; Google's guide "Gemini thinking"; xAI's guide "Reasoning"
and NousResearch/hermes-agent #23435 (measured); Mistral's API and anomalyco/models.dev #1986
(measured); DeepSeek's guide "Thinking Mode"; Moonshot's "Models overview"; Z.ai's API reference;
QwenLM/qwen-code #7659; the model card of gpt-oss.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deltafold.contract.kinds import json_object

_SAMPLING: Final = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_LOGPROBS: Final = ("logprobs", "top_logprobs")
_DEFAULTS: Final[Mapping[str, object]] = {"temperature": 1, "top_p": 1}
_NEAR_ONE: Final = 0.95
"""Least `top_p` that Claude takes beside thinking."""


@dataclass(frozen=True)
class Rules:
    """What a model takes.

    Attributes:
        name: the name for `load_model`.
        specification: the protocol, None for the usual one.
        thinking: "never", "optional", "default" or "always".
        efforts: the efforts that it takes; None for any.
        refused: settings that it refuses or ignores.
        refused_thinking: settings that it refuses or ignores while it thinks.
        forced: when a call may be forced: "always", "never" or "unless_thinking".
        switches: values of the member `thinking.type`.
        most: most tokens of an answer.
        has_one_sampling: whether `temperature` and `top_p` exclude each other.
        has_one_call: whether it makes one call at a time, and refuses the setting for that.
        chat_tools: when Chat takes tools: "always", "unless_effort" or "effort_none".
        budget: smallest and greatest budget of thinking.
    """

    name: str
    specification: str | None = None
    thinking: str = "never"
    efforts: tuple[str, ...] | None = None
    refused: tuple[str, ...] = ()
    refused_thinking: tuple[str, ...] = ()
    forced: str = "always"
    switches: tuple[str, ...] = ()
    most: int | None = None
    has_one_sampling: bool = False
    has_one_call: bool = False
    chat_tools: str = "always"
    budget: tuple[int, int] | None = None


_OPENAI_OLD: Final = (*_SAMPLING, *_LOGPROBS, "stop")
_TO_XHIGH: Final = ("none", "low", "medium", "high", "xhigh")
_CLAUDE_SAMPLING: Final = ("temperature", "top_p", "top_k")
_CLAUDE_5: Final = ("low", "medium", "high", "xhigh", "max")
_BUDGET: Final = (1024, 128_000)

FAMILIES: Final = (
    Rules("openai/gpt-4.1", efforts=(), most=32_768),
    Rules(
        "openai/gpt-5-mini",
        thinking="always",
        efforts=("minimal", "low", "medium", "high"),
        refused=_OPENAI_OLD,
        most=128_000,
    ),
    Rules(
        "openai-chat/o3",
        thinking="always",
        efforts=("low", "medium", "high"),
        refused=_OPENAI_OLD,
        most=100_000,
        has_one_call=True,
    ),
    *(
        Rules(
            f"{protocol}/gpt-5.4",
            thinking="optional",
            efforts=_TO_XHIGH,
            refused=("stop",),
            refused_thinking=(*_SAMPLING, *_LOGPROBS),
            most=128_000,
            chat_tools="unless_effort",
        )
        for protocol in ("openai", "openai-chat")
    ),
    Rules(
        "openai/gpt-5.6-terra",
        thinking="default",
        efforts=(*_TO_XHIGH, "max"),
        refused=("stop",),
        refused_thinking=(*_SAMPLING, *_LOGPROBS),
        most=128_000,
    ),
    Rules(
        "openai-chat/gpt-5.6-terra",
        thinking="default",
        efforts=_TO_XHIGH,
        refused=("stop",),
        refused_thinking=(*_SAMPLING, *_LOGPROBS),
        most=128_000,
        chat_tools="effort_none",
    ),
    Rules(
        "openai/gpt-6.1-sol",
        thinking="always",
        efforts=("low", "medium", "high", "xhigh", "max"),
        refused=_OPENAI_OLD,
        most=128_000,
    ),
    Rules(
        "anthropic/claude-haiku-4-5",
        thinking="optional",
        efforts=(),
        refused_thinking=_CLAUDE_SAMPLING,
        forced="unless_thinking",
        switches=("enabled", "disabled"),
        most=64_000,
        has_one_sampling=True,
        budget=_BUDGET,
    ),
    Rules(
        "anthropic/claude-opus-4-6",
        thinking="optional",
        efforts=("low", "medium", "high", "max"),
        refused_thinking=_CLAUDE_SAMPLING,
        switches=("adaptive", "enabled", "disabled"),
        most=128_000,
        has_one_sampling=True,
        budget=_BUDGET,
    ),
    *(
        Rules(
            f"anthropic/{model}",
            thinking=thinking,
            efforts=_CLAUDE_5,
            refused=_CLAUDE_SAMPLING,
            forced=forced,
            switches=("adaptive", *off),
            most=128_000,
        )
        for model, thinking, forced, off in (
            ("claude-opus-4-8", "optional", "always", ("disabled",)),
            ("claude-sonnet-5", "default", "always", ("disabled",)),
            ("claude-sonnet-5-5", "default", "never", ("between_tools",)),
            ("claude-opus-5-5", "always", "never", ()),
            ("claude-fable-5-1", "always", "never", ()),
        )
    ),
    Rules(
        "google/gemini-2.5-flash", thinking="default", efforts=(), budget=(0, 24_576), most=65_536
    ),
    Rules(
        "google/gemini-3.1-pro-preview",
        thinking="always",
        efforts=("low", "medium", "high"),
        most=65_536,
    ),
    Rules(
        "google/gemini-3.5-flash",
        thinking="default",
        efforts=("minimal", "low", "medium", "high"),
        most=65_536,
    ),
    Rules(
        "xai/grok-4",
        thinking="always",
        efforts=(),
        refused=("frequency_penalty", "presence_penalty", "stop"),
    ),
    Rules(
        "xai/grok-4.3",
        thinking="default",
        efforts=("none", "low", "medium", "high"),
        refused=("frequency_penalty", "presence_penalty", "stop"),
    ),
    Rules(
        "xai/grok-4.7",
        thinking="always",
        efforts=("low", "medium", "high", "xhigh"),
        refused=("frequency_penalty", "presence_penalty", "stop"),
    ),
    Rules("xai/grok-4-fast-non-reasoning", efforts=()),
    Rules("mistral/mistral-medium-3-5", thinking="optional", efforts=("none", "high")),
    Rules("mistral/mistral-large-latest", efforts=()),
    *(
        Rules(
            "deepseek/deepseek-v4-pro",
            specification=protocol,
            thinking="default",
            efforts=efforts,
            refused_thinking=_SAMPLING,
            forced="unless_thinking",
            switches=("enabled", "disabled", "adaptive"),
            most=393_216,
        )
        for protocol, efforts in (
            ("openai-chat", ("low", "high", "max")),
            ("openai-responses", ("none", "low", "high", "max")),
            ("anthropic-messages", ("low", "high", "max")),
        )
    ),
    Rules(
        "moonshot/kimi-k2.5",
        thinking="default",
        efforts=("minimal", "low", "medium", "high", "xhigh", "max"),
        refused=_SAMPLING,
        forced="never",
        switches=("enabled", "disabled"),
    ),
    Rules(
        "moonshot/kimi-k3",
        thinking="always",
        efforts=("low", "high", "max"),
        refused=("temperature",),
        forced="never",
    ),
    Rules(
        "zai/glm-4.7",
        thinking="default",
        efforts=(),
        forced="never",
        switches=("enabled", "disabled"),
        most=131_072,
    ),
    Rules(
        "zai/glm-5.3",
        thinking="always",
        efforts=("low", "high", "max"),
        most=131_072,
        forced="never",
    ),
    Rules("qwen/qwen3.7-max", thinking="optional", forced="unless_thinking", most=65_536),
    Rules("groq/openai/gpt-oss-120b", thinking="always", efforts=("low", "medium", "high")),
)


@dataclass(frozen=True)
class _Asked:
    """Settings of a request of any protocol."""

    values: Mapping[str, Any]
    effort: str | None
    switch: str | None
    budget: int | None
    is_forced: bool
    has_tools: bool


def _of_gemini(body: Mapping[str, Any]) -> _Asked:
    config = json_object(body.get("generationConfig")) or {}
    thinking = json_object(config.get("thinkingConfig")) or {}
    calling = json_object((json_object(body.get("toolConfig")) or {}).get("functionCallingConfig"))
    names = {"topP": "top_p", "topK": "top_k", "stopSequences": "stop", "maxOutputTokens": "max"}
    names |= {"frequencyPenalty": "frequency_penalty", "presencePenalty": "presence_penalty"}
    level: Any = thinking.get("thinkingLevel")
    budget: Any = thinking.get("thinkingBudget")
    return _Asked(
        {names.get(name, name): value for name, value in config.items()},
        level and str(level).lower(),
        None,
        budget,
        (calling or {}).get("mode") == "ANY",
        has_tools="tools" in body,
    )


def _of_others(body: Mapping[str, Any]) -> _Asked:
    reasoning = json_object(body.get("reasoning")) or {}
    output = json_object(body.get("output_config")) or {}
    thinking = json_object(body.get("thinking")) or {}
    choice: Any = body.get("tool_choice")
    members = json_object(choice)
    mode: Any = choice if members is None else members.get("type")
    effort: Any = body.get("reasoning_effort", reasoning.get("effort", output.get("effort")))
    switch: Any = thinking.get("type")
    budget: Any = thinking.get("budget_tokens")
    limits = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    found = next((body[name] for name in limits if name in body), None)
    stop = body.get("stop", body.get("stop_sequences"))
    return _Asked(
        {**body, "max": found, **({} if stop is None else {"stop": stop})},
        effort,
        switch,
        budget,
        mode in {"required", "any", "tool", "function"},
        has_tools="tools" in body,
    )


def refusals(rules: Rules, dialect: str, body: Mapping[str, Any]) -> list[str]:
    """Return why a vendor refuses a request, or what of it has no effect."""
    asked = _of_gemini(body) if dialect == "gemini" else _of_others(body)
    return list(_refusals(rules, dialect, asked))


def thinks_about(rules: Rules, dialect: str, body: Mapping[str, Any]) -> bool:
    """Return whether the model thinks about a request."""
    return thinks(rules, _of_gemini(body) if dialect == "gemini" else _of_others(body))


def thinks(rules: Rules, asked: _Asked) -> bool:
    """Return whether the model thinks about a request."""
    if rules.thinking in {"always", "never"}:
        return rules.thinking == "always"
    if asked.switch is not None:
        return asked.switch not in {"disabled", "between_tools"}
    if asked.effort is not None or asked.budget is not None:
        return asked.effort != "none" and asked.budget != 0
    return rules.thinking == "default"


def _refusals(rules: Rules, dialect: str, asked: _Asked) -> Iterator[str]:
    is_thinking = thinks(rules, asked)
    yield from _sampling(rules.refused, asked.values)
    if is_thinking:
        yield from _sampling(rules.refused_thinking, asked.values, near="claude" in rules.name)
    if rules.has_one_sampling and {"temperature", "top_p"} <= {*asked.values}:
        yield "temperature and top_p"
    yield from _amount(rules, asked)
    if asked.is_forced and (rules.forced == "never" or (rules.forced != "always" and is_thinking)):
        yield "a forced tool"
    if rules.has_one_call and "parallel_tool_calls" in asked.values:
        yield "parallel_tool_calls"
    if rules.most is not None and (asked.values.get("max") or 0) > rules.most:
        yield f"{asked.values['max']} tokens"
    if dialect == "openai-chat" and asked.has_tools:
        taken = {"unless_effort": (None, "none"), "effort_none": ("none",)}.get(rules.chat_tools)
        if taken is not None and asked.effort not in taken:
            yield f"tools beside the effort {asked.effort}"


def _amount(rules: Rules, asked: _Asked) -> Iterator[str]:
    if rules.efforts is not None and asked.effort not in {None, *rules.efforts}:
        yield f"effort {asked.effort}"
    if asked.switch not in {None, *rules.switches}:
        yield f"thinking {asked.switch}"
    least, most = rules.budget or (0, None)
    budget = asked.budget or 0
    if budget > 0 and (budget < least or (most is not None and budget > most)):
        yield f"a budget of {budget}"


def _sampling(
    names: Sequence[str], values: Mapping[str, Any], *, near: bool = False
) -> Iterator[str]:
    for name in names:
        value: Any = values.get(name)
        is_default = value is None or value == _DEFAULTS.get(name)
        is_near = near and name == "top_p" and (value or 0) >= _NEAR_ONE
        if not is_default and not is_near:
            yield name
