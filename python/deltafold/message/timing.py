"""Timing of a stream, readable while it runs.

In: the instants of the request, of received bytes and of deltas.  Out: a `Timing`.

Laws: all times are seconds. Memory does not grow with the stream. An event that has not happened
yet is None.  Deltas of one read have no gap between them: a gap is the time between two reads that
brought deltas.
"""

import math
from dataclasses import dataclass
from typing import Final

from deltafold._core import StreamTimes

# Classes of gaps, as `StreamTimer` counts them.
_CLASSES_A_DOUBLING: Final = 8
_CLASS_BITS: Final = 3


@dataclass(frozen=True, slots=True)
class Gaps:
    """The waits between two reads that brought deltas, in seconds.

    `p50` and `p95` are right within 6 %; `max` is exact.

    >>> with deltafold.stream([body], "openai-chat") as stream:
    ...     message = stream.final_message()
    >>> stream.timing.gaps.count
    0
    """

    count: int = 0
    p50: float | None = None
    p95: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """When things happened, in seconds since the request went out.

    >>> with model.stream_sync("When is high tide?") as stream:
    ...     text = "".join(stream.text())
    ...     stream.timing.time_to_first_text

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


def timing_of(times: StreamTimes, output_tokens: int | None) -> Timing:
    """Compute the timing of a stream from its times and the number of its output tokens."""
    started, first_delta, last_delta = times.started, times.first_delta, times.last_delta
    if started is None:
        return Timing()

    def since_start(instant: int | None) -> float | None:
        return None if instant is None else (instant - started) / 1e9

    tokens_per_second = None
    if output_tokens is not None and first_delta is not None and last_delta > first_delta:
        tokens_per_second = output_tokens / ((last_delta - first_delta) / 1e9)
    return Timing(
        time_to_first_byte=since_start(times.first_byte),
        time_to_first_delta=since_start(first_delta),
        time_to_first_text=since_start(times.first_text),
        duration=since_start(times.until),
        gaps=_gaps(times.gaps, times.longest_gap),
        tokens_per_second=tokens_per_second,
    )


def _gaps(classes: list[tuple[int, int]], longest: int) -> Gaps:
    count = sum(here for _, here in classes)
    if not count:
        return Gaps()

    def quantile(share: float) -> float:
        rank = math.ceil(share * count)
        for place, here in classes:
            rank -= here
            if rank <= 0:
                return min(_middle(place), longest) / 1e9
        return longest / 1e9

    return Gaps(count, quantile(0.5), quantile(0.95), longest / 1e9)


def _middle(place: int) -> float:
    """Return the nanoseconds in the middle of a class of gaps."""
    doublings, part = divmod(place, _CLASSES_A_DOUBLING)
    if doublings <= _CLASS_BITS:
        return float(1 << max(doublings - 1, 0))
    width = 1 << (doublings - 1 - _CLASS_BITS)
    return width * (_CLASSES_A_DOUBLING + part + 0.5)
