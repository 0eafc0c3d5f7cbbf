"""Turns: a conversation in an order that all providers accept.

In: messages.  Out: turns, each with its parts and their positions.

Laws: the results of a turn's calls follow the turn directly, in one turn, in the order of the
calls. A result without a call keeps its position. An incomplete call is sent only if it has a
result. A system message between the turns stays there, so that a request is a prefix of the next
one. A message of which nothing can be sent is left out; the only message of the user before an
answer is replaced by a text. Of an answer that another model took over (`handovers.py`),
neither the thinking and the calls before that nor the results of these calls are sent. Nothing else
is moved.
Source: docs/protocols/anthropic-messages.md#tool-results,
docs/protocols/bedrock-converse.md#request, docs/protocols/openai-chat.md#request,
docs/protocols/gemini.md#request.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Final, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects.found_tools import said_elsewhere, tools_said
from deltafold.dialects.handovers import is_state_after, left_out
from deltafold.dialects.rendered import NoteCode, Object, Place, Rendering
from deltafold.dialects.replay import message_members, stand_in, system_texts
from deltafold.message.call_pairs import answered_calls
from deltafold.message.fallbacks import Boundary, last_boundary
from deltafold.message.messages import (
    Message,
    MessagePart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.message.parts import joined_text

OPENING: Final = "(The conversation begins here.)"
"""User message before a conversation that the assistant begins, for providers that refuse this."""

CLOSING: Final = "(Continue.)"
"""User message behind an answer, for models that refuse a conversation that the assistant ends."""


SYSTEM_MARK: Final = "<system>\n{}\n</system>"
"""Form of a system message that becomes a text of the user."""

_OF_TOOLS: Final = (ToolCallPart, ToolResultPart)


@dataclass(slots=True)
class Turn:
    """Consecutive parts of one speaker; nothing changes it.

    Attributes:
        parts: each part with its position in the conversation.
        call_names: for a turn of results, the tool name of each result's call, by the id of the
            call.
        model_id: the model that produced the turn, if it is known.
        in_open_loop: whether no user message follows, so that the tool loop is still open.
        in_tool_turn: whether a tool is called between the user messages around the turn.
        in_place: whether a system turn stays between the turns of the others.
    """

    role: Role
    parts: tuple[tuple[Place, MessagePart], ...]
    call_names: dict[str, str]
    model_id: str | None
    in_open_loop: bool
    in_tool_turn: bool = False
    in_place: bool = False

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return joined_text((part for _, part in self.parts), TextPart)

    def needs_reasoning(self, rendering: Rendering) -> bool:
        """Return whether vendors that bind reasoning to tools want reasoning in this turn.

        DeepSeek wants it in each assistant message between two user messages with a tool call, and
        in each one of a request with tools ("Thinking Mode", read 2026-11).
        """
        return bool(rendering.tools) or rendering.of_turn(self.in_tool_turn)

    @property
    def thinking(self) -> str:
        """All thinking parts, joined."""
        return joined_text((part for _, part in self.parts), ThinkingPart)


def turns_of(rendering: Rendering, *, answers_after_run: bool = False) -> list[Turn]:
    """Return the turns of a conversation.

    Args:
        rendering: the request.
        answers_after_run: whether the results of neighbouring assistant messages follow the last of
            them, for protocols that join these messages; otherwise they follow each message.
    """
    messages = rendering.messages
    last_user, has_tools = _overview(messages)
    if not has_tools:
        return _unpaired(rendering, last_user)
    turns: list[Turn] = []
    answers, strays = _pair(messages)
    with_tools = messages_in_tool_turns(messages)
    results: list[tuple[Place, MessagePart]] = []
    names: dict[str, str] = {}
    for number, message in enumerate(messages):
        placed = _placed(number, message, rendering, turns)
        is_open = number > last_user
        if message.role is Role.TOOL:
            parts = tuple(item for item in placed if item[0] in strays)
            if parts:
                turns.append(Turn(Role.TOOL, parts, {}, None, is_open))
            continue
        if _is_lost(message, placed):
            continue
        kept = [item for item in placed if _is_sendable(item, answers, rendering)]
        if len(placed) < len(message.parts):
            _note_results(number, message, placed, answers, rendering)
        model_id, in_tool_turn = message.meta.model_id, number in with_tools
        turns.append(Turn(message.role, tuple(kept), {}, model_id, is_open, in_tool_turn))
        results += [answers[place] for place, _ in kept if place in answers]
        names |= {call.tool_call_id: call.tool_name for call in message.tool_calls}
        if answers_after_run and _assistant_follows(messages, number):
            continue
        if results:
            turns.append(Turn(Role.TOOL, tuple(results), names, None, is_open))
            results, names = [], {}
    return turns


def _overview(messages: Sequence[Message]) -> tuple[int, bool]:
    """Return the index of the last message of the user, and whether any part is of a tool."""
    last_user, has_tools = -1, False
    for number, message in enumerate(messages):
        if message.role is Role.USER:
            last_user = number
        for part in message.parts:
            has_tools = has_tools or isinstance(part, _OF_TOOLS)
    return last_user, has_tools


def _unpaired(rendering: Rendering, last_user: int) -> list[Turn]:
    """Return the turns of a conversation without calls and results, as most begin."""
    turns: list[Turn] = []
    for number, message in enumerate(rendering.messages):
        placed = _placed(number, message, rendering, turns)
        if message.role is not Role.TOOL and not _is_lost(message, placed):
            is_open, model_id = number > last_user, message.meta.model_id
            turns.append(Turn(message.role, placed, {}, model_id, is_open))
    return turns


def _is_lost(message: Message, placed: Sequence[tuple[Place, MessagePart]]) -> bool:
    """Return whether nothing is left of a message that the caller wrote."""
    return message.role is not Role.ASSISTANT and bool(message.parts) and not placed


def _is_needed(number: int, message: Message, rendering: Rendering, turns: Sequence[Turn]) -> bool:
    """Return whether nothing is left of a message of the user, and the request needs its turn.

    Without it, the assistant would begin or go on with its own answer, or no turn would be left.
    The message before the next answer counts already, so that the next request repeats this one.
    """
    if message.role is not Role.USER or not message.parts:
        return False
    if any(rendering.foreign_block(part) is None for part in message.parts):
        return False
    before = next((turn.role for turn in reversed(turns) if turn.role is not Role.SYSTEM), None)
    after = next(
        (
            other.role
            for other in islice(rendering.messages, number + 1, None)
            if other.role in {Role.USER, Role.ASSISTANT}
        ),
        None,
    )
    return before in {None, Role.ASSISTANT} and after is not Role.USER


def _placed(
    number: int, message: Message, rendering: Rendering, turns: Sequence[Turn]
) -> tuple[tuple[Place, MessagePart], ...]:
    """Return the parts of a message with their positions; note what only foreign state holds.

    A part without a text that is nothing but a block of another dialect is left out, or a text
    stands for it; `turns` are those before the message.
    """
    is_needed = _is_needed(number, message, rendering, turns)
    placed: list[tuple[Place, MessagePart]] = []
    for index, given in _own_parts(number, message, rendering):
        place = Place(number, index)
        part = said_elsewhere(given, rendering.dialect)
        if part is not given:
            text = f"a block of {given.kind} names tools: its text stands for it"
            rendering.note(NoteCode.PART_REPLACED, text, place)
        elif part.provider_state is not None and rendering.note_foreign(
            part, place, is_replaced=is_needed
        ):
            if not is_needed:
                continue
            part = TextPart(text=stand_in(part, place, rendering))
        if isinstance(part, ToolResultPart) and isinstance(part.content, list):
            for inside in part.content:
                rendering.note_foreign(inside, place)
        placed.append((place, part))
    return tuple(placed)


def _own_parts(
    number: int, message: Message, rendering: Rendering
) -> Iterable[tuple[int, MessagePart]]:
    """Return the parts of a message with their indexes; note those before a fallback."""
    boundary = last_boundary(message.parts) if message.role is Role.ASSISTANT else None
    if boundary is None:
        return enumerate(message.parts)
    before = left_out(message.parts, boundary)
    kept: list[tuple[int, MessagePart]] = []
    for index, part in enumerate(message.parts):
        if index in before:
            _note_before_fallback(part, Place(number, index), rendering)
        elif index < boundary.index:
            kept.append((index, part))
        else:
            kept.append((index, _of_served_model(part, boundary, rendering)))
    return kept


def _note_before_fallback(part: MessagePart, place: Place, rendering: Rendering) -> None:
    code, what = NoteCode.PART_DROPPED, f"a {part.kind} part"
    if isinstance(part, ThinkingPart):
        code = NoteCode.THINKING_DROPPED
    elif isinstance(part, ToolCallPart):
        code, what = NoteCode.CALL_DROPPED, f"the call of {part.tool_name}"
    rendering.note(code, f"{what} is of a model that another one took over from", place)


def _note_results(
    number: int,
    message: Message,
    placed: Sequence[tuple[Place, MessagePart]],
    answers: Mapping[Place, tuple[Place, MessagePart]],
    rendering: Rendering,
) -> None:
    """Note the results of the calls before a fallback."""
    sent = {place for place, _ in placed}
    for index, part in enumerate(message.parts):
        place = Place(number, index)
        if isinstance(part, ToolCallPart) and place in answers and place not in sent:
            text = f"the call of {part.tool_name} is left out, and its result with it"
            rendering.note(NoteCode.PART_DROPPED, text, answers[place][0])


def _of_served_model(part: MessagePart, boundary: Boundary, rendering: Rendering) -> MessagePart:
    """Return a part after a boundary, with its state as that of the model of the request."""
    state = part.provider_state
    if state is None or state.get("dialect") != boundary.dialect:
        return part
    if not is_state_after(boundary, state, rendering.model_id):
        return part
    state = {**state, "modelId": rendering.model_id}
    return part.model_copy(update={"provider_state": state})


def messages_in_tool_turns(messages: Sequence[Message]) -> set[int]:
    """Return the numbers of the messages with a tool call between the same user messages."""
    found: set[int] = set()
    since_user: list[int] = []
    calls = False
    for number, message in enumerate(messages):
        if message.role is Role.USER:
            since_user, calls = [], False
            continue
        since_user.append(number)
        calls = calls or bool(message.tool_calls)
        if calls:
            found.update(since_user)
            since_user = []
    return found


def _assistant_follows(messages: Sequence[Message], number: int) -> bool:
    """Return whether this message and the next are the assistant's."""
    both = messages[number : number + 2]
    return [message.role for message in both] == [Role.ASSISTANT, Role.ASSISTANT]


@dataclass(slots=True)
class Speech:
    """One message of a protocol with alternating speakers."""

    role: str
    blocks: list[Object]
    members: Object = field(default_factory=dict[str, object])


def alternating(
    turns: Sequence[Turn],
    blocks_of: Callable[[tuple[Place, MessagePart], Turn], list[Object]],
    rendering: Rendering,
    *,
    opening: Object | None,
    results_apart: bool = False,
) -> list[Speech]:
    """Join neighbouring turns of one speaker; turns without content are left out.

    Args:
        turns: the conversation; system turns are skipped unless they stay in place.
        blocks_of: renders one part.
        rendering: the request.
        opening: block of a user message that precedes a conversation of which the assistant
            speaks first; None for models that accept this.
        results_apart: whether results get the role "tool"; otherwise they are the user's.
    """
    spoken: list[Speech] = []
    for turn in turns:
        if turn.role is Role.SYSTEM and not turn.in_place:
            continue
        role = turn.role.value
        if turn.role is Role.TOOL and not results_apart:
            role = "user"
        blocks = [block for item in turn.parts for block in blocks_of(item, turn)]
        members = message_members(turn.parts, rendering)
        if spoken and spoken[-1].role == role:
            spoken[-1].blocks.extend(blocks)
            spoken[-1].members |= members
        elif blocks:
            spoken.append(Speech(role, blocks, members))
    needs_opening = opening is not None and not rendering.is_excerpt
    if needs_opening and spoken and spoken[0].role == Role.ASSISTANT:
        rendering.note(NoteCode.TURN_ADDED, "the first turn is the user's: one was added")
        spoken.insert(0, Speech("user", [cast("Object", opening)]))
    return spoken


def leading_system(turns: Sequence[Turn], rendering: Rendering) -> list[tuple[Place, TextPart]]:
    """Return the texts of the system turns before all others, which are the system prompt."""
    leading = takewhile(lambda turn: turn.role is Role.SYSTEM, turns)
    return [item for turn in leading for item in system_texts(turn.parts, rendering)]


def late_systems_as_user(turns: Sequence[Turn], rendering: Rendering) -> list[Turn]:
    """Make marked texts of the user of the system turns after the first turn of a speaker.

    They stay where they stand: a change of the system prompt would invalidate the provider's cache
    and all reasoning that is bound to the conversation.
    """
    has_spoken = False
    settled: list[Turn] = []
    for turn in turns:
        has_spoken = has_spoken or turn.role is not Role.SYSTEM
        is_late = has_spoken and turn.role is Role.SYSTEM and not turn.in_place
        settled.append(_as_user(turn, rendering) if is_late else turn)
    return settled


def _as_user(turn: Turn, rendering: Rendering) -> Turn:
    texts = [item for item in system_texts(turn.parts, rendering) if item[1].text.strip()]
    if texts:
        message = "a system message between the turns becomes a marked text of the user"
        rendering.note(NoteCode.SYSTEM_AS_USER, message, texts[0][0])
    return replace(turn, role=Role.USER, parts=tuple((place, _marked(one)) for place, one in texts))


def _marked(part: TextPart) -> TextPart:
    """Mark a text as the system's; members of the system message are not those of the user's.

    A block that changes the tools is the system's alone: its text stands for it.
    """
    state = part.provider_state
    if state is not None:
        data = cast("Object", state["data"])
        lost = {"message"}
        if tools_said(json_object(data.get("block")) or {}):
            lost.add("block")
        kept = {name: value for name, value in data.items() if name not in lost}
        state = {**state, "data": kept} if kept else None
    return part.model_copy(update={"text": SYSTEM_MARK.format(part.text), "provider_state": state})


def blocks_as_user(blocks: Iterable[Object]) -> list[Object]:
    """Mark the text blocks of a system message that lost its place; see `late_systems_as_user`."""
    found: list[Object] = []
    for block in blocks:
        said = block["text"] if block.get("type") == "text" else tools_said(block)
        kept = block if block.get("type") == "text" else {"type": "text"}
        found.append({**kept, "text": SYSTEM_MARK.format(said)} if said else block)
    return found


def _is_sendable(
    item: tuple[Place, MessagePart],
    answers: dict[Place, tuple[Place, MessagePart]],
    rendering: Rendering,
) -> bool:
    place, part = item
    if not isinstance(part, ToolCallPart) or not part.incomplete or place in answers:
        return True
    rendering.note(
        NoteCode.CALL_DROPPED, f"the call of {part.tool_name} was cut off and never ran", place
    )
    return False


def _pair(
    messages: Sequence[Message],
) -> tuple[dict[Place, tuple[Place, MessagePart]], set[Place]]:
    """Return the result of each call, and the places of the results without a call."""
    answers: dict[Place, tuple[Place, MessagePart]] = {}
    strays: set[Place] = set()
    placed = (
        [(Place(number, index), part) for index, part in enumerate(message.parts)]
        for number, message in enumerate(messages)
    )
    for result, call in answered_calls(placed):
        if call is None:
            strays.add(result)
        else:
            answers[call] = (result, messages[result.message].parts[result.part])
    return answers, strays
