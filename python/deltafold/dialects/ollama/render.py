"""Renderer of request bodies of Ollama's chat.

Laws: arguments are objects. Each result is a separate message, in the order of the calls. Images
are beside the text, as bare base64. Thinking is sent back while a tool loop is open.
Source: the Ollama API reference (read 2026-11); docs/protocols/ollama.md#request.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, cast

from deltafold.dialects import replay
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.media import source_of
from deltafold.dialects.ollama.settings import SETTINGS, OllamaConfig
from deltafold.dialects.openai_chat.render import chat_messages, function_tool
from deltafold.dialects.rendered import Identifiers, Object, Place, Rendering, given
from deltafold.dialects.turns import Turn
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    MessagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

DIALECT: Final = "ollama"


IDENTIFIERS: Final = Identifiers(call_ids=partial(Aliases.of_ids, "(?s).+"))


def body_of(rendering: Rendering, config: OllamaConfig) -> Object:
    """Return the request body.

    The API has no member for a choice of tools. `none` sends no tools; any other choice is noted.
    """
    choice = config.tool_choice
    if choice is not None and (choice.mode in {"required", "tool"} or choice.allowed_tools):
        rendering.refuse_setting("tool_choice")
    messages = chat_messages(
        rendering,
        user=lambda turn: _spoken("user", turn.parts, rendering),
        assistant=lambda turn: _assistant(turn, rendering),
        results=lambda turn: [
            message for item in turn.parts for message in _result(item, turn, rendering)
        ],
        system=lambda turn: _system(turn, rendering),
    )
    body: Object = {"model": config.model_id, "messages": messages, "stream": rendering.stream}
    if choice is None or choice.mode != "none":
        body |= given({"tools": rendering.tool_list(function_tool) or None})
    body |= rendering.settings(SETTINGS)
    options = cast("Object", body.pop("options", {})) | (config.options or {})
    return body | ({"options": options} if options else {})


def _system(turn: Turn, rendering: Rendering) -> list[Object]:
    message = _spoken("system", turn.parts, rendering)
    return [message] if message["content"] else []


def _spoken(role: str, parts: Sequence[tuple[Place, MessagePart]], rendering: Rendering) -> Object:
    texts: list[str] = []
    images: list[str] = []
    for place, part in parts:
        if isinstance(part, TextPart):
            texts.append(part.text)
        elif isinstance(part, ImagePart | FileRefPart):
            source = source_of(part)
            if source.is_image and source.kind == "data":
                images.append(source.value)
            else:
                text = replay.inline_text(source) or replay.stand_in(part, place, rendering)
                texts.append(text)
        else:
            replay.drop(part, place, rendering)
    message: Object = {"role": role, "content": replay.joined(texts)}
    if images:
        message["images"] = images
    return message | replay.message_members(parts, rendering)


def _assistant(turn: Turn, rendering: Rendering) -> Object:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Object] = []
    for place, part in replay.without_splits(turn.parts):
        match part:
            case TextPart():
                texts.append(part.text)
                replay.note_annotations(part, place, rendering)
            case ThinkingPart() if part.text and rendering.of_turn(turn.in_open_loop):
                thoughts.append(part.text)
            case ToolCallPart():
                function: Object = {
                    "name": part.tool_name,
                    "arguments": replay.arguments_of(part, place, rendering),
                }
                call_id = rendering.call_ids.of(part.tool_call_id)
                calls.append(rendering.as_given(part, {"id": call_id, "function": function}))
            case _:
                replay.drop(part, place, rendering)
    message: Object = {"role": "assistant", "content": replay.joined(texts)}
    if thoughts:
        message["thinking"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    message |= replay.message_members(turn.parts, rendering)
    is_empty = message.keys() == {"role", "content"} and not message["content"]
    return {"role": "assistant"} if is_empty else message


def _result(item: tuple[Place, MessagePart], turn: Turn, rendering: Rendering) -> list[Object]:
    place, part = item
    if not isinstance(part, ToolResultPart):
        return []
    replay.note_error_flag(part, place, rendering)
    message = _spoken("tool", [(place, inner) for inner in replay.result_items(part)], rendering)
    name = turn.call_names.get(part.tool_call_id)
    message |= given({"tool_name": name, "tool_call_id": rendering.call_ids.of(part.tool_call_id)})
    return [rendering.as_given(part, message)]
