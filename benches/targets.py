"""What the project wants to reach, each against the same run.

In: the results.  Out: a line for each target: what it is, the bound, what was measured.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from bodies import DIALECTS
from peers import SDK_CREATE, SDK_HELPER
from readers import BATCHES, DELTAS, FOLD, FOLD_TEXT, ORJSON
from results import Results


class Target(NamedTuple):
    """A bound, and what was measured; None where it was not."""

    what: str
    sense: Literal["at least", "at most"]
    bound: float
    measured: float | None

    @property
    def reached(self) -> bool:
        """Whether the bound is kept."""
        if self.measured is None:
            return False
        if self.sense == "at least":
            return self.measured >= self.bound
        return self.measured <= self.bound


def _text(results: Results, dialect: str) -> Iterator[Target]:
    def ratio(slow: str, fast: str, events: int, feed: str) -> float | None:
        same: dict[str, object] = {"dialect": dialect, "events": events, "feed": feed}
        return results.ratio("text", {"reader": slow, **same}, {"reader": fast, **same})

    bound = 16 if dialect == "openai-chat" else 12
    for events in (2_000, 20_000):
        what = f"{dialect}: message, {events:,} events, feeds of 16 KiB, against orjson"
        yield Target(what, "at least", bound, ratio(ORJSON, FOLD, events, "16 KiB"))
    short = f"{dialect}: 20 events, feeds of 16 KiB, against orjson"
    yield Target(f"{short}: message", "at least", 2.5, ratio(ORJSON, FOLD, 20, "16 KiB"))
    yield Target(f"{short}: text", "at least", 5, ratio(ORJSON, FOLD_TEXT, 20, "16 KiB"))
    single = f"{dialect}: 2,000 events, one a feed, against orjson"
    for how, reader, wanted in (
        ("batches", BATCHES, 4.0),
        ("Fold", FOLD, 8.0),
        ("every delta and its text", DELTAS, 3.5),
    ):
        measured = ratio(ORJSON, reader, 2_000, "1 event")
        yield Target(f"{single}: {how}", "at least", wanted, measured)


def _stages(results: Results, dialect: str) -> Iterator[Target]:
    for events in (2_000, 20_000):
        same: dict[str, object] = {"dialect": dialect, "events": events}
        measured = results.ratio("stages", {"stage": "fold", **same}, {"stage": "scan", **same})
        what = f"{dialect}: message, {events:,} events, in Rust, against line ends and UTF-8"
        yield Target(what, "at most", 4, measured)


def _arguments(results: Results) -> Iterator[Target]:
    for dialect in DIALECTS:
        same: dict[str, object] = {"dialect": dialect, "bytes": 100_000, "delta": 12}
        fold: dict[str, object] = {"reader": FOLD, **same}
        what = f"{dialect}: arguments of 100 KB in 12-byte deltas, against"
        measured = results.ratio("arguments", {"reader": ORJSON, **same}, fold)
        yield Target(f"{what} orjson", "at least", 10, measured)
        if dialect == "anthropic-messages":
            measured = results.ratio("arguments", {"reader": SDK_HELPER, **same}, fold)
            yield Target(f"{what} the SDK's helper", "at least", 600, measured)
        for delta, large in ((12, 1_000_000), (1, 100_000)):
            small = 100_000 if delta == 12 else 1_000
            rows = [
                results.one("arguments", dialect=dialect, reader=FOLD, bytes=size, delta=delta)
                for size in (small, large)
            ]
            per_byte = [row.seconds / row.number("bytes") for row in rows if row is not None]
            grown = per_byte[1] / per_byte[0] if len(per_byte) == 2 else None
            what_grows = f"{dialect}: {delta}-character deltas, time a byte at {large:,} bytes"
            yield Target(f"{what_grows} against {small:,}", "at most", 1.25, grown)


def _views(results: Results) -> Iterator[Target]:
    for shape, bound in (("escaped ASCII", 10), ("structured", 60)):
        slow: dict[str, object] = {"view": "jiter", "shape": shape}
        fast: dict[str, object] = {"view": "value()", "shape": shape}
        measured = results.ratio("views", slow, fast)
        what = f"value() after every delta at 100 KB, {shape}, against jiter"
        yield Target(what, "at least", bound, measured)
    for shape in ("escaped ASCII", "structured"):
        rows = [
            results.one("views", view="changes()", shape=shape, bytes=size)
            for size in (1_000, 1_000_000)
        ]
        per_delta = [row.seconds / row.number("deltas") for row in rows if row is not None]
        grown = per_delta[1] / per_delta[0] if len(per_delta) == 2 else None
        what = f"changes() a delta at 1 MB against 1 KB, {shape}"
        yield Target(what, "at most", 1.25, grown)


def _processes(results: Results, dialect: str) -> Iterator[Target]:
    # Twice the text and 6 KiB, the text being that of 250 deltas.
    row = results.one("held", dialect=dialect, reader="deltafold")
    if row is not None:
        bound = 2 * row.number("text_bytes") / 1024 + 6
        what = f"{dialect}: KiB held by a half-finished stream of 250 deltas"
        yield Target(what, "at most", round(bound, 1), row.number("kib"))
    for writes in ("few", "each"):
        row = results.one("loopback", dialect=dialect, writes=writes)
        measured = None if row is None else row.table("ratios")["deltafold message"]
        written = "few writes" if writes == "few" else "one write an event"
        what = f"{dialect}: loopback HTTP, {written}, client CPU against bytes only"
        yield Target(what, "at most", 1.15, measured)
    row = results.one("fold_many", dialect=dialect)
    if row is not None:
        seconds = row.table("seconds")
        measured = seconds["two processes"] / seconds["two threads"]
        what = f"{dialect}: fold_many on two threads, speed against two processes"
        yield Target(what, "at least", 0.85, measured)


def _logprobs(results: Results) -> Iterator[Target]:
    for how, bound in (("streamed", 200), ("whole", 60)):
        theirs = results.one("logprobs", reader=SDK_CREATE, how=how)
        ours = results.one("logprobs", reader=FOLD, how=how, tokens=32_000)
        measured = None
        if theirs is not None and ours is not None:
            slow = theirs.seconds / theirs.number("tokens")
            measured = slow / (ours.seconds / ours.number("tokens"))
        what = f"log probabilities, {how}: a token of 32,000 against the SDK's of 2,000"
        yield Target(what, "at least", bound, measured)


def targets(results: Results) -> list[Target]:
    """Return every target."""
    found: list[Target] = []
    for dialect in DIALECTS:
        found.extend(_text(results, dialect))
        found.extend(_stages(results, dialect))
    found.extend(_arguments(results))
    found.extend(_views(results))
    found.extend(_logprobs(results))
    for dialect in DIALECTS:
        found.extend(_processes(results, dialect))
    return found
