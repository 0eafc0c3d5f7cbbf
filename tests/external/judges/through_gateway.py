"""The official clients read every recording through the running gateway, and every kind of failure.

In: the lines of the clients that read the recordings themselves (`judges`).  Out: a gateway whose
upstreams answer with recordings, and the answers that differ.

Laws: the gateway does not change an answer. Where the upstream speaks the
client's protocol, that is what the client made of the recording itself; elsewhere it is the
source's message. A refusal keeps its status, its words and retry-after; a cut and silence raise.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from programs import Judge, Lines, answer_of, read_all

import judging
from deltafold.testing import Recording
from gateways import served
from recorded_upstreams import (
    HEADER,
    PROTOCOLS,
    UPSTREAMS,
    application,
    recording_of,
    same_answer,
    sources,
)

SAID: Final = "the upstream said no"
# Seconds of silence in the middle of a stream.
SILENCE: Final = 60.0
STATUSES: Final = {
    401: "AuthenticationError",
    404: "NotFoundError",
    429: "RateLimitError",
    500: "InternalServerError",
}
REFUSING: Final[Mapping[str, Callable[[int], object]]] = {
    "openai-chat": lambda _: {"error": {"message": SAID, "type": "some_error", "code": None}},
    "openai-responses": lambda _: {"error": {"message": SAID, "type": "some_error", "code": None}},
    "anthropic-messages": lambda _: {
        "type": "error",
        "error": {"type": "some_error", "message": SAID},
    },
    "gemini": lambda status: {"error": {"code": status, "message": SAID, "status": "SOME_ERROR"}},
    "bedrock-converse": lambda _: {"message": SAID},
    "cohere-chat": lambda _: {"message": SAID},
    "mistral": lambda _: {"object": "error", "message": SAID, "type": "some_error"},
    "ollama": lambda _: {"error": SAID},
}


class Through(NamedTuple):
    """A client's streams through the gateway, refusals and silences, and what differs."""

    judge: Judge
    streams: int
    refusals: int
    found: list[judging.Verdict]


def failures() -> Iterator[tuple[str, str, Recording]]:
    """Yield dialect, kind and answer of upstreams that refuse or fall silent."""
    for dialect in UPSTREAMS:
        for status in STATUSES:
            body, headers = REFUSING[dialect](status), {"retry-after": "7"}
            yield dialect, f"refusal {status}", Recording.error(status, body, headers)
        body = max((one.body for _, one in sources() if one.dialect == dialect), key=len)
        whole = recording_of(dialect, body)
        half = len(body) // 2
        silent = ((0.0, body[:half]), (SILENCE, body[half:]))
        yield dialect, "silence", replace(whole, pieces=silent)


@contextmanager
def serving() -> Generator[str]:
    """Serve a gateway in front of all recordings and failures, and yield its address."""
    refusing = {f"{dialect}.{kind}": recording for dialect, kind, recording in failures()}
    with TemporaryDirectory() as name, served(application(Path(name), refusing)) as url:
        yield url


def case(judge: Judge, name: str, model: str, url: str) -> dict[str, object]:
    """Return the case of a client that asks for a recording."""
    return {"client": judge.name, "name": name, "url": url, "headers": {HEADER: model}}


def cases(judges: Iterable[Judge], url: str) -> Iterator[dict[str, object]]:
    """Yield everything that the clients ask."""
    for judge in judges:
        for name, one in sources():
            yield case(judge, one.name, name, url)
        for dialect, kind, _ in failures():
            yield case(judge, f"{dialect}.{kind}", f"{dialect}.{kind}", url)


def through(language: str, judges: list[Judge], direct: Mapping[str, Lines]) -> list[Through]:
    """Let the clients of a language ask the gateway for everything.

    Args:
        language: the language of the clients.
        judges: the clients.
        direct: what the clients read without the gateway, by their names.
    """
    judges = [judge for judge in judges if judge.target in PROTOCOLS]
    found: dict[str, Lines] = {judge.name: {} for judge in judges}
    with serving() as url:
        for line in read_all(language, cases(judges, url)):
            found[line["client"]][line["name"]] = line
    return [compared(judge, found[judge.name], direct[judge.name]) for judge in judges]


def compared(judge: Judge, lines: Lines, direct: Lines) -> Through:
    """Compare a client's answers through the gateway with its answers without it."""
    found: list[judging.Verdict] = []
    everything = [one for _, one in sources()]
    for one in everything:
        own = direct.get(f"{one.name} (as it is)")
        line = lines[one.name]
        is_own = own is not None and not judge.whole
        if is_own and same(one, line, own):
            continue
        without = direct[one.name]
        if not same(one, line, without):
            found.append(
                judging.Verdict(one.name, one.dialect, "through the gateway", without, line)
            )
    kinds = [(dialect, kind) for dialect, kind, _ in failures()]
    for dialect, kind in kinds:
        line = lines[f"{dialect}.{kind}"]
        wanted = wanted_of(judge, kind)
        if not all(word in json.dumps(line) for word in wanted):
            found.append(judging.Verdict(kind, dialect, "refusal", wanted, line))
    return Through(judge, len(everything), len(kinds), found)


def same(source: judging.Source, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a client read the same, or raised twice."""
    if "raised" in one or "raised" in other:
        return "raised" in one and "raised" in other
    return same_answer(source, answer_of(one), answer_of(other))


def wanted_of(judge: Judge, kind: str) -> list[str]:
    """Return the words that a client's exception must have."""
    if kind == "silence":
        return ["raised", "timeouts.idle"]
    words, status = ["raised", SAID], kind.rpartition(" ")[2]
    if judge.package in {"openai", "@anthropic-ai/sdk"}:
        words += [STATUSES[int(status)], '"retry_after": "7"']
    elif judge.language == "Go":
        words += [status, '"retry_after": "7"']
    else:
        words += ["ApiError", status]
    return words


def section(results: Iterable[Through]) -> str:
    """Return the section of docs/judges.md."""
    rows = (
        f"| {one.judge.package} | {one.judge.language} | {one.judge.name} | {one.streams} | "
        f"{one.refusals} | {len(one.found)} |"
        for one in results
    )
    return (
        "\n## Through the gateway\n\n"
        "The same clients send their requests to a running gateway, whose upstreams answer with\n"
        f"the recordings of eight dialects, with refusals ({', '.join(map(str, STATUSES))}, with\n"
        "retry-after) and with silence in the middle of a stream. A client must read what it\n"
        "reads from the recording itself where the upstream speaks its protocol, else the\n"
        "source's message; ids that a recording lacks are made by each run. After a refusal it\n"
        "must raise its exception of that status, with the upstream's message and the header.\n"
        "The Python clients read the same recordings through the gateway in `make test`.\n\n"
        "| client | language | target | recordings | refusals and silences | differences |\n"
        "|---|---|---|---:|---:|---:|\n" + "\n".join(rows) + "\n"
    )
