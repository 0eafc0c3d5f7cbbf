"""Renderer of request bodies of Amazon Bedrock's Converse.

Laws: `system` is separate from the turns. Speakers alternate. The results of all calls of a turn go
into the next user message, before all other blocks. Blank text is dropped. Bytes are base64 text,
which is their form in JSON, and bytes for boto3 (`with_bytes`). The path names the model.
Source: the Converse reference (read 2026-11); the service model of botocore for formats, patterns
and lengths; docs/protocols/bedrock-converse.md#request.
"""

import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, cast
from urllib.parse import quote

from deltafold.dialects import replay
from deltafold.dialects.acceptance import assistant_may_begin
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.bedrock_converse.settings import SETTINGS, BedrockConverseConfig
from deltafold.dialects.media import Source, source_of
from deltafold.dialects.rendered import Identifiers, NoteCode, Object, Place, Rendering, given
from deltafold.dialects.turns import (
    OPENING,
    Turn,
    alternating,
    late_systems_as_user,
    leading_system,
    turns_of,
)
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.specs.tool_specs import ToolSpec

DIALECT: Final = "bedrock-converse"

EMPTY_RESULT: Final = "(no output)"
BESIDE_DOCUMENT: Final = "(see the document)"
"""Text beside a document without any other text; Converse requires a text block."""

MAX_CACHE_MARKS: Final = 4

IMAGE_FORMATS: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
VIDEO_FORMATS: Final = {
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/mpeg": "mpeg",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
DOCUMENT_FORMATS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
TOOL_CHOICES: Final = {"auto": "auto", "required": "any"}


def request_path(config: BedrockConverseConfig, *, stream: bool) -> str:
    """Return the path below the vendor's address."""
    call = "converse-stream" if stream else "converse"
    return f"/model/{quote(config.model_id, safe='')}/{call}"


IDENTIFIERS: Final = Identifiers(
    tool_names=partial(Aliases.of_names, "[a-zA-Z0-9_-]{1,64}", 64),
    call_ids=partial(Aliases.of_ids, "[a-zA-Z0-9_.:-]{1,64}"),
)


_BLOBS: Final = frozenset({"bytes", "redactedContent"})
_OF_TOOLS: Final = frozenset({"input", "json"})
"""Members with JSON of the caller's tools, in which no member is the API's."""


def with_bytes(body: Object) -> Object:
    """Return a body whose blobs are bytes, as boto3 takes them; it encodes a text once more."""
    return {name: _with_bytes(name, value) for name, value in body.items()}


def _with_bytes(name: str, value: object) -> object:
    if isinstance(value, list):
        return [_with_bytes("", item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        members = cast("Object", value)
        return members if name in _OF_TOOLS else with_bytes(members)
    if name not in _BLOBS or not isinstance(value, str):
        return value
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except binascii.Error:  # the service says what it does not take
        return value


def body_of(rendering: Rendering, config: BedrockConverseConfig) -> Object:
    """Return the request body; the path alone states whether the response is streamed."""
    turns = late_systems_as_user(turns_of(rendering, answers_after_run=True), rendering)
    body: Object = {"messages": _Turns(rendering).render(turns)}
    body |= given(
        {
            "system": _system(turns, rendering) or None,
            "toolConfig": _tool_config(turns, rendering),
        }
    )
    body |= rendering.settings(SETTINGS)
    cache = config.cache_config
    if cache is not None and cache.strategy == "auto":
        _mark(body, given({"type": "default", "ttl": cache.lifetime}))
    _limit_cache_marks(body, rendering)
    return body


def _system(turns: Sequence[Turn], rendering: Rendering) -> list[Object]:
    blocks: list[Object] = []
    for _, part in leading_system(turns, rendering):
        block = rendering.block_of(part)
        if block is not None:
            blocks.append(block)
        elif part.text.strip():
            blocks.append({"text": part.text})
    return blocks


def _tool_config(turns: Sequence[Turn], rendering: Rendering) -> Object | None:
    choice = rendering.unlimited_tool_choice()
    called = {
        part.tool_name: None
        for turn in turns
        for _, part in turn.parts
        if isinstance(part, ToolCallPart)
    }
    if choice is not None and choice.mode == "none":
        rendering.note(NoteCode.SETTING_DROPPED, "bedrock-converse has no tool_choice none")
        if not called:
            return None
        choice = None
    rendered = rendering.tool_list(_tool)
    if not rendered:
        # Converse refuses tool blocks in the history of a request without tools.
        for name in called:
            rendering.note(NoteCode.TOOL_ADDED, f"{name} was called before: it is declared again")
        rendered = [_tool(ToolSpec(name=name or "unnamed"), rendering) for name in called]
    if not rendered:
        return None
    tool_config: Object = {"tools": rendered}
    if choice is not None and choice.name is not None:
        tool_config["toolChoice"] = {"tool": {"name": rendering.tool_names.of(choice.name)}}
    elif choice is not None:
        tool_config["toolChoice"] = {TOOL_CHOICES[choice.mode]: {}}
    return tool_config


def _tool(tool: ToolSpec, rendering: Rendering) -> Object:
    rendered = given(
        {
            "name": rendering.tool_names.of(tool.name),
            "description": tool.description or None,
            "inputSchema": {"json": tool.parameter_schema},
            "strict": tool.strict,
        }
    )
    return {"toolSpec": rendered | rendering.tool_members(tool)}


class _Turns:
    """The messages, and the names of the documents in them."""

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering
        self._documents: set[str] = set()

    def render(self, turns: Sequence[Turn]) -> list[Object]:
        rendering = self._rendering
        may_begin = assistant_may_begin(DIALECT, rendering.model_id)
        opening = None if may_begin else Object(text=OPENING)
        spoken = alternating(turns, self._blocks, rendering, opening=opening)
        for speech in spoken:
            blocks = speech.blocks
            if any("document" in block for block in blocks) and not any(
                "text" in block for block in blocks
            ):
                rendering.note(NoteCode.EMPTY_FILLED, "a document needs a text beside it")
                blocks.append({"text": BESIDE_DOCUMENT})
            # A server tool's result stays after its call, in the answer.
            if speech.role == "user":
                blocks.sort(key=lambda block: "toolResult" not in block)
        return [
            {"role": speech.role, "content": speech.blocks, **speech.members} for speech in spoken
        ]

    def _blocks(self, item: tuple[Place, MessagePart], turn: Turn) -> list[Object]:
        """Render one part as one block; return no block if the API has no form for it."""
        place, part = item
        block = self._block(part, place)
        if turn.role is Role.ASSISTANT and isinstance(part, FileRefPart):
            replay.drop(part, place, self._rendering)
            block = None
        return [] if block is None else [block]

    def _block(self, part: MessagePart, place: Place) -> Object | None:
        rendered = self._rendering.block_of(part)
        if rendered is not None:
            return rendered
        match part:
            case TextPart():
                replay.note_annotations(part, place, self._rendering)
                return {"text": part.text} if part.text.strip() else None
            case ThinkingPart():
                rendered = _reasoning(part, self._rendering.state(part))
            case ToolCallPart():
                rendered = self._use(part, place)
            case ToolResultPart():
                rendered = self._result(part, place)
            case ImagePart() | FileRefPart():
                rendered = self._media(part, place)
            case ProviderPart():
                rendered = dict(part.block) if part.dialect == DIALECT else None
        if rendered is None:
            replay.drop(part, place, self._rendering)
        return rendered

    def _use(self, call: ToolCallPart, place: Place) -> Object:
        use: Object = {
            "toolUseId": self._rendering.call_ids.of(call.tool_call_id),
            "name": self._rendering.tool_names.of(call.tool_name),
            "input": replay.arguments_of(call, place, self._rendering),
        }
        return {"toolUse": self._rendering.as_given(call, use)}

    def _media(self, part: ImagePart | FileRefPart, place: Place) -> Object:
        source = source_of(part)
        location = _location(source)
        kind = source.mime_type or ""
        for member, formats in (("image", IMAGE_FORMATS), ("video", VIDEO_FORMATS)):
            if location is not None and kind in formats:
                return {member: {"format": formats[kind], "source": location}}
        if location is not None and kind in DOCUMENT_FORMATS:
            name = self._name(source.name or "document")
            document: Object = {"format": DOCUMENT_FORMATS[kind], "name": name, "source": location}
            return {"document": document}
        return {"text": replay.stand_in(part, place, self._rendering)}

    def _name(self, name: str) -> str:
        """Return a name for a document that Converse takes and that no other one has.

        Letters, digits, single white space, hyphens, parentheses and brackets; a recording shows
        that underscores are accepted too.
        """
        stem = re.sub(r"[^a-zA-Z0-9_()\[\]-]+", " ", name).strip() or "document"
        chosen, number = stem, 1
        while chosen in self._documents:
            number += 1
            chosen = f"{stem} ({number})"
        self._documents.add(chosen)
        return chosen

    def _result(self, result: ToolResultPart, place: Place) -> Object:
        contents: list[Object] = []
        if isinstance(result.content, dict):
            contents.append({"json": result.content})
        else:
            for item in replay.result_items(result):
                if not isinstance(item, ProviderPart) or item.dialect == DIALECT:
                    block = self._block(item, place)
                else:
                    text = replay.stand_in(item, place, self._rendering)
                    block = Object(text=text)
                if block is not None:
                    contents.append(block)
        if not contents:
            self._rendering.note(NoteCode.EMPTY_FILLED, "a tool result needs a text", place)
            contents.append({"text": EMPTY_RESULT})
        rendered: Object = {
            "toolUseId": self._rendering.call_ids.of(result.tool_call_id),
            "content": contents,
        }
        # Success is the default, and some models take no status at all.
        if result.is_error:
            rendered["status"] = "error"
        return {"toolResult": self._rendering.as_given(result, rendered)}


def _reasoning(part: ThinkingPart, state: Mapping[str, object]) -> Object | None:
    if part.redacted and "redactedContent" in state:
        return {"reasoningContent": {"redactedContent": state["redactedContent"]}}
    if part.redacted or "signature" not in state:
        return None
    said: Object = {"text": part.text, "signature": state["signature"]}
    return {"reasoningContent": {"reasoningText": said}}


def _location(source: Source) -> Object | None:
    if source.kind == "data":
        return {"bytes": source.value}
    if source.kind == "uri" and source.value.startswith("s3://"):
        return {"s3Location": {"uri": source.value}}
    return None


def _marked_lists(body: Object) -> Iterator[list[Object]]:
    """Yield the lists that can hold cache marks, in the order in which the prompt is read."""
    yield cast("list[Object]", cast("Object", body.get("toolConfig", {})).get("tools", []))
    yield cast("list[Object]", body.get("system", []))
    for message in cast("list[Object]", body["messages"]):
        yield cast("list[Object]", message["content"])


def _mark(body: Object, mark: Object) -> None:
    """Mark the constant prefix of the prompt: tools, system prompt, conversation so far."""
    *_, last = _marked_lists(body)
    for blocks in [*list(_marked_lists(body))[:2], last]:
        if blocks and "cachePoint" not in blocks[-1]:
            blocks.append({"cachePoint": mark})


def _limit_cache_marks(body: Object, rendering: Rendering) -> None:
    """Keep the last four marks. Reduce a lifetime that exceeds the lifetime of a mark before it."""
    lists = list(_marked_lists(body))
    marks = [block for blocks in lists for block in blocks if "cachePoint" in block]
    excess = len(marks) - MAX_CACHE_MARKS
    is_short = False
    for blocks in lists:
        kept: list[Object] = []
        for block in blocks:
            if not isinstance(block.get("cachePoint"), dict):
                kept.append(block)
                continue
            if excess > 0:
                excess -= 1
                rendering.note(
                    NoteCode.CACHE_MARK_DROPPED, f"more than {MAX_CACHE_MARKS} cache marks"
                )
                continue
            mark = cast("Object", block["cachePoint"])
            if mark.get("ttl", "5m") == "5m":
                is_short = True
            elif is_short:
                mark = {**mark, "ttl": "5m"}
                rendering.note(
                    NoteCode.CACHE_MARK_LOWERED, "a mark of 1h cannot follow one of 5m: it is of 5m"
                )
            kept.append({"cachePoint": mark})
        blocks[:] = kept
