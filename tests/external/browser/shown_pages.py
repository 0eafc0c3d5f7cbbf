"""Pages of inspections in the browser, and what they should show.

In: recordings by name, inspections.  Out: their pages, watched; the message that a page should
show; the text of its elements.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from chromium import Watched, watched
from playwright.sync_api import Browser, Page
from recordings import RECORDINGS

from deltafold import Message, MessageAssembler, MessageDelta
from deltafold.inspector import Inspection, first_difference, inspect_recording, make_page

Shown = Callable[..., AbstractContextManager[Watched]]
"""Function that opens the page of inspections, and checks in the end that it ran only itself."""


def shown_in(browser: Browser, folder: Path) -> Shown:
    """Return a function that shows pages; `fragment` is the end of the address."""

    @contextmanager
    def show(
        *inspections: Inspection,
        width: int = 1400,
        height: int = 850,
        scheme: str = "light",
        fragment: str = "",
    ) -> Iterator[Watched]:
        difference = first_difference(*inspections) if len(inspections) > 1 else None
        file = folder / "page.html"
        file.write_text(make_page(inspections, difference), encoding="utf-8", newline="")
        url = file.as_uri() + fragment
        with watched(browser, url, width=width, height=height, scheme=scheme) as seen:
            yield seen
            assert seen.problems == []
            assert seen.page.evaluate("window.executed") is None
            assert seen.page.evaluate("document.scripts.length") == 2
            assert seen.page.evaluate("document.querySelectorAll('img, svg, iframe').length") == 0

    return show


def inspection_of(name: str) -> Inspection:
    """Return the inspection of one of the recordings."""
    dialect, recording = RECORDINGS[name]
    return inspect_recording(recording, dialect, name)


def message_after(inspection: Inspection, event: int) -> Message:
    """Return the message that the deltas of the events up to one have built."""
    assembler = MessageAssembler()
    for seq, (number, kind, payload, _) in enumerate(inspection.deltas, 1):
        if number <= event:
            assembler.consume(MessageDelta("run", seq, kind, payload))
    return assembler.snapshot()


def wait_until(page: Page, expression: str) -> None:
    """Wait until an expression is true; the policy of the page forbids the way of Playwright."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never true: {expression}")


def text_on(page: Page, selector: str) -> str:
    """Return the text of all elements of a selector."""
    return "".join(
        page.locator(selector).evaluate_all("found => found.map(one => one.textContent)")
    )
