"""The official TypeScript and Go clients: their packages, and the programs that they run in.

In: cases, one stream or one request each.  Out: a line for each, with the client's answer or its
exception.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import judging

HERE = Path(__file__).parent
# A line of answers by the name of its stream.
Lines = dict[str, dict[str, Any]]


class Limit(NamedTuple):
    """Streams that a client cannot read as they are, the field that differs, and the reason."""

    streams: frozenset[str]
    field: str
    reason: str


class Judge(NamedTuple):
    """A client: its package, language, the target that it reads, its limits, and what it reads."""

    package: str
    language: str
    target: str
    limits: tuple[Limit, ...] = ()
    whole: bool = False

    @property
    def name(self) -> str:
        """Name of the client in the programs."""
        return f"{self.target} (whole)" if self.whole else self.target


class ClientError(Exception):
    """A client raised while it read a stream."""


OPENAI_GO = "github.com/openai/openai-go/v3"
ANTHROPIC_GO = "github.com/anthropics/anthropic-sdk-go"
JUDGES = (
    Judge("openai", "TypeScript", "openai-chat"),
    Judge("openai", "TypeScript", "openai-responses"),
    Judge(
        "@anthropic-ai/sdk",
        "TypeScript",
        "anthropic-messages",
        (
            Limit(
                frozenset({"gemini/args-shapes"}),
                "terminal",
                "Its parser of incomplete JSON drops a number at the end, as it may go on, and "
                "raises on arguments that are a number alone.",
            ),
            Limit(
                frozenset({"openai-responses/args-not-json"}),
                "terminal",
                "It parses arguments while they arrive and raises on those that are no JSON.",
            ),
        ),
    ),
    Judge("@google/genai", "TypeScript", "gemini"),
    Judge("openai", "TypeScript", "openai-chat", whole=True),
    Judge("openai", "TypeScript", "openai-responses", whole=True),
    Judge("@anthropic-ai/sdk", "TypeScript", "anthropic-messages", whole=True),
    Judge("@google/genai", "TypeScript", "gemini", whole=True),
    Judge("ai", "TypeScript", "ai-sdk"),
    Judge("@ag-ui/client", "TypeScript", "ag-ui"),
    Judge(
        OPENAI_GO,
        "Go",
        "openai-chat",
        (
            Limit(
                frozenset(
                    {
                        "openai-chat/custom-tool",
                        "openai-responses/custom-tool",
                        "openai-responses/custom-tool-by-tool-search",
                        "openai-responses/custom-tool-in-namespace",
                        "openai-responses/custom-tool-of-the-input",
                        "openai-responses/namespace-whole-body",
                    }
                ),
                "calls",
                "Its chunks and its accumulator know calls of functions only; a call with free "
                "text has no name and no input.",
            ),
        ),
    ),
    Judge(OPENAI_GO, "Go", "openai-responses"),
    Judge(OPENAI_GO, "Go", "openai-chat", whole=True),
    Judge(OPENAI_GO, "Go", "openai-responses", whole=True),
    Judge(ANTHROPIC_GO, "Go", "anthropic-messages", whole=True),
    Judge(
        ANTHROPIC_GO,
        "Go",
        "anthropic-messages",
        (
            Limit(
                frozenset({"anthropic-messages/call-not-json", "openai-responses/args-not-json"}),
                "calls",
                "It replaces arguments that are no JSON with an empty object.",
            ),
        ),
    ),
)
PROGRAMS = {
    "TypeScript": [str(HERE / "ts/node_modules/.bin/node"), str(HERE / "ts/judge.ts")],
    "Go": [str(HERE / "go/judges")],
}


def read_all(language: str, cases: Iterable[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Let the clients of a language read all cases; return their lines in the same order."""
    with tempfile.TemporaryDirectory() as name:
        manifest, answers = Path(name) / "manifest.jsonl", Path(name) / "answers.jsonl"
        with manifest.open("w", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps(case)}\n" for case in cases)
        subprocess.run([*PROGRAMS[language], str(manifest), str(answers)], check=True)
        with answers.open(encoding="utf-8") as lines:
            return list(map(json.loads, lines))


def answer_of(line: dict[str, Any]) -> judging.Answer:
    """Return the answer that a client accumulated.

    Raises:
        ClientError: the client raised.
    """
    if "raised" in line:
        raise ClientError(line["raised"])
    given = line["answer"]
    answer = judging.Answer(**given | {"calls": []})
    for call in given["calls"] or ():
        if call.get("free"):
            arguments: object = {"input": call["text"]}
        elif "text" in call:
            arguments = judging.parsed(call["text"])
        else:
            arguments = call.get("value")
        answer.calls.append((call["id"], call["name"], arguments))
    return answer


def version_of(judge: Judge) -> str:
    """Return the pinned version of a client."""
    if judge.language == "Go":
        text = (HERE / "go/go.mod").read_text(encoding="utf-8")
        found = re.search(rf"{re.escape(judge.package)} v(\S+)", text)
        return found[1] if found else ""
    package = json.loads((HERE / "ts/package.json").read_text(encoding="utf-8"))
    return package["dependencies"][judge.package]
