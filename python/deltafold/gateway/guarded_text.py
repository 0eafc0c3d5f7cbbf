"""Guarded text: a hook sees and replaces text before the client does.

In: deltas, and `OnDelta`.  Out: deltas whose texts are those of the hook.

Laws: a part's text keeps its order, and at most `hold_back` characters of it wait. They leave
before the end of their part, and so before the next part and before the terminal.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final, NamedTuple

from deltafold._core import MessageDelta
from deltafold.contract.kinds import DeltaKind
from deltafold.errors.model_error import ModelError
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.hooks import OnDelta
from deltafold.streams.encoded import error_payload

_MEMBERS: Final = {
    DeltaKind.TEXT: "textDelta",
    DeltaKind.THINKING: "textDelta",
    DeltaKind.TOOL_CALL_ARGS: "argsTextDelta",
}
_OF_EVERY_PIECE: Final = ("partIndex", "toolCallId", "refusal", "redacted")


class Guard:
    """The texts of one stream that the client does not have yet."""

    def __init__(self, asked: ClientRequest, on_delta: OnDelta, hold_back: int) -> None:
        self._asked = asked
        self._on_delta = on_delta
        self._hold_back = hold_back
        self._held: dict[_Place, tuple[MessageDelta, str]] = {}
        self._seq = 0

    async def deltas(self, deltas: Iterable[MessageDelta]) -> AsyncIterator[MessageDelta]:
        """Yield the deltas that may leave, numbered anew.

        Raises:
            ModelError: the hook ended the answer.
        """
        for delta in deltas:
            payload = delta.payload
            member = _MEMBERS.get(delta.kind)
            if member is None:
                for place in self._ending(delta):
                    last, text = self._held.pop(place)
                    text = await self._on_delta(self._asked, last.kind, text)
                    if text:
                        kept = {name: last.payload.get(name) for name in _OF_EVERY_PIECE}
                        kept = {name: value for name, value in kept.items() if value is not None}
                        yield self._made(last, {**kept, place.member: text})
                yield self._made(delta, payload)
                continue
            place = _Place(delta.kind, member, delta.part_index, delta.tool_call_id)
            _, before = self._held.pop(place, (delta, ""))
            text = before + (delta.text or delta.args_text or "")
            text = await self._on_delta(self._asked, delta.kind, text) if text else text
            leaves = max(0, len(text) - self._hold_back)
            if leaves < len(text):
                self._held[place] = delta, text[leaves:]
            # An empty text carries what rides on it, if anything does.
            if leaves or payload.keys() - {member, *_OF_EVERY_PIECE}:
                yield self._made(delta, {**payload, member: text[:leaves]})

    def end(self, error: ModelError) -> MessageDelta:
        """Return the last delta of an answer that the hook ended.  Held text is dropped."""
        self._seq += 1
        return MessageDelta(self._run_id, self._seq, DeltaKind.ERROR, error_payload(error))

    def _made(self, delta: MessageDelta, payload: Mapping[str, object]) -> MessageDelta:
        self._seq += 1
        self._run_id = delta.run_id
        return MessageDelta(delta.run_id, self._seq, delta.kind, payload, delta.timestamp)

    def _ending(self, delta: MessageDelta) -> list["_Place"]:
        """Return the parts whose text cannot wait beyond a delta: its own, or all."""
        if delta.kind in {DeltaKind.DONE, DeltaKind.ERROR}:
            return list(self._held)
        if delta.kind is DeltaKind.PART_END:
            return [place for place in self._held if place.part_index == delta.part_index]
        if delta.kind is DeltaKind.TOOL_CALL_END:
            return [place for place in self._held if place.tool_call_id == delta.tool_call_id]
        return []


class _Place(NamedTuple):
    """A part whose text grows."""

    kind: DeltaKind
    member: str
    part_index: int | None
    tool_call_id: str | None
