"""Hooks around a request: before it is sent, and after the headers of its response.

In: the prepared request, the response before its body.  Out: `RequestContext`, which a hook may
change; `ResponseInfo`, which it may read.

Laws: an exception of a hook reaches the caller. The invocation state of the caller is passed to
hooks only and never sent.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from deltafold.models.info import RequestMetadata
from deltafold.transports.response_info import ResponseHook


@dataclass(slots=True)
class RequestContext:
    """A request before it is sent; a hook may change `body`, `headers` and `query` in place.

    >>> def stamp(request: RequestContext) -> None:
    ...     request.headers["x-team"] = "tides"
    >>> hooks = Hooks(before_request=stamp)

    Attributes:
        model_id: the requested model.
        body: the members of the JSON body.
        metadata: the session, run and trace of the call.
        invocation_state: the caller's own objects; they are never sent.
    """

    model_id: str
    body: dict[str, object] = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    query: dict[str, object] = field(repr=False)
    metadata: RequestMetadata
    invocation_state: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)


RequestHook: TypeAlias = Callable[[RequestContext], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions that a Model calls around each request; asynchronous streams await the results.

    >>> def stamp(request: RequestContext) -> None:
    ...     request.headers["x-team"] = str(request.invocation_state["team"])
    >>> model = AnthropicModel({"model_id": "m"}, hooks=Hooks(before_request=stamp))

    Attributes:
        before_request: receives the request before it is sent.
        after_headers: receives the response before its body is read.
    """

    before_request: RequestHook | None = None
    after_headers: ResponseHook | None = None
