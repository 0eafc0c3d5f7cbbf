"""Observed runs: the batches of a run's events, each awaited inside of the run's step.

In: the batches.  Out: the same ones.

Laws: the caller of the run, whose code goes on between two batches, never is inside of the step. A
loop that is left early leaves no generator that has to be awaited.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

from deltafold.contract.kinds import ErrorCode
from deltafold.conversation.agent.deadline import LimitReachedError
from deltafold.conversation.context.run_state import RunStatus
from deltafold.errors.model_error import ModelError
from deltafold.models.observer import NO_STEP, Step

T = TypeVar("T")


class _Inside(AsyncIterator[T]):
    def __init__(self, step: Step, batches: AsyncGenerator[T]) -> None:
        self._step = step
        self._batches = batches

    async def __anext__(self) -> T:
        with self._step.inside():
            return await anext(self._batches)


def inside(step: Step, batches: AsyncGenerator[T]) -> AsyncIterator[T]:
    """Return the batches, whose models and tools belong to the step."""
    return batches if step is NO_STEP else _Inside(step, batches)


def error_type_of(status: RunStatus, error: Exception | None) -> str | None:
    """Return the short name of how a run has failed; None if it did not.

    Args:
        status: the last status of the run.
        error: what ended the run; None for a cancellation.
    """
    if isinstance(error, LimitReachedError):
        return error.reason
    if isinstance(error, ModelError):
        return str(error.code)
    if error is not None:
        return type(error).__qualname__
    return str(ErrorCode.CANCELLED) if status is RunStatus.ABORTED else None
