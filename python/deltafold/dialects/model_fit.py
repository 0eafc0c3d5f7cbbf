"""Settings that a model takes: others become the nearest value that it takes, or are left out.

In: portable settings, and the facts about the model that is called.  Out: portable settings that
the model takes, and notes.

Laws: settings for a model that the table does not have stay as they were written. A name that is
newer than the table is fitted to the newest older model of its line, which each note names. A fact
that is not known changes nothing.
Source: the table of models (`model_table.py`).
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from deltafold.dialects.model_table import KnownModel, find_model
from deltafold.dialects.reasoning import BUDGET, EFFORT, effort_of, is_thinking_off, thinks
from deltafold.dialects.settings import ModelConfig
from deltafold.dialects.settings_table import Conversion
from deltafold.specs.tool_specs import ToolChoice

_COPIED: Final = frozenset({"openai-chat", "openai-responses", "anthropic-messages"})
"""Protocols that servers and routers of other vendors speak."""
_OPEN: Final = "gpt-oss"
_CLOSED: Final = frozenset({"anthropic", "openai", "google", "xai", _OPEN})
"""Vendors whose models are the same wherever they are served, Google's Gemma apart.

The chat template of gpt-oss has the efforts, so that they are the same on every host.
"""
_SLASHED: Final = frozenset({"fireworks", "groq", "together"})
"""Hosts whose own names of models have a slash, unlike those of a router."""
CLAUDE_DIALECTS: Final = frozenset({"anthropic-messages", "bedrock-converse"})
_FORCED: Final = frozenset({"required", "tool"})
_DEFAULTS: Final[Mapping[str, object]] = {"temperature": 1, "top_p": 1}
"""Values that every model has without the setting, so that leaving them out needs no note."""
_NEAR: Final = 0.95
"""Least `top_p` beside thinking. Source: Anthropic, "Extended thinking" (read 2026-11)."""
_OFF: Final = "none"

CHAT: Final = "openai-chat"
TOOLS_BESIDE_NONE: Final = frozenset({"unless_effort", "effort_none"})
"""Conditions of function tools in Chat Completions that the effort `none` meets."""


def model_to_fit(
    config: ModelConfig, dialect: str, vendors: Collection[str] = ()
) -> KnownModel | None:
    """Return the facts that the settings of a configuration are fitted to, None if to none."""
    return (
        None
        if config.strict_settings
        else found_to_fit(config.known_as or config.model_id, dialect, vendors)
    )


def found_to_fit(name: str, dialect: str, vendors: Collection[str] = ()) -> KnownModel | None:
    """Return the facts that settings for a model are fitted to, None if to none.

    A router, whose names have the vendor's before a slash, fits the settings itself. The weights of
    an open model run on many hosts, each with its own limits and settings, so that its row holds at
    its own vendor, and in the vendor's own protocol, alone.

    Args:
        name: the name of the model.
        dialect: the dialect of the settings.
        vendors: names of the vendor that is called, () if it is not known.
    """
    if dialect in _COPIED and "/" in name and _SLASHED.isdisjoint(vendors):
        return None
    known = find_model(name)
    if known is None:
        return None
    facts = known.facts
    is_closed = facts.vendor in _CLOSED and "gemma" not in facts.name
    is_at_home = facts.vendor in vendors
    is_at_home |= dialect not in _COPIED and dialect in (facts.endpoints or ())
    return known if is_closed or is_at_home else None


def may_force_tool(config: ModelConfig, dialect: str, vendors: Collection[str] = ()) -> bool:
    """Return whether a request with these settings may force a call of a tool.

    A Claude model that is not known may be forced unless it is asked to think.
    """
    name = config.known_as or config.model_id
    known = found_to_fit(name, dialect, vendors)
    condition = None if known is None else known.facts.forced_tools
    if condition is None:
        condition = "unless_thinking" if "claude" in name else "always"
    return not thinks(config, known) if condition == "unless_thinking" else condition == "always"


def taken_values(values: Mapping[str, Any], conversion: Conversion) -> Mapping[str, Any]:
    """Return the portable settings without those that the model refuses; note these.

    Efforts are not among them: each API writes its own form of an effort that the model takes.
    """
    known = conversion.known
    if known is None:
        return values
    taken = dict(values)
    if known.facts.thinking == "never" and is_thinking_off(taken):
        # The model never thinks, so that nothing has to switch thinking off.
        taken.pop(EFFORT, None)
        taken.pop(BUDGET, None)
    if conversion.has_tools:
        _fit_chat_tools(taken, known, conversion)
    _fit_tool_choice(taken, known, conversion)
    _fit_sampling(taken, known, conversion)
    most, asked = known.facts.max_output_tokens, taken.get("max_tokens")
    if known.facts.vendor == _OPEN:
        most = None  # each host has its own limit
    if most is not None and asked is not None and asked > most:
        conversion.change("max_tokens", f"{known.name} takes at most {most}: {most} is sent")
        taken["max_tokens"] = most
    has_one_call = known.facts.parallel_tools is False
    if has_one_call and taken.pop("parallel_tool_calls", False):
        conversion.drop("parallel_tool_calls", f"{known.name} makes one call at a time")
    return taken


def _fit_chat_tools(taken: dict[str, Any], known: KnownModel, conversion: Conversion) -> None:
    condition, asked = known.facts.chat_tools, taken.get(EFFORT)
    if condition not in TOOLS_BESIDE_NONE or is_thinking_off(taken):
        return
    if condition == "effort_none" or asked is not None or taken.get(BUDGET, 0) > 0:
        why = f"Chat refuses tools of {known.name} beside another effort, Responses takes them"
        conversion.change(EFFORT, f"{why}: {_OFF} is sent")
        taken[EFFORT] = _OFF
        taken.pop(BUDGET, None)


def _fit_tool_choice(taken: dict[str, Any], known: KnownModel, conversion: Conversion) -> None:
    choice, facts = taken.get("tool_choice"), known.facts
    if not isinstance(choice, ToolChoice) or choice.mode not in _FORCED:
        return
    cannot_stop = facts.thinking == "always"
    if facts.forced_tools == "never" or (facts.forced_tools == "unless_thinking" and cannot_stop):
        conversion.change("tool_choice", f"{known.name} refuses a forced tool: auto is sent")
        taken["tool_choice"] = ToolChoice(mode="auto")
        return
    asked, budget = taken.get(EFFORT), taken.get(BUDGET)
    if asked is None and budget is None:
        is_thinking = facts.thinking == "default"
    else:  # for Claude, the renderer leaves out the thinking that is asked for
        is_thinking = not is_thinking_off(taken) and conversion.target not in CLAUDE_DIALECTS
    if facts.forced_tools == "unless_thinking" and is_thinking:
        conversion.change("tool_choice", "a forced tool excludes thinking, which is off")
        taken[EFFORT] = _OFF
        taken.pop(BUDGET, None)


def _fit_sampling(taken: dict[str, Any], known: KnownModel, conversion: Conversion) -> None:
    if known.facts.one_sampling and {"temperature", "top_p"} <= taken.keys():
        del taken["top_p"]
        conversion.drop("top_p", f"{known.name} refuses it beside temperature")
    conditions = {
        name: condition
        for name, condition in (known.facts.sampling or {}).items()
        if name in taken and condition != "always" and taken[name] != _DEFAULTS.get(name)
    }
    if not conditions:
        return
    effort = effort_of(taken, Conversion(conversion.target, conversion.model_id, known=known))
    effort = effort or known.facts.default_effort
    asked, budget = taken.get(EFFORT), taken.get(BUDGET)
    if asked is None and budget is None:
        thinks = known.facts.thinking in {"default", "always"}
    else:
        thinks = not is_thinking_off(taken)
    for name, condition in conditions.items():
        is_near = name == "top_p" and known.facts.vendor == "anthropic" and taken[name] >= _NEAR
        if (condition == "effort_none" and effort == _OFF) or (
            condition == "unless_thinking" and (is_near or not thinks)
        ):
            continue
        why = {
            "effort_none": f"{known.name} takes it at the effort none alone",
            "unless_thinking": f"{known.name} refuses it while it thinks",
        }.get(condition, f"{known.name} refuses it")
        del taken[name]
        conversion.drop(name, why)
