"""The page at the problems of a recording: where it opens, its rows, search, copies, links."""

import json
from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from recordings import FIXTURES, RECORDINGS, chat
from shown_pages import Shown, inspection_of, message_after, wait_until

from deltafold import Message
from deltafold.inspector import Inspection, inspect_recording
from deltafold.testing import Recording

KEEP_COPIES = """() => {
  navigator.clipboard.writeText = async (text) => { window.copied = text; };
}"""
COUNT_LINKS = "() => { window.links = 0; history.replaceState = () => window.links++; }"


def fixture(dialect: str, name: str) -> Inspection:
    (wire,) = (FIXTURES / dialect / name).glob("wire.*")
    return inspect_recording(Recording.of(wire.read_bytes()), dialect, name)


def event_on(page: Page) -> int:
    return int(page.locator("article").get_attribute("data-event") or "none")


def row_of(page: Page, event: int) -> str:
    return page.locator(f"[aria-label=events] [data-index='{event}']").inner_text()


def numbers(page: Page) -> list[str]:
    """Return the numbers of the events in the list."""
    return page.locator("[aria-label=events] .row .number").all_text_contents()


def find(page: Page, text: str, told: str) -> None:
    page.get_by_label("search events").fill(text)
    page.locator(".finding output", has_text=told).wait_for()


@pytest.fixture
def broken() -> Inspection:
    """Return an inspection with warnings at the events 1 and 2, and an error at the end."""
    body = chat("a", "b", "c").split(b"\n\n")[:-3]
    body[1:1] = [b"data: no JSON", b"data: nor this JSON"]
    found = inspect_recording(Recording.of(b"\n\n".join(body) + b"\n\n"), "openai-chat")
    noise, *others = found.notes  # the decoder counts it, and says it once
    return replace(found, notes=[noise, (2, *noise[1:]), *others])


def test_a_failed_recording_opens_at_its_first_problem(broken: Inspection, shown: Shown) -> None:
    assert [note[:2] for note in broken.notes] == [(1, "warning"), (2, "warning"), (5, "error")]
    with shown(broken) as seen:
        assert event_on(seen.page) == 1
        assert "▲ warning" in row_of(seen.page, 1)


def test_keys_go_round_the_problems(broken: Inspection, shown: Shown) -> None:
    with shown(broken) as seen:
        page = seen.page
        visited: list[int] = []
        for key in ("n", "n", "n", "p", "p", "p"):
            page.keyboard.press(key)
            visited.append(event_on(page))
        assert visited == [2, 5, 1, 5, 2, 1]
        page.get_by_role("button", name="next problem").click()
        assert event_on(page) == 2


def test_a_recording_without_a_problem_opens_at_its_end(shown: Shown) -> None:
    inspection = inspection_of("openai-chat")
    with shown(inspection) as seen:
        page = seen.page
        assert event_on(page) == len(inspection.texts) - 1
        assert page.get_by_role("button", name="problem").count() == 0
        page.keyboard.press("n")
        assert event_on(page) == len(inspection.texts) - 1


def test_two_recordings_open_at_their_first_difference(shown: Shown) -> None:
    one, other = (
        inspect_recording(Recording.of(chat(*texts)), "openai-chat", name)
        for texts, name in ((["high ", "tide ", "at 3"], "one"), (["high tide ", "at 4"], "other"))
    )
    with shown(one, other) as seen:
        articles = seen.page.locator("article")
        assert articles.evaluate_all("all => all.map(one => one.dataset.event)") == ["2", "1"]


@pytest.mark.parametrize(
    ("dialect", "name", "told"),
    [
        ("anthropic-messages", "cut-mid-args", ["✕ connection_lost", "✂\ufe0e cut call"]),
        ("anthropic-messages", "call-not-json", ["? unusable call"]),
        ("openai-responses", "refusal", ["⊘ refusal"]),
        ("openai-chat", "invalid-utf8", ["▲ warning"]),
    ],
)
def test_each_kind_of_problem_has_its_shape_and_its_word(
    dialect: str, name: str, told: list[str], shown: Shown
) -> None:
    with shown(fixture(dialect, name)) as seen:
        marks = seen.page.locator(".row[aria-selected=true] .marks .mark").all_text_contents()
        assert marks == told


def test_the_end_of_a_cut_answer_says_what_to_do(shown: Shown) -> None:
    inspection = fixture("anthropic-messages", "cut-mid-args")
    with shown(inspection) as seen:
        page = seen.page
        assert page.locator(".verdict").inner_text() == "✕ connection_lost"
        assert "send the request again" in page.locator(".note.error").inner_text()
        assert "not runnable: the call was cut off" in page.locator(".grown-part.call").inner_text()


def test_empty_arguments_are_no_problem(shown: Shown) -> None:
    with shown(fixture("openai-responses", "no-argument-call")) as seen:
        page = seen.page
        assert page.locator(".note, .marks .mark, .jumps button").count() == 0
        assert "✓ runnable" in page.locator(".grown-part.call h4").inner_text()
        assert page.locator(".tree").inner_text().split() == ["arguments", "{}"]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("anthropic-messages call", ["content_block_delta", r'"lo\"}"']),
        ("openai-chat", ["arguments", '":1}"']),
        ("bedrock-converse", ["contentBlockDelta", '"I look."']),
        ("bedrock-invoke", ["content_block_delta", '"Hm."']),
        ("cohere-chat", ["tool-call-delta", '":1}"']),
        ("gemini", ["text", '"Two and two."']),
        ("ollama", ["thinking", '" me see."']),
    ],
)
def test_a_row_shows_the_type_of_an_event_and_what_it_brings(
    name: str, row: list[str], shown: Shown
) -> None:
    inspection = inspection_of(name)
    with shown(inspection) as seen:
        seen.page.set_viewport_size({"width": 1400, "height": 1400})
        seen.page.wait_for_timeout(100)
        rows = seen.page.locator("[aria-label=events] .row").all_inner_texts()
        assert any(all(text in told for text in row) for told in rows), rows


def test_a_binary_frame_shows_its_type_its_content_and_its_bytes(shown: Shown) -> None:
    inspection = fixture("bedrock-converse", "throttling")
    event = len(inspection.texts) - 2
    with shown(inspection) as seen:
        page = seen.page
        assert event_on(page) == event
        assert ":throttlingException" in row_of(page, event)
        assert page.locator(".detail .frame").inner_text() == "frame :throttlingException"
        assert json.loads(page.locator(".detail .json").first.inner_text())["message"]
        assert not page.locator(".detail .raw").is_visible()
        page.get_by_text("the bytes of the frame").click()
        assert ":exception-type" in page.locator(".detail .raw").inner_text()


def test_the_same_token_twice_is_shown_twice(shown: Shown) -> None:
    with shown(inspect_recording(Recording.of(chat("ha", "ha")), "openai-chat")) as seen:
        assert 'content "ha"' in row_of(seen.page, 0)
        assert 'content "ha"' in row_of(seen.page, 1)


def test_search_finds_words_that_several_events_carry(shown: Shown) -> None:
    texts = ["It is ", "high ti", "de at", " three. ", 'Say "é"', "\n", "HIGH TIDE"]
    with shown(inspect_recording(Recording.of(chat(*texts)), "openai-chat")) as seen:
        page = seen.page
        find(page, "high tide", "3 events")
        assert numbers(page) == ["2", "3", "7"]
        find(page, '"é', "1 event")
        assert numbers(page) == ["5"]
        find(page, "chatcmpl", "8 events")
        find(page, "nothing of this", "none")
        assert page.locator("[aria-label=events] .rows-empty").is_visible()
        page.get_by_label("search events").press("Escape")
        assert len(numbers(page)) == 10


def test_what_was_found_is_marked_and_enter_goes_there(shown: Shown) -> None:
    texts = ["one", "two", "one", "two", "one"]
    with shown(inspect_recording(Recording.of(chat(*texts)), "openai-chat")) as seen:
        page = seen.page
        page.keyboard.press("/")
        page.keyboard.type("two")
        page.locator(".finding output", has_text="2 events").wait_for()
        marked = page.locator("[aria-label=events] mark").all_text_contents()
        assert marked == ["two", "two"]
        visited: list[int] = []
        for key in ("Shift+Enter", "Shift+Enter", "Enter", "Enter"):
            page.keyboard.press(key)
            visited.append(event_on(page))
        assert visited == [3, 1, 3, 3]


def test_a_filter_shows_the_events_of_one_kind(broken: Inspection, shown: Shown) -> None:
    with shown(broken) as seen:
        page = seen.page
        page.get_by_label("show events").select_option("problems")
        page.locator(".finding output", has_text="3 events").wait_for()
        assert numbers(page) == ["2", "3", "end"]
        page.get_by_label("events", exact=True).focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        assert event_on(page) == 5
        find(page, "json", "2 events")
        assert numbers(page) == ["2", "3"]
        options = page.get_by_label("show events").locator("option").all_text_contents()
        assert options == [
            *("all events", "problems (3)", "text (3)", "other deltas (2)", "without deltas (2)")
        ]


def test_one_event_and_one_delta_are_copied(shown: Shown) -> None:
    inspection = inspection_of("anthropic-messages call")
    with shown(inspection, fragment="#event=3") as seen:
        page = seen.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy event").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == inspection.texts[2]
        page.get_by_role("button", name="Copy delta").first.click()
        (_, kind, payload, _) = next(delta for delta in inspection.deltas if delta[0] == 2)
        copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
        assert copied == {"kind": kind, "payload": payload}


def test_copying_works_where_the_page_may_not_use_the_clipboard(shown: Shown) -> None:
    with shown(inspection_of("openai-chat"), fragment="#event=2") as seen:
        page = seen.page
        page.evaluate("() => (navigator.clipboard.writeText = () => Promise.reject(new Error()))")
        page.evaluate(
            "document.addEventListener('copy', () => window.copied = String(getSelection()))"
        )
        page.keyboard.press("c")
        page.locator("[role=status]", has_text="event copied").wait_for(state="attached")
        assert page.evaluate("window.copied") is not None


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_message_that_is_copied_is_the_one_of_the_fold(name: str, shown: Shown) -> None:
    inspection = inspection_of(name)
    last = len(inspection.texts) - 1
    with shown(inspection) as seen:
        page = seen.page
        page.evaluate(KEEP_COPIES)
        for event in sorted({0, last // 2, last}):
            page.evaluate(f"location.hash = 'event={event + 1}'")
            page.locator(f"article[data-event='{event}']").wait_for()
            page.keyboard.press("m")
            wait_until(page, "window.copied !== undefined")
            copied = Message.from_json(page.evaluate("window.copied"))
            expected = message_after(inspection, event)
            assert copied.to_dict()["parts"] == expected.to_dict()["parts"]
            assert copied.meta.finish_reason == expected.meta.finish_reason


def test_a_link_keeps_the_position(broken: Inspection, shown: Shown) -> None:
    with shown(broken) as seen:
        page = seen.page
        page.keyboard.press("n")
        find(page, "json", "2 events")
        wait_until(page, "location.hash.includes('json')")
        fragment = page.evaluate("location.hash")
        assert fragment == "#event=3&find=json"
        page.reload()
        page.wait_for_selector("#page[data-ready]")
        assert event_on(page) == 2
        assert page.get_by_label("search events").input_value() == "json"
        page.locator(".finding output", has_text="2 events").wait_for()
        page.evaluate("location.hash = '#event=end'")
        page.locator("article[data-event='5']").wait_for()


@pytest.mark.parametrize(
    "fragment",
    ["#event=0", "#event=7", "#event=-1", "#event=1e1", "#event", "#%", "#show=x", "#event=<b>"],
)
def test_a_link_that_says_no_position_is_ignored(
    fragment: str, broken: Inspection, shown: Shown
) -> None:
    with shown(broken, fragment=fragment) as seen:
        assert event_on(seen.page) == 1


def test_the_link_is_not_rewritten_while_the_page_plays(shown: Shown) -> None:
    recording = Recording.of_events(chat(*"abcdefghij"), delay=0.05)
    with shown(inspect_recording(recording, "openai-chat")) as seen:
        page = seen.page
        wait_until(page, "location.hash === '#event=end'")
        page.evaluate(COUNT_LINKS)
        page.keyboard.press("Space")
        page.get_by_role("button", name="Play", exact=True).wait_for()
        page.wait_for_timeout(400)
        assert page.evaluate("window.links") == 1


def test_an_older_page_without_the_facts_of_the_fold_is_shown(
    broken: Inspection, shown: Shown
) -> None:
    members = broken.to_dict()
    del members["answer"], members["frames"]
    with shown(Inspection.from_dict(members)) as seen:
        assert event_on(seen.page) == 1
        assert seen.page.locator(".verdict").count() == 0
        assert Axe().run(seen.page).response["violations"] == []
