"""Parser of request bodies of OpenAI's Responses API; the inverse of `render.py`.

Laws: all items of the assistant between two user messages become one message. An item of the
provider keeps all members beside its text or arguments.
Source: docs/protocols/openai-responses.md#items, docs/protocols/openai-responses.md#request.
"""

from typing import Final, cast

from deltafold.dialects.envelopes import Item, joined
from deltafold.dialects.found_tools import tools_said
from deltafold.dialects.media import has_source
from deltafold.dialects.openai_chat.parse import audio_of, file_in, medium_as_given
from deltafold.dialects.openai_responses.client_tools import (
    DECLARING,
    SEARCH,
    ToolReader,
    flat_name,
    is_client_search,
)
from deltafold.dialects.openai_responses.render import (
    DIALECT,
    ENCRYPTED_REASONING,
    media_content,
)
from deltafold.dialects.reader import (
    Reader,
    address,
    as_object,
    image_of,
    listed,
    objects,
    odd_arguments,
    read_allowed_tools,
    shown_text,
    text,
    thinking_of,
    words,
)
from deltafold.dialects.rendered import Object
from deltafold.dialects.replay import compact
from deltafold.message.messages import (
    ContentPart,
    FileRefPart,
    ImagePart,
    ProviderPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_RESULTS: Final = {"function_call_output", "custom_tool_call_output"}
_SEARCH_OUTPUT: Final = f"{SEARCH}_output"


_OF_ITEMS: Final[Object] = {"id?": {"$or": ["$optional", None]}, "status?": "completed"}

_INPUT_TEXTS: Final[list[Object]] = [{"type": "input_text", "text": "$text"}]

_ANSWER: Final[Object] = {
    "type": "output_text",
    "text": "$text",
    "annotations?": [],
    "logprobs?": [],
}

PLAIN: Final[Object] = {
    "history": "input",
    "beside": {"instructions": "$text"},
    "rows": [
        {
            "speaker": "user",
            "item": {
                "type?": "message",
                "role": {"$or": ["user", "system", "developer"]},
                "content": {"$or": ["$text", _INPUT_TEXTS]},
            },
        },
        {
            "speaker": "assistant",
            "item": {
                "type?": "message",
                "role": "assistant",
                "content": {"$or": ["$text", [_ANSWER]]},
                **_OF_ITEMS,
            },
        },
        {
            "speaker": "assistant",
            "item": {
                "type": "function_call",
                "call_id": "$call",
                "name": "$name",
                "arguments": "$arguments",
                **_OF_ITEMS,
            },
        },
        {
            "speaker": "user",
            "item": {
                "type": "function_call_output",
                "call_id": "$result",
                "output": {"$or": ["$text", "", _INPUT_TEXTS]},
                **_OF_ITEMS,
            },
        },
        {
            "speaker": "assistant",
            "item": {
                "type": "reasoning",
                "summary": {"$or": [[], [{"type": "summary_text", "text": "$optional"}]]},
                "content?": {"$or": [None, []]},
                "encrypted_content?": {"$or": ["$optional", None]},
                **_OF_ITEMS,
            },
        },
    ],
}
"""Plain items, in the form that `rust/core/src/stencil/rows.rs` reads."""


def read_body(reader: Reader) -> None:
    """Read a request body."""
    instructions = reader.body.pop("instructions", None)
    if instructions:
        reader.say(Role.SYSTEM, [TextPart(text=text(instructions, "instructions"))])
        reader.config["system_as_instructions"] = True
    given = reader.body.pop("input", None)
    additional = [] if isinstance(given, str) else _additional_tools(given)
    if isinstance(given, str):
        reader.say(Role.USER, [TextPart(text=given)])
    else:
        is_stored = any(reader.body.get(name) for name in ("previous_response_id", "conversation"))
        _Input(reader, is_stored=is_stored).read(given)
    entries = list(objects(reader.body.pop("tools", None), "tools"))
    tools = ToolReader(reader, [entry for entry, _ in entries])
    for tool, place in entries:
        tools.read(tool, place)
    for item, place in additional:
        tools.read_additional(item, place)
    _read_tool_choice(reader)
    include = words(reader.body.pop("include", None), "include")
    reader.config["encrypted_reasoning"] = ENCRYPTED_REASONING in include
    if others := [word for word in include if word != ENCRYPTED_REASONING]:
        reader.config["include"] = others
    reader.config["store"] = reader.body.pop("store", None)


def _additional_tools(items: object) -> list[tuple[Object, str]]:
    """Return the items that declare tools.

    Source: requests of Codex 0.169 (2026-11).
    """
    return [pair for pair in objects(items, "input") if pair[0].get("type") in DECLARING]


def _read_tool_choice(reader: Reader) -> None:
    choice = reader.body.get("tool_choice")
    if isinstance(choice, str):
        reader.config["tool_choice"] = reader.body.pop("tool_choice")
    elif isinstance(choice, dict):
        members = cast("Object", choice)
        named = _as_function(reader, members)
        if named.keys() == {"type", "name"} and named["type"] == "function":
            reader.config["tool_choice"] = {"mode": "tool", "name": named["name"]}
            del reader.body["tool_choice"]
        elif members.keys() == {"type", "mode", "tools"}:
            allowed = [_as_function(reader, tool) for tool in listed(members["tools"], "tools")]
            read_allowed_tools(reader, {**members, "tools": allowed})


def _as_function(reader: Reader, chosen: Object) -> Object:
    """Return a named tool as the function that stands for it; another one as it is."""
    flat = flat_name(chosen)
    declared = reader.client_tools.get(flat, {})
    if chosen.keys() <= {"type", "name", "namespace"} and chosen.get("type") == declared.get(
        "kind"
    ):
        return {"type": "function", "name": flat}
    return chosen


class _Input:
    """Reader of the input; collects the items of one speaker until the speaker changes."""

    def __init__(self, reader: Reader, *, is_stored: bool) -> None:
        self._reader = reader
        self._said: list[Item] = []
        self._results: list[ToolResultPart] = []
        self._is_stored = is_stored
        """Whether earlier items are at the provider: a result can answer one of their calls."""
        self._calls: set[str] = set()
        self._searches: set[str] = set()
        """Ids of the searches that the client ran."""

    def read(self, items: object) -> None:
        for item, place in objects(items, "input"):
            kind = item.get("type", "message")
            if kind == "message":
                self._read_message(item, place)
            elif kind in _RESULTS:
                self._flush_said()
                self._results.append(self._result(item, place))
            elif kind == _SEARCH_OUTPUT and self._is_of_client(item):
                self._flush_said()
                self._results.append(self._found(item))
            else:
                self._read_item(str(kind), item, place)
        self._flush()

    def _flush_said(self) -> None:
        if self._said:
            self._reader.say(Role.ASSISTANT, joined(self._said))
            self._said = []

    def _flush(self) -> None:
        self._flush_said()
        self._reader.answer(self._results)
        self._results = []

    def _read_item(self, kind: str, item: Object, place: str) -> None:
        reader = self._reader
        self._calls.add(str(item.get("call_id")))
        is_output = kind.endswith(("_output", "_response")) and kind != _SEARCH_OUTPUT
        if kind == "item_reference" or is_output:
            self._is_stored = self._is_stored or kind == "item_reference"
            self._flush()
            reader.note(f"{place}: {kind}")
            state = reader.own({"item": item})
            reader.say(Role.USER, [TextPart(text="", provider_state=state)])
            return
        if self._results:
            self._flush()
        match kind:
            case "reasoning":
                self._said.append(self._reasoning(item, place))
            case "function_call" | "custom_tool_call":
                self._said.append(self._call(kind, item))
            case "tool_search_call" if is_client_search(item):
                self._said.append(self._search(item))
            case _:
                self._said.append(ProviderPart(dialect=DIALECT, block=item))

    def _reasoning(self, item: Object, place: str) -> Item:
        said = _reasoning_text(item)
        # The id, the status and an empty list beside an envelope are those of the encoder.
        envelope = self._reader.opened(item.get("encrypted_content"), place)
        if envelope is not None:
            return envelope.carried(said)
        return thinking_of(said, self._reader.state(item))

    def _call(self, kind: str, item: Object) -> ToolCallPart:
        member = "arguments" if kind == "function_call" else "input"
        state = {name: value for name, value in item.items() if name != member}
        is_plain = state.keys() <= {"type", "call_id", "name"}
        odd = odd_arguments(item.get("arguments"))
        return ToolCallPart(
            tool_call_id=str(item.get("call_id") or item.get("id") or ""),
            tool_name=flat_name(item),
            raw_args_text=str(item.get(member) or ""),
            input_format="json" if kind == "function_call" else "text",
            provider_state=self._reader.own(odd) if is_plain else self._reader.state(state | odd),
        )

    def _is_of_client(self, output: Object) -> bool:
        """Return whether the client ran a search; its output need not say so again."""
        is_named = output.get("execution") is not None
        return (
            is_client_search(output) if is_named else str(output.get("call_id")) in self._searches
        )

    def _search(self, item: Object) -> ToolCallPart:
        self._searches.add(str(item.get("call_id")))
        given = item.get("arguments")
        raw = given if isinstance(given, str) else compact(given if given is not None else {})
        return ToolCallPart(
            tool_call_id=str(item.get("call_id") or item.get("id") or ""),
            tool_name=SEARCH,
            raw_args_text=raw,
            provider_state=self._reader.own({"item": item}),
        )

    def _found(self, item: Object) -> ToolResultPart:
        call_id = str(item.get("call_id") or "")
        data: Object = {"item": item}
        if self._is_stored and call_id not in self._calls:
            data["stored_call"] = True
        return ToolResultPart(
            tool_call_id=call_id,
            content=tools_said(item),
            provider_state=self._reader.own(data),
        )

    def _result(self, item: Object, place: str) -> ToolResultPart:
        reader = self._reader
        known = {"type", "call_id", "output"}
        extras = {name: value for name, value in item.items() if name not in known}
        output = item.get("output")
        parts: str | list[ContentPart]
        if output is None or isinstance(output, str):
            parts = output or ""
        else:
            parts = [_content(reader, content, place) for content, _ in objects(output, place)]
        data: Object = {"members": extras} if extras else {}
        if self._is_stored and str(item.get("call_id")) not in self._calls:
            data["stored_call"] = True
        return ToolResultPart(
            tool_call_id=str(item.get("call_id") or ""),
            content=parts,
            provider_state=reader.own(data),
        )

    def _read_message(self, item: Object, place: str) -> None:
        reader = self._reader
        role = text(item.get("role"), f"{place}.role")
        contents = listed(item.get("content"), f"{place}.content")
        if role == "assistant":
            self._read_answer(item, contents)
            return
        self._flush()
        extras = reader.unknown(item, {"type", "role", "content"}, place)
        if role == "developer":
            extras["role"] = role
        parts = [_content(reader, content, f"{place}.content") for content in contents]
        is_system = role in {"system", "developer"}
        reader.say(Role.SYSTEM if is_system else Role.USER, parts, extras)

    def _read_answer(self, item: Object, contents: list[Object]) -> None:
        if self._results:
            self._flush()
        state = {name: value for name, value in item.items() if name != "content"}
        is_plain = state.keys() <= {"type", "role"} and len(contents) == 1
        is_plain = is_plain and contents[0].keys() == {"type", "text"} and bool(contents[0]["text"])
        contents = contents or [{"type": "output_text", "text": ""}]
        # In the same message, this text would be rendered as a part of the item before it.
        if is_plain and self._said and isinstance(self._said[-1], TextPart):
            self._flush_said()
        for position, content in enumerate(contents):
            data = dict(state) if position == 0 and not is_plain else {}
            known = {"type", "text", "refusal", "annotations"}
            members = {name: value for name, value in content.items() if name not in known}
            shown = content.get("text") or content.get("refusal")
            if content.get("type") not in {"output_text", "text", "input_text", "refusal"}:
                data["block"] = content
                shown = shown_text(content)
            elif members and members != {"logprobs": []}:
                data["members"] = members
            self._said.append(
                TextPart(
                    text=str(shown or ""),
                    annotations=cast("list[object] | None", content.get("annotations")) or None,
                    refusal=content.get("type") == "refusal",
                    provider_state=self._reader.state(data),
                )
            )


def _reasoning_text(item: Object) -> str:
    for member in ("summary", "content"):
        texts = [str(part.get("text", "")) for part in listed(item.get(member), member)]
        if texts:
            return "\n\n".join(texts)
    return ""


def _content(reader: Reader, content: Object, place: str) -> TextPart | ImagePart | FileRefPart:
    kind = content.get("type")
    members = {name: value for name, value in content.items() if name != "type"}
    if kind in {"input_text", "text"}:
        said = text(members.pop("text", None), f"{place}.text")
        if not said and not members:
            return reader.as_sent(said, {"type": "input_text", "text": said})
        return TextPart(text=said, provider_state=reader.extras(members))
    if kind == "input_image":
        absent = () if "detail" in members else ("detail",)
        if members.get("detail") == "auto":
            del members["detail"]
        if isinstance(members.get("image_url"), str):
            where = address(members.pop("image_url"), f"{place}.image_url")
            image = image_of(where, None, reader.extras(members, *absent))
            return image if has_source(image) else reader.block(content, f"{place}.image_url")
        if isinstance(members.get("file_id"), str):
            path = address(members.pop("file_id"), f"{place}.file_id")
            state = reader.extras(members, *absent)
            return FileRefPart(path=path, mime_type="image/*", provider_state=state)
    file = None
    if kind == "input_file":
        file = file_in(members)
    elif kind == "input_audio":
        file = audio_of(as_object(content.get("input_audio"), f"{place}.input_audio"))
    if file is not None:
        return medium_as_given(reader, file, content, media_content)
    return reader.block(content, f"{place}: {kind}", shown_text(content))
