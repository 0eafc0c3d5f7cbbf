"""The tasks of newcomers: where their programs stand, what runs them, and what has to come out.

In: a program, the text of pages.  Out: nothing, or a `FailedTaskError` that says what differed.

Law: what has to come out is what the provider sent, and no text that is written here twice.
"""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from any_name import AnyName
from any_provider import AnyProvider
from capture_forms import EXACT, LINES
from deltafold.testing import answer

_SECONDS: Final = 120
_DEMO_SECONDS: Final = 20
_DEMO_COLUMNS: Final = 80
_OK, _UNAUTHORIZED, _NOT_FOUND = 200, 401, 404
_ROWS: Final = 100_000
_PROTOCOLS: Final = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")

# Runs a program as a notebook does, where code at the top level may await.
_AWAITING: Final = """
import ast, asyncio, inspect
code = compile(open("program.py").read(), "program.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
result = eval(code, {"__name__": "__main__"})
if inspect.iscoroutine(result):
    asyncio.run(result)
"""


class FailedTaskError(Exception):
    """A task did not do what the documentation says."""


class Provider(AnyProvider):
    """The provider of a task: no two of its texts are the same."""

    def text(self, question: str) -> tuple[str, ...]:  # noqa: ARG002 - every question
        """Return the pieces of the next text."""
        return "Answer ", f"{len(self.requests)} is ", "17:42."

    @property
    def texts(self) -> list[str]:
        """The texts that were sent, without the answers that call tools."""
        return [message.text for message in self.answered if message.text]

    @property
    def tokens(self) -> int:
        """The sum of the counts of all answers, whether a client asked for them or not."""
        usages = [message.meta.usage for message in self.answered]
        return sum(usage.total_tokens or 0 for usage in usages if usage is not None)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a task.

    Attributes:
        folder: an empty folder.
        python: the interpreter of the environment.
        provider: the provider.
        code: the program.
    """

    folder: Path
    python: Path
    provider: Provider
    code: str

    def environment(self) -> dict[str, str]:
        """Return the variables of the clients, and no other ones of this machine."""
        url = self.provider.url
        return {
            "PATH": f"{self.python.parent}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "unused",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "unused",
        }

    def printed(self, *, awaits: bool = False) -> str:
        """Run the program, and return what it printed."""
        (self.folder / "program.py").write_text(self.code, encoding="utf-8")
        program = ["-c", _AWAITING] if awaits else ["program.py"]
        return self.of_command([str(self.python), *program])

    def of_command(self, command: Sequence[str], *, codes: Sequence[int] = (0,)) -> str:
        """Run a command, and return what it printed.

        Raises:
            FailedTaskError: it failed, or printed something to standard error.
        """
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment(),
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as expired:
            raise FailedTaskError(str(expired)) from expired
        if done.returncode not in codes or done.stderr:
            raise FailedTaskError(
                f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}"
            )
        return done.stdout

    @contextmanager
    def served(self, module: str) -> Generator[str]:
        """Save the program under a name, serve its `app` by uvicorn, and return the address.

        Raises:
            FailedTaskError: it does not start, or printed a warning or a traceback.
        """
        (self.folder / f"{module}.py").write_text(self.code, encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        uvicorn = ["-m", "uvicorn", f"{module}:app", "--port", str(port), "--log-level", "warning"]
        errors = self.folder / "errors.txt"
        with errors.open("w") as written:
            server = subprocess.Popen(
                [self.python, *uvicorn], cwd=self.folder, env=self.environment(), stderr=written
            )
            try:
                _wait_for(port, server)
                yield f"http://127.0.0.1:{port}"
            finally:
                server.terminate()
                server.wait(30)
                if text := errors.read_text():
                    raise FailedTaskError(f"{module}.py wrote to standard error: {text[-2000:]}")


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Attributes:
        name: its name.
        parts: the page and the heading of each part of the program.
        do: runs it, and compares.
        extras: the extras of the wheel that the pages name.
        packages: the other packages that the pages name.
        language: the language of the blocks.
        having: a word of each block, where the headings have others too.
        framework: the second word of their fences.
    """

    name: str
    parts: Sequence[tuple[str, str]]
    do: Callable[[Run], None]
    extras: str = ""
    packages: Sequence[str] = ()
    language: str = "python"
    having: str = ""
    framework: str | None = None


def _wait_for(port: int, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(300):
        if server.poll() is not None:
            raise FailedTaskError(f"uvicorn ended with {server.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise FailedTaskError("uvicorn does not listen")


def _has_in_order(printed: str, texts: Sequence[str]) -> None:
    """Check that a text has others, one behind the other."""
    at = 0
    for text in texts:
        found = printed.find(text, at)
        if found < 0:
            raise FailedTaskError(f"{text!r} is missing in {printed!r}")
        at = found + len(text)


def _asked(run: Run, count: int) -> None:
    made = len(run.provider.answered)
    if made != count:
        raise FailedTaskError(f"the provider was asked {made} times, not {count}")


def _readme(run: Run) -> None:
    printed = run.printed()
    _asked(run, 1)
    if printed != run.provider.texts[0]:
        raise FailedTaskError(f"{printed!r} is not {run.provider.texts[0]!r}")


def _two_turns(run: Run) -> None:
    printed = run.printed()
    _asked(run, 2)
    usage = run.provider.answered[1].meta.usage
    _has_in_order(printed, [*run.provider.texts, str(usage)])


def _tools(run: Run) -> None:
    printed = run.printed()
    _asked(run, 5)
    *chat, last = run.provider.texts
    _has_in_order(printed, [*chat, "['messages', 'system'] ()", last])


def _typed(run: Run) -> None:
    printed = run.printed()
    _asked(run, 1)
    given = json.loads(run.provider.texts[0])
    _has_in_order(printed, [f"{given['place']} {given['hour']}"])


def _offline(run: Run) -> None:
    (run.folder / "test_tides.py").write_text(run.code, encoding="utf-8")
    printed = run.of_command([str(run.python), "-m", "pytest", "-q", "test_tides.py"])
    _asked(run, 0)
    _has_in_order(printed, ["4 passed"])


def _page(run: Run) -> None:
    with run.served("page") as url:
        shown = _shown(run, url)
    _asked(run, 1)
    _has_in_order(shown, [f'<p id="answer">{run.provider.texts[0]}</p>', "writing, done"])


def _shown(run: Run, url: str) -> str:
    """Open a page in a browser, and return what it shows at last, as HTML."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit(
            "no chromium on PATH: install it (Debian and Ubuntu: apt install chromium)"
        )
    return subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={run.folder / 'browser'}",
            "--virtual-time-budget=5000",
            "--dump-dom",
            url,
        ],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    ).stdout


def _agent_page(run: Run) -> None:
    """Look up a tide and book a boat as one user, and open the pages of two users."""
    users = [{"x-user": name} for name in ("ann", "ben")]
    with run.served("boats") as url:
        asked = _sent(f"{url}/messages", users[0], {"text": "Book me a boat."})
        waiting = next(one for one in asked if one["kind"] == "approval")
        decision = {"call_id": waiting["id"], "approved": True}
        if _status(f"{url}/approvals", users[1], decision) != _NOT_FOUND:
            raise FailedTaskError("another user decides about a call")
        before = _shown(run, f"{url}/?user=ann")
        ended = _sent(f"{url}/approvals", users[0], decision)
        after, other = (_shown(run, f"{url}/?user={name}") for name in ("ann", "ben"))
    _asked(run, 3)
    said = "".join(one["text"] for one in ended if one["kind"] == "text")
    if said != run.provider.texts[0] or ended[-1]["status"] != "completed":
        raise FailedTaskError(f"the run ended with {ended[-1]} and {said!r}")
    _has_in_order(
        before, ["<p>Book me a boat.</p>", waiting["name"], "<button>Approve<", "Reject<"]
    )
    _has_in_order(after, ["<p>Book me a boat.</p>", f"<p>{said}</p>"])
    if "<p>" in other or "<button>" in after:
        raise FailedTaskError(f"the pages show too much: {after} {other}")


def _sent(url: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Send a request, and return the events of its answer."""
    data = {"content-type": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), data)  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310 - as above
        return [json.loads(line[6:]) for line in response if line.startswith(b"data: ")]


def _agent(before: int) -> Callable[[Run], None]:
    """Return the task of an agent with two tools and two turns, behind so many other requests."""

    def do(run: Run) -> None:
        printed = run.printed()
        _asked(run, before + 6)
        _has_in_order(printed, run.provider.texts)
        calls = [one.tool_calls for one in run.provider.answered[before:]]
        names = [call.tool_name for found in calls for call in found]
        if len(names) != 4 or names[:2] != names[2:] or len(set(names)) != 2:  # noqa: PLR2004 - two tools, two turns
            raise FailedTaskError(f"two tools run in each of two turns, not {names}")

    return do


def _columns(run: Run) -> None:
    bodies = [answer(name, "High tide ", "is at 17:42.").body for name in _PROTOCOLS]
    column = [bodies[row % len(bodies)] for row in range(_ROWS)]
    arrow: Any = pa  # pyarrow has no types
    files: Any = import_module("pyarrow.parquet")
    files.write_table(arrow.table({"body": column}), run.folder / "mixed.parquet")
    with (run.folder / "mixed.jsonl").open("w") as lines:
        texts = [json.dumps({"body": body.decode()}) for body in bodies]
        lines.writelines(f"{texts[row % len(texts)]}\n" for row in range(_ROWS))
    printed = run.printed()
    tokens = sum(_output_tokens(name) for name in _PROTOCOLS) * _ROWS // len(_PROTOCOLS)
    _has_in_order(printed, [f"{_ROWS} messages, 0 failed, {tokens} tokens\n"] * 2)


def _output_tokens(dialect: AnyName) -> int:
    from deltafold import fold  # noqa: PLC0415 - named beside its one use

    usage = fold(answer(dialect, "High tide ", "is at 17:42.").body, dialect).meta.usage
    return 0 if usage is None else usage.output_tokens or 0


def _rollouts(run: Run) -> None:
    printed = run.printed(awaits=True)
    _has_in_order(printed, ["16 answers to 2 prompts"])


def _gateway(run: Run) -> None:
    said: dict[str, int] = {}
    with run.served("keys") as url:
        if _status(f"{url}/v1/chat/completions", _chat("wrong"), {"model": "m"}) != _UNAUTHORIZED:
            raise FailedTaskError("a wrong key is not refused")
        for number, (path, headers, body) in enumerate(_requests()):
            before = run.provider.tokens
            if _status(url + path, headers, body) != _OK:
                raise FailedTaskError(f"{path} is not answered")
            owner = ("ann", "bob")[number % 2]
            said[owner] = said.get(owner, 0) + run.provider.tokens - before
        with urllib.request.urlopen(f"{url}/spent", timeout=_SECONDS) as response:  # noqa: S310 - loopback
            counted = json.loads(response.read())
    if counted != said:
        raise FailedTaskError(f"the gateway counted {counted}, and the provider sent {said}")


def _captures(run: Run) -> None:
    body = answer("openai-chat", "High tide ", "is at 17:42.").body
    whole = b"".join(event + b"\n\n" for event in body.split(b"\n\n")[:3])
    forms = {"a body": bytes, **EXACT, **LINES}
    for name, form in forms.items():
        (run.folder / "recording.sse").write_bytes(form(whole))
        (run.folder / "page.html").unlink(missing_ok=True)
        run.of_command(["/bin/sh", "-e", "-c", run.code], codes=(0, 1))
        shown = run.folder / "page.html"
        if not shown.exists() or b"connection_lost" not in shown.read_bytes():
            raise FailedTaskError(f"{name}: the page does not mark the cut")


def _demo(run: Run) -> None:
    """Run what follows the installation, which is done: `pip` alone would ask its index."""
    commands = [line for line in run.code.splitlines() if not line.startswith("pip ")]
    began = time.perf_counter()
    printed = run.of_command(["/bin/sh", "-e", "-c", "\n".join(commands)])
    seconds = time.perf_counter() - began
    _has_in_order(printed, ["Anthropic: thinking", "An agent: ", "Events a second", "openai-chat"])
    widest = max(map(len, printed.splitlines()))
    if seconds > _DEMO_SECONDS or widest > _DEMO_COLUMNS:
        raise FailedTaskError(f"the demo took {seconds:.1f} s and {widest} columns")


def _chat(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def _requests() -> Iterator[tuple[str, Mapping[str, str], Mapping[str, Any]]]:
    """Yield requests of four protocols, streamed and not, of two keys by turns."""
    asked, model = [{"role": "user", "content": "When?"}], "gpt-5.6-terra"
    keys = ("key-of-ann", "key-of-bob")
    number = 0
    for stream in (False, True):
        for path, header, body in (
            ("/v1/chat/completions", "authorization", {"messages": asked}),
            ("/v1/responses", "authorization", {"input": "When?"}),
            ("/v1/messages", "x-api-key", {"messages": asked, "max_tokens": 100}),
        ):
            key = keys[number % 2]
            value = f"Bearer {key}" if header == "authorization" else key
            yield path, {header: value}, {"model": model, "stream": stream, **body}
            number += 1
    gemini = {"contents": [{"role": "user", "parts": [{"text": "When?"}]}]}
    for call in ("generateContent", "streamGenerateContent?alt=sse"):
        path = f"/v1beta/models/{model}:{call}"
        yield path, {"x-goog-api-key": keys[number % 2]}, gemini
        number += 1


def _status(url: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> int:
    """Send a request, read its answer, and return the status."""
    request = urllib.request.Request(  # noqa: S310 - loopback
        url,
        json.dumps(body).encode(),
        {"content-type": "application/json", **headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310 - as above
            response.read()
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


_HOW: Final = "docs/how-to"
_FRAMEWORKS: Final = "docs/frameworks.md"

TASKS: Final = (
    Task("demo", [("docs/index.md", "See it")], _demo, "demo", language="sh"),
    Task("readme", [("README.md", "Change two lines")], _readme, "openai"),
    Task("two-turns", [("docs/index.md", "Change two lines of an SDK call")], _two_turns, "openai"),
    Task(
        "tools",
        [(f"{_HOW}/tools.md", ""), (f"{_HOW}/tools.md", "The calls of an SDK")],
        _tools,
        "openai,anthropic",
    ),
    Task("typed", [(f"{_HOW}/structured-output.md", "")], _typed, "httpx2"),
    Task(
        "offline",
        [(f"{_HOW}/testing.md", part) for part in ("", "Over real HTTP", "Failures")],
        _offline,
        "openai",
        ["pytest"],
    ),
    Task(
        "page",
        [(f"{_HOW}/endpoint.md", "Show it in a page")],
        _page,
        "httpx2",
        ["fastapi", "uvicorn"],
    ),
    Task(
        "agent-page",
        [(f"{_HOW}/agent-endpoint.md", ""), (f"{_HOW}/agent-endpoint.md", "Show it in a page")],
        _agent_page,
        "httpx2",
        ["starlette", "uvicorn"],
    ),
    Task("gateway", [(f"{_HOW}/gateway-keys.md", "")], _gateway, "gateway"),
    Task("columns", [("docs/scale.md", "Bodies of several protocols")], _columns, "arrow"),
    Task(
        "captures",
        [(f"{_HOW}/command-line.md", "")],
        _captures,
        "arrow,testing",
        ["zstandard"],
        language="sh",
        having="inspect recording.sse",
    ),
    Task("rollouts", [("docs/scale.md", "Rollouts")], _rollouts, "httpx2"),
    Task(
        "langgraph",
        [(_FRAMEWORKS, "langchain")],
        _agent(0),
        "langchain",
        ["langchain"],
        framework="langgraph",
    ),
    Task(
        "pydantic-ai",
        [(_FRAMEWORKS, "pydantic-ai")],
        _agent(2),
        "pydantic-ai",
        framework="pydantic_ai",
    ),
    Task("strands", [(_FRAMEWORKS, "strands")], _agent(3), "strands", framework="strands"),
)
