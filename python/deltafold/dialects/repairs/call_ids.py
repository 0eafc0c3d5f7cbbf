"""Ids of calls while a history is repaired.

In: turns.  Out: a new id for each call without one and for each call whose id was used before.
"""

from collections.abc import Iterator, Sequence

from deltafold.dialects.repairs.pieces import Piece, Turn
from deltafold.dialects.repairs.problems import ProblemCode
from deltafold.message.messages import ToolCallPart, ToolResultPart


def renamed_calls(
    turns: Sequence[Turn], *, ids_return: bool
) -> Iterator[tuple[ProblemCode, str, str, Piece]]:
    """Give each call a unique id, and yield the problem, its text, the repair and the call.

    Args:
        turns: the turns of the history.
        ids_return: whether the id of an answered call may be that of a new call.
    """
    used = {
        piece.part.tool_call_id
        for turn in turns
        for piece in turn.pieces
        if isinstance(piece.part, ToolCallPart)
    }
    seen: set[str] = set()
    made: dict[str, int] = {}
    for turn in turns:
        for piece in turn.pieces:
            part = piece.part
            if isinstance(part, ToolResultPart) and ids_return:
                seen.discard(part.tool_call_id)
            if not isinstance(part, ToolCallPart) or piece.is_left_out:
                continue
            call_id = part.tool_call_id
            if call_id and call_id not in seen:
                seen.add(call_id)
                continue
            stem = call_id or "call"
            fresh = call_id
            while not fresh or fresh in used:
                made[stem] = made.get(stem, 1 if call_id else 0) + 1
                fresh = f"{stem}_{made[stem]}"
            used.add(fresh)
            seen.add(fresh)
            piece.call_id = fresh
            if call_id:
                code, words = ProblemCode.REUSED_CALL_ID, f"the call id {call_id!r} was used before"
                yield code, words, f"this call is {fresh!r}", piece
            else:
                yield ProblemCode.EMPTY_CALL_ID, "a call has no id", f"it is {fresh!r}", piece
