"""Items of openai-agents as conversations of deltafold.

In: instructions and input items in the form of the Responses API.  Out: deltafold messages.

Laws: the items of an answer of this adapter become its parts again, by the outline in the
`provider_data` of the last one. All others are read by the parser of the dialect openai-responses,
which opens envelopes of other providers.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from deltafold.dialects import parse_request
from deltafold.dialects.openai_responses.client_tools import flat_name
from deltafold.integrations.carried import MEMBER
from deltafold.integrations.openai_agents.events import PROVIDER_DATA
from deltafold.integrations.outlines import Outline, parts_of_outline
from deltafold.message.messages import Message, Role
from deltafold.message.parts import MessagePart

Item: TypeAlias = Mapping[str, Any]


def conversation_of(instructions: str | None, given: str | Sequence[Any]) -> list[Message]:
    """Return the conversation of a request.

    Raises:
        ValueError: an item has an unknown form.
    """
    conversation = [Message.system(instructions)] if instructions else []
    if isinstance(given, str):
        return [*conversation, Message.user(given)]
    pending: list[Item] = []
    for item in given:
        members = cast("Item", item)
        pending.append(members)
        outlined = _outlined(pending)
        if outlined is not None:
            before, parts = outlined
            conversation += _parsed(before)
            conversation.append(Message(role=Role.ASSISTANT, parts=parts))
            pending = []
    return conversation + _parsed(pending)


def _parsed(items: Sequence[Item]) -> list[Message]:
    if not items:
        return []
    plain = [
        {name: value for name, value in item.items() if name != PROVIDER_DATA} for item in items
    ]
    return list(parse_request({"input": plain}, "openai-responses").messages)


def _outlined(items: Sequence[Item]) -> tuple[Sequence[Item], list[MessagePart]] | None:
    """Return the parts of the answer that ends here, and the items before it.

    Return None if the last item does not end an answer of this adapter, or if the answer was
    changed.
    """
    data = items[-1].get(PROVIDER_DATA)
    kept = cast("Item", data).get(MEMBER) if isinstance(data, Mapping) else None
    if not isinstance(kept, Mapping):
        return None
    known = cast("Item", kept)
    before = len(items) - len(known["types"])
    answer = items[max(before, 0) :]
    if [_type_of(item) for item in answer] != known["types"]:
        return None
    text, thinking = "", ""
    calls: dict[str, tuple[str, object]] = {}
    named = {str(part.get("id")) for part in cast("Outline", known["parts"])}
    for item in answer:
        match _type_of(item):
            case "message":
                text += _texts(item.get("content"))
            case "reasoning":
                thinking += _texts(item.get("summary")) + _texts(item.get("content"))
            case "function_call":
                calls[str(item["call_id"])] = (flat_name(item), item["arguments"])
            case "custom_tool_call" if str(item["call_id"]) in named:
                calls[str(item["call_id"])] = (flat_name(item), item["input"])
            case _:
                pass
    parts = parts_of_outline(cast("Outline", known["parts"]), text, thinking, calls)
    return None if parts is None else (items[:before], parts)


def _type_of(item: Item) -> str:
    """Return the type of an item; a message of others than the assistant has its role."""
    kind, role = item.get("type", "message"), item.get("role", "assistant")
    return str(kind if kind != "message" or role == "assistant" else role)


def _texts(content: object) -> str:
    if isinstance(content, str):
        return content
    pieces = cast("Sequence[Item]", content if isinstance(content, Sequence) else ())
    return "".join([str(one.get("text") or one.get("refusal") or "") for one in pieces])
