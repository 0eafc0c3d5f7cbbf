"""Requests of clients: bytes become `ClientRequest`, what a client wants of which model.

In: the body of a request, and its protocol.  Out: `ClientRequest`.

Laws: a mistake of the client is a `ModelError` with status 400 that names the place. Nothing that
the client declared is dropped here: what an upstream cannot take is noted when it is rendered.
"""

import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from deltafold.contract.names import TargetName, WrittenProtocol
from deltafold.dialects import DIALECTS, parse_request
from deltafold.dialects.reader import ParsedRequest
from deltafold.dialects.recent import Recent
from deltafold.dialects.rendered import Object
from deltafold.dialects.stencils import (
    OutlinedMessages,
    item_of,
    new_mark,
    outline_of,
    with_item,
)
from deltafold.errors.model_error import ModelError
from deltafold.gateway.protocols import protocol_of
from deltafold.gateway.refusals import reading, refusal
from deltafold.gateway.request_limits import RequestLimits
from deltafold.message.messages import Message
from deltafold.streams.encoded import EncoderOptions

_PREVIOUS: Final = "previous_response_id"
"""Member of a request that continues a response."""


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
        owner: who may continue the answer: "owner:" and the name that `on_connect` returned, else a
            digest of the client's key, or "" for a client without one.
    """

    protocol: WrittenProtocol
    target: TargetName
    model_id: str
    parsed: ParsedRequest
    streams: bool
    options: EncoderOptions
    previous: str | None = None
    stores: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    owner: str = ""

    def passed(self) -> "ClientRequest":
        """Return the request of an answer that has the upstream's id, because its bytes pass."""
        options = self.options.copy()
        options.pop("response_id", None)
        return replace(self, options=options)

    def after(self, messages: Sequence[Message]) -> "ClientRequest":
        """Return the request with the messages of the response that it continues before its own."""
        return replace(self, parsed=replace(self.parsed, messages=(*messages, *self.messages)))

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation. That of a long request is read when somebody looks at it."""
        return self.parsed.messages


def read_request(
    protocol: WrittenProtocol,
    body: bytes,
    *,
    model_id: str | None = None,
    streams: bool | None = None,
    is_array: bool = False,
    is_codex: bool = False,
    headers: Mapping[str, str] | None = None,
    limits: RequestLimits | None = None,
    owner: str = "",
    is_shared: bool = False,
) -> ClientRequest:
    """Read the request of a client.

    >>> asked = read_request("openai-chat", b'{"model":"m","messages":[]}')
    >>> asked.model_id, asked.streams
    ('m', False)

    Args:
        protocol: a name of `protocols.py`.
        body: the body of the request.
        model_id: the model, if the path names it (gemini).
        streams: whether the answer is streamed, if the path decides (gemini).
        is_array: the stream is one JSON array (gemini without `alt=sse`).
        is_codex: the client is Codex, which ends a turn at some errors only.
        headers: headers of the request; those of an allow-list are kept, by lower-case names.
        limits: the most that the request may have.
        owner: who may continue the answer.
        is_shared: whether requests that differ in their messages alone have the same settings and
            tools, which nobody changes.

    Raises:
        ModelError: the body is no request of the protocol, its status is 400; or it has more than
            it may, its status is 413.
    """
    bounds = limits or RequestLimits()
    way = _Reading(protocol, model_id, streams, is_array, is_codex, bounds, owner)
    asked = _outlined(body, way, is_shared=is_shared) or way.request(body)
    row = protocol_of(protocol)
    options = asked.options.copy()
    if row.stores:
        # An upstream's id may be short, constant or known to others.
        options["response_id"] = f"resp_{secrets.token_hex(24)}"
    given = headers or {}
    kept = {name: given[name] for name in row.forwarded if name in given}
    return replace(asked, options=options, headers=kept, owner=owner)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Options of reading a body; the fields are those of `read_request`.

    The owner is one of them, so that no owner finds a value that was kept for another.
    """

    protocol: WrittenProtocol
    model_id: str | None
    streams: bool | None
    is_array: bool
    is_codex: bool
    limits: RequestLimits
    owner: str

    def request(self, body: bytes) -> ClientRequest:
        """Read a request, without what belongs to its client."""
        members = self._members(body)
        row = protocol_of(self.protocol)
        if row.conversation and members.get(row.conversation) is None:
            raise refusal(f"{row.conversation}: the request has no conversation")
        self.limits.check(members)
        parsed = self._parsed(members)
        names = Counter(tool.name for tool in parsed.tools)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise refusal(f"tools: two tools have the name {twice[0]!r}")
        named = parsed.config.get("model_id")
        if not isinstance(named, str) or not named:
            raise refusal("model: the request names no model")
        streamed = bool(parsed.stream) if self.streams is None else self.streams
        options: EncoderOptions = {
            "model_id": named,
            "envelope": True,
            "tools": parsed.client_tools,
        }
        with reading(self.protocol):
            options |= row.options(members, streamed)
        if self.is_codex:
            options["codex"] = True
        previous = members.get(_PREVIOUS)
        return ClientRequest(
            self.protocol,
            (self.is_array and row.array_target) or self.protocol,
            named,
            parsed,
            streamed,
            options,
            previous if isinstance(previous, str) else None,
            row.stores and members.get("store") is not False,
        )

    def messages(self, body: bytes) -> tuple[Message, ...]:
        """Read the messages of a request."""
        return tuple(self._parsed(self._members(body)).messages)

    def _members(self, body: bytes) -> dict[str, object]:
        try:
            given: object = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise refusal(f"the body is not JSON: {error}") from error
        if not isinstance(given, dict):
            raise refusal(f"the body must be an object, not {type(given).__name__}")
        return cast("dict[str, object]", given)

    def _parsed(self, members: Mapping[str, object]) -> ParsedRequest:
        own = {name: value for name, value in members.items() if name != _PREVIOUS}
        with reading(self.protocol):
            return parse_request(own, self.protocol, model_id=self.model_id)


_ALIKE: Final = Recent[ClientRequest](most=256, most_bytes=16 << 20)
"""Requests without their messages, which have settings and tools."""

_LEVELS: Final = 100
"""Levels that a plain message may have, more than its arguments may."""


def _outlined(body: bytes, way: _Reading, *, is_shared: bool) -> ClientRequest | None:
    """Return a request whose messages are read when somebody looks at one, None without rounds."""
    row = DIALECTS.get(way.protocol)
    rows = None if row is None else row.plain_rows
    outline = None if rows is None else outline_of(body, rows)
    if row is None or outline is None:
        return None
    limits, (messages, parts) = way.limits, outline.sizes
    if messages > limits.messages or parts > limits.parts or limits.depth < _LEVELS:
        return None
    key = (way, outline.key)
    asked = _ALIKE.find(key) if is_shared and outline.is_whole else None
    if asked is None:
        sample = outline.sample(None, new_mark())
        if sample is None:
            return None
        body, places, _ = sample
        rest = replace(
            limits,
            messages=limits.messages - messages + len(places),
            parts=limits.parts - parts,
        )
        try:
            asked = replace(way, limits=rest).request(body)
        except ModelError:  # the error of the request itself has the right places
            return None
        notes = _at_places(asked.parsed.notes, row.history[0], [place for place, _ in places])
        asked = replace(asked, parsed=replace(asked.parsed, notes=notes))
        if is_shared and outline.is_whole:
            _ALIKE.keep(key, asked, len(outline.key) + len(body))
    outlined = OutlinedMessages(outline, way.messages, way)
    parsed = replace(asked.parsed, messages=outlined, config=dict(asked.parsed.config))
    return replace(asked, parsed=parsed)


def _at_places(notes: Sequence[Object], history: str, places: Sequence[int]) -> tuple[Object, ...]:
    """Return the notes about a sample with the places of its request.

    Parsers note a place only for messages that are not plain. A sample has all of these.
    """
    items = ((note, item_of(note, history)) for note in notes)
    return tuple(note if item is None else with_item(note, places[item]) for note, item in items)


def request_without_model(protocol: WrittenProtocol, owner: str) -> ClientRequest:
    """Return the request that hooks are given for a list of models."""
    parsed = ParsedRequest(protocol, (), (), {}, None, ())
    return ClientRequest(protocol, protocol, "", parsed, streams=False, options={}, owner=owner)
