"""Encoding: messages, errors and streams as the bodies of any provider's protocol.

In: finished messages, failures, or the bytes of one protocol.  Out: bytes of another, with the HTTP
status and the headers that its clients need.

Laws: what the target cannot carry is in `notes`. A failed source never becomes a success: the
target's own error comes last. Nothing is made up.
"""

import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict, Unpack, cast

from deltafold._core import (
    Decoder,
    Encoder,
    Limits,
    MessageAssembler,
    MessageDelta,
    Transcoder,
    decode_body,
    encode_body,
    encode_choices_body,
)
from deltafold.contract.exceptions import MisuseError, UnknownDialectError
from deltafold.contract.foreign_text import well_formed
from deltafold.contract.kinds import EncoderTool, FinishReason
from deltafold.errors.mapper import ErrorMapper
from deltafold.errors.model_error import ModelError
from deltafold.errors.public_text import public_message, public_message_of
from deltafold.message import data_types
from deltafold.message.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart
from deltafold.streams.bodies import WholeBody, decode_response, whole_body
from deltafold.streams.pauses import with_pauses

__all__ = [
    "EncodedBody",
    "EncoderNote",
    "EncoderOptions",
    "EncoderTool",
    "atranscode_chunks",
    "encode_choices",
    "encode_error",
    "encode_message",
    "message_deltas",
    "transcode",
    "transcode_chunks",
    "transcode_response",
]


class EncoderNote(TypedDict):
    """Something that a target could not carry, and how often."""

    code: str
    what: str
    count: int


class EncoderOptions(TypedDict, total=False):
    """The keyword options of `Encoder`, which every function of this module takes."""

    model_id: str | None
    request_id: str | None
    response_id: str | None
    include_usage: bool
    input_tokens: int | None
    reasoning_member: Literal["reasoning_content", "reasoning"]
    signatures: Literal["reasoning_details", "thinking_blocks", "extra_content"] | None
    envelope: bool
    own_models: Sequence[str] | None
    hold: bool
    declined_calls: Literal["filter", "hold", "keep"]
    raw_reasoning: bool
    codex: bool
    incomplete_as_completed: bool
    response_fields: Mapping[str, object] | None
    tools: Mapping[str, EncoderTool] | None
    thread_id: str | None
    without_run: bool
    limits: Limits | None


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """A whole answer: what an HTTP server sends.

    >>> encoded = deltafold.encode_message(message, "anthropic-messages")
    >>> encoded.status
    200

    Attributes:
        status: the HTTP status; from 400 up the body is the target's error.
        headers: the headers that the target's clients need.
        body: the bytes of the body.
        notes: what the target could not carry.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    notes: list[EncoderNote]

    @property
    def json(self) -> object:
        """The body as JSON's own types."""
        return cast("object", json.loads(self.body))


class _Ending(NamedTuple):
    """End of a message: the kind and payload of its last delta."""

    kind: str
    payload: dict[str, object]


def message_deltas(
    message: "data_types.Message", error: ModelError | None = None
) -> list[MessageDelta]:
    """Return the deltas of a finished message: those of a stream that says the same.

    >>> encoder = Encoder("openai-chat")
    >>> for delta in message_deltas(message):
    ...     send(encoder.feed(delta))

    Args:
        message: an assistant message.
        error: the failure that ended it; the parts are those of a partial message then.

    Raises:
        MisuseError: the message is not of an assistant.
    """
    if message.role != "assistant":
        raise MisuseError(f"message: an assistant message is encoded, not one of a {message.role}")
    meta = message.meta
    run_id = message.run_id or str(message.id)
    start: dict[str, object] = {
        "modelId": meta.model_id or "",
        "requestId": meta.response_id or str(message.id),
    }
    events: list[tuple[str, dict[str, object]]] = [("start", start)]
    index = 0
    for part in message.parts:
        of_part = list(_part_events(index, part))
        events += of_part
        index += bool(of_part)  # an empty part carries nothing
    if meta.logprobs is not None:
        _add_logprobs(events, meta.logprobs.to_dict(), index)
    if meta.usage is not None:
        events.append(("usage", meta.usage.model_dump(mode="json")))
    events.append(_ending(message, error))
    return [
        MessageDelta(run_id, seq, kind, payload, message.timestamp)
        for seq, (kind, payload) in enumerate(events, 1)
    ]


def _add_logprobs(
    events: list[tuple[str, dict[str, object]]], logprobs: dict[str, object], index: int
) -> None:
    """Put the log probabilities of a message on its first text, or else on its first thinking.

    A message without either gets an empty text, as the stream of such an answer has one.
    """
    for kind in ("text", "thinking"):
        for known, payload in events:
            if known == kind:
                payload["logprobs"] = logprobs
                return
    events.append(("text", {"textDelta": "", "partIndex": index, "logprobs": logprobs}))
    events.append(("part_end", {"partIndex": index}))


def _part_events(index: int, part: MessagePart) -> Iterator[tuple[str, dict[str, object]]]:
    wire = cast("dict[str, object]", part.model_dump(mode="json"))
    state = {"providerState": part.provider_state} if part.provider_state is not None else {}
    if isinstance(part, TextPart | ThinkingPart):
        payload = dict(cast("dict[str, object]", wire["payload"]))
        payload["textDelta"] = payload.pop("text", "")
        if payload["textDelta"] or state or payload.get("annotations") or payload.get("redacted"):
            yield part.kind, {**payload, **state, "partIndex": index}
            yield "part_end", {"partIndex": index}
    elif isinstance(part, ToolCallPart):
        call = {"toolCallId": part.tool_call_id}
        name = {"toolName": part.tool_name, "inputFormat": part.input_format}
        yield "tool_call_start", {**call, **name, **state, "partIndex": index}
        if part.raw_args_text:
            yield "tool_call_args", {**call, "argsTextDelta": part.raw_args_text}
        yield "tool_call_end", {**call, "incomplete": part.incomplete}
    else:
        yield "part", {"partIndex": index, "part": wire}


def _ending(message: "data_types.Message", error: ModelError | None) -> _Ending:
    if error is not None:
        return _Ending("error", error_payload(error))
    meta = message.meta
    reason = meta.finish_reason
    if reason is None:
        reason = FinishReason.TOOL_CALLS if message.runnable_tool_calls else FinishReason.STOP
    payload: dict[str, object] = {"finishReason": reason.value}
    if meta.raw_finish_reason is not None:
        payload["rawFinishReason"] = meta.raw_finish_reason
    if meta.details:
        payload["details"] = meta.details
    return _Ending("done", payload)


def error_payload(error: ModelError) -> dict[str, object]:
    """Return the payload of the error delta that ends a stream with a failure."""
    payload: dict[str, object] = {
        "errorCode": error.code.value,
        "message": error.message,
        "retryable": error.retryable,
    }
    known: dict[str, object | None] = {
        "retryAfter": error.retry_after,
        "status": error.status,
        "providerCode": error.provider_code,
        "httpRequestId": error.http_request_id,
    }
    payload.update((key, value) for key, value in known.items() if value is not None)
    return payload


def encode_message(
    message: "data_types.Message | MessageAssembler",
    target: "data_types.TargetName",
    **options: Unpack[EncoderOptions],
) -> EncodedBody:
    """Write a finished message as the whole body that answers a request without streaming.

    Another protocol has no boundary between two models in one answer. It gets neither the thinking
    nor the calls before the last fallback of the provider's server.

    >>> answer = encode_message(message, "anthropic-messages")
    >>> respond(answer.status, answer.headers, answer.body)

    Args:
        message: an assistant message, or an assembler that has folded one.
        target: the protocol to write, one of `target_names()`.
        options: the options of `Encoder`.

    Raises:
        MisuseError: the message is not of an assistant, or the target has no whole bodies.
        UnknownDialectError: there is no such target.
    """
    return _body(target, _folded(message), options)


def encode_choices(
    messages: "Mapping[int, data_types.Message] | Mapping[int, MessageAssembler]",
    target: "data_types.TargetName",
    **options: Unpack[EncoderOptions],
) -> EncodedBody:
    """Write every answer of one response as one whole body (`n > 1`).

    >>> encode_choices(fold_choices(body, "openai-chat"), "gemini")

    Args:
        messages: assistant messages, or assemblers that have folded them, by the number of their
            answer.
        target: the protocol to write: `"openai-chat"`, `"gemini"` or `"gemini-array"`.
        options: the options of `Encoder`.

    Raises:
        MisuseError: there is no message, one is not of an assistant, or the target has one answer.
        UnknownDialectError: there is no such target.
    """
    if not messages:
        raise MisuseError("messages: a response has at least one answer")
    folded = {number: _folded(message) for number, message in messages.items()}
    encoded = encode_choices_body(target, folded, **options)
    if encoded is None:
        raise MisuseError(f"target: {target} has one answer in a response; use encode_message")
    return EncodedBody(*encoded)


def _folded(message: "data_types.Message | MessageAssembler") -> MessageAssembler:
    if isinstance(message, MessageAssembler):
        return message
    assembler = MessageAssembler()
    for delta in message_deltas(message):
        assembler.consume(delta)
    return assembler


def encode_error(
    error: ModelError,
    target: "data_types.TargetName",
    *,
    whole: bool = False,
    **options: Unpack[EncoderOptions],
) -> EncodedBody:
    """Write a failure as the HTTP error of a target.

    >>> answer = encode_error(error, "openai-chat")
    >>> answer.status
    429

    Args:
        error: the failure. The message of an HTTP client is replaced, because it may name the
            address of the server.
        target: the protocol to write.
        whole: whether the client waits for a whole answer. Gemini tells a blocked prompt in an
            answer with the status 200, which is a stream or one object.
        options: the options of `Encoder`.

    Raises:
        UnknownDialectError: there is no such target.
    """
    request_id = options.get("request_id") or error.http_request_id or ""
    begun = MessageDelta("error", 1, "start", {"modelId": "", "requestId": request_id})
    payload = {**error_payload(error), "message": public_message(error)}
    ended = MessageDelta("error", 2, "error", payload)
    if whole:
        assembler = MessageAssembler()
        assembler.consume(begun)
        assembler.consume(ended)
        return _body(target, assembler, options)
    encoder = Encoder(target, **options)
    encoder.feed(begun)
    body = encoder.feed(ended)
    return EncodedBody(encoder.status or 500, encoder.headers or {}, body, encoder.notes)


def transcode_response(
    body: WholeBody,
    source: "data_types.ProtocolName | Decoder | None",
    target: "data_types.TargetName",
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **options: Unpack[EncoderOptions],
) -> EncodedBody:
    """Transcode a whole response body, streamed or not, into a whole body of another protocol.

    >>> completion = transcode_response(body, "gemini", "openai-chat").json
    >>> completion["choices"][0]["message"]["content"]

    Args:
        body: the body, content encoding undone.
        source: the protocol of the body, one of `dialect_names()`; None for the one that the body
            tells; or a `Decoder` with its options, which is not fed.
        target: the protocol to write.
        status: the HTTP status of the body.
        headers: the headers of the body.
        options: the options of `Encoder`.

    Raises:
        MisuseError: the target has no whole bodies.
        UnknownDialectError: there is no such dialect or target, or the body does not tell its own.
    """
    assembler = MessageAssembler()
    if isinstance(source, Decoder):
        assembler.consume(decode_body(source, whole_body(body)))
    else:
        assembler.consume(decode_response(body, source, status=status, headers=headers))
    return _body(target, assembler, options)


def _body(
    target: "data_types.TargetName", assembler: MessageAssembler, options: EncoderOptions
) -> EncodedBody:
    encoded = encode_body(target, assembler, **options)
    if encoded is None:
        raise MisuseError(f"target: {target} has no whole bodies; encode a stream")
    return EncodedBody(*encoded)


def transcode(
    body: WholeBody,
    source: "data_types.ProtocolName | Decoder | None",
    target: "data_types.TargetName",
    **options: Unpack[EncoderOptions],
) -> bytes:
    """Transcode a recorded stream into the stream of another protocol.

    >>> transcode(recording, "openai-chat", "anthropic-messages")

    Raises:
        UnknownDialectError: there is no such dialect or target, or the body does not tell its own.
    """
    transcoder = Transcoder(source, target, **options)
    return transcoder.feed(whole_body(body)) + transcoder.close()


def transcode_chunks(
    chunks: Iterable[bytes],
    source: "data_types.ProtocolName | Decoder | Transcoder | None",
    target: "data_types.TargetName | None" = None,
    *,
    error_mapper: ErrorMapper | None = None,
    **options: Unpack[EncoderOptions],
) -> Iterator[bytes]:
    """Transcode the chunks of a response while they arrive.

    A failure of `chunks` ends the stream in the target's own error and is not raised. To know the
    status and the headers before the first bytes are sent, pass a `Transcoder`: both are decided
    when the first bytes come out.

    >>> with httpx2.stream("POST", url, json=request) as response:
    ...     for data in transcode_chunks(response.iter_bytes(), "openai-chat", "gemini"):
    ...         send(data)

    Args:
        chunks: the bytes of the source.
        source: the protocol of the bytes, None for the one that the first events tell, a `Decoder`
            with its options, or a whole `Transcoder`.
        target: the protocol to write; None only with a `Transcoder`.
        error_mapper: maps the failures of the transport; None is the default table.
        options: the options of `Encoder`.

    Raises:
        UnknownDialectError: there is no such dialect or target, or the body does not tell its own.
        MisuseError: a target or options are given beside a `Transcoder`, or neither.
    """
    return _chunks(chunks, _transcoder(source, target, options), error_mapper)


def _chunks(
    chunks: Iterable[bytes], transcoder: Transcoder, error_mapper: ErrorMapper | None
) -> Iterator[bytes]:
    try:
        for chunk in chunks:
            if data := transcoder.feed(chunk):
                yield data
    except UnknownDialectError:
        raise  # of the bytes that came: the caller names no protocol
    except Exception as failure:  # noqa: BLE001 - whatever the transport raises
        data = _failed(transcoder, failure, error_mapper)
    else:
        data = transcoder.close()
    if data:
        yield data


def atranscode_chunks(
    chunks: AsyncIterable[bytes] | Iterable[bytes],
    source: "data_types.ProtocolName | Decoder | Transcoder | None",
    target: "data_types.TargetName | None" = None,
    *,
    keep_alive: float | None = None,
    error_mapper: ErrorMapper | None = None,
    **options: Unpack[EncoderOptions],
) -> AsyncIterator[bytes]:
    """Transcode asynchronous chunks as `transcode_chunks` does.

    >>> async for data in deltafold.atranscode_chunks([body], "openai-chat", "gemini"):
    ...     print(len(data))

    Args:
        chunks: the bytes of the source.
        source: the protocol of the bytes, None for the one that the first events tell, a `Decoder`
            with its options, or a whole `Transcoder`.
        target: the protocol to write; None only with a `Transcoder`.
        keep_alive: seconds of silence after which the target's keep-alive is sent (asyncio only).
            The first one decides the status for 200. None sends none.
        error_mapper: maps the failures of the transport; None is the default table.
        options: the options of `Encoder`.

    Raises:
        UnknownDialectError: there is no such dialect or target, or the body does not tell its own.
        MisuseError: a target or options are given beside a `Transcoder`, or neither.
    """
    transcoder = _transcoder(source, target, options)
    return _async_chunks(_as_async(chunks), transcoder, keep_alive, error_mapper)


async def _async_chunks(
    chunks: AsyncIterator[bytes],
    transcoder: Transcoder,
    keep_alive: float | None,
    error_mapper: ErrorMapper | None,
) -> AsyncIterator[bytes]:
    timed = _whole_waits(chunks) if keep_alive is None else with_pauses(chunks, keep_alive)
    try:
        async for chunk in timed:
            if chunk is not None:
                data = transcoder.feed(chunk)
            else:
                data = b"" if transcoder.finished else transcoder.keep_alive()
            if data:
                yield data
    except UnknownDialectError:
        raise  # of the bytes that came: the caller names no protocol
    except Exception as failure:  # noqa: BLE001 - whatever the transport raises
        data = _failed(transcoder, failure, error_mapper)
    else:
        data = transcoder.close()
    finally:
        await timed.aclose()
    if data:
        yield data


async def _whole_waits(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes | None]:
    async for chunk in chunks:
        yield chunk


async def _as_async(chunks: AsyncIterable[bytes] | Iterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(chunks, AsyncIterable):
        async for chunk in chunks:
            yield chunk
    else:
        for chunk in chunks:
            yield chunk


def _transcoder(
    source: "data_types.ProtocolName | Decoder | Transcoder | None",
    target: "data_types.TargetName | None",
    options: EncoderOptions,
) -> Transcoder:
    if isinstance(source, Transcoder):
        if target is not None or options:
            raise MisuseError("target: a Transcoder has its own target and options")
        return source
    if target is None:
        raise MisuseError("target: name the protocol to write")
    return Transcoder(source, target, **options)


def _failed(transcoder: Transcoder, failure: Exception, error_mapper: ErrorMapper | None) -> bytes:
    fields = (error_mapper or ErrorMapper()).map(failure)
    return transcoder.fail(
        fields.code,
        well_formed(public_message_of(fields, failure)),
        fields.retryable,
        retry_after=fields.retry_after,
        status=fields.status,
        provider_code=fields.provider_code,
        http_request_id=fields.http_request_id,
    )
