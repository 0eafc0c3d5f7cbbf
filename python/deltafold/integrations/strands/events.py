"""Answers as events of strands.

In: batches of deltas, and the message that they fold to.  Out: `StreamEvent`s.

Laws: the encoder of Bedrock's Converse writes the events as mappings. State of thinking and of
calls is in its envelopes. An answer with other facts that the blocks of strands have no member for
ends with a reasoning block whose `redactedContent` is the outline of the answer. The blocks of a
call are never interleaved. strands runs the calls of the blocks, and no event takes a block back.
Therefore calls wait for the end of an answer that another model may take over.
"""

import json
from base64 import b64decode
from typing import Any, Final, Literal, TypeAlias, cast

from strands.types.streaming import StreamEvent

from deltafold._core import DeltaBatch, Encoder
from deltafold.contract.kinds import FinishReason
from deltafold.integrations.carried import MEMBER
from deltafold.integrations.outlines import Outline, outline_of
from deltafold.message.messages import Message
from deltafold.message.parts import ToolCallPart

Event: TypeAlias = dict[str, Any]

CONVERSE: Final = "bedrock-converse"

OUTLINE: Final = b'{"' + MEMBER.encode() + b'":['
"""Beginning of the data of a block with an outline."""

_FACTS: Final = frozenset({"annotations", "part", "provider_state"})
"""Notes of the encoder about facts that belong in a history."""

_OF_BLOCKS: Final = frozenset({"kind", "length", "id", "arguments"})
_IN_ENVELOPES: Final = frozenset({"thinking", "tool_call"})
"""Kinds of part whose provider state the encoder writes into an envelope."""


class Events:
    """The events of one answer.

    Args:
        declined_calls: the option of the encoder.
    """

    def __init__(self, declined_calls: Literal["filter", "hold"]) -> None:
        self._encoder = Encoder(
            CONVERSE, as_bytes=False, envelope=True, declined_calls=declined_calls
        )
        self._end: list[Event] = []
        self._next_index = 0
        self._written: set[str] = set()
        """Ids of the calls that strands has."""

    def feed(self, deltas: DeltaBatch) -> list[StreamEvent]:
        """Return the events of deltas, except for the stop and the counts."""
        events: list[Event] = []
        append = events.append
        for event in cast("list[Event]", self._encoder.feed(deltas)):
            delta = event.get("contentBlockDelta")
            if delta is not None:
                reasoning = delta["delta"].get("reasoningContent")
                if reasoning is not None and "redactedContent" in reasoning:
                    reasoning["redactedContent"] = b64decode(reasoning["redactedContent"])
                append(event)
            elif "contentBlockStop" in event:
                self._next_index = event["contentBlockStop"]["contentBlockIndex"] + 1
                append(event)
            elif "messageStop" in event or "metadata" in event:
                self._end.append(event)
            elif "contentBlockStart" in event or "messageStart" in event:
                started = event.get("contentBlockStart", {}).get("start", {}).get("toolUse")
                if started is not None:
                    self._written.add(started["toolUseId"])
                append(event)
        return cast("list[StreamEvent]", events)

    def end(self, message: Message) -> list[StreamEvent]:
        """Return the last events of a whole answer.

        Args:
            message: the answer.
        """
        events = self._outlined(message)
        for event in self._end:
            stop, facts = event.get("messageStop"), event.get("metadata")
            if stop is not None and message.meta.finish_reason is FinishReason.PAUSE:
                # A paused answer goes on when the agent is called again.
                stop["stopReason"] = "end_turn"
            incomplete = {call.tool_call_id for call in message.tool_calls if call.incomplete}
            if stop is not None and incomplete & self._written:
                # strands would run half a call with the defaults of its tool.
                stop["stopReason"] = "max_tokens"
            if facts is not None:
                facts["metrics"]["latencyMs"] = int(message.meta.duration_ms or 0)
            events.append(event)
        return cast("list[StreamEvent]", events)

    def _outlined(self, message: Message) -> list[Event]:
        outline = outline_of(message)
        dropped = any(note["code"] in _FACTS for note in self._encoder.notes)
        if not dropped and not _needs_block(message, outline):
            return []
        data = json.dumps({MEMBER: outline}, separators=(",", ":")).encode()
        index = self._next_index
        delta = {"reasoningContent": {"redactedContent": data}}
        return [
            {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}},
            {"contentBlockStop": {"contentBlockIndex": index}},
        ]


def _needs_block(message: Message, outline: Outline) -> bool:
    """Return whether the blocks of strands and the envelopes lose facts of an answer."""
    for part, entry in zip(message.parts, outline, strict=True):
        facts = entry.keys() - _OF_BLOCKS
        if part.kind in _IN_ENVELOPES:
            facts -= {"providerState", "redacted"}
        # strands replaces arguments that are not an object by an empty one.
        if facts or (isinstance(part, ToolCallPart) and part.arguments is None):
            return True
    return False
