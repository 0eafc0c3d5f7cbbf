"""A message as something to read or to pipe on.

In: a message.  Out: text.  The demo shows its messages through `lines_of` too.
"""

import json
from collections.abc import Iterator

from deltafold.cli.screen import printable
from deltafold.messages import Message, TextPart, ThinkingPart, ToolCallPart


def as_json(message: Message) -> str:
    """Return the message in its wire form, indented."""
    return json.dumps(message.to_dict(), ensure_ascii=False, indent=2)


def as_text(message: Message, *, for_terminal: bool = False) -> str:
    """Return the parts of the message, then the finish reason and the usage.

    Args:
        message: the message.
        for_terminal: leave out control characters, which a terminal would obey.
    """
    text = "\n".join(lines_of(message))
    return printable(text) if for_terminal else text


def lines_of(message: Message) -> Iterator[str]:
    """Yield the lines of a report about a message."""
    for part in message.parts:
        match part:
            case TextPart():
                yield f"{'refusal' if part.refusal else 'text'}: {part.text}"
            case ThinkingPart():
                yield f"thinking: {'(redacted)' if part.redacted else part.text}"
            case ToolCallPart():
                yield f"tool call {part.tool_name} ({part.tool_call_id}): {_arguments(part)}"
            case _:
                yield f"{part.kind}: {part.model_dump_json()}"
    meta = message.meta
    if meta.finish_reason is not None:
        yield f"finish reason: {meta.finish_reason}"
    if meta.usage is not None:
        counts = meta.usage.model_dump(exclude={"details"})
        known = ", ".join(
            f"{name} {value}"
            for name, value in counts.items()
            if value is not None and name != "details"
        )
        yield f"usage: {known}"
    for warning in meta.warnings:
        yield f"warning {warning.get('code')}: {warning.get('message')}"


def _arguments(call: ToolCallPart) -> str:
    if call.incomplete:
        return f"{call.raw_args_text} (incomplete, not runnable)"
    if call.parse_error is not None:
        return f"{call.raw_args_text} (not runnable: {call.parse_error})"
    return json.dumps(call.arguments, ensure_ascii=False)
