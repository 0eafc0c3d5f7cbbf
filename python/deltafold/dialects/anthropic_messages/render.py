"""Renderer of request bodies of Anthropic's Messages API.

Laws: `system` is separate from the turns, and a later system message never changes it. Neighbouring
turns of one speaker are one message. The results of all calls of a turn go into one user message,
before any text. Thinking is sent back with its signature or dropped, unless the vendor binds
thinking to tools instead. Blank text is dropped, but not between two blocks of thinking. A body has
at most four cache marks, and no mark lives longer than a mark before it.
Source: the Messages API reference (read 2026-11); docs/protocols/anthropic-messages.md#request,
docs/protocols/anthropic-messages.md#replay.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, cast

from deltafold.dialects import replay
from deltafold.dialects.acceptance import assistant_may_begin, takes_late_system
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.anthropic_messages.settings import SETTINGS, AnthropicConfig
from deltafold.dialects.media import source_of
from deltafold.dialects.model_fit import model_to_fit
from deltafold.dialects.model_table import default_max_tokens
from deltafold.dialects.rendered import (
    IN_BLOCK,
    Identifiers,
    NoteCode,
    Object,
    Place,
    Rendering,
    given,
)
from deltafold.dialects.turns import (
    OPENING,
    Speech,
    Turn,
    alternating,
    blocks_as_user,
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

DIALECT: Final = "anthropic-messages"

MAX_CACHE_MARKS: Final = 4
_UNMARKED: Final = {"thinking", "redacted_thinking"}
"""Types of the blocks that cannot have a cache mark."""

_DATA_TYPES: Final = {"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"}
"""MIME types of images and documents whose data the API takes."""

# Citations that the API takes back; annotations of other providers have other types.
_CITATION_TYPES = frozenset(
    {
        "char_location",
        "page_location",
        "content_block_location",
        "web_search_result_location",
        "search_result_location",
    }
)
OF_CALLS: Final = ("caller", "toolset_name")
"""Members of a call that belong to the API and not to the model that wrote them: the server-side
program that made the call, and the toolset of the tool (types of anthropic 2.14, read 2026-11)."""

_OF_RESULTS: Final = ("toolset_name",)
"""Those of them that the result of the call repeats."""

TOOL_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}


IDENTIFIERS: Final = Identifiers(
    tool_names=partial(Aliases.of_names, "[a-zA-Z0-9_-]{1,128}", 128),
    call_ids=partial(Aliases.of_ids, "[a-zA-Z0-9_-]+"),
)


def body_of(rendering: Rendering, config: AnthropicConfig) -> Object:
    """Return the request body."""
    # A model without system messages between the turns gets their tools in the list.
    repeats = not takes_late_system(config.known_as or config.model_id, was_given=True)
    if repeats:
        rendering.without_withdrawn()
    turns = _with_systems_in_place(turns_of(rendering, answers_after_run=True), rendering)
    messages = _messages(turns, rendering)
    body: Object = {
        "model": config.model_id,
        "max_tokens": config.max_tokens,
        "messages": messages,
        "stream": rendering.stream,
    }
    if config.max_tokens is None:
        known = model_to_fit(config, DIALECT)
        body["max_tokens"] = default_max_tokens(known, stream=rendering.stream)
    body |= given(
        {
            "system": _system(turns, rendering) or None,
            "tools": rendering.tool_list(_tool, repeats=repeats) or None,
            "tool_choice": _tool_choice(config, rendering),
        }
    )
    body |= rendering.settings(SETTINGS)
    cache = config.cache_config
    if cache is not None and cache.strategy == "auto":
        body["cache_control"] = given({"type": "ephemeral", "ttl": cache.lifetime})
    _move_marks_of_blanks(body, rendering)
    _limit_cache_marks(body, rendering)
    return body


def _tool(tool: ToolSpec, rendering: Rendering) -> Object:
    rendered = given(
        {
            "name": rendering.tool_names.of(tool.name),
            "description": tool.description,
            "input_schema": tool.parameter_schema,
            "strict": tool.strict,
        }
    )
    return rendered | rendering.tool_members(tool)


def _tool_choice(config: AnthropicConfig, rendering: Rendering) -> Object | None:
    choice = rendering.unlimited_tool_choice()
    is_parallel = rendering.of_tools("parallel_tool_calls", config.parallel_tool_calls)
    if choice is None and is_parallel is None:
        return None
    mode = "auto" if choice is None else choice.mode
    rendered: Object = {"type": TOOL_CHOICES.get(mode, "tool")}
    if choice is not None and choice.name is not None:
        rendered["name"] = rendering.tool_names.of(choice.name)
    if is_parallel is not None and mode != "none":
        rendered["disable_parallel_tool_use"] = not is_parallel
    return rendered


def _system(turns: Sequence[Turn], rendering: Rendering) -> list[Object]:
    return [
        block
        for place, part in leading_system(turns, rendering)
        if (block := _text(part, place, rendering)) is not None
    ]


def _with_systems_in_place(turns: Sequence[Turn], rendering: Rendering) -> list[Turn]:
    """Put the late system turns where the model takes them, else make texts of the user of them.

    A model takes them behind the user's turn, before the assistant's or at the end.
    """
    placed: list[Turn] = []
    waiting: list[Turn] = []
    speaker: Role | None = None
    for turn in turns:
        if turn.role is Role.SYSTEM and speaker is not None and _takes_system(turn, rendering):
            waiting.append(dataclasses.replace(turn, in_place=speaker is not Role.ASSISTANT))
            continue
        if turn.role is Role.ASSISTANT:
            placed += waiting
            waiting = []
        elif waiting:
            _note_moved(waiting, rendering)
            waiting = [dataclasses.replace(one, in_place=True) for one in waiting]
        speaker = speaker if turn.role is Role.SYSTEM else turn.role
        placed.append(turn)
    return late_systems_as_user([*placed, *waiting], rendering)


def _note_moved(turns: Sequence[Turn], rendering: Rendering) -> None:
    for turn in turns:
        if turn.parts and not turn.in_place:
            place = turn.parts[0][0]
            rendering.note(NoteCode.SYSTEM_MOVED, "a system message moves behind the user's", place)


def _takes_system(turn: Turn, rendering: Rendering) -> bool:
    was_given = "role" in replay.message_members(turn.parts, rendering)
    name = rendering.config.known_as or rendering.model_id
    return takes_late_system(name, was_given=was_given)


def _messages(turns: Sequence[Turn], rendering: Rendering) -> list[Object]:
    kept = _kept_blanks(turns, rendering)
    may_begin = assistant_may_begin(DIALECT, rendering.config.known_as or rendering.model_id)
    spoken = alternating(
        turns,
        lambda item, turn: (
            _blank(item[1]) if item[0] in kept else _blocks_of(item, turn, rendering)
        ),
        rendering,
        opening=None if may_begin else {"type": "text", "text": OPENING},
    )
    # A turn of which nothing is sent may take the neighbour of a system message away.
    for place in range(len(spoken) - 1, -1, -1):
        before = spoken[place - 1].role if place else None
        after = spoken[place + 1].role if place + 1 < len(spoken) else "assistant"
        if spoken[place].role == "system" and (before, after) != ("user", "assistant"):
            rendering.note(NoteCode.SYSTEM_AS_USER, "a system message has no turn of the user")
            spoken[place] = Speech("user", blocks_as_user(spoken[place].blocks))
            spoken[place - 1 : place + 2] = _joined(spoken[max(place - 1, 0) : place + 2])
    if spoken and spoken[-1].role == "assistant" and not rendering.is_excerpt:
        _trim(spoken[-1].blocks)
    return [
        {"role": speech.role, "content": _results_first(speech.blocks), **speech.members}
        for speech in spoken
    ]


def _kept_blanks(turns: Sequence[Turn], rendering: Rendering) -> set[Place]:
    """Return the places of the blank texts that part two blocks of thinking."""
    kept: set[Place] = set()
    for turn in turns:
        if turn.role is not Role.ASSISTANT:
            continue
        parts = [part for _, part in turn.parts]
        for place in replay.blanks_between_thinking(parts):
            beside = (parts[place - 1], parts[place + 1])
            if all(_is_signed(one, rendering) for one in beside):
                kept.add(turn.parts[place][0])
    return kept


def _is_signed(part: MessagePart, rendering: Rendering) -> bool:
    state = rendering.state(part)
    return isinstance(part, ThinkingPart) and ("data" if part.redacted else "signature") in state


def _blank(part: MessagePart) -> list[Object]:
    return [{"type": "text", "text": part.text}] if isinstance(part, TextPart) else []


def _joined(spoken: Sequence[Speech]) -> list[Speech]:
    """Join neighbours of one role."""
    joined: list[Speech] = []
    for speech in spoken:
        if joined and joined[-1].role == speech.role:
            joined[-1].blocks.extend(speech.blocks)
            joined[-1].members |= speech.members
        else:
            joined.append(speech)
    return joined


def _results_first(blocks: list[Object]) -> list[Object]:
    return sorted(blocks, key=lambda block: block.get("type") != "tool_result")


def _trim(blocks: list[Object]) -> None:
    """Take white space from the end of an answer that is to be continued: the API refuses it."""
    last = blocks[-1]
    if last.get("type") == "text":
        last["text"] = str(last["text"]).rstrip()


def _blocks_of(item: tuple[Place, MessagePart], turn: Turn, rendering: Rendering) -> list[Object]:
    place, part = item
    if turn.role is Role.SYSTEM and not isinstance(part, TextPart):
        replay.drop(part, place, rendering)
        return []
    blocks = part_blocks(item, turn.role, rendering)
    if turn.role is Role.ASSISTANT and item is turn.parts[0] and _lacks_thinking(turn, rendering):
        return [{"type": "thinking", "thinking": _placeholder(rendering)}, *blocks]
    return blocks


def _placeholder(rendering: Rendering) -> str | None:
    return cast("AnthropicConfig", rendering.config).reasoning_placeholder


def _lacks_thinking(turn: Turn, rendering: Rendering) -> bool:
    """Return whether the vendor refuses a turn without thinking, and the turn has none."""
    if _placeholder(rendering) is None or not turn.needs_reasoning(rendering):
        return False
    parts = [part for _, part in turn.parts]
    says = any(isinstance(part, ToolCallPart) for part in parts) or bool(turn.text.strip())
    return says and not any(
        isinstance(part, ThinkingPart) and _thinking(part, rendering) is not None for part in parts
    )


def part_blocks(item: tuple[Place, MessagePart], role: Role, rendering: Rendering) -> list[Object]:
    """Render one part as one block; return no block if the API has no form for it."""
    place, part = item
    block: Object | None
    match part:
        case TextPart():
            block = _text(part, place, rendering)
        case ThinkingPart():
            block = _thinking(part, rendering)
            if block is None:
                replay.drop(part, place, rendering)
        case ToolCallPart():
            block = _tool_use(part, place, rendering)
        case ToolResultPart():
            block = _tool_result(part, place, rendering)
        case ImagePart() | FileRefPart() if role is Role.ASSISTANT:
            replay.drop(part, place, rendering)
            block = None
        case ImagePart() | FileRefPart():
            is_sent = IN_BLOCK in rendering.state(part)
            block = None if is_sent else _media(part, place, rendering)
        case ProviderPart():
            block = dict(part.block) if part.dialect == DIALECT else None
            if block is None:
                replay.drop(part, place, rendering)
    return [] if block is None else [block]


def _text(part: TextPart, place: Place, rendering: Rendering) -> Object | None:
    whole = rendering.block_of(part)
    if whole is not None:
        return whole
    if not part.text.strip():
        # A block with a cache mark is left out later, when the block before it has the mark.
        bare = rendering.as_given(part, {"type": "text", "text": part.text})
        return bare if "cache_control" in bare else None
    notes = part.annotations or []
    citations = [note for note in notes if _is_citation(note)]
    if len(citations) < len(notes):
        replay.note_annotations(part, place, rendering)
    block: Object = {"type": "text", "text": part.text}
    if citations:
        block["citations"] = citations
    return rendering.as_given(part, block)


def _is_citation(note: object) -> bool:
    kind = cast("Object", note).get("type") if isinstance(note, Mapping) else None
    return isinstance(kind, str) and kind in _CITATION_TYPES


def _tool_use(call: ToolCallPart, place: Place, rendering: Rendering) -> Object:
    block: Object = {
        "type": "tool_use",
        "id": rendering.call_ids.of(call.tool_call_id),
        "name": rendering.tool_names.of(call.tool_name),
        "input": replay.arguments_of(call, place, rendering),
    }
    return rendering.as_given(call, block | rendering.api_members(call, OF_CALLS))


def _thinking(part: ThinkingPart, rendering: Rendering) -> Object | None:
    state = rendering.state(part)
    if part.redacted:
        is_own = "data" in state
        return {"type": "redacted_thinking", "data": state["data"]} if is_own else None
    if "signature" in state:
        return {"type": "thinking", "thinking": part.text, "signature": state["signature"]}
    placeholder = _placeholder(rendering)
    if placeholder is None:
        return None
    return {"type": "thinking", "thinking": part.text or placeholder}


def _media(part: ImagePart | FileRefPart, place: Place, rendering: Rendering) -> Object:
    source = source_of(part)
    kind = "image" if source.is_image else "document"
    rendered: Object
    match source.kind:
        case "url" if source.is_image or source.mime_type in {None, "application/pdf"}:
            rendered = {"type": "url", "url": source.value}
        case "id":
            rendered = {"type": "file", "file_id": source.value}
        case "data" if source.mime_type in _DATA_TYPES:
            rendered = {"type": "base64", "media_type": source.mime_type, "data": source.value}
        case "data" if source.text is not None:
            rendered = {"type": "text", "media_type": "text/plain", "data": source.text}
        case _:
            return {"type": "text", "text": replay.stand_in(part, place, rendering)}
    block: Object = {"type": kind, "source": rendered}
    if kind == "document" and source.name:
        block["title"] = source.name
    return rendering.as_given(part, block)


def _result_content(part: ToolResultPart, place: Place, rendering: Rendering) -> str | list[Object]:
    if not isinstance(part.content, list):
        return replay.result_text(part)
    blocks: list[Object] = []
    for inner in part.content:
        if isinstance(inner, ProviderPart) and inner.dialect != DIALECT:
            text = replay.stand_in(inner, place, rendering)
            blocks.append({"type": "text", "text": text})
        else:
            blocks.extend(part_blocks((place, inner), Role.TOOL, rendering))
    return blocks


def _tool_result(part: ToolResultPart, place: Place, rendering: Rendering) -> Object:
    block: Object = {
        "type": "tool_result",
        "tool_use_id": rendering.call_ids.of(part.tool_call_id),
        "content": _result_content(part, place, rendering),
    }
    if part.is_error:
        block["is_error"] = True
    call = rendering.calls.get(part.tool_call_id)
    if call is not None:
        block |= rendering.api_members(call, _OF_RESULTS)
    return rendering.as_given(part, block)


def _cacheable(body: Object) -> Iterator[Object]:
    """Yield the objects that can carry a cache mark, in the order of the prompt."""
    yield from cast("list[Object]", body.get("tools", []))
    yield from cast("list[Object]", body.get("system", []))
    for message in cast("list[Object]", body["messages"]):
        for block in cast("list[Object]", message["content"]):
            content = block.get("content")
            if block.get("type") == "tool_result" and isinstance(content, list):
                yield from cast("list[Object]", content)
            yield block
    yield body


def _move_marks_of_blanks(body: Object, rendering: Rendering) -> None:
    """Leave out empty texts with a cache mark; the block before one has the mark then.

    It may be the last one of the message before. The only text of a message stays, without a mark.
    """
    before: list[Object] = []
    for holder, member in _lists_of_blocks(body):
        blocks = cast("list[Object]", holder[member])
        kept: list[Object] = []
        for place, block in enumerate(blocks):
            mark = block.get("cache_control")
            if mark is None or not _is_blank(block):
                kept.append(block)
                continue
            rendering.note(NoteCode.CACHE_MARK_MOVED, "an empty text cannot have a cache mark")
            marked = kept or ([holder] if holder.get("type") == "tool_result" else before)
            if marked and marked[-1].get("type") not in _UNMARKED:
                marked[-1].setdefault("cache_control", mark)
            if not kept and place + 1 == len(blocks):
                kept.append(
                    {name: value for name, value in block.items() if name != "cache_control"}
                )
        holder[member] = kept
        before = before if holder.get("type") == "tool_result" else kept


def _lists_of_blocks(body: Object) -> Iterator[tuple[Object, str]]:
    if "system" in body:
        yield body, "system"
    for message in cast("list[Object]", body["messages"]):
        yield message, "content"
        for block in cast("list[Object]", message["content"]):
            if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                yield block, "content"


def _is_blank(block: Object) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def _limit_cache_marks(body: Object, rendering: Rendering) -> None:
    """Keep the last four marks. Reduce a lifetime that exceeds the lifetime of a mark before it."""
    marked = [block for block in _cacheable(body) if isinstance(block.get("cache_control"), dict)]
    for block in marked[:-MAX_CACHE_MARKS]:
        del block["cache_control"]
        rendering.note(NoteCode.CACHE_MARK_DROPPED, f"more than {MAX_CACHE_MARKS} cache marks")
    is_short = False
    for block in marked[-MAX_CACHE_MARKS:]:
        mark = cast("Object", block["cache_control"])
        if mark.get("ttl", "5m") == "5m":
            is_short = True
        elif is_short:
            block["cache_control"] = {**mark, "ttl": "5m"}
            rendering.note(
                NoteCode.CACHE_MARK_LOWERED, "a mark of 1h cannot follow one of 5m: it is of 5m"
            )
