"""Answers: a request of a client becomes a call of a Model, and its stream the client's answer.

In: `ClientRequest` and an upstream.  Out: a response of Starlette. The encoder of the client's
protocol (`rust/core/src/encode/`) writes its words, those of an error too.

Laws: the status of a failure before all content is that of the failure. When the client goes away,
the call of the upstream ends. A cut upstream never ends in the client's success.
"""

import gzip
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from deltafold._core import Encoder, MessageAssembler
from deltafold.contract.kinds import ErrorCode
from deltafold.contract.names import TargetName
from deltafold.errors.model_error import ModelError
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.guarded_text import Guard
from deltafold.gateway.hooks import AnswerOptions
from deltafold.gateway.leaving import unless_left
from deltafold.gateway.model_call import next_upstream, open_rest, open_stream
from deltafold.gateway.origins import with_origins
from deltafold.gateway.refusals import reading
from deltafold.gateway.spoken import speaking
from deltafold.gateway.streamed_answers import StreamedResponse
from deltafold.gateway.table import Upstream
from deltafold.message.messages import Message
from deltafold.streams.delta_streams import AsyncDeltaStream
from deltafold.streams.encoded import EncodedBody, encode_error, encode_message

_OF_BODIES: Final = frozenset({413, 415})
"""Statuses of bodies that are too large or packed otherwise, for which no protocol has a word."""
_PACKED_BYTES: Final = 4096
"""Smallest body that is packed; a smaller one is one packet of the network or two."""
_PACKING: Final = 4
"""Level of gzip: text is a fifth longer than at level 9, in a third of the time."""


async def respond(
    asked: ClientRequest,
    upstream: Upstream,
    *,
    request: Request | None = None,
    options: AnswerOptions | None = None,
) -> Response:
    """Call the upstream, and return the answer in the client's protocol.

    >>> from deltafold.gateway import respond
    >>> table = ModelTable({"m": "openai/gpt-5.6-terra"}, api_key="k")
    >>> asked = read_request("openai-chat", b'{"model":"m","messages":[]}')
    >>> response = await respond(asked, table.find(asked.model_id))
    >>> await table.aclose()

    Args:
        asked: the request.
        upstream: the Model, the name of the model, and what to call next when it fails.
        request: the client's request; an answer that is not streamed ends when its client leaves.
        options: keep-alives, hooks, passthrough.

    Raises:
        ModelError: the request cannot be translated; `error_response` makes the answer of it.
    """
    options = options or AnswerOptions()
    upstream = speaking(asked, upstream)
    with reading(asked.protocol):
        asked = with_origins(asked, upstream)
        if asked.streams:
            return StreamedResponse(asked, upstream, options)
        Encoder(asked.protocol, **asked.options)  # what it cannot write is refused before the call
    return await _whole(asked, upstream, request, options)


def error_response(error: ModelError, target: TargetName) -> Response:
    """Return a failure as the HTTP error of a client's protocol.

    >>> error_response(refusal("the body is empty"), "openai-chat").status_code
    400
    """
    body = encode_error(error, target)
    response = _response(body)
    if error.status in _OF_BODIES and error.code is ErrorCode.INVALID_REQUEST:
        response.status_code = error.status
    return response


def _response(body: EncodedBody, *, packs: bool = False) -> Response:
    headers = dict(body.headers)
    if not packs or len(body.body) < _PACKED_BYTES:
        return Response(body.body, body.status, headers)
    headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(gzip.compress(body.body, _PACKING), body.status, headers)


async def _whole(
    asked: ClientRequest, upstream: Upstream, request: Request | None, options: AnswerOptions
) -> Response:
    answering = _message(asked, upstream, options)
    packs = request is not None and "gzip" in request.headers.get("accept-encoding", "")
    read = await (answering if request is None else unless_left(answering, request.receive))
    if read is None:
        return Response(status_code=499)  # nobody reads it
    message, error = read
    if error is not None:
        return _response(encode_error(error, asked.protocol, whole=True))
    return _response(encode_message(message, asked.protocol, **asked.options), packs=packs)


async def _message(
    asked: ClientRequest, upstream: Upstream, options: AnswerOptions
) -> tuple[Message | MessageAssembler, ModelError | None]:
    """Return the answer of the first upstream that gives one, as the hooks leave it."""
    message, error = await _read(asked, upstream)
    while (following := next_upstream(upstream, error)) is not None:
        rest = open_rest(asked, upstream, error, message) if options.continue_answers else None
        upstream, stream = (following, None) if rest is None else rest
        message, error = await _read(asked, upstream, stream)
    if options.on_message is not None:
        await options.on_message(asked, message, error)
    if options.on_delta is None:
        return message, error
    guard = Guard(asked, options.on_delta, 0)
    try:
        return await guard.whole(message, error)
    except ModelError as stopped:
        return message, stopped


async def _read(
    asked: ClientRequest, upstream: Upstream, stream: AsyncDeltaStream | None = None
) -> tuple[Message, ModelError | None]:
    """Return the message of an upstream, whole or partial, and the error that ended it."""
    try:
        async with stream or open_stream(asked, upstream) as opened:
            return await opened.final_message(), None
    except ModelError as failure:
        return failure.partial_message or Message.assistant(), failure
