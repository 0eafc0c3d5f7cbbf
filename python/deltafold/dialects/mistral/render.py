"""Messages to the body of Mistral's Chat Completions API.

Laws: as openai_chat.py, but: the limit is `max_tokens`, the seed `random_seed`; ids of calls have
nine letters and digits; a result names its tool; thinking goes back as the list that came; an
answer that is to be continued says so.
Source: the Mistral reference, summarised in the protocol notes on mistral, parts 2 and 6 (read
2026-11); the types of the official client.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from deltafold.dialects import replay
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.media import Source
from deltafold.dialects.mistral.settings import SETTINGS, MistralConfig
from deltafold.dialects.openai_chat.render import (
    function_tools,
    joined,
    system_message,
    tool_choice,
    user_content,
    user_message,
)
from deltafold.dialects.rendered import Object, Place, Rendered, Rendering, given
from deltafold.dialects.turns import Turn, turns_of
from deltafold.messages import (
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.tool_specs import ToolSpec

DIALECT: Final = "mistral"
ID_LENGTH: Final = 9


def request_path(config: MistralConfig, *, stream: bool) -> str:  # noqa: ARG001 - the one of all dialects
    """Return the path below the vendor's address."""
    return "/chat/completions"


def render(
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    config: MistralConfig,
    *,
    stream: bool = True,
) -> Rendered:
    """Render a request.

    Raises:
        MisuseError: a part names a local file, which must be read first.
    """
    rendering = Rendering(
        DIALECT,
        config.model_id,
        tool_names=Aliases.of_names("[a-zA-Z0-9_-]{1,64}", 64),
        call_ids=Aliases.of_short_ids(ID_LENGTH),
    )
    choice = rendering.of_tools("tool_choice", config.tool_choice, config, tools)
    body: Object = {
        "model": config.model_id,
        "messages": _messages(messages, rendering),
        "stream": stream,
    }
    body |= given(
        {
            "tools": function_tools(tools, config, rendering),
            "tool_choice": choice and tool_choice(choice, rendering),
        }
    )
    body |= rendering.settings(SETTINGS, config, tools)
    return rendering.done(body, config.extra_body)


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
    if rendered and rendered[-1]["role"] == "assistant":
        rendered[-1]["prefix"] = True
    return rendered


def _media_content(source: Source) -> Object | None:
    if source.kind == "id":
        return {"type": "file", "file_id": source.value}
    if source.kind == "uri":
        return None
    address = source.data_url if source.kind == "data" else source.value
    if source.is_image:
        return {"type": "image_url", "image_url": address}
    if (source.mime_type or "").startswith("audio/"):
        audio = source.value
        return {"type": "input_audio", "input_audio": audio}
    return given({"type": "document_url", "document_url": address, "document_name": source.name})


def _assistant(turn: Turn, rendering: Rendering) -> Object:
    contents: list[Object] = []
    calls: list[Object] = []
    for place, part in turn.parts:
        state = rendering.state(part)
        match part:
            case TextPart():
                contents.append({"type": "text", "text": part.text})
                replay.note_annotations(part, place, rendering)
            case ThinkingPart() if state:
                contents.append(_thinking(part, state))
            case ProviderPart() if part.dialect == DIALECT:
                contents.append(dict(part.block))
            case ToolCallPart():
                calls.append(_call(part, place, rendering))
            case _:
                replay.drop(part, place, rendering)
    members: Object = {"content": joined(contents), "tool_calls": calls}
    said = {name: value for name, value in members.items() if value}
    return {"role": "assistant", **said, **replay.message_members(turn.parts, rendering)}


def _call(call: ToolCallPart, place: Place, rendering: Rendering) -> Object:
    function: Object = {
        "name": rendering.tool_names.of(call.tool_name),
        "arguments": replay.argument_text(call, place, rendering),
    }
    call_id = rendering.call_ids.of(call.tool_call_id)
    return {"id": call_id, "type": "function", "function": function}


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
                "content": user_content(items, _media_content, rendering),
            }
        )
        rendered.append(message | rendering.members(part))
    return rendered
