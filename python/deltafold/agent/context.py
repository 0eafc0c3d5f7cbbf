"""The context manager: which level of detail each entry is shown at, so that all of it fits.

In: a history and a budget of tokens.  Out: the context that fits, and what was done to make it fit.

Laws: the newest input or results are shown live; older ones give way first, oldest first: their
summary, their gist, then whole exchanges are left out; a call is never shown without its result,
nor a result without its call; work is linear in the history.
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

# What an entry costs beside its text: role, separators.
_FRAME_TOKENS: Final = 4


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: four bytes each, which errs on the long side for English."""
    return (len(text.encode()) + 3) // 4


@dataclass(frozen=True, slots=True)
class ContextInput:
    """What a context is made of.

    Attributes:
        state: the conversation.
        token_budget: how many tokens the context may have; None is no limit.
        count_tokens: counts the tokens of a text.
    """

    state: AgentState
    token_budget: int | None = None
    count_tokens: CountTokens = estimate_tokens


@dataclass(frozen=True, slots=True)
class ContextUpdateResult:
    """How each contextual entry is shown.

    Attributes:
        levels: in the order of the history; None is left out.
        tokens: how many tokens that takes, the instruction included.
        fits: whether that is within the budget; the newest exchange is shown even where it is not.
    """

    levels: tuple[LevelOfDetail | None, ...]
    tokens: int
    fits: bool

    @property
    def left_out(self) -> int:
        """How many entries are left out."""
        return self.levels.count(None)


@dataclass(frozen=True, slots=True)
class ContextBuildResult:
    """A context that is ready to be sent.

    Attributes:
        context: the instruction, then what is shown of the history.
        update: how each entry is shown.
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
    """Group entries into what is shown or left out together: from each input to the next."""
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
