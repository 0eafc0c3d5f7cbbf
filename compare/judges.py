"""The official TypeScript and Go clients read every recording and fixture, transcoded.

In: the recordings (../shared/corpus or DELTAFOLD_CORPUS) and tests/fixtures; the programs
compare/judges/ts and compare/judges/go; llm-comply (`comply`).  Out: docs/judges.md, and exit code
1 where a client reads something else than the source's message.

Laws: `judging`, which the Python clients of `make test` use as well, says what must be equal. A
difference that the client causes is a `Limit` with its reason, and a limit that no stream needs is
a disagreement too. Run by `make judges`.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import comply

import judging

HERE = Path(__file__).parent / "judges"
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


class Result(NamedTuple):
    """A client's streams, those that it refuses untranscoded too, and the disagreements."""

    judge: Judge
    streams: int
    failures: int
    refused: list[str]
    found: list[judging.Verdict]


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
                frozenset({"openai-chat/custom-tool", "openai-responses/custom-tool"}),
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


def streams(judge: Judge) -> Iterator[judging.Stream]:
    """Yield every source in a client's protocol, and streams of that protocol as they are."""
    for source in judging.everything():
        if judge.whole:
            yield judging.written_whole(source, judge.target)
            continue
        yield judging.written(source, judge.target)
        if source.dialect == judge.target:
            yield judging.untranscoded(source)


def write_manifest(folder: Path, judges: list[Judge]) -> Path:
    """Write all streams that these clients read, and their list."""
    manifest = folder / "manifest.jsonl"
    with manifest.open("w", encoding="utf-8") as lines:
        for judge in judges:
            for number, stream in enumerate(streams(judge)):
                file = folder / f"{judge.name}.{number}"
                file.write_bytes(stream.body)
                entry = {
                    "client": judge.name,
                    "name": stream.name,
                    "file": str(file),
                    "status": stream.status,
                    "headers": dict(stream.headers),
                }
                lines.write(json.dumps(entry) + "\n")
    return manifest


def lines_of(language: str, judges: list[Judge]) -> dict[str, Lines]:
    """Let the clients of a language read everything; return their lines by client and stream."""
    found: dict[str, Lines] = {judge.name: {} for judge in judges}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest, answers = write_manifest(folder, judges), folder / "answers.jsonl"
        subprocess.run([*PROGRAMS[language], str(manifest), str(answers)], check=True)  # noqa: S603
        with answers.open(encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                found[line["client"]][line["name"]] = line
    return found


def answer_of(line: dict[str, Any]) -> judging.Answer:
    """Return the answer that a client accumulated, or raise what it raised."""
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


def unexplained(judge: Judge, found: list[judging.Verdict]) -> list[judging.Verdict]:
    """Return the disagreements without a limit, and the limits without a disagreement."""
    named = {(name, limit.field) for limit in judge.limits for name in limit.streams}
    left = [one for one in found if (one.name, one.field) not in named]
    unused = named - {(one.name, one.field) for one in found}
    left.extend(judging.Verdict(name, "", field, "a limit", None) for name, field in sorted(unused))
    return left


def judged(judge: Judge, lines: Lines) -> Result:
    """Compare all answers of a client with the sources."""

    def read(stream: judging.Stream) -> judging.Answer:
        return answer_of(lines[stream.name])

    count, found = judging.verdicts(judge.target, read, whole=judge.whole)
    failures, refused = 0, list[str]()
    differing = {one.name for one in found}
    for source in judging.everything():
        raised = "raised" in lines[source.name]
        if judging.must_raise(source):
            failures += raised
        elif raised and source.name not in differing:
            refused.append(source.name)
    return Result(judge, count, failures, refused, unexplained(judge, found))


def version_of(judge: Judge) -> str:
    """Return the pinned version of a client."""
    if judge.language == "Go":
        text = (HERE / "go/go.mod").read_text(encoding="utf-8")
        found = re.search(rf"{re.escape(judge.package)} v(\S+)", text)
        return found[1] if found else ""
    package = json.loads((HERE / "ts/package.json").read_text(encoding="utf-8"))
    return package["dependencies"][judge.package]


def row(result: Result) -> str:
    """Return a client's row of the table."""
    judge = result.judge
    limits = sum(len(limit.streams) for limit in judge.limits)
    return (
        f"| {judge.package} | {version_of(judge)} | {judge.language} | {judge.name} | "
        f"{result.streams} | {result.failures} | {len(result.found)} | {limits} | "
        f"{len(result.refused)} |"
    )


def report(results: list[Result]) -> str:
    """Return docs/judges.md."""
    limits = (
        f"| {result.judge.package} | {', '.join(sorted(limit.streams))} | {limit.field} | "
        f"{limit.reason} |"
        for result in results
        for limit in result.judge.limits
    )
    refused = (
        f"| {result.judge.package} | {', '.join(result.refused)} |"
        for result in results
        if result.refused
    )
    return (
        "# The official TypeScript and Go clients\n\n"
        "`make judges` measures and writes this document. Every recording and every fixture is\n"
        "written in a client's protocol, and every tenth recording once more without its second\n"
        "half: as a stream, and as the whole answer to a request without streaming. The client\n"
        "reads the bytes through its public call, in reads of 1,000 bytes. Text, thinking,\n"
        "calls, finish reason and token counts must be those of the source's message,\n"
        "and a failed source must make the client raise with the message of the failure\n"
        "(`tests/judging.py`). Gemini, `ai` and AG-UI have finish reasons for some failures;\n"
        "their clients do not raise on those. The Python clients judge the same streams in\n"
        "`make test`.\n\n"
        "| client | version | language | target | streams | raised after a failure | "
        "disagreements | limits | refused untranscoded |\n"
        "|---|---|---|---|---:|---:|---:|---:|---:|\n" + "\n".join(map(row, results)) + "\n\n"
        "## Limits\n\nStreams that follow the protocol and that the client reads differently.\n\n"
        "| client | streams | field | reason |\n|---|---|---|---|\n" + "\n".join(limits) + "\n\n"
        "## Refused untranscoded\n\nStreams of the client's own protocol that it refuses as\n"
        "recorded; deltafold passes on what it refuses.\n\n"
        "| client | streams |\n|---|---|\n" + "\n".join(refused) + "\n"
    )


def main() -> int:
    """Let all clients read everything and write the report."""
    if not (judging.CORPUS / "manifest.jsonl").exists():
        sys.stderr.write(f"no recordings at {judging.CORPUS}; set DELTAFOLD_CORPUS\n")
        return 1
    results: list[Result] = []
    for language in PROGRAMS:
        judges = [judge for judge in JUDGES if judge.language == language]
        lines = lines_of(language, judges)
        results.extend(judged(judge, lines[judge.name]) for judge in judges)
    complied = {target: comply.findings(target) for target in comply.CHECKS}
    text = report(results) + comply.section(complied)
    Path("docs/judges.md").write_text(text, encoding="utf-8")
    found = [one for result in results for one in result.found]
    found.extend(one for _, findings in complied.values() for one in findings)
    sys.stderr.write(text + (f"\n{judging.shown(found)}\n" if found else ""))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
