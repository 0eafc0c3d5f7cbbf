"""The body of Amazon Bedrock's Converse to messages; the mirror of `render.py`.

Law: cache marks are blocks among the others and stay where they are.
Source: docs/protocols/bedrock-converse.md#request.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Final, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects.bedrock_converse.render import (
    DIALECT,
    DOCUMENT_FORMATS,
    IMAGE_FORMATS,
    TOOL_CHOICES,
    VIDEO_FORMATS,
)
from deltafold.dialects.bedrock_converse.settings import SETTINGS
from deltafold.dialects.envelopes import Item, joined
from deltafold.dialects.reader import (
    Reader,
    as_object,
    call_of,
    media_of,
    objects,
    shown_text,
    thinking_of,
    tool_of,
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
    ToolResultPart,
)

_MODES: Final = {word: mode for mode, word in TOOL_CHOICES.items()}
_MEDIA_TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "image": {word: mime_type for mime_type, word in IMAGE_FORMATS.items()},
    "video": {word: mime_type for mime_type, word in VIDEO_FORMATS.items()},
    "document": {word: mime_type for mime_type, word in DOCUMENT_FORMATS.items()},
    # Rendering writes no audio: each block of it is kept.
    "audio": {},
}
_MEDIA_MEMBERS: Final = {"document": {"format", "name", "source"}}
_SHOWN_AS_TEXT: Final = frozenset({"guardContent", "searchResult"})


def read_body(reader: Reader) -> None:
    """Read a request body."""
    system = [_said(reader, b, p) for b, p in objects(reader.body.pop("system", None), "system")]
    if system:
        reader.say(Role.SYSTEM, system)
    for message, place in objects(reader.body.pop("messages", None), "messages"):
        _read_message(reader, message, place)
    _read_tools(reader)
    inference = as_object(reader.body.pop("inferenceConfig", None) or {}, "inferenceConfig")
    rest = dict(inference)
    reader.take_within(SETTINGS, "inferenceConfig", rest)
    if rest:  # An object with unknown members goes back as a whole.
        reader.body["inferenceConfig"] = inference


def _read_tools(reader: Reader) -> None:
    config = as_object(reader.body.pop("toolConfig", None) or {}, "toolConfig")
    for tool, place in objects(config.get("tools"), "toolConfig.tools"):
        if tool.keys() != {"toolSpec"}:
            reader.provider_tool(tool)
            continue
        spec = as_object(tool["toolSpec"], place)
        known = {"name", "description", "inputSchema", "strict"}
        extra = reader.unknown(spec, known, place)
        schema = as_object(spec.get("inputSchema") or {}, f"{place}.inputSchema").get("json")
        reader.tools.append(tool_of(reader, spec, cast("Object | None", schema), extra, place))
    for word, value in as_object(config.get("toolChoice") or {}, "toolChoice").items():
        choice: object = _MODES.get(word, word)
        if word == "tool":
            choice = {"mode": "tool", "name": as_object(value, "toolChoice.tool").get("name")}
        reader.config["tool_choice"] = choice


def _read_message(reader: Reader, message: Object, place: str) -> None:
    extras = reader.unknown(message, {"role", "content"}, place)
    blocks = list(objects(message.get("content"), f"{place}.content"))
    if message.get("role") == "assistant":
        said = [_of_assistant(reader, block, where) for block, where in blocks]
        reader.say(Role.ASSISTANT, joined(said), extras)
        return
    results = [item for item in blocks if "toolResult" in item[0]]
    reader.answer(
        [
            _result(reader, as_object(block["toolResult"], where), f"{where}.toolResult")
            for block, where in results
        ]
    )
    others = [item for item in blocks if "toolResult" not in item[0]]
    if others or not results:
        role = Role.SYSTEM if message.get("role") == "system" else Role.USER
        reader.say(role, [_said(reader, block, where) for block, where in others], extras)


def _of_assistant(reader: Reader, block: Object, place: str) -> Item:
    if block.keys() == {"text"}:
        return _text(reader, block)
    if block.keys() == {"toolUse"} and not _is_of_server(block):
        use = as_object(block["toolUse"], "toolUse")
        call_id, name = str(use.pop("toolUseId", "")), str(use.pop("name", ""))
        given = use.pop("input", None)
        return call_of(call_id, name, given, reader.extras(use))
    if block.keys() == {"reasoningContent"}:
        return _reasoning(reader, as_object(block["reasoningContent"], "reasoningContent"), place)
    media = _media(reader, block)
    if isinstance(media, ImagePart):
        return media
    return ProviderPart(dialect=DIALECT, block=block)


def _reasoning(reader: Reader, reasoning: Object, place: str) -> Item:
    said = reasoning.get("reasoningText")
    members = cast("Object", said) if isinstance(said, dict) else reasoning
    member = "signature" if isinstance(said, dict) else "redactedContent"
    shown = str(members.get("text", ""))
    beside = {name: value for name, value in members.items() if name not in {"text", member}}
    envelope = reader.opened(members.get(member), f"{place}.reasoningContent", beside)
    if envelope is not None:
        return envelope.carried(shown)
    if not isinstance(said, dict):
        return thinking_of("", reader.state(reasoning), redacted=True)
    # An empty signature, which an answer of another server has, is refused.
    signed = {member: members[member]} if members.get(member) else {}
    return thinking_of(shown, reader.state(beside | signed))


def _is_of_server(block: Object) -> bool:
    """Return whether the provider runs the tool of a call: its result is in the same message."""
    return as_object(block["toolUse"], "toolUse").get("type") == "server_tool_use"


def _said(reader: Reader, block: Object, place: str) -> TextPart | ImagePart | FileRefPart:
    if block.keys() == {"text"}:
        return _text(reader, block)
    media = _media(reader, block)
    if media is not None:
        return media
    if block.keys() == {"cachePoint"} and isinstance(block["cachePoint"], dict):
        return TextPart(text="", provider_state=reader.own({"block": block}))
    if block.keys() <= _SHOWN_AS_TEXT:
        return reader.as_sent(shown_text(block), block)
    return reader.block(block, place, shown_text(block))


def _text(reader: Reader, block: Object) -> TextPart:
    said = str(block["text"])
    return TextPart(text=said) if said.strip() else reader.as_sent(said, block)


def _media(reader: Reader, block: Object) -> ImagePart | FileRefPart | None:
    """Read a medium; one in a form that rendering does not write keeps its block."""
    kind = next(iter(block), "")
    if block.keys() != {kind} or kind not in _MEDIA_TYPES:
        return None
    media = as_object(block[kind], kind)
    source = json_object(media.get("source")) or {}
    held, address = source.get("bytes"), _s3_address(source)
    form = str(media.get("format"))
    mime_type = _MEDIA_TYPES[kind].get(form, form if "/" in form else f"{kind}/{form}")
    name = str(media.get("name", "")) or None
    if isinstance(source.get("text"), str):
        held = b64encode(str(source["text"]).encode()).decode()
    # An address has no name but the one that rendering gives it.
    is_named = kind != "document" or (name == "document" if address else name is not None)
    is_same = is_named and set(media) == _MEDIA_MEMBERS.get(kind, {"format", "source"})
    is_same = is_same and form in _MEDIA_TYPES[kind] and source.keys() <= {"bytes", "s3Location"}
    state = None if is_same else reader.own({"block": block})
    if address is not None:
        return FileRefPart(path=address, mime_type=mime_type, provider_state=state)
    if not isinstance(held, str):
        return None
    return media_of(mime_type, held, name, state)


def _s3_address(source: Mapping[str, object]) -> str | None:
    location = json_object(source.get("s3Location"))
    uri = None if location is None or set(location) != {"uri"} else location["uri"]
    return uri if isinstance(uri, str) and uri.startswith("s3://") else None


def _result(reader: Reader, result: Object, place: str) -> ToolResultPart:
    found = list(objects(result.get("content"), f"{place}.content"))
    blocks = [block for block, _ in found]
    content: str | Object | list[ContentPart] = [
        _inside(reader, block, where) for block, where in found
    ]
    if len(blocks) == 1 and blocks[0].keys() == {"text"} and str(blocks[0]["text"]).strip():
        content = str(blocks[0]["text"])
    elif len(blocks) == 1 and isinstance(blocks[0].get("json"), dict):
        content = as_object(blocks[0]["json"], "json")
    known = {"toolUseId", "content", "status"}
    members = {name: value for name, value in result.items() if name not in known}
    return ToolResultPart(
        tool_call_id=str(result.get("toolUseId", "")),
        content=content,
        is_error=result.get("status") == "error",
        provider_state=reader.extras(members),
    )


def _inside(reader: Reader, block: Object, place: str) -> ContentPart:
    """Read a content block of a tool result; a block without text becomes a provider part."""
    if block.keys() == {"json"}:
        value = block["json"]
        return reader.as_sent(value if isinstance(value, str) else compact(value), block)
    if block.keys() == {"text"} or shown_text(block):
        return _said(reader, block, place)
    return _media(reader, block) or ProviderPart(dialect=DIALECT, block=block)
