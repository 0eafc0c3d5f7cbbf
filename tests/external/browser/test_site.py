"""The built site in a browser: each page wide and narrow, light and dark, and pictures of some.

In: site/, which `make docs` builds; pages are opened from files.  Out: the pictures, in the folder
`states` beside this file.

Laws: code fits its box in a window of 1280 pixels, no page scrolls sideways, a picture has an
alternative text, axe finds nothing serious, and no page asks another host for anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import Watched, watched
from playwright.sync_api import Browser, Page
from recordings import ROOT

from stream_picture import FONT, LAYOUTS, SECONDS_FULL, Layout

FOLDER: Final = Path(__file__).parent / "states"
SITE: Final = ROOT / "site"
# The links of 404.html begin at the root of a server.
PAGES: Final = sorted(
    page.relative_to(SITE).as_posix() for page in SITE.rglob("*.html") if page.name != "404.html"
)
PICTURED: Final = (
    "index.html",
    "choose.html",
    "vendors.html",
    "how-to/tools.html",
    "bench.html",
    "reference/folding.html",
)
SIZES: Final = {1280: 900, 390: 844}
SCHEMES: Final = ("light", "dark")
TALLEST: Final = 2400
SETTLED_MILLISECONDS: Final = 300
SMALLEST_TEXT: Final = 11
LONGEST_LINE: Final = 88

# A box scrolls if its content is wider; a box without a size is not shown.
WIDE_CODE: Final = """() => [...document.querySelectorAll("pre > code")]
  .filter((code) => code.scrollWidth > code.clientWidth)
  .map((code) => [code.scrollWidth, code.clientWidth, code.textContent.slice(0, 200)])"""
SMALL_CODE: Final = """() => [...document.querySelectorAll("pre > code")]
  .filter((code) => parseFloat(getComputedStyle(code).fontSize) < 12)
  .map((code) => code.textContent.slice(0, 200))"""
WITHOUT_TEXT: Final = """() => [...document.images]
  .filter((image) => !image.alt.trim()).map((image) => image.outerHTML)"""
FOUND: Final = """() => document.querySelector(".md-search-result__list li")?.textContent"""
# Opacity of each piece of text, and how far the rows have scrolled, at a time in milliseconds.
SHOWN_AT: Final = """(time) => {
  for (const animation of document.getAnimations()) {
    animation.pause();
    animation.currentTime = time;
  }
  return [
    [...new Set([...document.querySelectorAll("tspan")]
      .map((piece) => getComputedStyle(piece).fillOpacity))],
    [...document.querySelectorAll(".rows")].map((rows) => rows.getCTM().f),
  ];
}"""
# A line of code as long as lines may be, and its output.
WITH_OUTPUT: Final = """(length) => {
  const block = document.querySelector(".highlight");
  const output = block.cloneNode(true);
  output.className = block.className.replace("language-sh", "language-text");
  for (const one of [block, output]) {
    one.querySelector("code").textContent = "x".repeat(length) + "\\n";
  }
  block.after(output);
  const [above, below] = [block, output].map((one) => one.querySelector("code"));
  return {
    gap: below.getBoundingClientRect().top - above.getBoundingClientRect().bottom,
    label: getComputedStyle(output, "::before").content,
    lacking: above.scrollWidth - above.clientWidth,
  };
}"""


@contextmanager
def opened(browser: Browser, page: str, width: int, scheme: str) -> Iterator[Watched]:
    """Open a page of the site, and check in the end that it asked for its own files alone."""
    address = (SITE / page).as_uri()
    place = {"width": width, "height": SIZES[width], "scheme": scheme}
    with watched(browser, address, **place, ready="body", own=SITE.as_uri()) as seen:
        seen.page.wait_for_timeout(SETTLED_MILLISECONDS)
        yield seen
        assert seen.problems == []


def serious(page: Page) -> list[tuple[str, str]]:
    """Return the rules of axe that a page breaks, each with the first element that does."""
    # A page from a file may not read its own style sheets, as axe would for a rule about rotation.
    options = {"resultTypes": ["violations"], "preload": False}
    found = Axe().run(page, options=options).response["violations"]
    return [
        (rule["id"], rule["nodes"][0]["html"])
        for rule in found
        if rule["impact"] in {"serious", "critical"}
    ]


def test_the_site_is_built() -> None:
    assert len(PAGES) > 50
    assert {*PICTURED} <= {*PAGES}


@pytest.mark.timeout(900)  # axe needs minutes for the longest pages of the reference
@pytest.mark.parametrize("name", PAGES)
def test_each_page_fits_and_is_accessible(name: str, browser: Browser) -> None:
    with opened(browser, name, max(SIZES), "light") as seen:
        page = seen.page
        assert page.evaluate(WITHOUT_TEXT) == []
        assert page.evaluate(SMALL_CODE) == []
        assert page.evaluate(WIDE_CODE) == []
        for width, height in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            for toggle, scheme in enumerate(SCHEMES):
                page.evaluate(f"document.querySelector('#__palette_{toggle}').click()")
                assert page.evaluate("getComputedStyle(document.body).colorScheme") == scheme
                assert serious(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("name", PICTURED)
def test_pages_are_drawn(name: str, width: int, scheme: str, browser: Browser) -> None:
    FOLDER.mkdir(exist_ok=True)
    with opened(browser, name, width, scheme) as seen:
        page = seen.page
        height = min(TALLEST, page.evaluate("document.documentElement.scrollHeight"))
        file = FOLDER / f"site-{name.removesuffix('.html').replace('/', '-')}-{width}-{scheme}.png"
        page.screenshot(
            path=file,
            full_page=True,
            animations="disabled",
            clip={"x": 0, "y": 0, "width": width, "height": height},
        )
        assert file.stat().st_size > 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_output_joins_the_code_above_and_a_line_of_88_characters_fits(
    scheme: str, browser: Browser
) -> None:
    with opened(browser, "index.html", 1280, scheme) as seen:
        measured = seen.page.evaluate(WITH_OUTPUT, LONGEST_LINE)
        assert measured["gap"] == pytest.approx(0, abs=0.5)
        assert measured["label"] == '"prints"'
        assert measured["lacking"] <= 0
        assert serious(seen.page) == []


def test_the_search_finds_pages_that_are_opened_from_files(browser: Browser) -> None:
    with opened(browser, "index.html", 1280, "light") as seen:
        seen.page.keyboard.press("/")
        seen.page.keyboard.type("fold_many")
        seen.page.wait_for_function(FOUND)
        assert "fold_many" in seen.page.evaluate(FOUND)


@pytest.mark.parametrize(("width", "layout"), [*zip(SIZES, LAYOUTS, strict=True)])
def test_the_text_of_the_picture_can_be_read(width: int, layout: Layout, browser: Browser) -> None:
    with opened(browser, "index.html", width, "light") as seen:
        image = seen.page.locator("img.stream")
        assert image.evaluate("image => image.currentSrc").endswith(f"/{layout.file}")
        scale = image.evaluate("image => image.clientWidth / image.naturalWidth")
        assert FONT * scale >= SMALLEST_TEXT


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.file)
def test_the_picture_begins_full_and_then_replays(layout: Layout, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((SITE / layout.file).as_uri())
    full, scrolled = page.evaluate(SHOWN_AT, 0)
    assert full == ["1"]
    assert min(scrolled) < 0
    assert page.evaluate(SHOWN_AT, SECONDS_FULL * 1000 - 10) == [full, scrolled]
    assert page.evaluate(SHOWN_AT, SECONDS_FULL * 1000 + 10) == [["0"], [0] * len(scrolled)]
    end = page.evaluate("document.getAnimations()[0].effect.getTiming().duration") - 10
    assert page.evaluate(SHOWN_AT, end) == [full, scrolled]
    page.close()


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.file)
def test_the_picture_stands_full_for_readers_who_ask_for_reduced_motion(
    layout: Layout, browser: Browser
) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto((SITE / layout.file).as_uri())
    full, scrolled = page.evaluate(SHOWN_AT, 0)
    assert page.evaluate("document.getAnimations().length") == 0
    assert full == ["1"]
    assert min(scrolled) < 0
    page.close()
