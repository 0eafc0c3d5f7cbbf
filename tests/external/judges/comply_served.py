"""The suites of llm-comply, the Open Responses compliance tests among them, against the gateway.

In: upstreams of each protocol that an encoder writes, which answer what the suites ask.  Out: what
the suites find.

Laws: every suite asks every upstream over HTTP. A finding is expected only with a reason.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import judging
from deltafold import Message
from deltafold.contract.usage import Usage
from deltafold.gateway import create_app, read_request
from deltafold.message.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart
from deltafold.models.adapters import adapter_of
from deltafold.models.base import Model
from deltafold.testing import Recording
from deltafold.testing.playlist import Request
from deltafold.testing.transport import ReplayTransport
from gateways import served
from recorded_upstreams import ENCODED, recording_of, written


class Suite(NamedTuple):
    """A suite, the path below which it calls, and the model that it asks for."""

    name: str
    path: str
    model: str


SUITES: Final = (
    Suite("openai-chat", "/v1", "gpt-5"),
    Suite("open-responses", "/v1", "gpt-5"),
    Suite("anthropic", "/v1", "claude-sonnet-4-5"),
    Suite("google-genai", "", "gemini-3-pro"),
)
REASONS: Final = {
    "open-responses": {
        "unknown SSE event type: response.reasoning_summary_": (
            "OpenAI's name of the event, which its clients and Codex read"
        ),
    },
    "anthropic": {
        "usage: 'cache_": "counts that the upstream does not tell are left out, not written as 0",
        "usage: 'service_tier'": "the tier is left out where the upstream does not tell one",
        "is a required property": (
            "most recorded streams of the API lack `container`, `stop_details` and the usage of "
            "places, server tools and thinking too"
        ),
        "is not valid under any of the given schemas": (
            "most recorded streams of the API lack `citations` and `caller` too"
        ),
    },
}


class Served(NamedTuple):
    """A suite against one upstream: its tests, those skipped, and findings without a reason."""

    suite: str
    upstream: str
    tests: int
    passed: int
    skipped: int
    explained: Counter[str]
    found: list[judging.Verdict]


class Answering(ReplayTransport):
    """An upstream that calls the tool that it is offered, and else says three words."""

    def __init__(self, dialect: str) -> None:
        super().__init__()
        self._called = _recorded(
            dialect,
            ToolCallPart(
                tool_call_id="call_1",
                tool_name="get_weather",
                raw_args_text='{"location":"San Francisco"}',
            ),
        )
        self._said = _recorded(
            dialect, ThinkingPart(text="Three words."), TextPart(text="Hello dear friend")
        )

    def answer_to(self, request: Request) -> Recording:
        """Return the answer to a request."""
        return self._called if b"get_weather" in request.body else self._said


def _recorded(dialect: str, *parts: MessagePart) -> Recording:
    message = Message.assistant(*parts)
    message.meta.usage = Usage(input_tokens=11, output_tokens=7, total_tokens=18)
    message.meta.response_id, message.meta.model_id = "chatcmpl-1", "upstream-model"
    # OpenAI's own response objects repeat the request.
    asked = read_request("openai-responses", b'{"model":"upstream-model"}')
    fields = asked.options.get("response_fields")
    return recording_of(dialect, written(message, dialect, response_fields=fields))


def _upstream(dialect: str) -> Model[Any]:
    adapter = adapter_of(dialect)
    if adapter is None:
        raise ValueError(dialect)
    config = {"model_id": "upstream-model"}
    client = Answering(dialect)
    return adapter(config, client=client, base_url="http://replay.invalid", api_key="unused")


def findings() -> Iterator[Served]:
    """Run every suite against every upstream."""
    for dialect in ENCODED:
        with served(create_app({"*": _upstream(dialect)})) as url:
            for suite in SUITES:
                yield _judged(suite, dialect, _run(suite, url))


def _run(suite: Suite, url: str) -> list[dict[str, Any]]:
    program = str(Path(sys.executable).parent / "llm-comply")
    options = ["-k", "unused", "-m", suite.model, "--format", suite.name, "--json"]
    command = [program, "run", "-u", url + suite.path, *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return results


def _judged(suite: Suite, dialect: str, results: list[dict[str, Any]]) -> Served:
    reasons = REASONS.get(suite.name, {})
    explained, found = Counter[str](), list[judging.Verdict]()
    states = Counter(result["status"] for result in results)
    for result in results:
        if result["status"] != "failed":
            continue
        for said in result["errors"]:
            reason = next((why for words, why in reasons.items() if words in said), None)
            if reason is None:
                found.append(judging.Verdict(result["id"], dialect, suite.name, "no finding", said))
            else:
                explained[reason] += 1
    return Served(
        suite.name,
        dialect,
        len(results),
        states["passed"],
        states["skipped"],
        explained,
        found,
    )


def section(results: list[Served]) -> str:
    """Return the section of docs/judges.md."""
    rows = (
        f"| {one.suite} | {one.upstream} | {one.tests} | {one.passed} | {one.skipped} | "
        f"{one.tests - one.passed - one.skipped} | {len(one.found)} |"
        for one in results
    )
    reasons = sorted({(one.suite, why) for one in results for why in one.explained})
    listed = "\n".join(f"- {suite}: {why}." for suite, why in reasons)
    return (
        "\n### Its suites against the gateway\n\n"
        "Each suite sends its requests to a running gateway, in front of an upstream that calls\n"
        "the tool that it is offered. `open-responses` are the compliance tests of Open\n"
        "Responses.\n\n"
        "| suite | upstream | tests | passed | skipped | failed | without a reason |\n"
        "|---|---|---:|---:|---:|---:|---:|\n" + "\n".join(rows) + "\n\n"
        f"Reasons of the failures:\n\n{listed}\n"
    )
