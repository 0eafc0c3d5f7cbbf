"""Plan: the level of detail of each entry, so that every request repeats the one before it.

In: the entries of a conversation, and a budget.  Out: a level for each entry, and the entries whose
bound reasoning cannot go back.

Laws: the plan goes through the conversation as it grew. Each request before gets the levels that it
had, so that it stays a prefix of the next one until the budget forces a cut. A cut makes room for
several requests. Reasoning that is bound to what a cut has changed is not sent again. Work is
linear in the history.
Source: Anthropic's pages "Preserved thinking" and "Prompt caching" (read 2026-11).
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain
from typing import Final

from deltafold.conversation.context.state import AgentState
from deltafold.conversation.context.tokens import TokenCounter
from deltafold.conversation.history.entries import (
    CompactionEntry,
    HistoryEntry,
    InstructionEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ToolResultsEntry,
)
from deltafold.conversation.history.frozen import kept_message
from deltafold.conversation.history.projection import (
    aligned_messages,
    live_screen_of,
    paired,
    shared_messages,
    shown,
)
from deltafold.conversation.history.sections import (
    LevelOfDetail,
    LevelOfDetailSections,
    without_live_screen,
)
from deltafold.conversation.tools.tools import Tool
from deltafold.dialects.refused_replay import REPAIRED
from deltafold.specs.tool_specs import ToolSpec

CUT_SHARE: Final = 0.75
"""Share of the budget that the context has after a cut. A cut changes what was sent, which costs
the provider's cache, so that one cut makes room for several requests."""

_LOWER: Final = (LevelOfDetail.SUMMARY, LevelOfDetail.GIST)

_Read = ModelInputEntry | ToolResultsEntry
"""Entries that a request follows."""


@dataclass(slots=True)
class Levels:
    """Chosen levels, and what follows from them.

    Attributes:
        levels: one level per entry; None leaves the entry out.
        screens: the places of the entries that are shown with their live screen.
        rebound: the places of the answers whose bound reasoning is not sent again.
        refused: the places of the answers whose reasoning a provider has refused.
        tokens: the tokens of the context.
    """

    levels: list[LevelOfDetail | None]
    screens: set[int] = field(default_factory=set[int])
    rebound: set[int] = field(default_factory=set[int])
    refused: set[int] = field(default_factory=set[int])
    tokens: int = 0


class Plan:
    """Sizes of the entries of a conversation, and the order in which they give way.

    Attributes:
        entries: the entries that models are shown.
        exchanges: their places, grouped to exchanges of turns.
        screens: the live screen of each entry.
        first_screens: the places of the screens that differ from the one before.
        live_costs: the tokens of each entry with all details.
        fixed: the tokens of the instruction and the tools.
    """

    def __init__(
        self, state: AgentState, counter: TokenCounter, tools: Sequence[Tool | ToolSpec]
    ) -> None:
        self.entries = state.visible_entries()
        self.exchanges = _exchanges(self.entries)
        self.screens = [live_screen_of(entry) for entry in self.entries]
        self.first_screens = first_screens(self.screens)
        self._counter = counter
        self._rebound = behind_summaries(self.entries, state)
        context = [
            shown(entry, LevelOfDetail.LIVE, has_screen=place in self.first_screens)
            for place, entry in enumerate(self.entries)
        ]
        messages = aligned_messages(context)
        self.live_costs = [0 if one is None else counter.message(one) for one in messages]
        specs = [tool.to_spec() if isinstance(tool, Tool) else tool for tool in tools]
        instructions = shared_messages(state.instruction_messages())
        self.fixed = sum(map(counter.message, instructions)) + counter.tools(specs)

    def levels(self, budget: int | None, since: int = 0) -> Levels:
        """Choose the levels for a budget: request by request, as the conversation grew.

        Args:
            budget: the tokens of a context; None sets no limit.
            since: the place of the entry whose request was the first one with the budget.
        """
        chosen = Levels([LevelOfDetail.LIVE] * len(self.entries), tokens=self.fixed)
        chosen.rebound |= self._rebound
        chosen.refused |= before_repairs(self.entries)
        cuts = _Cuts(self, chosen, budget)
        asked = [place for place, entry in enumerate(self.entries) if isinstance(entry, _Read)]
        begin = 0
        for newest in asked:
            cuts.add(range(begin, newest + 1))
            begin = newest + 1
            if budget is not None and newest >= since and chosen.tokens > budget:
                cuts.cut(newest)
        cuts.add(range(begin, len(self.entries)))
        if budget is not None and asked and chosen.tokens > budget:
            cuts.cut(asked[-1])
        return chosen

    def cost(self, place: int, level: LevelOfDetail, *, has_screen: bool = False) -> int:
        """Count the tokens of an entry at a level, with its live screen or without."""
        (message,) = shared_messages([shown(self.entries[place], level, has_screen=has_screen)])
        return self._counter.message(message)

    def reduced_cost(self, place: int, level: LevelOfDetail) -> int | None:
        """Count the tokens of an entry at a level below live; None if it has no such level."""
        match self.entries[place]:
            case ModelInputEntry() as entry:
                texts = [entry.content_sections]
            case ToolResultsEntry(execute_error=None) as entry:
                texts = [result.result for result in entry.results]
            case _:
                return None
        if self.screens[place] is None and all(_is_as_live(text, level) for text in texts):
            return None
        return self.cost(place, level)


class _Cuts:
    """The levels while the conversation grows; each entry is looked at once for each level."""

    def __init__(self, plan: Plan, chosen: Levels, budget: int | None) -> None:
        self._plan = plan
        self._chosen = chosen
        self._target = 0 if budget is None else int(budget * CUT_SHARE)
        self._costs = [0] * len(plan.entries)
        # Places of the entries that have not reached a level, the oldest first.
        self._above: dict[LevelOfDetail, list[int]] = {level: [] for level in _LOWER}
        self._exchange = 0
        """Number of the first exchange that is not left out."""
        self._turn = (0, 1)
        """Number of an exchange, and of its first turn that is not left out."""
        self._exchange_of = [0] * len(plan.entries)
        for number, exchange in enumerate(plan.exchanges):
            for place in chain.from_iterable(exchange):
                self._exchange_of[place] = number
        self._screen: int | None = None
        """Place of the live screen that the context shows last."""

    def add(self, places: Iterable[int]) -> None:
        """Add entries with all details."""
        for place in places:
            self._costs[place] = self._plan.live_costs[place]
            self._chosen.tokens += self._costs[place]
            if place in self._plan.first_screens:
                self._chosen.screens.add(place)
                self._screen = place
            self._show_screen(place)
            heappush(self._above[LevelOfDetail.SUMMARY], place)

    def cut(self, newest: int) -> None:
        """Reduce and leave out older entries until there is room for further requests.

        The exchange of the newest entry gives way last, because its calls may be open.
        """
        chosen = self._chosen
        current = self._exchange_of[newest]
        exchange = self._plan.exchanges[current]
        begin = next(chain.from_iterable(exchange), newest)
        at = bisect_right(exchange[0], newest)
        whole = {newest, *exchange[0][at - 1 : at]}
        changed = self._reduced(begin, whole)
        while self._exchange < current and chosen.tokens > self._target:
            changed += self._left_out(chain.from_iterable(self._plan.exchanges[self._exchange]))
            self._exchange += 1
        changed += self._reduced(newest + 1, whole)
        number, turn = self._turn if self._turn[0] == current else (current, 1)
        while chosen.tokens > self._target and turn + 1 < len(exchange):
            if exchange[turn + 1][0] > newest or exchange[turn][-1] >= newest:
                break
            changed += self._left_out(exchange[turn])
            turn += 1
        self._turn = (number, turn)
        if not changed:
            return
        # What was said behind the first change is bound to a conversation that was changed.
        entries = self._plan.entries
        behind = range(min(changed) + 1, newest + 1)
        chosen.rebound |= {at for at in behind if isinstance(entries[at], ModelOutputEntry)}
        self._show_screen(newest)

    def _reduced(self, end: int, whole: set[int]) -> list[int]:
        """Reduce the entries before a place, and return the places of those that changed."""
        chosen = self._chosen
        changed: list[int] = []
        for level in _LOWER:
            above, held = self._above[level], list[int]()
            while above and above[0] < end and chosen.tokens > self._target:
                place = heappop(above)
                if place in whole:
                    held.append(place)
                    continue
                if level is LevelOfDetail.SUMMARY:
                    heappush(self._above[LevelOfDetail.GIST], place)
                cost = self._plan.reduced_cost(place, level)
                if chosen.levels[place] is None or cost is None or cost >= self._costs[place]:
                    continue
                chosen.levels[place] = level
                self._pay(place, cost)
                changed.append(place)
            for place in held:
                heappush(above, place)
        return changed

    def _left_out(self, places: Iterable[int]) -> list[int]:
        """Leave entries out, and return the places of those that were shown."""
        shown_before = [place for place in places if self._chosen.levels[place] is not None]
        for place in shown_before:
            self._chosen.levels[place] = None
            self._pay(place, 0)
        return shown_before

    def _pay(self, place: int, cost: int) -> None:
        self._chosen.tokens += cost - self._costs[place]
        self._costs[place] = cost

    def _show_screen(self, place: int) -> None:
        """Show the screen of a new entry, if the context does not show that screen any more."""
        before = self._screen
        is_shown = before is None or self._chosen.levels[before] is LevelOfDetail.LIVE
        if is_shown or self._plan.screens[place] is None:
            return
        self._screen = place
        self._chosen.screens.add(place)
        self._pay(place, self._plan.cost(place, LevelOfDetail.LIVE, has_screen=True))


def first_screens(screens: Sequence[str | None]) -> set[int]:
    """Return the places of the live screens that differ from the one before them.

    A screen stays where it was sent, so that a request is a prefix of the next one.
    """
    found: set[int] = set()
    last: str | None = None
    for place, screen in enumerate(screens):
        if screen is not None and screen != last:
            found.add(place)
            last = screen
    return found


def behind_summaries(entries: Sequence[HistoryEntry], state: AgentState) -> set[int]:
    """Return the places of the answers that are older than a summary before them."""
    if not any(isinstance(entry, CompactionEntry) for entry in entries):
        return set()
    order = {entry.id: number for number, entry in enumerate(state.log.entries)}
    found: set[int] = set()
    newest_summary = -1
    for place, entry in enumerate(entries):
        number = order.get(entry.id, len(order))
        if isinstance(entry, CompactionEntry):
            newest_summary = max(newest_summary, number)
        elif isinstance(entry, ModelOutputEntry) and number < newest_summary:
            found.add(place)
    return found


def before_repairs(entries: Sequence[HistoryEntry]) -> set[int]:
    """Return the places of the answers before the last request that was sent again without them.

    What a provider has refused once, it refuses in each later request.
    """
    answers = [place for place, one in enumerate(entries) if isinstance(one, ModelOutputEntry)]
    for place in reversed(answers):
        message = kept_message(entries[place])
        codes = [] if message is None else [one.get("code") for one in message.meta.warnings]
        if REPAIRED in codes:
            return {one for one in answers if one < place}
    return set()


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
