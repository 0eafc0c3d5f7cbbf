"""Facts of the events of a run as JSON, for a client that shows them.

In: calls, results, messages and failures.  Out: JSON values, which an `Encoder` writes in its
protocol.

Laws: it has what a person may see of the event: no request, no context, no traceback. The text of
a result is the one that the model gets.
Source: docs/agents.md, "Events as JSON".
"""

import json
from typing import Final

from deltafold._core import MAX_ARGUMENT_DEPTH, read_json
from deltafold.contract.usage import Usage
from deltafold.conversation.history.sections import to_plain_text
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest
from deltafold.conversation.tools.tools import as_text
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import FileRefPart, ImagePart, Message

ACCEPTED: Final = "The answer was accepted."
"""Result of the call whose arguments are the output."""

_ADDRESSES: Final = ("http://", "https://", "data:")


def call_facts(call: ToolCallRequest) -> dict[str, object]:
    """Return what a call says."""
    return {
        "toolCallId": call.tool_call_id,
        "toolName": call.tool_name,
        "arguments": call.raw_arguments,
    }


def result_facts(result: HistoryToolCallResult) -> dict[str, object]:
    """Return what a result says: the text of the model, and its JSON value if it has one."""
    text = to_plain_text(result.result.live)
    facts: dict[str, object] = {"status": str(result.status), "text": text}
    value = _object_of(text)
    if value is not None:
        facts["json"] = value
    files = [_file(attachment.part) for attachment in result.attachments]
    return facts | ({"files": files} if files else {})


def input_facts(said: Message) -> dict[str, object]:
    """Return what a message of the user says."""
    parts = (part for part in said.parts if isinstance(part, ImagePart | FileRefPart))
    files = [_file(part) for part in parts]
    facts: dict[str, object] = {"text": said.text}
    return facts | ({"files": files} if files else {})


def _file(part: ImagePart | FileRefPart) -> dict[str, object]:
    """Return a file with its bytes or its address; a path or an id is not told."""
    facts: dict[str, object] = {"mimeType": part.mime_type or ""}
    if isinstance(part, ImagePart):
        return facts | ({"url": part.url} if part.data is None else {"data": part.data})
    is_address = part.path.startswith(_ADDRESSES)
    return facts | ({"url": part.path} if is_address else {})


def failure_facts(error: Exception) -> dict[str, object]:
    """Return the code and the message of a failure."""
    if isinstance(error, ModelError):
        return {"code": str(error.code), "message": error.message or str(error.code)}
    return {"code": "error", "message": str(error) or type(error).__name__}


def usage_facts(usage: Usage) -> dict[str, object]:
    """Return the token counts that are known."""
    counts = usage.model_dump(by_alias=True, exclude={"details", "cost"})
    return {name: count for name, count in counts.items() if isinstance(count, int)}


def _object_of(text: str) -> object:
    """Return the object or the list that a text is, None if it is another text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return read_json(text, MAX_ARGUMENT_DEPTH)
    except ValueError:
        return None


def value_facts(value: object) -> object:
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
