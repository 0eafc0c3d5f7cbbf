"""Tools that the provider runs: uses whose result never came, and results without their use.

In: the pieces of a history.  Out: the pieces that the provider refuses, each with its defect.

Laws: a result may come in a later message of the same turn of the assistant: behind a pause, or
behind the results of the caller's own tools, which the waiting tool needs. A message of the user
ends the turn; text beside results does not. A use in a turn that has not ended is no defect: the
provider runs the tool when the history is sent. Items of Responses have no result of their own;
their status says whether they ended.
Source: Anthropic's pages "Server tools" and "Programmatic tool calling"; AWS's page on Nova's
tools; the item types of openai-python 3.54, which has `incomplete` and `failed` as states of items
that a request may contain (read 2026-11).
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from deltafold.contract.kinds import json_object
from deltafold.dialects.repairs.pieces import Piece, Turn
from deltafold.message.messages import ProviderPart, Role, TextPart, ToolCallPart, ToolResultPart

_Side: TypeAlias = tuple[Literal["use", "result"], str, object]
"""Which side of a pair a block is, what pairs it with the other side, and the name of the tool."""

_RUNNING: Final = frozenset({"in_progress", "searching", "interpreting", "generating", "calling"})
"""States of an item that has not ended."""

_OUTPUTS: Final = ("result", "results", "output", "outputs")
"""Members that hold the output of an item; an image is "generating" although it has come."""


def mark_unpaired(turns: Sequence[Turn], dialect: str) -> set[str]:
    """Set `defect` of each block of a server tool without its other side.

    Returns:
        The ids of these blocks, which calls may name as their caller.
    """
    if dialect == "openai-responses":
        _mark_running(turns)
    elif dialect in _SIDES:
        _mark_pairs(turns, dialect)
    else:
        return set()
    return {
        str(piece.part.block.get("id"))
        for turn in turns
        for piece in turn.pieces
        if piece.defect is not None and isinstance(piece.part, ProviderPart)
    }


def without_caller(call: ToolCallPart, removed: Container[str]) -> dict[str, object]:
    """Return the change of a call that names one of the removed blocks as its caller."""
    state = call.provider_state
    data = None if state is None else json_object(state.get("data"))
    if state is None or data is None or not _is_called_by(data, removed):
        return {}
    kept = {name: value for name, value in data.items() if name != "caller"}
    return {"provider_state": {**state, "data": kept} if kept else None}


def block_without_caller(part: ProviderPart, removed: Container[str]) -> ProviderPart:
    """Return a block without the caller that it names if that is one of the removed blocks."""
    if not _is_called_by(part.block, removed):
        return part
    kept = {name: value for name, value in part.block.items() if name != "caller"}
    return part.model_copy(update={"block": kept})


def _is_called_by(members: Mapping[str, object], removed: Container[str]) -> bool:
    caller = json_object(members.get("caller"))
    return caller is not None and str(caller.get("tool_id")) in removed


def _mark_pairs(turns: Sequence[Turn], dialect: str) -> None:
    waiting: dict[str, list[tuple[Piece, object]]] = {}
    before = Role.USER
    for turn in turns:
        if _is_said(turn) and before is not Role.TOOL:
            _refuse_uses(waiting)
            waiting = {}
        if turn.role is not Role.SYSTEM:
            before = turn.role
        if turn.role is not Role.ASSISTANT:
            continue
        for piece, (kind, key, name) in _sides(turn, dialect):
            if kind == "use":
                waiting.setdefault(key, []).append((piece, name))
            elif key not in waiting:
                piece.defect = "a result of a server tool follows no use of it"
            elif waiting[key]:
                waiting[key].pop()


def _sides(turn: Turn, dialect: str) -> Iterator[tuple[Piece, _Side]]:
    """Yield the blocks of server tools of an answer."""
    for piece in turn.pieces:
        part = piece.part
        if isinstance(part, ProviderPart) and part.dialect == dialect:
            side = _SIDES[dialect](part.block)
            if side is not None:
                yield piece, side


def _is_said(turn: Turn) -> bool:
    """Return whether the turn is the user's and says something."""
    if turn.role is not Role.USER:
        return False
    parts = [piece.part for piece in turn.pieces]
    return any(not isinstance(part, TextPart) or part.text.strip() for part in parts)


def _refuse_uses(waiting: Mapping[str, Sequence[tuple[Piece, object]]]) -> None:
    for pieces in waiting.values():
        for piece, name in pieces:
            # The renderer leaves out the uses before a boundary that have no result.
            if not piece.is_before_fallback:
                piece.defect = f"the server tool {name} has no result"


def _of_anthropic(block: Mapping[str, object]) -> _Side | None:
    kind = str(block.get("type"))
    if kind in {"server_tool_use", "mcp_tool_use"}:
        return "use", str(block.get("id")), block.get("name")
    if kind.endswith("_tool_result"):
        return "result", str(block.get("tool_use_id")), kind
    return None


def _of_bedrock(block: Mapping[str, object]) -> _Side | None:
    use, result = json_object(block.get("toolUse")), json_object(block.get("toolResult"))
    if use is not None:
        return "use", str(use.get("toolUseId")), use.get("name")
    if result is not None:
        return "result", str(result.get("toolUseId")), result.get("type")
    return None


def _of_gemini(block: Mapping[str, object]) -> _Side | None:
    # Code has an id in newer answers only, and may have several results.
    if json_object(block.get("executableCode")) is not None:
        return "use", "code", "code_execution"
    if json_object(block.get("codeExecutionResult")) is not None:
        return "result", "code", "code_execution"
    use, result = json_object(block.get("toolCall")), json_object(block.get("toolResponse"))
    if use is not None:
        return "use", str(use.get("id")), use.get("toolType")
    if result is not None:
        return "result", str(result.get("id")), result.get("toolType")
    return None


_SIDES: Final[Mapping[str, Callable[[Mapping[str, object]], _Side | None]]] = {
    "anthropic-messages": _of_anthropic,
    "bedrock-converse": _of_bedrock,
    "gemini": _of_gemini,
}


def _mark_running(turns: Sequence[Turn]) -> None:
    answered = set(_answered(turns))
    for turn in turns:
        for piece in turn.pieces:
            part = piece.part
            if not isinstance(part, ProviderPart) or part.dialect != "openai-responses":
                continue
            item, status = part.block, part.block.get("status")
            kind = str(item.get("type"))
            if str(status) not in _RUNNING or not kind.endswith("_call"):
                continue
            is_answered = part.awaits_caller and str(item.get("call_id")) in answered
            if not is_answered and not any(item.get(name) for name in _OUTPUTS):
                piece.defect = f"the {kind} has not ended, it is {status!r}"


def _answered(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the ids of the calls that have an output."""
    for turn in turns:
        for piece in turn.pieces:
            part = piece.part
            if isinstance(part, ToolResultPart):
                yield part.tool_call_id
            state = json_object((part.provider_state or {}).get("data")) or {}
            item = part.block if isinstance(part, ProviderPart) else json_object(state.get("item"))
            if item is not None and str(item.get("type")).endswith("_output"):
                yield str(item.get("call_id"))
