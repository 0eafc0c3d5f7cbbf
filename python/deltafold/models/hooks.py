"""What a caller may see and change around a request: before it goes out, and when headers came.

In: the request as it is prepared, the response as it begins.  Out: `RequestContext`, which a hook
may change; `ResponseInfo`, which it may read.

Laws: what a hook raises is the caller's own and reaches the caller; the caller's invocation state
passes through hooks alone and never goes on the wire.
"""

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from deltafold import _core

if TYPE_CHECKING:
    from deltafold.models.config import RequestMetadata

# OpenAI and its kin: x-ratelimit-{limit,remaining,reset}-{requests,tokens}.  Anthropic:
# anthropic-ratelimit-{requests,tokens,…}-{limit,remaining,reset}.
_RATE_LIMIT_NAME: Final = re.compile(
    r"(?:x-ratelimit-(?P<what>limit|remaining|reset)-(?P<of>[a-z0-9-]+)"
    r"|anthropic-ratelimit-(?P<of2>[a-z0-9-]+)-(?P<what2>limit|remaining|reset))"
)
_MAX_COUNT_DIGITS: Final = 18
"""Limit of a count in a header; longer ones are ignored, `int` raises for one of 4,301 digits."""


@dataclass(slots=True)
class RequestContext:
    """A request before it goes out; a hook may change `body`, `headers` and `query` in place.

    Attributes:
        model_id: the model that is asked.
        body: the members of the JSON body.
        metadata: the session, run and trace that the call belongs to.
        invocation_state: the caller's own objects; they never go on the wire.
    """

    model_id: str
    body: dict[str, object] = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    query: dict[str, object] = field(repr=False)
    metadata: "RequestMetadata"
    invocation_state: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One of the limits that a response tells of.

    Attributes:
        limit: how much there is in a window.
        remaining: how much is left of it.
        reset_after: seconds until it is whole again.
    """

    limit: int | None = None
    remaining: int | None = None
    reset_after: float | None = None


@dataclass(frozen=True, slots=True)
class ResponseInfo:
    """The response as far as its headers say.

    Attributes:
        status: the HTTP status, 200 where there was no HTTP.
        headers: names in lower case.
        invocation_state: the caller's own objects, as the hook before the request saw them.
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
        """What is left of each limit, by its name: `requests`, `tokens`, `input-tokens` ….

        Source: the rate limit headers of OpenAI's and Anthropic's API references (read 2026-11).
        """
        found: dict[str, dict[str, str]] = {}
        for name, value in self.headers.items():
            match = _RATE_LIMIT_NAME.fullmatch(name)
            if match is not None:
                of, what = match["of"] or match["of2"], match["what"] or match["what2"]
                found.setdefault(of, {})[what] = value
        return {of: _rate_limit(values) for of, values in found.items()}


RequestHook: TypeAlias = Callable[[RequestContext], Awaitable[None] | None]
ResponseHook: TypeAlias = Callable[[ResponseInfo], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a Model calls around each request; asynchronous streams await what a hook returns.

    >>> def stamp(request: RequestContext) -> None:
    ...     request.headers["x-team"] = str(request.invocation_state["team"])
    >>> model = AnthropicModel({"model_id": "m"}, hooks=Hooks(before_request=stamp))

    Attributes:
        before_request: gets the request that is about to go out.
        after_headers: gets the response before its body is read.
    """

    before_request: RequestHook | None = None
    after_headers: ResponseHook | None = None


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
