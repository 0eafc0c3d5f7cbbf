"""Context manager: selects a level of detail for each entry, so that the context fits a budget.

In: a history and a budget of tokens.  Out: the context that fits, the level of each entry, and a
report on reduced and omitted entries.

Laws: nothing is reduced while everything fits, and what was sent is sent again unchanged until the
budget forces a cut. The newest input and the newest results are shown whole. At a cut, older
exchanges are reduced first, the oldest before the others: to their summary, to their gist; then
they are left out. Then the newest exchange gives way in the same order: its results, then its older
turns. A call is never shown without its result, nor a result without its call. Work is linear in
the history.
Source: docs/blueprint.md#context-manager.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import RequestProtocol
from deltafold.conversation.context.plan import (
    Levels,
    Plan,
    before_repairs,
    behind_summaries,
    first_screens,
)
from deltafold.conversation.context.state import AgentState
from deltafold.conversation.context.tokens import CountTokens, TokenCounter, estimate_tokens
from deltafold.conversation.history.context_messages import ContextMessage
from deltafold.conversation.history.entries import CompactionEntry, HistoryEntry, ModelOutputEntry
from deltafold.conversation.history.projection import (
    live_screen_of,
    shown,
    to_messages,
    without_reasoning,
)
from deltafold.conversation.history.sections import LevelOfDetail
from deltafold.conversation.tools.tools import Tool
from deltafold.dialects.replay import unbound_message, unsigned_message
from deltafold.message.messages import Message
from deltafold.specs.tool_specs import ToolSpec

Compact: TypeAlias = Callable[[list[Message]], str | Awaitable[str]]
"""Summarises messages that would be left out; it may call a model.

>>> def compact(messages):
...     return f"{len(messages)} messages about tides."
>>> result = ContextManager(compact).build_context(
...     ContextInput(state, token_budget=1000)
... )
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
        budget_since: id of the input or the results whose request was the first one with this
            budget, so that the cut comes there; those before it are taken as sent whole. None, and
            the id of an entry that models are not shown any more, is the first request.
    """

    state: AgentState
    token_budget: int | None = None
    count_tokens: CountTokens = estimate_tokens
    tools: Sequence[Tool | ToolSpec] = ()
    dialect: RequestProtocol | None = None
    model_id: str = ""
    budget_since: UUID | None = None


@dataclass(frozen=True, slots=True)
class ContextUpdateResult:
    """Level of detail of each contextual entry.

    >>> entry = state.append_model_input(ModelInputEntry(content_sections=sections))
    >>> context = ContextInput(state, token_budget=1000)
    >>> update = ContextManager().build_context(context).update
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
        context: the instruction if there is one, followed by the selected entries of the history.
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
    """Return the instruction and all entries with all details.

    Each live screen is shown where it was sent first. An answer that is older than a summary before
    it has no reasoning that is bound to what the summary replaced.
    """
    entries = state.visible_entries()
    screens = first_screens([live_screen_of(entry) for entry in entries])
    levels = Levels(
        [LevelOfDetail.LIVE] * len(entries),
        screens,
        behind_summaries(entries, state),
        before_repairs(entries),
    )
    return context_of(state, entries, levels)


def context_of(
    state: AgentState, entries: Sequence[HistoryEntry], chosen: Levels
) -> list[ContextMessage]:
    """Return the instruction and entries at chosen levels."""
    context: list[ContextMessage] = [*state.instruction_messages()]
    for place, (entry, level) in enumerate(zip(entries, chosen.levels, strict=True)):
        if level is None:
            continue
        if place in chosen.refused and isinstance(entry, ModelOutputEntry):
            context.append(without_reasoning(entry, unsigned_message))
        elif place in chosen.rebound and isinstance(entry, ModelOutputEntry):
            context.append(without_reasoning(entry, unbound_message))
        else:
            context.append(shown(entry, level, has_screen=place in chosen.screens))
    return context


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
        update = plan.update()
        if self._compact is None or not update.left_out:
            return ContextBuildResult(plan.context(), update)
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
        update = plan.update()
        if self._compact is None or not update.left_out:
            return ContextBuildResult(plan.context(), update)
        covered = plan.to_compact()
        summary: object = self._compact(plan.messages(covered))
        if inspect.isawaitable(summary):
            summary = await summary
        return _compacted(plan, summary, covered)

    def compute_context_updates(self, given: ContextInput) -> ContextUpdateResult:
        """Choose the level of each entry."""
        return _Plan(given).update()


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
    unused = summary if entry is None else None
    return ContextBuildResult(changed.context(), changed.update(), entry, unused)


class _Plan:
    """The plan of a context, as the manager uses it."""

    def __init__(self, given: ContextInput) -> None:
        budget = given.token_budget
        if budget is not None and (type(budget) is not int or budget <= 0):
            raise ValueError(f"token_budget must be a positive number of tokens, not {budget!r}")
        self.given = given
        self._counter = TokenCounter(given.count_tokens, given.dialect, given.model_id)
        self._plan = Plan(given.state, self._counter, given.tools)
        since = given.budget_since
        places = (place for place, one in enumerate(self._plan.entries) if one.id == since)
        self._since = 0 if since is None else next(places, 0)
        self._levels = self._plan.levels(budget, self._since)

    def update(self) -> ContextUpdateResult:
        """Return the levels for the budget."""
        budget, chosen = self.given.token_budget, self._levels
        fits = budget is None or chosen.tokens <= budget
        ids = [entry.id for entry in self._plan.entries]
        shown_levels = list(enumerate(chosen.levels))
        return ContextUpdateResult(
            tuple(chosen.levels),
            chosen.tokens,
            fits,
            None if fits else self._reason(chosen.tokens, budget),
            tuple(ids[place] for place, level in shown_levels if level not in {None, "live"}),
            tuple(ids[place] for place, level in shown_levels if level is None),
        )

    def context(self) -> list[ContextMessage]:
        """Return the instruction and the entries at their levels."""
        return context_of(self.given.state, self._plan.entries, self._levels)

    def to_compact(self) -> list[UUID]:
        """Return the ids of the entries that a summary shall replace."""
        budget = max(1, int((self.given.token_budget or 0) * COMPACTED_SHARE))
        levels = self._plan.levels(budget, self._since).levels
        pairs = zip(self._plan.entries, levels, strict=True)
        return [entry.id for entry, level in pairs if level is None]

    def messages(self, ids: Sequence[UUID]) -> list[Message]:
        """Return entries as messages with all details."""
        wanted = set(ids)
        return to_messages(
            shown(entry, LevelOfDetail.LIVE, has_screen=False)
            for entry in self._plan.entries
            if entry.id in wanted
        )

    def is_worth(self, summary: str, ids: Sequence[UUID]) -> bool:
        """Return whether a summary is shorter than entries, and leaves room for the others."""
        wanted = set(ids)
        pairs = zip(self._plan.entries, self._plan.live_costs, strict=True)
        replaced = sum(cost for entry, cost in pairs if entry.id in wanted)
        tokens = self._counter.count_text(summary)
        return tokens < min(replaced, (self.given.token_budget or 0) * COMPACTED_SHARE)

    def _reason(self, tokens: int, budget: int | None) -> str:
        fixed = self._plan.fixed
        newest = tokens - fixed
        return (
            f"the context has at least {tokens:,} tokens, and the budget is {budget:,}: the "
            f"instruction and the tools have {fixed:,}, the newest input and turn {newest:,}"
        )
