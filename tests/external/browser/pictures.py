"""Pictures of the documentation: the inspector's page, a notebook, a traceback in a terminal.

In: recordings of the demonstration, with times that are made here.  Out: docs/pictures/*.png.

    python tests/external/browser/pictures.py [FOLDER]
"""

import io
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from chromium import chromium, watched
from nbconvert import HTMLExporter
from notebooks import executed
from PIL import Image
from playwright.sync_api import Browser, Page
from recordings import DEMO, ROOT, with_times
from rich.console import Console
from rich.text import Text

import deltafold
from deltafold.inspector import first_difference, inspect_recording, make_page
from deltafold.streams import excerpts
from deltafold.testing import Recording

NOTEBOOK: Final = (
    "<style>body{font:14px sans-serif;margin:16px;max-width:900px}"
    "pre{font:12px/1.5 'DejaVu Sans Mono',monospace;margin:.4em 0;white-space:pre-wrap}"
    ".jp-InputArea,.jp-Cell-inputWrapper{background:#f6f8fa;padding:2px 8px}"
    ".jp-InputPrompt,.jp-OutputPrompt,.jp-Collapser{display:none}</style>"
)


@contextmanager
def inspected(
    browser: Browser, *recordings: tuple[str, Recording], width: int, height: int, scheme: str
) -> Iterator[Page]:
    """Open the page of recordings."""
    shown = [
        inspect_recording(recording, name.partition(".")[0], name) for name, recording in recordings
    ]
    difference = first_difference(*shown) if len(shown) > 1 else None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_text(make_page(shown, difference), encoding="utf-8", newline="")
        with watched(browser, file.as_uri(), width=width, height=height, scheme=scheme) as seen:
            yield seen.page


def press(page: Page, *keys: str) -> None:
    """Press keys in the list of events."""
    page.locator(".rows").first.focus()
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(200)


def draw_inspector(browser: Browser, folder: Path) -> None:
    """Draw the page wide and narrow, light and dark, of one recording and of two."""
    call = ("anthropic-messages.tool-call.sse", with_times("anthropic-messages.tool-call.sse"))
    cut = ("anthropic-messages.cut.sse", with_times("anthropic-messages.cut.sse", seed=2))
    wide = {"width": 1280, "height": 760}
    with inspected(browser, call, **wide, scheme="light") as page:
        press(page, "End", *["ArrowUp"] * 14)
        page.screenshot(path=folder / "inspect.png")
    with inspected(browser, call, **wide, scheme="dark") as page:
        press(page, "End", *["ArrowUp"] * 14)
        page.screenshot(path=folder / "inspect-dark.png")
    with inspected(browser, cut, width=430, height=900, scheme="light") as page:
        press(page, "n")
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=folder / "inspect-narrow.png")
    other = replace(call[1].starred(b"JP"), headers_after=0.2)
    with inspected(browser, call, (call[0], other), **wide, scheme="light") as page:
        press(page, "d")
        page.screenshot(path=folder / "inspect-diff.png")


def draw_notebook(browser: Browser, folder: Path) -> None:
    """Draw the executed notebook."""
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(executed().nb)
    page = browser.new_page(viewport={"width": 900, "height": 600})
    # Where the package is installed is nothing for a reader.
    page.set_content(NOTEBOOK + re.sub(r"(?<![\w.])/[\w./-]+/(?=deltafold/)", "…/", body))
    page.screenshot(path=folder / "notebook.png", full_page=True)
    page.close()


def draw_terminal(browser: Browser, folder: Path) -> None:
    """Draw the traceback of a failed stream, as a terminal of 100 columns shows it."""
    excerpts.IS_WATCHED = True  # type: ignore[misc] # this program has no terminal
    console = Console(record=True, width=110, file=io.StringIO())
    try:
        deltafold.fold((DEMO / "openai-chat.error.sse").read_bytes(), "openai-chat")
    except deltafold.ModelError as error:
        lines = traceback.format_exception_only(error)
        console.print(Text("".join(lines).rstrip()), soft_wrap=False)
    draw_svg(browser, console, folder / "traceback.png", "python app.py")


def draw_svg(browser: Browser, console: Console, file: Path, title: str) -> None:
    """Draw what a console has printed."""
    page = browser.new_page(viewport={"width": 1100, "height": 400})
    page.set_content(console.export_svg(title=title))
    page.locator("svg").screenshot(path=file)
    page.close()


def main() -> None:
    """Draw all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    with chromium() as browser:
        draw_inspector(browser, folder)
        draw_terminal(browser, folder)
        draw_notebook(browser, folder)
    for file in folder.glob("*.png"):
        # Few colours make a picture of text three times as small.
        Image.open(file).convert("RGB").quantize(
            256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        ).save(file, optimize=True)


if __name__ == "__main__":
    main()
