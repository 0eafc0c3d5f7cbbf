"""Performance targets of the project, each a ratio within one pass of the benchmarks.

In: the results of the passes.  Out: for each target its name, its bound and the measured value.
"""

import statistics
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from bodies import DIALECTS, STAGED_TOO
from calls import BYTES, MODEL
from imports import BUILD_FOLD, PYDANTIC
from other_bodies import SOURCES, TARGETS
from peers import SDK_CREATE, SDK_HELPER
from readers import (
    BATCHES,
    DELTAS,
    FOLD,
    FOLD_TEXT,
    ORJSON,
    STREAM_DELTAS,
    STREAM_MESSAGE,
    STREAM_TEXT,
)
from results import Results
from test_asynchronous import ALONE
from test_asynchronous import DELTAS as DELTAS_AWAITED
from test_corpus import FOLDED, FOLDED_JSON, ORJSON_JSON
from test_model_path import TRANSPORTS
from test_sdk_objects import DUMPED, FOLD_OF_OBJECTS, STREAM_OF_OBJECTS
from test_sdk_response import BYTES_ONLY
from transcoding import FIRST_PAIR, HAND_WRITTEN, LINGUAFRANCA, TRANSCODER

NOISE: Final = 0.03
"""Share by which the medians of two runs differ on a quiet machine."""


class Target(NamedTuple):
    """A bound and the measured value.

    Attributes:
        what: name of the target.
        measured: the median of the passes; None if one of them did not measure it.
        client: value of the HTTP client alone, the limit of every reader of its bytes.
        values: the values of the passes, in ascending order.
    """

    what: str
    sense: Literal["at least", "at most"]
    bound: float
    measured: float | None
    client: float | None = None
    values: tuple[float, ...] = ()

    @property
    def reached(self) -> bool:
        """True if the measured value keeps the bound."""
        return self.measured is not None and self._keeps_bound(self.measured)

    def _keeps_bound(self, value: float) -> bool:
        return value >= self.bound if self.sense == "at least" else value <= self.bound

    @property
    def verdict(self) -> str:
        """The verdict; a value within the noise of 3 % is neither reached nor missed.

        A missed bound that the HTTP client alone misses too is given with the client's value.
        """
        if self.measured is not None and abs(self.measured / self.bound - 1) < NOISE:
            return "within 3 %"
        if self.reached:
            return "reached"
        if self.client is not None and not self._keeps_bound(self.client):
            return f"**not reached**; the client alone: {self.client:.3g}"
        return "**not reached**"


# Number of events, reader, and the bounds of Chat and of Anthropic. A bound is the speed as a
# multiple of the hand-written assembler's.
_PUBLIC: Final = (
    (2_000, STREAM_DELTAS, 3.5, 2.5),
    (2_000, STREAM_TEXT, 4.0, 3.0),
    (2_000, STREAM_MESSAGE, 8.0, 6.0),
    (20, STREAM_DELTAS, 1.6, 1.2),
    (20, STREAM_TEXT, 1.8, 1.4),
    (20, STREAM_MESSAGE, 1.8, 1.4),
)


def _public(results: Results, dialect: str) -> Iterator[Target]:
    for events, reader, chat, anthropic in _PUBLIC:
        measured = results.ratio("public", ORJSON, reader, dialect=dialect, events=events)
        what = f"{dialect}: {reader}, {events:,} events, one a read, against orjson"
        yield Target(what, "at least", chat if dialect == "openai-chat" else anthropic, measured)


def _sdk_response(results: Results, dialect: str) -> Iterator[Target]:
    """Yield the time that a reader adds to the bytes of an SDK's response, against orjson's.

    The client takes most of the time of each reader, so that a ratio of the whole times says
    little. The bounds are those of plain chunks, written as shares, because a reader may add
    nothing: deltafold reads uncompressed bytes below the SDK's `iter_bytes`.
    """
    bare = results.one("sdk response", reader=BYTES_ONLY, dialect=dialect, events=2_000)

    def added(reader: str) -> float | None:
        row = results.one("sdk response", reader=reader, dialect=dialect, events=2_000)
        if row is None or bare is None:
            return None
        return statistics.mean(row.added(bare, "events"))

    by_hand = added(ORJSON)
    for events, reader, chat, anthropic in _PUBLIC:
        if events != 2_000:
            continue
        ours = added(reader)
        measured = None if ours is None or by_hand is None or by_hand <= 0 else ours / by_hand
        times = chat if dialect == "openai-chat" else anthropic
        what = f"{dialect}: {reader}, 2,000 events of an SDK's response: share of what orjson adds"
        yield Target(what, "at most", round(1 / times, 3), measured)


def _text(results: Results, dialect: str) -> Iterator[Target]:
    def against_orjson(reader: str, events: int, feed: str) -> float | None:
        same = {"dialect": dialect, "events": events, "feed": feed}
        return results.ratio("text", ORJSON, reader, **same)

    bound = 16 if dialect == "openai-chat" else 12
    for events in (2_000, 20_000):
        what = f"{dialect}: message, {events:,} events, feeds of 16 KiB, against orjson"
        yield Target(what, "at least", bound, against_orjson(FOLD, events, "16 KiB"))
    short = f"{dialect}: 20 events, feeds of 16 KiB, against orjson"
    message, text = (4.5, 8) if dialect == "openai-chat" else (3.5, 7)
    yield Target(f"{short}: message", "at least", message, against_orjson(FOLD, 20, "16 KiB"))
    yield Target(f"{short}: text", "at least", text, against_orjson(FOLD_TEXT, 20, "16 KiB"))
    single = f"{dialect}: 2,000 events, one a feed, against orjson"
    for how, reader, wanted in (
        ("batches", BATCHES, 4.0),
        ("Fold", FOLD, 8.0),
        ("every delta and its text", DELTAS, 3.5),
    ):
        measured = against_orjson(reader, 2_000, "1 event")
        yield Target(f"{single}: {how}", "at least", wanted, measured)


def _stages(results: Results, dialect: str) -> Iterator[Target]:
    for events in (2_000, 20_000):
        measured = results.ratio("stages", "fold", "scan", dialect=dialect, events=events)
        what = f"{dialect}: message, {events:,} events, in Rust, against line ends and UTF-8"
        yield Target(what, "at most", 4, measured)


def _growth(results: Results, **about: object) -> float | None:
    """Return the time of a unit in the large case, divided by that in the small case.

    Both cases ran by turns.
    """
    large = results.one("growth", reader="large", **about)
    ratio = results.ratio("growth", "large", "small", **about)
    if large is None or ratio is None:
        return None
    return ratio * large.number("small") / large.number("large")


def _arguments(results: Results, dialect: str) -> Iterator[Target]:
    same = {"dialect": dialect, "bytes": 100_000, "delta": 12}
    what = f"{dialect}: arguments of 100 KB in 12-byte deltas, against"
    measured = results.ratio("arguments", ORJSON, FOLD, **same)
    yield Target(f"{what} orjson", "at least", 10, measured)
    if dialect == "anthropic-messages":
        measured = results.ratio("arguments", SDK_HELPER, FOLD, **same)
        yield Target(f"{what} the SDK's helper", "at least", 600, measured)
    for delta, small, large in ((12, 100_000, 1_000_000), (1, 1_000, 100_000)):
        measured = _growth(results, what="arguments", dialect=dialect, delta=delta)
        what = f"{dialect}: {delta}-character deltas, a byte at {large:,} against {small:,} bytes"
        yield Target(what, "at most", 1.25, measured)


def _views(results: Results) -> Iterator[Target]:
    for shape, bound in (("escaped ASCII", 10), ("structured", 60)):
        measured = results.ratio("views", "jiter", "value()", shape=shape)
        what = f"value() after every delta at 100 KB, {shape}, against jiter"
        yield Target(what, "at least", bound, measured)
    for shape in ("escaped ASCII", "structured"):
        measured = _growth(results, what="changes()", shape=shape)
        what = f"changes() a delta at 1 MB against 1 KB, {shape}"
        yield Target(what, "at most", 1.25, measured)
        measured = results.ratio("outputs", "stream.partial", "changes()", shape=shape)
        what = f"a stream and its partial after every delta at 100 KB, {shape}, against changes()"
        yield Target(what, "at most", 3, measured)


def _logprobs(results: Results) -> Iterator[Target]:
    """Yield the time of a token, against the SDK; deltafold reads 32,000, the SDK fewer."""
    for how, sdk, tokens, alternatives, bound in (
        ("streamed", SDK_CREATE, 2_000, 0, 200),
        ("streamed", SDK_CREATE, 2_000, 5, 200),
        ("streamed", SDK_HELPER, 500, 5, 200),
        ("whole", SDK_CREATE, 2_000, 0, 60),
        ("whole", SDK_CREATE, 2_000, 5, 60),
    ):
        same = {"how": how, "alternatives": alternatives}
        theirs = results.one("logprobs", reader=sdk, tokens=tokens, **same)
        ours = results.one("logprobs", reader=FOLD, tokens=32_000, **same)
        measured = None
        if ours is not None and theirs is not None:
            measured = theirs.per("tokens") / ours.per("tokens")
        what = f"log probabilities with {alternatives} alternatives, {how}, against {sdk}"
        yield Target(what, "at least", bound, measured)


def _importing(results: Results) -> Iterator[Target]:
    """Yield the start of a program that folds, against the import of pydantic alone."""
    measured = results.ratio("importing", BUILD_FOLD, PYDANTIC)
    what = f"new interpreter: {BUILD_FOLD}, against {PYDANTIC}"
    yield Target(what, "at most", 0.6, measured)


def _processes(results: Results, dialect: str) -> Iterator[Target]:
    row = results.one("held", dialect=dialect, reader="deltafold")
    if row is not None:
        bound = 2 * row.number("text_bytes") / 1024 + 6
        what = f"{dialect}: KiB held by a half-finished stream of 250 deltas"
        yield Target(what, "at most", round(bound, 1), row.number("kib"))
    for writes, written in (("few", "few writes"), ("each", "one write an event")):
        same = {"dialect": dialect, "writes": writes}
        measured = results.ratio("loopback", "deltafold message", "bytes only", **same)
        what = f"{dialect}: loopback HTTP, {written}, client CPU against bytes only"
        yield Target(what, "at most", 1.15, measured)
    yield from _against_sdks(results, dialect)
    measured = results.ratio("fold_many", "two processes", "two threads", dialect=dialect)
    what = f"{dialect}: fold_many on two threads, speed against two processes"
    yield Target(what, "at least", 0.85, measured)


def _against_sdks(results: Results, dialect: str) -> Iterator[Target]:
    """Yield the CPU time of streams over aiohttp, against that of the SDK."""
    helper, create = (100, 80) if dialect == "openai-chat" else (30, 20)
    for writes, written, sdk, bound in (
        ("few", "few writes", SDK_HELPER, helper),
        ("few", "few writes", SDK_CREATE, create),
        ("each", "one write an event", SDK_CREATE, 6),
    ):
        same = {"dialect": dialect, "writes": writes}
        measured = results.ratio("loopback", sdk, "deltafold message, aiohttp", **same)
        client = results.ratio("loopback", sdk, "bytes only, aiohttp", **same)
        what = f"{dialect}: loopback HTTP, {written}, aiohttp, client CPU against {sdk}"
        yield Target(what, "at least", bound, measured, client)
    measured = results.ratio("sdk objects", "SDK", "deltafold.compat", dialect=dialect)
    what = f"{dialect}: the SDK's own objects by deltafold.compat, against the SDK"
    yield Target(what, "at least", 6 if dialect == "openai-chat" else 3, measured)
    for reader in (STREAM_OF_OBJECTS, FOLD_OF_OBJECTS):
        measured = results.ratio("objects as input", reader, DUMPED, dialect=dialect)
        yield Target(f"{dialect}: {reader}, against {DUMPED}", "at most", 1.5, measured)


# Events, feed, and how many times faster than the hand-written transcoding.
_TRANSCODED: Final = ((2_000, "16 KiB", 14.0), (2_000, "1 event", 8.0), (20, "16 KiB", 3.0))


def _transcoding(results: Results) -> Iterator[Target]:
    """Yield Chat to Messages against `Fold` and others, and the slowest pair of each source."""
    whole = {"events": 2_000, "feed": "16 KiB"}
    measured = results.ratio("transcoding", TRANSCODER, FOLD, **whole)
    what = f"{FIRST_PAIR}: 2,000 events, feeds of 16 KiB, against {FOLD}"
    yield Target(what, "at most", 1.6, measured)
    for events, feed, bound in _TRANSCODED:
        measured = results.ratio("transcoding", HAND_WRITTEN, TRANSCODER, events=events, feed=feed)
        what = f"{FIRST_PAIR}: {events:,} events, feeds of {feed}, against the hand-written one"
        yield Target(what, "at least", bound, measured)
    measured = results.ratio("transcoding", LINGUAFRANCA, TRANSCODER, **whole)
    what = f"{FIRST_PAIR}: 2,000 events, feeds of 16 KiB, against linguafranca"
    yield Target(what, "at least", 100, measured)
    for source in SOURCES:
        pairs = [results.ratio("pairs", f"{source} to {target}", FIRST_PAIR) for target in TARGETS]
        measured = max((pair for pair in pairs if pair is not None), default=None)
        what = f"{source} to the slowest of {len(TARGETS)} targets, against {FIRST_PAIR}"
        yield Target(what, "at most", 2.5, measured)
    for target in TARGETS:
        measured = _growth(results, what="transcoding", target=target)
        what = f"arguments from openai-chat to {target}, a byte at 1,000,000 against 100,000 bytes"
        yield Target(what, "at most", 1.25, measured)


def _recorded(results: Results, dialect: str) -> Iterator[Target]:
    read, written = (3.8, 3.0) if dialect == "openai-chat" else (2.6, 2.0)
    for reader, by_hand, bound in ((FOLDED, ORJSON, read), (FOLDED_JSON, ORJSON_JSON, written)):
        measured = results.ratio("corpus", by_hand, reader, dialect=dialect)
        what = f"{dialect}: recorded streams, {reader}, against {by_hand}"
        yield Target(what, "at least", bound, measured)


def _asynchronous(results: Results, dialect: str) -> Iterator[Target]:
    measured = results.ratio("asynchronous", DELTAS_AWAITED, ALONE, dialect=dialect, source="waits")
    what = f"{dialect}: {DELTAS_AWAITED}, over a generator that waits, against {ALONE}"
    yield Target(what, "at most", 1.5, measured)


def _model_path(results: Results) -> Iterator[Target]:
    """Yield what a Model adds to the bytes of its client, for a call and for an event."""
    for transport in TRANSPORTS:
        added: dict[int, float] = {}
        for events in (20, 2_000):
            same = {"transport": transport, "events": events}
            ours = results.one("model path", reader=MODEL, **same)
            bare = results.one("model path", reader=BYTES, **same)
            if ours is not None and bare is not None:
                added[events] = statistics.mean(ours.added(bare, "calls"))
        event = call = None
        if len(added) == 2:
            event = (added[2_000] - added[20]) / (2_000 - 20)
            call = added[20] - 20 * event
        yield Target(f"Model.stream over {transport}: µs added an event", "at most", 1, event)
        yield Target(f"Model.stream over {transport}: µs added a call", "at most", 60, call)


def targets(passes: Sequence[Results]) -> list[Target]:
    """Return all targets, each with the median of the passes.

    A slow phase of the machine may last for one reader's whole measurement. Most passes do not
    meet it at the same reader.
    """
    return [_median(same) for same in zip(*map(_targets, passes), strict=True)]


def _median(same: Sequence[Target]) -> Target:
    values = sorted(target.measured for target in same if target.measured is not None)
    clients = [target.client for target in same if target.client is not None]
    return same[0]._replace(
        measured=statistics.median(values) if len(values) == len(same) else None,
        client=statistics.median(clients) if clients else None,
        values=tuple(values),
    )


def _targets(results: Results) -> list[Target]:
    found: list[Target] = []
    for dialect in DIALECTS:
        found.extend(_public(results, dialect))
        found.extend(_sdk_response(results, dialect))
        found.extend(_recorded(results, dialect))
        found.extend(_asynchronous(results, dialect))
    found.extend(_model_path(results))
    for dialect in DIALECTS:
        found.extend(_text(results, dialect))
        found.extend(_stages(results, dialect))
        found.extend(_arguments(results, dialect))
    for dialect in STAGED_TOO:
        found.extend(_stages(results, dialect))
    found.extend(_views(results))
    found.extend(_logprobs(results))
    found.extend(_transcoding(results))
    found.extend(_importing(results))
    for dialect in DIALECTS:
        found.extend(_processes(results, dialect))
    return found
