"""Kept rounds: the next call of a conversation copies the rounds that its last call has rendered.

In: the messages of a call, and a stencil of it.  Out: the body.

Laws: rounds are copied while each of their messages has the same role, the same part objects and
the same model. Kept rounds live as long as the last message in them. The beginning and the end of a
conversation are rendered in each call. A stencil uses kept rounds only if it renders each form of
round in the same way as the stencil that has rendered them.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from deltafold._core import KeptMessages, RequestOutline, RequestStencil
from deltafold.contract.living import Living
from deltafold.dialects import message_rows
from deltafold.message.messages import Message

_FAR: Final = 256
"""Messages at the end of a conversation among which kept rounds are looked for."""

_MOST: Final = 4
"""Settings whose rounds are kept for one conversation; each model has its own."""

_MOST_BYTES: Final = 256 << 20
"""Bytes of the bodies that are kept at once."""

_EXAMPLES: Final = 12
"""Rounds of further forms in one sample."""

_MOST_SAMPLES: Final = 16
"""Samples that one call makes for the forms of kept rounds."""


class Learned(NamedTuple):
    """A conversation that a stencil has rendered.

    Attributes:
        stencil: the stencil.
        content: the body.
        first: byte offset of the first round in the body.
        last: byte offset of the last round.
    """

    stencil: RequestStencil
    content: bytes
    first: int
    last: int


Learn: TypeAlias = Callable[[RequestOutline], Learned | None]
"""Finds or makes the stencil of a conversation, and writes the conversation with it."""


@dataclass(frozen=True, slots=True)
class _Rounds:
    """The rounds of a conversation that a call has written.

    Attributes:
        messages: the messages of the rounds; other conversations may share the object.
        count: number of the messages that belong to these rounds.
        stencil: the stencil that has rendered them.
        examples: for each form of round, the places of the messages of one round. The first message
            of all rounds has the place 0.
        content: the body of the call.
        first: byte offset of the rounds in the body.
        last: byte offset behind them.
    """

    messages: KeptMessages
    count: int
    stencil: RequestStencil
    examples: Mapping[bytes, range]
    content: bytes
    first: int
    last: int


class _Refused(NamedTuple):
    """A conversation that no stencil can render.

    Attributes:
        again: number of messages from which on a stencil is tried again.
    """

    again: int


class KeptRounds:
    """The rounds that recent calls of live conversations have written."""

    def __init__(self) -> None:
        # By the last message of the rounds, and by the settings. The values hold the parts of that
        # message. They must not hold the message, which would then never be freed.
        self._behind = Living[dict[Hashable, _Rounds | _Refused]](_MOST_BYTES)

    def __len__(self) -> int:
        return len(self._behind)

    @property
    def size(self) -> int:
        """Bytes of the bodies that are kept."""
        return self._behind.size

    def written(self, messages: list[Message], settings: Hashable, learn: Learn) -> bytes | None:
        """Return the body of a call, None if the renderer has to write it.

        Args:
            messages: the conversation.
            settings: all values that a stencil depends on beside the conversation.
            learn: finds the stencil.
        """
        place, known = self._find(messages, settings)
        if isinstance(known, _Rounds):
            written = self._continued(messages, place + 1 - known.count, known, settings, learn)
            if written is not None:
                return written
        elif known is not None and len(messages) < known.again:
            self._put(messages[-1], settings, known)
            return None
        written = self._begun(messages, settings, learn)
        if written is None:
            self._put(messages[-1], settings, _Refused(2 * len(messages)))
        return written

    def _find(
        self, messages: list[Message], settings: Hashable
    ) -> tuple[int, "_Rounds | _Refused | None"]:
        """Return the newest entry of a conversation, and the place of its message.

        Entries that no call of this conversation can use any more are dropped on the way.
        """
        newer: set[Hashable] = set()
        for place in range(len(messages) - 1, max(-1, len(messages) - 1 - _FAR), -1):
            behind = self._behind.find(messages[place])
            if behind is None:
                continue
            known = behind.get(settings)
            if isinstance(known, _Refused):
                return place, known
            if known is not None:
                start = place + 1 - known.count
                if start > 0 and known.messages.are_in(known.count, messages, start):
                    return place, known
            others = [key for key in behind if key != settings and key not in newer]
            newest = others[max(0, len(others) + len(newer) + 1 - _MOST) :]
            newer.update(newest)
            if len(newest) < len(behind):
                self._put_all(messages[place], {key: behind[key] for key in newest})
        return 0, None

    def _begun(self, messages: list[Message], settings: Hashable, learn: Learn) -> bytes | None:
        """Return the body of a call without kept rounds, None if no stencil can render it."""
        outlined = _outlined(messages)
        made = None if outlined is None else learn(outlined[0])
        if outlined is None or made is None:
            return None
        outline, starts = outlined
        empty = _Rounds(KeptMessages(), 0, made.stencil, {}, b"", 0, 0)
        added = _Added(made, starts, outline)
        self._keep(messages, settings, empty, added, made.content)
        return made.content

    def _continued(
        self,
        messages: list[Message],
        start: int,
        rounds: _Rounds,
        settings: Hashable,
        learn: Learn,
    ) -> bytes | None:
        """Return the body of a call with kept rounds, None if they cannot be used."""
        rest = [*messages[:start], *messages[start + rounds.count :]]
        outlined = _outlined(rest)
        if outlined is None:
            return None
        outline, starts = outlined
        made = learn(outline) if starts[0] == start else None
        # A call with the id of one before it is paired by the rules.
        if made is None or rounds.messages.has_calls(rounds.count, outline.identifiers()[0]):
            return None
        lacking = made.stencil.lacking(rounds.stencil)
        for _ in range(_MOST_SAMPLES):
            if not lacking:
                break
            examples = [
                message
                for form in lacking[:_EXAMPLES]
                for message in _example(messages, start, rounds, form)
            ]
            other = _outlined([*rest[:start], *examples, *rest[start:]])
            learned = None if other is None else learn(other[0])
            if learned is None or learned.stencil is made.stencil:
                return None
            made = made._replace(stencil=learned.stencil)
            lacking = made.stencil.lacking(rounds.stencil)
        if lacking != []:  # a form that is written in another way, or too many that are not known
            return None
        before = memoryview(rounds.content)[rounds.first : rounds.last]
        content = b"".join((made.content[: made.first], before, made.content[made.first :]))
        added = _Added(made, [one + rounds.count for one in starts], outline)
        self._keep(messages, settings, rounds, added, content)
        return content

    def _keep(
        self,
        messages: list[Message],
        settings: Hashable,
        before: _Rounds,
        added: "_Added",
        content: bytes,
    ) -> None:
        """Keep rounds and those that were added to them, behind the last one."""
        begin, end = added.starts[0], added.starts[-2]
        start = begin - before.count
        if begin == end:
            return
        more = before.messages.with_more(before.count, messages, begin, end)
        if more is None:
            return
        first, last = added.made.first, added.made.last + before.last - before.first
        examples = {**added.examples(start), **before.examples}
        rounds = _Rounds(more, end - start, added.made.stencil, examples, content, first, last)
        if before.count:
            former = dict(self._behind.find(messages[begin - 1]) or {})
            if former.get(settings) is before:
                del former[settings]
                self._put_all(messages[begin - 1], former)
        self._put(messages[end - 1], settings, rounds)

    def _put(self, message: Message, settings: Hashable, known: "_Rounds | _Refused") -> None:
        behind = dict(self._behind.find(message) or {})
        behind.pop(settings, None)
        while len(behind) >= _MOST:
            del behind[next(iter(behind))]
        behind[settings] = known
        self._put_all(message, behind)

    def _put_all(self, message: Message, behind: "dict[Hashable, _Rounds | _Refused]") -> None:
        if not behind:
            self._behind.drop(message)
            return
        size = sum(len(one.content) for one in behind.values() if isinstance(one, _Rounds))
        self._behind.keep(message, behind, size)


class _Added(NamedTuple):
    """Rounds that a call adds to the kept ones.

    Attributes:
        made: the rendered conversation.
        starts: places of the first messages of the rounds, and of the messages behind them.
        outline: outline of the rounds.
    """

    made: Learned
    starts: Sequence[int]
    outline: RequestOutline

    def examples(self, start: int) -> dict[bytes, range]:
        """Return the messages of one round of each form, counted from `start`."""
        spans = pairwise(self.starts)
        return {
            form: range(begin - start, end - start)
            for form, (begin, end) in zip(self.outline.forms()[0], spans, strict=True)
        }


def _example(
    messages: Sequence[Message], start: int, rounds: _Rounds, form: bytes
) -> Sequence[Message]:
    place = rounds.examples.get(form)
    return () if place is None else messages[start + place.start : start + place.stop]


def _outlined(messages: Sequence[Message]) -> tuple[RequestOutline, list[int]] | None:
    """Return the outline of messages that are all plain, and the places where rounds begin."""
    written: list[str] = []
    try:
        for message in messages:
            plain = message_rows.json_of(message)
            if plain is None:
                return None
            written.append(plain)
        body = message_rows.request_of(written)
    except (RecursionError, TypeError, ValueError):  # JSON cannot hold a value: the rules name it
        return None
    outline = RequestOutline.read(body, message_rows.plain_rows())
    starts = outline.round_starts() if outline is not None and outline.is_whole else []
    rounds = written[starts[0] : starts[-1]] if starts else ()
    if outline is None or not rounds:
        return None
    has_marks = any(mark in one for mark in message_rows.CACHE_MARKS for one in rounds)
    return None if has_marks else (outline, starts)
