"""The page of the inspector in a browser: its content, its keys, and what it must not do."""

import json
from bisect import bisect_right

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import watched
from playwright.sync_api import Browser, Page
from recordings import RECORDINGS, chat, chat_call
from shown_pages import Shown, inspection_of, message_after, text_on

from deltafold.gateway import create_app
from deltafold.gateway.recorded_models import ReplayTable
from deltafold.inspector import Inspection, inspect_recording
from deltafold.testing import Recording
from gateways import served

STEPS_TESTED = 60


def assert_shows(page: Page, inspection: Inspection, event: int) -> None:
    message = message_after(inspection, event)
    assert text_on(page, ".grown-part.text > .text, .grown-part.refusal > .text") == message.text
    assert text_on(page, ".grown-part.thinking > .text") == message.thinking
    raw = text_on(page, ".grown-part.call details > .text")
    assert raw == "".join(call.raw_args_text for call in message.tool_calls)


@pytest.mark.parametrize("name", RECORDINGS)
def test_each_event_shows_its_deltas_and_the_message_so_far(name: str, shown: Shown) -> None:
    inspection = inspection_of(name)
    with shown(inspection) as seen:
        page = seen.page
        last = len(inspection.texts) - 1
        opened = inspection.notes[0][0] if inspection.notes else last
        article = page.locator("article")
        assert article.get_attribute("data-event") == str(opened)
        assert_shows(page, inspection, opened)
        page.locator("[aria-label=events]").focus()
        page.keyboard.press("Home")
        for event in range(min(last, STEPS_TESTED)):
            assert article.get_attribute("data-event") == str(event)
            assert_shows(page, inspection, event)
            kinds = [delta[1] for delta in inspection.deltas if delta[0] == event][:50]
            told = page.locator(".detail .delta").all_text_contents()
            assert told == [f"delta {kind}" for kind in kinds]
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (420, "light")])
def test_the_accessibility_check_finds_nothing(
    name: str, width: int, scheme: str, shown: Shown
) -> None:
    with shown(inspection_of(name), width=width, scheme=scheme) as seen:
        found = Axe().run(seen.page).response["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == []


def test_the_raw_bytes_of_an_event_are_shown_whole(shown: Shown) -> None:
    inspection = inspection_of("lines of 1 MB")
    with shown(inspection) as seen:
        seen.page.locator("[aria-label=events]").focus()
        seen.page.keyboard.press("Home")
        seen.page.keyboard.press("ArrowDown")
        assert text_on(seen.page, ".detail .raw") == inspection.texts[1]


def test_invisible_characters_are_shown_as_escapes(shown: Shown) -> None:
    with shown(inspection_of("hostile raw lines")) as seen:
        seen.page.locator("[aria-label=events]").focus()
        seen.page.keyboard.press("Home")
        raw = text_on(seen.page, ".detail .raw")
        assert "\\u202egnp.exe" in raw
        assert "\\u0000\\u001b[31m" in raw


def test_arguments_grow_as_a_tree(shown: Shown) -> None:
    arguments = {"path": "a.txt", "lines": ["one", "two"], "deep": {"count": 3, "on": True}}
    recording = Recording.of(chat_call(json.dumps(arguments)))
    inspection = inspect_recording(recording, "openai-chat")
    with shown(inspection) as seen:
        page = seen.page
        labels = ["arguments", "path", "lines", "0", "1", "deep", "count", "on"]
        assert page.locator(".tree .key").all_text_contents() == labels
        leaves = ["a.txt", "one", "two"]
        assert page.locator(".tree .string").all_text_contents() == leaves
        assert page.locator(".tree .scalar").all_text_contents() == ["3", "true"]
        page.locator("[aria-label=events]").focus()
        page.keyboard.press("Home")
        grown: list[str] = []
        for _ in inspection.texts:
            grown.append(text_on(page, ".tree"))
            page.keyboard.press("ArrowDown")
        # The number of members stands in the braces, so that a text may change before its end.
        assert len(set(grown)) > 5
        assert [len(one) for one in grown] == sorted(len(one) for one in grown)


def test_a_long_list_shows_its_members_in_steps(shown: Shown) -> None:
    recording = Recording.of(chat_call(json.dumps({"n": list(range(250))}), size=64))
    with shown(inspect_recording(recording, "openai-chat")) as seen:
        page = seen.page
        assert page.locator(".tree .scalar").count() == 100
        page.get_by_role("button", name="show 150 more members").click()
        page.get_by_role("button", name="show 50 more members").click()
        assert page.locator(".tree .scalar").count() == 250
        assert page.locator(".tree button").count() == 0


def test_a_problem_stands_at_its_event(shown: Shown) -> None:
    inspection = inspection_of("anthropic-messages error")
    (note,) = [note for note in inspection.notes if note[1] == "error"]
    with shown(inspection) as seen:
        page = seen.page
        page.get_by_role("button", name="error").first.click()
        assert page.locator("article").get_attribute("data-event") == str(note[0])
        assert note[3] in page.locator(".detail .note.error").inner_text()
        marked = page.locator(".rows[aria-label=events] .row[aria-selected=true] .marks .error")
        assert marked.inner_text() == f"✕ {note[2]}"


def test_usage_and_cost_are_shown(shown: Shown) -> None:
    with shown(inspection_of("anthropic-messages call")) as seen:
        facts = seen.page.locator(".facts").inner_text()
        assert " out" in facts
        assert "genai-prices" in facts


def test_pauses_are_named_and_lead_to_their_event(shown: Shown) -> None:
    pieces = [(0.1, piece + b"\n\n") for piece in chat("a", "b", "c", "d").split(b"\n\n")[:-1]]
    pieces[2] = (3.5, pieces[2][1])
    recording = Recording(tuple(pieces), headers_after=0.1)
    with shown(inspect_recording(recording, "openai-chat")) as seen:
        page = seen.page
        page.get_by_role("button", name="pause of 3.500 s").click()
        assert page.locator("article").get_attribute("data-event") == "2"
        assert page.locator(".row[aria-selected=true] .time.long").inner_text() == "‖ +3.500"


def test_the_page_is_used_by_keyboard_alone(shown: Shown) -> None:
    inspection = inspection_of("openai-chat")
    with shown(inspection) as seen:
        page = seen.page
        article = page.locator("article")
        reached: list[str] = []
        for _ in range(18):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate(
                    "document.activeElement.getAttribute('aria-label')"
                    " ?? document.activeElement.textContent"
                )
            )
        for name in (
            *("Play", "next event", "speed", "time", "Keys", "search events", "show events"),
            *("events", "deltas", "Copy message", "message", "chosen event"),
        ):
            assert name in reached
        page.keyboard.press("1")
        page.keyboard.press("Home")
        assert article.get_attribute("data-event") == "0"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert article.get_attribute("data-event") == "2"
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("2")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "deltas"
        page.keyboard.press("?")
        assert page.locator("dialog").is_visible()
        assert Axe().run(page).response["violations"] == []
        page.keyboard.press("Escape")
        assert not page.locator("dialog").is_visible()
        page.keyboard.press("]")
        assert page.get_by_label("speed").input_value() == "2"
        page.keyboard.press("Space")
        assert page.get_by_role("button", name="Pause", exact=True).is_visible()
        page.keyboard.press("Space")
        assert page.get_by_role("button", name="Play", exact=True).is_visible()
        page.keyboard.press("/")
        page.keyboard.type("n p")
        assert page.get_by_label("search events").input_value() == "n p"


def test_the_time_line_shows_what_had_come_at_each_time(shown: Shown) -> None:
    inspection = inspection_of("anthropic-messages call")
    with shown(inspection) as seen:
        for seconds in (0.0, 0.39, 0.45, 0.62, 1.0, 1.777, 2.5, 99.0):
            seen.page.locator("input[type=range]").fill(str(min(seconds, inspection.seconds[-1])))
            event = bisect_right(inspection.seconds, seconds) - 1
            assert seen.page.locator("article").get_attribute("data-event") == str(event)
            assert_shows(seen.page, inspection, event)


def test_playing_shows_every_event_and_stops_at_the_end(shown: Shown) -> None:
    recording = Recording.of_events(chat(*"abcdef"), delay=0.03)
    inspection = inspect_recording(recording, "openai-chat")
    with shown(inspection) as seen:
        page = seen.page
        page.evaluate(
            """() => {
              window.events = [];
              const article = document.querySelector("article");
              new MutationObserver(() => window.events.push(Number(article.dataset.event)))
                .observe(article, { attributeFilter: ["data-event"] });
            }"""
        )
        page.get_by_role("button", name="Play", exact=True).click()
        page.get_by_role("button", name="Play", exact=True).wait_for()
        events = page.evaluate("window.events")
        assert events == sorted(events)
        assert events[-1] == len(inspection.texts) - 1
        assert_shows(page, inspection, len(inspection.texts) - 1)


def test_two_recordings_stand_side_by_side_at_their_first_difference(shown: Shown) -> None:
    one, other = (
        inspect_recording(Recording.of(chat(*texts)), "openai-chat", name)
        for texts, name in ((["high ", "tide ", "at 3"], "one"), (["high tide ", "at 4"], "other"))
    )
    with shown(one, other) as seen:
        page = seen.page
        articles = page.locator("article")
        boxes = [articles.nth(number).bounding_box() for number in (0, 1)]
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[0]["y"] == boxes[1]["y"]
        page.keyboard.press("d")
        shown_events = articles.evaluate_all("found => found.map(one => one.dataset.event)")
        assert shown_events == ["2", "1"]
        assert page.locator(".row[aria-selected=true] .differs").count() == 2
        assert "at 3" in articles.nth(0).locator(".message").inner_text()
        assert "at 4" in articles.nth(1).locator(".message").inner_text()
        assert Axe().run(page).response["violations"] == []


def test_two_equal_recordings_say_so(shown: Shown) -> None:
    inspection = inspection_of("openai-chat")
    with shown(inspection, inspection) as seen:
        assert "say the same" in seen.page.locator(".difference").inner_text()


def test_a_gateway_shows_its_recordings(browser: Browser) -> None:
    recordings = {"a <b>": RECORDINGS["openai-chat"], "c/d": RECORDINGS["gemini"]}
    with served(create_app(ReplayTable(recordings))) as url:
        page = browser.new_page()
        page.goto(f"{url}/inspect")
        assert page.locator("a").all_text_contents() == list(recordings)
        assert Axe().run(page).response["violations"] == []
        address = page.get_by_role("link", name="c/d").get_attribute("href")
        page.close()
        with watched(browser, f"{url}{address}") as seen:
            dialect, recording = recordings["c/d"]
            inspection = inspect_recording(recording, dialect)
            assert_shows(seen.page, inspection, len(inspection.texts) - 1)
            assert seen.problems == []
