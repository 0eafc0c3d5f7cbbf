"""Facts of an event of a run as JSON, for a client that shows it.

In: an event.  Out: a mapping of JSON values, which an `Encoder` writes in its protocol.

Laws: it has what a person may see of the event: no request, no context, no traceback. The text of
a result is the one that the model gets.
Source: docs/agents.md, "Events as JSON".
"""

import json
from typing import TYPE_CHECKING, Any, Final

from deltafold._core import MAX_ARGUMENT_DEPTH, read_json
from deltafold.conversation.history.sections import to_plain_text
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest
from deltafold.conversation.tools.tools import as_text
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import FileRefPart, ImagePart, Message

if TYPE_CHECKING:
    from deltafold.conversation.agent.run_events import AgentEvent, RunResult

ACCEPTED: Final = "The answer was accepted."
"""Result of the call whose arguments are the output."""

_ADDRESSES: Final = ("http://", "https://", "data:")


def facts_of(event: "AgentEvent") -> dict[str, object]:
    """Return what an event says, as JSON values."""
    facts: dict[str, object] = {"kind": str(event.kind), "turn": event.turn}
    if event.delta is not None:
        facts["delta"] = {"kind": str(event.delta.kind), **event.delta.payload}
    if event.call is not None:
        facts |= _call(event.call)
    if event.kind == "answer" and event.message is not None:
        facts["toolCallIds"] = [call.tool_call_id for call in event.message.tool_calls]
    if event.kind == "input" and event.message is not None:
        facts |= _input(event.message)
    if event.kind == "progress":
        facts["progress"] = _json_of(event.progress)
    if event.result is not None:
        facts |= _result(event.result)
    if event.error is not None:
        facts["error"] = _failure(event.error)
    if event.kind == "retry":
        facts |= {"continues": bool(event.continues), "seconds": event.seconds}
    if event.context is not None:
        facts["tokens"] = event.context.update.tokens
    if event.defect is not None:
        facts |= {"defect": event.defect.defect, "reason": event.defect.reason}
    if event.run is not None:
        facts |= _run(event.run)
    return facts


def _call(call: ToolCallRequest) -> dict[str, object]:
    return {
        "toolCallId": call.tool_call_id,
        "toolName": call.tool_name,
        "arguments": call.raw_arguments,
    }


def _result(result: HistoryToolCallResult) -> dict[str, object]:
    text = to_plain_text(result.result.live)
    facts: dict[str, object] = {"status": str(result.status), "text": text}
    value = _object_of(text)
    if value is not None:
        facts["json"] = value
    files = [_file(attachment.part) for attachment in result.attachments]
    return facts | ({"files": files} if files else {})


def _input(said: Message) -> dict[str, object]:
    parts = (part for part in said.parts if isinstance(part, ImagePart | FileRefPart))
    files = [_file(part) for part in parts]
    return {"text": said.text} | ({"files": files} if files else {})


def _file(part: ImagePart | FileRefPart) -> dict[str, object]:
    """Return a file with its bytes or its address; a path or an id is not told."""
    facts: dict[str, object] = {"mimeType": part.mime_type or ""}
    if isinstance(part, ImagePart):
        return facts | ({"url": part.url} if part.data is None else {"data": part.data})
    is_address = part.path.startswith(_ADDRESSES)
    return facts | ({"url": part.path} if is_address else {})


def _failure(error: Exception) -> dict[str, object]:
    if isinstance(error, ModelError):
        return {"code": str(error.code), "message": error.message or str(error.code)}
    return {"code": "error", "message": str(error) or type(error).__name__}


def _run(run: "RunResult[Any]") -> dict[str, object]:
    facts: dict[str, object] = {
        "status": str(run.status),
        "reason": run.reason,
        "turns": run.turns,
        "usage": _known(run.usage.model_dump(by_alias=True, exclude={"details", "cost"})),
        "costUsd": run.cost_usd,
        "pending": [_call(call) for call in run.pending],
        "accepted": ACCEPTED,
    }
    return facts if run.error is None else facts | {"error": _failure(run.error)}


def _known(counts: dict[str, object]) -> dict[str, object]:
    return {name: count for name, count in counts.items() if isinstance(count, int)}


def _object_of(text: str) -> object:
    """Return the object or the list that a text is, None if it is another text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return read_json(text, MAX_ARGUMENT_DEPTH)
    except ValueError:
        return None


def _json_of(value: object) -> object:
    """Return a value of a tool as JSON, else as text."""
    if isinstance(value, Message):
        return value.text
    text = as_text(value)
    if isinstance(value, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
