"""Table of the features of the agent loops; each row of the first table is run.

In: the interpreters of the libraries.  Out: a section of docs/loops.md.

Laws: each probe runs `loop_probe` in a new process against a new loopback server. The judge reads
the requests that the server received, the final text, and the file in which the tool writes its
executions. An option that a library does not have gives "no". The second table is read
from the documentation, and each cell names its source.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from loop_probe import IMAGE, NOT_THERE
from loop_server import call_choices, choice, stream_of

from deltafold.testing import Recording, ReplayServer
from deltafold.testing.playlist import Request

HERE = Path(__file__).parent
TEXT = "High tide is at 17:42."
PLACES = ("Brest", "Atlantis", "Brest", "Brest")
YES, NO = "yes", "no"
# Seconds that a probe may take.
PATIENCE = 40

Options = dict[str, Any]


def calls(*arguments: str) -> Recording:
    """Return an answer with calls."""

    def told() -> Iterator[Any]:
        yield choice({"role": "assistant", "content": None})
        for index, text in enumerate(arguments):
            yield from call_choices(index, f"call_{index + 1}", text)
        yield choice({}, "tool_calls")

    return Recording.of_events(stream_of(told(), usage=True))


def text(*, finished: bool = True) -> Recording:
    """Return an answer with the final text; an unfinished one has no finish reason."""

    def told() -> Iterator[Any]:
        yield choice({"role": "assistant", "content": ""})
        yield choice({"content": TEXT})
        if finished:
            yield choice({}, "stop")

    body = stream_of(told(), usage=finished)
    return Recording.of_events(body if finished else body.removesuffix(b"data: [DONE]\n\n"))


def arguments(place: str) -> str:
    """Return arguments that are right."""
    return json.dumps({"place": place, "days": 3})


class Probe:
    """One library and one probe: its server, its folder, its processes."""

    def __init__(self, library: str, python: str) -> None:
        self.library, self.python = library, python
        self.times: list[float] = []
        self._folder = tempfile.TemporaryDirectory()
        self.server = _Server(self.times)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()
        self._folder.cleanup()

    @property
    def runs(self) -> list[str]:
        """The steps of the tool, in all processes."""
        path = Path(self._folder.name) / "runs"
        return path.read_text("utf-8").splitlines() if path.exists() else []

    def bodies(self) -> list[Any]:
        """Return the bodies of the requests."""
        return [request.json() for request in self.server.requests]

    def started(self, **options: Any) -> subprocess.Popen[str]:  # noqa: ANN401 - see loop_probe
        """Begin a run in a new process."""
        url = f"{self.server.url}/v1"
        given = {"url": url, "folder": self._folder.name, "tool": "tide", **options}
        return subprocess.Popen(
            [
                self.python,
                "-W",
                "ignore",
                str(HERE / "loop_probe.py"),
                self.library,
                json.dumps(given),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OTEL_SDK_DISABLED": "true"},
        )

    def run(self, *answers: Recording, **options: Any) -> Options | None:  # noqa: ANN401 - as above
        """Run in a new process to the end; None if the library does not have an option."""
        self.server.queue(*answers)
        process = self.started(**options)
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return {"text": "", "error": "does not end", "tasks_left": 0}
        if process.returncode == NOT_THERE:
            return None
        return json.loads(said) if said else {"text": "", "error": "failed", "tasks_left": 0}


class _Server(ReplayServer):
    def __init__(self, times: list[float]) -> None:
        super().__init__()
        self._times = times

    def answer_to(self, request: Request) -> Recording:
        self._times.append(time.monotonic())
        return super().answer_to(request)


def yes(holds: object, otherwise: str = NO) -> str:
    """Return the cell."""
    return YES if holds else otherwise


def retries_429(probe: Probe) -> str:
    """A 429 with `retry-after: 1` is asked again after that second."""
    error = {"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}
    found = probe.run(Recording.error(429, error, {"retry-after": "1"}), text())
    waited = probe.times[1] - probe.times[0] if len(probe.times) > 1 else 0
    return yes(found and found["text"] == TEXT and 0.9 < waited < 3)


def retries_without_content(probe: Probe) -> str:
    """A connection that is closed before any content is asked again."""
    found = probe.run(text().stopping("cut", 250), text())
    return yes(found and found["text"] == TEXT, "raises")


def sees_a_cut(probe: Probe) -> str:
    """A connection that is closed inside an answer is an error or is asked again."""
    whole = text()
    found = probe.run(whole.stopping("cut", len(whole.body) // 2), whole, whole)
    return yes(found and (found["error"] or found["text"] == TEXT))


def sees_a_missing_end(probe: Probe) -> str:
    """A body that ends in order, without a finish reason, is an error or is asked again."""
    found = probe.run(text(finished=False), text(), text())
    if found and not found["error"] and len(probe.times) == 1:
        return "no: taken as the whole answer"
    return yes(found)


def runs_parallel_calls(probe: Probe) -> str:
    """Two calls of one answer overlap."""
    found = probe.run(calls(arguments("Brest"), arguments("Atlantis")), text(), sleep=0.3)
    return yes(found and [step.split()[0] for step in probe.runs[:2]] == ["start", "start"])


def limits_parallel_calls(probe: Probe) -> str:
    """Of four calls, two run at once."""
    found = probe.run(calls(*map(arguments, PLACES)), text(), sleep=0.3, parallel=2)
    change = [1 if step.startswith("start") else -1 for step in probe.runs]
    return yes(found and found["text"] == TEXT and max(itertools.accumulate(change)) == 2)


def refused(probe: Probe, wrong: str) -> str:
    """Call with wrong arguments: the tool does not run; the model gets an error."""
    found = probe.run(calls(wrong), text(), text())
    bodies = probe.bodies()
    told = len(bodies) > 1 and any(one["role"] == "tool" for one in bodies[1]["messages"])
    if probe.runs:
        return "no: runs"
    return yes(found and found["text"] == TEXT and told, "raises")


def refuses_wrong_types(probe: Probe) -> str:
    """An argument of the wrong type: the tool does not run, and the model gets the reason."""
    return refused(probe, '{"place":"Brest","days":"many"}')


def refuses_broken_json(probe: Probe) -> str:
    """Arguments that are not JSON: the tool does not run, and the model gets the reason."""
    return refused(probe, '{"place":"Brest","days":')


def refuses_unknown_arguments(probe: Probe) -> str:
    """An unknown argument: the tool does not run; the model gets an error."""
    return refused(probe, '{"place":"Brest","days":3,"month":5}')


def cancels_cleanly(probe: Probe) -> str:
    """Cancelling the task of a run while a tool runs cancels the tool and leaves no task."""
    found = probe.run(calls(arguments("Atlantis")), text(), sleep=20, cancel=True)
    if not found or "start Atlantis" not in probe.runs:
        return NO
    if "cancelled Atlantis" not in probe.runs:
        return "no: the tool goes on"
    left = found["tasks_left"]
    return yes(not left, f"no: {left} tasks left")


def approves_elsewhere(probe: Probe) -> str:
    """A run ends at a call that needs an approval; another process approves it and continues."""
    stored = probe.library != "openai-agents"  # RunState is its own storage
    first = probe.run(calls(arguments("Brest")), approve="ask", stored=stored)
    waited = bool(first and first.get("waits")) and not probe.runs
    last = probe.run(text(), approve="resume", resume=True, stored=stored)
    done = last and last["text"] == TEXT and probe.runs == ["start Brest", "end Brest"]
    return yes(waited and done)


def ended_early(probe: Probe, limit: Options) -> str:
    """Let the model call without end, and look how many requests there are."""
    found = probe.run(*[calls(arguments("Brest"))] * 8, text(), **limit)
    return yes(found and found["text"] != TEXT and len(probe.times) <= 3)


def limits_tokens(probe: Probe) -> str:
    """A limit of the tokens of a run."""
    return ended_early(probe, {"tokens": 200})


def limits_cost(probe: Probe) -> str:
    """A limit of the cost of a run."""
    return ended_early(probe, {"usd": 0.0005})


def limits_seconds(probe: Probe) -> str:
    """A limit of the seconds of a run, which also ends a tool that runs."""
    found = probe.run(calls(arguments("Atlantis")), text(), sleep=20, seconds=1.5)
    if found and found["error"] == "does not end":
        return NO
    if "end Atlantis" in probe.runs:
        return "between turns only"
    return yes(found and found["text"] != TEXT)


def tells_progress(probe: Probe) -> str:
    """A tool reports its progress into the events of the run."""
    found = probe.run(calls(arguments("Brest")), text(), tool="progress")
    return yes(found and "half of 3 days at Brest" in found["progress"])


def returns_images(probe: Probe) -> str:
    """The image that a tool returns is sent to the model as an image."""
    import base64

    found = probe.run(calls(arguments("Brest")), text(), tool="image")
    bodies = probe.bodies()
    sent = json.dumps(bodies[1]) if len(bodies) > 1 else ""
    image = f"data:image/png;base64,{base64.b64encode(IMAGE).decode()}"
    return yes(found and found["text"] == TEXT and image in sent)


def resumes_after_a_kill(probe: Probe) -> str:
    """After SIGKILL in the second of two calls: the finished call is not run again."""
    probe.server.queue(calls(arguments("Brest"), arguments("Atlantis")))
    process = probe.started(sleep=20, stored=True)
    until = time.monotonic() + PATIENCE
    expected = {"end Brest", "start Atlantis"}
    while not expected <= set(probe.runs) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = probe.runs
    found = probe.run(text(), sleep=0, stored=True, resume=True)
    if not expected <= set(before) or not found or found["text"] != TEXT:
        return NO
    if probe.runs.count("start Brest") > 1 or probe.runs.count("start Atlantis") > 1:
        return "no: runs calls again"
    sent = probe.bodies()[-1]["messages"]
    results = [one for one in sent if one["role"] == "tool"]
    return yes(any("17:42" in str(one["content"]) for one in results), "continues, results lost")


PROBES: dict[str, Callable[[Probe], str]] = {
    "retry of a 429, after the seconds of `retry-after`": retries_429,
    "retry of a connection closed before any content": retries_without_content,
    "a connection closed inside an answer is seen": sees_a_cut,
    "a body that ends without a finish reason is seen": sees_a_missing_end,
    "parallel calls": runs_parallel_calls,
    "a limit of parallel calls": limits_parallel_calls,
    "an argument of the wrong type does not reach the tool": refuses_wrong_types,
    "arguments that are not JSON do not reach the tool": refuses_broken_json,
    "an unknown argument is refused": refuses_unknown_arguments,
    "cancellation stops the tool and leaves no task": cancels_cleanly,
    "an approval given in another process": approves_elsewhere,
    "a limit of tokens": limits_tokens,
    "a limit of cost": limits_cost,
    "a limit of seconds, also inside a tool": limits_seconds,
    "progress of a tool in the events": tells_progress,
    "an image as the result of a tool": returns_images,
    "resume after SIGKILL, with the results of finished calls": resumes_after_a_kill,
}


NOTES = """
`benches/loops/loop_features.py` runs each row against these versions. It judges by the requests
that the server received, by the final text, and by the executions that the tool wrote to a file. A
"no" without further words is by the sources of the library: they have nothing that a program could
run.

- "raises": the failure reaches the caller of the run.
- openai-agents: the retries are those of `ModelRetrySettings` with the policies
  `provider_suggested` and `network_error`; they are off by default. A missing finish reason is an
  error only with OpenAI's own base URL, and an image is sent only by the Responses API
  (`agents/models/openai_chatcompletions.py`, `agents/models/chatcmpl_converter.py`). The state of a
  waiting run is `RunState.to_json`, the stored conversation an `SQLiteSession`. A run is another
  task than its reader, and the probe cancels it by `result.cancel()`.
- pydantic-ai: a waiting run is stored as its messages. Its documentation has `FallbackModel` and
  transports that retry requests (https://ai.pydantic.dev/retries). A run continues after a crash
  in Temporal, DBOS or Prefect (https://ai.pydantic.dev/temporal).
- strands: its documentation retries throttled requests only
  (https://strandsagents.com/docs/user-guide/concepts/agents/retry-strategies/). The approval is an
  interrupt of a hook, the stored conversation a `FileSessionManager`.
- A program can limit the seconds of any run with `asyncio.timeout`. The row is about a limit of the
  library.

Further features, by the documentation or by the modules of the installed packages:

| | deltafold | pydantic-ai | openai-agents | strands |
|---|---|---|---|---|
| structured output | `output=` | `output_type` | `output_type` | `structured_output_model` |
| the rest of an answer that broke off | prefill, `prefix`, `starting_after` | background mode of \
OpenAI, by polling | not found | not found |
| a tool starts before its answer ends | `start_tools_early` | not found | not found | not found |
| synchronous runs | `run_sync`, `stream_sync` | `run_sync` | `run_sync` | `agent(...)` |
| tools of MCP servers | `deltafold.conversation.mcp` | `pydantic_ai.mcp` | `agents.mcp` | \
`strands.tools.mcp` |
| agents that call or follow each other | no | by tools and output functions | `agents.handoffs`, \
`Agent.as_tool` | `strands.multiagent` |
| checks of inputs and outputs | no | output validators, `capabilities` | `agents.guardrail` | \
hooks, `strands.interventions` |
| execution by an external durable system | no | Temporal, DBOS, Prefect | Temporal, DBOS, Restate \
(packages of theirs) | `strands.experimental.checkpoint` |
| speech in both directions | no | `pydantic_ai.realtime` | `agents.realtime` | `strands.bidi` |
"""


def section(pythons: dict[str, str], names: dict[str, str]) -> str:
    """Run the probes, and write the section of the report."""
    rows = list[str]()
    for feature, judge in PROBES.items():
        cells = list[str]()
        for library, python in pythons.items():
            with Probe(library, python) as probe:
                cells.append(judge(probe))
        rows.append(f"| {feature} | {' | '.join(cells)} |")
        sys.stderr.write(f"{rows[-1]}\n")
    head = f"| | {' | '.join(names[library] for library in pythons)} |\n|---|---|---|---|---|\n"
    return "## Features\n\n" + head + "\n".join(rows) + "\n" + NOTES
