"""Messages, streams, failures, runs and trajectories show themselves: HTML, and lines of rich.

What a provider wrote is text in both: no markup of HTML or rich, no control character.
"""

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import methodcaller
from typing import Any, Final

import pytest
from rich.console import Console
from rich.live import Live

import deltafold
from deltafold import Message, ModelError, TextPart, ThinkingPart, ToolCallPart, Usage
from deltafold.contract.kinds import ErrorCode
from deltafold.conversation import AgentState, RunResult, RunStatus, ToolCallRequest
from deltafold.rollouts import Trajectory
from wires import ANTHROPIC, CHAT, CHAT_ERROR, chat

html_of = methodcaller("_repr_html_")

HOSTILE: Final = "[red]a[/red] :smile: <script>alert(1)</script> \x1b[31m\x07\u202e"
IN_HTML: Final = (
    r"[red]a[/red] :smile: &lt;script&gt;alert(1)&lt;/script&gt; \u001b[31m\u0007\u202e"
)
IN_A_TERMINAL: Final = r"[red]a[/red] :smile: <script>alert(1)</script> \u001b[31m\u0007\u202e"


def message(text: str) -> Message:
    call = ToolCallPart(tool_call_id=text, tool_name=text, raw_args_text=text, incomplete=True)
    shown = Message.assistant(ThinkingPart(text=text), TextPart(text=text), call)
    shown.meta.warnings = [{"code": text, "message": text}]
    shown.meta.model_id = text
    return shown


def failure(text: str) -> ModelError:
    failed = ModelError(
        code=ErrorCode.OVERLOADED,
        message=text,
        retryable=True,
        retry_after=7,
        status=529,
        provider_code=text,
        http_request_id=text,
        partial_message=message(text),
        body=text,
    )
    failed.excerpt, failed.hint = text, text
    return failed


def run(text: str) -> RunResult[Any]:
    call = ToolCallRequest(text, text, text)
    return RunResult(
        RunStatus.FAILED,
        message(text),
        "error",
        AgentState.create_default("You are brief."),
        output={text: text},
        turns=2,
        usage=Usage(input_tokens=1200, output_tokens=30),
        cost_usd=0.25,
        cost_unpriced=(text,),
        pending=(call,),
        error=failure(text),
    )


def trajectory(text: str) -> Trajectory:
    return Trajectory(text, 3, 1, message(text), failure(text), 2)


def stream(text: str) -> deltafold.DeltaStream:
    opened = deltafold.stream([chat(text)], "openai-chat")
    opened.final_message()
    return opened


SHOWN: Final[dict[str, Callable[[str], object]]] = {
    "message": message,
    "failure": failure,
    "run": run,
    "run of another failure": lambda text: replace(run(text), error=ValueError(text)),
    "trajectory": trajectory,
    "stream": stream,
}


def printed(shown: object, *, width: int = 400, **settings: Any) -> str:  # noqa: ANN401 - rich's
    """Return what rich prints of an object, on a terminal of 400 columns."""
    written = io.StringIO()
    Console(file=written, width=width, **settings).print(shown)
    return written.getvalue()


@pytest.mark.parametrize("name", SHOWN)
def test_html_has_what_a_provider_wrote_as_text(name: str) -> None:
    html = html_of(SHOWN[name](HOSTILE))
    assert IN_HTML in html
    assert "<script" not in html
    assert not [character for character in "\x1b\x07\u202e" if character in html]
    assert html.count("<div") == html.count("</div>")
    assert html.count("<details") == html.count("</details>")


@pytest.mark.parametrize("name", SHOWN)
def test_rich_has_what_a_provider_wrote_as_text(name: str) -> None:
    shown = printed(SHOWN[name](HOSTILE))
    assert IN_A_TERMINAL in shown
    assert not [character for character in "\x1b\x07\u202e" if character in shown]
    coloured = printed(SHOWN[name](HOSTILE), force_terminal=True, color_system="standard")
    assert IN_A_TERMINAL in coloured
    assert "\x1b[31m\x07" not in coloured
    assert "\u202e" not in coloured


@pytest.mark.parametrize("name", SHOWN)
def test_a_page_has_the_colours_of_the_notebook(name: str) -> None:
    html = html_of(SHOWN[name]("a"))
    styles = html.replace("border-left:3px solid #", "")
    assert "color:" not in styles
    assert "background" not in styles


def test_repr_shows_arguments_in_their_own_order_and_the_first_ones() -> None:
    given = {"place": "Brest", "hour": 17, "boat": {"name": "Ys", "berths": 2}}
    call = ToolCallPart(tool_call_id="c", tool_name="book", arguments=given)
    assert f"arguments={given!r}" in repr(call)
    many = {f"{number}": number for number in range(9, 0, -1)}
    shown = repr(ToolCallPart(tool_call_id="c", tool_name="f", arguments=many))
    assert "arguments={'9': 9, '8': 8, '7': 7, '6': 6, '5': 5, '4': 4, ...}" in shown
    deep = {"a": {"a": {"a": {"a": {"a": 1}}}}}
    nested = repr(ToolCallPart(tool_call_id="c", tool_name="f", arguments=deep))
    assert "arguments={'a': {'a': {'a': {'a': {...}}}}}" in nested


def test_repr_of_a_failure_has_its_code_and_status() -> None:
    with pytest.raises(ModelError) as raised:
        deltafold.fold(b"")
    assert repr(raised.value) == "ModelError(code='protocol_error', message='the body is empty')"
    shown = repr(failure("y" * 10_000))
    assert shown.startswith("ModelError(code='overloaded', message='yyy")
    assert shown.endswith("…', status=529)")
    assert len(shown) < 600


@pytest.mark.parametrize("name", SHOWN)
def test_a_long_text_is_folded_and_bounded(name: str) -> None:
    text = "first " + "x" * 300_000 + " last"
    html = html_of(SHOWN[name](text))
    assert "<details><summary>" in html
    assert "(300,011 characters)" in html
    assert "last</div></details>" in html
    lines = printed(SHOWN[name](text), width=80)
    assert "… 300,011 characters in all" in lines
    assert len(lines) < 60_000


def test_a_failure_says_what_to_do_and_what_was_received() -> None:
    with pytest.raises(ModelError) as failed:
        deltafold.fold(CHAT_ERROR, "openai-chat")
    for shown in (html_of(failed.value), printed(failed.value)):
        places = [
            shown.index(words)
            for words in (
                "ModelError overloaded",
                "may be sent again",
                "The engine is currently overloaded",
                "wait, then send the request again",
                "received before",
                "The answer begins well enough",
            )
        ]
        assert places == sorted(places)


def test_a_run_shows_its_end_its_costs_and_what_waits() -> None:
    for shown in (html_of(run("tide")), printed(run("tide"))):
        for words in (
            "RunResult failed",
            "error · 2 answers · 1,200 tokens in, 30 tokens out · $0.25 without tide",
            "waits for an approval",
            "ModelError overloaded",
            "output",
            "last answer",
        ):
            assert words in shown


def test_a_trajectory_shows_what_was_received_once() -> None:
    answered = Message.assistant("High tide.")
    failed = failure("late")
    failed.partial_message = answered
    for shown in (
        html_of(Trajectory("When?", 3, 1, answered, failed, 2)),
        printed(Trajectory("When?", 3, 1, answered, failed, 2)),
    ):
        assert "Trajectory overloaded" in shown
        assert "prompt 3, choice 1 · 2 tries" in shown
        assert shown.count("High tide.") == 1
    assert "Trajectory whole" in printed(Trajectory("When?", 0, 0, answered))


def test_a_stream_in_progress_shows_the_end_of_its_text() -> None:
    def pieces() -> Iterator[bytes]:
        yield b'data: {"choices":[{"delta":{"content":"begins ' + b"x" * 5_000 + b' grows"}}]}\n\n'
        yield b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    opened = deltafold.stream(pieces(), "openai-chat")
    deltas = iter(opened)
    next(deltas)
    html, lines = html_of(opened), printed(opened)
    assert "stream started" in html
    assert "<details open>" in html
    assert "grows" in lines
    assert "begins" not in lines
    list(deltas)
    html, lines = html_of(opened), printed(opened)
    assert "stream done" in html
    assert "<details open>" not in html
    assert "begins" in lines


def test_rich_draws_a_stream_while_it_is_read() -> None:
    written = io.StringIO()
    console = Console(file=written, width=120, force_terminal=True)
    events = [event + b"\n\n" for event in CHAT.split(b"\n\n")[:-1]]
    opened = deltafold.stream(iter(events), "openai-chat")
    with Live(opened, console=console, auto_refresh=False) as live:
        for _ in opened:
            live.refresh()
    shown = written.getvalue()
    assert shown.index("stream started") < shown.index("stream done")
    assert "Saint-Malo" in shown


def test_the_writers_are_loaded_when_something_is_shown() -> None:
    code = (
        "import sys, deltafold\n"
        "from deltafold import ModelError, stream\n"
        "named = {'rich', 'deltafold.message.html', 'deltafold.message.rich_lines'}\n"
        "sys.exit(', '.join(named & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_message_of_a_model_is_shown_alike_in_both() -> None:
    answered = deltafold.fold(ANTHROPIC, "anthropic-messages")
    for shown in (html_of(answered), printed(answered)):
        for words in ("thinking", "get_forecast", "Kyōto", "tool_calls", "187 tokens out"):
            assert words in shown
