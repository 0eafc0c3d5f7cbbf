"""Messages and streams in a notebook: their HTML, and a display that follows a stream."""

import sys
from collections.abc import AsyncIterator
from operator import methodcaller
from types import ModuleType, SimpleNamespace

import anyio
import pytest

import deltafold
from deltafold import ImagePart, Message, TextPart
from wires import ANTHROPIC, CHAT, CHAT_ERROR

html_of = methodcaller("_repr_html_")
displayed = methodcaller("_ipython_display_")

HOSTILE = "</div><script>alert(1)</script>&amp;"


class Handle:
    """Stands in for IPython's handle of a display."""

    def __init__(self, shown: list[dict[str, str]]) -> None:
        self.shown = shown

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(bundle)


def pretend_ipython(monkeypatch: pytest.MonkeyPatch, *, kernel: object) -> list[dict[str, str]]:
    """Put modules in the place of IPython; returns the bundles that are displayed."""
    shown: list[dict[str, str]] = []

    def display(bundle: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        shown.append(bundle)
        return Handle(shown)

    ipython, displaying = ModuleType("IPython"), ModuleType("IPython.display")
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace(kernel=kernel)
    vars(displaying)["display"] = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displaying)
    return shown


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    monkeypatch.setattr("deltafold.message.notebook._SECONDS_BETWEEN_UPDATES", 0.0)
    return pretend_ipython(monkeypatch, kernel=object())


def test_a_message_shows_its_parts_its_counts_and_its_end() -> None:
    html = html_of(deltafold.fold(ANTHROPIC, "anthropic-messages"))
    for expected in ("thinking", "get_forecast", "Kyōto", "tool_calls", "187 tokens out"):
        assert expected in html


def test_content_is_text_and_no_markup() -> None:
    html = html_of(Message.assistant(TextPart(text=HOSTILE)))
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert html.count("</div>") == html.count("<div")


def test_long_messages_have_a_bounded_length() -> None:
    html = html_of(Message.assistant("start" + "x" * 1_000_000 + "end"))
    assert len(html) < 110_000
    assert "(900,008 characters before)" in html
    assert "end</div>" in html
    many = html_of(Message.assistant(*["x"] * 10_000))
    assert "and 9,500 more parts" in many


def test_other_parts_and_roles_are_shown() -> None:
    image = ImagePart(mime_type="image/png", url="https://example.org/a.png")
    assert "example.org" in html_of(Message.user("Look", image))
    assert "sunny" in html_of(Message.tool_result("call_1", "sunny"))


def test_incomplete_arguments_are_shown_as_they_came() -> None:
    cut = ANTHROPIC.rindex(b"input_json_delta")
    stream = deltafold.stream([ANTHROPIC[:cut]], "anthropic-messages")
    list(stream)
    html = html_of(stream)
    assert "incomplete" in html
    assert "stream error" in html


def test_a_displayed_stream_is_shown_again_after_each_read(shown: list[dict[str, str]]) -> None:
    events = [event + b"\n\n" for event in CHAT.split(b"\n\n")[:-1]]
    stream = deltafold.stream(iter(events), "openai-chat")
    displayed(stream)
    assert "stream idle" in shown[0]["text/html"]
    deltas = list(stream)
    assert [delta.kind for delta in deltas][-1] == "done"
    assert len(shown) >= len(events)
    assert "stream started" in shown[1]["text/html"]
    assert shown[-1]["text/html"] == html_of(stream)
    assert "stream done" in shown[-1]["text/html"]
    assert shown[-1]["text/plain"] == repr(stream)


def test_a_displayed_stream_that_is_awaited_is_shown_too(shown: list[dict[str, str]]) -> None:
    async def sent() -> AsyncIterator[bytes]:
        for event in CHAT_ERROR.split(b"\n\n")[:-1]:
            yield event + b"\n\n"

    async def read() -> None:
        async with deltafold.astream(sent(), "openai-chat") as stream:
            displayed(stream)
            async for _ in stream.batches():
                pass

    anyio.run(read)
    assert len(shown) > 3
    assert "stream error" in shown[-1]["text/html"]


def test_a_stream_that_is_closed_early_shows_that(shown: list[dict[str, str]]) -> None:
    with deltafold.stream(iter([CHAT[:300], CHAT[300:]]), "openai-chat") as stream:
        displayed(stream)
        next(iter(stream))
    assert "stream error" in shown[-1]["text/html"]


def test_a_fast_stream_is_shown_at_intervals(
    shown: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltafold.message.notebook._SECONDS_BETWEEN_UPDATES", 3600.0)
    events = [event + b"\n\n" for event in CHAT.split(b"\n\n")[:-1]]
    stream = deltafold.stream(iter(events), "openai-chat")
    displayed(stream)
    stream.final_message()
    # At the call, after the first read, and from the terminal event on.
    assert 3 <= len(shown) < len(events)
    assert "stream done" in shown[-1]["text/html"]


def test_a_terminal_gets_the_repr_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundles = pretend_ipython(monkeypatch, kernel=None)
    stream = deltafold.stream([CHAT], "openai-chat")
    displayed(stream)
    assert capsys.readouterr().out == f"{stream!r}\n"
    assert bundles == []
    assert stream.final_message().text
