"""Pairs of tool calls and their results.

In: the parts of a conversation, message by message.  Out: each result with the call it answers.

Law: a result answers the latest call before it that has its id.  Two calls of one message with one
id are answered in their order.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from deltafold.message.messages import MessagePart, ToolCallPart, ToolResultPart

ItemT = TypeVar("ItemT")


def answered_calls(
    messages: Iterable[Iterable[tuple[ItemT, MessagePart]]],
) -> Iterator[tuple[ItemT, ItemT | None]]:
    """Yield each result with the call that it answers, None if there is no such call.

    Args:
        messages: the parts of each message, each with an item that represents the part in the
            pairs.
    """
    waiting: dict[str, list[ItemT]] = {}
    for parts in messages:
        called: set[str] = set()
        for item, part in parts:
            if isinstance(part, ToolCallPart):
                if part.tool_call_id not in called:
                    called.add(part.tool_call_id)
                    waiting[part.tool_call_id] = []
                waiting[part.tool_call_id].append(item)
            elif isinstance(part, ToolResultPart):
                calls = waiting.get(part.tool_call_id)
                yield item, calls.pop(0) if calls else None
