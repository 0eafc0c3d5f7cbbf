"""Projection: the messages that a model is shown, independent of its provider.

In: entries, each at a level of detail.  Out: context messages, which protocols tell apart, and
`Message`s for the renderers.

Laws: no provider is named here. A consumer tests `isinstance(message, ModelOutputMessage)` and the
like. Sections become Markdown with headings. An entry that was made of a message, and is shown
whole, becomes that message.
Source: docs/blueprint.md#context-messages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Generic, TypeAlias, TypeVar
from uuid import UUID, uuid5

from deltafold.contract.living import Living
from deltafold.conversation.history.agreement import agrees_with, own_message
from deltafold.conversation.history.context_messages import (
    ContextMessage,
    ModelInputMessage,
    ModelOutputMessage,
    SystemMessage,
    ToolResultsMessage,
)
from deltafold.conversation.history.entries import (
    CompactionEntry,
    ContextualHistoryEntry,
    HistoryEntry,
    InstructionEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ResetEntry,
    ToolResultsEntry,
)
from deltafold.conversation.history.frozen import (
    FrozenMapping,
    checked_metadata,
    copied,
    kept_message,
    thawed,
)
from deltafold.conversation.history.kinds import ContextMessageRole, ToolExecutionStatus
from deltafold.conversation.history.sections import (
    LevelOfDetail,
    LevelOfDetailSections,
    Section,
    Sections,
    to_plain_text,
    without_live_screen,
)
from deltafold.conversation.history.tool_calls import (
    ContextAttachment,
    ToolCallRequest,
    ToolCallResult,
)
from deltafold.dialects.replay import result_items
from deltafold.message.messages import (
    ContentPart,
    Message,
    MessagePart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

SUMMARY_HEADING: Final = "Summary of the earlier conversation"
"""Heading of a summary that stands for earlier entries."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class SystemInstructionMessage:
    """The current system instruction, and the time since which it is in force.

    >>> state.render_live_context()[0].instruction
    'Be brief.'
    """

    instruction: str
    timestamp: datetime = field(default_factory=_now)
    metadata: Mapping[str, object] = field(default_factory=FrozenMapping)

    def __post_init__(self) -> None:
        """Check and freeze the metadata."""
        object.__setattr__(self, "metadata", checked_metadata(self.metadata))

    @property
    def role(self) -> ContextMessageRole:
        """The system."""
        return ContextMessageRole.SYSTEM


EntryT = TypeVar("EntryT", bound=HistoryEntry)


@dataclass(frozen=True, slots=True)
class _OfEntry(Generic[EntryT]):
    """An entry as a context message."""

    entry: EntryT

    @property
    def timestamp(self) -> datetime:
        """Time at which the entry was appended."""
        return self.entry.timestamp

    @property
    def metadata(self) -> Mapping[str, object]:
        """Metadata of the entry."""
        return self.entry.metadata


@dataclass(frozen=True, slots=True)
class ShownInstruction(_OfEntry[InstructionEntry]):
    """An instruction that was recorded as a message, with the parts of the message.

    >>> entry = InstructionEntry.of_message(Message.system("Be brief."))
    >>> ShownInstruction(entry).instruction
    'Be brief.'
    """

    @property
    def role(self) -> ContextMessageRole:
        """The system."""
        return ContextMessageRole.SYSTEM

    @property
    def instruction(self) -> str:
        """The text."""
        return self.entry.instruction


@dataclass(frozen=True, slots=True)
class ShownInput(_OfEntry[ModelInputEntry]):
    """An input entry at a level of detail.

    >>> entry = ModelInputEntry.of_message(Message.user("When is high tide?"))
    >>> ShownInput(entry, LevelOfDetail.GIST).content_sections[0].value
    'When is high tide?'

    Attributes:
        entry: the entry.
        detail: the level.
        has_screen: whether the live level includes the live screen.
    """

    detail: LevelOfDetail
    has_screen: bool = True

    @property
    def role(self) -> ContextMessageRole:
        """Role of an input."""
        return self.entry.role

    @property
    def content_sections(self) -> Sections:
        """The level's sections."""
        return shown_sections(self.entry.content_sections, self.detail, self.has_screen)

    @property
    def attachments(self) -> Sequence[ContextAttachment]:
        """Images and files, at every level."""
        return self.entry.attachments


@dataclass(frozen=True, slots=True)
class ShownResults(_OfEntry[ToolResultsEntry]):
    """A results entry at a level of detail; otherwise as `ShownInput`.

    >>> entry = ToolResultsEntry.of_message(Message.tool_result("call_1", "17:42"))
    >>> ShownResults(entry, LevelOfDetail.LIVE).results[0].result[0].value
    '17:42'
    """

    detail: LevelOfDetail
    has_screen: bool = True

    @property
    def role(self) -> ContextMessageRole:
        """Role of results."""
        return self.entry.role

    @property
    def results(self) -> Sequence[ToolCallResult]:
        """The level's results."""
        return tuple(
            ToolCallResult(
                result.tool_name,
                result.tool_call_id,
                result.status,
                shown_sections(result.result, self.detail, self.has_screen),
                result.elapsed,
                result.attachments,
            )
            for result in self.entry.results
        )

    @property
    def execute_error(self) -> str | None:
        """Reason why the execution failed as a whole."""
        return self.entry.execute_error


@dataclass(frozen=True, slots=True)
class ShownSummary(_OfEntry[CompactionEntry]):
    r"""A summary, as an input to the model.

    >>> summary = CompactionEntry(summary="Greetings.", covers=[])
    >>> ShownSummary(summary).content_sections[0].value
    '# Summary of the earlier conversation\nGreetings.'
    """

    @property
    def role(self) -> ContextMessageRole:
        """Role of an input."""
        return self.entry.role

    @property
    def content_sections(self) -> Sections:
        """The summary under a heading, which a single section would not show."""
        return (Section("", f"# {SUMMARY_HEADING}\n{self.entry.summary}"),)

    @property
    def attachments(self) -> Sequence[ContextAttachment]:
        """No attachments."""
        return ()


Shown: TypeAlias = ShownInstruction | ShownInput | ShownResults | ShownSummary | ModelOutputEntry


def shown_sections(
    sections: LevelOfDetailSections, detail: LevelOfDetail, has_screen: bool
) -> Sections:
    """Return the sections of a level, with or without the live screen."""
    level = sections.get_sections(detail)
    return level if has_screen else tuple(without_live_screen(level)[0])


def since_reset(entries: Sequence[HistoryEntry]) -> Sequence[HistoryEntry]:
    """Return the entries after the last reset."""
    for place in range(len(entries) - 1, -1, -1):
        if isinstance(entries[place], ResetEntry):
            return entries[place + 1 :]
    return entries


def visible(entries: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """Return the entries that models are shown, with summaries in the places that they cover.

    System messages are among them, but not instructions that were set for the whole conversation.
    """
    contextual = [one for one in since_reset(entries) if _is_shown(one)]
    # A later summary may cover an earlier one, whose place it takes.
    shown_as: dict[UUID, HistoryEntry] = {}
    for entry in reversed(contextual):
        if isinstance(entry, CompactionEntry):
            last = shown_as.get(entry.id, entry)
            for covered in entry.covers:
                shown_as.setdefault(covered, last)
    if not shown_as:
        return contextual
    kept: dict[UUID, HistoryEntry] = {}
    for entry in contextual:
        if not isinstance(entry, CompactionEntry):
            last = shown_as.get(entry.id, entry)
            kept.setdefault(last.id, last)
    return list(kept.values())


def _is_shown(entry: HistoryEntry) -> bool:
    if isinstance(entry, InstructionEntry):
        return kept_message(entry) is not None
    return isinstance(entry, ContextualHistoryEntry)


def paired(entries: Sequence[HistoryEntry]) -> dict[int, list[int]]:
    """Return the places of the answers with calls, each with the places of their results.

    A result answers the latest open call of its id, and an `execute_error` the other open calls of
    the last answer.
    """
    pairs: dict[int, list[int]] = {}
    open_calls: dict[str, int] = {}
    last: list[str] = []
    for place, entry in enumerate(entries):
        if isinstance(entry, ModelOutputEntry) and entry.tool_calls:
            pairs[place] = []
        if isinstance(entry, ModelOutputEntry):
            last = [call.tool_call_id for call in entry.tool_calls]
            open_calls |= dict.fromkeys(last, place)
        elif isinstance(entry, ToolResultsEntry):
            answered = [result.tool_call_id for result in entry.results]
            answered += last if entry.execute_error is not None else []
            calls = {open_calls.pop(one) for one in answered if one in open_calls}
            for call in calls:
                pairs[call].append(place)
    return pairs


def shown(entry: HistoryEntry, detail: LevelOfDetail, *, has_screen: bool = True) -> Shown:
    """Return an entry as a context message at a level of detail.

    Raises:
        TypeError: the entry is of a class of the caller.
    """
    match entry:
        case ModelInputEntry():
            return ShownInput(entry, detail, has_screen)
        case ToolResultsEntry():
            return ShownResults(entry, detail, has_screen)
        case ModelOutputEntry():
            return entry
        case CompactionEntry():
            return ShownSummary(entry)
        case InstructionEntry():
            return ShownInstruction(entry)
        case _:
            raise TypeError(f"entry: no message is made of a {type(entry).__name__}")


# Ids of messages whose context messages have none derive from this, their time and place, so that
# the same context gives the same messages.
_NAMESPACE = UUID("6f2c3c1e-5f0e-4a53-9a57-0f6d6e1b7c11")


def to_messages(context: Iterable[ContextMessage]) -> list[Message]:
    """Convert a context to messages.

    Sections become one text with "# heading" lines. An entry that was made of a message, and is
    shown whole, becomes that message, with its reasoning and provider state. An entry that is given
    itself is shown whole. A result that did not
    succeed states its status and duration. An `execute_error` answers every call without a result;
    if all calls have one, it is added to the last result.

    >>> messages = to_messages(state.render_live_context())
    """
    return [copied(message) for message in shared_messages(context)]


def shared_messages(context: Iterable[ContextMessage]) -> list[Message]:
    """Return the messages of a context, which share parts with the log, for readers alone."""
    return [message for message in aligned_messages(context) if message is not None]


def aligned_messages(context: Iterable[ContextMessage]) -> Iterator[Message | None]:
    """Yield the message of each item of a context, None where nothing is shown."""
    open_calls: Sequence[ToolCallRequest] = ()
    for place, said in enumerate(context):
        made_before = _made_of(said)
        known = None if made_before is None else made_before[0].get(made_before[1])
        made = known or _message(said, open_calls)
        # The classes are tested first: a test of a protocol costs as much as a projection.
        if isinstance(said, ModelOutputEntry) or (
            not isinstance(said, _OWN) and isinstance(said, ModelOutputMessage)
        ):
            open_calls = said.tool_calls
        elif made is not None and made.role is Role.TOOL:
            results = [part for part in made.parts if isinstance(part, ToolResultPart)]
            answered = {part.tool_call_id for part in results}
            open_calls = [call for call in open_calls if call.tool_call_id not in answered]
        if made is not None and known is None and not _is_kept(said, made):
            entry = _entry_of(said)
            made.timestamp = said.timestamp
            if entry is None:
                made.id = uuid5(_NAMESPACE, f"{said.timestamp.isoformat()} {place} {said.role}")
            else:
                made.id, made.run_id = entry.id, entry.run_id
        if made is not None and made_before is not None:
            made_before[0][made_before[1]] = made
        yield made


_MADE: Final = Living[dict[tuple[object, ...], Message]]()
"""Messages of entries, by the shown level of detail. Readers must not change them."""


def _made_of(
    said: ContextMessage,
) -> tuple[dict[tuple[object, ...], Message], tuple[object, ...]] | None:
    """Return the messages of an entry, and the key of the shown one; None for any other item."""
    entry: HistoryEntry
    shows: tuple[object, ...] = ()
    if isinstance(said, ModelOutputEntry):
        entry = said
    elif isinstance(said, ShownInput) or (
        isinstance(said, ShownResults) and said.entry.execute_error is None
    ):
        entry, shows = said.entry, (said.detail, said.has_screen)
    else:
        return None
    made = _MADE.find(entry)
    if made is None:
        made = dict[tuple[object, ...], Message]()
        _MADE.keep(entry, made)
    return made, shows


def live_screen_of(entry: HistoryEntry) -> str | None:
    """Return the live screen that was written into an entry, None for an entry without one."""
    match entry:
        case ModelInputEntry():
            return _screen(entry.content_sections)
        case ToolResultsEntry():
            return _screen(entry.results[-1].result) if entry.results else None
        case _:
            return None


def without_reasoning(
    entry: ModelOutputEntry, change: Callable[[Message], Message]
) -> ModelOutputEntry:
    """Return an answer whose message is changed so that some reasoning is not sent again."""
    message = kept_message(entry)
    changed = None if message is None else change(message)
    return entry if changed is message else replace(entry, message=changed)


def recorded_messages(entries: Sequence[HistoryEntry]) -> list[Message]:
    """Return the messages of a log as they were recorded, without live screens and summaries."""
    context: list[ContextMessage] = []
    for entry in since_reset(entries):
        match entry:
            case InstructionEntry():
                context.append(ShownInstruction(entry))
            case ModelInputEntry() | ModelOutputEntry() | ToolResultsEntry():
                context.append(shown(entry, LevelOfDetail.LIVE, has_screen=False))
            case _:
                continue
    return to_messages(context)


_OWN: Final = (ShownInstruction, ShownInput, ShownResults, ShownSummary, SystemInstructionMessage)


def _entry_of(said: ContextMessage) -> HistoryEntry | None:
    if isinstance(said, HistoryEntry):
        return said
    entry: object = getattr(said, "entry", None)
    return entry if isinstance(entry, HistoryEntry) else None


def _is_kept(said: ContextMessage, made: Message) -> bool:
    """Return whether a message has the id of the message that its entry was made of."""
    entry = _entry_of(said)
    if entry is None:
        return isinstance(said, ModelOutputMessage) and said.message is not None
    message = kept_message(entry)
    return message is not None and message.id == made.id


def _message(said: ContextMessage, open_calls: Sequence[ToolCallRequest]) -> Message | None:  # noqa: PLR0911 - one for each kind
    match said:
        case ModelInputEntry() | ToolResultsEntry() | CompactionEntry():
            return _message(shown(said, LevelOfDetail.LIVE), open_calls)
        case ModelOutputEntry():  # classes first, as in `to_messages`
            return own_message(said) or Message(role=Role.ASSISTANT, parts=_said_parts(said))
        case ShownInput() | ShownSummary():
            return _input(said)
        case ShownResults():
            return _results(said, open_calls)
        case ShownInstruction():
            return own_message(said.entry) or Message.system(said.instruction)
        case SystemMessage():
            return Message.system(said.instruction)
        case ModelInputMessage():
            return _input(said)
        case ModelOutputMessage():
            return said.message or Message(role=Role.ASSISTANT, parts=_said_parts(said))
        case ToolResultsMessage():
            return _results(said, open_calls)
        case _:
            return None


def _input(said: ModelInputMessage) -> Message:
    whole, screen = None, None
    if isinstance(said, ShownInput):
        sections = said.entry.content_sections
        whole = own_message(said.entry) if _is_whole(sections, said.detail) else None
        screen = _screen(sections) if said.has_screen and said.detail == "live" else None
    if whole is not None:
        if screen is None:
            return whole
        return whole.model_copy(update={"parts": [*whole.parts, TextPart(text=screen)]})
    parts: list[MessagePart] = []
    if text := to_plain_text(said.content_sections):
        parts.append(TextPart(text=text))
    parts += [attachment.part for attachment in said.attachments]
    return Message(role=Role.USER, parts=parts)


def _results(said: ToolResultsMessage, open_calls: Sequence[ToolCallRequest]) -> Message | None:
    message = kept_message(said.entry) if isinstance(said, ShownResults) else None
    if isinstance(said, ShownResults) and message is not None:
        made = _of_recorded(said, message)
    else:
        made = [_result(result) for result in said.results]
    if said.execute_error is not None:
        answered = {result.tool_call_id for result in made}
        missing = [call for call in open_calls if call.tool_call_id not in answered]
        made += [
            ToolResultPart(
                tool_call_id=call.tool_call_id,
                is_error=True,
                status=str(ToolExecutionStatus.FAILED),
                content=said.execute_error,
            )
            for call in missing
        ]
        if not made:
            return Message.user(said.execute_error)
        if not missing:
            made[-1] = _with_text(made[-1], said.execute_error)
    if not made:
        return None
    if message is not None:
        return message.model_copy(update={"parts": made})
    answer = Message(role=Role.TOOL, parts=list(made))
    if isinstance(said, ShownResults) and said.entry.approvals:
        answer.meta.approvals = [thawed(one) for one in said.entry.approvals]
    return answer


def _of_recorded(said: ShownResults, message: Message) -> list[ToolResultPart]:
    """Return the results of the recorded message, where they are shown whole."""
    results = [part for part in message.parts if isinstance(part, ToolResultPart)]
    recorded = {part.tool_call_id: part for part in results}
    has_screen = said.has_screen and said.detail == LevelOfDetail.LIVE
    chosen: list[ToolResultPart] = []
    for place, result in enumerate(said.entry.results):
        part = recorded.get(result.tool_call_id)
        is_whole = _is_whole(result.result, said.detail)
        if part is None or not is_whole or not agrees_with(result, part):
            chosen.append(_result(said.results[place]))
            continue
        screen = _screen(result.result) if has_screen else None
        chosen.append(part if screen is None else _with_text(part, screen))
    return chosen


def _is_whole(sections: LevelOfDetailSections, detail: LevelOfDetail) -> bool:
    """Return whether a level has everything but the live screen."""
    return (
        without_live_screen(sections.get_sections(detail))[0]
        == without_live_screen(sections.live)[0]
    )


def _screen(sections: LevelOfDetailSections) -> str | None:
    return without_live_screen(sections.live)[1]


def _with_text(part: ToolResultPart, text: str) -> ToolResultPart:
    """Add a text to the end of a result."""
    if isinstance(part.content, str):
        content: str | list[MessagePart] = f"{part.content}\n\n{text}" if part.content else text
    else:
        content = [*result_items(part), TextPart(text=text)]
    return part.model_copy(update={"content": content})


def _said_parts(said: ModelOutputMessage) -> list[MessagePart]:
    parts: list[MessagePart] = [TextPart(text=text) for text in said.contents if text]
    parts += [
        ToolCallPart(
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            raw_args_text=call.raw_arguments,
        )
        for call in said.tool_calls
    ]
    return parts


def _result(result: ToolCallResult) -> ToolResultPart:
    text = to_plain_text(result.result)
    if result.status is not ToolExecutionStatus.SUCCESS and not text:
        text = f"The call was {result.status}{_after(result.elapsed)}."
    content: str | list[ContentPart] = text
    if result.attachments:
        shown_text = [TextPart(text=text)] if text else []
        content = [*shown_text, *(attachment.part for attachment in result.attachments)]
    return ToolResultPart(
        tool_call_id=result.tool_call_id,
        is_error=result.status is not ToolExecutionStatus.SUCCESS,
        status=str(result.status),
        content=content,
    )


def _after(elapsed: timedelta | None) -> str:
    return "" if elapsed is None else f" after {elapsed.total_seconds():.3g} s"
