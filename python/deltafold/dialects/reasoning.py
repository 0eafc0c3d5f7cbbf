"""Amount of reasoning: efforts and token budgets, and the forms that Claude models take.

In: portable settings.  Out: an effort, a budget, or the members of a Claude request.

Laws: a conversion between an effort and a budget is noted. A budget of -1 leaves the amount to the
model, and 0 switches reasoning off, as in Gemini.
Sources: budgets of efforts: Google's guide on OpenAI compatibility (read 2026-11). Shares of
`max_tokens`: OpenRouter's guide on reasoning tokens (read 2026-11). Claude: Amazon's page "Adaptive
thinking", Anthropic's pages "Effort" and "Extended thinking", and the guides on migrating to Claude
4.5 and 4.7 (read 2026-11).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from deltafold.contract.kinds import json_object
from deltafold.dialects.model_table import KnownModel, default_max_tokens
from deltafold.dialects.settings import ModelConfig, Object
from deltafold.dialects.settings_table import Conversion, Counterpart, Writing
from deltafold.specs.tool_specs import ToolChoice

EFFORT: Final = "reasoning_effort"
BUDGET: Final = "reasoning_budget"
SUMMARY: Final = "reasoning_summary"

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

BUDGETS: Final[Mapping[str, int]] = {
    "none": 0,
    "minimal": 1024,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 24576,
    "max": 24576,
}
"""Token budget of each effort."""

_READ_AS: Final = (("none", 0), ("low", 1024), ("medium", 8192))
"""Greatest budget of each effort, for the other direction; a greater budget is "high"."""

SHARES: Final[Mapping[str, float]] = {
    "minimal": 0.1,
    "low": 0.2,
    "medium": 0.5,
    "high": 0.8,
    "xhigh": 0.95,
    "max": 0.95,
}
"""Share of `max_tokens` that an effort spends, where the budget is a part of `max_tokens`."""

DYNAMIC: Final = -1
CLAUDE_MINIMUM: Final = 1024
CLAUDE_MAXIMUM: Final = 128_000
_DISABLED: Final = "disabled"
_CHAT: Final = "openai-chat"
_OFF: Final = frozenset({_DISABLED, "between_tools"})
"""Types of the member `thinking` that switch it off; the second is that of Sonnet 5.5."""
_CLAUDE_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")


def is_thinking_off(values: Mapping[str, Any]) -> bool:
    """Return whether portable settings ask for no thinking."""
    effort = values.get(EFFORT)
    return effort == "none" or (effort is None and values.get(BUDGET) == 0)


def effort_of_budget(budget: int) -> str:
    """Return the effort that is nearest to a budget of tokens."""
    return next((effort for effort, most in _READ_AS if budget <= most), "high")


def effort_of(
    values: Mapping[str, Any], conversion: Conversion, scale: Sequence[str] = ()
) -> str | None:
    """Return the effort of portable settings, None where the model decides.

    An effort outside of `scale`, or of the efforts that the model takes, moves to the nearest one.
    Any effort is in an empty scale.
    """
    known = conversion.known
    of_model = None if known is None else (known.facts.efforts or {}).get(conversion.target)
    who = conversion.target
    if known is not None and of_model is not None:
        scale, who = [word for word in of_model if not scale or word in scale], known.name
    budget, effort = values.get(BUDGET), values.get(EFFORT)
    if effort is None:
        if budget is None:
            return None
        if budget < 0:
            conversion.change(
                BUDGET, f"{conversion.target} leaves the amount to the model by default"
            )
            return None
        effort = effort_of_budget(budget)
        conversion.change(BUDGET, f"{budget} tokens become the effort {effort}")
    elif budget is not None and budget > 0:
        conversion.drop(BUDGET, "the effort is sent instead")
    if of_model is not None and not scale:
        if effort != "none":
            conversion.drop(EFFORT, f"{who} takes no effort")
        return None
    if not scale or effort in scale:
        return str(effort)
    if effort not in EFFORTS:
        conversion.drop(EFFORT, f"{who} has no effort {effort}")
        return None
    place = EFFORTS.index(effort)
    # Of two that are equally near, the one that does not switch reasoning off.
    nearest = min(scale, key=lambda word: (abs(EFFORTS.index(word) - place), word == "none"))
    conversion.change(EFFORT, f"{who} has no effort {effort}: {nearest} is sent")
    return nearest


def budget_of(values: Mapping[str, Any], conversion: Conversion) -> int | None:
    """Return the token budget of portable settings, None where there is none."""
    budget, effort = values.get(BUDGET), values.get(EFFORT)
    if effort is None or (budget is not None and budget > 0):
        if effort is not None:
            conversion.drop(EFFORT, "the budget is sent instead")
        return budget
    if effort not in BUDGETS:
        conversion.drop(EFFORT, f"{conversion.target} has no effort {effort}")
        return None
    if effort != "none":
        conversion.change(EFFORT, f"the effort {effort} becomes {BUDGETS[effort]} tokens")
    return BUDGETS[effort]


def write_effort(values: Mapping[str, Any], conversion: Conversion) -> object:
    """Return an effort, for APIs that take any word."""
    return None if _is_switched_off(values, conversion) else effort_of(values, conversion)


def _is_switched_off(values: Mapping[str, Any], conversion: Conversion) -> bool:
    """Return whether a member of its own switches thinking off in Chat, as DeepSeek's does."""
    known = conversion.known
    if known is None or known.facts.thinking_off != _DISABLED or conversion.target != _CHAT:
        return False
    return is_thinking_off(values)


def _write_chat_thinking(values: Mapping[str, Any], conversion: Conversion) -> object:
    return {"type": _DISABLED} if _is_switched_off(values, conversion) else None


ANY_EFFORT: Final = Counterpart((EFFORT, BUDGET), write=write_effort)

_CLAUDE: Final = re.compile(
    r"claude-(?:(\d+)(?:[-.](\d))?-[a-z]+|[a-z]+-(\d+)(?:[-.](\d{1,2}))?(?!\d))"
)


def claude_version(model_id: str) -> tuple[int, int] | None:
    """Return the version in the name of a Claude model, None if the name has none."""
    found = _CLAUDE.search(model_id)
    if found is None:
        return None
    return int(found[1] or found[3]), int(found[2] or found[4] or 0)


def asked_to_think(config: ModelConfig) -> bool | None:
    """Return whether settings ask a model to think, None if they leave it to the model."""
    if config.reasoning_effort is not None:
        return config.reasoning_effort != "none"
    more = json_object(getattr(config, "additional_model_request_fields", None)) or {}
    thinking = json_object(getattr(config, "thinking", None) or more.get("thinking"))
    if thinking is not None:
        return thinking.get("type") not in _OFF
    effort = (json_object(getattr(config, "reasoning", None)) or {}).get("effort")
    if effort is not None:
        return effort != "none"
    switched = config.extra_body.get("enable_thinking")  # that of DashScope
    return switched if isinstance(switched, bool) else None


def thinks(config: ModelConfig, known: KnownModel | None) -> bool:
    """Return whether a model thinks with these settings.

    A model that is not known thinks where its settings ask for it.
    """
    asked = asked_to_think(config)
    usual = None if known is None else known.facts.thinking
    return usual == "always" or (usual == "default" if asked is None else asked)


def _version_or_newest(model_id: str) -> tuple[int, int]:
    return claude_version(model_id) or (99, 0)


@dataclass(frozen=True, slots=True)
class ClaudePlan:
    """Reasoning of a Claude request.

    Attributes:
        thinking: the member `thinking`.
        effort: the member `output_config.effort`.
        changes: how the request differs from the portable settings.
        drop: reason why the request leaves out the reasoning that the settings ask for.
    """

    thinking: Object | None = None
    effort: str | None = None
    changes: tuple[str, ...] = ()
    drop: str = ""


@dataclass(frozen=True, slots=True)
class _ClaudeFacts:
    """What a Claude model takes: by the table of models, else by the version in its name.

    Attributes:
        adaptive: whether it takes adaptive thinking.
        budget: whether it takes a budget.
        efforts: the efforts beside adaptive thinking.
        off: what switches thinking off; "" if nothing does.
        thinks: whether it thinks without being asked.
        forced: whether a forced tool excludes thinking.
    """

    adaptive: bool
    budget: bool
    efforts: tuple[str, ...]
    off: str
    thinks: bool
    forced: bool = True

    @classmethod
    def of(cls, conversion: Conversion) -> Self:
        """Return those of the model of a conversion.

        Models from 4.6 on take adaptive thinking with an effort; from 4.7 on they refuse a budget.
        A name without a version is taken as that of a newer model.
        """
        version, known = _version_or_newest(conversion.model_id), conversion.known
        has_xhigh = version >= (4, 7)
        scale = _CLAUDE_EFFORTS if has_xhigh else ("low", "medium", "high", "max")
        plain = cls(
            adaptive=version >= (4, 6),
            budget=not has_xhigh,
            efforts=scale,
            off="" if has_xhigh else _DISABLED,
            thinks=False,
        )
        if known is None or known.facts.thinking is None:
            return plain
        facts, by_api = known.facts, known.facts.efforts or {}
        forms = facts.thinking_forms
        return replace(
            plain,
            adaptive=plain.adaptive if forms is None else "adaptive" in forms,
            budget=plain.budget if forms is None else "budget" in forms,
            efforts=by_api.get(conversion.target, by_api.get("anthropic-messages", scale)),
            off=facts.thinking_off or ("" if facts.thinking == "always" else plain.off),
            thinks=facts.thinking in {"default", "always"},
            forced=facts.forced_tools != "always",
        )


def claude_plan(values: Mapping[str, Any], conversion: Conversion) -> ClaudePlan:
    """Return the reasoning of a Claude request."""
    effort, budget = values.get(EFFORT), values.get(BUDGET)
    if effort is None and budget is None:
        return ClaudePlan()
    facts, known = _ClaudeFacts.of(conversion), conversion.known
    if is_thinking_off(values):
        return _without_thinking(facts, conversion)
    if known is not None and known.facts.thinking == "never":
        return ClaudePlan(drop=f"{known.name} does not think")
    return _with_thinking(values, facts, conversion)


def _without_thinking(facts: _ClaudeFacts, conversion: Conversion) -> ClaudePlan:
    if facts.off:
        return ClaudePlan({"type": facts.off})
    known = conversion.known
    if not facts.thinks or not facts.efforts or known is None:
        return ClaudePlan(changes=("no thinking is asked for",))
    change = f"{known.name} always thinks: the effort {facts.efforts[0]} is sent"
    return ClaudePlan({"type": "adaptive"}, facts.efforts[0], (change,))


def _with_thinking(
    values: Mapping[str, Any], facts: _ClaudeFacts, conversion: Conversion
) -> ClaudePlan:
    effort, budget, choice = values.get(EFFORT), values.get(BUDGET), values.get("tool_choice")
    is_forced = (
        facts.forced and isinstance(choice, ToolChoice) and choice.mode in {"required", "tool"}
    )
    is_budget = budget is not None and budget > 0
    if not facts.adaptive or (is_budget and facts.budget):
        return _with_budget(values, conversion, is_forced=is_forced)
    known = conversion.known
    name = "a Claude model" if known is None else known.name
    moved = Conversion(name, conversion.model_id)
    word = None
    if effort is not None or is_budget:
        word = effort_of(values, moved, facts.efforts)
    changes = [loss.reason for loss in moved.losses]
    if is_forced:
        changes.append("a forced tool excludes thinking")
        return ClaudePlan({"type": facts.off} if facts.thinks else None, word, tuple(changes))
    return ClaudePlan({"type": "adaptive"}, word, tuple(changes))


def _with_budget(
    values: Mapping[str, Any], conversion: Conversion, *, is_forced: bool
) -> ClaudePlan:
    if is_forced:
        return ClaudePlan(drop="a forced tool excludes thinking")
    most = values.get("max_tokens")
    # The request may not be streamed.
    most = default_max_tokens(conversion.known, stream=False) if most is None else int(most)
    budget = values.get(BUDGET)
    changes: tuple[str, ...] = ()
    if budget is None or budget <= 0:
        effort = values.get(EFFORT, "medium")
        if effort not in SHARES:
            return ClaudePlan(drop=f"a Claude model has no effort {effort}")
        wanted = int(SHARES[effort] * most)
        changes = (f"the effort {effort} becomes {SHARES[effort]:.0%} of max_tokens",)
    else:
        wanted = int(budget)
        if values.get(EFFORT) is not None:
            changes = ("the budget is sent instead of the effort",)
    if most <= CLAUDE_MINIMUM:
        return ClaudePlan(drop=f"max_tokens {most} is too small for thinking")
    sent = max(min(wanted, CLAUDE_MAXIMUM, most - 1), CLAUDE_MINIMUM)
    if sent != wanted:
        changes = (*changes, f"{sent} tokens are sent instead of {wanted}")
    return ClaudePlan({"type": "enabled", "budget_tokens": sent}, changes=changes)


def read_claude_thinking(
    value: Mapping[str, object], conversion: Conversion
) -> Mapping[str, object]:
    """Read `{type, budget_tokens?, display?}`."""
    members = dict(value)
    found: Object = {}
    match members.pop("type", None):
        case "enabled":
            found[BUDGET] = members.pop("budget_tokens", DYNAMIC)
        case "disabled" | "between_tools":
            found[EFFORT] = "none"
        case "adaptive":
            found[BUDGET] = DYNAMIC
        case kind:
            conversion.drop(BUDGET, f"{kind} is a kind of this API")
    display = members.pop("display", None)
    if display is not None:
        found[SUMMARY] = display == "summarized"
    for name in members:
        conversion.drop(f"{conversion.label(BUDGET)}.{name}", "a member of this API")
    return found


def write_claude_thinking(values: Mapping[str, Any], conversion: Conversion) -> object:
    """Write the member `thinking`, and note how the whole reasoning differs."""
    plan = claude_plan(values, conversion)
    name = EFFORT if values.get(EFFORT) is not None else BUDGET
    for change in plan.changes:
        conversion.change(name, change)
    if plan.drop:
        conversion.drop(name, plan.drop)
    shown = values.get(SUMMARY)
    if shown is None:
        return plan.thinking
    if plan.thinking is None or plan.thinking["type"] in _OFF:
        if shown:
            conversion.drop(SUMMARY, "the request has no thinking")
        return plan.thinking
    return plan.thinking | {"display": "summarized" if shown else "omitted"}


def write_claude_effort(values: Mapping[str, Any], conversion: Conversion) -> object:
    """Write the effort beside adaptive thinking."""
    return claude_plan(values, conversion).effort


CHAT_THINKING: Final = Counterpart(
    (EFFORT, BUDGET), read=read_claude_thinking, write=_write_chat_thinking
)
"""Member of DeepSeek, Moonshot and Z.ai. Sources: their guides "Thinking Mode" (read 2026-11)."""

CLAUDE_THINKING: Final = Counterpart(
    (EFFORT, BUDGET, SUMMARY), read=read_claude_thinking, write=write_claude_thinking
)


def write_claude_sampling(name: str, most: float) -> Writing:
    """Return the conversion of a setting of sampling, which many Claude models restrict.

    Args:
        name: `temperature`, `top_p` or `top_k`.
        most: greatest value that the API takes.
    """

    def write(values: Mapping[str, Any], conversion: Conversion) -> object:
        value = values[name]
        refusal = _sampling_refusal(name, values, conversion)
        if refusal:
            if name == "top_k" or value != 1:  # 1 is the default of the two others
                conversion.drop(name, refusal)
            return None
        if value > most:
            conversion.change(name, f"{conversion.target} takes 0 to {most:g}: {most:g} is sent")
        return type(value)(min(value, most))

    return write


def claude_sampling(name: str, most: float) -> Counterpart:
    """Return the counterpart of a setting of sampling; see `write_claude_sampling`."""
    return Counterpart((name,), write=write_claude_sampling(name, most))


def _sampling_refusal(name: str, values: Mapping[str, Any], conversion: Conversion) -> str:
    if "claude" not in conversion.model_id:
        return ""
    version = claude_version(conversion.model_id)
    if version is not None and version >= (4, 7):
        return "Claude models from 4.7 on refuse it"
    thinking = claude_plan(values, conversion).thinking
    is_thinking = thinking is not None and thinking["type"] not in _OFF
    is_accepted = {
        "temperature": values[name] == 1,
        "top_p": 0.95 <= values[name] <= 1,  # noqa: PLR2004 - the range of Anthropic's page
        "top_k": False,
    }[name]
    if is_thinking and not is_accepted:
        return "refused beside thinking"
    is_one_of = version is not None and version >= (4, 1)
    if name == "top_p" and is_one_of and values.get("temperature") is not None:
        return "Claude models from 4.1 on refuse it beside temperature"
    return ""
