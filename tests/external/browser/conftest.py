"""The browser of all tests: its driver runs one event loop a process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import chromium
from playwright.sync_api import Browser
from shown_pages import Shown, shown_in


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Shown:
    return shown_in(browser, tmp_path)
