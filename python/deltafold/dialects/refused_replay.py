"""Requests whose reasoning was refused: the same requests without it.

In: the body of a request, and the message of the refusal.  Out: a body that the provider takes, and
the headers that it needs; None if the body has nothing to take out.

Laws: text, calls and results stay. The given body is not changed. Removing only the block that the
error names would not help: all later blocks are bound to it.
Sources: Anthropic's pages "Preserved thinking" and "Troubleshooting thinking"; OpenAI's guide on
reasoning items; Google's page "Thought signatures" (read 2026-11).
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from deltafold.contract.kinds import json_array, json_object
from deltafold.dialects.gemini.render import FOREIGN_SIGNATURE
from deltafold.dialects.gemini.settings import OLD_MODEL
from deltafold.dialects.model_table import find_model
from deltafold.dialects.rendered import Object

REPAIRED: Final = "replay_repaired"
"""Code of the warning of an answer whose request was sent again without refused reasoning."""

BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
"""Beta of `thinking.block_binding`, which the API refuses without it."""

_BOUND: Final = "bound to a different conversation"
_DROP: Final[Object] = {"prefix_mismatch_behavior": "drop_block"}
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})

Body: TypeAlias = Mapping[str, object]


class Repaired(NamedTuple):
    """A body without the refused reasoning, and headers that it needs."""

    body: Object
    headers: Mapping[str, str] = {}


def without_refused(dialect: str, body: Body, message: str, model_id: str) -> Repaired | None:
    """Return a request without the reasoning that its provider has refused.

    Args:
        dialect: the dialect of the request.
        body: its body.
        message: the message of the refusal.
        model_id: the model.
    """
    repair = _REPAIRS.get(dialect)
    if repair is None:
        return None
    repaired = repair(body, message, model_id)
    return None if repaired.body == body else repaired


def _of_messages(body: Body, message: str, model_id: str) -> Repaired:
    thinking = json_object(body.get("thinking")) or {}
    is_adaptive = thinking.get("type", "adaptive") == "adaptive"
    if _BOUND in message and is_adaptive and "block_binding" not in thinking:
        bound: Object = {"type": "adaptive", **thinking, "block_binding": _DROP}
        return Repaired({**body, "thinking": bound}, {"anthropic-beta": BINDING_BETA})
    kept = _without_blocks(body, lambda block: block.get("type") in _THINKING)
    is_budget = thinking.get("type") == "enabled"
    if is_budget and _is_open(kept, "tool_result") and _can_stop_thinking(model_id):
        # With a budget, an open call has to follow thinking.
        kept["thinking"] = {"type": "disabled"}
    return Repaired(kept)


def _can_stop_thinking(model_id: str) -> bool:
    known = find_model(model_id)
    return known is None or known.facts.thinking != "always"


def _of_converse(body: Body, message: str, model_id: str) -> Repaired:  # noqa: ARG001 - one form
    kept = _without_blocks(body, lambda block: "reasoningContent" in block)
    more = json_object(body.get("additionalModelRequestFields")) or {}
    thinking = json_object(more.get("thinking")) or {}
    is_budget = thinking.get("type") == "enabled"
    if is_budget and _is_open(kept, "toolResult") and _can_stop_thinking(model_id):
        kept["additionalModelRequestFields"] = {**more, "thinking": {"type": "disabled"}}
    return Repaired(kept)


def _of_responses(body: Body, message: str, model_id: str) -> Repaired:  # noqa: ARG001 - one form
    given = json_array(body.get("input"))
    items = [json_object(item) or {} for item in given]
    kept = [
        # An item without the reasoning before it is refused under the id of the two.
        {name: value for name, value in item.items() if name != "id"}
        for item in items
        if item.get("type") != "reasoning"
    ]
    return Repaired({**body, "input": kept} if len(kept) < len(items) else dict(body))


def _of_gemini(body: Body, message: str, model_id: str) -> Repaired:  # noqa: ARG001 - one form
    contents: list[object] = []
    for content in json_array(body.get("contents")):
        members = json_object(content) or {}
        parts = [dict(json_object(part) or {}) for part in json_array(members.get("parts"))]
        is_signed = OLD_MODEL.match(model_id) is not None
        for part in parts:
            part.pop("thoughtSignature", None)
            if "functionCall" in part and not is_signed and members.get("role") == "model":
                part["thoughtSignature"] = FOREIGN_SIGNATURE
                is_signed = True
        contents.append({**members, "parts": parts})
    return Repaired({**body, "contents": contents})


def _of_chat(body: Body, message: str, model_id: str) -> Repaired:  # noqa: ARG001 - one form
    messages: list[object] = []
    for message_ in json_array(body.get("messages")):
        members = dict(json_object(message_) or {})
        for name in ("reasoning_details", "extra_content", "thinking_blocks"):
            members.pop(name, None)
        calls = json_array(members.get("tool_calls"))
        if calls:
            members["tool_calls"] = [_signed(json_object(call) or {}) for call in calls]
        messages.append(members)
    return Repaired({**body, "messages": messages})


def _signed(call: Mapping[str, object]) -> Object:
    """Replace a signature of Gemini by the placeholder."""
    if "extra_content" not in call:
        return dict(call)
    return {**call, "extra_content": {"google": {"thought_signature": FOREIGN_SIGNATURE}}}


def _without_blocks(body: Body, is_refused: Callable[[Mapping[str, object]], bool]) -> Object:
    """Return a body of messages with blocks, without some blocks of the assistant."""
    messages: list[object] = []
    for message in json_array(body.get("messages")):
        members = json_object(message) or {}
        blocks = json_array(members.get("content"))
        kept = [block for block in blocks if not is_refused(json_object(block) or {})]
        if members.get("role") != "assistant" or len(kept) == len(blocks):
            messages.append(message)
        elif kept:
            messages.append({**members, "content": kept})
    return {**body, "messages": messages}


def _is_open(body: Body, result: str) -> bool:
    """Return whether the last message answers calls, so that their turn goes on."""
    messages = json_array(body.get("messages"))
    last = json_object(messages[-1] if messages else None) or {}
    blocks = [json_object(block) or {} for block in json_array(last.get("content"))]
    return any(result in block or block.get("type") == result for block in blocks)


_REPAIRS: Final[Mapping[str, Callable[[Body, str, str], Repaired]]] = {
    "anthropic-messages": _of_messages,
    "bedrock-converse": _of_converse,
    "gemini": _of_gemini,
    "openai-chat": _of_chat,
    "openai-responses": _of_responses,
}
