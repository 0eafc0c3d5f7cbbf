"""Log files: a conversation in a file of JSON lines.

In: entries of a log.  Out: one line for each, behind a first line with the id of the session.

Laws: `append` returns after the operating system has the whole line. A line that a crash has cut is
removed when the file is opened; lines before it are never changed. A file that is not a log is
never changed. One process writes at a time. A file is the store of one session.
Source: the JSON Lines format (jsonlines.org).
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, NoReturn, Self
from uuid import UUID

from deltafold.contract.exceptions import MisuseError
from deltafold.conversation.history.entries import HistoryEntry
from deltafold.conversation.history.log import Clock, ConversationLog
from deltafold.conversation.history.rows import head_of, parsed

_HEAD: Final = b'{"version":'
"""The beginning of the first line of every log."""

_BLOCK: Final = 1 << 20


class LogFile(ConversationLog):
    """A log that is kept in a file, which is read if it exists.

    >>> with LogFile("conversation.jsonl") as log:
    ...     log.append_message(Message.user("Hello"))

    Leave it through `with`, or call `close`. It can be neither copied nor used after a fork.

    Args:
        path: the file.
        session_id: id of a log that is begun; None makes one. An existing file keeps its own.
        run_id: the current run; None continues the run of the newest entry.
        metadata: metadata of a log that is begun.
        clock: returns aware datetimes; None is the system's clock.
        sync: whether each append waits until the line is on the disk, so that it survives a failure
            of the machine. Without it, the line survives a crash of the process.

    Attributes:
        torn: bytes of a last line that a crash had cut, which were removed; empty otherwise.

    Raises:
        OSError: the file cannot be read or written.
        MisuseError: the file is open in another place.
        ValueError: the file is not a log, a line is damaged, or a line violates the rules of a log;
            the error names the line, and the file is unchanged.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        session_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, object] | None = None,
        *,
        clock: Clock | None = None,
        sync: bool = False,
    ) -> None:
        self._lines = _Lines(path, is_synced=sync)
        try:
            session_id = self._lines.session_id or session_id
            super().__init__(session_id, run_id, metadata, store=self._lines, clock=clock)
            # All lines are right: only now the file may change.
            self.torn = self._lines.mend()
            self._write_head()
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_dict(cls, data: Mapping[str, object], *, clock: Clock | None = None) -> NoReturn:  # noqa: ARG003 - those of the base class
        """Refuse: a wire form names no file.

        Raises:
            MisuseError: always. Open a new file, and `load` the entries of the wire form.
        """
        raise MisuseError("open a LogFile, and call load(entries) with the entries of the JSON")

    def fork(self, at: UUID | None = None, *, session_id: str | None = None) -> NoReturn:  # noqa: ARG002 - those of the base class
        """Refuse: a file holds one session.

        Raises:
            MisuseError: always. Use a store, such as `SQLiteStore`, or fork a log in memory.
        """
        raise MisuseError(
            "a LogFile holds one session; use ConversationLog(session_id, store=SQLiteStore(path))"
        )

    def close(self) -> None:
        """Close the file; later entries are refused."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        """Refuse to copy: two logs of one file would write into each other."""
        raise MisuseError("a LogFile cannot be copied or pickled; copy the JSON of the log")

    def _place(self, session_id: str, position: int) -> str:  # noqa: ARG002 - those of the base class
        return f"line {self._lines.numbers[position]}"

    def _take_back(self, entry: HistoryEntry) -> None:  # noqa: ARG002 - that of the base class
        # The entry was the next one: the head and the entries before it have the lines before.
        self._lines.take_back(len(self._entries) + 1)


class _Lines:
    """The lines of a file: a store of one session, which can take back the last line.

    Args:
        path: the file, which is made if it does not exist, and locked.
        is_synced: whether an append waits for the disk.

    Attributes:
        session_id: id of the first line; None if the file is empty.
        numbers: numbers of the lines that are not blank, from 1.
    """

    def __init__(self, path: str | os.PathLike[str], *, is_synced: bool) -> None:
        self._is_synced = is_synced
        self._process = os.getpid()
        self._written: tuple[int, int] | None = None
        self._file: int | None = None
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o600)
        try:
            _lock(self._file, path)
            self._content = _read(self._file)
            lines, self._torn = _split(self._content)
            numbered = enumerate(lines, 1)
            kept = [(n, line) for n, line in numbered if n == 1 or line.strip()]
            self.numbers = [number for number, _ in kept]
            self._texts = [line for _, line in kept]
            self.session_id = _session_of(lines[0]) if lines else None
        except BaseException:
            self.close()
            raise

    def read(self, session_id: str) -> Iterator[str]:
        """Yield the lines that the file had when it was opened."""
        if session_id != self.session_id:
            return
        for number, line in zip(self.numbers, self._texts, strict=True):
            try:
                yield line.decode("utf-8-sig")  # some editors begin a file with a mark
            except UnicodeDecodeError as error:
                raise ValueError(f"line {number} is not a JSON object") from error

    def mend(self) -> bytes:
        """Remove a torn last line and return it, or end the last line; forget what was read."""
        if self._file is None:
            raise MisuseError("the file of the log is closed")
        if self._torn:
            os.ftruncate(self._file, len(self._content) - len(self._torn))
        elif self._content and not self._content.endswith(b"\n"):  # editors may leave it out
            os.write(self._file, b"\n")
        torn, self._torn, self._content, self._texts = self._torn, b"", b"", []
        return torn

    def append(self, session_id: str, position: int, data: str) -> None:  # noqa: ARG002 - a file has one session
        """Write a line with one call, so that a crash cuts at most this line."""
        if self._file is None:
            raise MisuseError("the file of the log is closed")
        if self._process != os.getpid():
            raise MisuseError("the file of the log was opened by another process; open it again")
        line = data.encode() + b"\n"
        self._written = position, os.fstat(self._file).st_size
        written = 0
        while written < len(line):
            written += os.write(self._file, line[written:])
        if self._is_synced:
            os.fsync(self._file)

    def take_back(self, position: int) -> None:
        """Remove the line of a position, whole or half, if it is the last that was written.

        If that fails, the file is closed, so that the half line stays the last one.
        """
        if self._written is None or self._written[0] != position or self._file is None:
            return
        try:
            os.ftruncate(self._file, self._written[1])
        except OSError:
            with contextlib.suppress(OSError):
                self.close()

    def close(self) -> None:
        """Close the file, unless another process has opened it."""
        file, self._file = self._file, None
        if file is not None and self._process == os.getpid():
            os.close(file)

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()


def _lock(file: int, path: str | os.PathLike[str]) -> None:
    """Keep other processes from writing, where the operating system has advisory locks."""
    try:
        fcntl: Any = import_module("fcntl")
    except ModuleNotFoundError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise MisuseError(f"the log {os.fspath(path)!r} is open in another place") from error


def _read(file: int) -> bytes:
    """Read the file that was opened and locked, which its path may name no longer."""
    blocks: list[bytes] = []
    while block := os.read(file, _BLOCK):
        blocks.append(block)
    return b"".join(blocks)


def _split(content: bytes) -> tuple[list[bytes], bytes]:
    """Return the whole lines, and the torn last line.

    Raises:
        ValueError: the only line is neither a log's nor the beginning of one.
    """
    *lines, last = content.split(b"\n")
    if not last:
        return lines, b""
    try:
        json.loads(last)
    except (ValueError, RecursionError):
        if not lines and not (last.startswith(_HEAD) or _HEAD.startswith(last)):
            raise ValueError("line 1 is not the first line of a log") from None
        return lines, last
    return [*lines, last], b""


def _session_of(line: bytes) -> str:
    try:
        session_id = head_of(parsed(line) or {})[0]
    except ValueError as error:
        raise ValueError(f"line 1: {error}") from error
    if not session_id:
        raise ValueError("line 1: sessionId must not be empty")
    return session_id
