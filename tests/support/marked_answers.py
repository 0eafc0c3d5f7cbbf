"""A mark in the members of answers, behind a hook that hides it.

In: a seed, the number of the first answer, and a count.  Out: how many answers were written in each
protocol, and the answers that show the mark.

Laws: the client of no protocol reads the mark, in text or in the base64 of it, streamed or whole,
whatever member of whatever event had it.
Source of the answers: the fixtures and the recordings of the corpus that are server-sent events.
"""

import asyncio
import base64
import functools
import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

import deltafold
from any_name import AnyName
from deltafold import DeltaKind, Encoder, MessageDelta
from deltafold.gateway import ClientRequest, read_request
from deltafold.gateway.guarded_text import Guard
from deltafold.streams.encoded import encode_message
from json_places import Path, at, members, places
from seeded import LoopResult, drawn
from text_bodies import text_fixtures, text_recordings

MARK: Final = "sk-SECRET4711"
TARGETS: Final = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
ENCODED: Final = [base64.b64encode(b" " * shift + MARK.encode())[4:-4] for shift in range(3)]
FILES: Final = frozenset({"data", "inlineData", "inline_data"})


async def hide(_: ClientRequest, __: DeltaKind, text: str) -> str:
    return text.replace(MARK, "***")


@functools.cache
def asked(target: AnyName) -> ClientRequest:
    return read_request(
        target,
        b'{"model":"m","messages":[],"input":"?","contents":[]}',
        model_id="m",
    )


def written(deltas: list[MessageDelta], target: AnyName, hook: Any, *, whole: bool) -> bytes:  # noqa: ANN401 - a hook
    """Return the answer of deltas behind a hook."""
    request = asked(target)
    guard = Guard(request, hook, 20)

    async def stream() -> bytes:
        encoder = Encoder(target, **request.options)
        left = [encoder.feed(delta) async for delta in guard.deltas(deltas)]
        return b"".join([*left, encoder.close()])

    async def body() -> bytes:
        assembler = deltafold.MessageAssembler()
        for delta in deltas:
            assembler.consume(delta)
        guarded, error = await Guard(request, hook, 0).whole(
            assembler.snapshot(), assembler.get_error()
        )
        if error is not None:
            return error.message.encode()
        return encode_message(guarded, target, **request.options).body

    return asyncio.run(body() if whole else stream())


def _shows(answer: bytes) -> bool:
    return MARK.encode() in answer or any(piece in answer for piece in ENCODED)


def _strings(value: object) -> Iterator[Path]:
    """Yield the places of the strings of a value, but for the bytes of files."""
    for path in places(value, most_items=2):
        found = at(value, path)
        if isinstance(found, str) and not found.startswith("data:"):
            yield path


def _marked(value: Any, path: tuple[object, ...]) -> Any:  # noqa: ANN401 - of JSON
    """Return a value of JSON with the mark behind the string at a place."""
    if not path:
        return f"{value}{MARK}"
    key, *rest = path
    changed = value.copy()
    changed[key] = _marked(value[key], tuple(rest))
    return changed


def _events_of(body: bytes) -> list[bytes]:
    """Return the events of a body of server-sent events, or the lines of one of JSON lines."""
    end = b"\n" if body.lstrip()[:1] == b"{" else b"\n\n"
    return [event + end for event in body.replace(b"\r\n", b"\n").split(end) if event]


def _data_of(event: bytes) -> tuple[bytes, Any] | None:
    """Return what is before the JSON of an event, and its value; None where it has none."""
    head, found, data = event.rpartition(b"data: ")
    if not found:
        head, data = b"", event
    try:
        return head + found, json.loads(data)
    except ValueError:
        return None


class Place(NamedTuple):
    """A member of an event of a body that gets the mark."""

    dialect: AnyName
    name: str
    body: bytes
    event: int
    kind: str
    path: Path

    def marked_body(self) -> bytes:
        """Return the body with the mark."""
        events = _events_of(self.body)
        event = events[self.event]
        head, value = _data_of(event) or (b"", None)
        data = json.dumps(_marked(value, self.path)).encode()
        events[self.event] = head + data + event[len(event.rstrip(b"\n")) :]
        return b"".join(events)

    def __str__(self) -> str:
        return f"{self.dialect}/{self.name} {'/'.join(map(str, (self.kind, *self.path)))}"


def _places_of(dialect: str, name: str, body: bytes) -> Iterator[Place]:
    """Yield each member of each kind of event of a body, once."""
    seen: set[object] = set()
    for index, event in enumerate(_events_of(body)):
        found = _data_of(event)
        if found is None:
            continue
        kind = str(dict(members(found[1])).get("type"))
        if "audio" in kind:  # bytes of a file
            continue
        for path in _strings(found[1]):
            known = (kind, *(0 if isinstance(step, int) else step for step in path))
            if known in seen or not FILES.isdisjoint(path):
                continue
            seen.add(known)
            yield Place(dialect, name, body, index, kind, path)


@functools.cache
def places_for_marks(*, with_corpus: bool) -> list[Place]:
    """Return every place of a mark in the fixtures, and in the recordings of the corpus."""
    bodies = chain(text_fixtures(), text_recordings() if with_corpus else ())
    return [place for one in bodies for place in _places_of(*one)]


def marked_answers(seed: int, first: int, count: int, *, with_corpus: bool = True) -> LoopResult:
    """Write answers with a mark for each protocol of clients, behind the hook that hides it."""
    known = places_for_marks(with_corpus=with_corpus)
    chosen = drawn(len(known), seed, first, count)
    found = LoopResult(len(chosen))
    for number, position in enumerate(chosen, first):
        place = known[position]
        decoder = deltafold.Decoder(place.dialect)
        deltas = [*decoder.feed(place.marked_body()), *decoder.close()]
        for target in TARGETS:
            for whole in (False, True):
                found.counts[target] += 1
                if _shows(written(deltas, target, hide, whole=whole)):
                    wrong = f"{place} -> {target}, whole {whole}"
                    found.wrong.append(f"answer {number} of seed {seed}: {wrong}")
    return found
