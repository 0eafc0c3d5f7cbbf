"""Settings that a model takes: others become the nearest value that it takes, or are left out.

In: portable settings, and the facts about the model that is called.  Out: portable settings that
the model takes, and notes.

Laws: settings for a model that the table does not have stay as they were written. A name that is
newer than the table is fitted to the newest older model of its line, which each note names. A fact
that is not known changes nothing.
Source: the table of models (`model_table.py`).
"""

from collections.abc import Mapping
from typing import Any, Final

from deltafold.dialects.model_table import KnownModel, find_model
from deltafold.dialects.reasoning import BUDGET, EFFORT, effort_of
from deltafold.dialects.settings import ModelConfig
from deltafold.dialects.settings_table import Conversion
from deltafold.specs.tool_specs import ToolChoice

_COPIED: Final = frozenset({"openai-chat", "openai-responses", "anthropic-messages"})
"""Protocols that servers and routers of other vendors speak."""
_CLOSED: Final = frozenset({"anthropic", "openai", "google", "xai"})
"""Vendors whose models are the same wherever they are served, Google's Gemma apart."""
_FORCED: Final = frozenset({"required", "tool"})
_DEFAULTS: Final[Mapping[str, object]] = {"temperature": 1, "top_p": 1}
"""Values that every model has without the setting, so that leaving them out needs no note."""
_NEAR: Final = 0.95
"""Least `top_p` beside thinking. Source: Anthropic, "Extended thinking" (read 2026-11)."""
_OFF: Final = "none"


def model_to_fit(config: ModelConfig, dialect: str) -> KnownModel | None:
    """Return the facts that the settings of a configuration are fitted to, None if to none."""
    return (
        None
        if config.strict_settings
        else found_to_fit(config.known_as or config.model_id, dialect)
    )


def found_to_fit(name: str, dialect: str) -> KnownModel | None:
    """Return the facts that settings for a model are fitted to, None if to none.

    A router, whose names have the vendor's before a slash, fits the settings itself. The weights of
    an open model run on many hosts, each with its own limits and settings, so that its row holds in
    the vendor's own protocol alone.
    """
    if dialect in _COPIED and "/" in name:
        return None
    known = find_model(name)
    if known is None:
        return None
    facts = known.facts
    is_closed = facts.vendor in _CLOSED and "gemma" not in facts.name
    is_at_home = dialect not in _COPIED and dialect in (facts.endpoints or ())
    return known if is_closed or is_at_home else None


def taken_values(values: Mapping[str, Any], conversion: Conversion) -> Mapping[str, Any]:
    """Return the portable settings without those that the model refuses; note these.

    Efforts are not among them: each API writes its own form of an effort that the model takes.
    """
    known = conversion.known
    if known is None:
        return values
    taken = dict(values)
    if known.facts.thinking == "never" and (taken.get(EFFORT) == _OFF or taken.get(BUDGET) == 0):
        # The model never thinks, so that nothing has to switch thinking off.
        taken.pop(EFFORT, None)
        taken.pop(BUDGET, None)
    _fit_tool_choice(taken, known, conversion)
    _fit_sampling(taken, known, conversion)
    most, asked = known.facts.max_output_tokens, taken.get("max_tokens")
    if most is not None and asked is not None and asked > most:
        conversion.change("max_tokens", f"{known.name} takes at most {most}: {most} is sent")
        taken["max_tokens"] = most
    has_one_call = known.facts.parallel_tools is False
    if has_one_call and taken.pop("parallel_tool_calls", False):
        conversion.drop("parallel_tool_calls", f"{known.name} makes one call at a time")
    return taken


def _fit_tool_choice(taken: dict[str, Any], known: KnownModel, conversion: Conversion) -> None:
    choice, facts = taken.get("tool_choice"), known.facts
    if not isinstance(choice, ToolChoice) or choice.mode not in _FORCED:
        return
    cannot_stop = facts.thinking == "always"
    if facts.forced_tools == "never" or (facts.forced_tools == "unless_thinking" and cannot_stop):
        conversion.change("tool_choice", f"{known.name} refuses a forced tool: auto is sent")
        taken["tool_choice"] = ToolChoice(mode="auto")
        return
    thinks = facts.thinking == "default" and EFFORT not in taken and BUDGET not in taken
    if facts.forced_tools == "unless_thinking" and thinks:
        conversion.change("tool_choice", "a forced tool excludes thinking, which is off")
        taken[EFFORT] = _OFF


def _fit_sampling(taken: dict[str, Any], known: KnownModel, conversion: Conversion) -> None:
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
        thinks = asked != _OFF and (asked is not None or budget != 0)
    for name, condition in conditions.items():
        is_near = name == "top_p" and taken[name] >= _NEAR  # the default of Claude's page
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
