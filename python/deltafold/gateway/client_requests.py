"""Requests of clients: bytes become `ClientRequest`, what a client wants of which model.

In: the body of a request, and its protocol.  Out: `ClientRequest`.

Laws: a mistake of the client is a `ModelError` with status 400 that names the place. Nothing that
the client declared is dropped here: what an upstream cannot take is noted when it is rendered.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from deltafold.contract.kinds import ErrorCode
from deltafold.dialects import parse_request
from deltafold.dialects.reader import ParsedRequest
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message
from deltafold.streams.encoded import EncoderOptions

PROTOCOLS: Final = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
"""Protocols that clients may speak."""


_FORWARDED: Final[Mapping[str, tuple[str, ...]]] = {"anthropic-messages": ("anthropic-beta",)}
"""Headers that belong to the body: members of a beta are refused without its name."""

_CONVERSATION: Final = {
    "anthropic-messages": "messages",
    "gemini": "contents",
    "openai-chat": "messages",
}
"""Members that a request must have; one of Responses may continue a response without `input`."""

_REPEATED: Final[Mapping[str, object]] = {
    "background": False,
    "completed_at": None,
    "frequency_penalty": 0.0,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
"""Members of a response object that repeat the request, and their values where it is silent.

Instructions and tools are left out: agents send tens of kilobytes of them, which each of three
events would carry. Source: `ResponseResource` of the Open Responses specification.
"""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """What a client wants.

    >>> asked = read_request("openai-chat", b'{"model":"m","messages":[]}')
    >>> asked.protocol, asked.target, asked.streams
    ('openai-chat', 'openai-chat', False)

    Attributes:
        protocol: the dialect of the request.
        target: the target of the answer, one of `target_names()`.
        model_id: the name of the model as the client wrote it.
        parsed: the request.
        streams: whether the answer is streamed.
        options: options of the answer's `Encoder`.
        previous: the id of the response that the request continues, None without one.
        stores: whether the answer may be continued by its id.
        headers: headers of the request that an upstream of the same protocol gets too.
    """

    protocol: str
    target: str
    model_id: str
    parsed: ParsedRequest
    streams: bool
    options: EncoderOptions
    previous: str | None = None
    stores: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def after(self, messages: tuple[Message, ...]) -> "ClientRequest":
        """Return the request with the messages of the response that it continues before its own."""
        return replace(self, parsed=replace(self.parsed, messages=(*messages, *self.messages)))

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation."""
        return self.parsed.messages


def read_request(
    protocol: str,
    body: bytes,
    *,
    model_id: str | None = None,
    streams: bool | None = None,
    is_array: bool = False,
    is_codex: bool = False,
    headers: Mapping[str, str] | None = None,
) -> ClientRequest:
    """Read the request of a client.

    >>> asked = read_request("openai-chat", b'{"model":"m","messages":[]}')
    >>> asked.model_id, asked.streams
    ('m', False)

    Args:
        protocol: one of `PROTOCOLS`.
        body: the body of the request.
        model_id: the model, if the path names it (gemini).
        streams: whether the answer is streamed, if the path decides (gemini).
        is_array: the stream is one JSON array (gemini without `alt=sse`).
        is_codex: the client is Codex, which ends a turn at some errors only.
        headers: headers of the request; those of an allow-list are kept, by lower-case names.

    Raises:
        ModelError: the body is no request of the protocol; its status is 400.
    """
    try:
        given: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise refusal(f"the body is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise refusal(f"the body must be an object, not {type(given).__name__}")
    members = cast("dict[str, object]", given)
    conversation = _CONVERSATION.get(protocol)
    if conversation is not None and members.get(conversation) is None:
        raise refusal(f"{conversation}: the request has no conversation")
    previous = members.pop("previous_response_id", None)
    try:
        parsed = parse_request(members, protocol, model_id=model_id)
    except ValueError as error:
        raise refusal(str(error)) from error
    named = parsed.config.get("model_id")
    if not isinstance(named, str) or not named:
        raise refusal("model: the request names no model")
    streamed = bool(parsed.stream) if streams is None else streams
    options: EncoderOptions = {"model_id": named, "envelope": True, "tools": parsed.client_tools}
    if protocol == "openai-chat":
        options["include_usage"] = not streamed or _wants_usage(members)
        options["signatures"] = "reasoning_details"
    if is_codex:
        options["codex"] = True
    is_responses = protocol == "openai-responses"
    stores = is_responses and members.get("store") is not False
    if is_responses:
        known = {"previous_response_id": previous, "store": stores}
        options["response_fields"] = _repeated(members) | known
    return ClientRequest(
        protocol,
        "gemini-array" if protocol == "gemini" and is_array else protocol,
        named,
        parsed,
        streamed,
        options,
        previous if isinstance(previous, str) else None,
        stores,
        {
            name: headers[name]
            for name in _FORWARDED.get(protocol, ())
            if headers is not None and name in headers
        },
    )


def _repeated(members: Mapping[str, object]) -> dict[str, object]:
    """Return what a response object repeats of its request: all but what can be long."""
    given = {name: members.get(name) for name in _REPEATED}
    return {name: _REPEATED[name] if value is None else value for name, value in given.items()}


def _wants_usage(body: Mapping[str, object]) -> bool:
    """Return whether a Chat request asks for the chunk of usage.

    Source: "stream_options" of OpenAI's reference of Chat Completions.
    """
    options = body.get("stream_options")
    if not isinstance(options, Mapping):
        return False
    return cast("Mapping[str, object]", options).get("include_usage") is True


def refusal(
    message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST, status: int = 400
) -> ModelError:
    """Make the error of a request that is refused, which hooks may raise.

    >>> refusal("the key is unknown", ErrorCode.AUTHENTICATION, 401).status
    401
    """
    return ModelError(code=code, message=message, retryable=False, status=status)
