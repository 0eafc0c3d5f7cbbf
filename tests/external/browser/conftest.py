"""The browser of all tests: its driver runs one event loop a process."""

from collections.abc import Iterator

import pytest
from chromium import chromium
from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started
