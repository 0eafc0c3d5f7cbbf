"""Envelopes: provider state of another dialect in the opaque fields of a client's request.

In: opaque texts of a request, such as signatures.  Out: the state that an encoder wrote there.

Laws: only a text that is an envelope as a whole is opened; any other text stays the client's own.
The state of an envelope belongs to the dialect and the model in it. An envelope of a newer version
is recognised and has no state.
Source: `rust/core/src/encode/state.rs`, which writes them.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects.rendered import Object
from deltafold.message.messages import MessagePart, TextPart, ThinkingPart, ToolCallPart

VERSION: Final = 1

_MARK: Final = "eyJkZWx0YWZvbGQi"
"""Base64 of `{"deltafold"`, with which each envelope begins."""

_ONE_OR_MORE: Final = re.compile(f"(?={_MARK})")

_STANDARD: Final = str.maketrans("-_", "+/")

_MOST_CHARACTERS: Final = 1 << 26

_OF_REQUESTS: Final = frozenset({"absent", "block", "item", "members", "message", "reasoning"})
"""Members of a state that only the parser of a request writes. No envelope has them: they replace
whole blocks of a request."""


class Span(NamedTuple):
    """Piece of the text or the reasoning of a message: positions of its first and last character.

    The last position is exclusive.
    """

    kind: Literal["text", "thinking"]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Envelope:
    """An opened envelope.

    Attributes:
        state: the provider state; None for a part without one, and in a newer version.
        redacted: whether the provider withholds the reasoning.
        tool_call_id: id of the call that the state belongs to, if its place cannot tell.
        span: piece of the message that the state belongs to, if its place cannot tell.
    """

    state: Object | None
    redacted: bool = False
    tool_call_id: str | None = None
    span: Span | None = None

    @property
    def is_unreadable(self) -> bool:
        """Whether a newer version wrote the envelope."""
        return self.state is None and self.span is None

    def thinking(self, text: str) -> ThinkingPart:
        """Return the piece of reasoning that has this state."""
        is_redacted = self.redacted and self.state is not None
        return ThinkingPart(text=text, redacted=is_redacted, provider_state=self.state)

    def carried(self, text: str) -> "Item":
        """Return the reasoning in whose place the envelope is.

        Returns the envelope itself if its part is elsewhere, or if nothing is left of the place.
        """
        is_empty = not text and self.state is None
        return self if is_empty or self.tool_call_id is not None else self.thinking(text)


Item: TypeAlias = MessagePart | Envelope
"""A part, or an envelope whose part is elsewhere in the message."""


def open_envelope(text: object) -> Envelope | None:
    """Open an envelope; return None for any other value.

    >>> text = base64.b64encode(
    ...     b'{"deltafold":1,"dialect":"gemini","modelId":"m","data":{}}'
    ... )
    >>> open_envelope(text.decode()).state
    {'dialect': 'gemini', 'data': {}, 'modelId': 'm'}
    """
    members = _members(text)
    version = members.get("deltafold")
    if type(version) is not int or version < VERSION:
        return None
    return _opened(members) if version == VERSION else Envelope(None)


def _members(text: object) -> Mapping[str, object]:
    if not isinstance(text, str) or not text.startswith(_MARK) or len(text) > _MOST_CHARACTERS:
        return {}
    try:
        # Gemini's Python client writes every opaque text in the other alphabet.
        standard = text.translate(_STANDARD)
        return json_object(_json(base64.b64decode(standard, validate=True).decode())) or {}
    except (ValueError, RecursionError):
        return {}


def _opened(members: Mapping[str, object]) -> Envelope | None:
    dialect, model_id, data = members.get("dialect"), members.get("modelId"), members.get("data")
    span = _span(members)
    if set(members) == {"deltafold", "text"}:
        return Envelope(None, span=span) if span is not None else None
    if not isinstance(dialect, str) or not isinstance(model_id, str) or not isinstance(data, dict):
        return None
    if not dialect or data.keys() & _OF_REQUESTS:
        return None
    state: Object = {"dialect": dialect, "data": cast("Object", data)}
    # Without a known model, the state goes to every model of the dialect.
    state |= {"modelId": model_id} if model_id else {}
    call_id = members.get("toolCallId")
    return Envelope(
        state,
        redacted=members.get("redacted") is True,
        tool_call_id=call_id if isinstance(call_id, str) else None,
        span=span,
    )


def open_envelopes(text: object) -> list[Envelope]:
    """Open one or more envelopes; return an empty list for any other value.

    Clients join the texts of one opaque field.
    """
    if not isinstance(text, str) or not text.startswith(_MARK):
        return []
    opened = [open_envelope(piece) for piece in _ONE_OR_MORE.split(text) if piece]
    found = [envelope for envelope in opened if envelope is not None]
    return found if len(found) == len(opened) else []


def _json(text: str) -> object:
    found: object = json.loads(text, parse_constant=_refuse)
    if "\\u" in text:
        # A lone surrogate can be escaped in JSON; no request can hold it.
        json.dumps(found, ensure_ascii=False).encode()
    return found


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def _span(members: Mapping[str, object]) -> Span | None:
    kinds: tuple[Literal["text", "thinking"], ...] = ("text", "thinking")
    for kind in kinds:
        value = members.get(kind)
        if not isinstance(value, list):
            continue
        match cast("list[object]", value):
            case [int() as start, int() as end] if 0 <= start <= end:
                return Span(kind, start, end)
            case _:
                continue
    return None


def joined(items: Sequence[Item]) -> list[MessagePart]:
    """Return the parts of a message; each call has the state from its envelope."""
    states = {
        item.tool_call_id: item.state
        for item in items
        if isinstance(item, Envelope) and item.state is not None
    }
    return [_with_state(item, states) for item in items if not isinstance(item, Envelope)]


def _with_state(part: MessagePart, states: dict[str | None, Object]) -> MessagePart:
    if not isinstance(part, ToolCallPart) or part.tool_call_id not in states:
        return part
    return part.model_copy(update={"provider_state": states[part.tool_call_id]})


def pieces(
    text: str, envelopes: Sequence[Envelope], kind: Literal["text", "thinking"]
) -> Iterator[tuple[str, Envelope | None]]:
    """Yield the pieces of a joined text, each with its envelope, None for a piece without one.

    Blank lines between two pieces of reasoning are left out. If the client changed the text, the
    first envelope has all of it.
    """
    spans = [envelope.span for envelope in envelopes]
    ends = [(span.start, span.end) for span in spans if span is not None and span.kind == kind]
    between = _between(text, ends, "\n\n" if kind == "thinking" else "")
    if len(ends) < len(envelopes) or between is None:
        yield text, envelopes[0]
        yield from (("", envelope) for envelope in envelopes[1:])
        return
    for envelope, (start, end), before in zip(envelopes, ends, between, strict=False):
        if before:
            yield before, None
        yield text[start:end], envelope
    if between[-1]:
        yield between[-1], None


def _between(text: str, ends: Sequence[tuple[int, int]], separator: str) -> list[str] | None:
    """Return the texts around the pieces, without separators; None if one is not in the text."""
    found: list[str] = []
    position = 0
    for start, end in [*ends, (len(text), len(text))]:
        if not position <= start <= len(text):
            return None
        gap = text[position:start]
        if gap and position > 0:
            if not gap.startswith(separator):
                return None
            gap = gap.removeprefix(separator) or separator
        if gap and start < end:
            if not gap.endswith(separator):
                return None
            gap = gap.removesuffix(separator)
        found.append(gap)
        position = end
    return found


def is_piece(part: MessagePart, kind: str) -> bool:
    """Return whether a part is text of a kind without a signature; Gemini marks each thought."""
    state = part.provider_state
    return part.kind == kind and (state is None or state["data"] == {"thought": True})


def rejoined(items: Sequence[Item]) -> list[MessagePart]:
    """Return the parts of a message; an envelope has the state of the text before it.

    Gemini's clients keep each piece of a stream as a part, and a signature as a part without text.
    """
    whole: list[MessagePart] = []
    for item in items:
        if isinstance(item, Envelope):
            whole.append(_with_texts(item, whole))
        else:
            whole.append(item)
    return whole


def _with_texts(envelope: Envelope, whole: list[MessagePart]) -> MessagePart:
    """Take the text of an envelope from the end of the parts, and return the part of both."""
    span = envelope.span or Span("text", 0, 0)
    missing = span.end - span.start
    taken: list[str] = []
    while missing > 0 and whole and is_piece(whole[-1], span.kind):
        last = cast("TextPart | ThinkingPart", whole.pop())
        taken.append(last.text[-missing:])
        if len(last.text) > missing:
            whole.append(last.model_copy(update={"text": last.text[:-missing]}))
        missing -= len(last.text)
    text = "".join(reversed(taken))
    if span.kind == "thinking":
        return envelope.thinking(text)
    return TextPart(text=text, provider_state=envelope.state)
