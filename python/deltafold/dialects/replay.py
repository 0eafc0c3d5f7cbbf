"""Parts that are sent back to a provider: the steps that all dialects share.

In: parts.  Out: the content that can be sent again.

Law: provider state is sent only to the dialect and the model that produced it; other providers
refuse it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard, TypeVar, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects.acceptance import arguments_may_be_any_text, binds_reasoning
from deltafold.dialects.media import Source, source_of
from deltafold.dialects.rendered import NoteCode, Object, Place, Rendering
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

T = TypeVar("T", bound=MessagePart)


def is_plain_text(part: MessagePart) -> TypeGuard[TextPart]:
    """Return whether a part is nothing but a text that is not empty, as most parts are."""
    return type(part) is TextPart and part.provider_state is None and bool(part.text)


def blanks_between_thinking(parts: Sequence[MessagePart]) -> set[int]:
    """Return the positions of the blank texts that stand directly between two parts of thinking."""
    return {
        place
        for place, part in enumerate(parts[1:-1], start=1)
        if isinstance(part, TextPart)
        and part.text.isspace()
        and isinstance(parts[place - 1], ThinkingPart)
        and isinstance(parts[place + 1], ThinkingPart)
    }


def unbound_message(message: Message) -> Message:
    """Return an answer without the state of reasoning that is bound to what was said before it.

    The reasoning stays, without its signature, so that the renderer notes that it is not sent.
    """
    if not any(_is_bound(part) for part in message.parts):
        return message
    parts = [
        part.model_copy(update={"provider_state": None}) if _is_bound(part) else part
        for part in message.parts
    ]
    return message.model_copy(update={"parts": parts})


def unsigned_message(message: Message) -> Message:
    """Return an answer without reasoning state and signatures, which its provider has refused."""
    parts = [_unsigned(part) for part in message.parts]
    if all(one is part for one, part in zip(parts, message.parts, strict=True)):
        return message
    return message.model_copy(update={"parts": parts})


def _unsigned(part: MessagePart) -> MessagePart:
    state = part.provider_state
    data = None if state is None else json_object(state.get("data"))
    if state is None or data is None:
        return part
    if isinstance(part, ThinkingPart):
        return part.model_copy(update={"provider_state": None})
    # The id of an item belongs to the reasoning before it.
    kept = {name: value for name, value in data.items() if name not in {"thoughtSignature", "id"}}
    if len(kept) == len(data):
        return part
    return part.model_copy(update={"provider_state": {**state, "data": kept}})


def _is_bound(part: MessagePart) -> bool:
    state = part.provider_state
    if state is None or not isinstance(part, ThinkingPart):
        return False
    return binds_reasoning(str(state.get("dialect")), str(state.get("modelId", "")))


def compact(value: object) -> str:
    """Return a value as JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def arguments_of(call: ToolCallPart, place: Place, rendering: Rendering) -> Object:
    """Return the arguments as an object; note arguments that are not an object."""
    if call.arguments is None:
        rendering.note(
            NoteCode.ARGUMENTS_DROPPED,
            f"the arguments of {call.tool_name} are not a JSON object: {call.raw_args_text!r}",
            place,
        )
    return call.arguments or {}


def argument_text(call: ToolCallPart, place: Place, rendering: Rendering) -> str:
    """Return the arguments as text: the original text if it is written as an object.

    Other text is sent to a model that accepts it, and where a parsed request had it.
    """
    is_given = rendering.state(call).get("arguments") == call.raw_args_text
    if is_given or (
        call.arguments is None
        and arguments_may_be_any_text(rendering.dialect, rendering.config.model_id)
    ):
        return call.raw_args_text
    arguments = arguments_of(call, place, rendering)
    # Nothing, null, and a string that holds an object are objects in disguise.
    is_plain = call.input_format == "json" and call.raw_args_text.lstrip().startswith("{")
    is_plain = is_plain and call.arguments is not None
    return call.raw_args_text if is_plain else json.dumps(arguments)


def result_items(result: ToolResultPart) -> list[MessagePart]:
    """Return the content of a tool result as parts; an object is its compact JSON."""
    if isinstance(result.content, list):
        return list(result.content)
    text = result.content if isinstance(result.content, str) else compact(result.content)
    return [TextPart(text=text)] if text else []


def result_text(result: ToolResultPart) -> str:
    """Return the content of a tool result as text; parts other than text are left out."""
    return joined(item.text for item in result_items(result) if isinstance(item, TextPart))


def joined(texts: Iterable[str]) -> str:
    """Join texts to one string, with a blank line between two that have no space between them."""
    said = ""
    for text in texts:
        if said and text and not (said[-1].isspace() or text[0].isspace()):
            said += "\n\n"
        said += text
    return said


def without_splits(parts: Sequence[tuple[Place, T]]) -> list[tuple[Place, T | TextPart]]:
    """Join the texts that citations split, for a dialect that does not send the citations.

    A provider splits one text where a citation begins or ends, also within a sentence.
    """
    whole: list[tuple[Place, T | TextPart]] = []
    split: list[tuple[Place, TextPart]] = []
    for place, part in parts:
        if not isinstance(part, TextPart) or part.refusal:
            whole += [*_rejoined(split), (place, part)]
            split = []
            continue
        if split and not (split[-1][1].annotations or part.annotations):
            whole += _rejoined(split)
            split = []
        split.append((place, part))
    return whole + _rejoined(split)


def _rejoined(split: Sequence[tuple[Place, TextPart]]) -> list[tuple[Place, TextPart]]:
    """Return neighbouring texts as one, with the annotations and the state of the first."""
    if len(split) <= 1:
        return list(split)
    place, first = split[0]
    return [(place, first.model_copy(update={"text": "".join(part.text for _, part in split)}))]


def result_and_media(
    result: ToolResultPart, place: Place, rendering: Rendering
) -> tuple[str, list[ImagePart | FileRefPart]]:
    """Split a tool result into its text, and the media for a following user message."""
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
    return joined(texts), media


def stand_in(part: MessagePart, place: Place, rendering: Rendering) -> str:
    """Note a part that cannot be sent at its position, and return the text that replaces it."""
    kind, block = str(part.kind), rendering.foreign_block(part)
    if block:
        kind = str(block.get("type") or next(iter(block)))
    rendering.note(NoteCode.PART_REPLACED, f"{rendering.dialect} takes no such {kind} here", place)
    if isinstance(part, ImagePart | FileRefPart):
        return source_of(part).shown
    return f"[{kind} left out: it cannot be sent here]"


def inline_text(source: Source) -> str | None:
    """Return the content of a text file under its name, None for other files."""
    if source.text is None:
        return None
    return f"[{source.name}]\n{source.text}" if source.name else source.text


def drop(part: MessagePart, place: Place, rendering: Rendering) -> None:
    """Note a part that is not sent."""
    code = NoteCode.THINKING_DROPPED if part.kind == "thinking" else NoteCode.PART_DROPPED
    reason = "carries no state of this model" if part.kind == "thinking" else "has no form"
    rendering.note(code, f"a {part.kind} part {reason} in {rendering.dialect}", place)


def note_annotations(part: TextPart, place: Place, rendering: Rendering) -> None:
    """Note annotations of a text that are not sent."""
    if part.annotations:
        rendering.note(
            NoteCode.ANNOTATIONS_DROPPED, f"{rendering.dialect} takes no such annotations", place
        )


def note_error_flag(result: ToolResultPart, place: Place, rendering: Rendering) -> None:
    """Note an error flag of a result that is not sent."""
    if result.is_error:
        rendering.note(
            NoteCode.ERROR_FLAG_DROPPED, f"{rendering.dialect} marks no result as an error", place
        )


def system_texts(
    parts: Iterable[tuple[Place, MessagePart]], rendering: Rendering
) -> list[tuple[Place, TextPart]]:
    """Return the texts of a system turn; note other parts."""
    texts: list[tuple[Place, TextPart]] = []
    for place, part in parts:
        if isinstance(part, TextPart):
            texts.append((place, part))
        else:
            drop(part, place, rendering)
    return texts


def message_members(parts: Iterable[tuple[Place, MessagePart]], rendering: Rendering) -> Object:
    """Return the unknown members of a message, which its provider wants back."""
    found: Object = {}
    for _, part in parts:
        members = rendering.state(part).get("message")
        if isinstance(members, Mapping):
            found |= cast("Mapping[str, object]", members)
    return found
