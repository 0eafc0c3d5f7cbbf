"""A store in memory, for tests and for conversations that end with the process."""

import threading

from deltafold.contract.stores import StoreConflictError


class MemoryLogStore:
    """A store of the sessions of this process. Threads may share it.

    >>> store = MemoryLogStore()
    >>> entry = ConversationLog("s", store=store).append_message(Message.user("Hello"))
    >>> ConversationLog("s", store=store).entries == (entry,)
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, list[str]] = {}

    def read(self, session_id: str) -> list[str]:
        """Return the texts of a session, [] if it is unknown."""
        with self._lock:
            return list(self._sessions.get(session_id, ()))

    def append(self, session_id: str, position: int, data: str) -> None:
        """Store the text of a position.

        Raises:
            StoreConflictError: the position is taken.
            ValueError: a position before it has no text.
        """
        with self._lock:
            count = len(self._sessions.get(session_id, ()))
            if 0 <= position < count:
                raise StoreConflictError(session_id, position)
            if position != count:
                raise ValueError(no_hole(session_id, position))
            self._sessions.setdefault(session_id, []).append(data)

    def sessions(self) -> list[str]:
        """Return the ids of all sessions, in the order in which they began."""
        with self._lock:
            return list(self._sessions)

    def delete(self, session_id: str) -> None:
        """Delete a session, if it is there. Its forks cannot be opened any more."""
        with self._lock:
            self._sessions.pop(session_id, None)


def no_hole(session_id: str, position: int) -> str:
    """Return why a position behind a hole is refused."""
    return (
        f"session {session_id!r}: position {position} cannot be stored, because position "
        f"{position - 1} is not there; was the session deleted?"
    )
