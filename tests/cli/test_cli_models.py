"""`deltafold chat`, `models`, `doctor` and `completion`."""

import io
import json
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypedDict, cast

import pytest

from deltafold.cli import main
from deltafold.testing import Recording, ReplayServer
from wires import CHAT, CHAT_ERROR, chat

TEXT = (
    b'data: {"id":"1","model":"m","choices":[{"delta":{"content":"Hello "}}]}\n\n'
    b'data: {"choices":[{"delta":{"content":"there."},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":1200,"completion_tokens":2,"total_tokens":1202}}'
    b"\n\ndata: [DONE]\n\n"
)


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as server:
        yield server


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


class SentMessage(TypedDict):
    """A message of a request."""

    role: str
    content: str


class Sent(TypedDict):
    """A request, as far as it is examined."""

    messages: list[SentMessage]
    max_completion_tokens: int


def sent_to(server: ReplayServer) -> list[Sent]:
    return [cast("Sent", request.json()) for request in server.requests]


def one_line_of(lines: list[str]) -> Callable[[str], str]:
    """Return what answers `input`."""
    given = iter(lines)
    return lambda _: next(given)


def at(server: ReplayServer) -> list[str]:
    return ["--set", f"base_url={server.url}/v1"]


def test_chat_shows_the_answer_the_usage_and_the_finish_reason(
    server: ReplayServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.queue(Recording.of_events(TEXT))
    asked = ["chat", "openai-chat/gpt-5", "Hi", "--system", "Be brief.", "--set", "max_tokens=7"]
    assert main([*asked, *at(server)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "Hello there.",
        "[1,200 input tokens, 2 output tokens, $0.001520, finish reason stop]",
    ]
    (body,) = sent_to(server)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["max_completion_tokens"] == 7


def test_chat_says_where_the_cost_is_a_lower_bound(
    server: ReplayServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.queue(Recording.of_events(TEXT.replace(b'"usage":{', b'"usage":{"num_sources_used":2,')))
    assert main(["chat", "openai-chat/gpt-5", "Hi", *at(server)]) == 0
    out = capsys.readouterr().out
    assert "[1,200 input tokens, 2 output tokens, at least $0.001520, finish reason stop]" in out


def test_chat_reads_a_pipe_as_one_message(
    server: ReplayServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.queue(Recording.of_events(TEXT))
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    assert main(["chat", "openai-chat/gpt-5", *at(server)]) == 0
    assert sent_to(server)[0]["messages"][0]["content"] == "one\ntwo\n"
    assert "Hello there." in capsys.readouterr().out


def test_chat_keeps_the_conversation_and_takes_a_failed_turn_back(
    server: ReplayServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for body in (TEXT, CHAT_ERROR, TEXT):
        server.queue(Recording.of_events(body))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", one_line_of(["first", "second", "third", ""]))
    assert main(["chat", "openai-chat/gpt-5", *at(server)]) == 0
    sent = [[message["content"] for message in body["messages"]] for body in sent_to(server)]
    assert sent == [
        ["first"],
        ["first", "Hello there.", "second"],
        ["first", "Hello there.", "third"],
    ]
    assert "overloaded" in capsys.readouterr().err


def test_a_failed_answer_exits_with_1(
    server: ReplayServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.queue(Recording.of_events(CHAT_ERROR))
    assert main(["chat", "openai-chat/gpt-5", "Hi", *at(server)]) == 1
    shown = capsys.readouterr()
    assert "The answer begins well enough" in shown.out
    assert "overloaded" in shown.err
    assert "sk-very-secret" not in shown.out + shown.err


def test_an_answer_of_calls_shows_them(
    server: ReplayServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.queue(Recording.of_events(CHAT))
    assert main(["chat", "openai-chat/gpt-5", "Hi", *at(server)]) == 0
    assert "tool call " in capsys.readouterr().out


def test_models_lists_vendors_with_their_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert "OPENAI_API_KEY (set)" in out
    assert "ANTHROPIC_API_KEY (not set)" in out
    assert "sk-very-secret" not in out
    assert main(["models", "moonshot"]) == 0
    assert "moonshotai" in capsys.readouterr().out


def test_models_shows_the_facts_about_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "openai/gpt-5"]) == 0
    out = capsys.readouterr().out
    assert "128,000 tokens" in out
    assert "parallel_tool_calls" in out
    assert main(["models", "vllm/some-model"]) == 0
    out = capsys.readouterr().out
    assert "unknown" in out
    assert "pip install" not in out  # the list is there, and has no such model


def test_models_names_the_extra_without_which_prices_are_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr("deltafold.message.cost._price_list", lambda: None)  # it is kept
    assert main(["models", "openai/gpt-5"]) == 0
    out = capsys.readouterr().out
    assert "unknown" in out
    assert "pip install 'deltafold[prices]'" in out


def test_doctor_shows_versions_extras_and_the_call_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:hush-hush@proxy.example:3128")
    assert main(["doctor", "openai-chat/gpt-5"]) == 0
    out = capsys.readouterr().out
    for expected in (
        "httpx2>=2",
        "OPENAI_API_KEY",
        "http://proxy.example:3128",
        "POST https://api.openai.com/v1/chat/completions",
        '"model":"gpt-5"',
        "set, not shown",
    ):
        assert expected in out
    for secret in ("sk-very-secret", "hush-hush"):
        assert secret not in out


def test_doctor_names_a_missing_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "anthropic/claude-sonnet-4-5"]) == 0
    assert "ANTHROPIC_API_KEY (not set)" in capsys.readouterr().out


def test_doctor_without_a_model_sends_and_needs_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert main(["doctor"]) == 0
    assert "deltafold" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_completion_script_is_valid(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "anthropic-messages" in script
    interpreter = shutil.which(shell)
    if interpreter is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "completion"
    path.write_text(script)
    done = subprocess.run([interpreter, "-n", str(path)], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("client", ["codex", "claude-code", "gemini-cli", "opencode", "aider"])
def test_serve_prints_what_to_set_in_a_client(
    client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["serve", "--model", "fast=openai/gpt-5", "--port", "9", "--print-config", client]
    assert main(asked) == 0
    out = capsys.readouterr().out
    assert "http://127.0.0.1:9" in out
    assert client == "codex" or "fast" in out
    if client == "opencode":
        assert json.loads(out)["provider"]["deltafold"]["models"] == {"fast": {}}
    if client == "codex":
        assert tomllib.loads(out)["model_providers"]["deltafold"]["wire_api"] == "responses"


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve"],
        ["serve", "/no/such/file.toml"],
        ["serve", "--model", "fast"],
        ["serve", "--model", "fast=nobody/gpt-5"],
        ["serve", "file.toml", "--model", "fast=openai/gpt-5"],
        ["serve", "--replay", "/no/such/folder"],
        ["serve", "--replay", "/no/such/folder", "--model", "fast=openai/gpt-5"],
    ],
)
def test_serve_refuses_a_wrong_table_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_serve_says_in_one_line_that_it_cannot_listen(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["serve", "--model", "fast=openai/gpt-5"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main([*asked, "--port", str(port)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"deltafold: 127.0.0.1:{port}: ")
    assert "choose another address with --port" in line
    assert main([*asked, "--host", "nowhere.invalid"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("command", [["models"], ["completion", "bash"], ["--help"]])
def test_a_reader_that_ends_first_ends_the_command(command: list[str]) -> None:
    program = f"import sys; from deltafold.cli import main; sys.exit(main({command}))"
    piped = f'"{sys.executable}" -c "{program}" | true; echo ${{PIPESTATUS[0]}}'
    ended = subprocess.run(["/bin/bash", "-c", piped], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert ended.stdout.strip() in {"0", "141"}


@pytest.mark.parametrize("command", [["fold"], ["fold", "--json"], ["transcode", "--to", "gemini"]])
def test_a_reader_that_ends_first_is_no_mistake_of_a_command(
    command: list[str], tmp_path: Path
) -> None:
    """The output is larger than the buffer of any pipe, so that the command notices."""
    body = tmp_path / "long.sse"
    body.write_bytes(chat("High tide. " * 200_000))
    program = f"import sys; from deltafold.cli import main; sys.exit(main({[*command, str(body)]}))"
    piped = f'"{sys.executable}" -c "{program}" | true; echo ${{PIPESTATUS[0]}}'
    ended = subprocess.run(["/bin/bash", "-c", piped], capture_output=True, text=True, check=True)
    assert (ended.stderr, ended.stdout.strip()) == ("", "141")
