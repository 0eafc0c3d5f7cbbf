"""Every state of the page as a picture, wide and narrow, light and dark; axe finds nothing in any.

In: recordings of each state.  Out: the pictures, in the folder `states` beside this file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from recordings import FIXTURES, tokens, with_times
from shown_pages import Shown, inspection_of

from deltafold.inspector import Inspection, inspect_recording
from deltafold.testing import Recording

FOLDER: Final = Path(__file__).parent / "states"
SIZES: Final = {1280: 800, 390: 844}
SETTLED_MILLISECONDS: Final = 200


def demonstration(name: str, seed: int = 1) -> Inspection:
    """Return an inspection of a recording of the demonstration, with pauses."""
    return inspect_recording(with_times(name, seed=seed), name.partition(".")[0], name)


def fixture(dialect: str, name: str) -> Inspection:
    (wire,) = (FIXTURES / dialect / name).glob("wire.*")
    return inspect_recording(Recording.of(wire.read_bytes()), dialect, f"{name}.sse")


def many() -> Inspection:
    return inspect_recording(Recording.of(tokens(4835)), "openai-chat", "4,835 events.sse")


def two() -> tuple[Inspection, Inspection]:
    name = "anthropic-messages.tool-call.sse"
    recording = with_times(name)
    return demonstration(name), inspect_recording(
        recording.starred(b"JP"), "anthropic-messages", "another day.sse"
    )


def find(text: str) -> Callable[[Page], None]:
    """Return an act that types into the search."""

    def act(page: Page) -> None:
        page.keyboard.press("/")
        page.keyboard.type(text)

    return act


def filtered(page: Page) -> None:
    page.get_by_label("show events").select_option("tool")


def keys(page: Page) -> None:
    page.keyboard.press("?")


def copied(page: Page) -> None:
    page.get_by_role("button", name="Copy message").click()


def nothing(_page: Page) -> None:
    """Leave the page as it opens."""


CALL: Final = "anthropic-messages.tool-call.sse"
STATES: Final[
    dict[str, tuple[Callable[[], tuple[Inspection, ...]], Callable[[Page], None], str]]
] = {
    "cut-call": (lambda: (demonstration("anthropic-messages.cut.sse", 2),), nothing, ""),
    "error": (lambda: (demonstration("openai-chat.error.sse"),), nothing, ""),
    "refusal": (lambda: (fixture("openai-responses", "refusal"),), nothing, ""),
    "warning": (lambda: (fixture("openai-chat", "invalid-utf8"),), nothing, ""),
    "unusable-call": (lambda: (fixture("anthropic-messages", "call-not-json"),), nothing, ""),
    "rows": (lambda: (demonstration(CALL),), nothing, "#event=39"),
    "pause": (lambda: (demonstration(CALL),), nothing, "#event=13"),
    "frames": (lambda: (inspection_of("bedrock-converse"),), nothing, "#event=6"),
    "broken-frame": (lambda: (inspection_of("bedrock-converse checksum"),), nothing, ""),
    "search": (lambda: (demonstration(CALL),), find("forecast"), ""),
    "search-many": (lambda: (many(),), find("tide comes"), ""),
    "search-none": (lambda: (demonstration(CALL),), find("no such word"), ""),
    "filter": (lambda: (demonstration(CALL),), filtered, ""),
    "copied": (lambda: (demonstration(CALL),), copied, ""),
    "keys": (lambda: (demonstration(CALL),), keys, ""),
    "difference": (two, nothing, ""),
}


@pytest.mark.parametrize("state", STATES)
def test_each_state_is_drawn_and_accessible(state: str, shown: Shown) -> None:
    make, act, fragment = STATES[state]
    inspections = make()
    FOLDER.mkdir(exist_ok=True)
    for width, height in SIZES.items():
        for scheme in ("light", "dark"):
            place = {"width": width, "height": height, "scheme": scheme}
            with shown(*inspections, **place, fragment=fragment) as seen:
                page = seen.page
                page.context.grant_permissions(["clipboard-write"])
                act(page)
                page.wait_for_timeout(SETTLED_MILLISECONDS)
                page.screenshot(path=FOLDER / f"{state}-{width}-{scheme}.png")
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                found = Axe().run(page).response["violations"]
                assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == []
