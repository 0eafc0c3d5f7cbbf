"""Guarded text: a hook sees and replaces text before the client does.

In: deltas, and `OnDelta`.  Out: deltas whose texts are those of the hook.

Laws: a part's text keeps its order, and at most `hold_back` characters of it wait. They leave
before the end of their part, and so before the next part and before the terminal. What repeats text
(log probabilities, provider state) waits for it, and is dropped where the hook changed it. Every
other string of a delta goes through the hook too: those of one delta together, one to a line, and
each alone where the hook changes that.
"""

import re
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, cast

from deltafold._core import MessageAssembler, MessageDelta
from deltafold.contract.kinds import DeltaKind
from deltafold.errors.model_error import ModelError
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.hooks import OnDelta, guarded
from deltafold.message.messages import Message
from deltafold.streams.encoded import error_payload, message_deltas

_MEMBERS: Final = {
    DeltaKind.TEXT: "textDelta",
    DeltaKind.THINKING: "textDelta",
    DeltaKind.TOOL_CALL_ARGS: "argsTextDelta",
}
_OF_EVERY_PIECE: Final = ("partIndex", "toolCallId", "refusal", "redacted")
_STATE: Final = "providerState"
_WORDS_OF_THE_CONTRACT: Final = frozenset(
    {"inputFormat", "finishReason", "errorCode", "toolCallId", "partIndex"}
)
_NAMES_OF_KINDS: Final = frozenset({"type", "kind", "status", "role", "object"})
"""Members whose values a provider takes from a list, which a hook that changes them would break."""
_WORD: Final = re.compile(r"[a-z_.:-]{1,64}")
_MEDIA_TYPES: Final = ("mimeType", "mime_type", "mediaType", "media_type")
_BYTES: Final = re.compile(r"data:[^,]{0,256};base64,[A-Za-z0-9+/_=%\r\n-]*")


class Guard:
    """The texts of one stream that the client does not have yet."""

    def __init__(self, asked: ClientRequest, on_delta: OnDelta, hold_back: int) -> None:
        self._asked = asked
        self._on_delta = on_delta
        self._hold_back = hold_back
        self._held: dict[_Place, _Waiting] = {}
        self._changed: set[_Place] = set()
        self._ids: dict[str | None, str | None] = {}
        self._order = _Order()
        self._seq = 0
        self._run_id = ""

    async def deltas(self, deltas: Iterable[MessageDelta]) -> AsyncIterator[MessageDelta]:
        """Yield the deltas that may leave, numbered anew.

        Raises:
            ModelError: the hook ended the answer, or failed.
        """
        for delta in deltas:
            self._run_id = delta.run_id
            if delta.kind is DeltaKind.AUDIO:
                continue  # no hook hears it: the part behind its transcript has all of it
            if delta.tool_call_id is not None and delta.part_index is not None:
                self._order.calls[delta.tool_call_id] = delta.part_index
            async for left in self._left(delta):
                for one, payload in self._order.next(*left):
                    yield self._made(one, payload)

    async def _left(self, delta: MessageDelta) -> AsyncIterator["_Left"]:
        """Yield the payloads that may leave when a delta has come."""
        member = _MEMBERS.get(delta.kind)
        if member is None:
            for place in self._ending(delta):
                waiting = self._held.pop(place)
                async for left in self._leaving(place, waiting, hold_back=0):
                    yield left
            yield delta, await self._other(delta)
            return
        place = _Place(delta.kind, member, delta.part_index, delta.tool_call_id)
        waiting = self._held.pop(place) if place in self._held else _Waiting(delta)
        waiting.take(delta, member)
        async for left in self._leaving(place, waiting, hold_back=self._hold_back):
            yield left
        if waiting.text or waiting.riders:
            self._held[place] = waiting

    async def whole(
        self, message: Message, error: ModelError | None
    ) -> tuple[MessageAssembler, ModelError | None]:
        """Return an answer that is not streamed, and its error, as the hook leaves them.

        Raises:
            ModelError: the hook ended the answer, or failed.
        """
        assembler = MessageAssembler()
        for delta in [one async for one in self.deltas(message_deltas(message, error))]:
            payload = delta.payload
            if self._changed and "logprobs" in payload:
                # Those of a whole message ride on its first text.
                kept = {name: value for name, value in payload.items() if name != "logprobs"}
                assembler.consume(MessageDelta(delta.run_id, delta.seq, delta.kind, kept))
            else:
                assembler.consume(delta)
        return assembler, assembler.get_error()

    def end(self, error: ModelError) -> list[MessageDelta]:
        """Return the last deltas of an answer that the hook ended.  Held text is dropped."""
        ending: list[tuple[DeltaKind, dict[str, object]]] = [
            (DeltaKind.ERROR, error_payload(error))
        ]
        if not self._seq:  # the hook ended it before its first delta
            ending.insert(0, (DeltaKind.START, {"modelId": "", "requestId": ""}))
        first = self._seq + 1
        return [
            MessageDelta(self._run_id, seq, kind, payload)
            for seq, (kind, payload) in enumerate(ending, first)
        ]

    async def _leaving(
        self, place: "_Place", waiting: "_Waiting", *, hold_back: int
    ) -> AsyncIterator["_Left"]:
        """Yield the text that may leave, and what rides on text that has left."""
        last, text = waiting.last, waiting.text
        if text:
            seen = await self._hooked(last.kind, text)
            if seen != text:
                self._changed.add(place)
            text = seen
        leaves = max(0, len(text) - hold_back)
        waiting.text = text[leaves:]
        kept = {name: last.payload.get(name) for name in _OF_EVERY_PIECE}
        pieces = {name: value for name, value in kept.items() if value is not None}
        riding: list[dict[str, object]] = []
        while waiting.riders and waiting.riders[0].end <= waiting.received - len(waiting.text):
            riding.append(await self._kept(place, waiting.riders.pop(0).members))
        first = {
            **pieces,
            **(riding.pop(0) if len(riding) == 1 else {}),
            place.member: text[:leaves],
        }
        if leaves or first.keys() - {place.member, *pieces}:
            yield last, first
        for members in riding:
            if members:
                yield last, {**pieces, **members, place.member: ""}

    async def _kept(self, place: "_Place", members: Mapping[str, object]) -> dict[str, object]:
        """Return what may ride on a text that has left."""
        kept: dict[str, object] = {}
        for name, value in members.items():
            if name == "logprobs":
                if not self._changed and not await self._differs(place.kind, value):
                    kept[name] = value
            elif name == _STATE:
                if place not in self._changed and not await self._differs(place.kind, value):
                    kept[name] = value
            else:
                kept[name] = await self._replaced(place.kind, value)
        return kept

    async def _other(self, delta: MessageDelta) -> Mapping[str, object]:
        """Return the payload of a delta without a growing text, as the hook leaves it."""
        call_id = delta.tool_call_id
        if call_id is not None and call_id not in self._ids:
            is_seen = await self._hooked(delta.kind, call_id) == call_id
            self._ids[call_id] = call_id if is_seen else f"call_{secrets.token_hex(8)}"
        payload = delta.payload
        if _STATE in payload and any(one.tool_call_id == call_id for one in self._changed):
            payload = {name: value for name, value in payload.items() if name != _STATE}
        given = {n: v for n, v in payload.items() if n not in _WORDS_OF_THE_CONTRACT}
        seen = await self._replaced(delta.kind, given)
        return payload if seen is given else {**payload, **cast("dict[str, object]", seen)}

    async def _hooked(self, kind: DeltaKind, text: str) -> str:
        seen: str = await guarded("on_delta", str, self._on_delta, self._asked, kind, text)
        return seen

    async def _differs(self, kind: DeltaKind, value: object) -> bool:
        joined = "\n".join(_texts(value))
        return bool(joined) and await self._hooked(kind, joined) != joined

    async def _replaced(self, kind: DeltaKind, value: object) -> object:
        """Return a value of JSON with the strings of the hook; the same object if none changed."""
        if not await self._differs(kind, value):
            return value
        texts = dict.fromkeys(_texts(value))
        return _mapped(value, {text: await self._hooked(kind, text) for text in texts})

    def _made(self, delta: MessageDelta, payload: Mapping[str, object]) -> MessageDelta:
        self._seq += 1
        call_id = delta.tool_call_id
        made_id = self._ids.get(call_id, call_id)
        if made_id != call_id:
            payload = {**payload, "toolCallId": made_id}
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


_Left: TypeAlias = tuple[MessageDelta, Mapping[str, object]]
"""A delta, and its payload as the hook has left it."""


class _Order:
    """The beginnings of the parts in the order of their numbers, as the contract asks.

    A part whose first text waits begins later than the one behind it, and a part of which nothing
    is left does not begin.

    Attributes:
        calls: the numbers of the parts by the ids of their calls.
    """

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self._next = 0
        self._numbers: dict[int, int] = {}
        self._waiting: dict[int, list[_Left]] = {}
        self._gone: set[int] = set()

    def next(self, delta: MessageDelta, payload: Mapping[str, object]) -> Iterator[_Left]:
        """Yield what may leave now, with the number of its part."""
        if delta.kind in {DeltaKind.DONE, DeltaKind.ERROR}:
            for waiting in sorted(self._waiting):
                yield from self._begun(waiting)
            yield delta, payload
            return
        index = delta.part_index
        if index is None and delta.tool_call_id is not None:
            index = self.calls.get(delta.tool_call_id)
        if index is None:
            yield delta, payload
        elif index in self._numbers:
            yield delta, self._numbered(index, payload)
        else:
            if delta.kind is DeltaKind.PART_END and index not in self._waiting:
                self._gone.add(index)
            else:
                self._waiting.setdefault(index, []).append((delta, payload))
            while self._next in self._waiting or self._next in self._gone:
                yield from self._begun(self._next)
                self._next += 1

    def _begun(self, index: int) -> Iterator[_Left]:
        waiting = self._waiting.pop(index, [])
        if waiting:
            self._numbers[index] = len(self._numbers)
        for delta, payload in waiting:
            yield delta, self._numbered(index, payload)

    def _numbered(self, index: int, payload: Mapping[str, object]) -> Mapping[str, object]:
        number = self._numbers[index]
        if number == index or "partIndex" not in payload:
            return payload
        return {**payload, "partIndex": number}


class _Place(NamedTuple):
    """A part whose text grows."""

    kind: DeltaKind
    member: str
    part_index: int | None
    tool_call_id: str | None


class _Rider(NamedTuple):
    """Members of a delta beside its text, and how much text of the part was there with them."""

    end: int
    members: Mapping[str, object]


@dataclass(slots=True)
class _Waiting:
    """What a part has, and its client has not."""

    last: MessageDelta
    text: str = ""
    received: int = 0
    riders: list[_Rider] = field(default_factory=list[_Rider])

    def take(self, delta: MessageDelta, member: str) -> None:
        """Take a delta of the part."""
        self.last = delta
        text = delta.text or delta.args_text or ""
        self.text += text
        self.received += len(text)
        own = {member, *_OF_EVERY_PIECE}
        members = {name: value for name, value in delta.payload.items() if name not in own}
        if members:
            self.riders.append(_Rider(self.received, members))


def _texts(value: object, name: str = "") -> Iterator[str]:
    """Yield the strings of a value of JSON, names of members too, but for the bytes of files."""
    if isinstance(value, str):
        is_word = name in _NAMES_OF_KINDS and _WORD.fullmatch(value)
        if value and not is_word and not _BYTES.fullmatch(value):
            yield value
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        for key, member in members.items():
            yield key
            if not (key == "data" and isinstance(member, str) and _is_of_bytes(members)):
                yield from _texts(member, key)
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            yield from _texts(item, name)


def _is_of_bytes(members: Mapping[str, object]) -> bool:
    """Return whether the member `data` of an object is a file in Base64, by its media type."""
    named = (members.get(name) for name in _MEDIA_TYPES)
    return any(isinstance(one, str) and not one.startswith("text/") for one in named)


def _mapped(value: object, texts: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value).items()
        return {texts.get(key, key): _mapped(member, texts) for key, member in members}
    if isinstance(value, list | tuple):
        return [_mapped(item, texts) for item in cast("list[object]", value)]
    return value
