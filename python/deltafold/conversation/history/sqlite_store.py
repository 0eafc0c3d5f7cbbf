"""A store in a file of SQLite, which threads and processes share.

In: texts by session and position.  Out: the same texts, in the order of their positions.

Laws: `append` returns after the transaction has ended, so that a crash of the process loses nothing
that was stored. The primary key decides between several writers. A connection belongs to the
process that opened it.
Source: sqlite.org/wal.html, sqlite.org/howtocorrupt.html (section 2.6, connections and fork).
"""

import os
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.stores import StoreConflictError
from deltafold.conversation.history.memory_store import no_hole

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator

_MEMORY: Final = ":memory:"
_PAUSE: Final = 0.005
"""Seconds between two attempts to set up a file that another connection sets up."""

_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS deltafold_entries (
        session_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (session_id, position)
    )
"""
_INSERT: Final = """
    INSERT INTO deltafold_entries SELECT ?, ?, ? WHERE ? = 0 OR EXISTS (
        SELECT 1 FROM deltafold_entries WHERE session_id = ? AND position = ? - 1
    )
"""
"""One statement, so that no other writer comes between its question and its answer."""

_SELECT: Final = (
    "SELECT position, data FROM deltafold_entries WHERE session_id = ? ORDER BY position"
)
_SESSIONS: Final = "SELECT session_id FROM deltafold_entries WHERE position = 0 ORDER BY rowid"
_DELETE: Final = "DELETE FROM deltafold_entries WHERE session_id = ?"


class _Connection:
    """The connection of one process, and the lock with which its threads share it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.database: sqlite3.Connection | None = None
        self.is_closed = False


class SQLiteStore:
    """A store in a file of SQLite, in its table `deltafold_entries`.

    Threads share the object, and processes the file. A forked process opens a connection of its
    own. The file is in WAL mode, so it has two files beside it, and must not be on a network drive.

    >>> with SQLiteStore("conversations.db") as store:
    ...     log = ConversationLog("trip", store=store)
    ...     entry = log.append_message(Message.user("When is high tide?"))

    Args:
        path: the file, which is made with the mode 0600; ":memory:" keeps all in memory.
        sync: whether each append waits until it is on the disk, so that it survives a failure of
            the machine. Without it, the append survives a crash of the process.
        timeout: seconds for which a call waits while another connection writes.

    Raises:
        sqlite3.Error: the file cannot be read or written, or is not one of SQLite. All methods
            raise it too.
        MisuseError: the store is closed, or a store in memory is used in a forked process.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, sync: bool = False, timeout: float = 10.0
    ) -> None:
        given = os.fspath(path)
        self._path = given if given == _MEMORY else os.path.realpath(given)
        self._sync = sync
        self._timeout = timeout
        self._process = os.getpid()
        # By process: a connection must not be used behind a fork.
        self._connections: dict[int, _Connection] = {}
        if self._path != _MEMORY:
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with self._database():
            pass

    @property
    def path(self) -> str:
        """The absolute path of the file, or ":memory:"."""
        return self._path

    def read(self, session_id: str) -> list[str]:
        """Return the texts of a session, [] if it is unknown.

        Raises:
            ValueError: a position has no text, and a later one has.
        """
        with self._database() as database:
            rows: list[tuple[int, str]] = database.execute(_SELECT, (session_id,)).fetchall()
        for expected, (position, _) in enumerate(rows):
            if position != expected:
                raise ValueError(f"session {session_id!r}: position {expected} is missing")
        return [data for _, data in rows]

    def append(self, session_id: str, position: int, data: str) -> None:
        """Store the text of a position.

        Raises:
            StoreConflictError: the position is taken.
            ValueError: a position before it has no text.
        """
        import sqlite3  # noqa: PLC0415 - a log in memory does not load it

        values = (session_id, position, data, position, session_id, position)
        with self._database() as database:
            try:
                stored = database.execute(_INSERT, values).rowcount
            except sqlite3.IntegrityError as error:
                raise StoreConflictError(session_id, position) from error
        if not stored:
            raise ValueError(no_hole(session_id, position))

    def sessions(self) -> list[str]:
        """Return the ids of all sessions, in the order in which they began."""
        with self._database() as database:
            rows: list[tuple[str]] = database.execute(_SESSIONS).fetchall()
        return [session_id for (session_id,) in rows]

    def delete(self, session_id: str) -> None:
        """Delete a session, if it is there. Its forks cannot be opened any more."""
        with self._database() as database:
            database.execute(_DELETE, (session_id,))

    def close(self) -> None:
        """Close the connection of this process; later calls are refused."""
        connection = self._connections.setdefault(os.getpid(), _Connection())
        with connection.lock:
            connection.is_closed = True
            if connection.database is not None:
                connection.database.close()
                connection.database = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        connection = getattr(self, "_connections", {}).get(os.getpid())
        if connection is not None and connection.database is not None:
            connection.database.close()

    def __eq__(self, other: object) -> bool:
        """Compare the files; each store in memory is another one."""
        if self is other:
            return True
        return (
            isinstance(other, SQLiteStore) and self._path == other._path and self._path != _MEMORY
        )

    def __hash__(self) -> int:
        return hash(self._path)

    def __repr__(self) -> str:
        return f"SQLiteStore({self._path!r})"

    def __reduce__(self) -> tuple[partial[Self], tuple[str]]:
        """Let another process open the file with its own connection.

        Raises:
            MisuseError: the store is in memory.
        """
        self._check_process(to_other=True)
        return partial(type(self), sync=self._sync, timeout=self._timeout), (self._path,)

    @contextmanager
    def _database(self) -> "Generator[sqlite3.Connection]":
        """Give the connection of this process to one thread at a time."""
        self._check_process()
        connection = self._connections.setdefault(os.getpid(), _Connection())
        with connection.lock:
            if connection.is_closed:
                raise MisuseError(f"the store {self._path!r} is closed")
            if connection.database is None:
                connection.database = self._opened()
            yield connection.database

    def _check_process(self, *, to_other: bool = False) -> None:
        if self._path == _MEMORY and (to_other or os.getpid() != self._process):
            raise MisuseError("a store in memory is not shared with another process; give a path")

    def _opened(self) -> "sqlite3.Connection":
        import sqlite3  # noqa: PLC0415 - a log in memory does not load it

        database = sqlite3.connect(
            self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        try:
            self._set_up(database)
        except BaseException:
            database.close()
            raise
        return database

    def _set_up(self, database: "sqlite3.Connection") -> None:
        import sqlite3  # noqa: PLC0415 - a log in memory does not load it

        until = time.monotonic() + self._timeout
        while True:
            try:
                database.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                # SQLite does not wait here when two connections set up a new file.
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)
        database.execute(f"PRAGMA synchronous = {'FULL' if self._sync else 'NORMAL'}")
        database.execute(_TABLE)
