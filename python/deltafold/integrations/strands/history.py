"""Messages of strands as conversations of deltafold.

In: messages and system prompts of the framework.  Out: deltafold messages.

Laws: an answer with an outline becomes its parts again, unless it was changed. All other messages
are read by the parser of Bedrock's Converse, whose form strands has; it opens the envelopes of
other providers. A cache point marks the block before it where the dialect has marks.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from strands.types.content import Messages, SystemContentBlock

from deltafold.dialects import parse_request
from deltafold.integrations.carried import MEMBER, cache_marked, state_of
from deltafold.integrations.outlines import parts_of_outline
from deltafold.integrations.strands.events import CONVERSE, OUTLINE
from deltafold.message.messages import Message, Role
from deltafold.message.parts import MessagePart, ThinkingPart

Block: TypeAlias = Mapping[str, Any]


def conversation_of(
    messages: Messages,
    system_prompt: str | None,
    system_content: Sequence[SystemContentBlock] | None,
    dialect: str,
) -> list[Message]:
    """Return the conversation of a request.

    Args:
        messages: the framework's history.
        system_prompt: the system prompt as a text.
        system_content: the system prompt as blocks; it replaces the text.
        dialect: the dialect of the request.

    Raises:
        ValueError: a block has an unknown form.
    """
    conversation: list[Message] = []
    body: dict[str, Any] = {"messages": []}
    if system_content:
        body["system"] = [wire_of(block) for block in system_content]
    elif system_prompt:
        body["system"] = [{"text": system_prompt}]
    for message in messages:
        content = cast("list[Block]", message["content"])
        parts = _outlined(content) if message["role"] == "assistant" else None
        if parts is not None:
            _add_parsed(body, conversation, dialect)
            conversation.append(Message(role=Role.ASSISTANT, parts=parts))
            body = {"messages": []}
            continue
        blocks = [_converse(block, dialect) for block in content if _outline_in(block) is None]
        if blocks:
            body["messages"].append({"role": message["role"], "content": blocks})
    _add_parsed(body, conversation, dialect)
    return conversation


def _add_parsed(body: Mapping[str, Any], conversation: list[Message], dialect: str) -> None:
    for message in parse_request(body, CONVERSE).messages:
        if dialect == CONVERSE:
            conversation.append(message)
            continue
        parts: list[MessagePart] = []
        for part in message.parts:
            point = state_of({"providerState": part.provider_state}).get("block")
            if isinstance(point, Mapping) and "cachePoint" in point:
                lifetime = cast("Block", point)["cachePoint"].get("ttl")
                if not parts and conversation and message.role is not Role.SYSTEM:
                    last = conversation[-1]
                    marked = cache_marked(last.parts, dialect, lifetime)
                    conversation[-1] = last.model_copy(update={"parts": marked})
                parts = cache_marked(parts, dialect, lifetime)
            else:
                parts.append(_signed(part, dialect))
        if parts:
            conversation.append(message.model_copy(update={"parts": parts}))


def _signed(part: MessagePart, dialect: str) -> MessagePart:
    """Return a part whose signature goes to Claude, as it came from a model of strands."""
    state = part.provider_state or {}
    known = isinstance(part, ThinkingPart) and "signature" in state_of({"providerState": state})
    if not known or dialect != "anthropic-messages" or state.get("dialect") != CONVERSE:
        return part
    return part.model_copy(update={"provider_state": {**state, "dialect": dialect}})


def _converse(block: Block, dialect: str) -> Block:
    """Return a block in the form of Converse; citations are those of Bedrock."""
    if "citationsContent" in block and dialect != CONVERSE:
        return {"text": _text_of(block)}
    call = block.get("toolUse")
    if call is not None:
        # The signature is that of a model of strands for Gemini.
        return {"toolUse": {name: call[name] for name in ("toolUseId", "name", "input")}}
    return cast("Block", wire_of(block))


def wire_of(value: Any) -> Any:
    """Return a value as JSON of Converse: bytes as base64, locations under their name."""
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, list):
        return [wire_of(one) for one in cast("Sequence[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    return dict([_member(name, one) for name, one in cast("Block", value).items()])


def _member(name: str, value: Any) -> tuple[str, Any]:
    match value:
        case {"type": "s3", **rest} if name == "location":
            return "s3Location", rest
        case {"source": _} if name == "document":
            known = {member: one for member, one in value.items() if one is not None}
            return name, wire_of(known)
        case _:
            return name, value if name == "json" else wire_of(value)


def _text_of(block: Block) -> str:
    """Return the text of a block, with or without citations; empty for other blocks."""
    cited = block.get("citationsContent")
    if cited is None:
        return str(block.get("text", ""))
    return "".join([str(one.get("text", "")) for one in cited.get("content", ())])


def _outline_in(block: Block) -> list[Any] | None:
    """Return the outline in a block; None if the block has another content."""
    data = block.get("reasoningContent", {}).get("redactedContent")
    if not isinstance(data, bytes) or not data.startswith(OUTLINE):
        return None
    try:
        found: object = json.loads(data)[MEMBER]
    except ValueError:
        return None
    return cast("list[Any]", found)


def _outlined(content: Sequence[Block]) -> list[MessagePart] | None:
    """Return the parts of an answer with an outline; None without one that fits."""
    outline = _outline_in(content[-1]) if content else None
    if outline is None:
        return None
    text, thinking = "", ""
    calls: dict[str, tuple[str, object]] = {}
    for block in content:
        text += _text_of(block)
        thinking += block.get("reasoningContent", {}).get("reasoningText", {}).get("text", "")
        call = block.get("toolUse")
        if call is not None:
            calls[call["toolUseId"]] = (call["name"], call["input"])
    return parts_of_outline(outline, text, thinking, calls)
