"""Reading of request bodies: the steps that all dialects share.

In: JSON.  Out: the parts of a `ParsedRequest`.

Laws: an unknown member is kept in its part or body and noted, so that rendering restores it. A
member of the wrong type is an error that names its place.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import quote

from deltafold.contract.kinds import EncoderTool
from deltafold.contract.names import RequestProtocol
from deltafold.dialects.envelopes import Envelope, open_envelope, open_envelopes
from deltafold.dialects.rendered import NoteCode, Object
from deltafold.dialects.settings_table import Path, SettingTable, copied_members
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.specs.tool_specs import ToolSpec


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A parsed request.

    >>> request = {
    ...     "model": "gpt-5.6-terra",
    ...     "messages": [{"role": "user", "content": "Hello"}],
    ... }
    >>> deltafold.parse_request(request, "openai-chat").messages[0].text
    'Hello'

    Attributes:
        dialect: the dialect of the body.
        config: the settings as fields of the dialect's configuration; members of the body without a
            field are its `extra_body`. `migrate_config` makes settings of another dialect of them.
        stream: whether the request asks for a stream; None if the path decides.
        notes: the unknown members that were kept, and what is left out beside an envelope, as
            `{code, message}`.
        client_tools: the tools that the client declared in a form of its own (freeform, in a
            namespace, or as a search for tools), by their names in `tools`: what
            `Encoder(tools=...)` takes.
    """

    dialect: RequestProtocol
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    config: Object
    stream: bool | None
    notes: tuple[Object, ...]
    client_tools: Mapping[str, EncoderTool] = field(default_factory=dict[str, EncoderTool])


class Reader:
    """One body while it is read."""

    def __init__(
        self, dialect: RequestProtocol, body: Mapping[str, object], model_id: str | None
    ) -> None:
        self.dialect: RequestProtocol = dialect
        self.body = dict(body)
        model = self.body.pop("model", None)
        self.config: Object = {}
        if model is not None:
            self.config["model_id"] = text(model, "model")
        elif model_id is not None:
            self.config["model_id"] = model_id
        self.model_id = str(self.config.get("model_id", ""))
        self.tools: list[ToolSpec] = []
        self.messages: list[Message] = []
        self.provider_tools: list[Object] = []
        self.client_tools: dict[str, EncoderTool] = {}
        self.unset: Object = {}
        """Members with a value that stands for no setting; they stay in the body."""
        self._tool_positions: list[int] = []
        self._tools_before: list[int] = []
        self._notes: list[Object] = []

    def note(self, place: str) -> None:
        """Note a member or a block that is not known, and kept."""
        self._notes.append(
            {
                "code": NoteCode.UNKNOWN_MEMBER.value,
                "message": f"{place} is not known to {self.dialect}: it is kept as it is",
            }
        )

    def opened(
        self, text: object, place: str, beside: Mapping[str, object] | None = None
    ) -> Envelope | None:
        """Return the envelope in an opaque text of the client, None for any other value.

        An envelope without state, which a newer version wrote, is noted; so are the members
        `beside` it, because a part has one state.
        """
        envelope = open_envelope(text)
        if envelope is not None:
            self._note_opened(envelope, place)
        if envelope is not None and beside:
            names = ", ".join(beside)
            message = f"{place}: {names} is left out: the part has the state from its envelope"
            self._notes.append({"code": NoteCode.MEMBER_DROPPED.value, "message": message})
        return envelope

    def all_opened(self, text: object, place: str) -> list[Envelope]:
        """Return the envelopes in an opaque text that a client has joined; see `opened`."""
        envelopes = open_envelopes(text)
        for envelope in envelopes:
            self._note_opened(envelope, place)
        return envelopes

    def _note_opened(self, envelope: Envelope, place: str) -> None:
        if envelope.is_unreadable:
            message = f"{place}: the envelope of a newer deltafold is left out"
            self._notes.append({"code": NoteCode.ENVELOPE_DROPPED.value, "message": message})

    def unknown(self, members: Mapping[str, object], known: Collection[str], place: str) -> Object:
        """Return the members that are not known, and note each."""
        found = {name: value for name, value in members.items() if name not in known}
        for name in found:
            self.note(f"{place}.{name}")
        return found

    def state(self, data: Mapping[str, object] | None) -> Object | None:
        """Return the state of a part that the model made, None where there is nothing in it.

        Without a known model, the state goes to any model of the dialect.
        """
        if not data or not self.model_id:
            return self.own(data)
        return {"dialect": self.dialect, "modelId": self.model_id, "data": dict(data)}

    def own(self, data: Mapping[str, object] | None) -> Object | None:
        """Return the state of a part that the caller wrote, which goes to any model."""
        return {"dialect": self.dialect, "data": dict(data)} if data else None

    def extras(self, members: Object, *absent: str) -> Object | None:
        """Return the state of a part with further members, None without any.

        `absent` names the members that rendering writes and that this body does not have.
        """
        data: Object = {"members": members} if members else {}
        if absent:
            data["absent"] = list(absent)
        return self.own(data)

    def block(self, block: Object, place: str, shown: str = "") -> TextPart:
        """Keep an unknown block as a text, where a provider part is not allowed.

        `shown` is the text in the block, which other dialects send in its place.
        """
        self.note(place)
        return self.as_sent(shown, block)

    def as_sent(self, shown: str, block: Object) -> TextPart:
        """Make a text of a block that its own dialect sends in the same form again."""
        return TextPart(text=shown, provider_state=self.own({"block": block}))

    def provider_tool(self, tool: Object, position: int | None = None) -> None:
        """Add a tool of the provider; `position` is its index where the tools are not one list."""
        index = len(self.tools) + len(self.provider_tools) if position is None else position
        self._tool_positions.append(index)
        self._tools_before.append(len(self.tools))
        self.provider_tools.append(tool)

    def say(self, role: Role, parts: Sequence[MessagePart], extras: Object | None = None) -> None:
        """Add a message; unknown members of the message are kept in its first part.

        They are not mixed with state of another dialect, which is that of an envelope.
        """
        said = list(parts)
        if extras:
            if not said or self._is_foreign(said[0]):
                said.insert(0, TextPart(text=""))
            said[0] = said[0].model_copy(update=self._of_message(said[0], extras))
        self.messages.append(Message(role=role, parts=said))

    def _is_foreign(self, part: MessagePart) -> bool:
        state = part.provider_state
        return state is not None and state["dialect"] != self.dialect

    def _of_message(self, part: MessagePart, extras: Object) -> Object:
        """Return the change of a part that keeps unknown members of its message."""
        state = part.provider_state or {"dialect": self.dialect, "data": {}}
        data = {**cast("Object", state["data"]), "message": extras}
        return {"provider_state": {**state, "data": data}}

    def answer(self, results: Sequence[ToolResultPart], extras: Object | None = None) -> None:
        """Add results: one message for those in a row, one more where an id comes again.

        Unknown members of the message are kept in its first result.
        """
        given = list(results)
        if extras and given:
            given[0] = given[0].model_copy(update=self._of_message(given[0], extras))
        parts: list[MessagePart] = []
        seen: set[str] = set()
        for result in given:
            if result.tool_call_id in seen:
                self.messages.append(Message(role=Role.TOOL, parts=parts))
                parts, seen = [], set()
            seen.add(result.tool_call_id)
            parts.append(result)
        if parts:
            self.messages.append(Message(role=Role.TOOL, parts=parts))

    def take_within(self, table: SettingTable, outer: str, members: Object) -> None:
        """Move the copied settings from the members of an object in the body to the settings."""
        self._take(table, (outer,), members)

    def _take(self, table: SettingTable, within: Path, members: Object) -> None:
        for member, setting in copied_members(table, within):
            value = members.pop(member, None)
            if value is not None:
                is_words = setting == "stop_sequences"
                place = ".".join((*within, member))
                self.config[setting] = words(value, place) if is_words else value

    def done(self, table: SettingTable) -> ParsedRequest:
        """Read the copied settings and return the request; other members stay in the body."""
        self._take(table, (), self.body)
        self.body |= self.unset
        stream = self.body.pop("stream", None)
        for name in self.body:
            self.note(name)
        if self.provider_tools:
            self.config["provider_tools"] = tuple(self.provider_tools)
            if self._tools_before[0] < len(self.tools):
                self.config["provider_tool_positions"] = tuple(self._tool_positions)
        if self.body:
            self.config["extra_body"] = self.body
        return ParsedRequest(
            self.dialect,
            tuple(self.messages),
            tuple(self.tools),
            self.config,
            None if stream is None else bool(stream),
            tuple(self._notes),
            self.client_tools,
        )


def _wrong(place: str, wanted: str, value: object) -> ValueError:
    return ValueError(f"{place}: {wanted} was expected, not {type(value).__name__}")


def objects(value: object, place: str) -> Iterator[tuple[Object, str]]:
    """Yield the objects of a list, each with its place.

    Raises:
        ValueError: the value is not a list, or an item is not an object.
    """
    if value is None:
        return
    if not isinstance(value, list | tuple):
        raise _wrong(place, "a list", value)
    for index, item in enumerate(cast("Sequence[object]", value)):
        found = as_object(item, f"{place}[{index}]")
        if found.get("type") is not None:
            text(found["type"], f"{place}[{index}].type")
        yield found, f"{place}[{index}]"


def as_object(value: object, place: str) -> Object:
    """Return a copy of an object.

    Raises:
        ValueError: the value is not an object.
    """
    if not isinstance(value, Mapping):
        raise _wrong(place, "an object", value)
    return dict(cast("Mapping[str, object]", value))


def text(value: object, place: str) -> str:
    """Return a string.

    Raises:
        ValueError: the value is not a string.
    """
    if not isinstance(value, str):
        raise _wrong(place, "text", value)
    return value


def listed(value: object, place: str) -> list[Object]:
    """Return the contents of a message; a string becomes one text."""
    if value is None:
        return []
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [item for item, _ in objects(value, place)]


def words(value: object, place: str) -> tuple[str, ...]:
    """Return the strings of a setting: one string, or a list of strings.

    Raises:
        ValueError: the value has another form.
    """
    if isinstance(value, str):
        return (value,)
    if value is not None and not isinstance(value, list | tuple):
        raise _wrong(place, "a list", value)
    return tuple(text(word, place) for word in cast("Sequence[object]", value or ()))


def is_below_zero(value: object) -> bool:
    """Return whether a value is a negative integer, which no limit of tokens is."""
    return isinstance(value, int) and value < 0


def address(value: object, place: str) -> str:
    """Return an address or an id.

    Raises:
        ValueError: the value is not a string, or it is empty.
    """
    found = text(value, place)
    if not found:
        raise _wrong(place, "an address", value)
    return found


def maybe_text(value: object, place: str) -> str | None:
    """Return a string, None if the value is None.

    Raises:
        ValueError: the value is neither a string nor None.
    """
    return None if value is None else text(value, place)


_SHOWN: Final = frozenset({"text", "title", "snippet", "content", "context", "source"})
"""Members with text that a model reads; `source` is the address of a search result."""


def shown_text(content: Object) -> str:
    """Return the text in a content of an unknown kind: a document, a search result."""
    found: list[str] = []
    for name, value in content.items():
        if name in _SHOWN and isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            found.append(shown_text(cast("Object", value)))
        elif isinstance(value, list):
            items = cast("list[object]", value)
            found += [shown_text(cast("Object", item)) for item in items if isinstance(item, dict)]
    return "\n\n".join(text for text in found if text)


def image_of(address: str, mime_type: str | None, state: Object | None) -> ImagePart:
    """Make an image of an address, or of the data in it."""
    if address.startswith("data:"):
        head, _, data = address[len("data:") :].partition(",")
        stated = head.removesuffix(";base64").partition(";")[0]
        known = mime_type or stated or "image/png"
        return ImagePart(mime_type=known, data=data, provider_state=state)
    known = mime_type or _IMAGE_TYPES.get(address.rpartition(".")[2].lower(), "image/*")
    return ImagePart(mime_type=known, url=address, provider_state=state)


_IMAGE_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}


def media_of(
    mime_type: str | None, data: str, name: str | None, state: Object | None
) -> ImagePart | FileRefPart:
    """Make a part of data: an image, or a file under its name."""
    known = mime_type or "application/octet-stream"
    if known.startswith("image/"):
        return ImagePart(mime_type=known, data=data, provider_state=state)
    return FileRefPart(path=data_url(known, data, name), mime_type=known, provider_state=state)


def file_of(address: str, name: str | None) -> FileRefPart:
    """Make a file of a `data:` address."""
    head, _, data = address[len("data:") :].partition(",")
    mime_type = head.removesuffix(";base64")
    return FileRefPart(path=data_url(mime_type, data, name), mime_type=mime_type)


def data_url(mime_type: str, data: str, name: str | None) -> str:
    """Return a `data:` URL, with the name of the file if it has one."""
    named = f";name={quote(name, safe='')}" if name else ""
    return f"data:{mime_type}{named};base64,{data}"


def call_of(
    call_id: str,
    name: str,
    arguments: object,
    state: Object | None,
) -> ToolCallPart:
    """Make a call from its arguments: the original text, or an object."""
    if isinstance(arguments, str):
        return ToolCallPart(
            tool_call_id=call_id, tool_name=name, raw_args_text=arguments, provider_state=state
        )
    given = as_object(arguments if arguments is not None else {}, "arguments")
    return ToolCallPart(tool_call_id=call_id, tool_name=name, arguments=given, provider_state=state)


def odd_arguments(arguments: object) -> Object:
    """Return the state of a text of arguments that is not an object; it goes back unchanged."""
    if not isinstance(arguments, str):
        return {}
    try:
        is_object = arguments.lstrip().startswith("{") and isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    return {} if is_object else {"arguments": arguments}


def thinking_of(said: str, state: Object | None, *, redacted: bool = False) -> ThinkingPart:
    """Make a piece of reasoning."""
    return ThinkingPart(text=said, redacted=redacted, provider_state=state)


def _texts_like_ids(value: object) -> Iterator[str]:
    """Yield the texts in a body that could be ids which `Names` makes."""
    if isinstance(value, str):
        if value.startswith("call_"):
            yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, object]", value).values():
            yield from _texts_like_ids(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from _texts_like_ids(inner)


class Names:
    """The unanswered calls of a body: ids for calls without one, and the calls of results.

    The ids are made in order, and none of them is an id of the body. A result whose id is that of
    no call answers the oldest call of its name. Of the results of one turn that are left then, each
    answers a call of the turn before in order, if there are as many.
    """

    def __init__(self, body: Mapping[str, object]) -> None:
        self._body = dict(body)
        self._taken: frozenset[str] | None = None
        self._made = 0
        self._called: dict[str, str] = {}
        """The names of all calls, by id."""
        self._waiting: dict[str, str] = {}
        self._by_name: dict[str, dict[str, None]] = {}
        self._latest: list[str] = []
        """Ids of the calls since anyone else spoke."""

    def call(self, name: str, call_id: object) -> str:
        """Return the id of a call."""
        if not isinstance(call_id, str) or not call_id:
            call_id = self._made_id()
        self._called[call_id] = name
        self._waiting[call_id] = name
        self._by_name.setdefault(name, {})[call_id] = None
        self._latest.append(call_id)
        return call_id

    def _made_id(self) -> str:
        if self._taken is None:
            self._taken = frozenset(_texts_like_ids(self._body))
        while True:
            self._made += 1
            call_id = f"call_{self._made}"
            if call_id not in self._taken:
                return call_id

    def result(self, name: str, call_id: object) -> str:
        """Return the id of the call that a result answers."""
        if not isinstance(call_id, str) or not call_id:
            # Without a name either, the result answers the oldest call.
            waiting = self._by_name.get(name, {}) if name else self._waiting
            call_id = next(iter(waiting), f"call_of_{name}")
        elif call_id not in self._called:
            call_id = next(iter(self._by_name.get(name, {})), call_id)
        self._answer(call_id)
        return call_id

    def results(self, given: Sequence[tuple[str, object]]) -> list[str]:
        """Return the ids of the calls that the results of one turn answer, by name and id."""
        ids_given = (call_id for _, call_id in given if isinstance(call_id, str))
        known = {call_id for call_id in ids_given if call_id in self._waiting}
        for call_id in known:
            self._answer(call_id)
        ids = [
            call_id if isinstance(call_id, str) and call_id in known else self.result(name, call_id)
            for name, call_id in given
        ]
        strays = [at for at, call_id in enumerate(ids) if call_id not in self._called]
        calls = [call_id for call_id in self._latest if call_id in self._waiting]
        if len(strays) == len(calls):
            for at, call_id in zip(strays, calls, strict=True):
                ids[at] = call_id
                self._answer(call_id)
        self._latest = []
        return ids

    def tool_of(self, call_id: str) -> str | None:
        """Return the name of a call."""
        return self._called.get(call_id)

    def _answer(self, call_id: str) -> None:
        called = self._waiting.pop(call_id, None)
        if called is not None:
            self._by_name[called].pop(call_id, None)


def read_allowed_tools(reader: Reader, allowed: Object, within: str = "") -> None:
    """Read a choice among some tools; a choice with tools of the provider stays in the body.

    Args:
        reader: the request.
        allowed: `{mode, tools}`.
        within: the member of a tool that has its name; "" is the tool itself.
    """
    names: list[str] = []
    for tool, place in objects(allowed.get("tools"), "tool_choice.tools"):
        if tool.get("type") != "function":
            return
        named = as_object(tool.get(within), place) if within else tool
        names.append(text(named.get("name"), f"{place}.name"))
    if names:
        reader.config["tool_choice"] = {"mode": allowed.get("mode"), "allowed_tools": names}
        del reader.body["tool_choice"]


def function_tools(reader: Reader, value: object) -> None:
    """Read tools of the form `{type: "function", function: {...}}`."""
    for tool, place in objects(value, "tools"):
        function: Any = tool.get("function")
        if tool.get("type", "function") != "function" or not isinstance(function, dict):
            reader.provider_tool(tool)
            continue
        members = cast("Object", function)
        extra = reader.unknown(tool, {"type", "function"}, place)
        known = {"name", "description", "parameters", "strict"}
        if reader.unknown(members, known, f"{place}.function"):
            extra["function"] = members
        reader.tools.append(
            tool_of(reader, members, cast("Object | None", members.get("parameters")), extra, place)
        )


def tool_of(
    reader: Reader, members: Object, schema: Object | None, extra: Object, place: str
) -> ToolSpec:
    """Make a tool of the members that all dialects have, and its schema."""
    fields: Object = {
        "name": text(members.get("name"), f"{place}.name"),
        "extra": extra,
        "dialect": reader.dialect,
    }
    if members.get("description") is not None:
        fields["description"] = members["description"]
    if schema is not None:
        fields["parameter_schema"] = schema
    if members.get("strict") is not None:
        fields["strict"] = members["strict"]
    return ToolSpec.model_validate(fields)
