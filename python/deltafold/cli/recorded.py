"""Recorded streams of the command line: the responses of files and folders, and their names.

In: files and folders in any form that `deltafold.testing.captures` reads; `FILE#2` and
`FILE/MEMBER` name one of several responses.  Out: one `Captured` after the other.

Laws: one stream is held at a time, where the form allows it. Nothing is written to disk.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deltafold._core import is_batch_line
from deltafold.cli.progress import Progress, opened_file
from deltafold.contract.exceptions import MisuseError, UnknownDialectError
from deltafold.testing.captures.captured import Captured
from deltafold.testing.captures.forms import PACKED, Form, begin
from deltafold.testing.captures.readers import joined
from deltafold.testing.captures.reading import ReadOptions, captured_in, unpacked

STANDARD_INPUT: Final = "-"

UNREADABLE: Final = (MisuseError, OSError, UnknownDialectError, ValueError)
"""Exceptions of a file that cannot be read."""

_LISTED: Final = 20
"""Responses that an error lists."""


@dataclass(frozen=True, slots=True)
class Named:
    """A file, and the response that is asked for.

    Attributes:
        file: the name of the file; `-` is standard input.
        place: the place of one of its responses; None for all of them.
    """

    file: str
    place: str | None = None

    @property
    def shown(self) -> str:
        """The name for messages."""
        return self.file if self.file != STANDARD_INPUT else "standard input"


def named(name: str) -> Named:
    """Split the name of a response into its file and its place.

    A file whose own name looks like one comes first.
    """
    if name == STANDARD_INPUT or Path(name).exists():
        return Named(name)
    file, mark, number = name.rpartition("#")
    if mark and number.isdecimal():
        if file == STANDARD_INPUT:
            return Named(file, f"standard input#{number}")
        if Path(file).is_file():
            return Named(file, name)
    archive = next((str(above) for above in Path(name).parents if above.is_file()), None)
    return Named(name) if archive is None else Named(archive, name)


def files_below(names: list[str]) -> list[Named]:
    """Return the files: those that are named, and all below the named folders.

    Raises:
        OSError: a name is neither a file nor a folder.
        MisuseError: a name is that of standard input, or the folders have no file.
    """
    found: list[Named] = []
    for name in names:
        one = named(name)
        if one.file == STANDARD_INPUT:
            raise MisuseError("name the files and folders to fold: --to reads no standard input")
        path = Path(one.file)
        if path.is_dir():
            found += [Named(str(each)) for each in sorted(path.rglob("*")) if each.is_file()]
        else:
            path.stat()
            found.append(one)
    if not found:
        raise MisuseError(f"{' '.join(names)} has no files: name files, or a folder with some")
    return found


def is_batch(path: Path) -> bool:
    """Return whether this is a file with the results of a batch, compressed or not."""
    if not path.is_file():
        return False
    name, bound = str(path), ReadOptions().max_bytes
    with path.open("rb") as raw:
        reader = joined(b"", raw)
        form, head = begin(reader, name)
        if form in PACKED:
            reader = unpacked(form, joined(head, reader), name, bound)
            form, head = begin(reader, name)
        if form in {Form.PLAIN, Form.JSON} and head.lstrip().startswith(b"{"):
            # The members that tell a line of a batch may come after a long answer.
            line = head if b"\n" in head else head + reader.readline(bound)
            return is_batch_line(line.lstrip())
        return form is Form.BATCH


def recorded_in(file: Named, options: ReadOptions, progress: Progress) -> Iterator[Captured]:
    """Yield the streams of a file.

    Raises:
        Exception: one of `UNREADABLE`: the file is damaged, or a stream is too large.
    """
    with opened_file(file.file, progress) as reader:
        yield from chosen(captured_in(reader, file.file, options), file)


def chosen(found: Iterator[Captured], file: Named) -> Iterator[Captured]:
    """Yield the response that is asked for, or all.

    Raises:
        MisuseError: there is no such response.
    """
    if file.place is None:
        yield from found
        return
    others: list[str] = []
    for one in found:
        if one.place == file.place:
            yield one
            return
        others.append(one.place)
    listed = ", ".join(others[:_LISTED]) or "none"
    more = f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
    raise MisuseError(f"{file.place}: {file.shown} has no such answer; it has {listed}{more}")


def the_one(found: Iterator[Captured], file: Named) -> Captured:
    """Return the one response.

    Raises:
        MisuseError: there is none, or there are several; the error lists them.
    """
    listed: list[str] = []
    first: Captured | None = None
    number = 0
    for number, one in enumerate(chosen(found, file), 1):
        first = first or one
        if number <= _LISTED:
            listed.append(str(one))
    if first is None:
        raise MisuseError(f"{file.shown}: no answer of a model")
    if number == 1:
        return first
    rest = [f"and {number - _LISTED} more"] if number > _LISTED else []
    raise MisuseError(
        f"{file.shown} has {number} answers, and this command takes one; name it, such as "
        f"{first.place}: {'; '.join([*listed, *rest])}"
    )
