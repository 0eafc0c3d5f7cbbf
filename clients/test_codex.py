"""Codex, which speaks Responses alone, on upstreams of other protocols.

A scripted upstream plays a session of 30 turns: parallel calls, freeform calls, a patch, tools of a
namespace, thinking, a tool that fails, and streams that are cut. Codex must run every tool, send
every result back, and end with the last answer.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from deltafold import Encoder, Message, message_deltas
from deltafold.cli.clients import CLIENTS
from deltafold.gateway import create_app
from deltafold.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart
from deltafold.testing import Recording, ReplayServer
from deltafold.usage import Usage
from gateways import served, upstream

CODEX: Final = Path(__file__).parent / "node_modules" / ".bin" / "codex"
# A model of Codex's own list: the others get a smaller set of tools, without freeform ones.
MODEL: Final = "gpt-6-astra"
TURNS: Final = 30
RUNS: Final = 5
UPSTREAMS: Final = ("openai-chat", "anthropic-messages", "gemini", "ollama")
PATCH: Final = "*** Begin Patch\\n*** Add File: patched.txt\\n+by a patch\\n*** End Patch"


class Session:
    """The turns of the scripted upstream."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._calls = 0

    def call(self, name: str, arguments: object) -> ToolCallPart:
        self._calls += 1
        return ToolCallPart(
            tool_call_id=f"call_{self._calls}",
            tool_name=name,
            raw_args_text=json.dumps(arguments),
        )

    def javascript(self, code: str) -> ToolCallPart:
        """Call Codex's freeform tool, whose input is no JSON."""
        return self.call("functions__exec", {"input": code})

    def turn(self, number: int) -> Message:
        """Return one of the kinds of turn, by turns."""
        command = f"text(await tools.exec_command({{cmd: 'echo {number} >> log.txt'}}))"
        thought = ThinkingPart(text=f"Turn {number}.")
        parts: list[MessagePart]
        match number % 5:
            case 0:
                parts = [
                    thought,
                    self.javascript(command),
                    self.javascript("text('\\u00e9 \"\\\\')"),
                ]
            case 1:
                parts = [
                    TextPart(text="A patch."),
                    self.javascript(f"await tools.apply_patch('{PATCH}')"),
                ]
            case 2:
                parts = [self.javascript("throw new Error('on purpose')")]
            case 3:
                parts = [thought, self.call("clock__sleep", {"duration_ms": 1})]
            case _:
                parts = [TextPart(text="Again."), self.javascript(command)]
        return self.message(*parts)

    def message(self, *parts: MessagePart) -> Message:
        message = Message.assistant(*parts)
        message.meta.usage = Usage(input_tokens=100, output_tokens=10, total_tokens=110)
        message.meta.response_id = f"turn-{self._calls}"
        return message

    def recording(self, message: Message, *, is_cut: bool = False) -> Recording:
        encoder = Encoder(self._dialect)
        body = b"".join(map(encoder.feed, message_deltas(message))) + encoder.close()
        kind = "application/x-ndjson" if self._dialect == "ollama" else "text/event-stream"
        return Recording.of(body[: len(body) // 2] if is_cut else body, content_type=kind)


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_codex_finishes_a_session_of_thirty_turns(dialect: str, run: int, tmp_path: Path) -> None:
    session = Session(dialect)
    turns = [session.turn(number) for number in range(TURNS)]
    recordings = [session.recording(turn) for turn in turns]
    # Codex asks again after a stream that was cut.
    recordings.insert(7, session.recording(turns[7], is_cut=True))
    recordings.append(session.recording(session.message(TextPart(text="The session is over."))))
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    with ReplayServer() as server, served(create_app({"*": upstream(dialect, server.url)})) as url:
        server.queue(*recordings)
        (home / "config.toml").write_text(CLIENTS["codex"].format(url=url, model=MODEL))
        command: list[str | Path] = [CODEX, "exec", "--skip-git-repo-check", "--json", "-m", MODEL]
        command += ["--dangerously-bypass-approvals-and-sandbox", "Work."]
        done = subprocess.run(
            command,
            cwd=work,
            env={**os.environ, "HOME": str(tmp_path), "CODEX_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        assert len(server.requests) == len(recordings), done.stdout[-2_000:]
        last = server.requests[-1].body.decode()
    assert "The session is over." in done.stdout
    numbers = [number for number in range(TURNS) if number % 5 in {0, 4}]
    assert (work / "log.txt").read_text().split() == [str(number) for number in numbers]
    assert (work / "patched.txt").read_text() == "by a patch\n"
    assert last.count("on purpose") >= TURNS // 5
    assert "incompatible payload" not in last
    assert "unsupported call" not in last
    assert run < RUNS
