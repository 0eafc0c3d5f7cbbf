"""The log of a run, read backwards: the steps before an interruption.

In: a log.  Out: open calls and their stages, an answer that broke off, usage of the run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from deltafold.contract.kinds import FinishReason
from deltafold.conversation.context.run_state import RunState
from deltafold.conversation.history.entries import (
    HistoryEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ResetEntry,
    ToolResultsEntry,
)
from deltafold.conversation.history.frozen import kept_message
from deltafold.conversation.history.kinds import CallStage
from deltafold.conversation.history.log import ConversationLog
from deltafold.conversation.history.run_entries import CallEntry, PartialEntry, SentEntry
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest
from deltafold.message.messages import Message
from deltafold.models.continuation import is_continued

GIVEN: Final[Mapping[str, object]] = MappingProxyType({"given": True})
"""Metadata of messages that the caller brought to a run: their calls never run."""


SENT: Final = "sent"
"""Member of the metadata of an input: the id of the entry of the message that it delivers."""

_DECISIONS: Final = frozenset({CallStage.APPROVED, CallStage.REJECTED})


def is_given(entry: HistoryEntry) -> bool:
    """Return whether the caller brought the message of an entry to a run."""
    return entry.metadata.get("given") is True


@dataclass(slots=True)
class Stages:
    """The stages of one call.

    Attributes:
        reached: the stages, without their order.
        result: the result, None if the call has not ended.
        decision: the entry that approves or rejects the call, None if nobody has decided.
    """

    reached: set[CallStage] = field(default_factory=set[CallStage])
    result: HistoryToolCallResult | None = None
    decision: CallEntry | None = None


def open_calls(log: ConversationLog) -> list[ToolCallRequest]:
    """Return the calls of the last answer that have no results."""
    answered: set[str] = set()
    for entry in log.newest_first():
        if isinstance(entry, ModelOutputEntry):
            return [call for call in entry.tool_calls if call.tool_call_id not in answered]
        if isinstance(entry, ToolResultsEntry):
            if entry.execute_error is not None:
                return []
            answered |= {result.tool_call_id for result in entry.results}
        elif isinstance(entry, ModelInputEntry | ResetEntry):
            return []
    return []


def waiting_calls(log: ConversationLog) -> list[ToolCallRequest]:
    """Return the open calls of an answer whose end lets calls run."""
    answer = newest_answer(log)
    message = None if answer is None else kept_message(answer)
    if answer is None or (message is not None and message.forbids_calls):
        return []
    return open_calls(log)


def last_answer(log: ConversationLog) -> ModelOutputEntry | None:
    """Return the answer of this agent's model, if nothing was said after it."""
    for entry in log.newest_first():
        if isinstance(entry, ModelOutputEntry):
            return None if is_given(entry) else entry
        if isinstance(entry, ModelInputEntry | ToolResultsEntry | ResetEntry):
            return None
    return None


def newest_answer(log: ConversationLog) -> ModelOutputEntry | None:
    """Return the newest answer to the newest input, also if results follow it."""
    for entry in log.newest_first():
        if isinstance(entry, ModelOutputEntry):
            return None if is_given(entry) else entry
        if isinstance(entry, ModelInputEntry | ResetEntry):
            return None
    return None


def stages_of(log: ConversationLog) -> dict[str, Stages]:
    """Return the stages of the calls since the last input or results."""
    stages: dict[str, Stages] = {}
    for entry in _since_input(log):
        if isinstance(entry, CallEntry):
            known = stages.setdefault(entry.tool_call_id, Stages())
            known.reached.add(entry.stage)
            known.result = known.result or entry.result
            if entry.stage in _DECISIONS:
                known.decision = known.decision or entry
    return stages


def begun_early(log: ConversationLog) -> list[ToolCallRequest]:
    """Return the calls that began, and whose answer never came to the log."""
    begun: list[ToolCallRequest] = []
    for entry in _since_input(log):
        if isinstance(entry, ModelOutputEntry):
            return []
        if isinstance(entry, CallEntry) and entry.call is not None:
            begun.append(entry.call)
    return begun[::-1]


def finish_of(answer: ModelOutputEntry) -> str | None:
    """Return the finish reason of an answer, None if it is not known."""
    message = answer.message
    return None if message is None else message.meta.finish_reason


def is_paused(answer: ModelOutputEntry) -> bool:
    """Return whether the next request lets the answer go on."""
    return finish_of(answer) == FinishReason.PAUSE


def undelivered(log: ConversationLog) -> list[SentEntry]:
    """Return the messages that were sent and that no input has delivered, oldest first."""
    delivered: set[object] = set()
    waiting: list[SentEntry] = []
    for entry in log.newest_first():
        if isinstance(entry, ResetEntry):
            break
        if isinstance(entry, ModelInputEntry):
            delivered.add(entry.metadata.get(SENT))
        elif isinstance(entry, SentEntry) and str(entry.id) not in delivered:
            waiting.append(entry)
    return waiting[::-1]


def broken_answer(log: ConversationLog) -> Message | None:
    """Return the answer that broke off, if nothing has followed it."""
    for entry in _since_input(log):
        if isinstance(entry, PartialEntry):
            return entry.message
        if isinstance(entry, ModelOutputEntry):
            return None
    return None


def _since_input(log: ConversationLog) -> Iterator[HistoryEntry]:
    """Iterate from the newest entry back to the last input or results."""
    for entry in log.newest_first():
        if isinstance(entry, ModelInputEntry | ToolResultsEntry | ResetEntry):
            return
        yield entry


def begun_calls(log: ConversationLog) -> set[str]:
    """Return the ids of the calls of tools that have begun in the current run."""
    return {
        entry.tool_call_id
        for entry in log.entries
        if isinstance(entry, CallEntry)
        and entry.stage is CallStage.STARTED
        and entry.run_id == log.run_id
    }


def count_run(log: ConversationLog, run_id: str | None, state: RunState) -> int:
    """Return the number of answers of a run, and count the usage and cost of its requests anew."""
    entries = [entry for entry in log.entries if entry.run_id == run_id]
    state.forget_usage()
    for message in _counted(entries):
        meta = message.meta
        state.add_usage(meta.usage, meta.cost_usd, meta.cost_unpriced)
    return sum(isinstance(entry, ModelOutputEntry) for entry in entries)


def _counted(entries: Iterable[HistoryEntry]) -> Iterator[Message]:
    """Yield the messages of a run; a message that was continued counts in its continuation."""
    waiting: Message | None = None
    for entry in entries:
        message = kept_message(entry)
        if not isinstance(entry, PartialEntry | ModelOutputEntry) or message is None:
            continue
        if waiting is not None and not is_continued(message):
            yield waiting
        waiting = message
    if waiting is not None:
        yield waiting
