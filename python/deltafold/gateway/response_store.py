"""Stored responses: what `previous_response_id` of the Responses API continues.

In: the conversation and the answer of a response, by its id and its owner.  Out: the same, while it
is kept.

Laws: nobody reads the conversation of another owner. The store in memory is bounded in responses
and in bytes; the oldest leave first.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from deltafold.message.messages import Message

_Kept: TypeAlias = tuple[int, tuple[Message, ...]]
"""A conversation, and its size as JSON in bytes."""


class ResponseStore(Protocol):
    """Keeps conversations by the id of their last response and by their owner.

    The owner is what `on_connect` returned, else a digest of the client's key, "" without one.

    >>> app = create_app({"m": "openai/gpt-5.6-terra"}, store=MemoryStore())
    """

    async def get(self, response_id: str, owner: str) -> Sequence[Message] | None:
        """Return the conversation up to a response and with it, None if the owner has none."""
        ...

    async def put(self, response_id: str, messages: Sequence[Message], owner: str) -> None:
        """Keep a conversation; an empty one means that its id continues nothing any more."""
        ...


class MemoryStore:
    """Store in the memory of this process.

    >>> store = MemoryStore(max_responses=100)

    Args:
        max_responses: the largest number of conversations.
        max_bytes: the largest sum of their sizes as JSON, in bytes.
    """

    def __init__(self, max_responses: int = 1_000, max_bytes: int = 64 << 20) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._bytes = 0

    async def get(self, response_id: str, owner: str = "") -> Sequence[Message] | None:
        """Return a conversation, None if it is not kept any more."""
        kept = self._kept.get((owner, response_id))
        return None if kept is None else kept[1]

    async def put(self, response_id: str, messages: Sequence[Message], owner: str = "") -> None:
        """Keep a conversation, and forget the oldest ones beyond the bounds."""
        size = sum(len(message.to_json()) for message in messages)
        if size > self._max_bytes:
            return
        old, _ = self._kept.pop((owner, response_id), (0, ()))
        self._bytes += size - old
        self._kept[owner, response_id] = size, tuple(messages)
        while len(self._kept) > self._max_responses or self._bytes > self._max_bytes:
            _, (gone, _) = self._kept.popitem(last=False)
            self._bytes -= gone
