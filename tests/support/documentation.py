"""Code blocks of the documentation, and the surroundings in which they run.

In: README.md and the pages in docs/.  Out: the blocks of a page; a provider on the loopback
interface that answers whatever a block asks for; names and files that a block may use.
`documented_runs.py` runs whole pages, `stated_outputs.py` compares what they print.

Laws: every page is found, new ones too. The Python blocks of a page run in their order and in one
namespace. `<!-- not run: reason -->` before a fence leaves its block out. A second word after
`python` names the framework whose environment runs the block
(tests/external/frameworks/documented.py). A fence of `text` directly behind a block, with one empty
line between them, is the output of the block.
"""

import ast
import asyncio
import contextlib
import doctest
import gc
import inspect
import io
import json
import re
import sys
import warnings
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from types import CodeType
from typing import Any, Final, Self

import anthropic
import openai
import pytest

import deltafold
from any_provider import without_usage
from capture_forms import har_entry, har_of
from corpus import ROOT
from deltafold import Agent, DeltaStream, Model
from deltafold.testing import Recording, ReplayServer

DEMO: Final = ROOT / "python" / "deltafold" / "cli" / "demo" / "recordings"
PNG: Final = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_FENCE: Final = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n)?```(?P<language>\w*)(?: (?P<framework>\w+))?\n"
    r"(?P<code>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page, and the output that the page states for it."""

    page: str
    line: int
    section: str
    language: str
    framework: str | None
    not_run: str | None
    code: str
    output: str | None


def pages() -> list[str]:
    """Return the paths of all pages, relative to the root."""
    found = sorted(ROOT.glob("docs/**/*.md"))
    return ["README.md", *(page.relative_to(ROOT).as_posix() for page in found)]


def text_of(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page: str, *, section: str | None = None) -> list[Block]:
    """Return the blocks of a page, or those below a heading and its subheadings."""
    text = text_of(page)
    blocks = [
        Block(
            page,
            text.count("\n", 0, found.start("code")) + 1,
            _section_at(text, found.start()),
            found["language"],
            found["framework"],
            found["reason"],
            found["code"],
            found["output"],
        )
        for found in _FENCE.finditer(text)
    ]
    return [block for block in blocks if section is None or block.section == section]


def with_outputs(page: str, outputs: Mapping[int, str | None]) -> str:
    """Return the text of a page with other outputs.

    Args:
        page: the page.
        outputs: by the line of a block, the output that stands behind it; None for no output.
    """
    text = text_of(page)

    def written(found: re.Match[str]) -> str:
        line = text.count("\n", 0, found.start("code")) + 1
        if line not in outputs:
            return found[0]
        block = text[found.start() : found.end("code")] + "```"
        output = outputs[line]
        return block if output is None else f"{block}\n\n```text\n{output}```"

    return _FENCE.sub(written, text)


def _section_at(text: str, place: int) -> str:
    """Return the last heading of the second level before a place."""
    headings: list[str] = re.findall(r"^## (.+)$", text[:place], re.MULTILINE)
    return headings[-1] if headings else ""


def python_of(page: str, *, section: str | None = None) -> list[Block]:
    """Return the Python blocks that `make test` runs."""
    return [
        block
        for block in blocks_of(page, section=section)
        if block.language == "python" and block.framework is None and block.not_run is None
    ]


class Reader:
    """Runs blocks in their order and in one namespace, and closes the objects they leave open.

    Code that awaits runs in one event loop, other code outside of it.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._runner = asyncio.Runner()
        self._opened: dict[int, object] = {}

    def run(self, block: Block) -> str:
        """Run a block, and return what it printed; a traceback has the lines of the page."""
        module = ast.parse(block.code, block.page)
        ast.increment_lineno(module, block.line - 1)
        code = compile(module, block.page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                self._run(code)
        finally:
            sys.stdout.write(printed.getvalue())
        return printed.getvalue()

    def run_examples(self, docstring: str) -> None:
        """Run the examples of a docstring; a stated output must be the output."""
        for example in doctest.DocTestParser().get_examples(docstring):
            code = compile(example.source, "docstring", "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self._run(code)
            if example.want:
                flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
                same = doctest.OutputChecker().check_output(example.want, printed.getvalue(), flags)
                assert same, f"{example.source}{printed.getvalue()}is not\n{example.want}"

    def _run(self, code: CodeType) -> None:
        result = eval(code, self.names)  # noqa: S307 - our own documentation
        if inspect.iscoroutine(result):
            self._runner.run(result)
        self._opened |= {id(value): value for value in self.names.values()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for value in self._opened.values():
            if isinstance(value, Model | Agent):
                self._runner.run(value.aclose())
            if isinstance(value, Model | DeltaStream | openai.OpenAI | anthropic.Anthropic):
                value.close()
        self._runner.run(asyncio.sleep(0))  # sockets close in the next turn of the loop
        self._runner.close()
        self._opened.clear()


def forget(names: dict[str, Any]) -> None:
    """Drop the objects of the examples: a socket that is left open warns here, in no later test."""
    names.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def surround(
    folder: Path, server: ReplayServer, monkeypatch: pytest.MonkeyPatch, *, counts: bool = True
) -> dict[str, Any]:
    """Write the files, set the keys and addresses, and return the names that blocks may use.

    Args:
        folder: where the files are written.
        server: answers requests.
        monkeypatch: sets the environment.
        counts: whether the recording has usage.
    """
    recording = (DEMO / "openai-chat.parallel-calls.sse").read_bytes()
    if not counts:
        recording = without_usage(recording)
    for name in ("recording.sse", "monday.sse", "tuesday.sse"):
        (folder / name).write_bytes(recording)
    (folder / "models.toml").write_text('[ours]\nlike = "gpt-5.6-terra"\n')
    (folder / "tide.png").write_bytes(PNG)
    (folder / "tides.pdf").write_bytes(b"%PDF-1.4\n")
    (folder / "recordings").mkdir()
    Recording.of_events(recording).save(folder / "recordings" / "weather.jsonl")
    forecast = (DEMO / "anthropic-messages.tool-call.sse").read_bytes()
    Recording.of_events(forecast, delay=0.05).save(folder / "recordings" / "forecast.jsonl")
    entries = [har_entry({"text": recording.decode()})] * 2
    (folder / "session.har").write_bytes(har_of(*entries))
    row = {"id": 1, "response": {"body": recording.decode()}}
    (folder / "bodies.jsonl").write_text(f"{json.dumps(row)}\n" * 2)
    copytree(ROOT / "tests" / "fixtures" / "cassettes", folder / "cassettes")
    monkeypatch.chdir(folder)
    for name, value in {
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": "key",
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "key",
        "GOOGLE_GEMINI_BASE_URL": server.url,
        "GOOGLE_API_KEY": "key",
    }.items():
        monkeypatch.setenv(name, value)
    return {
        "deltafold": deltafold,
        "openai": openai,
        "anthropic": anthropic,
        "recording": recording,
        "body": recording,
        "messages": [{"role": "user", "content": "When is high tide?"}],
        "tools": [{"name": "tide", "parameter_schema": {"type": "object"}}],
        "url": f"{server.url}/v1/chat/completions",
    }
