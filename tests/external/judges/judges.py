"""The official TypeScript and Go clients read every recording and fixture, transcoded.

In: the recordings (../shared/corpus or DELTAFOLD_CORPUS) and tests/fixtures; the programs
tests/external/judges/ts and tests/external/judges/go; a running gateway (`through_gateway`);
llm-comply (`comply`).  Out: docs/judges.md, and exit code 1 where a client reads something else
than the source's message.

Laws: `judging`, which the Python clients of `make test` use as well, says what must be equal. A
difference that the client causes is a `Limit` with its reason, and a limit that no stream needs is
a disagreement too. Run by `make check NAME=judges`.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import comply
import comply_served
import through_gateway
from programs import JUDGES, PROGRAMS, Judge, Lines, answer_of, read_all, version_of

import judging


class Result(NamedTuple):
    """A client's streams, those that it refuses untranscoded too, and the disagreements."""

    judge: Judge
    streams: int
    failures: int
    refused: list[str]
    found: list[judging.Verdict]


def streams(judge: Judge) -> Iterator[judging.Stream]:
    """Yield every source in a client's protocol, and streams of that protocol as they are."""
    for source in judging.everything():
        if judge.whole:
            yield judging.written_whole(source, judge.target)
            continue
        yield judging.written(source, judge.target)
        if source.dialect == judge.target:
            yield judging.untranscoded(source)


def cases_of(folder: Path, judges: list[Judge]) -> Iterator[dict[str, object]]:
    """Write all streams that these clients read, and yield a case for each."""
    for judge in judges:
        for number, stream in enumerate(streams(judge)):
            file = folder / f"{judge.name}.{number}"
            file.write_bytes(stream.body)
            yield {
                "client": judge.name,
                "name": stream.name,
                "file": str(file),
                "status": stream.status,
                "headers": dict(stream.headers),
            }


def lines_of(language: str, judges: list[Judge]) -> dict[str, Lines]:
    """Let the clients of a language read everything; return their lines by client and stream."""
    found: dict[str, Lines] = {judge.name: {} for judge in judges}
    with tempfile.TemporaryDirectory() as name:
        for line in read_all(language, cases_of(Path(name), judges)):
            found[line["client"]][line["name"]] = line
    return found


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
        if judging.may_raise(source, judge.target, whole=judge.whole):
            failures += raised
        elif raised and source.name not in differing:
            refused.append(source.name)
    return Result(judge, count, failures, refused, unexplained(judge, found))


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
        "`make check NAME=judges` measures and writes this document. Every recording and every\n"
        "fixture is written in a client's protocol, and every tenth recording once more without\n"
        "its second half: as a stream, and as the whole answer to a request without streaming.\n"
        "The client reads the bytes through its public call, in reads of 1,000 bytes. Text,\n"
        "thinking, calls, finish reason and token counts must be those of the source's message,\n"
        "and a failed source must make the client raise with the message of the failure\n"
        "(`tests/support/judging.py`). Gemini, `ai` and AG-UI have finish reasons for some\n"
        "failures; their clients do not raise on those. The Python clients judge the same\n"
        "streams in `make test`.\n\n"
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
    results, served = list[Result](), list[through_gateway.Through]()
    for language in PROGRAMS:
        judges = [judge for judge in JUDGES if judge.language == language]
        lines = lines_of(language, judges)
        results.extend(judged(judge, lines[judge.name]) for judge in judges)
        served.extend(through_gateway.through(language, judges, lines))
    complied = {target: comply.findings(target) for target in comply.CHECKS}
    suites = list(comply_served.findings())
    text = report(results) + through_gateway.section(served) + comply.section(complied)
    text += comply_served.section(suites)
    Path("docs/judges.md").write_text(text, encoding="utf-8")
    found = [one for result in (*results, *served, *suites) for one in result.found]
    found.extend(one for _, findings in complied.values() for one in findings)
    sys.stderr.write(text + (f"\n{judging.shown(found)}\n" if found else ""))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
