"""The ASGI application: routes of the client protocols in front of a table of models.

In: HTTP requests.  Out: answers in the protocol of each route.

Laws: without a hook that authenticates, only clients on this machine are answered, unless
`allow_anyone` says otherwise. The size of a request body is bounded.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from deltafold.contract.kinds import ErrorCode
from deltafold.conversation.context.tokens import TokenCounter
from deltafold.errors.model_error import ModelError
from deltafold.gateway.client_requests import ClientRequest, read_request, refusal
from deltafold.gateway.fetched_files import FileFetcher, with_files
from deltafold.gateway.hooks import AnswerOptions, OnDelta, OnMessage, OnRequest
from deltafold.gateway.loopback import is_local
from deltafold.gateway.protocols import PROTOCOLS, ClientProtocol, protocol_of
from deltafold.gateway.recorded_models import ReplayTable
from deltafold.gateway.recording_pages import inspect_routes
from deltafold.gateway.response_store import MemoryStore, ResponseStore
from deltafold.gateway.responses import error_response, respond
from deltafold.gateway.streamed_answers import StreamedResponse
from deltafold.gateway.table import Entry, ModelTable
from deltafold.message.messages import Message
from deltafold.transports.encodings import ContentDecodingError, decoded

_MAX_BODY_BYTES: Final = 64 << 20
_SEND_BODY: Final = "deltafold.send_body"
"""Member of the scope of a request: the `send` that the application was called with."""


def create_app(
    models: ModelTable | Mapping[str, Entry],
    *,
    on_request: OnRequest | None = None,
    on_message: OnMessage | None = None,
    on_delta: OnDelta | None = None,
    hold_back: int = 0,
    passthrough: bool = True,
    continue_answers: bool = False,
    store: ResponseStore | None = None,
    fetcher: FileFetcher | None = None,
    keep_alive: float | None = 15.0,
    max_body_bytes: int = _MAX_BODY_BYTES,
    allow_anyone: bool = False,
) -> Starlette:
    """Make the application.

    >>> app = create_app({"gpt-5": "openai/gpt-5", "claude-*": "anthropic/claude-*"})

    Args:
        models: the table of models.
        on_request: is called with each request before the upstream is; it may raise a `ModelError`,
            whose status and code the client gets, or return another request.
        on_message: is told the message of each call as the upstream sent it, for usage, cost and
            logs.
        on_delta: sees and replaces text before the client does, or ends the answer by raising a
            `ModelError`.
        hold_back: how many characters of a part wait for the text after them, so that `on_delta`
            sees a pattern of up to one character more in one piece.
        passthrough: hand on the upstream's own bytes where it speaks the client's protocol.
        continue_answers: let the next upstream of a list continue an answer that broke off after
            its first byte, if its model continues answers (`Model.can_continue`). A comment in the
            stream and the warning `continued` of the message say so. Bytes do not pass then.
        store: keeps responses for `previous_response_id`; None keeps them in memory, bounded.
        fetcher: fetches files that a request names by their address where an upstream takes only
            their bytes; None fetches none, and such a file is left out with a warning.
        keep_alive: seconds of silence before a streaming client is told that the connection lives.
        max_body_bytes: the largest body of a request, in bytes, unpacked where it is in gzip or
            deflate.
        allow_anyone: answer clients of other machines without `on_request`.

    Raises:
        MisuseError: the table is wrong.
    """
    table = models if isinstance(models, ModelTable) else ModelTable(models)
    gateway = _Gateway(
        table,
        AnswerOptions(keep_alive, on_message, on_delta, hold_back, passthrough, continue_answers),
        on_request=on_request,
        store=MemoryStore() if store is None else store,
        fetcher=fetcher,
        max_body_bytes=max_body_bytes,
        allow_anyone=allow_anyone,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        try:
            yield
        finally:
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
        routes += inspect_routes(table.recordings, allow_anyone=allow_anyone)
    return _App(routes=routes, lifespan=lifespan)


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
        on_request: OnRequest | None,
        store: ResponseStore,
        fetcher: FileFetcher | None,
        max_body_bytes: int,
        allow_anyone: bool,
    ) -> None:
        self._table = table
        self._on_request = on_request
        self._on_message = options.on_message
        self._options = replace(options, on_message=self._ended)
        self._store = store
        self._fetcher = fetcher
        self._max_body_bytes = max_body_bytes
        self._allow_anyone = allow_anyone

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
            self._admit(request)
            asked = read_request("anthropic-messages", await self._body(request))
            asked = await self._hooked(request, asked)
            upstream = self._table.find(asked.model_id)
        except ModelError as error:
            return error_response(error, "anthropic-messages")
        counter = TokenCounter(dialect=upstream.model.dialect, model_id=upstream.model_id)
        count = sum(map(counter.message, asked.messages)) + counter.tools(asked.parsed.tools)
        return JSONResponse({"input_tokens": count})

    async def list_models(self, request: Request) -> Response:
        """List the names of the table in the form of OpenAI, of Anthropic or of Gemini."""
        try:
            self._admit(request)
        except ModelError as error:
            return error_response(error, "openai-chat")
        names = self._table.names
        if request.url.path.startswith("/v1beta"):
            return JSONResponse({"models": [{"name": f"models/{name}"} for name in names]})
        if "anthropic-version" in request.headers:
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
        self, request: Request, protocol: str, model_id: str | None, streams: bool | None
    ) -> Response:
        row = protocol_of(protocol)
        is_array = row.array_target != "" and request.query_params.get("alt") != "sse"
        try:
            self._admit(request)
            asked = read_request(
                protocol,
                await self._body(request),
                model_id=model_id,
                streams=streams,
                is_array=is_array,
                is_codex=request.headers.get("originator", "").startswith("codex"),
                headers=request.headers,
            )
            asked = await self._continued(await self._hooked(request, asked))
            upstream = self._table.find(asked.model_id)
            if self._fetcher is not None:
                asked = await with_files(asked, upstream, self._fetcher, request=request)
            return await respond(asked, upstream, request=request, options=self._options)
        except ModelError as error:
            return error_response(error, protocol)

    def _admit(self, request: Request) -> None:
        """Refuse a client of another machine where nothing authenticates."""
        if self._on_request is not None or self._allow_anyone or is_local(request):
            return
        raise refusal(
            "this gateway answers clients of its own machine only: it has no authentication",
            ErrorCode.PERMISSION,
            403,
        )

    async def _body(self, request: Request) -> bytes:
        pieces: list[bytes] = []
        size = 0
        try:
            async for piece in decoded(request.stream(), request.headers.get("content-encoding")):
                size += len(piece)
                if size > self._max_body_bytes:
                    message = f"the body has more than {self._max_body_bytes:,} bytes"
                    raise refusal(message, status=413)
                pieces.append(piece)
        except ContentDecodingError as error:
            raise refusal(str(error), status=415) from error
        return b"".join(pieces)

    async def _hooked(self, request: Request, asked: ClientRequest) -> ClientRequest:
        if self._on_request is None:
            return asked
        return await self._on_request(request, asked) or asked

    async def _continued(self, asked: ClientRequest) -> ClientRequest:
        if asked.previous is None:
            return asked
        known = await self._store.get(asked.previous)
        if known is None:
            message = f"previous_response_id: the response {asked.previous!r} is not kept here"
            raise refusal(message, ErrorCode.NOT_FOUND, 404)
        return asked.after(tuple(known))

    async def _ended(
        self, asked: ClientRequest, message: Message, error: ModelError | None
    ) -> None:
        response_id = message.meta.response_id
        if asked.stores and error is None and response_id:
            await self._store.put(response_id, (*asked.messages, message))
        if self._on_message is not None:
            await self._on_message(asked, message, error)


_UNKNOWN_TIME: Final = "1970-01-01T00:00:00Z"
