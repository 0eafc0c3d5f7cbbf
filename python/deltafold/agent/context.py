"""Context manager: selects a level of detail for each entry, so that the context fits a budget.

In: a history and a budget of tokens.  Out: the context that fits, and the level of each entry.

Laws: the newest input or results are shown live. Older entries are reduced first, the oldest before
the others: to their summary, to their gist, and then whole exchanges are left out. A call is never
shown without its result, nor a result without its call. Work is linear in the history.
Source: the core domain model, ContextManager.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from deltafold.history.context import (
    ContextMessage,
    ShownInput,
    ShownResults,
    SystemInstructionMessage,
    to_messages,
)
from deltafold.history.entries import (
    ContextualHistoryEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ToolResultsEntry,
)
from deltafold.history.sections import LevelOfDetail, Sections, to_plain_text
from deltafold.history.state import AgentState
from deltafold.messages import Message

CountTokens: TypeAlias = Callable[[str], int]

# Tokens of an entry beside its text: the role and the separators.
_FRAME_TOKENS: Final = 4


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: four bytes each, which errs on the long side for English."""
    return (len(text.encode()) + 3) // 4


@dataclass(frozen=True, slots=True)
class ContextInput:
    """Input of the context manager.

    Attributes:
        state: the conversation.
        token_budget: maximum number of tokens of the context; None is no limit.
        count_tokens: counts the tokens of a text.
    """

    state: AgentState
    token_budget: int | None = None
    count_tokens: CountTokens = estimate_tokens


@dataclass(frozen=True, slots=True)
class ContextUpdateResult:
    """Level of detail of each contextual entry.

    Attributes:
        levels: one level per entry, in the order of the history; None leaves the entry out.
        tokens: number of tokens of the context, including the instruction.
        fits: whether `tokens` is within the budget. The newest exchange is shown even if it is not.
    """

    levels: tuple[LevelOfDetail | None, ...]
    tokens: int
    fits: bool

    @property
    def left_out(self) -> int:
        """Number of entries that are left out."""
        return self.levels.count(None)


@dataclass(frozen=True, slots=True)
class ContextBuildResult:
    """A context that is ready to be sent.

    Attributes:
        context: the instruction, followed by the selected entries of the history.
        update: the level of detail of each entry.
    """

    context: Sequence[ContextMessage]
    update: ContextUpdateResult

    @property
    def messages(self) -> list[Message]:
        """The context as messages."""
        return to_messages(self.context)


class ContextManager:
    """Makes contexts that fit.

    >>> built = ContextManager().build_context(ContextInput(state, token_budget=100_000))
    >>> model.stream(built.messages)
    """

    def build_context(self, given: ContextInput) -> ContextBuildResult:
        """Make the context of a conversation, at the levels that fit."""
        update = self.compute_context_updates(given)
        instruction = SystemInstructionMessage(given.state.system_instruction)
        context: list[ContextMessage] = [instruction]
        for entry, level in zip(_contextual(given.state), update.levels, strict=True):
            match entry, level:
                case _, None:
                    continue
                case ModelInputEntry(), LevelOfDetail():
                    context.append(ShownInput(entry, level))
                case ToolResultsEntry(), LevelOfDetail():
                    context.append(ShownResults(entry, level))
                case _:
                    context.append(entry)
        return ContextBuildResult(context, update)

    def compute_context_updates(self, given: ContextInput) -> ContextUpdateResult:
        """Choose the level of each entry."""
        entries = _contextual(given.state)
        groups = _exchanges(entries)
        levels: list[LevelOfDetail | None] = [LevelOfDetail.SUMMARY] * len(entries)
        newest = max(
            (
                place
                for place, entry in enumerate(entries)
                if not isinstance(entry, ModelOutputEntry)
            ),
            default=None,
        )
        if newest is not None:
            levels[newest] = LevelOfDetail.LIVE
        costs = [_cost(entry, given.count_tokens) for entry in entries]
        total = _FRAME_TOKENS + given.count_tokens(given.state.system_instruction)
        total += sum(costs[place][level] for place, level in enumerate(levels) if level)
        budget = given.token_budget
        if budget is None:
            return ContextUpdateResult(tuple(levels), total, fits=True)
        for place in range(len(entries)):
            if total <= budget:
                break
            if place != newest:
                total -= costs[place][LevelOfDetail.SUMMARY] - costs[place][LevelOfDetail.GIST]
                levels[place] = LevelOfDetail.GIST
        for group in groups[:-1]:
            if total <= budget:
                break
            for place in group:
                level = levels[place]
                if level is not None:
                    total -= costs[place][level]
                levels[place] = None
        return ContextUpdateResult(tuple(levels), total, fits=total <= budget)


def _contextual(state: AgentState) -> list[ContextualHistoryEntry]:
    return [entry for entry in state.history if isinstance(entry, ContextualHistoryEntry)]


def _exchanges(entries: Sequence[ContextualHistoryEntry]) -> list[range]:
    """Group entries from each input to the next; a group is shown or left out as a whole."""
    starts = [place for place, entry in enumerate(entries) if isinstance(entry, ModelInputEntry)]
    bounds = sorted({0, *starts, len(entries)})
    return [range(one, two) for one, two in pairwise(bounds)]


def _cost(entry: ContextualHistoryEntry, count: CountTokens) -> dict[LevelOfDetail, int]:
    """Count an entry's tokens at each level."""
    match entry:
        case ModelInputEntry():
            return {
                level: _FRAME_TOKENS + count(_text(entry.content_sections.get_sections(level)))
                for level in LevelOfDetail
            }
        case ToolResultsEntry():
            error = count(entry.execute_error or "")
            return {
                level: error
                + sum(
                    _FRAME_TOKENS + count(_text(result.result.get_sections(level)))
                    for result in entry.results
                )
                for level in LevelOfDetail
            }
        case ModelOutputEntry():
            said = [*entry.contents, *(call.raw_arguments for call in entry.tool_calls)]
            cost = _FRAME_TOKENS + count("".join(said))
            message = entry.message
            if message is not None:
                cost += count(message.thinking)
                states = [part.provider_state for part in message.parts if part.provider_state]
                cost += count(json.dumps(states)) if states else 0
            return dict.fromkeys(LevelOfDetail, cost)
        case _:
            return dict.fromkeys(LevelOfDetail, 0)


def _text(sections: Sections) -> str:
    return to_plain_text(sections)
