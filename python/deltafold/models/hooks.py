"""What a caller may see and change around a request: before it goes out, and when headers came.

In: the request as it is prepared, the response as it begins.  Out: `RequestContext`, which a hook
may change; `ResponseInfo`, which it may read.

Laws: what a hook raises is the caller's own and reaches the caller; the caller's invocation state
passes through hooks alone and never goes on the wire.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from deltafold.models.info import RequestMetadata
from deltafold.transports.response_info import ResponseHook


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
    metadata: RequestMetadata
    invocation_state: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)


RequestHook: TypeAlias = Callable[[RequestContext], Awaitable[None] | None]


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
