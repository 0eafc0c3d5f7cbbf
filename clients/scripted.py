"""Scripted upstreams of a session, and the gateway in front of them.

In: the turns of a session as messages.  Out: recordings in the upstream's protocol, and what the
client sent.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from deltafold import Encoder, Message, message_deltas
from deltafold.gateway import create_app
from deltafold.parts import MessagePart, TextPart, ToolCallPart
from deltafold.testing import Recording, ReplayServer
from deltafold.usage import Usage
from gateways import served, upstream

PROGRAMS: Final = Path(__file__).parent / "node_modules" / ".bin"
UPSTREAMS: Final = ("openai-chat", "anthropic-messages", "gemini", "ollama")
TURNS: Final = 30
RUNS: Final = 5
CUT: Final = 7
"""The turn whose stream is cut at first."""
LAST: Final = "The session is over."


class Session:
    """Makes the calls and messages of one session."""

    def __init__(self) -> None:
        self._calls = 0

    def call(self, name: str, arguments: object) -> ToolCallPart:
        """Make a call with an id of its own."""
        self._calls += 1
        text = json.dumps(arguments)
        return ToolCallPart(tool_call_id=f"call_{self._calls}", tool_name=name, raw_args_text=text)

    def message(self, *parts: MessagePart) -> Message:
        """Make an answer."""
        message = Message.assistant(*parts)
        message.meta.usage = Usage(input_tokens=100, output_tokens=10, total_tokens=110)
        message.meta.response_id = f"turn-{self._calls}"
        return message


def recording(message: Message, dialect: str, *, is_cut: bool = False) -> Recording:
    """Return an answer as an upstream streams it."""
    encoder = Encoder(dialect)
    body = b"".join(map(encoder.feed, message_deltas(message))) + encoder.close()
    kind = "application/x-ndjson" if dialect == "ollama" else "text/event-stream"
    return Recording.of(body[: len(body) // 2] if is_cut else body, content_type=kind)


def play(
    dialect: str,
    turns: Sequence[Message],
    command: Sequence[str | Path],
    settings: Callable[[str], Mapping[str, str]],
    work: Path,
    *,
    is_cut: bool = True,
) -> str:
    """Let a program work through a session, and return its last request.

    Args:
        dialect: the protocol of the upstream.
        turns: the answers.
        command: the program and its arguments.
        settings: returns the environment variables for the address of the gateway.
        work: the folder to work in.
        is_cut: the stream of one answer is cut when it is first asked for.
    """
    end = Session().message(TextPart(text=LAST))
    recordings = [recording(turn, dialect) for turn in (*turns, end)]
    if is_cut:
        recordings.insert(CUT, recording(turns[CUT], dialect, is_cut=True))
    with ReplayServer() as server, served(create_app({"*": upstream(dialect, server.url)})) as url:
        server.queue(*recordings)
        done = subprocess.run(
            list(command),
            cwd=work,
            env={**os.environ, **settings(url)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
        assert len(server.requests) == len(recordings), done.stdout[-2_000:] + done.stderr[-2_000:]
        assert LAST in done.stdout
        return server.requests[-1].body.decode()
