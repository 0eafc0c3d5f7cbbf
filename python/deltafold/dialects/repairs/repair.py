"""Detection and repair of histories that a provider would refuse.

In: messages.  Out: a report, and messages that can be sent.

Laws: text is never dropped, and neither is a result that answers a call. Messages without problems
are returned as the same objects. A repaired history has no problems, so that a second repair
changes nothing. The work is linear in the length of the history.
Source: problems.py lists the problems that each dialect refuses.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, cast

from deltafold.contract.names import RequestProtocol
from deltafold.dialects import dialect_of
from deltafold.dialects.acceptance import (
    BLANK_TEXT_PARTS_THINKING,
    CALL_IDS_RETURN,
    CALLS_NEED_NO_RESULT,
    arguments_may_be_any_text,
    assistant_may_begin,
    calls_end_at_text,
    nobody_must_speak,
    user_must_end,
)
from deltafold.dialects.found_tools import tools_said
from deltafold.dialects.handovers import is_state_after
from deltafold.dialects.model_names import is_state_of
from deltafold.dialects.repairs.call_ids import renamed_calls
from deltafold.dialects.repairs.left_out_media import stand_in
from deltafold.dialects.repairs.lone_reasoning import followers, with_followers
from deltafold.dialects.repairs.pieces import (
    Piece,
    Turn,
    as_message,
    as_said,
    closing_after,
    ends_with_answer,
    holds_something,
    home,
    id_of,
    is_blank,
    is_plain,
    is_said_by_user,
    opening_beside,
    pairs_in_order,
    speakers_at,
    speaks,
    split_at_texts,
)
from deltafold.dialects.repairs.problems import REFUSED_BY, Problem, ProblemCode, Report
from deltafold.dialects.repairs.server_tools import (
    block_without_caller,
    mark_unpaired,
    without_caller,
)
from deltafold.dialects.replay import blanks_between_thinking, compact
from deltafold.message.call_pairs import answered_calls
from deltafold.message.fallbacks import last_boundary
from deltafold.message.messages import KINDS_OF_ROLE as KINDS
from deltafold.message.messages import (
    ContentPart,
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

MISSING_RESULT: Final = "No result: the call was never finished."
MISSING_STATUS: Final = "missing"
"""The status of a result that was made up."""

UNNAMED_TOOL: Final = "unnamed_tool"
UNPARSED: Final = "unparsed"
"""Name of the argument that holds the model's text if the arguments are not an object."""


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """Treatment of parts that a provider would refuse.

    >>> messages = [Message.user("Hi"), Message.tool_result("call_1", "17:42")]
    >>> repaired, report = repair(
    ...     messages, "openai-chat", RepairPolicy(orphan_results="drop")
    ... )
    >>> len(repaired), report.codes
    (1, [<ProblemCode.ORPHAN_RESULT: 'orphan_result'>])

    Attributes:
        orphan_results: results without a call become text of the user, or are dropped.
        thinking: reasoning without a signature for this model is dropped, becomes text, or is kept
            for vendors that check no signature.
    """

    orphan_results: Literal["text", "drop"] = "text"
    thinking: Literal["drop", "text", "keep"] = "drop"


def check(
    messages: Sequence[Message], dialect: RequestProtocol, *, model_id: str | None = None
) -> Report:
    """Find everything for which a provider would refuse a history.

    >>> from deltafold import Message, ToolCallPart
    >>> call = ToolCallPart(tool_call_id="a", tool_name="weather", raw_args_text="{}")
    >>> report = check([Message.user("Weather?"), Message.assistant(call)], "openai-chat")
    >>> report.codes, report.problems[0].message_index
    ([<ProblemCode.ORPHAN_CALL: 'orphan_call'>], 1)

    Args:
        messages: the history.
        dialect: what it is to be sent in.
        model_id: the model that it is to be sent to, whose reasoning can go back; None takes that
            of any model of the dialect.

    Raises:
        MisuseError: no request is rendered in this dialect.
    """
    return repair(messages, dialect, model_id=model_id)[1]


def repair(
    messages: Sequence[Message],
    dialect: RequestProtocol,
    policy: RepairPolicy | None = None,
    *,
    model_id: str | None = None,
) -> tuple[list[Message], Report]:
    """Repair a history so that no provider of the dialect refuses it.

    Args and errors are those of `check`.

    >>> history, problems = repair([Message.user("Hello")], "anthropic-messages")

    Returns:
        The messages, unchanged where they had no problem, and the report on the problems.
    """
    clean = _clean(dialect)
    is_ended = ends_with_answer(messages) and user_must_end(dialect, model_id)
    if is_plain(messages) and not is_ended:
        return list(messages), clean
    mender = _Mender(dialect, policy or RepairPolicy(), model_id)
    mended = mender.mend(messages)
    found = sorted(mender.problems, key=lambda problem: problem.message_index)
    return mended, Report(dialect, tuple(found))


@cache
def _clean(dialect: RequestProtocol) -> Report:
    return Report(dialect_of(dialect).name, ())


class _Mender:
    def __init__(
        self, dialect: RequestProtocol, policy: RepairPolicy, model_id: str | None
    ) -> None:
        self.problems: list[Problem] = []
        self._dialect: RequestProtocol = dialect
        self._policy = policy
        self._model_id = model_id
        self._item_calls: set[str] = set()
        """Ids of the calls that are items of the provider, such as `tool_search_call`."""
        self._removed: set[str] = set()
        """Ids of the uses of server tools that are left out."""

    def mend(self, messages: Sequence[Message]) -> list[Message]:
        turns = [turn for item in enumerate(messages) for turn in self._split(*item)]
        pieces = ([(piece, piece.part) for piece in turn.pieces] for turn in turns)
        for result, call in answered_calls(pieces):
            if call is not None:
                result.answers, call.answer = call, result
        ends_at_text = calls_end_at_text(self._dialect, self._model_id)
        if ends_at_text:
            turns = [part for turn in turns for part in split_at_texts(turn)]
        self._item_calls = {
            str(piece.part.block.get("call_id"))
            for turn in turns
            for piece in turn.pieces
            if isinstance(piece.part, ProviderPart) and piece.part.dialect == self._dialect
        }
        self._pair_in_order(turns)
        self._removed = mark_unpaired(turns, self._dialect)
        for found in renamed_calls(turns, ids_return=self._dialect in CALL_IDS_RETURN):
            self._found(*found)
        mended: list[Message] = []
        position = 0
        while position < len(turns):
            turn = turns[position]
            speakers = speakers_at(turns, position, ends_at_text=ends_at_text)
            position += len(speakers)
            after = followers(speakers, self._dialect, self._model_id)
            for speaker, following in zip(speakers, after, strict=True):
                mended.extend(self._speak(speaker, following))
            if turn.role is not Role.ASSISTANT:
                continue
            run = position
            while run < len(turns) and turns[run].role is Role.TOOL:
                run += 1
            has_result = any(piece.answer for speaker in speakers for piece in speaker.pieces)
            is_text_next = run == position < len(turns) and is_said_by_user(turns[run])
            is_answered_by_text = is_text_next and not has_result
            needs_all = not is_answered_by_text or self._dialect not in CALLS_NEED_NO_RESULT
            mended.extend(self._answers(speakers, turns[position:run], needs_all=needs_all))
            position = run
        return self._end(self._begin(mended, messages), messages)

    def _pair_in_order(self, turns: Sequence[Turn]) -> None:
        """Let results with the ids of no call answer the calls before them."""
        for result, call in [*pairs_in_order(turns)]:
            part = result.part
            if isinstance(part, ToolResultPart) and not self._answers_elsewhere(part):
                result.answers, call.answer = call, result
                taken = "the result with another id answers it"
                self._found(ProblemCode.ORPHAN_CALL, "a call has no result", taken, call)
                self._found(
                    ProblemCode.ORPHAN_RESULT,
                    f"a result answers no call: {part.tool_call_id!r}",
                    "it answers the call before it, in order",
                    result,
                )

    def _found(self, code: ProblemCode, message: str, repaired: str, at: Piece | int) -> bool:
        """Report a problem if this dialect has it, and return whether it has it."""
        if self._dialect not in REFUSED_BY[code]:
            return False
        number, index = (at, None) if isinstance(at, int) else (at.message, at.index)
        self.problems.append(Problem(code, message, number, index, repaired))
        return True

    def _split(self, number: int, message: Message) -> Iterator[Turn]:
        """Yield the message, split where it holds parts that its role must not hold."""
        boundary = last_boundary(message.parts) if message.role is Role.ASSISTANT else None
        numbered = enumerate(message.parts)
        pieces = [Piece(part, number, index, boundary=boundary) for index, part in numbered]
        if all(piece.part.kind in KINDS[message.role] for piece in pieces):
            yield Turn(message.role, pieces, message, number)
            return
        turn: Turn | None = None
        for piece in pieces:
            role = home(piece.part, message.role)
            if role is not message.role:
                self._found(
                    ProblemCode.MISPLACED_PART,
                    f"a {message.role.value} message cannot hold a {piece.part.kind} part",
                    f"it moves to a {role.value} message",
                    piece,
                )
            if turn is not None and turn.role is role:
                turn.pieces.append(piece)
                continue
            if turn is not None:
                yield turn
            turn = Turn(role, [piece], message, number, is_whole=False)
        if turn is not None:
            yield turn

    def _speak(self, turn: Turn, following: MessagePart | None) -> Iterator[Message]:
        """Yield the parts of a turn; an empty turn yields nothing.

        `following` is the first item of the provider after it, before anyone else speaks.
        """
        if turn.role is Role.TOOL:  # no assistant speaks before it: it answers nothing
            if not turn.pieces:
                self._empty(turn)
            for piece in turn.pieces:
                yield from self._stray(piece, turn)
            return
        before = len(self.problems)
        keeps_blanks = self._dialect in BLANK_TEXT_PARTS_THINKING
        given = [piece.part for piece in turn.pieces] if keeps_blanks else []
        kept = blanks_between_thinking(given)
        parts = [
            part
            for place, piece in enumerate(turn.pieces)
            for part in ([piece.part] if place in kept else self._part(piece, turn.role))
        ]
        if kept:  # what it stood between may be left out
            still = {id(parts[place]) for place in blanks_between_thinking(parts)}
            lone = [turn.pieces[place] for place in sorted(kept)]
            empty = {
                id(piece.part)
                for piece in lone
                if id(piece.part) not in still and self._is_empty(piece.part, piece)
            }
            parts = [part for part in parts if id(part) not in empty]
        if turn.role is Role.ASSISTANT:
            parts = self._without_lone_reasoning(parts, turn, following)
        if any(not isinstance(part, TextPart) or not is_blank(part, part.text) for part in parts):
            yield as_message(turn, parts)
        elif len(self.problems) == before:
            self._empty(turn)

    def _answers(
        self, speakers: Sequence[Turn], run: Sequence[Turn], *, needs_all: bool
    ) -> Iterator[Message]:
        """Yield the results of neighbouring turns' calls: the existing ones, then the others.

        Without `needs_all`, no result is made up for a call that has none.
        """
        calls = [
            piece
            for turn in speakers
            for piece in turn.pieces
            if isinstance(piece.part, ToolCallPart) and not piece.is_left_out
        ]
        answered: set[int] = set()
        strays: list[tuple[Piece, Turn]] = []
        own = {id(call) for call in calls}
        for following in run:
            if not following.pieces:
                self._empty(following)
            parts: list[MessagePart] = []
            for piece in following.pieces:
                if piece.answers is not None and id(piece.answers) in own:
                    answered.add(id(piece.answers))
                    parts.append(self._result(piece))
                elif piece.answers is None:
                    strays.append((piece, following))
            if parts:
                yield as_message(following, parts)
        for call in calls:
            if id(call) not in answered and (needs_all or call.answer is not None):
                yield self._missing(call, speakers[-1])
        for piece, following in strays:
            yield from self._stray(piece, following)

    def _missing(self, call: Piece, turn: Turn) -> Message:
        """Return the result of a call from its position, or make one up."""
        if call.answer is not None:
            self._found(
                ProblemCode.LATE_RESULT,
                "a result does not follow its call directly",
                "it moves up to it",
                call.answer,
            )
            result: MessagePart = self._result(call.answer)
        else:
            self._found(
                ProblemCode.ORPHAN_CALL,
                "a call has no result",
                "it gets a result that is marked as an error",
                call,
            )
            result = ToolResultPart(
                tool_call_id=id_of(call),
                content=MISSING_RESULT,
                is_error=True,
                status=MISSING_STATUS,
            )
        source = turn.source
        return Message(
            role=Role.TOOL, parts=[result], run_id=source.run_id, timestamp=source.timestamp
        )

    def _result(self, piece: Piece) -> ToolResultPart:
        """Return a result under the id of its call, with the content that can be sent."""
        part = piece.part
        assert isinstance(part, ToolResultPart)  # noqa: S101 - pieces that answer are results
        changes: dict[str, object] = {}
        if piece.answers is not None and part.tool_call_id != id_of(piece.answers):
            changes["tool_call_id"] = id_of(piece.answers)
        if isinstance(part.content, list):
            content = [self._inside(inner, piece) for inner in part.content]
            kept = [inner for inner in content if inner is not None]
            if any(a is not b for a, b in zip(kept, part.content, strict=False)) or len(
                kept
            ) != len(part.content):
                changes["content"] = kept
        return part.model_copy(update=changes) if changes else part

    def _inside(self, part: ContentPart, piece: Piece) -> ContentPart | None:
        if isinstance(part, ProviderPart):
            return part if not self._is_foreign(part, piece) else None
        if isinstance(part, ImagePart | FileRefPart):
            return self._sendable(part, piece)
        return part

    def _stray(self, piece: Piece, turn: Turn) -> Iterator[Message]:
        """Yield a result without a call as text of the user; other results belong elsewhere."""
        part = piece.part
        if piece.answers is not None or not isinstance(part, ToolResultPart):
            return
        if self._answers_elsewhere(part):
            yield as_message(turn, [part])
            return
        code = ProblemCode.ORPHAN_RESULT
        self._found(
            code,
            f"a result answers no call: {part.tool_call_id!r}",
            "it becomes text" if self._policy.orphan_results == "text" else "it is left out",
            piece,
        )
        if self._policy.orphan_results == "text":
            parts = [inner for inner in as_said(part) if not isinstance(inner, ProviderPart)]
            sendable = [
                self._sendable(inner, piece)
                if isinstance(inner, ImagePart | FileRefPart)
                else inner
                for inner in parts
            ]
            source = turn.source
            yield Message(
                role=Role.USER,
                parts=list(sendable),
                run_id=source.run_id,
                timestamp=source.timestamp,
            )

    def _answers_elsewhere(self, result: ToolResultPart) -> bool:
        """Return whether the call of a result is a provider's item, or stored at the provider."""
        if result.tool_call_id in self._item_calls:
            return True
        state = result.provider_state or {}
        data = state.get("data")
        if state.get("dialect") != self._dialect or not isinstance(data, Mapping):
            return False
        return bool(cast("Mapping[str, object]", data).get("stored_call"))

    def _part(self, piece: Piece, role: Role) -> Iterator[MessagePart]:
        part = piece.part
        match part:
            case TextPart():
                if not self._is_empty(part, piece):
                    yield part
            case ThinkingPart() if role is Role.ASSISTANT:
                yield from self._thinking(part, piece)
            case ToolCallPart():
                yield from self._call(part, piece)
            case ImagePart() | FileRefPart():
                yield self._sendable(part, piece)
            case ProviderPart():
                if not self._is_foreign(part, piece) and not self._is_unpaired(piece):
                    yield block_without_caller(part, self._removed)
            case _:
                yield part

    def _is_empty(self, part: MessagePart, piece: Piece) -> bool:
        said = part.text.strip() if isinstance(part, TextPart) else ""
        return is_blank(part, said) and self._found(
            ProblemCode.EMPTY_TEXT, "a text is blank", "it is left out", piece
        )

    def _empty(self, turn: Turn) -> None:
        self._found(
            ProblemCode.EMPTY_MESSAGE,
            f"a {turn.role.value} message says nothing",
            "it is left out",
            turn.number,
        )

    def _thinking(self, part: ThinkingPart, piece: Piece) -> Iterator[MessagePart]:
        if piece.is_before_fallback or self._policy.thinking == "keep":
            yield part
            return
        state = part.provider_state
        becomes = "it is left out" if self._policy.thinking == "drop" else "it becomes text"
        is_found = False
        if state is None or not holds_something(state.get("data")):
            is_found = self._found(
                ProblemCode.UNSIGNED_THINKING,
                "reasoning carries nothing of its provider",
                becomes,
                piece,
            )
        elif state.get("dialect") != self._dialect or not self._is_of_model(state, piece):
            is_found = self._found(
                ProblemCode.FOREIGN_THINKING,
                f"reasoning is that of {state.get('modelId')!r} in {state.get('dialect')}",
                becomes,
                piece,
            )
        if not is_found:
            yield part
        elif self._policy.thinking == "text" and part.text.strip():
            yield TextPart(text=part.text)

    def _is_of_model(self, state: Mapping[str, object], piece: Piece) -> bool:
        """Return whether state belongs to the model of the request."""
        if self._model_id is None or is_state_of(state, self._model_id):
            return True
        boundary = piece.boundary
        return boundary is not None and is_state_after(boundary, state, self._model_id)

    def _call(self, call: ToolCallPart, piece: Piece) -> Iterator[ToolCallPart]:
        if piece.is_left_out:
            if piece.is_before_fallback:
                yield call  # the renderer leaves it out
                return
            self._found(
                ProblemCode.HALF_CALL,
                f"the call of {call.tool_name} was cut off and never ran",
                "it is left out",
                piece,
            )
            return
        changes = without_caller(call, self._removed)
        if piece.call_id is not None:
            changes["tool_call_id"] = piece.call_id
        if not call.tool_name:
            self._found(
                ProblemCode.EMPTY_TOOL_NAME,
                "a call names no tool",
                f"it is a call of {UNNAMED_TOOL}",
                piece,
            )
            changes["tool_name"] = UNNAMED_TOOL
        if call.arguments is None and not arguments_may_be_any_text(self._dialect, self._model_id):
            self._found(
                ProblemCode.ARGUMENTS_NOT_AN_OBJECT,
                f"the arguments of {call.tool_name} are not a JSON object",
                f"what the model wrote is the argument {UNPARSED!r}",
                piece,
            )
            written: dict[str, object] = {UNPARSED: call.raw_args_text}
            changes |= {
                "arguments": written,
                "raw_args_text": compact(written),
                "parse_error": None,
                "incomplete": False,
            }
        yield call.model_copy(update=changes) if changes else call

    def _sendable(
        self, part: ImagePart | FileRefPart, piece: Piece
    ) -> ImagePart | FileRefPart | TextPart:
        instead = stand_in(part, self._dialect, self._model_id)
        if instead is None:
            return part
        self._found(instead.code, instead.message, "its name stands for it", piece)
        return instead.text

    def _is_foreign(self, part: ProviderPart, piece: Piece) -> bool:
        # Of a block that names tools, the renderer makes a text.
        if part.dialect == self._dialect or piece.is_boundary or tools_said(part.block):
            return False
        what = f"a block is of {part.dialect}"
        return self._found(ProblemCode.FOREIGN_BLOCK, what, "it is left out", piece)

    def _is_unpaired(self, piece: Piece) -> bool:
        return piece.defect is not None and self._found(
            ProblemCode.UNPAIRED_SERVER_TOOL, piece.defect, "it is left out", piece
        )

    def _without_lone_reasoning(
        self, parts: list[MessagePart], turn: Turn, following: MessagePart | None
    ) -> list[MessagePart]:
        """Drop reasoning without its following item, which the provider refuses, or only its id.

        The item may be in the next message: some clients keep each piece of a stream as a message.
        """
        if self._dialect not in REFUSED_BY[ProblemCode.LONE_REASONING]:
            return parts
        kept = with_followers(parts, following, dialect=self._dialect, model_id=self._model_id)
        if kept != parts:
            what = "it is left out" if len(kept) < len(parts) else "its id is left out"
            self._found(
                ProblemCode.LONE_REASONING,
                "reasoning has not its following item",
                what,
                turn.number,
            )
        return kept

    def _end(self, messages: list[Message], given: Sequence[Message]) -> list[Message]:
        """Ensure that the user speaks last, for models that refuse to go on with an answer."""
        if ends_with_answer(messages) and user_must_end(self._dialect, self._model_id):
            words = f"{self._model_id} refuses a history that the assistant ends"
            self._found(ProblemCode.ASSISTANT_LAST, words, "the user asks to go on", len(given))
            messages = [*messages, closing_after(messages[-1])]
        return messages

    def _begin(self, messages: list[Message], given: Sequence[Message]) -> list[Message]:
        """Ensure that there is a message, and that the user speaks first."""
        count = len(given)
        spoken = next((i for i in range(count) if given[i].role is not Role.SYSTEM), count)
        first = next((i for i, one in enumerate(messages) if one.role is not Role.SYSTEM), None)
        is_assistant = first is not None and messages[first].role is Role.ASSISTANT
        accepts = assistant_may_begin(self._dialect, self._model_id)
        problem = ProblemCode.ASSISTANT_FIRST, "the assistant speaks first", "the user is made to"
        if is_assistant and not accepts and self._found(*problem, spoken):
            opening = opening_beside(messages[first or 0])
            return [*messages[:first], opening, *messages[first:]]
        has_system = any(message.role is Role.SYSTEM for message in messages)
        if nobody_must_speak(self._dialect, self._model_id, has_system=has_system):
            return messages
        if not any(speaks(message) for message in messages):
            self._found(ProblemCode.EMPTY_HISTORY, "nobody speaks", "the user is made to", count)
            return [*messages, opening_beside(messages[-1] if messages else None)]
        return messages
