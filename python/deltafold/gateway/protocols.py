"""The registry of client protocols: one row for each protocol that clients may speak.

In: the name of a protocol.  Out: its row: paths, members of requests, headers, options of answers.

Laws: a row is data, and functions of the request's body. The name is that of a dialect, which reads
the requests, and of a target, which writes the answers. Only the endpoints that one protocol has
alone, and the lists of models, are in `app.py`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast

from deltafold.contract.names import TargetName, WrittenProtocol
from deltafold.streams.encoded import EncoderOptions

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


OnCut: TypeAlias = Literal["event", "break", "event_and_break"]
"""What a client sees of an upstream that was lost inside of a stream.

"event": an error event, and a clean end. "break": nothing but the end of the connection, inside of
the body. "event_and_break": the event, and the break 0.1 s later.
"""


def _no_options(_members: Mapping[str, object], _streams: object) -> EncoderOptions:
    """Return no options: those that all protocols have are enough."""
    return {}


_ANY: Final = re.compile(b"")


@dataclass(frozen=True, slots=True)
class ClientProtocol:
    """One row of the registry.

    Attributes:
        name: name of the dialect and of the target.
        paths: paths of the requests.
        methods: methods that the path names after the model, and whether they stream; {} if the
            body names the model, and whether it is streamed. The path has the parameter `call`.
        conversation: member that a request must have, "" without one.
        options: options of the answer's `Encoder`, from the body and whether it is streamed.
        array_target: target of a stream whose query has no `alt=sse`, "" for the usual one.
        stores: whether an answer may be continued by its id.
        in_pieces: whether clients send an answer back in the pieces of its stream.
        forwarded: headers that an upstream of the same protocol gets too; they belong to the body.
        closing: mark and bytes of the event after the one with which a stream is complete.
        failing: finds a member or a name by which clients know an event that fails a stream.
        on_cut: what a client sees of an upstream that was lost.
    """

    name: WrittenProtocol
    paths: tuple[str, ...] = ()
    methods: Mapping[str, bool] = field(default_factory=dict[str, bool])
    conversation: str = ""
    options: Callable[[Mapping[str, object], bool], EncoderOptions] = _no_options
    array_target: TargetName | Literal[""] = ""
    stores: bool = False
    in_pieces: bool = False
    forwarded: tuple[str, ...] = ()
    closing: tuple[bytes, bytes] | None = None
    failing: re.Pattern[bytes] = _ANY
    on_cut: OnCut = "event"


def _of_chat(members: Mapping[str, object], streams: bool) -> EncoderOptions:
    return {
        "include_usage": not streams or _wants_usage(members),
        "signatures": "reasoning_details",
    }


def _of_responses(members: Mapping[str, object], _streams: object) -> EncoderOptions:
    previous, stores = members.get("previous_response_id"), members.get("store") is not False
    known = {"previous_response_id": previous, "store": stores}
    return {"response_fields": _repeated(members) | known}


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


PROTOCOLS: Final[Mapping[str, ClientProtocol]] = {
    row.name: row
    for row in (
        ClientProtocol(
            "openai-chat",
            ("/v1/chat/completions",),
            conversation="messages",
            options=_of_chat,
            closing=(b"[DONE]", b"data: [DONE]\n\n"),
            # `_streaming.py` of openai-python 3.54 knows an error by its member alone.
            failing=re.compile(rb'"(?:error|choices)"\s*:|\[DONE\]'),
        ),
        # A request may continue a response without `input`.
        ClientProtocol(
            "openai-responses",
            ("/v1/responses",),
            options=_of_responses,
            stores=True,
            failing=re.compile(rb'"error"\s*:|"type"\s*:\s*"(?:error"|response\.)'),
        ),
        ClientProtocol(
            "anthropic-messages",
            ("/v1/messages",),
            conversation="messages",
            # Members of a beta are refused without its name.
            forwarded=("anthropic-beta",),
            closing=(b"message_stop", b'event: message_stop\ndata: {"type":"message_stop"}\n\n'),
            # `_streaming.py` of anthropic-python 2.12 skips an event without a name.
            failing=re.compile(rb"(?:^|[\r\n])event: ?(?:error|message_)"),
        ),
        ClientProtocol(
            "gemini",
            # google-genai 3 calls version v1, earlier ones v1beta.
            ("/v1/models/{call:path}", "/v1beta/models/{call:path}"),
            {"generateContent": False, "streamGenerateContent": True},
            conversation="contents",
            array_target="gemini-array",
            in_pieces=True,
        ),
    )
}
"""Protocols that clients may speak, by name."""


def protocol_of(name: str) -> ClientProtocol:
    """Return the row of a protocol; a dialect or a target without one has no peculiarities."""
    return PROTOCOLS.get(name) or ClientProtocol(cast("WrittenProtocol", name))
