"""Shows a stream while it grows: live with rich on a terminal, otherwise piece by piece.

In: deltas.  Out: their content on standard output.

Laws: a delta costs the length of its own text, because rich draws at its own rate and only the last
lines of the content. Text from outside reaches a terminal without control characters; the line
breaks of an answer stay. A pipe gets the text as it came.
"""

import sys
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from deltafold import DeltaKind, MessageDelta
from deltafold.contract.foreign_text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_LABELS: Final = {DeltaKind.TEXT: "", DeltaKind.THINKING: "thinking: "}
_DRAWS_A_SECOND: Final = 12


class Screen(Protocol):
    """Something that shows deltas."""

    def show(self, delta: MessageDelta) -> None:
        """Show the content of one delta."""
        ...


@contextmanager
def open_screen(*, keeps: bool = True) -> Generator[Screen]:
    """Open the best screen there is, for one stream.

    Args:
        keeps: whether the content stays when the screen closes; without it a live screen is erased,
            because the caller prints the whole message afterwards.
    """
    if sys.stdout.isatty():
        try:
            from rich.live import Live  # noqa: PLC0415 - an extra; plain text does without
        except ModuleNotFoundError:
            pass
        else:
            content = _Content()
            with Live(content, refresh_per_second=_DRAWS_A_SECOND, transient=True):
                yield content
            if keeps:
                print("\n".join(content.lines()))
            return
    plain = PlainScreen()
    yield plain
    plain.finish()


def shown(text: str, *, lines: bool = False) -> str:
    """Return a text for standard output: printable on a terminal, and as it is on a pipe.

    Args:
        text: the text.
        lines: keep line breaks and tabs.
    """
    return printable(text, lines=lines) if sys.stdout.isatty() else text


def say(text: str, *, lines: bool = False) -> None:
    """Print a line as `shown` returns it."""
    print(shown(text, lines=lines))


def pieces_of(delta: MessageDelta) -> tuple[object, str, str] | None:
    """Return what a delta belongs to, the label of that, and its text; None for other deltas.

    The text has lines of its own, the label has none.
    """
    match delta.kind:
        case DeltaKind.TEXT | DeltaKind.THINKING:
            return delta.part_index, _LABELS[delta.kind], delta.text or ""
        case DeltaKind.TOOL_CALL_START:
            return delta.tool_call_id, f"tool call {delta.tool_name}: ", ""
        case DeltaKind.TOOL_CALL_ARGS:
            return delta.tool_call_id, f"tool call {delta.tool_call_id}: ", delta.args_text or ""
        case DeltaKind.ERROR:
            return "error", f"error {delta.error_code}: {delta.error_message or ''}", ""
        case _:
            return None


class PlainScreen:
    """Writes the text of each delta at once, and a new line before another part."""

    def __init__(self) -> None:
        self._open: object = None

    def show(self, delta: MessageDelta) -> None:
        """Write the content of one delta."""
        pieces = pieces_of(delta)
        if pieces is None:
            return
        part, label, text = pieces
        if part != self._open:
            self.finish()
            self._open = part
            print(shown(label), end="")
        print(shown(text, lines=True), end="", flush=True)

    def finish(self) -> None:
        """End the line that is open."""
        if self._open is not None:
            print()


class _Content:
    """The parts of a message, which rich draws when it is time."""

    def __init__(self) -> None:
        self._parts: dict[object, list[str]] = {}

    def show(self, delta: MessageDelta) -> None:
        pieces = pieces_of(delta)
        if pieces is not None:
            part, label, text = pieces
            pieces_so_far = self._parts.setdefault(part, [printable(label)])
            pieces_so_far.append(printable(text, lines=True))

    def lines(self) -> Iterator[str]:
        """Yield the text of each part."""
        for pieces in list(self._parts.values()):
            yield "".join(pieces)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.text import Text  # noqa: PLC0415 - there whenever a live screen is

        height, width = max(options.size.height - 1, 1), max(options.max_width, 1)
        lines: deque[str] = deque()
        for pieces in reversed(list(self._parts.values())):
            lines.extendleft(reversed(_end_of(pieces, height * width).split("\n")))
            if len(lines) >= height:
                break
        wrapped = [part for line in lines for part in Text(line).wrap(console, width)]
        yield Text("\n").join(wrapped[-height:])


def _end_of(pieces: list[str], letters: int) -> str:
    """Return the end of a text, at least `letters` of it."""
    kept: list[str] = []
    for piece in reversed(list(pieces)):
        kept.append(piece)
        letters -= len(piece)
        if letters <= 0:
            break
    return "".join(reversed(kept))
