"""Reading of tool call arguments, with errors that a model can act on.

In: a `ToolCallRequest`.  Out: typed values, or an `ArgumentError`, whose text is sent to the model
as the result of the call.

Laws: values are not guessed. The error names the argument, the required type and the given value.
Source: docs/blueprint.md#provider-clients.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar, cast

from deltafold.contract.call_arguments import parse_arguments
from deltafold.contract.exceptions import DeltafoldError
from deltafold.contract.names import MarkupName
from deltafold.conversation.history.frozen import thawed
from deltafold.conversation.history.tool_calls import ToolCallRequest
from deltafold.dialects import DIALECTS
from deltafold.models.vendors import canonical_specification
from deltafold.streams.folds import fold

T = TypeVar("T", str, int, float, bool, list[object], dict[str, object])

_NAMES: Final[Mapping[type, str]] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


class ArgumentError(DeltafoldError, ValueError):
    """An argument of a tool call is missing or wrong. The text instructs the model.

    `argument` is the name of the argument, "" if the whole text is wrong.

    >>> call = ToolCallRequest("tide", "call_1", "{}", {})
    >>> try:
    ...     ToolArgumentParser(call).get_required("port", str)
    ... except ArgumentError as error:
    ...     print(error)
    tide needs 'port', a string; given: none.
    """

    def __init__(self, message: str, *, argument: str = "") -> None:
        """Store the name in addition to the text."""
        super().__init__(message)
        self.argument = argument


class ToolArgumentParser:
    """The arguments of one call.

    >>> arguments = ToolArgumentParser(call)
    >>> city, days = (
    ...     arguments.get_required("city", str),
    ...     arguments.get_optional("days", int, 1),
    ... )

    Raises:
        ArgumentError: the arguments are no object, or the end of the answer forbids the call; the
            text has the reason.
    """

    def __init__(self, call: ToolCallRequest) -> None:
        if call.arguments is None:
            raise ArgumentError(
                f"The arguments of {call.tool_name} are not a JSON object: "
                f"{call.parse_error or 'nothing was parsed'}. Call it again with an object."
            )
        if call.parse_error is not None:
            raise ArgumentError(f"{call.tool_name} was not run: {call.parse_error}.")
        self._tool = call.tool_name
        self._arguments = thawed(call.arguments)

    def get_required(self, name: str, kind: type[T]) -> T:
        """Return an argument that must be there.

        Raises:
            ArgumentError: it is missing, or of another kind.
        """
        if name not in self._arguments:
            given = ", ".join(sorted(self._arguments)) or "none"
            raise ArgumentError(
                f"{self._tool} needs {name!r}, {_NAMES[_base(kind)]}; given: {given}.",
                argument=name,
            )
        return self._typed(name, kind)

    def get_optional(self, name: str, kind: type[T], default: T) -> T:
        """Return an argument, or the default if the argument is missing or null.

        Raises:
            ArgumentError: the argument has another type.
        """
        return default if self._arguments.get(name) is None else self._typed(name, kind)

    def parse_list(self, name: str, kind: type[T]) -> list[T]:
        """Return a list of items of one type; a single item becomes a list.

        Raises:
            ArgumentError: the argument is missing, or an item has another type; the text names the
                item.
        """
        if name not in self._arguments:
            return [self.get_required(name, kind)]
        value = self._arguments[name]
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        return [
            _checked(self._tool, f"{name}[{place}]", item, kind) for place, item in enumerate(items)
        ]

    def get_choice(self, name: str, choices: Sequence[str]) -> str:
        """Return a string that is one of the choices.

        Raises:
            ArgumentError: the argument is missing or not a choice; the text lists the choices.
        """
        value = self.get_required(name, str)
        if value not in choices:
            raise ArgumentError(
                f"{self._tool}: {name!r} is one of {', '.join(choices)}, not {value!r}.",
                argument=name,
            )
        return value

    def parse_json_safely(self, name: str) -> object:
        """Return an argument, with a string parsed as JSON.

        Raises:
            ArgumentError: the argument is missing, or the string is not JSON; the text names the
                position.
        """
        value = self._arguments.get(name)
        if not isinstance(value, str):
            if name not in self._arguments:
                return self.get_required(name, str)
            return value
        try:
            return cast("object", json.loads(value))
        except (ValueError, RecursionError) as error:
            raise ArgumentError(
                f"{self._tool}: {name!r} is not valid JSON: {error}.", argument=name
            ) from error

    def _typed(self, name: str, kind: type[T]) -> T:
        return _checked(self._tool, name, self._arguments[name], kind)


def _base(kind: type) -> type:
    return cast("type", getattr(kind, "__origin__", kind))


def _checked(tool: str, name: str, value: object, kind: type[T]) -> T:
    base = _base(kind)
    if base is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, base) or (base is int and isinstance(value, bool)):
        there = next((word for known, word in _NAMES.items() if type(value) is known), "an object")
        raise ArgumentError(f"{tool}: {name!r} needs {_NAMES[base]}, not {there}.", argument=name)
    return cast("T", value)


_MARKUP_CALLS: Final[Mapping[str, str]] = {
    "qwen-xml": "<tool_call>\n<function={name}>\n{raw}\n</function>\n</tool_call>",
    "glm": "<tool_call>{name}\n{raw}\n</tool_call>",
    "minimax": (
        '<minimax:tool_call>\n<invoke name="{name}">\n{raw}\n</invoke>\n</minimax:tool_call>'
    ),
    "claude": '<function_calls>\n<invoke name="{name}">\n{raw}\n</invoke>\n</function_calls>',
    "lfm2": "<|tool_call_start|>[{name}({raw})]<|tool_call_end|>",
    "olmo": "<function_calls>{name}({raw})</function_calls>",
}
"""Calls of the markups whose arguments are not JSON, around the text of the arguments."""


def parse_tool_call(
    specification: str,
    tool_name: str,
    tool_call_id: str,
    raw_arguments: str,
    tools: Iterable[object] | None = None,
) -> ToolCallRequest:
    """Parse the arguments of a call in the form of a specification.

    The arguments are JSON in every dialect. Those of a markup of the model (`openai-chat+qwen-xml`)
    are in its own form, and may be JSON, because a decoder converts them.

    >>> raw = "<parameter=city>Brest</parameter>"
    >>> parse_tool_call("xml", "weather", "c1", raw).arguments["city"]
    'Brest'

    Args:
        specification: a dialect, optionally with a plus and a markup.
        tool_name: name of the tool.
        tool_call_id: id of the call.
        raw_arguments: the text of the arguments.
        tools: the offered tools, whose schemas give XML arguments their types; without them they
            are strings.

    Raises:
        ValueError: the dialect of the specification is not known.
    """
    dialect, _, markup = canonical_specification(specification).partition("+")
    if dialect not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise ValueError(f"unknown specification {specification!r}; known: {known}")
    parsed = parse_arguments(raw_arguments, "json")
    value: Mapping[str, object] | None = parsed.value
    error = parsed.error
    if value is None and markup in _MARKUP_CALLS:
        value = _in_markup(cast("MarkupName", markup), tool_name, raw_arguments, tools)
        error = f"not JSON, and not arguments of {markup}" if value is None else None
    return ToolCallRequest(tool_name, tool_call_id, raw_arguments, value, error, parsed.warning)


def _in_markup(
    markup: MarkupName, tool_name: str, raw: str, tools: Iterable[object] | None
) -> Mapping[str, object] | None:
    """Decode the call around the arguments as the text of a model."""
    text = _MARKUP_CALLS[markup].format(name=tool_name, raw=raw)
    choices = [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]
    body = json.dumps({"object": "chat.completion", "choices": choices}).encode()
    message = fold(body, "openai-chat", markup=markup, tools=tools)
    calls = message.tool_calls
    if len(calls) != 1 or message.text.strip() or calls[0].tool_name != tool_name:
        return None
    return calls[0].arguments
