"""Messages to the body of Cohere's Chat, version 2.

Laws: system messages stay where they stand; each result is a `tool` message of its own, directly
after the calls; what the model planned goes back as its plan, its thinking as thinking, both only
to the model that thought it.
Source: the Chat reference, summarised in the protocol notes on cohere-chat, part 5 (read 2026-11);
the types of the official client.
"""

from collections.abc import Sequence
from typing import Final

from deltafold.dialects import replay
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.cohere_chat.settings import SETTINGS, CohereChatConfig
from deltafold.dialects.media import Source
from deltafold.dialects.openai_chat.render import (
    function_tools,
    joined,
    system_message,
    user_message,
)
from deltafold.dialects.rendered import (
    NoteCode,
    Object,
    Place,
    Rendered,
    Rendering,
    given,
)
from deltafold.dialects.turns import Turn, turns_of
from deltafold.messages import (
    Message,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.tool_specs import ToolSpec

DIALECT: Final = "cohere-chat"


def request_path(config: CohereChatConfig, *, stream: bool) -> str:  # noqa: ARG001 - the one of all dialects
    """Return the path below the vendor's address."""
    return "/v2/chat"


def render(
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    config: CohereChatConfig,
    *,
    stream: bool = True,
) -> Rendered:
    """Render a request.

    Raises:
        MisuseError: a part names a local file, which must be read first.
    """
    rendering = Rendering(DIALECT, config.model_id, call_ids=Aliases.of_ids("(?s).+"))
    if any(tool.strict for tool in tools) and config.strict_tools is None:
        rendering.note(
            NoteCode.SETTING_DROPPED, "cohere-chat has no strict tool: set strict_tools for all"
        )
    lenient = [tool.model_copy(update={"strict": None}) for tool in tools]
    body: Object = {
        "model": config.model_id,
        "messages": _messages(messages, rendering),
        "stream": stream,
    }
    body |= given(
        {
            "tools": function_tools(lenient, config, rendering),
            "tool_choice": _tool_choice(tools, config, rendering),
        }
    )
    body |= rendering.settings(SETTINGS, config, tools)
    return rendering.done(body, config.extra_body)


def _tool_choice(
    tools: Sequence[ToolSpec], config: CohereChatConfig, rendering: Rendering
) -> str | None:
    choice = rendering.of_tools("tool_choice", config.tool_choice, config, tools)
    if choice is None or choice.mode == "auto":
        return None
    if choice.name is not None:
        rendering.note(
            NoteCode.SETTING_DROPPED,
            f"cohere-chat cannot ask for {choice.name} alone: it asks for any tool",
        )
    return "NONE" if choice.mode == "none" else "REQUIRED"


def _messages(messages: Sequence[Message], rendering: Rendering) -> list[Object]:
    rendered: list[Object] = []
    for turn in turns_of(messages, rendering):
        match turn.role:
            case Role.SYSTEM:
                rendered.extend(system_message(turn, rendering))
            case Role.USER:
                rendered.append(user_message(turn.parts, _media_content, rendering))
            case Role.ASSISTANT:
                message = _assistant(turn, rendering)
                if len(message) > 1:
                    rendered.append(message)
            case Role.TOOL:
                rendered.extend(_results(turn, rendering))
    return rendered


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
    for place, part in turn.parts:
        match part:
            case TextPart():
                contents.append({"type": "text", "text": part.text})
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
                calls.append(_call(part, place, rendering))
            case _:
                replay.drop(part, place, rendering)
    members: Object = {
        "content": joined(contents),
        "tool_calls": calls,
        "tool_plan": "".join(plan),
        "citations": citations,
    }
    said = {name: value for name, value in members.items() if value}
    return {"role": "assistant", **said, **replay.message_members(turn.parts, rendering)}


def _is_own(part: MessagePart, turn: Turn, rendering: Rendering) -> bool:
    """Whether this model said it: its stream marks no thinking but plans."""
    is_marked = part.provider_state is not None
    return bool(rendering.state(part)) if is_marked else turn.model_id == rendering.model_id


def _call(call: ToolCallPart, place: Place, rendering: Rendering) -> Object:
    arguments = replay.argument_text(call, place, rendering)
    function: Object = {"name": call.tool_name, "arguments": arguments}
    return {
        "id": rendering.call_ids.of(call.tool_call_id),
        "type": "function",
        "function": function,
    }


def _results(turn: Turn, rendering: Rendering) -> list[Object]:
    rendered: list[Object] = []
    moved: list[tuple[Place, MessagePart]] = []
    for place, part in turn.parts:
        if not isinstance(part, ToolResultPart):
            continue
        text, media = replay.result_and_media(part, place, rendering)
        moved.extend((place, item) for item in media)
        replay.note_error_flag(part, place, rendering)
        message: Object = {
            "role": "tool",
            "tool_call_id": rendering.call_ids.of(part.tool_call_id),
            "content": text,
        }
        rendered.append(message | rendering.members(part))
    if moved:
        rendered.append(user_message(moved, _media_content, rendering))
    return rendered
