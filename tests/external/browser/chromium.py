"""Chromium of this machine, and pages in it that are watched.

In: a page's address.  Out: the page, and everything that it said, asked for or ran unasked.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, sync_playwright


@dataclass
class Watched:
    """A page, and what happened on it.

    Attributes:
        page: the page.
        problems: messages of the console, errors, dialogs, and requests for anything else than the
            page and what is its own.
    """

    page: Page
    problems: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium of this machine, without a window.

    Raises:
        RuntimeError: there is none.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise RuntimeError(
            "no chromium on PATH: install it (Debian and Ubuntu: apt install chromium)"
        )
    # The sandbox of Chromium does not run as root, as in a container.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched(
    browser: Browser,
    url: str,
    *,
    width: int = 1400,
    height: int = 850,
    scheme: str = "light",
    ready: str = "#page[data-ready]",
    own: str | None = None,
) -> Iterator[Watched]:
    """Open a page, wait until it is ready, and watch it.

    Args:
        browser: the browser.
        url: address of the page.
        width: width of the window in CSS pixels.
        height: height of the window in CSS pixels.
        scheme: "light" or "dark".
        ready: selector of an element that the page has when it is ready; that of the inspector.
        own: beginning of the addresses that the page may ask for; None for itself alone.
    """
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    seen = Watched(page)
    page.on("console", lambda message: seen.problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.problems.append(f"error: {error}"))
    page.on("dialog", lambda dialog: seen.problems.append(f"dialog: {dialog.message}"))
    address = url.partition("#")[0]

    def is_own(asked: str) -> bool:
        return asked == address or (own is not None and asked.startswith((own, "data:", "blob:")))

    page.on(
        "request",
        lambda request: None if is_own(request.url) else seen.problems.append(request.url),
    )
    page.goto(url)
    page.wait_for_selector(ready, state="attached")
    try:
        yield seen
    finally:
        page.close()
