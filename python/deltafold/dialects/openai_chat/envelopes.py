"""Envelopes in an assistant's message of the Chat form.

In: a message.  Out: the message without envelopes, and the envelopes.

Law: entries of the lists that are not envelopes stay where they are.
Source: `rust/core/src/encode/openai_chat/states.rs`, which writes them.
"""

from typing import Final, Literal, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects.envelopes import Envelope
from deltafold.dialects.reader import Reader
from deltafold.dialects.rendered import Object

_LISTS: Final = ("reasoning_details", "thinking_blocks")
_OPAQUE: Final = ("signature", "data")
"""Members of an entry that hold an opaque text."""


def unsealed(reader: Reader, message: Object, place: str) -> tuple[Object, list[Envelope]]:
    """Return a message without the envelopes in its lists and its `extra_content`, and these."""
    rest = dict(message)
    found = reader.all_opened(google_signature(message), f"{place}.extra_content")
    if found:
        del rest["extra_content"]
    for name in _LISTS:
        entries = message.get(name)
        if not isinstance(entries, list):
            continue
        kept: list[object] = []
        for entry in cast("list[object]", entries):
            opened = _in_entry(reader, entry, f"{place}.{name}")
            found += opened
            kept += [] if opened else [entry]
        if kept:
            rest[name] = kept
        else:
            del rest[name]
    return rest, found


def _in_entry(reader: Reader, entry: object, place: str) -> list[Envelope]:
    members = json_object(entry) or {}
    return [
        envelope
        for member in _OPAQUE
        for envelope in reader.all_opened(members.get(member), f"{place}.{member}")
    ]


def google_signature(members: Object) -> object:
    """Return `extra_content.google.thought_signature` of a message or a call."""
    extra = json_object(members.get("extra_content")) or {}
    return (json_object(extra.get("google")) or {}).get("thought_signature")


def of_kind(envelopes: list[Envelope], kind: Literal["text", "thinking"]) -> list[Envelope]:
    """Return the envelopes of texts or those of pieces of reasoning; others belong to calls.

    A stream writes the state of a piece again where it changed after the end of the piece, as that
    of a Responses message does: the last one counts.
    """
    last: dict[object, Envelope] = {}
    for number, envelope in enumerate(envelopes):
        of = "thinking" if envelope.span is None else envelope.span.kind
        if envelope.tool_call_id is None and of == kind:
            last[_piece(envelope) or number] = envelope
    return list(last.values())


def _piece(envelope: Envelope) -> tuple[object, ...]:
    """Return what the envelopes of one piece have in common; nothing if they cannot tell.

    Several pieces without text begin at one position, so that only the id of an item tells them
    apart.
    """
    span, state = envelope.span, envelope.state or {}
    if span is None or span.start < span.end:
        return () if span is None else span
    item_id = cast("Object", state.get("data", {})).get("id")
    return (*span, state["dialect"], item_id) if isinstance(item_id, str) else ()
