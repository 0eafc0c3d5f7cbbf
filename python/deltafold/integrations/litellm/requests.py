"""Messages and parameters of litellm as the arguments of a deltafold model.

In: messages and parameters in the form of Chat Completions.  Out: a conversation, and the arguments
of `Model.stream`.

Laws: the messages of an answer with an outline become its parts again, unless the answer was
changed. A parameter that the dialect does not have raises `UnsupportedParamsError`, unless
`litellm.drop_params` is set.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import litellm
from litellm.exceptions import UnsupportedParamsError
from litellm.llms.base_llm.base_utils import (
    type_to_response_format_param,  # pyright: ignore[reportUnknownVariableType]
)
from pydantic import BaseModel

from deltafold.dialects import migrate_config, parse_request
from deltafold.integrations.litellm.chunks import CHAT, outline_in
from deltafold.integrations.litellm.failures import PROVIDER
from deltafold.integrations.outlines import Outline, parts_of_outline
from deltafold.message.messages import Message, Role
from deltafold.message.parts import MessagePart
from deltafold.models.base import Model
from deltafold.models.vendors import VENDORS

Wire: TypeAlias = Mapping[str, Any]

_OF_STREAMS: Final = frozenset({"stream", "stream_options"})
"""Parameters that choose between a stream and a whole response."""

_OF_LITELLM: Final = frozenset({"thinking_blocks", "provider_specific_fields", "reasoning_items"})
"""Members of messages that Chat Completions does not have."""


_JOINT: Final = "\n\n"


def conversation_of(messages: Sequence[Any]) -> list[Message]:
    """Return the conversation of a request.

    Raises:
        ValueError: a message has an unknown form.
    """
    conversation: list[Message] = []
    pending: list[Wire] = []
    for message in messages:
        members = _members(message)
        parts = _outlined(members) if members.get("role") == "assistant" else None
        if parts is None:
            pending.append({name: members[name] for name in members if name not in _OF_LITELLM})
            continue
        conversation += _parsed(pending)
        conversation.append(Message(role=Role.ASSISTANT, parts=parts))
        pending = []
    return conversation + _parsed(pending)


def arguments_of(model: Model[Any], name: str, parameters: Wire, headers: Wire) -> dict[str, Any]:
    """Return the arguments of `Model.stream` for the parameters of a request.

    Args:
        model: the deltafold model.
        name: the name of the model in litellm.
        parameters: the parameters of the request, in the form of Chat Completions.
        headers: the extra headers of the request.

    Raises:
        UnsupportedParamsError: the dialect does not have a parameter.
        ValueError: a parameter has a wrong value.
    """
    given = {key: value for key, value in parameters.items() if key not in _OF_STREAMS}
    form = given.get("response_format")
    if isinstance(form, type):
        given["response_format"] = type_to_response_format_param(form)
    parsed = parse_request({"messages": [], **given}, CHAT)
    own = model.get_config()
    migrated = migrate_config(
        parsed,
        model.dialect,
        model_id=model.model_id,
        known_as=own.known_as,
        strict_settings=own.strict_settings,
        vendors=VENDORS[model.provider_id].names,
    )
    dropped = [note for note in migrated.notes if note.get("code") == "setting_dropped"]
    if dropped and not litellm.drop_params:
        reasons = "; ".join([str(note["message"]) for note in dropped])
        raise UnsupportedParamsError(message=reasons, llm_provider=PROVIDER, model=name)
    config = migrated.config
    fields = {key: getattr(config, key) for key in config.model_fields_set if key != "model_id"}
    if headers:
        fields["extra_headers"] = {**own.extra_headers, **headers}
    return {"tool_specs": list(parsed.tools), **fields}


def _members(message: Any) -> Wire:
    if isinstance(message, BaseModel):
        return message.model_dump(exclude_none=True)
    return {name: value for name, value in cast("Wire", message).items() if value is not None}


def _parsed(messages: Sequence[Wire]) -> list[Message]:
    return list(parse_request({"messages": messages}, CHAT).messages) if messages else []


def _outlined(message: Wire) -> list[MessagePart] | None:
    """Return the parts of an answer with an outline; None without one that fits."""
    outline = outline_in(message.get("thinking_blocks"))
    content = message.get("content") or ""
    if outline is None or not isinstance(content, str):
        return None
    calls: dict[str, tuple[str, object]] = {}
    for call in message.get("tool_calls") or ():
        custom = call.get("custom")
        if custom is not None:
            calls[call["id"]] = (custom["name"], custom["input"])
        else:
            calls[call["id"]] = (call["function"]["name"], call["function"]["arguments"])
    thinking = _without_joints(message.get("reasoning_content") or "", outline)
    return parts_of_outline(outline, content, thinking, calls)


def _without_joints(thinking: str, outline: Outline) -> str:
    """Return reasoning without the blank lines that the encoder writes between its parts."""
    lengths = [int(entry["length"]) for entry in outline if entry.get("kind") == "thinking"]
    surplus = len(thinking) - sum(lengths)
    pieces: list[str] = []
    for length in lengths:
        if pieces and surplus > 0 and thinking.startswith(_JOINT):
            thinking, surplus = thinking[len(_JOINT) :], surplus - len(_JOINT)
        pieces.append(thinking[:length])
        thinking = thinking[length:]
    return "".join(pieces) + thinking
