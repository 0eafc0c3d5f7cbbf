"""The head of a response: status, headers, request id and rate limits.

In: status and headers, names in lower case.  Out: `ResponseInfo`.
"""

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from deltafold import _core

# OpenAI and its kin: x-ratelimit-{limit,remaining,reset}-{requests,tokens}.  Anthropic:
# anthropic-ratelimit-{requests,tokens,…}-{limit,remaining,reset}.
_RATE_LIMIT_NAME: Final = re.compile(
    r"(?:x-ratelimit-(?P<what>limit|remaining|reset)-(?P<of>[a-z0-9-]+)"
    r"|anthropic-ratelimit-(?P<of2>[a-z0-9-]+)-(?P<what2>limit|remaining|reset))"
)
_MAX_COUNT_DIGITS: Final = 18
"""Limit of a count in a header; longer ones are ignored, `int` raises for one of 4,301 digits."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One rate limit of a response.

    >>> from deltafold.transports.response_info import ResponseInfo
    >>> info = ResponseInfo(200, {"x-ratelimit-remaining-requests": "499"})
    >>> info.rate_limits["requests"].remaining
    499

    Attributes:
        limit: the amount in a window.
        remaining: the amount that is left.
        reset_after: seconds until the whole amount is available again.
    """

    limit: int | None = None
    remaining: int | None = None
    reset_after: float | None = None


@dataclass(frozen=True, slots=True)
class ResponseInfo:
    """Status and headers of a response.

    >>> with model.stream_sync("When is high tide?") as stream:
    ...     message = stream.final_message()
    ...     stream.response.status
    200

    Attributes:
        status: the HTTP status, 200 without HTTP.
        headers: names in lower case.
        invocation_state: the caller's own objects, after the hook before the request.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    invocation_state: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)

    @property
    def request_id(self) -> str | None:
        """The id under which the provider finds this request, for its support."""
        found = (self.headers.get(name) for name in _core.REQUEST_ID_HEADERS)
        return next(filter(None, found), None)

    @property
    def rate_limits(self) -> dict[str, RateLimit]:
        """Rate limits by name: `requests`, `tokens`, `input-tokens` ….

        Source: the rate limit headers of OpenAI's and Anthropic's API references (read 2026-11).
        """
        found: dict[str, dict[str, str]] = {}
        for name, value in self.headers.items():
            match = _RATE_LIMIT_NAME.fullmatch(name)
            if match is not None:
                of, what = match["of"] or match["of2"], match["what"] or match["what2"]
                found.setdefault(of, {})[what] = value
        return {of: _rate_limit(values) for of, values in found.items()}


ResponseHook: TypeAlias = Callable[[ResponseInfo], Awaitable[None] | None]
"""Function of a caller that gets the head of each response."""


def _rate_limit(values: Mapping[str, str]) -> RateLimit:
    return RateLimit(
        _count(values.get("limit")),
        _count(values.get("remaining")),
        _core.seconds_until_reset(values.get("reset", ""), time.time()),
    )


def _count(value: str | None) -> int | None:
    if value is None or len(value) > _MAX_COUNT_DIGITS:
        return None
    return int(value) if value.isascii() and value.isdigit() else None
