"""Overflow: the budget of a context after a provider has refused a longer one.

In: what was sent, and the log.  Out: a budget, and the request from which on it is in force.

Laws: the budget is smaller than the context that was refused. The answer to the first request with
a budget records it in its metadata. All later requests of the conversation to this model keep to
it, also in another process, so that entries that were left out stay left out and each request
begins with the one before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from deltafold.conversation.history.entries import (
    ModelInputEntry,
    ModelInvocationDescriptor,
    ModelOutputEntry,
    ResetEntry,
    ToolResultsEntry,
)
from deltafold.conversation.history.log import ConversationLog

_HELD_BUDGET: Final = "held_budget"
"""Name of the budget in the metadata of an answer."""


@dataclass(frozen=True, slots=True)
class HeldBudget:
    """A budget that an overflow has set.

    Attributes:
        tokens: the tokens of a context.
        since: id of the input or the results whose request was the first one with the budget.
    """

    tokens: int
    since: UUID | None

    @property
    def metadata(self) -> Mapping[str, object]:
        """Metadata of the answer to the first request with the budget."""
        return {_HELD_BUDGET: self.tokens}


def budget_after(log: ConversationLog, sent: int, limit: int | None) -> HeldBudget:
    """Return the budget after a context was refused as too long.

    Args:
        log: the conversation.
        sent: the tokens of the context, by our estimate.
        limit: the wanted budget. Where it is not known, or the estimate says that it was kept, half
            of what was sent is the budget.
    """
    tokens = sent // 2 if limit is None or limit >= sent else limit
    asked = (
        one for one in log.newest_first() if isinstance(one, ModelInputEntry | ToolResultsEntry)
    )
    newest = next(asked, None)
    return HeldBudget(max(tokens, 1), None if newest is None else newest.id)


def held_budget(log: ConversationLog, invocation: ModelInvocationDescriptor) -> HeldBudget | None:
    """Return the newest budget that an overflow of a model has set since the last reset."""
    tokens: int | None = None
    for entry in log.newest_first():
        if isinstance(entry, ResetEntry):
            break
        if tokens is not None:
            if isinstance(entry, ModelInputEntry | ToolResultsEntry):
                return HeldBudget(tokens, entry.id)
        elif isinstance(entry, ModelOutputEntry) and entry.invocation == invocation:
            held = entry.metadata.get(_HELD_BUDGET)
            tokens = held if isinstance(held, int) and held > 0 else None
    return None if tokens is None else HeldBudget(tokens, None)
