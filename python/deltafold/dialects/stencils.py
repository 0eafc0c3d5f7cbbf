"""Stencils of requests: translations that differ in their texts alone are copied from one of them.

In: the bytes of a request, and the rules that translate it.  Out: what the rules return for it.

Laws: the rules decide about every form of request: they translate a short sample of it once, with
marks for texts, ids, names and arguments, and further requests of that form are written by the
stencil of that translation (`rust/core/src/stencil`). A stencil keeps settings and tools, and no
plain message. If the sample does not represent the request, the rules translate the request itself
and raise its errors.
"""

import re
import secrets
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar, cast, overload

from deltafold._core import RequestOutline, RequestRows, RequestStencil
from deltafold.dialects.recent import Recent
from deltafold.dialects.rendered import NoteCode, Object
from deltafold.message.messages import (
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

T = TypeVar("T")

Accepts: TypeAlias = Callable[[Sequence[str], Sequence[str]], bool]

_SMALLEST: Final = 2_000
"""Bytes of a request below which its sample would not be shorter."""

_MOST: Final = 256
_MOST_BYTES: Final = 16 << 20
"""Stencils that are kept at once."""

_MOST_SAMPLES: Final = 16
"""Samples of one request; each has the rounds of some further forms."""

_PLACE: Final = re.compile(r"(?<=\[)\d+(?=\])")
"""The number of a message in its place, with which notes of parsers begin."""


def item_of(note: Object, history: str) -> int | None:
    """Return the index of the message that a note names at its beginning, None without one.

    Args:
        note: a note of a parser.
        history: the member of the request that holds the conversation.
    """
    text = str(note.get("message", ""))
    found = _PLACE.search(text) if text.startswith(f"{history}[") else None
    return None if found is None else int(found.group())


def with_item(note: Object, item: int) -> Object:
    """Return a note about a message as a note about the message of another index."""
    return {**note, "message": _PLACE.sub(str(item), str(note["message"]), count=1)}


def outline_of(body: bytes, rows: RequestRows) -> RequestOutline | None:
    """Return the outline of a request, None if it is too short or has no rounds for a stencil."""
    return RequestOutline.read(body, rows) if len(body) >= _SMALLEST else None


def new_mark() -> str:
    """Return the beginning of the marks of a sample, which nothing else has."""
    return f"df{secrets.token_hex(8)}x"


class OutlinedMessages(Sequence[Message]):
    """The messages of a request, which are read when somebody looks at one.

    >>> messages = OutlinedMessages(outline, read, ("openai-chat",))
    >>> messages[-1].text
    'Go on.'

    Attributes:
        outline: the outline of the request.
        read: reads the messages of the body of a request, also of a sample.
        key: whatever `read` depends on.
    """

    def __init__(
        self,
        outline: RequestOutline,
        read: Callable[[bytes], Sequence[Message]],
        key: Hashable,
    ) -> None:
        self.outline = outline
        self.read = read
        self.key = key

    @cached_property
    def _all(self) -> tuple[Message, ...]:
        return tuple(self.read(self.outline.body))

    def not_plain(self) -> Sequence[Message]:
        """Return messages among which are all that have more than texts, calls and results."""
        if self.outline.is_whole:
            return ()
        sample = self.outline.sample(None, new_mark())
        return self._all if sample is None else self.read(sample[0])

    def changed(
        self, change: Callable[[Sequence[Message]], Sequence[Message]], key: Hashable
    ) -> "OutlinedMessages":
        """Return the messages after a change of each one; `key` is what the change depends on."""
        read = self.read
        return OutlinedMessages(self.outline, lambda body: change(read(body)), (self.key, key))

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        return self._all[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all == tuple(cast("Sequence[object]", other))

    __hash__ = None  # type: ignore[assignment]  # as other sequences of messages

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._all!r})"


class Translated(NamedTuple, Generic[T]):
    """A translated request.

    Attributes:
        content: the body.
        notes: the differences between both bodies, in order.
        facts: all else that follows from the settings and the tools of the request.
    """

    content: bytes
    notes: Sequence[Object]
    facts: T


@dataclass(frozen=True, slots=True)
class Ruled(Generic[T]):
    """What the rules have made of a request.

    Attributes:
        translated: the translation.
        messages: the messages that were read.
        renamed: the ids and names that were replaced.
        history: the member of the request that holds the conversation, as places in notes have it.
        depends_on_turns: as in `Rendered`.
        own_names: names of tools whose calls the rules write in another form than all others.
    """

    translated: Translated[T]
    messages: Sequence[Message]
    renamed: Iterable[str]
    history: str
    depends_on_turns: bool
    own_names: frozenset[str]


class _Unlike(Exception):  # noqa: N818 - nothing has failed
    """A sample cannot stand for the request."""


class _Position(NamedTuple):
    """Position of a note.

    Attributes:
        stretch: number of the stretches of rounds before it.
        message: index of the message, None for a note without one. The messages of rounds before it
            are not counted.
        item: number of the message in the place at the beginning of the text, in the same way.
    """

    stretch: int
    message: int | None
    item: int | None


_NOWHERE: Final = _Position(0, None, None)


class _Gap(NamedTuple):
    """Place of the notes about the rounds of a stretch.

    Attributes:
        stretch: number of the stretch.
        is_first: whether the notes are those of `turns_of`, which looks at all messages before one
            is rendered.
    """

    stretch: int
    is_first: bool


_PlacedNote: TypeAlias = tuple[Object, _Position]

_Size: TypeAlias = tuple[int, int]
"""Number of items of the request, and of messages that they are read as."""


@dataclass(frozen=True, slots=True)
class KeptStencil(Generic[T]):
    """A stencil, with what else the rules have returned.

    Attributes:
        stencil: the stencil; None where no stencil follows from a sample.
        facts: the facts of the sample.
        own_names: names that a mark does not stand for.
        notes: the notes in order, with gaps for those about rounds.
        sizes: the size of a round, by its form.
        of_rounds: the notes about each round of a form, by their gap.
    """

    stencil: RequestStencil | None
    facts: T | None = None
    own_names: frozenset[str] = frozenset()
    notes: "tuple[_PlacedNote | _Gap, ...]" = ()
    sizes: Mapping[bytes, _Size] = field(default_factory=dict[bytes, _Size])
    of_rounds: "Mapping[tuple[_Gap, bytes], tuple[_PlacedNote, ...]]" = field(
        default_factory=dict[tuple[_Gap, bytes], tuple[_PlacedNote, ...]]
    )

    @property
    def notes_are_placed(self) -> bool:
        """Whether a note is about a message."""
        return any(isinstance(one, _Gap) or one[1] != _NOWHERE for one in self.notes)


class Stencils(Generic[T]):
    """The stencils of recent requests, for any number of threads.

    >>> Stencils().translated(body, rows, ("gpt-5.6-terra",), rules, accepts).content

    Attributes:
        written: number of messages that stencils have written so far.
    """

    def __init__(self) -> None:
        self._recent: Recent[KeptStencil[T]] = Recent(_MOST, _MOST_BYTES)
        self.written = 0

    def translated(
        self,
        body: bytes,
        rows: RequestRows,
        settings: Hashable,
        rules: Callable[[bytes], Ruled[T]],
        accepts: Accepts,
    ) -> Translated[T]:
        """Return the translation of a request.

        Args:
            body: the request.
            rows: the plain messages of its protocol.
            settings: whatever the rules depend on beside the request.
            rules: translate a request.
            accepts: whether the rules keep these ids of calls and names of tools as they are.

        Raises:
            Exception: what the rules raise.
        """
        outline = outline_of(body, rows)
        made = None if outline is None else self.filled(outline, settings, rules, accepts)
        return rules(body).translated if made is None else made

    def filled(
        self,
        outline: RequestOutline,
        settings: Hashable,
        rules: Callable[[bytes], Ruled[T]],
        accepts: Accepts,
    ) -> Translated[T] | None:
        """Return the translation of a request by its outline, None if no stencil stands for it.

        Arguments are those of `translated`.
        """
        kept = self.found(outline, settings, rules, accepts)
        filled = None if kept is None else self.fill(outline, kept)
        if kept is None or filled is None:
            return None
        return Translated(filled[0], _notes(kept, outline), cast("T", kept.facts))

    def found(
        self,
        outline: RequestOutline,
        settings: Hashable,
        rules: Callable[[bytes], Ruled[T]],
        accepts: Accepts,
    ) -> "KeptStencil[T] | None":
        """Return the stencil of a request by its outline, None if none stands for it.

        Arguments are those of `translated`.
        """
        ids, names = outline.identifiers()
        if not accepts(ids, names):
            return None
        key = (settings, outline.key)
        kept = self._recent.find(key)
        for _ in range(_MOST_SAMPLES):
            if kept is not None and (kept.stencil is None or outline.is_covered(kept.stencil)):
                break
            kept = _learned(outline, kept, rules)
            if outline.is_whole or kept.stencil is None:
                size = len(outline.key) + (0 if kept.stencil is None else len(kept.stencil))
                self._recent.keep(key, kept, size)
        is_known = (
            kept is not None and kept.stencil is not None and kept.own_names.isdisjoint(names)
        )
        return kept if is_known else None

    def fill(
        self, outline: RequestOutline, kept: "KeptStencil[T]"
    ) -> tuple[bytes, int, int] | None:
        """Return what a stencil makes of a request, as `RequestOutline.filled` does."""
        filled = None if kept.stencil is None else outline.filled(kept.stencil)
        self.written += 0 if filled is None else outline.written
        return filled

    def __len__(self) -> int:
        return len(self._recent)

    @property
    def size(self) -> int:
        """Bytes that are kept, about."""
        return self._recent.size


def _learned(
    outline: RequestOutline, known: KeptStencil[T] | None, rules: Callable[[bytes], Ruled[T]]
) -> KeptStencil[T]:
    """Return the stencil that follows from a sample, without one if none does."""
    mark = new_mark()
    stencil = None if known is None else known.stencil
    sample = outline.sample(stencil, mark)
    if sample is None:
        return KeptStencil(None)
    body, items, units = sample
    try:
        ruled = rules(body)
        made = outline.learn(stencil, ruled.translated.content, mark)
        if made is None or ruled.depends_on_turns or any(mark in name for name in ruled.renamed):
            return KeptStencil(None)
        found = _Sampled(ruled, items, units, mark)
        if not outline.is_whole:
            found.refuse_ids_of(outline)
        return found.kept(made, known)
    except Exception:  # noqa: BLE001 - the rules raise it again for the request itself
        return KeptStencil(None)


class _Sampled(Generic[T]):
    """What the rules have made of a sample."""

    def __init__(
        self,
        ruled: Ruled[T],
        items: Sequence[tuple[int, int | None]],
        units: Sequence[tuple[int, bytes | None, int]],
        mark: str,
    ) -> None:
        self._ruled = ruled
        self._mark = mark
        self._units = units
        self._of_items = [unit for _, unit in items]
        self._of_messages = [self._unit_of(message) for message in ruled.messages]

    def _unit_of(self, message: Message) -> int | None:
        number = next((self._number(text) for text in _texts(message) if self._mark in text), None)
        if number is None:
            return None
        return next(unit for unit, (end, _, _) in enumerate(self._units) if number < end)

    def _number(self, text: str) -> int:
        return int(text.split(self._mark, 1)[1].partition("z")[0])

    def refuse_ids_of(self, outline: RequestOutline) -> None:
        """Refuse messages as they are that have an id of the rounds.

        Raises:
            _Unlike: one of them answers a call of a round, or has the id of one.
        """
        ids = frozenset(outline.identifiers()[0])
        for message in self._ruled.messages:
            for part in message.parts:
                if isinstance(part, ToolCallPart | ToolResultPart) and part.tool_call_id in ids:
                    raise _Unlike

    def kept(self, stencil: RequestStencil, known: KeptStencil[T] | None) -> KeptStencil[T]:
        """Return what is kept of the sample, with what was known before.

        Raises:
            _Unlike: the notes of the sample do not tell those of the request.
        """
        sizes: dict[bytes, _Size] = {}
        items, messages = Counter(self._of_items), Counter(self._of_messages)
        for unit, (_, form, _) in enumerate(self._units):
            if form is not None:
                sizes[form] = (items[unit], messages[unit])
        notes: list[_PlacedNote | _Gap] = []
        of_rounds: dict[tuple[_Gap, bytes], tuple[_PlacedNote, ...]] = {}
        before: tuple[_Gap, bytes] | None = None
        for note in self._ruled.translated.notes:
            form, position = self._placed(note)
            if form is None:
                notes.append((note, position))
                before = None
                continue
            gap = _Gap(position.stretch, note["code"] == NoteCode.MEMBER_DROPPED)
            if gap not in notes:
                notes.append(gap)
            own = of_rounds.get((gap, form), ())
            if notes[-1] != gap or (own and before != (gap, form)):
                raise _Unlike
            of_rounds[gap, form] = (*own, (note, position))
            before = (gap, form)
        facts, own_names = self._ruled.translated.facts, self._ruled.own_names
        if known is None or known.stencil is None:
            return KeptStencil(stencil, facts, own_names, tuple(notes), sizes, of_rounds)
        if _without_gaps(notes) != _without_gaps(known.notes):
            raise _Unlike
        if not {*_gaps(known.notes)} <= {*_gaps(notes)}:
            raise _Unlike
        return KeptStencil(
            stencil,
            facts,
            own_names,
            tuple(notes),
            {**known.sizes, **sizes},
            {**known.of_rounds, **of_rounds},
        )

    def _placed(self, note: Object) -> tuple[bytes | None, _Position]:
        """Return the form of the round that a note is about, None for no round, and its position.

        Raises:
            _Unlike: the note has a mark, or two places.
        """
        message, item = note.get("messageIndex"), item_of(note, self._ruled.history)
        has_mark = self._mark in str(note.get("message", ""))
        if has_mark or (item is not None and message is not None):
            raise _Unlike
        if isinstance(message, int):
            form, stretch, at = self._place_of(message, self._of_messages)
            return form, _Position(stretch, at, None)
        if item is not None:
            form, stretch, at = self._place_of(item, self._of_items)
            return form, _Position(stretch, None, at)
        return None, _NOWHERE

    def _place_of(self, place: int, units: Sequence[int | None]) -> tuple[bytes | None, int, int]:
        """Return the form, the number of stretches before, and the place without their rounds."""
        own = units[place]
        _, form, stretch = (0, None, 0) if own is None else self._units[own]
        before = [
            one
            for one in units[:place]
            if one is not None and self._units[one][1] is not None and (form is None or one != own)
        ]
        if form is None:
            stretch = 1 + max((self._units[one][2] for one in before), default=-1)
        return form, stretch, place - len(before)


def _without_gaps(notes: Iterable[_PlacedNote | _Gap]) -> list[_PlacedNote | _Gap]:
    return [one for one in notes if not isinstance(one, _Gap)]


def _gaps(notes: Iterable[_PlacedNote | _Gap]) -> list[_Gap]:
    return [one for one in notes if isinstance(one, _Gap)]


def _texts(message: Message) -> Iterable[str]:
    for part in message.parts:
        if isinstance(part, TextPart | ThinkingPart):
            yield part.text
            yield str(part.provider_state)
        elif isinstance(part, ToolCallPart | ToolResultPart):
            yield part.tool_call_id


def _notes(kept: KeptStencil[T], outline: RequestOutline) -> tuple[Object, ...]:
    """Return the notes about a request that a stencil writes."""
    if not kept.notes_are_placed:
        return tuple(dict(one[0]) for one in kept.notes if not isinstance(one, _Gap))
    stretches = outline.forms()
    made: list[Object] = []
    for one in kept.notes:
        stretch = one.stretch if isinstance(one, _Gap) else one[1].stretch
        before = [form for forms in stretches[:stretch] for form in forms]
        items = sum(kept.sizes[form][0] for form in before)
        messages = sum(kept.sizes[form][1] for form in before)
        if not isinstance(one, _Gap):
            made.append(_moved(*one, items, messages))
            continue
        for form in stretches[stretch]:
            of_round = kept.of_rounds.get((one, form), ())
            made += [_moved(note, position, items, messages) for note, position in of_round]
            size = kept.sizes[form]
            items, messages = items + size[0], messages + size[1]
    return tuple(made)


def _moved(note: Object, position: _Position, items: int, messages: int) -> Object:
    """Return a note with the rounds before it counted."""
    if position.message is not None:
        return {**note, "messageIndex": position.message + messages}
    return dict(note) if position.item is None else with_item(note, position.item + items)
