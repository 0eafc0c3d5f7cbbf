"""The ASGI application: routes of the client protocols in front of a table of models.

In: HTTP requests.  Out: answers in the protocol of each route.

Laws: without a hook that authenticates, only clients on this machine are answered, unless
`allow_anyone` says otherwise; with one, it sees every request but those of `/health`. The head is
admitted before the body is read, and what a request may need is bounded before it is parsed. Every
failure has the form of the client's protocol.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from deltafold.contract.kinds import ErrorCode
from deltafold.contract.names import WrittenProtocol
from deltafold.conversation.context.tokens import TokenCounter
from deltafold.dialects import dialect_of
from deltafold.errors.model_error import ModelError
from deltafold.gateway.accounting import ACCOUNTING_SECONDS, Accounting
from deltafold.gateway.admission import CONNECT_SECONDS, Admission
from deltafold.gateway.client_requests import ClientRequest, read_request, request_without_model
from deltafold.gateway.fetched_files import FileFetcher, with_files
from deltafold.gateway.hooks import (
    AnswerOptions,
    OnConnect,
    OnDelta,
    OnMessage,
    OnRequest,
    guarded,
)
from deltafold.gateway.leaving import until_left
from deltafold.gateway.protocols import PROTOCOLS, ClientProtocol, OnCut, protocol_of
from deltafold.gateway.recorded_models import ReplayTable
from deltafold.gateway.recording_pages import inspect_routes
from deltafold.gateway.refusals import failure_of, reading, refusal
from deltafold.gateway.request_limits import MAX_BODY_BYTES, RequestLimits, body_of, discard_body
from deltafold.gateway.response_store import MemoryStore, ResponseStore
from deltafold.gateway.responses import error_response, respond
from deltafold.gateway.spoken import speaking
from deltafold.gateway.streamed_answers import StreamedResponse
from deltafold.gateway.table import Entry, ModelTable
from deltafold.message.messages import Message, Meta, TextPart, ToolCallPart, ToolResultPart

_LARGE: Final = 256 * 1024
"""Bytes of a body that is parsed in a thread: others are parsed faster than a thread begins."""

_SEND_BODY: Final = "deltafold.send_body"
"""Member of the scope of a request: the `send` that the application was called with."""


def create_app(
    models: ModelTable | Mapping[str, Entry],
    *,
    on_connect: OnConnect | None = None,
    on_request: OnRequest | None = None,
    on_message: OnMessage | None = None,
    on_delta: OnDelta | None = None,
    hold_back: int = 0,
    passthrough: bool = True,
    continue_answers: bool = False,
    on_cut: OnCut | None = None,
    store: ResponseStore | None = None,
    fetcher: FileFetcher | None = None,
    keep_alive: float | None = 15.0,
    max_body_bytes: int = MAX_BODY_BYTES,
    limits: RequestLimits | None = None,
    connect_seconds: float = CONNECT_SECONDS,
    accounting_seconds: float = ACCOUNTING_SECONDS,
    allow_anyone: bool = False,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
) -> Starlette:
    """Make the application.  Its `state.accounting` counts what `on_message` and the store raised.

    >>> app = create_app({"gpt": "openai/gpt-5.6-terra", "claude-*": "anthropic/claude-*"})

    Args:
        models: the table of models.
        on_connect: authenticates each request by its head, before its body is read: it may raise a
            `ModelError`, whose status and code the client gets, and returns the owner of what the
            request stores, or None for a digest of its key.
        on_request: is called with each request before the upstream is; it may raise a `ModelError`,
            or return another request. For lists of models it is given one without a model.
        on_message: is told the message of each call as the upstream sent it, for usage, cost and
            logs. What it raises is logged.
        on_delta: sees and replaces text before the client does, or ends the answer by raising a
            `ModelError`.
        hold_back: how many characters of a part wait for the text after them, so that `on_delta`
            sees a pattern of up to one character more in one piece.
        passthrough: hand on the upstream's own bytes where it speaks the client's protocol.
        continue_answers: let the next upstream of a list continue an answer that broke off after
            its first byte, if its model continues answers (`Model.can_continue`). A comment in the
            stream and the warning `continued` of the message say so. Bytes do not pass then.
        on_cut: what a streaming client sees of an upstream that was lost after the first byte:
            "event" is an error and a clean end, "break" a body that breaks off, "event_and_break"
            both; None takes the way of the client's protocol.
        store: keeps responses for `previous_response_id`, by their owner; None keeps them in
            memory, bounded. What it raises when a response is kept is logged.
        fetcher: fetches files that a request names by their address where an upstream takes only
            their bytes; None fetches none, and such a file is left out with a warning.
        keep_alive: seconds of silence before a streaming client is told that the connection lives.
        max_body_bytes: the largest body of a request, in bytes, as it is sent and as it is unpacked
            where it is in gzip or deflate.
        limits: the most that a request may have of anything else.
        connect_seconds: how long `on_connect` may take; then the client gets an error with the
            status 503.
        accounting_seconds: how long an answer waits for `on_message` and the store; then it leaves,
            and they go on.
        allow_anyone: answer clients of other machines, and pages of other sites, without
            `on_connect` or `on_request`.
        allowed_hosts: names in the header `Host` that count as names of this machine, where only
            clients on this machine are answered.
        allowed_origins: origins of pages, such as `https://example.org`, that may call then.

    Raises:
        MisuseError: the table is wrong.
    """
    table = models if isinstance(models, ModelTable) else ModelTable(models)
    _load(table)
    accounting = Accounting(
        MemoryStore() if store is None else store, on_message, accounting_seconds
    )
    admission = Admission(
        on_connect,
        seconds=connect_seconds,
        is_open=allow_anyone or on_request is not None,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
    )
    ended = accounting.ended
    gateway = _Gateway(
        table,
        AnswerOptions(
            keep_alive, ended, on_delta, hold_back, passthrough, continue_answers, on_cut
        ),
        admission=admission,
        accounting=accounting,
        on_request=on_request,
        fetcher=fetcher,
        max_body_bytes=max_body_bytes,
        limits=limits or RequestLimits(),
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await accounting.aclose()
            await table.aclose()
            if fetcher is not None:
                await fetcher.aclose()

    routes = [
        *(
            Route(path, gateway.answers(row), methods=["POST"])
            for row in PROTOCOLS.values()
            for path in row.paths
        ),
        Route("/v1/messages/count_tokens", gateway.count_tokens, methods=["POST"]),
        Route("/v1/models", gateway.list_models),
        Route("/v1beta/models", gateway.list_models),
        Route("/health", _health),
    ]
    if isinstance(table, ReplayTable):
        routes += inspect_routes(table.recordings, None if allow_anyone else admission)
    app = _App(routes=routes, lifespan=lifespan)
    app.state.accounting = accounting
    return app


def _load(table: ModelTable) -> None:
    """Import and build what the first call needs: open streams would wait meanwhile."""
    for dialect in {*PROTOCOLS, *table.dialects}:
        dialect_of(dialect).load()
    for name in ("deltafold.models.outlined", "deltafold.message.timing"):
        import_module(name)
    for late in (Message, Meta, TextPart, ToolCallPart, ToolResultPart):
        late.model_rebuild()


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


class _App(Starlette):
    """The application, whose streams reach the server without Starlette's own middlewares.

    Two of them wrap each message of an answer, to know whether it has begun. Messages after the
    beginning tell them nothing. A middleware that the user has added sees all messages.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Also replaces that of a gateway in which this one is mounted.
        scope[_SEND_BODY] = None if self.user_middleware else send
        await super().__call__(scope, receive, send)


class _Endpoint:
    """An endpoint as an ASGI application.

    Starlette wraps an endpoint that is a function, and each message that it sends, a second time.
    """

    def __init__(self, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive, send))
        if isinstance(response, StreamedResponse):
            response.send_body = scope.get(_SEND_BODY)
        await response(scope, receive, send)


class _Gateway:
    """The endpoints of one application."""

    def __init__(
        self,
        table: ModelTable,
        options: AnswerOptions,
        *,
        admission: Admission,
        accounting: Accounting,
        on_request: OnRequest | None,
        fetcher: FileFetcher | None,
        max_body_bytes: int,
        limits: RequestLimits,
    ) -> None:
        self._table = table
        self._options = options
        self._admission = admission
        self._accounting = accounting
        self._on_request = on_request
        self._fetcher = fetcher
        self._max_body_bytes = max_body_bytes
        self._limits = limits

    def answers(self, protocol: ClientProtocol) -> "_Endpoint":
        """Return the endpoint of a protocol."""

        async def answer(request: Request) -> Response:
            return await self._answer(request, protocol.name, None, None)

        async def answer_call(request: Request) -> Response:
            name, _, method = str(request.path_params["call"]).rpartition(":")
            if method not in protocol.methods:
                known = " and ".join(protocol.methods)
                message = f"there is no method {method!r}; there are {known}"
                return error_response(refusal(message, ErrorCode.NOT_FOUND, 404), protocol.name)
            return await self._answer(request, protocol.name, name, protocol.methods[method])

        return _Endpoint(answer_call if protocol.methods else answer)

    async def count_tokens(self, request: Request) -> Response:
        """Answer with an estimate: the upstream counts tokens only in its answers."""
        try:
            asked = await self._read(request, "anthropic-messages")
            asked = await self._hooked(request, asked)
            upstream = self._table.find(asked.model_id)
            with reading(asked.protocol):
                counter = TokenCounter(dialect=upstream.model.dialect, model_id=upstream.model_id)
                count = sum(map(counter.message, asked.messages))
                count += counter.tools(asked.parsed.tools)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except Exception as error:  # noqa: BLE001 - answered and logged
            return error_response(failure_of(error, "anthropic-messages"), "anthropic-messages")
        return JSONResponse({"input_tokens": count})

    async def list_models(self, request: Request) -> Response:
        """List the names of the table in the form of OpenAI, of Anthropic or of Gemini."""
        protocol: WrittenProtocol = "openai-chat"
        if request.url.path.startswith("/v1beta"):
            protocol = "gemini"
        elif "anthropic-version" in request.headers:
            protocol = "anthropic-messages"
        try:
            owner = await self._admission.owner(request)
            await self._hooked(request, request_without_model(protocol, owner))
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except Exception as error:  # noqa: BLE001 - answered and logged
            return error_response(failure_of(error, protocol), protocol)
        names = self._table.names
        if protocol == "gemini":
            return JSONResponse({"models": [{"name": f"models/{name}"} for name in names]})
        if protocol == "anthropic-messages":
            rows = [
                {"type": "model", "id": name, "display_name": name, "created_at": _UNKNOWN_TIME}
                for name in names
            ]
            ends = {"first_id": names[0], "last_id": names[-1]}
            return JSONResponse({"data": rows, "has_more": False, **ends})
        known = [
            {"id": name, "object": "model", "created": 0, "owned_by": "deltafold"} for name in names
        ]
        return JSONResponse({"object": "list", "data": known})

    async def _answer(
        self,
        request: Request,
        protocol: WrittenProtocol,
        model_id: str | None,
        streams: bool | None,
    ) -> Response:
        try:
            asked = await self._read(request, protocol, model_id, streams)
            asked = await self._accounting.continued(await self._hooked(request, asked))
            upstream = speaking(asked, self._table.find(asked.model_id))
            if self._fetcher is not None:
                asked = await with_files(asked, upstream, self._fetcher, request=request)
            return await respond(asked, upstream, request=request, options=self._options)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except Exception as error:  # noqa: BLE001 - answered and logged
            return error_response(failure_of(error, protocol), protocol)

    async def _read(
        self,
        request: Request,
        protocol: WrittenProtocol,
        model_id: str | None = None,
        streams: bool | None = None,
    ) -> ClientRequest:
        try:
            owner = await self._admission.owner(request)
            body = await body_of(request, self._max_body_bytes, self._limits.gzip_members)
        except ModelError:
            await discard_body(request, self._max_body_bytes)
            raise
        row = protocol_of(protocol)
        read = partial(
            read_request,
            protocol,
            body,
            model_id=model_id,
            streams=streams,
            is_array=row.array_target != "" and request.query_params.get("alt") != "sse",
            is_codex=request.headers.get("originator", "").startswith("codex"),
            headers=request.headers,
            limits=self._limits,
            owner=owner,
            is_shared=self._on_request is None,
        )
        return read() if len(body) < _LARGE else await asyncio.to_thread(read)

    async def _hooked(self, request: Request, asked: ClientRequest) -> ClientRequest:
        if self._on_request is None:
            return asked
        kind = ClientRequest | None
        async with until_left(request.receive):
            return await guarded("on_request", kind, self._on_request, request, asked) or asked


_UNKNOWN_TIME: Final = "1970-01-01T00:00:00Z"
