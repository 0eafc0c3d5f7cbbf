"""Log files: a conversation in a file of JSON lines.

In: entries of a log.  Out: one line for each, behind a first line with the id of the session.

Laws: `append` returns after the operating system has the whole line. A line that a crash has cut is
removed when the file is opened; lines before it are never changed. A file that is not a log is
never changed. One process writes at a time.
Source: the JSON Lines format (jsonlines.org).
"""

import contextlib
import json
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NoReturn, Self
from uuid import UUID

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import json_object
from deltafold.conversation.history.entries import HistoryEntry
from deltafold.conversation.history.log import Clock, ConversationLog, head_of
from deltafold.conversation.history.wire import entry_to_dict

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
        self.torn = b""
        self._sync = sync
        self._is_read = False
        self._process = os.getpid()
        self._written: tuple[UUID, int] | None = None
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file: int | None = os.open(path, flags, 0o600)
        try:
            _lock(self._file, path)
            content = _read(self._file)
            lines, self.torn = _split(content)
            head = _head(lines[0]) if lines else (session_id, run_id, metadata)
            super().__init__(*head, clock=clock)
            self._load_lines(lines)
            if run_id is not None:
                self.run_id = run_id
            # All lines are right: only now the file may change.
            self._is_read = True
            if self.torn:
                os.ftruncate(self._file, len(content) - len(self.torn))
            elif content and not content.endswith(b"\n"):  # editors may leave it out
                os.write(self._file, b"\n")
            if not lines:
                self._write(self.head())
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

    def close(self) -> None:
        """Close the file; later entries are refused."""
        file, self._file = self._file, None
        if file is not None and self._process == os.getpid():
            os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def __reduce__(self) -> NoReturn:
        """Refuse to copy: two logs of one file would write into each other."""
        raise MisuseError("a LogFile cannot be copied or pickled; copy the JSON of the log")

    def _write_entry(self, entry: HistoryEntry) -> None:
        if self._is_read:
            self._write(entry_to_dict(entry), entry.id)

    def _write(self, line: Mapping[str, object], entry_id: UUID | None = None) -> None:
        """Write a line with one call, so that a crash cuts at most this line."""
        if self._file is None:
            raise MisuseError("the file of the log is closed")
        if self._process != os.getpid():
            raise MisuseError("the file of the log was opened by another process; open it again")
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        data = text.encode() + b"\n"
        if entry_id is not None:
            self._written = entry_id, os.fstat(self._file).st_size
        written = 0
        while written < len(data):
            written += os.write(self._file, data[written:])
        if self._sync:
            os.fsync(self._file)

    def _take_back(self, entry: HistoryEntry) -> None:
        """Remove the line of an entry that was taken back, whole or half.

        If that fails, the file is closed, so that the half line stays the last one.
        """
        if self._written is None or self._written[0] != entry.id or self._file is None:
            return
        try:
            os.ftruncate(self._file, self._written[1])
        except OSError:
            with contextlib.suppress(OSError):
                self.close()

    def _load_lines(self, lines: list[bytes]) -> None:
        for number, line in enumerate(lines[1:], 2):
            if not line.strip():
                continue
            data = _parsed(line)
            if data is None:
                raise ValueError(f"line {number} is not a JSON object")
            try:
                self.load([data])
            except ValueError as error:
                reason = str(error).removeprefix("entries[0]").lstrip(".: ")
                raise ValueError(f"line {number}: {reason}") from error
        newest = next(self.newest_first(), None)
        if newest is not None and newest.run_id is not None:
            self.run_id = newest.run_id


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


def _head(line: bytes) -> tuple[str, str | None, Mapping[str, object] | None]:
    try:
        return head_of(_parsed(line) or {})
    except ValueError as error:
        raise ValueError(f"line 1: {error}") from error


def _parsed(line: bytes) -> Mapping[str, object] | None:
    """Return the object of a line, None if the line is not one."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return json_object(value)
