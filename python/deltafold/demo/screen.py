"""Shows a stream while it grows: live with rich on a terminal, otherwise line by line.

In: deltas.  Out: their content on standard output.  Only the visible part is kept.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from deltafold import DeltaKind, MessageDelta

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


class Screen(Protocol):
    """Something that shows deltas."""

    def show(self, delta: MessageDelta) -> None:
        """Show the content of one delta."""
        ...


@contextmanager
def open_screen() -> Generator[Screen]:
    """Open the best screen there is, for one stream."""
    if sys.stdout.isatty():
        try:
            from rich.live import Live  # noqa: PLC0415 - the extra `demo`; plain text does without
        except ModuleNotFoundError:
            pass
        else:
            with Live(refresh_per_second=30) as live:
                yield _LiveScreen(live)
            return
    plain = PlainScreen()
    yield plain
    plain.finish()


class PlainScreen:
    """Writes each delta's text as it comes, a new line wherever something else begins."""

    def __init__(self) -> None:
        self._saying: object = None

    def show(self, delta: MessageDelta) -> None:
        """Write the content of one delta."""
        match delta.kind:
            case DeltaKind.TEXT | DeltaKind.THINKING:
                self._begin((delta.kind, delta.part_index), f"{delta.kind}: ")
                self._write(delta.text)
            case DeltaKind.TOOL_CALL_START:
                self._begin(delta.tool_call_id, f"tool call {delta.tool_name}: ")
            case DeltaKind.TOOL_CALL_ARGS:
                self._begin(delta.tool_call_id, f"tool call {delta.tool_call_id}: ")
                self._write(delta.args_text)
            case DeltaKind.ERROR:
                self._begin(delta.seq, f"error {delta.error_code}: {delta.error_message}")
            case _:
                pass

    def finish(self) -> None:
        """End the line that is open."""
        if self._saying is not None:
            self._write("\n")

    def _begin(self, what: object, label: str) -> None:
        if what != self._saying:
            self.finish()
            self._saying = what
            self._write(f"  {label}")

    def _write(self, text: str | None) -> None:
        print(text or "", end="", flush=True)


class _LiveScreen:
    """Redraws the parts of the message in place."""

    def __init__(self, live: "Live") -> None:
        self._live = live
        self._parts: dict[object, list[str]] = {}

    def show(self, delta: MessageDelta) -> None:
        match delta.kind:
            case DeltaKind.TEXT | DeltaKind.THINKING:
                self._append(delta.part_index, f"{delta.kind}: ", delta.text)
            case DeltaKind.TOOL_CALL_START:
                self._append(delta.tool_call_id, f"tool call {delta.tool_name}: ", None)
            case DeltaKind.TOOL_CALL_ARGS:
                self._append(delta.tool_call_id, "", delta.args_text)
            case DeltaKind.ERROR:
                self._append("error", f"error {delta.error_code}: ", delta.error_message)
            case _:
                return
        self._live.update(self._drawing())

    def _append(self, part: object, label: str, text: str | None) -> None:
        self._parts.setdefault(part, [label]).append(text or "")

    def _drawing(self) -> "Text":
        from rich.text import Text  # noqa: PLC0415 - there whenever a live screen is

        return Text("\n".join(f"  {''.join(pieces)}" for pieces in self._parts.values()))
