"""Tools of langchain-core as tools of deltafold, and the choice among them.

In: the arguments of `bind_tools`.  Out: `ToolSpec`s, tools of the provider, a `ToolChoice`.

Law: a tool in the form of a provider's API that the framework cannot convert is a tool of the
provider and is sent unchanged.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.utils.function_calling import convert_to_openai_tool

from deltafold.specs.tool_specs import ToolChoice, ToolSpec

_MARKS: Final = ("cache_control", "defer_loading", "eager_input_streaming")
"""Members of Anthropic's tools that the form of OpenAI has not."""


def bound_tools(tools: Sequence[Any], *, strict: bool | None) -> list[dict[str, Any]]:
    """Return tools in the form in which they are bound: that of OpenAI, or the provider's own."""
    bound: list[dict[str, Any]] = []
    for tool in tools:
        if _is_provider_tool(tool):
            bound.append(dict(tool))
            continue
        converted = dict(convert_to_openai_tool(tool, strict=strict))
        if isinstance(tool, Mapping):
            given = cast("Mapping[str, Any]", tool)
            converted |= {name: given[name] for name in _MARKS if name in given}
        bound.append(converted)
    return bound


def _is_provider_tool(tool: object) -> bool:
    if not isinstance(tool, Mapping):
        return False
    given = cast("Mapping[str, Any]", tool)
    if "type" in given:
        return given["type"] not in {"function", "custom", "object"}
    # Gemini names its tools by their only member.
    return len(given) == 1 and isinstance(next(iter(given.values())), Mapping)


def specs_of(bound: Sequence[Any]) -> tuple[list[ToolSpec], list[dict[str, Any]]]:
    """Return bound tools as specifications, and the tools of the provider."""
    specs: list[ToolSpec] = []
    of_provider: list[dict[str, Any]] = []
    for tool in bound_tools(bound, strict=None):
        if _is_provider_tool(tool):
            of_provider.append(tool)
            continue
        function: dict[str, Any] = tool["function"]
        extra = {name: tool[name] for name in _MARKS if name in tool}
        specs.append(
            ToolSpec(
                name=function["name"],
                description=function.get("description") or None,
                parameter_schema=function.get("parameters") or {"type": "object", "properties": {}},
                strict=function.get("strict"),
                extra=extra,
                dialect="anthropic-messages" if extra else None,
            )
        )
    return specs, of_provider


_MODES: Final[Mapping[object, str]] = {
    "auto": "auto",
    "none": "none",
    "any": "required",
    "required": "required",
    True: "required",
}


def choice_of(choice: object) -> ToolChoice | None:
    """Return the choice of a tool in any form that LangChain's models take.

    Raises:
        ValueError: the choice has none of these forms.
    """
    if choice is None or choice is False or choice == "":
        return None
    if isinstance(choice, ToolChoice):
        return choice
    if isinstance(choice, str | bool):
        mode = _MODES.get(choice)
        return ToolChoice.tool(str(choice)) if mode is None else _mode(mode)
    if isinstance(choice, Mapping):
        given = cast("Mapping[str, Any]", choice)
        name = (given.get("function") or given).get("name")
        if isinstance(name, str):
            return ToolChoice.tool(name)
        if (mode := _MODES.get(given.get("type"))) is not None:
            return _mode(mode)
    raise ValueError(f"tool_choice: {choice!r} is neither a mode nor the name of a tool")


def _mode(mode: str) -> ToolChoice:
    return ToolChoice.model_validate({"mode": mode})
