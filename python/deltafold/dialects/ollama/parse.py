"""The body of Ollama's chat to messages; the mirror of `render.py`.

Law: a call without an id gets one, and the oldest unanswered call of a name is the one that a
result answers.
Source: docs/protocols/ollama.md#stream, docs/protocols/ollama.md#request.
"""

from functools import partial
from typing import Final

from deltafold.dialects.ollama.settings import SETTINGS
from deltafold.dialects.openai_chat.parse import ChatForms, read_calls, read_chat
from deltafold.dialects.reader import (
    Names,
    Reader,
    as_object,
    is_below_zero,
    text,
    thinking_of,
    words,
)
from deltafold.dialects.rendered import Object
from deltafold.message.messages import (
    ContentPart,
    ImagePart,
    MessagePart,
    Role,
    TextPart,
    ToolResultPart,
)

# The first characters of each type's magic number, in base64.
_IMAGE_TYPES: Final = {
    "iVBORw": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}


def read_body(reader: Reader) -> None:
    """Read a request body."""
    names = Names(reader.body)
    forms = ChatForms(
        assistant=partial(_read_assistant, reader, names),
        result=partial(_result, reader, names),
        contents=lambda message, _place: _contents(message),
        members=frozenset({"role", "content", "images"}),
    )
    read_chat(reader, forms)
    _read_options(reader)


def _read_options(reader: Reader) -> None:
    if reader.body.get("format") == "":  # Ollama's own client writes it for "no format".
        del reader.body["format"]
    options = as_object(reader.body.pop("options", None) or {}, "options")
    # -1 does not limit the tokens, and -2 fills the context.
    is_number = not is_below_zero(options.get("num_predict"))
    other = None if is_number else options.pop("num_predict")
    reader.take_within(SETTINGS, "options", options)
    if other is not None:
        options["num_predict"] = other
    if options:
        reader.config["options"] = options


def _contents(message: Object) -> list[TextPart | ImagePart]:
    contents: list[TextPart | ImagePart] = []
    if message.get("content"):
        contents.append(TextPart(text=text(message["content"], "content")))
    for encoded in words(message.get("images"), "images"):
        kinds = (kind for start, kind in _IMAGE_TYPES.items() if encoded.startswith(start))
        contents.append(ImagePart(mime_type=next(kinds, "image/*"), data=encoded))
    return contents


def _read_assistant(reader: Reader, names: Names, message: Object, place: str) -> None:
    known = {"role", "content", "thinking", "tool_calls"}
    extras = reader.unknown(message, known, place)
    parts: list[MessagePart] = []
    if message.get("thinking"):
        parts.append(thinking_of(str(message["thinking"]), None))
    if message.get("content"):
        parts.append(TextPart(text=text(message["content"], f"{place}.content")))
    # The API has no type of a call, but clients with the habits of Chat write one.
    parts.extend(read_calls(reader, message, place, names.call, kept=("type",)))
    reader.say(Role.ASSISTANT, parts, extras)


def _result(reader: Reader, names: Names, message: Object, place: str) -> ToolResultPart:
    known = {"role", "content", "images", "tool_name", "tool_call_id"}
    extras = reader.unknown(message, known, place)
    contents: list[ContentPart] = [*_contents(message)]
    has_images = any(isinstance(part, ImagePart) for part in contents)
    name = str(message.get("tool_name", ""))
    return ToolResultPart(
        tool_call_id=names.result(name, message.get("tool_call_id")),
        content=contents if has_images else str(message.get("content") or ""),
        provider_state=reader.extras(
            extras, *(() if message.get("tool_call_id") else ("tool_call_id",))
        ),
    )
