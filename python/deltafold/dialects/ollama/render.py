"""Messages to the body of Ollama's chat.

Laws: arguments are objects; each result is a message of its own, in the order of the calls; images
stand beside the text, as bare base64; thinking goes back while a tool loop is open.
Source: the Ollama API reference, summarised in the protocol notes on ollama, part 5 (read 2026-11).
"""

from collections.abc import Sequence
from typing import Final, cast

from deltafold.dialects import replay
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.media import source_of
from deltafold.dialects.ollama.settings import SETTINGS, OllamaConfig
from deltafold.dialects.openai_chat.render import function_tools, system_message
from deltafold.dialects.rendered import Object, Place, Rendered, Rendering, given
from deltafold.dialects.turns import Turn, turns_of
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

DIALECT: Final = "ollama"


def request_path(config: OllamaConfig, *, stream: bool) -> str:  # noqa: ARG001 - the one of all dialects
    """Return the path below the vendor's address."""
    return "/api/chat"


def render(
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    config: OllamaConfig,
    *,
    stream: bool = True,
) -> Rendered:
    """Render a request.

    A choice of tools has no member: `none` sends no tools, any other choice is noted.

    Raises:
        MisuseError: a part names a local file, which must be read first.
    """
    rendering = Rendering(DIALECT, config.model_id, call_ids=Aliases.of_ids("(?s).+"))
    choice = config.tool_choice
    wants_tools = choice is None or choice.mode != "none"
    if choice is not None and choice.mode in {"required", "tool"}:
        rendering.refuse_settings(config, ["tool_choice"])
    body: Object = {
        "model": config.model_id,
        "messages": _messages(messages, rendering),
        "stream": stream,
    }
    if wants_tools:
        body |= given({"tools": function_tools(tools, config, rendering)})
    body |= rendering.settings(SETTINGS, config, tools)
    options = cast("Object", body.pop("options", {})) | (config.options or {})
    return rendering.done(body | ({"options": options} if options else {}), config.extra_body)


def _messages(messages: Sequence[Message], rendering: Rendering) -> list[Object]:
    rendered: list[Object] = []
    for turn in turns_of(messages, rendering):
        match turn.role:
            case Role.SYSTEM:
                rendered.extend(system_message(turn, rendering))
            case Role.USER:
                rendered.append(_spoken("user", turn.parts, rendering))
            case Role.ASSISTANT:
                message = _assistant(turn, rendering)
                if message.keys() > {"role", "content"} or message["content"]:
                    rendered.append(message)
            case Role.TOOL:
                for item in turn.parts:
                    rendered.extend(_result(item, turn, rendering))
    return rendered


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
                texts.append(f"\n\n{text}" if texts else text)
        else:
            replay.drop(part, place, rendering)
    message: Object = {"role": role, "content": "".join(texts)}
    if images:
        message["images"] = images
    return message | replay.message_members(parts, rendering)


def _assistant(turn: Turn, rendering: Rendering) -> Object:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Object] = []
    for place, part in turn.parts:
        match part:
            case TextPart():
                texts.append(part.text)
                replay.note_annotations(part, place, rendering)
            case ThinkingPart() if turn.in_open_loop and part.text:
                thoughts.append(part.text)
            case ToolCallPart():
                function: Object = {
                    "name": part.tool_name,
                    "arguments": replay.arguments_of(part, place, rendering),
                }
                calls.append({"id": rendering.call_ids.of(part.tool_call_id), "function": function})
            case _:
                replay.drop(part, place, rendering)
    message: Object = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        message["thinking"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message | replay.message_members(turn.parts, rendering)


def _result(item: tuple[Place, MessagePart], turn: Turn, rendering: Rendering) -> list[Object]:
    place, part = item
    if not isinstance(part, ToolResultPart):
        return []
    replay.note_error_flag(part, place, rendering)
    message = _spoken("tool", [(place, inner) for inner in replay.result_items(part)], rendering)
    name = turn.call_names.get(part.tool_call_id)
    message |= given({"tool_name": name, "tool_call_id": rendering.call_ids.of(part.tool_call_id)})
    return [message | rendering.members(part)]
