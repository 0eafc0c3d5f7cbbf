"""Deadline: the end of a run in time.

Law: the time limit of a run never cancels the code of its caller, which runs between two events.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import TypeVar

from deltafold.contract.exceptions import DeltafoldError

T = TypeVar("T")


class LimitReachedError(DeltafoldError):
    """A limit of the run was reached; `reason` is that of the `RunResult`.

    >>> error = LimitReachedError("max_turns", "The run needed more than 5 turns.")
    >>> error.reason, str(error)
    ('max_turns', 'The run needed more than 5 turns.')
    """

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(message or reason)
        self.reason = reason


class Deadline:
    """The latest end of a run.

    Args:
        seconds: seconds from now; None sets no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._when = None if seconds is None else asyncio.get_running_loop().time() + seconds

    @property
    def is_over(self) -> bool:
        """True after the deadline."""
        return self._when is not None and asyncio.get_running_loop().time() >= self._when

    async def of(self, awaited: Awaitable[T]) -> T:
        """Await something until the deadline.

        Raises:
            LimitReachedError: the time is over.
        """
        if self._when is None:
            return await awaited
        limit = asyncio.timeout_at(self._when)
        try:
            async with limit:
                return await awaited
        except TimeoutError:
            if limit.expired():
                raise LimitReachedError("timeout") from None
            raise

    async def each(self, values: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """Yield the values of a generator until the deadline, and close it.

        Raises:
            LimitReachedError: the time is over.
        """
        async with aclosing(values):
            while True:
                try:
                    value = await self.of(anext(values))
                except StopAsyncIteration:
                    return
                yield value
