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
        problems: messages of the console, errors, dialogs, and requests for anything but the page.
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
    browser: Browser, url: str, *, width: int = 1400, height: int = 850, scheme: str = "light"
) -> Iterator[Watched]:
    """Open a page of the inspector, wait until it is ready, and watch it."""
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    seen = Watched(page)
    page.on("console", lambda message: seen.problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.problems.append(f"error: {error}"))
    page.on("dialog", lambda dialog: seen.problems.append(f"dialog: {dialog.message}"))
    address = url.partition("#")[0]
    page.on(
        "request",
        lambda request: None if request.url == address else seen.problems.append(request.url),
    )
    page.goto(url)
    page.wait_for_selector("#page[data-ready]")
    try:
        yield seen
    finally:
        page.close()
