"""Renderer of request bodies of Mistral's Chat Completions API.

Laws: the body has the form of openai-chat, with these differences. The limit is `max_tokens`, the
seed `random_seed`. Ids of calls have nine letters and digits. A result names its tool. Thinking is
sent back as the list in which it arrived. An answer to be continued has `prefix`.
Source: the Mistral reference (read 2026-11); the types of the official client;
docs/protocols/mistral.md#request.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from deltafold.dialects import replay
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.media import Source
from deltafold.dialects.mistral.settings import SETTINGS, MistralConfig
from deltafold.dialects.openai_chat.render import (
    assistant_message,
    chat_messages,
    function_call,
    function_tool,
    text_content,
    text_or_list,
    tool_choice,
    user_content,
    user_message,
)
from deltafold.dialects.rendered import Identifiers, Object, Rendering, given
from deltafold.dialects.turns import Turn
from deltafold.message.messages import (
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

DIALECT: Final = "mistral"
ID_LENGTH: Final = 9


IDENTIFIERS: Final = Identifiers(
    tool_names=partial(Aliases.of_names, "[a-zA-Z0-9_-]{1,64}", 64),
    call_ids=partial(Aliases.of_short_ids, ID_LENGTH),
)


def body_of(rendering: Rendering, config: MistralConfig) -> Object:
    """Return the request body."""
    choice = rendering.unlimited_tool_choice()
    messages = chat_messages(
        rendering,
        user=lambda turn: user_message(turn.parts, media_content, rendering),
        assistant=lambda turn: _assistant(turn, rendering),
        results=lambda turn: _results(turn, rendering),
    )
    if messages and messages[-1]["role"] == "assistant" and not rendering.is_excerpt:
        messages[-1]["prefix"] = True
    body: Object = {"model": config.model_id, "messages": messages, "stream": rendering.stream}
    body |= given(
        {
            "tools": rendering.tool_list(function_tool) or None,
            "tool_choice": choice and tool_choice(choice, rendering),
        }
    )
    return body | rendering.settings(SETTINGS)


def media_content(source: Source) -> Object | None:
    """Render an image or a file of a user message or of a result."""
    if source.kind == "id":
        return {"type": "file", "file_id": source.value}
    if source.kind == "uri":
        return None
    address = source.data_url if source.kind == "data" else source.value
    if source.is_image:
        return {"type": "image_url", "image_url": address}
    kind = (source.mime_type or "").partition("/")[0]
    if kind == "audio":
        return {"type": "input_audio", "input_audio": source.value}
    if kind == "video":
        return None
    return given({"type": "document_url", "document_url": address, "document_name": source.name})


def _assistant(turn: Turn, rendering: Rendering) -> Object:
    contents: list[Object] = []
    calls: list[Object] = []
    for place, part in replay.without_splits(turn.parts):
        state = rendering.state(part)
        match part:
            case TextPart():
                if part.text or state:
                    contents.append(text_content(part, rendering))
                replay.note_annotations(part, place, rendering)
            case ThinkingPart() if state:
                contents.append(_thinking(part, state))
            case ProviderPart() if part.dialect == DIALECT:
                contents.append(dict(part.block))
            case ToolCallPart():
                calls.append(function_call(part, place, rendering))
            case _:
                replay.drop(part, place, rendering)
    members: Object = {"content": text_or_list(contents), "tool_calls": calls}
    return assistant_message(turn, members, rendering)


def _thinking(part: ThinkingPart, state: Mapping[str, object]) -> Object:
    said: list[Object] = [{"type": "text", "text": part.text}] if part.text else []
    members = {name: value for name, value in state.items() if name not in {"type", "message"}}
    return {"type": "thinking", "thinking": said, **members}


def _results(turn: Turn, rendering: Rendering) -> list[Object]:
    rendered: list[Object] = []
    for place, part in turn.parts:
        if not isinstance(part, ToolResultPart):
            continue
        replay.note_error_flag(part, place, rendering)
        name = turn.call_names.get(part.tool_call_id)
        items = [(place, item) for item in replay.result_items(part)]
        message = given(
            {
                "role": "tool",
                "tool_call_id": rendering.call_ids.of(part.tool_call_id),
                "name": None if name is None else rendering.tool_names.of(name),
                "content": user_content(items, media_content, rendering),
            }
        )
        rendered.append(rendering.as_given(part, message))
    return rendered
