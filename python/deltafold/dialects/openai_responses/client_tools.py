"""Tools that other dialects have only as functions: freeform tools, and tools of a namespace.

In: `custom`, `namespace` and `tool_search` entries of `tools`.  Out: functions under one flat name
each, and the entries again.

Laws: a freeform tool is a function with one text `input`. A tool of a namespace has the name
`namespace__name`, in the declaration, the history and the choice. A search for tools that the
client runs is a function `tool_search`; what it found is declared too. Two tools never share a
name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, cast

from deltafold.contract.kinds import json_array, json_object
from deltafold.dialects.reader import Reader, as_object, objects, text, tool_of
from deltafold.dialects.rendered import IN_INPUT, Object, Rendering
from deltafold.dialects.replay import compact
from deltafold.message.messages import ToolCallPart, ToolResultPart
from deltafold.specs.tool_specs import ToolSpec

_FUNCTION: Final = frozenset({"type", "name", "description", "parameters", "strict"})

_Inside: TypeAlias = tuple[Object, Object | None, str]

SEARCH: Final = "tool_search"
"""Name of the search for tools, as a function and in its items."""

DECLARING: Final = ("additional_tools", f"{SEARCH}_output")
"""Types of the items that declare tools."""


def flat_name(members: Mapping[str, object]) -> str:
    """Return the name of a tool, of a call or of a choice, with its namespace.

    A function that the provider loads later is called in a namespace of its own name: this name.
    """
    name, namespace = str(members.get("name", "")), members.get("namespace")
    is_within = isinstance(namespace, str) and namespace not in {"", name}
    return f"{namespace}__{name}" if is_within else name


class ToolReader:
    """Reader of the declared tools."""

    def __init__(self, reader: Reader, entries: Sequence[Object]) -> None:
        self._reader = reader
        self._has_function = any(entry.get("name") == SEARCH for entry in entries)
        """Whether a tool of the client has the name of the search."""
        self._entries = 0
        """Number of entries that the tools so far are rendered as."""
        self._places: dict[str, str] = {}
        self._namespaces: set[str] = set()

    def read(self, tool: Object, place: str) -> None:
        """Read one entry of `tools`."""
        kind = tool.get("type")
        if kind in {"function", "custom"}:
            self._read_client_tool(tool, place, None)
        elif kind == "namespace" and _is_flat(tool):
            name = text(tool.get("name"), f"{place}.name")
            for inner, where in objects(tool["tools"], f"{place}.tools"):
                self._read_client_tool(inner, where, tool)
            self._entries -= name in self._namespaces
            self._namespaces.add(name)
        elif is_client_search(tool) and SEARCH not in self._places and not self._has_function:
            self._read_search(tool, place)
        else:
            self._reader.provider_tool(tool, self._entries)
        self._entries += 1

    def _read_search(self, tool: Object, place: str) -> None:
        self._place(SEARCH, place, is_native=True)
        schema = cast("Object | None", json_object(tool.get("parameters")))
        described = tool.get("description")
        members: Object = {"name": SEARCH}
        if isinstance(described, str):
            members["description"] = described
        self._reader.tools.append(tool_of(self._reader, members, schema, dict(tool), place))
        self._reader.client_tools[SEARCH] = {"kind": SEARCH, "namespace": None, "name": SEARCH}

    def read_additional(self, item: Object, place: str) -> None:
        """Read the tools of an item that stays in the input: `additional_tools`, or a search's.

        Codex declares its tools so for its newest models; several items may repeat a tool. Tools of
        the provider stay in the item alone, and so does a tool that cannot be read, which is noted.
        """
        for tool, within, where in _tools_inside(item, place):
            if _name_inside(tool, within) in self._places:
                continue
            try:
                self._read_client_tool(tool, where, within)
            except ValueError:
                self._reader.note(where)
                continue
            declared = self._reader.tools[-1]
            extra = {**declared.extra, IN_INPUT: True}
            self._reader.tools[-1] = declared.model_copy(update={"extra": extra})

    def _read_client_tool(self, tool: Object, place: str, within: Object | None) -> None:
        """Read a function or a freeform tool.

        Raises:
            ValueError: the tool cannot be read; nothing of it is kept.
        """
        reader = self._reader
        own_name = text(tool.get("name"), f"{place}.name")
        is_custom = tool.get("type") == "custom"
        members, schema, extra = tool, cast("Object | None", tool.get("parameters")), {}
        if is_custom:
            members, schema, extra = _function_of(tool), _schema_of_input(), dict(tool)
        else:
            extra = {name: value for name, value in tool.items() if name not in _FUNCTION}
        namespace = None
        if within is not None:
            namespace = text(within.get("name"), f"{place}: the name of its namespace")
            entry = {name: value for name, value in within.items() if name != "tools"}
            extra |= {"name": own_name, "namespace": entry}
        flat = flat_name({"name": own_name, "namespace": namespace})
        read = tool_of(reader, {**members, "name": flat}, schema, extra, place)
        self._place(flat, place, is_native=is_custom or within is not None)
        reader.tools.append(read)
        if is_custom or within is not None:
            reader.client_tools[flat] = {
                "kind": "custom" if is_custom else "function",
                "namespace": namespace,
                "name": own_name,
            }

    def _place(self, flat: str, place: str, *, is_native: bool) -> None:
        """Keep the place of a name.

        Raises:
            ValueError: another tool has the name, so that a call could be of either.
        """
        other = self._places.setdefault(flat, place)
        if other != place and (is_native or flat in self._reader.client_tools):
            raise ValueError(f"{place}: the name {flat!r} is also that of {other}")


def _is_flat(entry: Object) -> bool:
    """Return whether all tools of a namespace are functions or freeform; there is one at least."""
    tools = json_array(entry.get("tools"))
    return bool(tools) and all(_is_of_client(json_object(tool) or {}) for tool in tools)


def _is_of_client(tool: Mapping[str, object]) -> bool:
    return tool.get("type") in ("function", "custom")  # a damaged type may have no hash


def _tools_inside(item: Mapping[str, object], place: str) -> Iterator[_Inside]:
    """Yield each function and freeform tool of an item, the entry of its namespace, its place."""
    for number, given in enumerate(json_array(item.get("tools"))):
        tool, where = dict(json_object(given) or {}), f"{place}.tools[{number}]"
        if _is_of_client(tool):
            yield tool, None, where
        elif tool.get("type") == "namespace" and _is_flat(tool):
            for inner_number, inner in enumerate(json_array(tool["tools"])):
                yield dict(json_object(inner) or {}), tool, f"{where}.tools[{inner_number}]"


def _name_inside(tool: Object, within: Object | None) -> str:
    return flat_name({**tool, "namespace": None if within is None else within.get("name")})


def names_inside(items: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yield the names of the functions and freeform tools that the items of an input declare."""
    for item in items:
        if item.get("type") in DECLARING:
            for tool, within, _ in _tools_inside(item, ""):
                yield _name_inside(tool, within)


def _function_of(tool: Object) -> Object:
    """Return the members of the function that stands for a freeform tool."""
    described = tool.get("description")
    found = [described] if isinstance(described, str) and described else []
    form = as_object(tool.get("format") or {}, "tools.format")
    if form.get("type") == "grammar":
        syntax = form.get("syntax", "")
        found.append(f"The input follows this grammar ({syntax}):\n{form.get('definition', '')}")
    elif form and form.get("type") != "text":
        found.append(f"The input has this format: {compact(form)}")
    return {"description": "\n\n".join(found)} if found else {}


def _schema_of_input() -> Object:
    return {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
        "additionalProperties": False,
    }


def is_client_search(members: Mapping[str, object]) -> bool:
    """Return whether an entry or an item is of a search for tools that the client runs."""
    kind = str(members.get("type"))
    return kind.startswith(SEARCH) and members.get("execution") == "client"


def is_search(tool: ToolSpec | None, dialect: str) -> bool:
    """Return whether a tool was declared as a search that the client runs."""
    return tool is not None and tool.dialect == dialect and tool.extra.get("type") == SEARCH


def is_freeform(tool: ToolSpec | None, dialect: str) -> bool:
    """Return whether a tool was declared as freeform."""
    return tool is not None and tool.dialect == dialect and tool.extra.get("type") == "custom"


def namespace_of(tool: ToolSpec | None, dialect: str) -> Object | None:
    """Return the entry of the namespace that a tool was declared in, without its tools."""
    if tool is None or tool.dialect != dialect:
        return None
    entry = json_object(tool.extra.get("namespace"))
    return None if entry is None else dict(entry)


def native_names(tool: ToolSpec | None, dialect: str) -> Object | None:
    """Return the name of a call or a choice in the client's form; None for the name of the tool."""
    entry = namespace_of(tool, dialect)
    if tool is None or (entry is None and not is_freeform(tool, dialect)):
        return None
    name: Object = {"name": tool.extra.get("name", tool.name)}
    return name if entry is None else {**name, "namespace": entry.get("name")}


def has_own_form(tool: ToolSpec, dialect: str) -> bool:
    """Return whether calls of a tool are not those of a function of its name."""
    return is_search(tool, dialect) or native_names(tool, dialect) is not None


def own_item(part: ToolCallPart | ToolResultPart, rendering: Rendering) -> Object | None:
    """Return the item of a search that a parsed request had for a call or a result."""
    item = json_object(rendering.state(part).get("item"))
    return None if item is None else dict(item)


def freeform_input(call: ToolCallPart) -> str | None:
    """Return the text of a call of a freeform tool; None if its arguments are not one text."""
    if call.input_format == "text":
        return call.raw_args_text
    arguments = call.arguments or {}
    given = arguments.get("input")
    return given if isinstance(given, str) and len(arguments) == 1 else None
