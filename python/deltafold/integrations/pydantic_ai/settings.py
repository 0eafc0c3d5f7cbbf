"""Settings of pydantic-ai as settings of a deltafold model, and the profile of that model.

In: the framework's `ModelSettings` and request parameters.  Out: fields of the dialect's
configuration, tools, and the choice among them; a `ModelProfile`.

Laws: a setting of the request replaces the same setting of the deltafold model. `deltafold` among
the settings has fields of the configuration and replaces all others. A setting that the dialect
does not have is left out, and the framework warns of those that change what the request guarantees.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models._tool_choice import resolve_tool_choice
from pydantic_ai.profiles import ModelProfile, merge_profile
from pydantic_ai.profiles.anthropic import anthropic_model_profile
from pydantic_ai.profiles.cohere import cohere_model_profile
from pydantic_ai.profiles.google import google_model_profile
from pydantic_ai.profiles.mistral import mistral_model_profile
from pydantic_ai.profiles.openai import openai_model_profile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from deltafold.dialects.settings import CacheConfig, ModelConfig
from deltafold.integrations.pydantic_ai.native_tools import native_tools_of, provider_tool
from deltafold.models.base import Model
from deltafold.models.output_request import mechanism_of
from deltafold.specs.output_schema import OutputSchema
from deltafold.specs.tool_specs import ToolChoice, ToolSpec


class DeltafoldModelSettings(ModelSettings, total=False):
    """Settings of `DeltafoldModel`.

    Attributes:
        deltafold: fields of the configuration of the deltafold model, such as
            `{"thinking": {"type": "adaptive"}}` of an `AnthropicModel`.
    """

    deltafold: Mapping[str, Any]


_SAME: Final = (
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "parallel_tool_calls",
    "stop_sequences",
    "service_tier",
    "extra_headers",
)
"""Settings that have the same name in both."""

_LIMITS_CHOICE: Final = frozenset({"openai-chat", "openai-responses", "gemini"})
"""Dialects that can limit the choice to some of the tools."""

_PROFILES: Final[Mapping[str, Callable[[str], ModelProfile | None]]] = {
    "openai-chat": openai_model_profile,
    "openai-responses": openai_model_profile,
    "anthropic-messages": anthropic_model_profile,
    "gemini": google_model_profile,
    "mistral": mistral_model_profile,
    "cohere-chat": cohere_model_profile,
}

_SYSTEM_IN_PLACE: Final = frozenset({"openai-chat", "openai-responses", "mistral"})
_JSON_MODE: Final = frozenset({"openai-chat", "openai-responses", "mistral", "gemini", "ollama"})
_WITH_CACHE_LIFETIME: Final = frozenset({"anthropic-messages", "bedrock-converse"})


def profile_of(model: Model[Any]) -> ModelProfile:
    """Return what the framework must know about a model.

    The profile of the framework for the name of the model, with the facts of the dialect: they
    depend on the renderer, not on the model.
    """
    dialect = model.dialect
    make = _PROFILES.get(dialect)
    known = (make(model.model_id) if make is not None else None) or ModelProfile()
    name = model.get_config().known_as or model.model_id
    facts = ModelProfile(
        supports_json_schema_output=mechanism_of(dialect, model.provider_id, name) is not None,
        supports_json_object_output=dialect in _JSON_MODE,
        supports_inline_system_prompts=dialect in _SYSTEM_IN_PLACE,
        supports_request_scoped_system_prompts=False,
        supports_cache=dialect in _WITH_CACHE_LIFETIME,
        supported_cache_retentions=("5m", "1h"),
        supported_native_tools=native_tools_of(dialect),
        supports_thinking=known.get("supports_thinking", True),
    )
    return merge_profile(known, facts)


def tools_of(parameters: ModelRequestParameters) -> list[ToolSpec]:
    """Return the function tools and the output tools of a request."""
    return [_tool(tool) for tool in parameters.declared_tool_defs.values()]


def _tool(tool: ToolDefinition) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description or None,
        parameter_schema=tool.parameters_json_schema,
        strict=tool.strict or None,
    )


def choice_of(
    dialect: str,
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    tools: list[ToolSpec],
    *,
    can_force: bool,
) -> tuple[ToolChoice | None, list[ToolSpec]]:
    """Return the choice of a tool, and the tools that the choice leaves.

    Args:
        dialect: the dialect of the request.
        settings: the settings of the request.
        parameters: the parameters of the request.
        tools: all tools of the request.
        can_force: whether the model can be made to call a tool.
    """
    if not tools:
        return None, tools
    resolved = resolve_tool_choice(settings, parameters)
    names: tuple[str, ...] = ()
    mode = resolved
    if isinstance(resolved, tuple):
        mode, chosen = resolved
        names = tuple(tool.name for tool in tools if tool.name in chosen)
    if mode == "required" and not can_force:
        mode = "auto"
    if mode == "required" and len(names) == 1:
        return ToolChoice.tool(names[0]), tools
    if names and dialect not in _LIMITS_CHOICE:
        tools, names = [tool for tool in tools if tool.name in names], ()
    if mode == "auto" and not names:
        return None, tools
    return ToolChoice.model_validate({"mode": mode, "allowed_tools": names}), tools


def fields_of(
    model: Model[Any], settings: ModelSettings, parameters: ModelRequestParameters
) -> dict[str, Any]:
    """Return the fields of the configuration that a request changes."""
    given = cast("Mapping[str, Any]", settings)
    config: ModelConfig = model.get_config()
    known = type(config).model_fields
    fields: dict[str, Any] = {name: given[name] for name in _SAME if given.get(name) is not None}
    thinking = parameters.thinking
    if thinking is not None:
        # The other efforts of the framework are words of the contract.
        effort = thinking if isinstance(thinking, str) else ("medium" if thinking else "none")
        fields["reasoning_effort"] = effort
    fields |= _output_fields(model.dialect, parameters) | _cache_fields(parameters)
    if model.dialect == "anthropic-messages" and "service_tier" in fields:
        fields["service_tier"] = _CLAUDE_TIERS.get(fields["service_tier"])
    if parameters.native_tools:
        native = [provider_tool(tool, model.dialect) for tool in parameters.native_tools]
        fields["provider_tools"] = [*config.provider_tools, *native]
    if model.dialect == "anthropic-messages":
        fields |= _beta_fields(fields)
    body: Mapping[str, object] = given.get("extra_body") or {}
    bias = given.get("logit_bias")
    more = {} if bias is None else {"logit_bias": bias}
    if body or more:
        fields["extra_body"] = {**config.extra_body, **more, **body}
    if "extra_headers" in fields:
        fields["extra_headers"] = {**config.extra_headers, **fields["extra_headers"]}
    own: Mapping[str, Any] = given.get("deltafold") or {}
    return {**{name: value for name, value in fields.items() if name in known}, **own}


_BETAS: Final[Mapping[str, str]] = {
    "web_fetch_20250910": "web-fetch-2025-09-10",
    "code_execution_20250825": "code-execution-2025-08-25",
}
"""Betas of Anthropic that a tool needs."""


def _beta_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    needed = [
        _BETAS[tool["type"]]
        for tool in fields.get("provider_tools", ())
        if tool.get("type") in _BETAS
    ]
    headers: Mapping[str, str] = fields.get("extra_headers", {})
    if not needed:
        return {}
    given = [beta for beta in headers.get("anthropic-beta", "").split(",") if beta]
    return {"extra_headers": {**headers, "anthropic-beta": ",".join([*given, *needed])}}


_CLAUDE_TIERS: Final[Mapping[str, str]] = {"auto": "auto", "default": "standard_only"}
"""Service tiers of the framework that Anthropic has, and their names there."""


def unsupported_settings(model: Model[Any]) -> frozenset[Any]:
    """Return the settings that the dialect of a model does not have."""
    config: ModelConfig = model.get_config()
    known = type(config).model_fields
    return frozenset(name for name in _SAME if name not in known)


def _output_fields(dialect: str, parameters: ModelRequestParameters) -> dict[str, Any]:
    output = parameters.output_object
    if parameters.output_mode == "native" and output is not None:
        schema = OutputSchema(
            json_schema=output.json_schema,
            name=output.name or "final_result",
            description=output.description,
            strict=output.strict,
        )
        return {"output_schema": schema}
    # Others refuse a mode for JSON beside tools.
    combines = dialect.startswith("openai-") or not parameters.function_tools
    if parameters.output_mode == "prompted" and combines and dialect in _JSON_MODE:
        return {"output_schema": OutputSchema()}
    return {}


def _cache_fields(parameters: ModelRequestParameters) -> dict[str, Any]:
    cache = parameters.cache
    if cache is None:
        return {}
    if cache is False:
        return {"cache_config": CacheConfig(strategy="none")}
    lifetime: Any = cache.get("retention") if isinstance(cache, Mapping) else cache
    return {"cache_config": CacheConfig(lifetime=None if lifetime is True else lifetime)}
