"""When a provider says to come back, in the forms in which providers say it.

In: an error response's headers (lower-case names), the error object of its body, its message.  Out:
seconds, or None.

Laws: the first source that has a wait wins, in the order of the list in `retry_after_seconds`.
Nothing that a source says raises: a value that is negative, unreadable, not finite, or a date
beyond the calendar is ignored, and the next source is asked.  A wait beyond a day becomes a day.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, cast

from deltafold.contract import json_array, json_object

MAX_RETRY_AFTER_S: Final = 86_400.0
"""One day: no limit resets later, and a wrong clock must not park a caller for years."""

_DURATION: Final = re.compile(
    r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
_TRY_AGAIN: Final = re.compile(
    r"(?:try again|retry) in ((?:\d+(?:\.\d+)?\s?(?:ms|[hs]|m(?!il)))+)", re.IGNORECASE
)


def retry_after_seconds(
    headers: Mapping[str, str],
    error: Mapping[str, object],
    message: str,
    *,
    now: datetime,
    limited: bool,
) -> float | None:
    """Return the seconds to wait, from the most exact source that has them.

    In order: `retry-after-ms`; `retry-after` in seconds or as an HTTP date; the body's `RetryInfo`;
    the rate-limit reset headers (the latest of them: an upper bound); headers that a gateway copied
    into the body; the message's own words. Providers send the reset headers with every answer, so
    that they count only where the request was refused by a limit (`limited`).
    """
    said = (
        _scaled(headers.get("retry-after-ms"), 0.001),
        _header_seconds(headers.get("retry-after"), now),
        _retry_info(error.get("details")),
    )
    resets = (
        _reset_durations(headers),
        _reset_instants(headers, now),
        _gateway_reset(error.get("metadata"), now),
    )
    sources: list[float | None] = [*said, *(resets if limited else ()), _in_words(message)]
    for value in sources:
        if value is not None and math.isfinite(value) and value >= 0:
            return min(value, MAX_RETRY_AFTER_S)
    return None


def _number(value: object) -> float | None:
    if isinstance(value, str) and "_" in value:  # a digit separator of Python's alone
        return None
    try:
        number = float(cast("str", value))
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _scaled(value: object, unit_s: float) -> float | None:
    number = _number(value)
    return None if number is None else number * unit_s


def _header_seconds(value: str | None, now: datetime) -> float | None:
    if value is None:
        return None
    number = _number(value)
    if number is not None:
        return number
    try:
        return _until(parsedate_to_datetime(value), now)
    except (ValueError, TypeError, ArithmeticError, LookupError):
        return None  # no date, or one beyond the calendar; `email.utils` names neither kind


def _until(instant: datetime, now: datetime) -> float:
    if instant.tzinfo is None:  # an HTTP date with "-0000": UTC by RFC 9110
        instant = instant.replace(tzinfo=UTC)
    return (instant - now).total_seconds()


def _retry_info(details: object) -> float | None:
    """Read Gemini's `{"@type": "…RetryInfo", "retryDelay": "34.4s"}`."""
    for detail in json_array(details):
        delay = (json_object(detail) or {}).get("retryDelay")
        if isinstance(delay, str):
            return _duration(delay)
    return None


def _duration(text: str) -> float | None:
    """Read `1s`, `6m0s`, `12ms`, `1h2m3.5s`."""
    match = _DURATION.fullmatch(text.strip().replace(" ", "").lower())
    if match is None or not any(match.groups()):
        return None
    units_s = (3600.0, 60.0, 1.0, 0.001)
    counts = [float(digits or 0) for digits in match.groups()]
    return sum(count * unit_s for count, unit_s in zip(counts, units_s, strict=True))


def _reset_durations(headers: Mapping[str, str]) -> float | None:
    texts = (headers.get("x-ratelimit-reset-requests"), headers.get("x-ratelimit-reset-tokens"))
    durations = [_duration(text) for text in texts if text is not None]
    return max((duration for duration in durations if duration is not None), default=None)


def _reset_instants(headers: Mapping[str, str], now: datetime) -> float | None:
    waits: list[float] = []
    for name, value in headers.items():
        if name.startswith("anthropic-ratelimit-") and name.endswith("-reset"):
            try:
                waits.append(_until(datetime.fromisoformat(value), now))
            except ValueError:
                continue
    return max(waits, default=None)


def _gateway_reset(metadata: object, now: datetime) -> float | None:
    """Read OpenRouter's `metadata.headers["X-RateLimit-Reset"]`, milliseconds since the epoch."""
    headers = json_object((json_object(metadata) or {}).get("headers")) or {}
    epoch_s = _scaled(headers.get("X-RateLimit-Reset"), 0.001)
    return None if epoch_s is None else epoch_s - now.timestamp()


def _in_words(message: str) -> float | None:
    match = _TRY_AGAIN.search(message)
    return None if match is None else _duration(match[1])
