"""Agreement: whether an entry still has the contents of the message of which it was made.

In: entries.  Out: their messages, if the contents are the same.

Law: the fields of an entry take precedence over its message. `dataclasses.replace` may have changed
them, and models are shown the change.
"""

from collections.abc import Sequence

from deltafold.conversation.history.entries import (
    HistoryEntry,
    InstructionEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ToolResultsEntry,
)
from deltafold.conversation.history.frozen import kept_message
from deltafold.conversation.history.sections import LevelOfDetailSections, without_live_screen
from deltafold.conversation.history.tool_calls import (
    ContextAttachment,
    HistoryToolCallResult,
    status_of,
)
from deltafold.dialects.replay import result_items, result_text
from deltafold.message.fallbacks import served_calls
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    TextPart,
    ToolResultPart,
)


def own_message(entry: ModelInputEntry | ModelOutputEntry | InstructionEntry) -> Message | None:
    """Return the message of an entry itself, None if the contents of the entry differ."""
    return kept_message(entry) if agrees(entry) else None


def agrees(entry: HistoryEntry) -> bool:
    """Return whether an entry has the contents of its message."""
    message = kept_message(entry)
    if message is None:
        return False
    match entry:
        case ModelInputEntry():
            return _says(entry.content_sections, message.text) and _shows(
                entry.attachments, message.parts
            )
        case ModelOutputEntry():
            return _has_contents(entry, message)
        case InstructionEntry():
            return entry.instruction == message.text
        case ToolResultsEntry():
            parts = [part for part in message.parts if isinstance(part, ToolResultPart)]
            return len(parts) == len(entry.results) and all(
                result.tool_call_id == part.tool_call_id and agrees_with(result, part)
                for result, part in zip(entry.results, parts, strict=True)
            )
        case _:
            return True  # the entry has nothing but its message


def agrees_with(result: HistoryToolCallResult, part: ToolResultPart) -> bool:
    """Return whether a result has the contents of a part of the recorded message."""
    if result.status is not status_of(part):
        return False
    if isinstance(part.content, str):
        return not result.attachments and _says(result.result, part.content)
    return _says(result.result, result_text(part)) and _shows(
        result.attachments, result_items(part)
    )


def _has_contents(entry: ModelOutputEntry, message: Message) -> bool:
    if [*entry.contents] != [part.text for part in message.parts if isinstance(part, TextPart)]:
        return False
    calls = served_calls(message)
    return len(calls) == len(entry.tool_calls) and all(
        own.tool_call_id == call.tool_call_id
        and own.tool_name == call.tool_name
        and own.raw_arguments == call.raw_args_text
        for own, call in zip(entry.tool_calls, calls, strict=True)
    )


def _says(sections: LevelOfDetailSections, text: str) -> bool:
    """Return whether the live level is one text, apart from the live screen."""
    live = without_live_screen(sections.live)[0]
    return len(live) == 1 and live[0] == ("", text)


def _shows(attachments: Sequence[ContextAttachment], parts: Sequence[MessagePart]) -> bool:
    media = [part for part in parts if isinstance(part, ImagePart | FileRefPart)]
    return [attachment.part for attachment in attachments] == media
