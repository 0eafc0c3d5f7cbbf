"""Requests for an output: the mechanism of the provider, in settings and tools of a call.

In: an `Output`, the model that is called, and the tools of the call.  Out: settings, a tool, and
the choice of that tool.

Laws: a provider without a mechanism gets a tool whose arguments are the output. The schema that is
sent has the form that the provider accepts, and allows no value that the type refuses by its
structure.
Source: the guides of the providers to structured outputs (read 2026-11).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic

from deltafold.contract.exceptions import MisuseError
from deltafold.dialects import DIALECTS
from deltafold.dialects.mechanism import Mechanism
from deltafold.dialects.model_fit import may_force_tool
from deltafold.dialects.model_table import find_model
from deltafold.dialects.reasoning import claude_version
from deltafold.dialects.settings import ModelConfig
from deltafold.models.vendors import VENDORS
from deltafold.specs.output_schema import OutputSchema
from deltafold.specs.strict_schema import LIMITS, strict_schema
from deltafold.specs.tool_specs import ToolChoice, ToolSpec
from deltafold.streams.output_streams import Expected
from deltafold.streams.outputs import Output, P, T

_FIRST_CLAUDE: Final = (4, 5)
"""Oldest version of Claude that follows a schema."""

_ON_BEDROCK: Final = re.compile(
    r"(?:^|[./])(?:deepseek|google|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|zai)\."
)
"""Models of other authors that follow a schema on Bedrock."""

_OLD_GEMINI: Final = re.compile(r"gemini-(?:1|2)\.")
"""Models of Gemini that refuse a schema beside tools."""

_PURPOSE: Final = "Return the final answer as the arguments of this tool."
_CALL: Final = "Call this tool to answer: other text is not read."
"""Request to a model whose call cannot be forced."""


@dataclass(frozen=True)  # with slots, Python 3.11 cannot call the class with type arguments
class OutputRequest(Generic[T, P]):
    """Changes of a call that asks for an output.

    Attributes:
        expected: the output and its place in the answer.
        settings: fields of the configuration.
        tool: the tool whose arguments are the output; None for the provider's own mechanism.
        tool_choice: the choice that makes the model call a tool; None without such a choice.
    """

    expected: Expected[T, P]
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    tool: ToolSpec | None = None
    tool_choice: ToolChoice | None = None


def output_request(
    output: Output[T, P], dialect: str, vendor: str, config: ModelConfig, *, has_tools: bool
) -> OutputRequest[T, P]:
    """Return the changes of a call that asks for an output.

    Args:
        output: the output.
        dialect: the protocol of the call.
        vendor: name of the vendor.
        config: the settings of the call.
        has_tools: whether the caller offers tools.

    Raises:
        ValueError: `strict` is set, and the provider's strict subset cannot express the type.
        MisuseError: the mode is "schema", and the provider has no mechanism.
    """
    row = VENDORS.get(vendor)
    name = config.known_as or config.model_id
    mechanism = None if output.mode == "tool" else mechanism_of(dialect, vendor, name)
    if output.mode == "auto" and mechanism is not None and has_tools:
        is_refused = dialect == "gemini" and _OLD_GEMINI.search(name) is not None
        if is_refused or not mechanism.takes_tools or (row and not row.schema_beside_tools):
            mechanism = None
    schema = None if mechanism is None else _schema_for(output, mechanism)
    if schema is not None:
        return OutputRequest(Expected(output), {"output_schema": schema})
    if output.mode == "schema":
        raise MisuseError(
            f'output: {config.model_id} of {vendor} cannot follow this schema; use mode="tool"'
        )
    takes_choice = row is None or row.takes_tool_choice
    is_forced = takes_choice and may_force_tool(config, dialect, () if row is None else row.names)
    choice = None
    if is_forced:
        is_alone = not has_tools and dialect != "cohere-chat"  # it cannot name a tool
        choice = ToolChoice.tool(output.name) if is_alone else ToolChoice(mode="required")
    purpose = output.description or _PURPOSE
    tool = ToolSpec(
        name=output.name,
        description=purpose if is_forced else f"{purpose} {_CALL}",
        parameter_schema=output.json_schema,
    )
    return OutputRequest(Expected(output, output.name), {"output_schema": None}, tool, choice)


def mechanism_of(dialect: str, vendor: str, model_id: str) -> Mechanism | None:
    """Return the mechanism of a model, None if it follows no schema.

    >>> mechanism_of("anthropic-messages", "anthropic", "claude-3-7-sonnet-latest") is None
    True
    """
    row = VENDORS.get(vendor)
    if row is not None and not row.follows_schema:
        return None
    known = find_model(model_id)
    is_claude = "claude" in model_id or (known is not None and known.facts.vendor == "anthropic")
    if is_claude and dialect in _CLAUDE_DIALECTS:
        follows = None if known is None else known.facts.output_format
        version = claude_version(model_id)
        if follows is None:
            follows = version is None or version >= _FIRST_CLAUDE
        return DIALECTS[dialect].mechanism if follows else None
    if dialect == "bedrock-converse":
        return DIALECTS[dialect].mechanism if _ON_BEDROCK.search(model_id) else None
    if dialect == "anthropic-messages" and vendor != "anthropic":
        return None
    protocol = DIALECTS.get(dialect)
    return None if protocol is None else protocol.mechanism


_CLAUDE_DIALECTS: Final = frozenset({"anthropic-messages", "bedrock-converse"})


def _schema_for(output: Output[Any, Any], mechanism: Mechanism) -> OutputSchema | None:
    """Return the schema in the form of a provider; None if the provider cannot follow it."""
    schema = output.json_schema
    strict: bool | None = None
    if mechanism.has_strict and output.is_schema:
        strict = output.strict
    elif (mechanism.has_strict or mechanism.is_closed) and output.strict is not False:
        closed = strict_schema(
            output.json_schema,
            keeps=LIMITS if mechanism.keeps_limits else frozenset(),
            requires_all=not output.is_schema,
            recursive=mechanism.is_recursive,
        )
        if closed is None and output.strict:
            raise ValueError(
                f"{output}: the strict subset of the provider cannot express the type, for "
                "example objects with any members; leave out strict=True"
            )
        if closed is None and mechanism.is_closed:
            return None
        strict = True if closed is not None and mechanism.has_strict else None
        schema = schema if closed is None else closed
    elif mechanism.has_strict:
        strict = output.strict
    if mechanism.has_name:
        description = output.description
        return OutputSchema(
            json_schema=schema, name=output.name, description=description, strict=strict
        )
    about = {} if output.description is None else {"description": output.description}
    return OutputSchema(json_schema={**schema, **about})
