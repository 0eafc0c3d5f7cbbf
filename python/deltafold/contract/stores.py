"""Stores: the interface of a place that keeps conversations, and its conflict.

Law: this module imports nothing of deltafold but the root of the exceptions, so that a store, a log
and the check of a store (`testing/stores.py`) share it.
"""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from deltafold.contract.exceptions import DeltafoldError


class StoreConflictError(DeltafoldError, RuntimeError):
    """A session has an entry at this position already: another process or object continues it.

    The log that raises it is stale, and refuses all further entries. Open the session again, or
    `fork` the log to continue beside the other one.

    >>> store = MemoryLogStore()
    >>> store.append("s", 0, "{}")
    >>> try:
    ...     store.append("s", 0, "{}")
    ... except StoreConflictError as error:
    ...     print(error.session_id, error.position)
    s 0

    Args:
        session_id: id of the session.
        position: the position that is taken.
    """

    def __init__(self, session_id: str, position: int) -> None:
        """Store the place of the conflict, which are the arguments, so that it can be pickled."""
        super().__init__(session_id, position)
        self.session_id: str = session_id
        self.position: int = position

    def __str__(self) -> str:
        return (
            f"the session {self.session_id!r} has position {self.position} already: it was "
            "continued elsewhere; open it again"
        )


@runtime_checkable
class Store(Protocol):
    """A place that keeps the logs of many sessions: two synchronous methods.

    A session is a sequence of JSON texts: the head of the log at position 0, then one text for each
    entry. The texts are stored as they are. Several threads and processes may use a store at once.
    `deltafold.testing.check_store` checks a store of your own.

    >>> isinstance(MemoryLogStore(), Store)
    True
    """

    def read(self, session_id: str, /) -> Iterable[str]:
        """Return the texts of a session in the order of their positions, none if it is unknown.

        What an `append` has stored before is among them.
        """
        ...

    def append(self, session_id: str, position: int, data: str, /) -> None:
        """Store the text of a position, which is the number of the texts before it.

        When it returns, the text is stored. An exception of another kind than a conflict means that
        the text is probably not stored; if it is, the next append of the log has a conflict.

        Raises:
            StoreConflictError: the position is taken. The text that is there stays. Of several
                callers at once, one stores its text, and the others get this error.
        """
        ...
