"""Settings that a model takes: others become the nearest value that it takes, or are left out.

In: portable settings, and the facts about the model that is called.  Out: portable settings that
the model takes, and notes.

Laws: a model that no row knows gets what was written. A name that is newer than the table has the
row of the newest older model of its line, and each note says which. A fact that is not known
changes nothing.
Source: the table of models (`model_table.py`).
"""

from collections.abc import Mapping
from typing import Any, Final

from deltafold.dialects.model_table import KnownModel, known_name
from deltafold.dialects.reasoning import BUDGET, EFFORT, effort_of
from deltafold.dialects.settings import ModelConfig
from deltafold.dialects.settings_table import Conversion
from deltafold.specs.tool_specs import ToolChoice

_FORCED: Final = frozenset({"required", "tool"})
_DEFAULTS: Final[Mapping[str, object]] = {"temperature": 1, "top_p": 1}
"""Values that every model has without the setting, so that leaving them out needs no note."""
_NEAR: Final = 0.95
"""Least `top_p` beside thinking. Source: Anthropic, "Extended thinking" (read 2026-11)."""
_OFF: Final = "none"


def known_model(config: ModelConfig, dialect: str) -> KnownModel | None:
    """Return the facts that hold for the model of a configuration, None if no row knows it.

    `strict_settings` asks for none, and `known_as` names the model in the table. A router, whose
    names have the vendor's before a slash, fits the settings itself.
    """
    if config.strict_settings:
        return None
    asked = config.known_as or config.model_id
    if dialect == "openai-chat" and "/" in asked:
        return None
    return known_name(asked)


def taken_values(values: Mapping[str, Any], conversion: Conversion) -> Mapping[str, Any]:
    """Return the portable settings without those that the model refuses; note these.

    Efforts are not among them: each API writes its own form of an effort that the model takes.
    """
    known = conversion.known
    if known is None:
        return values
    taken = dict(values)
    if known.facts.thinking == "never" and (taken.get(EFFORT) == _OFF or taken.get(BUDGET) == 0):
        # What the caller asks for is so already.
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
