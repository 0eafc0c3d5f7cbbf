"""Lines that show a message to a person: its parts, then the finish reason, the usage, warnings.

In: a message.  Out: lines of text, with all of its content.

Law: a name and a warning have no line of their own; texts have theirs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping

from deltafold.contract.foreign_text import printable
from deltafold.contract.usage import Usage
from deltafold.message.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart


def lines_of(
    parts: Iterable[MessagePart],
    not_runnable: Mapping[str, str],
    finish_reason: str | None,
    usage: Usage | None,
    warnings: Iterable[Mapping[str, object]],
) -> Iterator[str]:
    """Yield the lines of a message; `not_runnable` has the reason by the id of a call."""
    for part in parts:
        match part:
            case TextPart():
                yield f"{'refusal' if part.refusal else 'text'}: {part.text}"
            case ThinkingPart():
                yield f"thinking: {'(redacted)' if part.redacted else part.text}"
            case ToolCallPart():
                shown = _arguments(part, not_runnable.get(part.tool_call_id))
                yield printable(f"tool call {part.tool_name} ({part.tool_call_id}): ") + shown
            case _:
                yield f"{part.kind}: {part.model_dump_json()}"
    if finish_reason is not None:
        yield f"finish reason: {finish_reason}"
    if usage is not None:
        counts = usage.model_dump(exclude={"details"})
        known = ", ".join(
            f"{name} {value}"
            for name, value in counts.items()
            if value is not None and name != "details"
        )
        yield f"usage: {known}"
    for warning in warnings:
        yield printable(f"warning {warning.get('code')}: {warning.get('message')}")


def _arguments(call: ToolCallPart, why_not_runnable: str | None) -> str:
    shown = call.raw_args_text
    if call.arguments is not None:
        shown = json.dumps(call.arguments, ensure_ascii=False)
    return shown if why_not_runnable is None else f"{shown} (not runnable: {why_not_runnable})"
