"""Scripted upstreams of a session, and the gateway in front of them.

In: the turns of a session as messages.  Out: recordings in the upstream's protocol, and what the
client sent.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from deltafold import Message
from deltafold.contract.usage import Usage
from deltafold.gateway import create_app
from deltafold.message.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart
from deltafold.streams.encoded import EncoderTool
from deltafold.testing import Recording, ReplayServer
from gateways import served, upstream
from recorded_upstreams import ENCODED, recording_of, written
from speakers import Call, End, Said, stream, text, thought

PROGRAMS: Final = Path(__file__).parent / "node_modules" / ".bin"
TURNS: Final = 30
RUNS: Final = 3
CUT: Final = 7
"""The turn whose stream is cut at first."""
LAST: Final = "The session is over."
WRITTEN: Final = '\u00e9 "\\'
"""Text of a written file, with what JSON escapes."""


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


class Tools(NamedTuple):
    """Calls of a program's tools for commands and for files, each as its name and arguments."""

    run: Callable[[str], tuple[str, Mapping[str, str]]]
    write: Callable[[str, str], tuple[str, Mapping[str, str]]]


def turns_of(session: Session, tools: Tools, work: Path) -> list[Message]:
    """Return turns that append to a file, write files beside it, and run commands that fail."""

    def turn(number: int) -> Message:
        append = session.call(*tools.run(f"echo {number} >> log.txt"))
        match number % 4:
            case 0:
                write = session.call(*tools.write(str(work / f"{number}.txt"), WRITTEN))
                return session.message(ThinkingPart(text=f"Turn {number}."), append, write)
            case 1:
                fails = session.call(*tools.run("echo on-purpose; exit 3"))
                return session.message(TextPart(text="This fails."), fails)
            case _:
                return session.message(append)

    return [turn(number) for number in range(TURNS)]


def check_work(work: Path, last: str, *, repeats: bool = False) -> None:
    """Check the files that the turns wrote, and the results of the last request.

    Args:
        work: the folder.
        last: the last request.
        repeats: whether the program may have run a call twice.
    """
    done = (work / "log.txt").read_text().split()
    numbers = [number for number in range(TURNS) if number % 4 != 1]
    assert sorted(map(int, set(done) if repeats else done)) == numbers
    assert (work / "28.txt").read_text() == WRITTEN
    assert last.count("on-purpose") >= TURNS // 4


def recording(
    message: Message,
    dialect: str,
    tools: Mapping[str, EncoderTool] | None = None,
    *,
    is_cut: bool = False,
) -> Recording:
    """Return an answer as an upstream streams it.

    Args:
        message: the answer.
        dialect: the protocol of the upstream.
        tools: the client's own tools, which an upstream of the client's protocol knows.
        is_cut: leave out the second half.
    """
    if dialect in ENCODED:
        known = tools if dialect == "openai-responses" else None
        body = written(message, dialect, tools=known)
    else:
        said = [_said(part) for part in message.parts]
        end: End = "tool_calls" if message.tool_calls else "stop"
        body = stream(dialect, *said, end=end, counts=(100, 10))
    return recording_of(dialect, body[: len(body) // 2] if is_cut else body)


def _said(part: MessagePart) -> Said:
    """Return a part as a protocol that no encoder writes says it."""
    if isinstance(part, ToolCallPart):
        return Call(part.tool_call_id, part.tool_name, (part.raw_args_text or "",))
    if isinstance(part, ThinkingPart):
        return thought(part.text)
    if isinstance(part, TextPart):
        return text(part.text)
    raise TypeError(part.kind)


def play(
    dialect: str,
    turns: Sequence[Message],
    command: Sequence[str | Path],
    settings: Callable[[str], Mapping[str, str]],
    work: Path,
    *,
    tools: Mapping[str, EncoderTool] | None = None,
    is_cut: bool = True,
    typed: str = "",
) -> str:
    """Let a program work through a session, and return its last request.

    Args:
        dialect: the protocol of the upstream.
        turns: the answers.
        command: the program and its arguments.
        settings: returns the environment variables for the address of the gateway.
        work: the folder to work in.
        tools: the client's own tools, which an upstream of the client's protocol knows.
        is_cut: the stream of one answer is cut when it is first asked for.
        typed: the text of the standard input.
    """
    end = Session().message(TextPart(text=LAST))
    recordings = [recording(turn, dialect, tools) for turn in (*turns, end)]
    if is_cut:
        recordings.insert(CUT, recording(turns[CUT], dialect, tools, is_cut=True))
    with ReplayServer() as server, served(create_app({"*": upstream(dialect, server.url)})) as url:
        server.queue(*recordings)
        done = subprocess.run(
            list(command),
            cwd=work,
            env={**os.environ, **settings(url)},
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
        assert len(server.requests) == len(recordings), done.stdout[-2_000:] + done.stderr[-2_000:]
        assert LAST in done.stdout
        return server.requests[-1].body.decode()
