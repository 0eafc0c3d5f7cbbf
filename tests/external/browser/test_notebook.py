"""A notebook with a real kernel: a message, a live stream, and the traceback of a failure."""

import re

import pytest
from nbconvert import HTMLExporter
from notebooks import Watching, executed
from playwright.sync_api import Browser

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the packages of Jupyter


@pytest.fixture(scope="module")
def client() -> Watching:
    return executed()


def test_a_message_shows_itself(client: Watching) -> None:
    (output,) = client.nb.cells[1].outputs
    html = output.data["text/html"]
    for expected in ("thinking", "get_forecast", "Kyōto", "187 tokens out"):
        assert expected in html


def test_a_stream_shows_itself_while_it_is_read(client: Watching) -> None:
    shown, printed = client.nb.cells[2].outputs
    assert printed.text == "49 deltas\n"
    assert "stream done" in shown.data["text/html"]
    assert len(client.updates) > 5
    sizes = [len(update) for update in client.updates]
    assert sizes == sorted(sizes)
    assert "stream started" in client.updates[0]
    assert client.updates[-1] == shown.data["text/html"]


def test_the_traceback_shows_the_last_events(client: Watching) -> None:
    (failed,) = client.nb.cells[3].outputs
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(failed.traceback))
    assert failed.ename == "ModelError"
    assert "the last events before the failure:" in plain
    assert "the end of what was read" in plain


def test_a_browser_shows_the_notebook_without_running_its_content(
    client: Watching, browser: Browser
) -> None:
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(client.nb)
    page = browser.new_page()
    page.set_content(body)
    assert page.locator(".deltafold-message").count() == 2
    assert "I will look at the forecast" in page.locator(".deltafold-message").first.inner_text()
    assert page.get_by_text("toolu_01Forecast").count() == 2
    page.close()
