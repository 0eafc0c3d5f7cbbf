"""Progress of work on files: files, bytes and rate, in one line of standard error.

In: the files, and the bytes as they are read.  Out: a line that is written over, from two seconds
on; nothing unless standard error is a terminal.

Laws: short work shows nothing. The line is erased before anything else is printed, and at the end.
"""

import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Final, Protocol

from typing_extensions import Buffer, override

_SILENT_SECONDS: Final = 2.0
_SECONDS_BETWEEN_LINES: Final = 0.2
_BUFFER_BYTES: Final = 64 * 1024
_READ_BYTES: Final = 1 << 20
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_THOUSAND: Final = 1000
_WHOLE_FROM: Final = 10


class _Terminal(Protocol):
    """What the line is written to."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class Progress:
    """The line of one command.

    Args:
        files: the number of files.
        size: the bytes of all files, None if they are not known.
        terminal: what the line is written to; None shows nothing.
        clock: seconds that only rise.
    """

    def __init__(
        self,
        files: int,
        size: int | None,
        terminal: _Terminal | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files, self._size = files, size
        self._terminal = terminal
        self._clock = clock
        self._began = clock()
        self._next = self._began + _SILENT_SECONDS
        self._file = 0
        self._read = 0
        self._is_shown = False

    @property
    def shows(self) -> bool:
        """Whether there is a terminal to show it on."""
        return self._terminal is not None

    def begin_file(self) -> None:
        """Count a file that is opened."""
        self._file += 1

    def add(self, size: int) -> None:
        """Count bytes that were read, and show the line if it is time."""
        self._read += size
        if self._terminal is None:
            return
        now = self._clock()
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN_LINES
            self._is_shown = True
            self._write(f"\r{self._line(now - self._began)}\x1b[K")

    def erase(self) -> None:
        """Erase the line, because something else is printed."""
        if self._is_shown:
            self._is_shown = False
            self._write("\r\x1b[K")

    def _line(self, passed: float) -> str:
        of_all = "" if self._size is None else f" of {in_bytes(self._size)}"
        rate = in_bytes(self._read / passed)
        return f"file {self._file} of {self._files}, {in_bytes(self._read)}{of_all}, {rate}/s"

    def _write(self, text: str) -> None:
        if self._terminal is not None:
            self._terminal.write(text)
            self._terminal.flush()


class _Counted(RawIOBase):
    """A file whose reads are counted."""

    def __init__(self, file: RawIOBase, progress: Progress) -> None:
        super().__init__()
        self._file, self._progress = file, progress

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Buffer, /) -> int | None:
        size = self._file.readinto(buffer)
        self._progress.add(size or 0)
        return size

    @override
    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(_READ_BYTES) or b"", b""))


@contextmanager
def opened_file(name: str, progress: Progress) -> Generator[BufferedReader]:
    """Open a file whose reads are counted.

    Raises:
        OSError: the file cannot be read.
    """
    progress.begin_file()
    if not progress.shows:
        with Path(name).open("rb") as plain:
            yield plain
        return
    with Path(name).open("rb", buffering=0) as file:
        yield BufferedReader(_Counted(file, progress), _BUFFER_BYTES)


@contextmanager
def open_progress(names: Iterable[str], *, shows: bool = True) -> Generator[Progress]:
    """Show the progress of work on files, if standard error is a terminal.

    Args:
        names: the files; one that cannot be read is left to the work itself.
        shows: False for work whose output goes on while it runs.
    """
    files = [Path(name) for name in names]
    is_known = all(file.is_file() for file in files)
    size = sum(file.stat().st_size for file in files) if is_known else None
    terminal = sys.stderr if shows and sys.stderr.isatty() else None
    progress = Progress(len(files), size, terminal)
    try:
        yield progress
    finally:
        progress.erase()


def in_bytes(size: float) -> str:
    """Return a number of bytes with its unit, in steps of 1000.

    >>> in_bytes(1_250_000), in_bytes(92_000_000), in_bytes(512)
    ('1.2 MB', '92 MB', '512 B')
    """
    unit = 0
    while size >= _THOUSAND and unit < len(_UNITS) - 1:
        size /= _THOUSAND
        unit += 1
    digits = 1 if unit and size < _WHOLE_FROM else 0
    return f"{size:.{digits}f} {_UNITS[unit]}"
