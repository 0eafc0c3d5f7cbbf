"""Settings of anthropic-messages: Anthropic's Messages API."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ConfigDict

from deltafold.dialects.portable import (
    no_json_mode,
    only_schema,
    read_user,
    schema_of,
    words,
    write_nothing,
    write_user,
)
from deltafold.dialects.reasoning import (
    BUDGET,
    CLAUDE_THINKING,
    EFFORT,
    claude_sampling,
    write_claude_effort,
)
from deltafold.dialects.settings import Count, Flag, ModelConfig, Object
from deltafold.dialects.settings_table import (
    AS_MEMBER,
    COMMON,
    Conversion,
    Counterpart,
    SettingTable,
    converted,
    copied,
    no_member,
    same,
    written,
)


class AnthropicConfig(ModelConfig):
    """Settings of anthropic-messages. Objects have the form of the provider's API.

    >>> from deltafold.dialects import dialect_of
    >>> config = AnthropicConfig(model_id="claude-haiku-4-5", max_tokens=100, top_k=5)
    >>> rendered = dialect_of("anthropic-messages").render([Message.user("Hi")], [], config)
    >>> rendered.body["top_k"]
    5

    Attributes:
        output_format: the beta's name of `output_config.format`.
        parallel_tool_calls: False allows one call at a time.
        reasoning_placeholder: text of the thinking block of a message of a tool turn, and of a
            request with tools, that has none. A vendor that sets it takes thinking without a
            signature, too, which Anthropic refuses; None sends signed thinking alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Count | None = None
    thinking: Object | None = None
    output_config: Object | None = None
    output_format: Object | None = None
    metadata: Object | None = None
    service_tier: str | None = None
    parallel_tool_calls: Flag | None = None
    reasoning_placeholder: str | None = None


def _write_stops(values: Mapping[str, Any], conversion: Conversion) -> object:
    stops = [stop for stop in values["stop_sequences"] if stop.strip()]
    if len(stops) < len(values["stop_sequences"]):
        conversion.change("stop_sequences", f"{conversion.target} refuses white space alone")
    return tuple(stops) or None


def _read_format(value: Mapping[str, object], conversion: Conversion) -> Mapping[str, object]:
    if value.get("type") != "json_schema":
        conversion.drop("output_schema", f"{value.get('type')} is a format of this API")
        return {}
    return {"output_schema": schema_of(value)}


def _write_format(values: Mapping[str, Any], conversion: Conversion) -> object:
    schema = only_schema(values, conversion)
    if no_json_mode(schema, conversion):
        return None
    return {"type": "json_schema", "schema": dict(schema.json_schema or {})}


_OUTPUT_SCHEMA: Final = ("output_schema",)


SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("max_tokens"),
    "temperature": copied("temperature").means(claude_sampling("temperature", 1)),
    "top_p": copied("top_p").means(claude_sampling("top_p", 1)),
    "top_k": copied("top_k").means(claude_sampling("top_k", float("inf"))),
    "stop_sequences": copied("stop_sequences").means(
        Counterpart(("stop_sequences",), write=_write_stops)
    ),
    "thinking": copied("thinking").means(CLAUDE_THINKING),
    "output_config": copied("output_config").means(
        Counterpart((EFFORT, BUDGET), ("effort",), write=write_claude_effort),
        Counterpart(_OUTPUT_SCHEMA, ("format",), _read_format, _write_format),
    ),
    "output_format": copied("output_format").means(
        Counterpart(_OUTPUT_SCHEMA, (), _read_format, write_nothing)
    ),
    "reasoning_effort": written("thinking", "output_config", reason=AS_MEMBER),
    "output_schema": written("output_config", reason=AS_MEMBER),
    "metadata": copied("metadata").means(
        Counterpart(("safety_identifier", "user"), ("user_id",), read_user, write_user)
    ),
    "service_tier": copied("service_tier").means(
        words("service_tier", {"auto": "auto", "standard_only": "default"})
    ),
    "tool_choice": converted("tool_choice"),
    "parallel_tool_calls": converted("tool_choice"),
    "cache_config": converted("cache_control"),
    "reasoning_placeholder": no_member("text of thinking blocks").shapes(
        "selects the thinking blocks that a vendor takes"
    ),
}
"""Counterpart of each setting in the request body."""
