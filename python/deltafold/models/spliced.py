"""Spliced answers: the rest of an answer that broke off, as deltas of the same answer.

In: the deltas of an upstream, and those of the upstream that continues its answer.  Out: the deltas
of one answer.

Laws: the client has each text once. The numbers of parts and deltas go on, and the counts of usage
are those of all upstreams. A failure is held back until it is known whether another upstream
continues.
"""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final

from deltafold._core import MessageDelta
from deltafold.contract.kinds import DeltaKind
from deltafold.contract.names import RequestProtocol
from deltafold.contract.usage import Usage, sum_of_usage
from deltafold.message.messages import Message
from deltafold.message.parts import TextPart
from deltafold.models.continuation import may_repeat

CLOSINGS: Final = {DeltaKind.PART_END, DeltaKind.TOOL_CALL_END}
"""Deltas that the decoder makes before a failure, for what did not end."""

_OF_A_PART: Final = frozenset(DeltaKind) - {
    DeltaKind.START,
    DeltaKind.USAGE,
    DeltaKind.AUDIO,
    DeltaKind.DONE,
    DeltaKind.ERROR,
}


class Splice:
    """The deltas of answers that follow one another."""

    def __init__(self) -> None:
        self._failure: MessageDelta | None = None
        self._seq = 0
        self._run_id = ""
        self._parts = 0
        self._open: int | None = None  # the text that the next delta may continue
        # That of the open text, which does not end if it is continued, and those before a failure.
        self._ends: list[MessageDelta] = []
        self._rest: _Rest | None = None
        self._usage: list[Usage] = []
        self._counted: Usage | None = None

    def deltas(self, deltas: Iterable[MessageDelta]) -> Iterator[MessageDelta]:
        """Yield the deltas of the answer, without a failure and the ends before it."""
        made = list(self._mapped(deltas))
        ends: list[MessageDelta] = []
        if self._failure is not None:
            while made and made[-1].kind in CLOSINGS:
                ends.insert(0, made.pop())
        for one in made:
            yield from self._last_ends()
            if one.kind is DeltaKind.PART_END and one.part_index == self._open:
                self._ends = [one]
                continue
            self._note(one)
            yield one
        self._ends += ends

    def _mapped(self, deltas: Iterable[MessageDelta]) -> Iterator[MessageDelta]:
        """Yield deltas with the numbers of the whole answer, and keep a failure."""
        for delta in deltas:
            if delta.kind is DeltaKind.ERROR:
                self._failure = delta
            elif self._rest is None:
                yield delta
            elif delta.kind is not DeltaKind.START:
                yield from self._continued(self._rest, delta)

    def continue_after(self, partial: Message, dialect: RequestProtocol) -> None:
        """Take the deltas of another upstream from now on; it continues the answer so far."""
        if self._counted is not None:
            self._usage.append(self._counted)
            self._counted = None
        self._failure = None
        self._ends = [end for end in self._ends if end.part_index != self._open]
        last = partial.parts[-1] if partial.parts else None
        text = last.text if isinstance(last, TextPart) else ""
        self._rest = _Rest(text, self._open, self._parts, repeats=may_repeat(dialect))

    def failed(self) -> Iterator[MessageDelta]:
        """Yield the failure that was held back, as the last delta of the answer."""
        yield from self._last_ends()
        if self._failure is not None:
            yield self._made(self._failure, dict(self._failure.payload))
            self._failure = None

    def _last_ends(self) -> Iterator[MessageDelta]:
        """Yield the ends that were held back, of parts that nothing continues."""
        ends, self._ends = self._ends, []
        for end in ends:
            self._note(end)
            yield end

    def _continued(self, rest: "_Rest", delta: MessageDelta) -> Iterator[MessageDelta]:
        payload = dict(delta.payload)
        if delta.kind is DeltaKind.USAGE:
            self._counted = Usage.model_validate(payload)
            payload = sum_of_usage([*self._usage, self._counted]).model_dump(mode="json")
        elif delta.kind is DeltaKind.TEXT and rest.begins:
            payload["textDelta"] = rest.continued(delta.text or "", delta.part_index or 0)
            if not payload["textDelta"]:
                return
        elif rest.begins and delta.kind is not DeltaKind.AUDIO:
            yield from self._begun(rest, delta)
            if delta.kind is DeltaKind.PART_END and rest.begins:
                return
        if isinstance(payload.get("partIndex"), int):
            payload["partIndex"] = rest.index(delta.part_index or 0)
        yield self._made(delta, payload)

    def _begun(self, rest: "_Rest", delta: MessageDelta) -> Iterator[MessageDelta]:
        """Yield the end of the text so far, before the first delta of another kind."""
        if held := rest.flush():
            payload: dict[str, object] = {"partIndex": rest.index(rest.first), "textDelta": held}
            yield self._made(delta, payload, DeltaKind.TEXT)
        elif delta.kind is DeltaKind.PART_END:
            # A text that only repeats: its end is that of the text before it.
            if rest.place is not None:
                rest.begin(delta.part_index or 0, goes_on=True)
        else:
            if rest.place is not None:
                yield self._made(delta, {"partIndex": rest.place}, DeltaKind.PART_END)
            rest.begin(delta.part_index or 0, goes_on=False)

    def _made(
        self, delta: MessageDelta, payload: dict[str, object], kind: DeltaKind | None = None
    ) -> MessageDelta:
        self._seq += 1
        return MessageDelta(self._run_id, self._seq, kind or delta.kind, payload, delta.timestamp)

    def _note(self, delta: MessageDelta) -> None:
        self._seq, self._run_id = max(self._seq, delta.seq), delta.run_id
        index = delta.part_index
        if index is not None:
            self._parts = max(self._parts, index + 1)
        if delta.kind is DeltaKind.TEXT:
            self._open = index
        elif delta.kind in _OF_A_PART:
            self._open = None
        elif delta.kind is DeltaKind.USAGE and self._rest is None:
            self._counted = Usage.model_validate(dict(delta.payload))


class _Rest:
    """Numbers the parts of a continuing answer, and holds back the beginning of its first text."""

    def __init__(self, before: str, place: int | None, parts: int, *, repeats: bool) -> None:
        self.begins = True
        self.place = place
        self.first = 0
        self._held = ""
        self._parts = parts
        self._offset = 0
        self._sent = before.rstrip()
        self._space = before[len(self._sent) :]
        self._repeats = repeats

    def continued(self, text: str, index: int) -> str:
        """Return the text that the client does not have, "" while it may be a repeated one."""
        self.first = index
        self._held += text
        if self._repeats and self._sent.startswith(self._held):
            return ""
        if self._repeats:
            self._held = self._held.removeprefix(self._sent)
        return self._given()

    def flush(self) -> str:
        """Return the text that was held back and repeats nothing."""
        return "" if self._held in {"", self._sent} else self._given()

    def begin(self, index: int, *, goes_on: bool) -> None:
        """Note the first part, which may go on with the text before it."""
        self.begins = False
        place = self.place if goes_on else None
        self._offset = (self._parts if place is None else place) - index

    def index(self, index: int) -> int:
        """Return the number of a part in the whole answer."""
        return index + self._offset

    def _given(self) -> str:
        text, self._held = self._held, ""
        space = zip(self._space, text, strict=False)
        text = text[sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], space)) :]
        if text:
            self.begin(self.first, goes_on=True)
        return text
