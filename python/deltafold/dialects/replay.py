"""What all dialects ask of a part before they send it back.

In: parts.  Out: what can be said of them again.

Law: provider state goes back only to the dialect and the model that it came from; everybody else
refuses it.
"""

import json
from collections.abc import Iterable, Mapping
from typing import cast

from deltafold.dialects.media import Source, source_of
from deltafold.dialects.rendered import NoteCode, Object, Place, Rendering
from deltafold.messages import (
    FileRefPart,
    ImagePart,
    MessagePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def compact(value: object) -> str:
    """Return a value as JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def arguments_of(call: ToolCallPart, place: Place, rendering: Rendering) -> Object:
    """Return the arguments as an object, noting when what the model wrote is none."""
    if call.arguments is None:
        rendering.note(
            NoteCode.ARGUMENTS_DROPPED,
            f"the arguments of {call.tool_name} are no object: {call.raw_args_text!r}",
            place,
        )
    return call.arguments or {}


def argument_text(call: ToolCallPart, place: Place, rendering: Rendering) -> str:
    """Return the arguments as text: as it came, where that is an object and looks like one."""
    arguments = arguments_of(call, place, rendering)
    # Nothing, null, and a string that holds an object are objects in disguise.
    is_plain = call.arguments is not None and call.raw_args_text.lstrip().startswith("{")
    return call.raw_args_text if is_plain else json.dumps(arguments)


def result_items(result: ToolResultPart) -> list[MessagePart]:
    """Return the content of a tool result as parts; an object is its compact JSON."""
    if isinstance(result.content, list):
        return list(result.content)
    text = result.content if isinstance(result.content, str) else compact(result.content)
    return [TextPart(text=text)] if text else []


def result_text(result: ToolResultPart, place: Place, rendering: Rendering) -> str:
    """Return the content of a tool result as text alone, noting what is none."""
    texts = [
        item.text if isinstance(item, TextPart) else stand_in(item, place, rendering)
        for item in result_items(result)
    ]
    return "".join(texts)


def result_and_media(
    result: ToolResultPart, place: Place, rendering: Rendering
) -> tuple[str, list[ImagePart | FileRefPart]]:
    """Split a tool result into text, and what a following user message must carry."""
    texts: list[str] = []
    media: list[ImagePart | FileRefPart] = []
    for item in result_items(result):
        if isinstance(item, ImagePart | FileRefPart):
            rendering.note(
                NoteCode.PART_MOVED,
                f"a tool result takes no {item.kind}: it follows in a user message",
                place,
            )
            media.append(item)
        else:
            text = item.text if isinstance(item, TextPart) else stand_in(item, place, rendering)
            texts.append(text)
    if media and not any(texts):
        texts.append("[the result follows in the next user message]")
    return "".join(texts), media


def stand_in(part: MessagePart, place: Place, rendering: Rendering) -> str:
    """Return the text that stands for a part that cannot go where it is."""
    rendering.note(
        NoteCode.PART_REPLACED, f"{rendering.dialect} takes no such {part.kind} here", place
    )
    if isinstance(part, ImagePart | FileRefPart):
        return source_of(part).shown
    return f"[{part.kind} left out: it cannot be sent here]"


def inline_text(source: Source) -> str | None:
    """Return a text file as text under its name, None where it is no text file."""
    if source.text is None:
        return None
    return f"[{source.name}]\n{source.text}" if source.name else source.text


def drop(part: MessagePart, place: Place, rendering: Rendering) -> None:
    """Note that a part of the model's own is not said."""
    code = NoteCode.THINKING_DROPPED if part.kind == "thinking" else NoteCode.PART_DROPPED
    reason = "carries no state of this model" if part.kind == "thinking" else "has no form"
    rendering.note(code, f"a {part.kind} part {reason} in {rendering.dialect}", place)


def note_annotations(part: TextPart, place: Place, rendering: Rendering) -> None:
    """Note that what annotates a text does not go with it."""
    if part.annotations:
        rendering.note(
            NoteCode.ANNOTATIONS_DROPPED, f"{rendering.dialect} takes no such annotations", place
        )


def note_error_flag(result: ToolResultPart, place: Place, rendering: Rendering) -> None:
    """Note that a result does not say that it is an error."""
    if result.is_error:
        rendering.note(
            NoteCode.ERROR_FLAG_DROPPED, f"{rendering.dialect} marks no result as an error", place
        )


def system_texts(
    parts: Iterable[tuple[Place, MessagePart]], rendering: Rendering
) -> list[tuple[Place, TextPart]]:
    """Return the texts of a system turn, noting what is no text."""
    texts: list[tuple[Place, TextPart]] = []
    for place, part in parts:
        if isinstance(part, TextPart):
            texts.append((place, part))
        else:
            drop(part, place, rendering)
    return texts


def message_members(parts: Iterable[tuple[Place, MessagePart]], rendering: Rendering) -> Object:
    """Return what else of a message its provider wants back: members unknown here."""
    found: Object = {}
    for _, part in parts:
        members = rendering.state(part).get("message")
        if isinstance(members, Mapping):
            found |= cast("Mapping[str, object]", members)
    return found
