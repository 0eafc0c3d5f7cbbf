"""Tools: what a model may call, and the function behind it.

In: a function, or a specification with an implementation; the arguments of a call.  Out: the
arguments in the types of the function; the outcome of a call as text, parts and JSON.

Laws: an argument that does not fit its type is never passed on; the error tells the model what to
mend. Parameters that the caller provides are not shown to the model.
Source: docs/blueprint.md#tool-definition, docs/blueprint.md#provider-clients.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import NoneType
from typing import Any, Final, Self, TypeAlias, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from deltafold.contract.foreign_text import well_formed
from deltafold.conversation.history.frozen import thawed
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.conversation.history.sections import LevelOfDetailSections, to_plain_text
from deltafold.conversation.history.tool_calls import (
    ContextAttachment,
    HistoryToolCallResult,
    ToolCallRequest,
)
from deltafold.conversation.tools.argument_parser import ArgumentError, ToolArgumentParser
from deltafold.message.messages import (
    ContentPart,
    FileRefPart,
    ImagePart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ToolResultPart,
)
from deltafold.specs.tool_schema import hints_of, model_of_function
from deltafold.specs.tool_specs import ToolSpec

MAX_RESULT_BYTES: Final = 1 << 20
"""The longest text of a result, in bytes of UTF-8, by default."""

Execute: TypeAlias = Callable[..., object]

_BY_TYPE: Final[Mapping[object, str]] = {ToolArgumentParser: "parser", ToolCallRequest: "call"}
"""Parameters that are given by their type."""


class Conversation:
    """Base class of the conversation, which a run gives to parameters of its type.

    >>> def forget(state: AgentState) -> str:
    ...     "Forget the conversation."
    >>> Tool.from_function(forget).parameter_schema["properties"]
    {}
    """


_Part = TypeVar("_Part", bound=TextPart | ImagePart | FileRefPart | ProviderPart)
_PARTS: Final = (TextPart, ImagePart, FileRefPart, ProviderPart)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its specification, its implementation, and the rules for running it.

    >>> def weather(city: str, days: int = 1) -> str:
    ...     "Tell the weather of a city."
    >>> Tool.from_function(weather, timeout_ms=5_000).name
    'weather'

    A tool returns text, a part (`ImagePart`, `FileRefPart`), a list of texts and parts, a pydantic
    model, or any JSON value. A generator yields its progress; the last value is the result.

    Attributes:
        name: the name that the model uses.
        description: purpose of the tool, and when to use it.
        parameter_schema: JSON Schema of the arguments, an object schema.
        execute: called with the arguments by name; a synchronous function runs in a thread. None
            describes a tool that something else runs.
        timeout_ms: milliseconds until the call fails; None sets no limit.
        requires_approval: whether each call needs an approval.
        requires_runtime: whether `execute` takes `runtime`.
        requires_agent: whether `execute` takes `agent`.
        is_repeatable: whether an agent may run a call again that an interruption may have ended.
        strict: whether the provider must hold the arguments to the schema; None leaves it to the
            provider.
    """

    name: str
    description: str
    parameter_schema: Mapping[str, object]
    execute: Execute | None = None
    timeout_ms: int | None = None
    requires_approval: bool = False
    requires_runtime: bool = False
    requires_agent: bool = False
    is_repeatable: bool = False
    strict: bool | None = None
    _model: type[BaseModel] | None = field(default=None, repr=False, compare=False)
    _given: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, compare=False)
    _is_call: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def from_function(cls, function: Execute, **settings: Any) -> Self:  # noqa: ANN401 - the other fields
        """Make a tool of a function: its name, docstring and typed parameters.

        The model does not see parameters that are given: those with the names `runtime` and
        `agent`, and those of the types `AgentState`, which is the conversation of the run,
        `ToolArgumentParser` and `ToolCallRequest`.

        Raises:
            ValueError: a parameter cannot be passed by name, or its type has no JSON Schema.
        """
        parameters = inspect.signature(function).parameters
        hints = hints_of(function)
        sources = {name: _source_of(hint) for name, hint in hints.items() if name in parameters}
        by_type = {name: source for name, source in sources.items() if source is not None}
        injected = {name for name in ("runtime", "agent") if name in parameters}
        shown = _without(function, injected | by_type.keys())
        spec = ToolSpec.from_function(shown)
        fields: dict[str, Any] = {
            "name": spec.name,
            "description": spec.description or "",
            "parameter_schema": spec.parameter_schema,
            "requires_runtime": "runtime" in injected,
            "requires_agent": "agent" in injected,
            **settings,
        }
        model = model_of_function(shown)
        return cls(execute=function, _model=model, _given=by_type, **fields)

    @property
    def requires_state(self) -> bool:
        """Whether `execute` takes the conversation."""
        return "state" in self._given.values()

    def asking(self) -> Self:
        """Return the tool, each of whose calls needs an approval."""
        return replace(self, requires_approval=True)

    def run_by(self, execute: Execute, *, reports: bool = False) -> Self:
        """Return the tool with another implementation, which takes the call as its argument.

        Args:
            execute: the implementation.
            reports: whether it also takes `report`, a function that it calls with its progress.
        """
        given = {"call": "call"} | ({"report": "report"} if reports else {})
        return replace(self, execute=execute, _model=None, _given=given, _is_call=True)

    def to_spec(self, *, strict: bool | None = None) -> ToolSpec:
        """Return the specification that is sent to the model."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameter_schema=dict(self.parameter_schema),
            strict=self.strict if strict is None else strict,
        )

    def arguments_of(self, call: ToolCallRequest, **given: object) -> dict[str, object]:
        """Return the arguments for `execute`, in the types of its parameters.

        Args:
            call: the call.
            given: the runtime, the agent, the state of the conversation, and what takes progress.

        Raises:
            ArgumentError: the arguments are not an object, or one has the wrong type, is missing or
                unknown; the text names all of them.
        """
        parser = ToolArgumentParser(call)
        arguments = {} if self._is_call else self._typed(call)
        injected = {"parser": parser, "call": call, **given}
        arguments |= {name: injected.get(source) for name, source in self._given.items()}
        if self.requires_runtime:
            arguments["runtime"] = given.get("runtime")
        if self.requires_agent:
            arguments["agent"] = given.get("agent")
        return arguments

    def _typed(self, call: ToolCallRequest) -> dict[str, object]:
        raw = thawed(call.arguments or {})
        if self._model is None:
            return raw
        aliases = {field.alias: name for name, field in self._model.model_fields.items()}
        known = ", ".join(map(str, aliases)) or "none"
        # A function that takes the parser reads arguments that it does not name.
        takes_any = "parser" in self._given.values()
        unknown = set[str]() if takes_any else raw.keys() - aliases.keys()
        problems = [
            f"{name!r} is not one of its arguments ({known})" for name in raw if name in unknown
        ]
        try:
            checked = self._model.model_validate(raw)
        except ValidationError as error:
            problems += [_problem(one) for one in error.errors(include_url=False)]
        else:
            if not problems:
                return {
                    str(alias): getattr(checked, name)
                    for alias, name in aliases.items()
                    if name in checked.model_fields_set
                }
        raise ArgumentError(f"{self.name}: {'; '.join(problems)}. Call it again.")


ToolDefinition = Tool
"""Name of a tool in docs/blueprint.md#tool-definition."""


def _source_of(hint: object) -> str | None:
    """Return what is given to a parameter of a type, None if the model gives its argument."""
    kinds = [one for one in get_args(hint) or (hint,) if one is not NoneType]
    kind = kinds[0] if len(kinds) == 1 else hint
    if isinstance(kind, type) and issubclass(kind, Conversation):
        return "state"
    return _BY_TYPE.get(kind) if isinstance(kind, type) else None


def _problem(error: Mapping[str, Any]) -> str:
    """Describe an error of pydantic for a model: the place, the rule and the given value."""
    place = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in error["loc"])
    rule = f"{error['msg'][0].lower()}{error['msg'][1:]}"
    given = "" if error["type"] == "missing" else f", not {_shown(error['input'])}"
    return f"{place.removeprefix('.')!r}: {rule}{given}"


def _shown(value: object) -> str:
    text = json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:100]}…"  # noqa: PLR2004 - enough to recognise it


def _without(function: Execute, given: Iterable[str]) -> Execute:
    """Return a function whose signature has only the parameters that the model provides."""
    left_out = set(given)
    if not left_out:
        return function
    signature = inspect.signature(function)
    kept = [one for name, one in signature.parameters.items() if name not in left_out]

    def seen(**arguments: object) -> object:
        return function(**arguments)

    seen.__name__ = function.__name__
    seen.__doc__ = function.__doc__
    seen.__module__ = function.__module__
    seen.__annotations__ = {
        name: hint for name, hint in hints_of(function).items() if name not in left_out
    }
    seen.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return seen


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """Outcome of one call.

    >>> outcome = ToolOutcome.of_value(
    ...     ToolCallRequest("tide", "call_1", "{}", {}), {"time": "17:42"}
    ... )
    >>> outcome.status.value, outcome.content
    ('success', '{"time": "17:42"}')

    Attributes:
        call: the call.
        status: the final status.
        content: the text of the result.
        value: the return value of the tool, None if it did not return.
        elapsed: duration of the call.
        parts: the result as parts, if it has others than one text.
    """

    call: ToolCallRequest
    status: ToolExecutionStatus
    content: str
    value: object = None
    elapsed: timedelta = field(default_factory=timedelta)
    parts: Sequence[ContentPart] = ()

    @classmethod
    def of_value(cls, call: ToolCallRequest, value: object) -> "ToolOutcome":
        """Make the outcome of the return value of a tool.

        Raises:
            Exception: the value has no text, such as a list that is nested too deeply.
        """
        if isinstance(value, HistoryToolCallResult):
            kept = [replace(one, part=_checked(one.part)) for one in value.attachments]
            own = replace(
                value,
                tool_name=call.tool_name,
                tool_call_id=call.tool_call_id,
                attachments=kept,
            )
            return cls(call, own.status, to_plain_text(own.result.live), own)
        status = ToolExecutionStatus.SUCCESS
        listed = isinstance(value, list | tuple)
        items = cast("Sequence[object]", value) if listed else [value]
        if any(isinstance(item, _PARTS) for item in items):
            parts = tuple(
                _checked(item) if isinstance(item, _PARTS) else TextPart(text=as_text(item))
                for item in items
            )
            text = "\n\n".join(part.text for part in parts if isinstance(part, TextPart))
            return cls(call, status, text, value, parts=parts)
        return cls(call, status, as_text(value), value)

    def limited(self, max_bytes: int = MAX_RESULT_BYTES) -> "ToolOutcome":
        r"""Return the outcome with a text of at most so many bytes of UTF-8, and a note of the cut.

        >>> call = ToolCallRequest("tide", "call_1", "{}", {})
        >>> ToolOutcome.of_value(call, "17:42 17:58").limited(5).content
        '17:42\n[Cut off: the result has 11 bytes of text, and 5 are kept (max_result_bytes).]'
        """
        value, parts = self.value, self.parts
        if isinstance(value, HistoryToolCallResult):
            levels = (value.result.live, value.result.summary, value.result.gist)
            cut = [_cut(to_plain_text(level), max_bytes) for level in levels]
            if cut == [None, None, None]:
                return self
            kept = [
                level if text is None else [("", text)]
                for level, text in zip(levels, cut, strict=True)
            ]
            result = LevelOfDetailSections(*kept)
            value = replace(value, result=result)
            return replace(self, content=to_plain_text(result.live), value=value)
        content = _cut(self.content, max_bytes)
        if content is None:
            return self
        if parts:
            files = [part for part in parts if not isinstance(part, TextPart)]
            parts = (TextPart(text=content), *files)
        return replace(self, content=content, parts=parts)

    def noted(self, note: str | None) -> "ToolOutcome":
        """Return the outcome with a note before its text, the same one without a note."""
        if note is None:
            return self
        content = f"{note}\n{self.content}" if self.content else note
        value, parts = self.value, self.parts
        if isinstance(value, HistoryToolCallResult):
            value = replace(value, result=value.result.with_first_section("", note))
        elif parts:
            parts = (TextPart(text=note), *parts)
        return replace(self, content=content, value=value, parts=parts)

    def part(self) -> ToolResultPart:
        """Return the part of a tool message."""
        return ToolResultPart(
            tool_call_id=self.call.tool_call_id,
            is_error=self.status is not ToolExecutionStatus.SUCCESS,
            status=str(self.status),
            content=list(self.parts) if self.parts else self.content,
        )

    def history_result(self) -> HistoryToolCallResult:
        """Return the result of a history entry; a context budget may reduce it to its gist."""
        if isinstance(self.value, HistoryToolCallResult):
            return replace(self.value, elapsed=self.elapsed)
        media = [part for part in self.parts if isinstance(part, ImagePart | FileRefPart)]
        return HistoryToolCallResult(
            self.call.tool_name,
            self.call.tool_call_id,
            self.status,
            LevelOfDetailSections.with_gist(self.content),
            self.elapsed,
            [ContextAttachment(part) for part in media],
        )


def tool_message(outcomes: Iterable[ToolOutcome], run_id: str | None = None) -> Message:
    """Make the message that answers the calls of one turn.

    >>> outcome = ToolOutcome.of_value(ToolCallRequest("tide", "call_1", "{}", {}), "17:42")
    >>> tool_message([outcome]).parts[0].content
    '17:42'
    """
    return Message(role=Role.TOOL, run_id=run_id, parts=[one.part() for one in outcomes])


def as_text(value: object) -> str:
    """Return a value of a tool as text: a string as it is, everything else as JSON.

    A lone surrogate, as in a file name of `os.listdir`, becomes U+FFFD: no request can carry it.

    Raises:
        Exception: the value has no text.
    """
    if isinstance(value, str):
        return well_formed(value)
    if value is None:
        return ""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json()
        return well_formed(json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return well_formed(str(value))


def _checked(part: _Part) -> _Part:
    """Return a part without lone surrogates, whose members have the right types.

    pydantic checks a part when it is made, but `model_construct` and `model_copy` do not.

    Raises:
        ValidationError: a member is missing or has the wrong type.
    """
    given: Mapping[str, object] = dict(part)
    members = {
        name: well_formed(value) if isinstance(value, str) else value
        for name, value in given.items()
    }
    return cast("_Part", type(part).model_validate(members))


def _cut(text: str, max_bytes: int) -> str | None:
    """Return the beginning of a text that is too long, with a note; None for any other."""
    if len(text) * 4 <= max_bytes:
        return None
    data = text.encode()
    if len(data) <= max_bytes:
        return None
    kept = data[:max_bytes].decode("utf-8", "ignore")
    note = f"the result has {len(data):,} bytes of text, and {max_bytes:,} are kept"
    return f"{kept}\n[Cut off: {note} (max_result_bytes).]"
