"""Reading of request bodies: the steps that all dialects share.

In: JSON.  Out: the parts of a `ParsedRequest`.

Laws: an unknown member is kept in its part or body and noted, so that rendering restores it. A
member of the wrong type is an error that names its place.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from deltafold.dialects.rendered import NoteCode, Object
from deltafold.dialects.settings_table import Path, SettingTable, copied_members
from deltafold.messages import (
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
from deltafold.tool_specs import ToolSpec


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A parsed request.

    Attributes:
        config: the settings as fields of the dialect's configuration; members of the body without a
            field are its `extra_body`.
        stream: whether the request asks for a stream; None if the path decides.
        notes: the unknown members that were kept, as `{code, message}`.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    config: Object
    stream: bool | None
    notes: tuple[Object, ...]


class Reader:
    """One body while it is read."""

    def __init__(self, dialect: str, body: Mapping[str, object], model_id: str | None) -> None:
        self.dialect = dialect
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
        self._notes: list[Object] = []

    def note(self, place: str) -> None:
        """Note a member or a block that is not known, and kept."""
        self._notes.append(
            {
                "code": NoteCode.UNKNOWN_MEMBER.value,
                "message": f"{place} is not known to {self.dialect}: it is kept as it is",
            }
        )

    def unknown(self, members: Mapping[str, object], known: Collection[str], place: str) -> Object:
        """Return the members beside the known ones, noting each."""
        found = {name: value for name, value in members.items() if name not in known}
        for name in found:
            self.note(f"{place}.{name}")
        return found

    def state(self, data: Mapping[str, object] | None) -> Object | None:
        """Return the provider state of a part of this body, None where there is nothing in it."""
        if not data:
            return None
        return {"dialect": self.dialect, "modelId": self.model_id, "data": dict(data)}

    def extras(self, members: Object) -> Object | None:
        """Return the provider state of a part with unknown members, None without such members."""
        return self.state({"members": members}) if members else None

    def block(self, block: Object, place: str) -> TextPart:
        """Keep an unknown block as an empty text, where a provider part is not allowed."""
        self.note(place)
        return TextPart(text="", provider_state=self.state({"block": block}))

    def say(self, role: Role, parts: Sequence[MessagePart], extras: Object | None = None) -> None:
        """Add a message; unknown members of the message are kept in its first part."""
        said = list(parts)
        if extras:
            said = said or [TextPart(text="")]
            state = said[0].provider_state or self.state({"message": {}}) or {}
            data = {**cast("Object", state["data"]), "message": extras}
            said[0] = said[0].model_copy(update={"provider_state": {**state, "data": data}})
        self.messages.append(Message(role=role, parts=said))

    def answer(self, results: Sequence[ToolResultPart]) -> None:
        """Add results: one message for those in a row, one more where an id comes again."""
        parts: list[MessagePart] = []
        seen: set[str] = set()
        for result in results:
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
        for member, field in copied_members(table, within):
            value = members.pop(member, None)
            if value is not None:
                is_words = field == "stop_sequences"
                place = ".".join((*within, member))
                self.config[field] = words(value, place) if is_words else value

    def done(self, table: SettingTable) -> ParsedRequest:
        """Read the copied settings and return the request; other members are kept as they are."""
        self._take(table, (), self.body)
        stream = self.body.pop("stream", None)
        for name in self.body:
            self.note(name)
        if self.provider_tools:
            self.config["provider_tools"] = tuple(self.provider_tools)
        if self.body:
            self.config["extra_body"] = self.body
        return ParsedRequest(
            tuple(self.messages),
            tuple(self.tools),
            self.config,
            None if stream is None else bool(stream),
            tuple(self._notes),
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
    """Make a call of arguments: text as it came, or an object."""
    if isinstance(arguments, str):
        return ToolCallPart(
            tool_call_id=call_id, tool_name=name, raw_args_text=arguments, provider_state=state
        )
    given = as_object(arguments if arguments is not None else {}, "arguments")
    return ToolCallPart(tool_call_id=call_id, tool_name=name, arguments=given, provider_state=state)


def thinking_of(said: str, state: Object | None, *, redacted: bool = False) -> ThinkingPart:
    """Make a piece of reasoning."""
    return ThinkingPart(text=said, redacted=redacted, provider_state=state)


class Names:
    """The ids of calls that were sent without: made up in order, found again by name."""

    def __init__(self) -> None:
        self._made = 0
        self._waiting: dict[str, list[str]] = {}

    def call(self, name: str, call_id: object) -> str:
        """Return the id of a call."""
        if not isinstance(call_id, str) or not call_id:
            self._made += 1
            call_id = f"call_{self._made}"
        self._waiting.setdefault(name, []).append(call_id)
        return call_id

    def result(self, name: str, call_id: object) -> str:
        """Return the id of the call that a result answers: the oldest of its name."""
        waiting = self._waiting.get(name, [])
        if isinstance(call_id, str) and call_id:
            if call_id in waiting:
                waiting.remove(call_id)
            return call_id
        return waiting.pop(0) if waiting else f"call_of_{name}"


def function_tools(reader: Reader, value: object) -> None:
    """Read tools of the form `{type: "function", function: {...}}`."""
    for tool, place in objects(value, "tools"):
        function: Any = tool.get("function")
        if tool.get("type", "function") != "function" or not isinstance(function, dict):
            reader.provider_tools.append(tool)
            continue
        members = cast("Object", function)
        extra = reader.unknown(tool, {"type", "function"}, place)
        known = {"name", "description", "parameters", "strict"}
        if reader.unknown(members, known, f"{place}.function"):
            extra["function"] = members
        reader.tools.append(
            tool_of(members, cast("Object | None", members.get("parameters")), extra, place)
        )


def tool_of(members: Object, schema: Object | None, extra: Object, place: str) -> ToolSpec:
    """Make a tool of the members that all dialects have, and its schema."""
    fields: Object = {"name": text(members.get("name"), f"{place}.name"), "extra": extra}
    if members.get("description") is not None:
        fields["description"] = members["description"]
    if schema is not None:
        fields["parameter_schema"] = schema
    if members.get("strict") is not None:
        fields["strict"] = members["strict"]
    return ToolSpec.model_validate(fields)
