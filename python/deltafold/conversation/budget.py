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
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from deltafold.conversation.context import ContextMessage
from deltafold.conversation.entries import (
    CompactionEntry,
    HistoryEntry,
    InstructionEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ToolResultsEntry,
)
from deltafold.conversation.projection import (
    aligned_messages,
    paired,
    shared_messages,
    shown,
    to_messages,
)
from deltafold.conversation.sections import (
    LevelOfDetail,
    LevelOfDetailSections,
    without_live_screen,
)
from deltafold.conversation.state import AgentState
from deltafold.conversation.tokens import CountTokens, TokenCounter, estimate_tokens
from deltafold.conversation.tools import Tool
from deltafold.exceptions import MisuseError
from deltafold.messages import Message
from deltafold.tool_specs import ToolSpec

Compact: TypeAlias = Callable[[list[Message]], str | Awaitable[str]]
"""Summarises messages that would be left out; it may call a model.

>>> def compact(messages):
...     return f"{len(messages)} messages about tides."
>>> result = ContextManager(compact).build_context(ContextInput(state, token_budget=1000))
>>> result.compaction is None
True
"""

COMPACTED_SHARE: Final = 0.5
"""Share of the budget that the context has after a compaction, so that few calls need one."""


@dataclass(frozen=True, slots=True)
class ContextInput:
    """Input of the context manager.

    >>> state = AgentState.create_default("Be brief.")
    >>> ContextManager().build_context(ContextInput(state, token_budget=1000)).update.fits
    True

    Attributes:
        state: the conversation.
        token_budget: maximum number of tokens of the context; None sets no limit.
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

    >>> entry = state.append_model_input(ModelInputEntry(content_sections=sections))
    >>> update = ContextManager().build_context(ContextInput(state, token_budget=1000)).update
    >>> update.levels, update.fits
    ((<LevelOfDetail.LIVE: 'live'>,), True)

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

    >>> result = ContextManager().build_context(ContextInput(state))
    >>> [message.role.value for message in result.messages]
    ['system']

    Attributes:
        context: the instruction, followed by the selected entries of the history.
        update: the level of detail of each entry.
        compaction: the summary that was made and appended to the log, None if there is none.
        unused_summary: a summary of `compact` that is too long to help, and was not appended.
    """

    context: Sequence[ContextMessage]
    update: ContextUpdateResult
    compaction: CompactionEntry | None = None
    unused_summary: str | None = None

    @property
    def messages(self) -> list[Message]:
        """The context as messages."""
        return to_messages(self.context)


def whole_context(state: AgentState) -> list[ContextMessage]:
    """Return the instruction and all entries with all details, the newest with the live screen."""
    entries = state.visible_entries()
    read = ModelInputEntry | ToolResultsEntry
    newest = max((place for place, one in enumerate(entries) if isinstance(one, read)), default=0)
    return [
        state.instruction_message(),
        *(
            shown(entry, LevelOfDetail.LIVE, has_screen=place == newest)
            for place, entry in enumerate(entries)
        ),
    ]


class ContextManager:
    """Makes contexts that fit.

    >>> built = ContextManager().build_context(ContextInput(state, token_budget=100_000))
    >>> model.stream(built.messages)

    Args:
        compact: summarises the messages that would be left out, for `abuild_context` also
            asynchronously. The summary is appended to the log of the state, and models are shown it
            instead of the entries. None leaves them out. A summary that has more tokens than half
            of the budget, or than the entries, is not appended.
    """

    def __init__(self, compact: Compact | None = None) -> None:
        self._compact = compact

    def build_context(self, given: ContextInput) -> ContextBuildResult:
        """Make the context of a conversation, at the levels that fit.

        Raises:
            MisuseError: `compact` is asynchronous, or returns no string.
            ValueError: the budget is not positive.
        """
        plan = _Plan(given)
        update = plan.update(given.token_budget)
        if self._compact is None or not update.left_out:
            return ContextBuildResult(plan.context(update), update)
        covered = plan.to_compact()
        summary = self._compact(plan.messages(covered))
        if inspect.isawaitable(summary):
            if inspect.iscoroutine(summary):
                summary.close()
            raise MisuseError("compact is asynchronous; call abuild_context")
        return _compacted(plan, summary, covered)

    async def abuild_context(self, given: ContextInput) -> ContextBuildResult:
        """Make the context of a conversation; `compact` may be asynchronous.

        Raises:
            MisuseError: `compact` returns no string.
            ValueError: the budget is not positive.
        """
        plan = _Plan(given)
        update = plan.update(given.token_budget)
        if self._compact is None or not update.left_out:
            return ContextBuildResult(plan.context(update), update)
        covered = plan.to_compact()
        summary: object = self._compact(plan.messages(covered))
        if inspect.isawaitable(summary):
            summary = await summary
        return _compacted(plan, summary, covered)

    def compute_context_updates(self, given: ContextInput) -> ContextUpdateResult:
        """Choose the level of each entry."""
        return _Plan(given).update(given.token_budget)


def _compacted(plan: "_Plan", summary: object, covered: Sequence[UUID]) -> ContextBuildResult:
    """Append a summary, if it helps, and make the context with it."""
    if not isinstance(summary, str):
        raise MisuseError(f"compact must return a string, not {type(summary).__name__}")
    given = plan.given
    # The conversation may have gone on while `compact` ran.
    shown_now = {entry.id for entry in given.state.visible_entries()}
    still_shown = [one for one in covered if one in shown_now]
    entry = None
    if still_shown and plan.is_worth(summary, still_shown):
        entry = given.state.append_compaction(summary, still_shown)
    changed = _Plan(given)
    update = changed.update(given.token_budget)
    unused = summary if entry is None else None
    return ContextBuildResult(changed.context(update), update, entry, unused)


@dataclass(slots=True)
class _Levels:
    """Chosen levels, and the tokens of the context with them."""

    levels: list[LevelOfDetail | None]
    tokens: int


class _Plan:
    """Sizes of the entries of a conversation, and the order in which they give way."""

    def __init__(self, given: ContextInput) -> None:
        budget = given.token_budget
        if budget is not None and (type(budget) is not int or budget <= 0):
            raise ValueError(f"token_budget must be a positive number of tokens, not {budget!r}")
        self.given = given
        self._counter = TokenCounter(given.count_tokens, given.dialect, given.model_id)
        self._entries = given.state.visible_entries()
        places = range(len(self._entries))
        read = ModelInputEntry | ToolResultsEntry
        spoken = [place for place in places if isinstance(self._entries[place], read)]
        self._newest = spoken[-1] if spoken else None
        self._exchanges = _exchanges(self._entries)
        inputs = self._exchanges[-1][0] if self._exchanges else []
        self._whole = {*inputs[-1:], *spoken[-1:]}
        self._costs = {LevelOfDetail.LIVE: self._live_costs()}
        tools = [tool.to_spec() if isinstance(tool, Tool) else tool for tool in given.tools]
        (instruction,) = shared_messages([given.state.instruction_message()])
        self._fixed = self._counter.message(instruction) + self._counter.tools(tools)

    def update(self, budget: int | None) -> ContextUpdateResult:
        """Choose the levels for a budget."""
        live = sum(self._costs[LevelOfDetail.LIVE])
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
        context: list[ContextMessage] = [self.given.state.instruction_message()]
        for place, level in enumerate(update.levels):
            if level is not None:
                context.append(self._shown(place, level))
        return context

    def to_compact(self) -> list[UUID]:
        """Return the ids of the entries that a summary shall replace."""
        budget = max(1, int((self.given.token_budget or 0) * COMPACTED_SHARE))
        return list(self.update(budget).left_out)

    def messages(self, ids: Sequence[UUID]) -> list[Message]:
        """Return entries as messages with all details."""
        wanted = set(ids)
        places = [place for place, entry in enumerate(self._entries) if entry.id in wanted]
        return to_messages(
            self._shown(place, LevelOfDetail.LIVE, has_screen=False) for place in places
        )

    def is_worth(self, summary: str, ids: Sequence[UUID]) -> bool:
        """Return whether a summary is shorter than entries, and leaves room for the others."""
        wanted = set(ids)
        live = self._costs[LevelOfDetail.LIVE]
        replaced = sum(
            cost for entry, cost in zip(self._entries, live, strict=True) if entry.id in wanted
        )
        tokens = self._counter.count_text(summary)
        return tokens < min(replaced, (self.given.token_budget or 0) * COMPACTED_SHARE)

    def _shown(
        self, place: int, level: LevelOfDetail, *, has_screen: bool | None = None
    ) -> ContextMessage:
        is_newest = place == self._newest
        return shown(self._entries[place], level, has_screen=is_newest and has_screen is not False)

    def _live_costs(self) -> list[int]:
        """Count the tokens of the messages that the entries become."""
        places = range(len(self._entries))
        context = [self._shown(place, LevelOfDetail.LIVE) for place in places]
        count = self._counter.message
        return [0 if message is None else count(message) for message in aligned_messages(context)]

    def _reduced_cost(self, place: int, level: LevelOfDetail) -> int:
        """Count the tokens of an entry at a level below live."""
        live = self._costs[LevelOfDetail.LIVE][place]
        match self._entries[place]:
            case ModelInputEntry() as entry:
                texts = [entry.content_sections]
            case ToolResultsEntry(execute_error=None) as entry:
                texts = [result.result for result in entry.results]
            case _:
                return live
        if place in self._whole or all(_is_as_live(text, level) for text in texts):
            return live
        (message,) = shared_messages([self._shown(place, level)])
        return self._counter.message(message)

    def _reduce(self, chosen: _Levels, budget: int) -> None:
        """Reduce entries to their summary and then to their gist, the oldest first."""
        for level in (LevelOfDetail.SUMMARY, LevelOfDetail.GIST):
            if chosen.tokens <= budget:
                return
            costs = self._costs.get(level)
            if costs is None:
                costs = [self._reduced_cost(place, level) for place in range(len(self._entries))]
                self._costs[level] = costs
            for place, cost in enumerate(costs):
                if chosen.tokens <= budget:
                    return
                saved = self._costs[chosen.levels[place] or level][place] - cost
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
                    chosen.tokens -= self._costs[level][place]
                chosen.levels[place] = None

    def _reason(self, tokens: int, budget: int | None) -> str:
        newest = tokens - self._fixed
        return (
            f"the context has at least {tokens:,} tokens, and the budget is {budget:,}: the "
            f"instruction and the tools have {self._fixed:,}, the newest input and turn {newest:,}"
        )


def _is_as_live(sections: LevelOfDetailSections, level: LevelOfDetail) -> bool:
    return without_live_screen(sections.live)[0] == sections.get_sections(level)


def _exchanges(entries: Sequence[HistoryEntry]) -> list[list[list[int]]]:
    """Group the places of entries to exchanges of turns.

    An exchange begins with the inputs of the user. The turns after it are answers with all entries
    up to the results of their calls, and summaries of earlier turns.
    """
    ends = {call: max(results, default=call) for call, results in paired(entries).items()}
    exchanges: list[list[list[int]]] = []
    end_of_turn = -1
    for place, entry in enumerate(entries):
        is_within = place <= end_of_turn
        end_of_turn = max(end_of_turn, ends.get(place, place))
        begins = isinstance(entry, ModelInputEntry | InstructionEntry) and not is_within
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
