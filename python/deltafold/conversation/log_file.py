"""Log files: a conversation in a file of JSON lines.

In: entries of a log.  Out: one line for each, behind a first line with the id of the session.

Laws: `append` returns after the operating system has the whole line. A line that a crash has cut is
removed when the file is opened; lines before it are never changed. One process writes at a time.
Source: the JSON Lines format (jsonlines.org).
"""

import json
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from deltafold.contract import json_object
from deltafold.conversation.entries import HistoryEntry
from deltafold.conversation.log import Clock, ConversationLog, head_of
from deltafold.conversation.wire import entry_to_dict
from deltafold.exceptions import MisuseError


class LogFile(ConversationLog):
    """A log that is kept in a file, which is read if it exists.

    >>> with LogFile("conversation.jsonl") as log:
    ...     log.append_message(Message.user("Hello"))

    Leave it through `with`, or call `close`.

    Args:
        path: the file.
        session_id: id of a log that is begun; None makes one. An existing file keeps its own.
        run_id: the current run; None continues the last run of an existing file.
        metadata: metadata of a log that is begun.
        clock: returns aware datetimes; None is the system's clock.
        sync: whether each append waits until the line is on the disk, so that it survives a failure
            of the machine. Without it, the line survives a crash of the process.

    Attributes:
        torn: bytes of a last line that a crash had cut, which were removed; empty otherwise.

    Raises:
        OSError: the file cannot be read or written.
        MisuseError: the file is open in another place.
        ValueError: a line is damaged, or violates the rules of a log; the error names the line.
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
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file: int | None = os.open(path, flags, 0o600)
        try:
            _lock(self._file, path)
            lines = self._lines(Path(path).read_bytes())
            head = (session_id, run_id, metadata)
            if lines:
                head = _head(lines[0])
            super().__init__(*head, clock=clock)
            self._load_lines(lines)
            if run_id is not None:
                self.run_id = run_id
            if not lines:
                self._write(self.head())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; later entries are refused."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def _written(self, entry: HistoryEntry) -> None:
        self._write(entry_to_dict(entry))

    def _write(self, line: Mapping[str, object]) -> None:
        """Write a line with one call, so that a crash cuts at most this line."""
        if self._file is None:
            raise MisuseError("the file of the log is closed")
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        end = os.fstat(self._file).st_size
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
            if self._sync:
                os.fsync(self._file)
        except BaseException:
            # A line that is half written would damage the line after it.
            os.ftruncate(self._file, end)
            raise

    def _lines(self, content: bytes) -> list[bytes]:
        """Split the file to lines; a torn last line is removed, and a whole one is ended."""
        *lines, last = content.split(b"\n")
        if last and self._file is not None:
            if _parsed(last) is None:
                self.torn = last
                os.ftruncate(self._file, len(content) - len(last))
            else:  # editors may leave out the last line break
                lines.append(last)
                os.write(self._file, b"\n")
        return lines

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
