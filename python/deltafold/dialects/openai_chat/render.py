"""Renderer of request bodies of OpenAI's Chat Completions API and of its many copies.

Laws: system messages keep their position; where the chat template takes one at the beginning alone,
later ones become texts of the user. Each result is a separate `tool` message, directly after
the message of the calls. Content that a tool message cannot carry follows in a user message.
Arguments are sent back as the original text if that text is an object. Usage is requested, because
providers send it only on request.
Source: the Chat Completions reference (read 2026-11); docs/protocols/openai-chat.md#request,
docs/protocols/openai-chat.md#replay; the lengths of ids and names are those that the API's errors
name.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, TypeAlias, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects import replay
from deltafold.dialects.acceptance import is_routed_elsewhere, system_must_be_first
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.media import Source, source_of
from deltafold.dialects.openai_chat.settings import SETTINGS, OpenAIChatConfig
from deltafold.dialects.rendered import Identifiers, Object, Place, Rendering, given
from deltafold.dialects.turns import Turn, late_systems_as_user, turns_of
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.specs.references import with_lone_references
from deltafold.specs.tool_specs import ToolChoice, ToolSpec
from deltafold.specs.union_types import with_types_in_branches

DIALECT: Final = "openai-chat"

AUDIO_FORMATS: Final = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}

MediaRenderer: TypeAlias = Callable[[Source], Object | None]
"""Renders an image or a file of a user message; None if the dialect has no form for it."""

IDENTIFIERS: Final = Identifiers(
    tool_names=partial(Aliases.of_names, "[a-zA-Z0-9_-]{1,64}", 64),
    call_ids=partial(Aliases.of_ids, "(?s).{1,40}"),
)


def body_of(rendering: Rendering, config: OpenAIChatConfig) -> Object:
    """Return the request body."""
    if is_routed_elsewhere(config.model_id):
        rendering.take_call_ids(Aliases.of_ids("(?s).+"))
    choice = None if config.tool_choice is None else rendering.tool_choice()
    is_strict = config.system_messages == "first" or (
        config.system_messages is None and system_must_be_first(rendering.model_id)
    )
    messages = plain_messages(rendering.messages, system_first=is_strict)
    if messages is None:
        messages = chat_messages(
            rendering,
            user=lambda turn: user_message(turn.parts, media_content, rendering),
            assistant=lambda turn: _assistant(turn, config, rendering),
            results=lambda turn: tool_results(turn, media_content, rendering),
            settle=_one_system_first if is_strict else None,
        )
    body: Object = {"model": config.model_id, "messages": messages, "stream": rendering.stream}
    if config.include_usage and rendering.stream:
        body["stream_options"] = {"include_usage": True}
    if tools := rendering.tool_list(function_tool):
        body["tools"] = tools
    if choice is not None:
        body["tool_choice"] = tool_choice(choice, rendering)
    if config.max_tokens is not None:
        body[config.max_tokens_member] = config.max_tokens
    body |= rendering.settings(SETTINGS)
    return _with_separate_schemas(body) if config.lone_references else body


def _with_separate_schemas(body: Object) -> Object:
    """Return a body whose schemas have nothing beside a reference, and no type beside a union."""
    body = _changed_schema(body, "response_format", "json_schema", "schema")
    given_tools = cast("list[Object]", body.get("tools", []))
    tools = [_changed_schema(tool, "function", "parameters") for tool in given_tools]
    return {**body, "tools": tools} if tools else body


def _changed_schema(holder: Object, member: str, *rest: str) -> Object:
    inner = json_object(holder.get(member))
    if inner is None:
        return holder
    if rest:
        return {**holder, member: _changed_schema(dict(inner), *rest)}
    return {**holder, member: with_types_in_branches(with_lone_references(inner))}


def function_tool(tool: ToolSpec, rendering: Rendering) -> Object:
    """Render a tool as a function, the form that several protocols copied."""
    function = given(
        {
            "name": rendering.tool_names.of(tool.name),
            "parameters": tool.parameter_schema,
            "description": tool.description,
            "strict": tool.strict,
        }
    )
    return {"type": "function", "function": function, **rendering.tool_members(tool)}


def tool_choice(choice: ToolChoice, rendering: Rendering) -> str | Object:
    """Render the choice of a tool."""
    if choice.name is not None:
        return _named(choice.name, rendering)
    if choice.allowed_tools:
        tools = [_named(name, rendering) for name in choice.allowed_tools]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    return choice.mode


def _named(name: str, rendering: Rendering) -> Object:
    return {"type": "function", "function": {"name": rendering.tool_names.of(name)}}


def plain_messages(
    messages: Sequence[Message], *, system_first: bool = False
) -> list[Object] | None:
    """Render texts of the system and the user, with which most conversations begin.

    Return None for a conversation that has anything else. The result is that of `chat_messages`,
    without turns and positions, which only other parts need.
    """
    rendered: list[Object] = []
    for message in messages:
        role, parts = message.role, message.parts
        if role is not Role.USER and (role is not Role.SYSTEM or (system_first and rendered)):
            return None
        if len(parts) != 1 or not replay.is_plain_text(part := parts[0]):
            return None
        rendered.append({"role": "user" if role is Role.USER else "system", "content": part.text})
    return rendered


def chat_messages(
    rendering: Rendering,
    *,
    user: Callable[[Turn], Object],
    assistant: Callable[[Turn], Object],
    results: Callable[[Turn], list[Object]],
    system: Callable[[Turn], list[Object]] | None = None,
    settle: Callable[[Sequence[Turn], Rendering], list[Turn]] | None = None,
) -> list[Object]:
    """Render each turn as messages of the Chat form.

    Args:
        rendering: the request.
        user: renders a turn of the user.
        assistant: renders a turn of the assistant; a message with nothing but a role is left out.
        results: renders a turn of tool results.
        system: renders a system turn; None renders it in the form of openai-chat.
        settle: changes the order or the roles of the turns.
    """
    rendered: list[Object] = []
    turns = turns_of(rendering)
    for turn in turns if settle is None else settle(turns, rendering):
        match turn.role:
            case Role.SYSTEM:
                given_form = system_message(turn, rendering) if system is None else system(turn)
                rendered.extend(given_form)
            case Role.USER:
                rendered.append(user(turn))
            case Role.ASSISTANT:
                message = assistant(turn)
                if len(message) > 1:
                    rendered.append(message)
            case Role.TOOL:
                rendered.extend(results(turn))
    return rendered


def _one_system_first(turns: Sequence[Turn], rendering: Rendering) -> list[Turn]:
    """Join the leading system turns, and make texts of the user of the later ones."""
    leading = list(takewhile(lambda turn: turn.role is Role.SYSTEM, turns))
    rest = late_systems_as_user(turns, rendering)[len(leading) :]
    if len(leading) > 1:
        parts = tuple(item for turn in leading for item in turn.parts)
        leading = [dataclasses.replace(leading[0], parts=parts)]
    return [*leading, *rest]


def system_message(turn: Turn, rendering: Rendering, kind: str = "text") -> list[Object]:
    """Render a system message at its position; an empty message is left out."""
    contents = [
        text_content(part, rendering, kind)
        for _, part in replay.system_texts(turn.parts, rendering)
        if is_sent(part, rendering)
    ]
    if not contents:
        return []
    message: Object = {"role": "system", "content": text_or_list(contents, kind)}
    return [message | replay.message_members(turn.parts, rendering)]


def text_content(part: TextPart, rendering: Rendering, kind: str = "text") -> Object:
    """Render a text as a content; a block that a parsed request had here is sent unchanged."""
    block = rendering.block_of(part)
    return block or rendering.as_given(part, {"type": kind, "text": part.text})


def is_sent(part: TextPart, rendering: Rendering) -> bool:
    """Return whether a text is sent: an empty one only as the block that it was."""
    return bool(part.text) or "block" in rendering.state(part)


def text_or_list(contents: list[Object], kind: str = "text") -> str | list[Object]:
    """Return one plain text as a string; two texts stay two contents."""
    if not contents:
        return ""
    only = contents[0]
    if len(contents) == 1 and only.keys() == {"type", "text"} and only["type"] == kind:
        return str(only["text"])
    return contents


def user_message(
    parts: Sequence[tuple[Place, MessagePart]], media: MediaRenderer, rendering: Rendering
) -> Object:
    """Render a message of the user."""
    if len(parts) == 1 and replay.is_plain_text(parts[0][1]):
        return {"role": "user", "content": parts[0][1].text}
    message: Object = {"role": "user", "content": user_content(parts, media, rendering)}
    return message | replay.message_members(parts, rendering)


def user_content(
    parts: Sequence[tuple[Place, MessagePart]], media: MediaRenderer, rendering: Rendering
) -> str | list[Object]:
    """Render contents: one text as a string, else a list."""
    contents: list[Object] = []
    for place, part in parts:
        if isinstance(part, TextPart):
            if is_sent(part, rendering):
                contents.append(text_content(part, rendering))
            continue
        content = rendering.block_of(part)
        if content is None and isinstance(part, ImagePart | FileRefPart):
            content = media(source_of(part))
        if content is None:
            content = Object(type="text", text=replay.stand_in(part, place, rendering))
        contents.append(rendering.as_given(part, content))
    return text_or_list(contents)


def media_content(source: Source) -> Object | None:
    """Render an image or a file of a user message."""
    if source.is_image and source.kind in {"data", "url"}:
        address = source.data_url if source.kind == "data" else source.value
        return {"type": "image_url", "image_url": {"url": address}}
    if source.kind == "id":
        return {"type": "file", "file": {"file_id": source.value}}
    if source.kind != "data":
        return None
    audio_format = AUDIO_FORMATS.get(source.mime_type or "")
    if audio_format is not None:
        audio = {"data": source.value, "format": audio_format}
        return {"type": "input_audio", "input_audio": audio}
    file = {"file_data": source.data_url, "filename": source.name or f"file.{source.subtype}"}
    return {"type": "file", "file": file}


def assistant_message(turn: Turn, members: Object, rendering: Rendering) -> Object:
    """Return an assistant's message with the members that are not empty."""
    given_members = {name: value for name, value in members.items() if value}
    return {
        "role": "assistant",
        **given_members,
        **replay.message_members(turn.parts, rendering),
    }


def _assistant(turn: Turn, config: OpenAIChatConfig, rendering: Rendering) -> Object:
    """Render a turn of the assistant; other providers' blocks are dropped."""
    contents: list[Object] = []
    refusals: list[str] = []
    calls: list[Object] = []
    images: list[Object] = []
    members: Object = {}
    sends_reasoning = _sends_reasoning(turn, config, rendering)
    for place, part in replay.without_splits(turn.parts):
        match part:
            case TextPart():
                replay.note_annotations(part, place, rendering)
                if part.refusal and rendering.block_of(part) is None:
                    refusals.append(part.text)
                elif is_sent(part, rendering):
                    contents.append(text_content(part, rendering))
            case ToolCallPart() if "legacy" in rendering.state(part):
                members["function_call"] = _function(part, place, rendering)
            case ToolCallPart():
                calls.append(_tool_call(part, place, rendering))
            case ProviderPart() if part.block.get("type") == "audio" and part.dialect == DIALECT:
                # Audio of the model is sent back by its id.
                members["audio"] = {"id": part.block.get("id")}
            case ThinkingPart() if sends_reasoning:
                continue
            case ImagePart() if (block := rendering.block_of(part)) is not None:
                images.append(block)
            case _:
                replay.drop(part, place, rendering)
    members |= _signature(turn, rendering)
    members |= {
        "content": text_or_list(contents),
        "refusal": replay.joined(refusals),
        "tool_calls": calls,
        "images": images,
    }
    message = assistant_message(turn, members, rendering)
    return message | _reasoning(turn, config, rendering) if sends_reasoning else message


def _signature(turn: Turn, rendering: Rendering) -> Object:
    """Return the signature of the text, which Gemini's compatible endpoint wants back."""
    for _, part in turn.parts:
        state = rendering.state(part)
        if isinstance(part, TextPart) and "extra_content" in state:
            return {"extra_content": state["extra_content"]}
    return {}


def function_call(call: ToolCallPart, place: Place, rendering: Rendering) -> Object:
    """Render a call of a function."""
    return {
        "id": rendering.call_ids.of(call.tool_call_id),
        "type": "function",
        "function": _function(call, place, rendering),
    }


def _function(call: ToolCallPart, place: Place, rendering: Rendering) -> Object:
    return {
        "name": rendering.tool_names.of(call.tool_name),
        "arguments": replay.argument_text(call, place, rendering),
    }


def _tool_call(call: ToolCallPart, place: Place, rendering: Rendering) -> Object:
    state = rendering.state(call)
    extra = {"extra_content": state["extra_content"]} if "extra_content" in state else {}
    # A freeform tool of another dialect is declared as a function.
    if call.input_format != "text" or call.tool_name in rendering.declared:
        return rendering.as_given(call, function_call(call, place, rendering) | extra)
    call_id = rendering.call_ids.of(call.tool_call_id)
    name = rendering.tool_names.of(call.tool_name)
    custom: Object = {"name": name, "input": call.raw_args_text}
    rendered: Object = {"id": call_id, "type": "custom", "custom": custom, **extra}
    return rendering.as_given(call, rendered)


def _sends_reasoning(turn: Turn, config: OpenAIChatConfig, rendering: Rendering) -> bool:
    """Return whether this vendor gets the reasoning of a turn back, where the turn now is."""
    if config.replay_reasoning_turns == "all":
        return True
    if config.replay_reasoning is None and not any(
        "reasoning" in rendering.state(part) for _, part in turn.parts
    ):
        return False
    if config.replay_reasoning_turns == "tool_turns" and turn.needs_reasoning(rendering):
        return True
    return rendering.of_turn(turn.in_open_loop)


def _reasoning(turn: Turn, config: OpenAIChatConfig, rendering: Rendering) -> Object:
    """Return the reasoning in the member in which this vendor wants it back."""
    for _, part in turn.parts:
        given_form = rendering.state(part).get("reasoning")
        if isinstance(part, ThinkingPart) and isinstance(given_form, dict):
            return dict(cast("Object", given_form))
    member = config.replay_reasoning
    if member in {"reasoning_content", "reasoning"}:
        said = _reasoning_text(turn, config, rendering)
        return {} if said is None else {member: said}
    if member is not None:
        pieces: list[object] = []
        for _, part in turn.parts:
            found = rendering.state(part).get(member)
            if isinstance(found, list):
                pieces.extend(cast("list[object]", found))
        if pieces:
            return {member: pieces}
    for place, part in turn.parts:
        if isinstance(part, ThinkingPart):
            replay.drop(part, place, rendering)
    return {}


def _reasoning_text(turn: Turn, config: OpenAIChatConfig, rendering: Rendering) -> str | None:
    texts = [part.text for _, part in turn.parts if isinstance(part, ThinkingPart)]
    placeholder = config.reasoning_placeholder
    if not any(texts) and placeholder is not None and turn.needs_reasoning(rendering):
        return placeholder
    return replay.joined(texts) if texts else None


def tool_results(turn: Turn, media: MediaRenderer, rendering: Rendering) -> list[Object]:
    """Render one message for each result, then one for all that they cannot carry."""
    rendered: list[Object] = []
    moved: list[tuple[Place, MessagePart]] = []
    for place, part in turn.parts:
        if not isinstance(part, ToolResultPart):
            continue
        replay.note_error_flag(part, place, rendering)
        content: str | list[Object]
        state = rendering.state(part)
        if "in_place" in state:
            items = [(place, item) for item in replay.result_items(part)]
            content = user_content(items, media, rendering)
        else:
            content, moved_here = replay.result_and_media(part, place, rendering)
            moved.extend((place, item) for item in moved_here)
        call_id = rendering.call_ids.of(part.tool_call_id)
        message: Object = {"role": "tool", "tool_call_id": call_id, "content": content}
        if "legacy" in state:
            message = {"role": "function", "name": state["legacy"], "content": content}
        rendered.append(rendering.as_given(part, message))
    if moved:
        rendered.append(user_message(moved, media, rendering))
    return rendered
