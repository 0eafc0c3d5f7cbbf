"""Context manager: selects a level of detail for each entry, so that the context fits a budget.

In: a history and a budget of tokens.  Out: the context that fits, the level of each entry, and a
report on reduced and omitted entries.

Laws: nothing is reduced while everything fits. The newest input and the newest results are shown
whole. Older entries are reduced first, the oldest before the others: to their summary, to their
gist; then older exchanges are left out, and then the older turns of the newest exchange. A call is
never shown without its result, nor a result without its call. Work is linear in the history.
Source: the core domain model, ContextManager.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from deltafold.conversation.entries import (
    CompactionEntry,
    ContextAttachment,
    ContextualHistoryEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ToolResultsEntry,
)
from deltafold.conversation.frozen import kept_message
from deltafold.conversation.projection import (
    ContextMessage,
    paired,
    shown,
    shown_sections,
    to_messages,
    visible,
)
from deltafold.conversation.sections import LevelOfDetail, LevelOfDetailSections, to_plain_text
from deltafold.conversation.state import AgentState
from deltafold.conversation.tokens import FRAME_TOKENS, CountTokens, TokenCounter, estimate_tokens
from deltafold.conversation.widgets import Tool
from deltafold.exceptions import MisuseError
from deltafold.messages import FileRefPart, ImagePart, Message, ProviderPart, ThinkingPart
from deltafold.tool_specs import ToolSpec

Compact: TypeAlias = Callable[[list[Message]], str | Awaitable[str]]
"""Summarises messages that would be left out; it may call a model."""

COMPACTED_SHARE: Final = 0.5
"""Share of the budget that the context has after a compaction, so that few calls need one."""

_LEVELS: Final = (LevelOfDetail.LIVE, LevelOfDetail.SUMMARY, LevelOfDetail.GIST)


@dataclass(frozen=True, slots=True)
class ContextInput:
    """Input of the context manager.

    Attributes:
        state: the conversation.
        token_budget: maximum number of tokens of the context; None is no limit.
        count_tokens: counts the tokens of a text; the default is `estimate_tokens`.
        tools: the tools of the request, whose specifications the provider counts.
        dialect: dialect of the request, by whose rule images count; None takes the largest number
            of all rules.
        model_id: model of the request.
    """

    state: AgentState
    token_budget: int | None = None
    count_tokens: CountTokens = estimate_tokens
    tools: Sequence[Tool | ToolSpec] = ()
    dialect: str | None = None
    model_id: str = ""


@dataclass(frozen=True, slots=True)
class ContextUpdateResult:
    """Level of detail of each contextual entry.

    Attributes:
        levels: one level per shown entry, in their order; None leaves the entry out.
        tokens: number of tokens of the context, including the instruction and the tools.
        fits: whether `tokens` is within the budget. The newest input, the newest results and what
            follows them are shown even if it is not.
        reason: reason why the context does not fit, None if it fits.
        reduced: ids of the entries that are shown as their summary or gist.
        left_out: ids of the entries that are left out.
    """

    levels: tuple[LevelOfDetail | None, ...]
    tokens: int
    fits: bool
    reason: str | None = None
    reduced: tuple[UUID, ...] = ()
    left_out: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextBuildResult:
    """A context that is ready to be sent.

    Attributes:
        context: the instruction, followed by the selected entries of the history.
        update: the level of detail of each entry.
        compaction: the summary that was made and appended to the log, None if there is none.
    """

    context: Sequence[ContextMessage]
    update: ContextUpdateResult
    compaction: CompactionEntry | None = None

    @property
    def messages(self) -> list[Message]:
        """The context as messages."""
        return to_messages(self.context)


class ContextManager:
    """Makes contexts that fit.

    >>> built = ContextManager().build_context(ContextInput(state, token_budget=100_000))
    >>> model.stream(built.messages)

    Args:
        compact: summarises the messages that would be left out, for `abuild_context` also
            asynchronously. The summary is appended to the log of the state, and models are shown it
            instead of the entries. None leaves them out.
    """

    def __init__(self, compact: Compact | None = None) -> None:
        self._compact = compact

    def build_context(self, given: ContextInput) -> ContextBuildResult:
        """Make the context of a conversation, at the levels that fit.

        Raises:
            MisuseError: `compact` is asynchronous.
            ValueError: `compact` has returned an empty summary.
        """
        plan = _Plan(given)
        update = plan.update(given.token_budget)
        if self._compact is None or not update.left_out:
            return ContextBuildResult(plan.context(update), update)
        covered = plan.to_compact()
        summary = self._compact(plan.messages(covered))
        if not isinstance(summary, str):
            if inspect.iscoroutine(summary):
                summary.close()
            raise MisuseError("compact is asynchronous; call abuild_context")
        return self._compacted(given, summary, covered)

    async def abuild_context(self, given: ContextInput) -> ContextBuildResult:
        """Make the context of a conversation; `compact` may be asynchronous."""
        plan = _Plan(given)
        update = plan.update(given.token_budget)
        if self._compact is None or not update.left_out:
            return ContextBuildResult(plan.context(update), update)
        covered = plan.to_compact()
        summary = self._compact(plan.messages(covered))
        if not isinstance(summary, str):
            summary = await summary
        return self._compacted(given, summary, covered)

    def compute_context_updates(self, given: ContextInput) -> ContextUpdateResult:
        """Choose the level of each entry."""
        return _Plan(given).update(given.token_budget)

    def _compacted(
        self, given: ContextInput, summary: str, covered: Sequence[UUID]
    ) -> ContextBuildResult:
        entry = given.state.append_compaction(summary, covered)
        plan = _Plan(given)
        update = plan.update(given.token_budget)
        return ContextBuildResult(plan.context(update), update, entry)


@dataclass(slots=True)
class _Levels:
    """Chosen levels, and the tokens of the context with them."""

    levels: list[LevelOfDetail | None]
    tokens: int


class _Plan:
    """Sizes of the entries of a conversation, and the order in which they give way."""

    def __init__(self, given: ContextInput) -> None:
        self._state = given.state
        self._budget = given.token_budget
        self._counter = TokenCounter(given.count_tokens, given.dialect, given.model_id)
        self._entries = visible(given.state.log.entries)
        places = range(len(self._entries))
        spoken = [
            place for place in places if not isinstance(self._entries[place], ModelOutputEntry)
        ]
        self._newest = spoken[-1] if spoken else None
        self._costs = [self._cost(place) for place in places]
        tools = [tool.spec() if isinstance(tool, Tool) else tool for tool in given.tools]
        instruction = given.count_tokens(given.state.system_instruction)
        self._fixed = FRAME_TOKENS + instruction + self._counter.tools(tools)
        self._exchanges = _exchanges(self._entries)
        inputs = self._exchanges[-1][0] if self._exchanges else []
        self._whole = {*inputs, *spoken[-1:]}

    def update(self, budget: int | None) -> ContextUpdateResult:
        """Choose the levels for a budget."""
        live = sum(cost[LevelOfDetail.LIVE] for cost in self._costs)
        chosen = _Levels([LevelOfDetail.LIVE] * len(self._entries), self._fixed + live)
        if budget is not None:
            self._reduce(chosen, budget)
            self._leave_out(chosen, budget)
        fits = budget is None or chosen.tokens <= budget
        ids = [entry.id for entry in self._entries]
        shown_levels = list(enumerate(chosen.levels))
        return ContextUpdateResult(
            tuple(chosen.levels),
            chosen.tokens,
            fits,
            None if fits else self._reason(chosen.tokens, budget),
            tuple(ids[place] for place, level in shown_levels if level not in {None, "live"}),
            tuple(ids[place] for place, level in shown_levels if level is None),
        )

    def context(self, update: ContextUpdateResult) -> list[ContextMessage]:
        """Return the instruction and the entries at their levels."""
        context: list[ContextMessage] = [self._state.instruction_message()]
        for place, level in enumerate(update.levels):
            if level is not None:
                message = shown(self._entries[place], level, has_screen=place == self._newest)
                context += [] if message is None else [message]
        return context

    def to_compact(self) -> list[UUID]:
        """Return the ids of the entries that a summary shall replace."""
        budget = int((self._budget or 0) * COMPACTED_SHARE)
        return list(self.update(budget).left_out)

    def messages(self, ids: Sequence[UUID]) -> list[Message]:
        """Return entries as messages with all details."""
        wanted = set(ids)
        context = [
            shown(entry, LevelOfDetail.LIVE, has_screen=False)
            for entry in self._entries
            if entry.id in wanted
        ]
        return to_messages(message for message in context if message is not None)

    def _reduce(self, chosen: _Levels, budget: int) -> None:
        """Reduce entries to their summary and then to their gist, the oldest first."""
        for level in (LevelOfDetail.SUMMARY, LevelOfDetail.GIST):
            for place, cost in enumerate(self._costs):
                if chosen.tokens <= budget:
                    return
                saved = cost[chosen.levels[place] or level] - cost[level]
                if place not in self._whole and saved > 0:
                    chosen.levels[place] = level
                    chosen.tokens -= saved

    def _leave_out(self, chosen: _Levels, budget: int) -> None:
        """Leave out older exchanges, and then the older turns of the newest exchange."""
        *older, newest = self._exchanges or [[]]
        turns = [[place for turn in exchange for place in turn] for exchange in older]
        turns += [turn for turn in newest[1:-1] if turn[-1] < (self._newest or 0)]
        for turn in turns:
            if chosen.tokens <= budget:
                return
            for place in turn:
                level = chosen.levels[place]
                if level is not None:
                    chosen.tokens -= self._costs[place][level]
                chosen.levels[place] = None

    def _reason(self, tokens: int, budget: int | None) -> str:
        newest = tokens - self._fixed
        return (
            f"the context has at least {tokens:,} tokens, and the budget is {budget:,}: the "
            f"instruction and the tools have {self._fixed:,}, the newest input and turn {newest:,}"
        )

    def _cost(self, place: int) -> dict[LevelOfDetail, int]:
        """Count an entry's tokens at each level."""
        has_screen = place == self._newest
        match self._entries[place]:
            case ModelInputEntry() as entry:
                media = self._attachments(entry.attachments)
                return {
                    level: FRAME_TOKENS
                    + media
                    + self._sections(entry.content_sections, level, has_screen)
                    for level in _LEVELS
                }
            case ToolResultsEntry() as entry:
                error = self._counter.count_text(entry.execute_error or "")
                media = sum(self._attachments(result.attachments) for result in entry.results)
                return {
                    level: error
                    + media
                    + sum(
                        FRAME_TOKENS + self._sections(result.result, level, has_screen)
                        for result in entry.results
                    )
                    for level in _LEVELS
                }
            case ModelOutputEntry() as entry:
                return dict.fromkeys(_LEVELS, self._output(entry))
            case CompactionEntry() as entry:
                count = FRAME_TOKENS + self._counter.count_text(entry.summary)
                return dict.fromkeys(_LEVELS, count)
            case _:
                return dict.fromkeys(_LEVELS, 0)

    def _sections(
        self, sections: LevelOfDetailSections, level: LevelOfDetail, has_screen: bool
    ) -> int:
        return self._counter.count_text(to_plain_text(shown_sections(sections, level, has_screen)))

    def _attachments(self, attachments: Sequence[ContextAttachment]) -> int:
        return sum(self._counter.media(attachment.part) for attachment in attachments)

    def _output(self, entry: ModelOutputEntry) -> int:
        count = self._counter.count_text
        said = [*entry.contents]
        for call in entry.tool_calls:
            said += [call.tool_name, call.raw_arguments]
        cost = FRAME_TOKENS * (1 + len(entry.tool_calls)) + count("".join(said))
        message = kept_message(entry)
        for part in () if message is None else message.parts:
            match part:
                case ThinkingPart():
                    cost += count(part.text)
                case ImagePart() | FileRefPart():
                    cost += self._counter.media(part)
                case ProviderPart():
                    cost += count(json.dumps(part.block, ensure_ascii=False))
                case _:
                    pass
            if part.provider_state is not None:
                cost += count(json.dumps(part.provider_state, ensure_ascii=False))
        return cost


def _exchanges(entries: Sequence[ContextualHistoryEntry]) -> list[list[list[int]]]:
    """Group the places of entries to exchanges of turns.

    An exchange begins with the inputs of the user. The turns after it are answers with all entries
    up to the results of their calls, and summaries of earlier turns.
    """
    ends = {call: results for call, results in paired(entries) if results is not None}
    exchanges: list[list[list[int]]] = []
    end_of_turn = -1
    for place, entry in enumerate(entries):
        is_within = place <= end_of_turn
        end_of_turn = max(end_of_turn, ends.get(place, place))
        begins = isinstance(entry, ModelInputEntry) and not is_within
        if not exchanges or (begins and len(exchanges[-1]) > 1):
            exchanges.append([[]])
        exchange = exchanges[-1]
        is_turn = isinstance(entry, ModelOutputEntry | CompactionEntry) and not is_within
        if begins:
            exchange[0].append(place)
        elif is_turn or len(exchange) == 1:
            exchange.append([place])
        else:
            exchange[-1].append(place)
    return exchanges
