"""Renderer of request bodies of Cohere's Chat, version 2.

Laws: system messages keep their position. Each result is a separate `tool` message, directly after
the calls. A plan is sent back as a plan and thinking as thinking, both only to the model that
produced them.
Source: the Chat reference (read 2026-11); the types of the official client;
docs/protocols/cohere-chat.md#request.
"""

from functools import partial
from typing import Final

from deltafold.dialects import replay
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.cohere_chat.settings import SETTINGS, CohereChatConfig
from deltafold.dialects.media import Source
from deltafold.dialects.model_names import same_model
from deltafold.dialects.openai_chat.render import (
    assistant_message,
    chat_messages,
    function_call,
    function_tool,
    text_content,
    text_or_list,
    tool_results,
    user_message,
)
from deltafold.dialects.rendered import Identifiers, NoteCode, Object, Rendering, given
from deltafold.dialects.turns import Turn
from deltafold.message.messages import (
    MessagePart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from deltafold.specs.tool_specs import ToolSpec

DIALECT: Final = "cohere-chat"


IDENTIFIERS: Final = Identifiers(call_ids=partial(Aliases.of_ids, "(?s).+"))


def body_of(rendering: Rendering, config: CohereChatConfig) -> Object:
    """Return the request body."""
    if any(tool.strict for tool in rendering.tools) and config.strict_tools is None:
        rendering.note(
            NoteCode.SETTING_DROPPED, "cohere-chat has no strict tool: set strict_tools for all"
        )
    messages = chat_messages(
        rendering,
        user=lambda turn: user_message(turn.parts, _media_content, rendering),
        assistant=lambda turn: _assistant(turn, rendering),
        results=lambda turn: tool_results(turn, _media_content, rendering),
    )
    body: Object = {"model": config.model_id, "messages": messages, "stream": rendering.stream}
    body |= given(
        {
            "tools": rendering.tool_list(_tool) or None,
            "tool_choice": _tool_choice(rendering),
        }
    )
    return body | rendering.settings(SETTINGS)


def _tool(tool: ToolSpec, rendering: Rendering) -> Object:
    return function_tool(tool.model_copy(update={"strict": None}), rendering)


def _tool_choice(rendering: Rendering) -> str | None:
    choice = rendering.unlimited_tool_choice()
    if choice is None or choice.mode == "auto":
        return None
    if choice.name is not None:
        rendering.note(
            NoteCode.SETTING_DROPPED,
            f"cohere-chat cannot ask for {choice.name} alone: it asks for any tool",
        )
    return "NONE" if choice.mode == "none" else "REQUIRED"


def _media_content(source: Source) -> Object | None:
    if source.is_image and source.kind in {"data", "url"}:
        address = source.data_url if source.kind == "data" else source.value
        return {"type": "image_url", "image_url": {"url": address}}
    text = replay.inline_text(source)
    return None if text is None else {"type": "text", "text": text}


def _assistant(turn: Turn, rendering: Rendering) -> Object:
    contents: list[Object] = []
    plan: list[str] = []
    calls: list[Object] = []
    citations: list[object] = []
    is_own = any(_is_own(part, turn, rendering) for _, part in turn.parts)
    for place, part in turn.parts if is_own else replay.without_splits(turn.parts):
        match part:
            case TextPart():
                if part.text or rendering.state(part):
                    contents.append(text_content(part, rendering))
                if _is_own(part, turn, rendering):
                    citations.extend(part.annotations or [])
                else:
                    replay.note_annotations(part, place, rendering)
            case ThinkingPart() if rendering.state(part).get("type") == "tool_plan":
                plan.append(part.text)
            case ThinkingPart() if _is_own(part, turn, rendering):
                contents.append({"type": "thinking", "thinking": part.text})
            case ProviderPart() if part.dialect == DIALECT:
                contents.append(dict(part.block))
            case ToolCallPart():
                calls.append(function_call(part, place, rendering))
            case _:
                replay.drop(part, place, rendering)
    members: Object = {
        "content": text_or_list(contents),
        "tool_calls": calls,
        "tool_plan": "".join(plan),
        "citations": citations,
    }
    return assistant_message(turn, members, rendering)


def _is_own(part: MessagePart, turn: Turn, rendering: Rendering) -> bool:
    """Return whether this model produced the part; only plans carry provider state."""
    if part.provider_state is not None:
        return bool(rendering.state(part))
    return turn.model_id is not None and same_model(turn.model_id, rendering.model_id)
