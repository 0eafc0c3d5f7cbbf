"""Reasoning whose following item is not sent: the provider refuses it.

In: the parts of a turn, and the item after it.  Out: the parts that can be sent.

Law: an id binds reasoning to the item that it led to. Encrypted reasoning needs no id.
Source: OpenAI's error "Item 'rs_…' of type 'reasoning' was provided without its required following
item"; recordings, in which answers without an id follow reasoning without an id.
"""

from collections.abc import Mapping, Sequence

from deltafold.contract.kinds import json_object
from deltafold.contract.names import RequestProtocol
from deltafold.dialects.acceptance import answer_needs_its_id
from deltafold.dialects.model_names import is_state_of
from deltafold.dialects.repairs.left_out_media import stand_in
from deltafold.dialects.repairs.pieces import Piece, Turn, follows
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    MessagePart,
    ProviderPart,
    TextPart,
    ThinkingPart,
)


def followers(
    speakers: Sequence[Turn], dialect: RequestProtocol, model_id: str | None
) -> list[MessagePart | None]:
    """Return, for each of neighbouring turns, the first item of the provider in a later one."""
    found: list[MessagePart | None] = []
    following: MessagePart | None = None
    for turn in reversed(speakers):
        found.append(following)
        sent = (
            (piece, _as_sent(piece.part, dialect, model_id))
            for piece in turn.pieces
            if not piece.is_left_out
        )
        items = (part for piece, part in sent if follows(part) and not _is_foreign(piece, dialect))
        following = next(items, following)
    return found[::-1]


def with_followers(
    parts: Sequence[MessagePart],
    following: MessagePart | None,
    *,
    dialect: RequestProtocol,
    model_id: str | None,
) -> list[MessagePart]:
    """Return the parts without the reasoning that no item follows.

    Encrypted reasoning before an answer that lost its id goes back without an id too: only an id
    binds it to the answer.

    Args:
        parts: the parts of a turn.
        following: the first item after the turn, before anyone else speaks.
        dialect: the dialect of the request.
        model_id: the model that gets the request, None if it is unknown.
    """
    needs_id = answer_needs_its_id(dialect, model_id)
    kept: list[MessagePart] = []
    for part in reversed(parts):
        if isinstance(part, ThinkingPart):
            if following is None:
                continue
            if needs_id and _item(part).get("id") and _lost_id(following, dialect, model_id):
                unbound = _without_id(part)
                kept += [] if unbound is None else [unbound]
                continue
        elif follows(part):
            following = part
        kept.append(part)
    return kept[::-1]


def _as_sent(part: MessagePart, dialect: RequestProtocol, model_id: str | None) -> MessagePart:
    """Return the text that stands for a file which is not sent, any other part as it is."""
    if not isinstance(part, ImagePart | FileRefPart):
        return part
    instead = stand_in(part, dialect, model_id)
    return part if instead is None else instead.text


def _without_id(part: ThinkingPart) -> ThinkingPart | None:
    """Return encrypted reasoning without its id, None if it is not encrypted."""
    item = _item(part)
    if not item.get("encrypted_content"):
        return None
    rest = {name: value for name, value in item.items() if name != "id"}
    state = {**(part.provider_state or {}), "data": rest}
    return part.model_copy(update={"provider_state": state})


def _is_foreign(piece: Piece, dialect: RequestProtocol) -> bool:
    return isinstance(piece.part, ProviderPart) and piece.part.dialect != dialect


def _item(part: MessagePart) -> Mapping[str, object]:
    """Return the members of the provider's item that a part was."""
    return json_object((part.provider_state or {}).get("data")) or {}


def _lost_id(part: MessagePart, dialect: RequestProtocol, model_id: str | None) -> bool:
    """Return whether an answer is sent without the id of its item, as the renderer does it."""
    if isinstance(part, ProviderPart):
        return part.dialect != dialect
    if not isinstance(part, TextPart):
        return False
    state, item = part.provider_state or {}, _item(part)
    is_own = state.get("dialect") == dialect and (model_id is None or is_state_of(state, model_id))
    return not is_own or not item.get("id") or item.get("status") == "in_progress"
