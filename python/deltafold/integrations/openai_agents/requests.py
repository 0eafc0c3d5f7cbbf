"""Settings, tools and output types of openai-agents as those of a deltafold model.

In: the arguments of the SDK's `Model`.  Out: the arguments of `Model.stream` of deltafold.

Laws: a setting of the SDK replaces the same setting of the deltafold model. A setting that the
dialect does not have raises `UserError`. Hosted tools are tools of the dialect openai-responses;
others refuse them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from agents import AgentOutputSchemaBase, FunctionTool, Handoff, ModelSettings, Tool
from agents.exceptions import UserError
from agents.models.openai_responses import Converter

from deltafold.models.base import Model
from deltafold.models.prepared import INCLUDED_LOGPROBS
from deltafold.specs.output_schema import OutputSchema
from deltafold.specs.tool_specs import ToolChoice, ToolSpec

if TYPE_CHECKING:
    from deltafold.dialects.settings import ModelConfig

RESPONSES: Final = "openai-responses"

_SAME: Final = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "parallel_tool_calls",
    "truncation",
    "max_tokens",
    "verbosity",
    "metadata",
    "store",
    "top_logprobs",
)
"""Settings that have the same name in both."""

_MEMBERS: Final = ("prompt_cache_retention", "prompt_cache_options", "context_management")
"""Settings that are members of OpenAI's bodies."""


def fields_of(
    model: Model[Any],
    settings: ModelSettings,
    output: AgentOutputSchemaBase | None,
    *,
    previous_response_id: str | None,
    conversation_id: str | None,
) -> dict[str, Any]:
    """Return the fields of the configuration that a call changes.

    Raises:
        UserError: the dialect does not have a setting.
    """
    config: ModelConfig = model.get_config()
    fields: dict[str, Any] = {
        name: value for name in _SAME if (value := getattr(settings, name)) is not None
    }
    if settings.reasoning is not None:
        fields |= _reasoning(model.dialect, settings.reasoning.model_dump(exclude_none=True))
    if settings.include_usage is not None and model.dialect == "openai-chat":
        fields["include_usage"] = settings.include_usage
    if settings.response_include is not None:
        fields["include"] = tuple(settings.response_include)
    if previous_response_id is not None:
        fields["previous_response_id"] = previous_response_id
    if conversation_id is not None:
        fields["conversation"] = conversation_id
    if output is not None and not output.is_plain_text():
        fields["output_schema"] = OutputSchema(
            json_schema=output.json_schema(),
            name="final_output",
            strict=output.is_strict_json_schema(),
        )
    if "top_logprobs" in fields:
        fields |= _logprobs(
            model.dialect, fields.get("include", config.fields_set().get("include"))
        )
    known = type(config).model_fields
    # The SDK sets a verbosity for agents that name no model.
    unknown = sorted(set(fields) - set(known) - {"verbosity"})
    if unknown:
        raise UserError(f"{', '.join(unknown)}: {model.dialect} has no such setting")
    fields = {name: value for name, value in fields.items() if name in known}
    return fields | _extras(model, settings)


def _logprobs(dialect: str, included: Sequence[str] | None) -> dict[str, Any]:
    """Return the setting beside `top_logprobs` that asks for log probabilities."""
    if dialect != RESPONSES:
        return {"logprobs": True}
    return {"include": tuple(dict.fromkeys((*(included or ()), INCLUDED_LOGPROBS)))}


def _reasoning(dialect: str, reasoning: Mapping[str, Any]) -> dict[str, Any]:
    if dialect == RESPONSES:
        return {"reasoning": dict(reasoning)}
    effort = reasoning.get("effort")
    return {} if effort is None else {"reasoning_effort": effort}


def _extras(model: Model[Any], settings: ModelSettings) -> dict[str, Any]:
    config = model.get_config()
    members: dict[str, Any] = {
        name: value for name in _MEMBERS if (value := getattr(settings, name)) is not None
    }
    members |= settings.extra_args or {}
    members |= cast("Mapping[str, Any]", settings.extra_body or {})
    extras: dict[str, Any] = {}
    if members:
        extras["extra_body"] = {**config.extra_body, **members}
    if settings.extra_headers:
        given = cast("Mapping[str, Any]", settings.extra_headers)
        headers = {name: str(value) for name, value in given.items()}
        extras["extra_headers"] = {**config.extra_headers, **headers}
    if settings.extra_query:
        extras["extra_query"] = {**config.extra_query, **settings.extra_query}
    return extras


def tools_of(
    model: Model[Any], tools: Sequence[Tool], handoffs: Sequence[Handoff[Any, Any]]
) -> tuple[list[ToolSpec], dict[str, Any]]:
    """Return the tools of a call, and the fields for tools of the provider.

    Raises:
        UserError: a tool is hosted by OpenAI, and the dialect is not openai-responses.
    """
    functions = [tool for tool in tools if isinstance(tool, FunctionTool)]
    hosted: list[Tool] = [tool for tool in tools if not isinstance(tool, FunctionTool)]
    specs = [
        ToolSpec(
            name=tool.name,
            description=tool.description or None,
            parameter_schema=tool.params_json_schema,
            strict=tool.strict_json_schema,
        )
        for tool in functions
    ]
    specs += [
        ToolSpec(
            name=handoff.tool_name,
            description=handoff.tool_description or None,
            parameter_schema=handoff.input_json_schema,
            strict=handoff.strict_json_schema,
        )
        for handoff in handoffs
    ]
    if not hosted:
        return specs, {}
    if model.dialect != RESPONSES:
        names = ", ".join(tool.name for tool in hosted)
        raise UserError(f"{names}: hosted tools need a model of {RESPONSES}, not {model.dialect}")
    converted = Converter.convert_tools(hosted, [])
    config = model.get_config()
    provider_tools = [*config.provider_tools, *cast("Any", converted.tools)]
    fields: dict[str, Any] = {"provider_tools": provider_tools}
    if converted.includes:
        fields["include"] = tuple(converted.includes)
    return specs, fields


def choice_of(choice: Any, tools: Sequence[ToolSpec]) -> tuple[ToolChoice | None, dict[str, Any]]:
    """Return the choice of a tool, and the members of the body for a hosted one."""
    if choice is None or not (tools or isinstance(choice, str)):
        return None, {}
    if choice in {"auto", "required", "none"}:
        return (ToolChoice.model_validate({"mode": choice}) if tools else None), {}
    if isinstance(choice, str) and any(tool.name == choice for tool in tools):
        return ToolChoice.tool(choice), {}
    if isinstance(choice, str):
        return None, {"tool_choice": {"type": choice}}
    named = {"type": "mcp", "server_label": choice.server_label, "name": choice.name}
    return None, {"tool_choice": named}
