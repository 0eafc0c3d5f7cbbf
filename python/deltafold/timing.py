"""How fast a stream is, readable while it runs.

In: the instants at which the request went out and bytes and deltas came.  Out: a `Timing`.

Laws: all times are seconds; memory does not grow with the stream; what has not happened yet is
None.  Deltas that came in one read have no gap between them: a gap lies between two reads that
brought deltas.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# Gaps are counted in classes, eight to each doubling of their nanoseconds: what is said of them is
# right within 6 %, in bounded memory, for a few integer operations a read.
_CLASSES_A_DOUBLING: Final = 8
_CLASS_BITS: Final = 3


@dataclass(frozen=True, slots=True)
class Gaps:
    """The waits between two reads that brought deltas, in seconds.

    `p50` and `p95` are right within 6 %; `max` is exact.
    """

    count: int = 0
    p50: float | None = None
    p95: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """When things happened, in seconds since the request went out.

    Attributes:
        time_to_first_byte: until the first bytes of the body.
        time_to_first_delta: until the first delta, which is `start`.
        time_to_first_text: until the first text of the answer.
        duration: until the end, or until now while the stream runs.
        gaps: the waits between deltas.
        tokens_per_second: output tokens by the provider's count, from the first delta to the last;
            None until they are counted.
    """

    time_to_first_byte: float | None = None
    time_to_first_delta: float | None = None
    time_to_first_text: float | None = None
    duration: float | None = None
    gaps: Gaps = Gaps()
    tokens_per_second: float | None = None


class Stopwatch:
    """Notes the instants of one stream; `clock` counts nanoseconds and never goes back."""

    __slots__ = (
        "_classes",
        "_clock",
        "_ended",
        "_first_byte",
        "_first_delta",
        "_first_text",
        "_last_delta",
        "_longest",
        "_started",
        "wants_text",
    )

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._started: int | None = None
        self._first_byte: int | None = None
        self._first_delta: int | None = None
        self._first_text: int | None = None
        self._last_delta = 0
        self._ended: int | None = None
        self._longest = 0
        self._classes: dict[int, int] = {}
        self.wants_text = True

    def start(self) -> None:
        """Note that the request goes out; the first time counts."""
        if self._started is None:
            self._started = self._clock()

    def read(self, deltas: int) -> None:
        """Note that bytes came, and how many deltas they completed."""
        now = self._clock()
        if self._first_byte is None:
            self._first_byte = now
        if not deltas:
            return
        if self._first_delta is None:
            self._first_delta = now
        else:
            gap = now - self._last_delta
            self._longest = max(self._longest, gap)
            doublings = gap.bit_length()
            place = doublings << _CLASS_BITS
            if doublings > _CLASS_BITS:
                place |= (gap >> (doublings - 1 - _CLASS_BITS)) & (_CLASSES_A_DOUBLING - 1)
            classes = self._classes
            classes[place] = classes.get(place, 0) + 1
        self._last_delta = now

    def text_came(self) -> None:
        """Note that the deltas of the last read brought the first text."""
        self._first_text = self._last_delta
        self.wants_text = False

    def end(self) -> None:
        """Note the end; the first time counts."""
        if self._ended is None and self._started is not None:
            self._ended = self._clock()

    def timing(self, output_tokens: int | None) -> Timing:
        """Say what was noted so far."""
        if self._started is None:
            return Timing()
        return Timing(
            time_to_first_byte=self._since_start(self._first_byte),
            time_to_first_delta=self._since_start(self._first_delta),
            time_to_first_text=self._since_start(self._first_text),
            duration=self._since_start(self._clock() if self._ended is None else self._ended),
            gaps=self._gaps(),
            tokens_per_second=self._tokens_per_second(output_tokens),
        )

    def _since_start(self, instant: int | None) -> float | None:
        return None if instant is None or self._started is None else (instant - self._started) / 1e9

    def _tokens_per_second(self, output_tokens: int | None) -> float | None:
        if output_tokens is None or self._first_delta is None:
            return None
        nanoseconds = self._last_delta - self._first_delta
        return output_tokens / (nanoseconds / 1e9) if nanoseconds > 0 else None

    def _gaps(self) -> Gaps:
        count = sum(self._classes.values())
        if not count:
            return Gaps()
        p50, p95 = self._quantile(0.5, count), self._quantile(0.95, count)
        return Gaps(count, p50, p95, self._longest / 1e9)

    def _quantile(self, share: float, count: int) -> float:
        rank = math.ceil(share * count)
        for place, here in sorted(self._classes.items()):
            rank -= here
            if rank <= 0:
                return min(_middle(place), self._longest) / 1e9
        return self._longest / 1e9


def _middle(place: int) -> float:
    """Return the nanoseconds in the middle of a class of gaps."""
    doublings, part = divmod(place, _CLASSES_A_DOUBLING)
    if doublings <= _CLASS_BITS:
        return float(1 << max(doublings - 1, 0))
    width = 1 << (doublings - 1 - _CLASS_BITS)
    return width * (_CLASSES_A_DOUBLING + part + 0.5)
