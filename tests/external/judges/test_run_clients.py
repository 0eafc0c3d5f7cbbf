"""The chat of npm's `ai` and the client of AG-UI read the runs of an agent as its log has them.

In: the streams of `streamed_runs`.  Out: the messages that the clients hold after them.

Laws: the answers, their calls, what became of each call and the messages in between are those of
the log. A client sends one request a run, whatever its own conditions for going on say, and a run
that failed is a failure for it. Run by `make check NAME=loops`; it needs npm.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import programs
import pytest

from deltafold.conversation import (
    AgentState,
    ModelInputEntry,
    ModelOutputEntry,
    PartialEntry,
    RunStatus,
    ToolResultsEntry,
    to_plain_text,
)
from deltafold.conversation.agent.run_log import SENT
from streamed_runs import DECISIONS, RUNS, TARGETS, Streamed

Call: TypeAlias = tuple[str, object, str, object]
"""Name, arguments, status and result."""
Step: TypeAlias = tuple[str, list[Call]] | str
"""Text and calls of an answer; the text of a message that was sent."""

Read: TypeAlias = dict[str, tuple[Streamed, dict[str, dict[str, Any]]]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """Let both clients read all runs; returns the runs, and the answers by target."""
    folder = tmp_path_factory.mktemp("runs")
    made = {name: make() for name, make in RUNS.items()}
    found: Read = {name: (runs, {}) for name, runs in made.items()}
    for line in programs.read_all("TypeScript", cases(folder, made)):
        assert "raised" not in line, line
        found[line["name"]][1][line["client"]] = line["answer"]
    return found


def cases(folder: Path, made: dict[str, Streamed]) -> Iterator[dict[str, object]]:
    for target in TARGETS:
        for name, runs in made.items():
            files = list[str]()
            for number, data in enumerate(runs.written(target)):
                file = folder / f"{name}.{number}.{target}"
                file.write_bytes(data)
                files.append(str(file))
            decisions = DECISIONS.get(name, [])
            assert len(files) == len(decisions) + 1
            yield {
                "client": f"{target} (run)",
                "name": name,
                "files": files,
                "decisions": decisions,
            }


def plain(told: object) -> object:
    """Return an object or a list that a text holds, else the text."""
    if isinstance(told, str) and told.startswith(("{", "[")):
        try:
            return json.loads(told)
        except ValueError:
            return told
    return told


def of_log(state: AgentState) -> list[Step]:
    entries = state.log.entries
    results = {
        result.tool_call_id: (str(result.status), plain(to_plain_text(result.result.live)))
        for entry in entries
        if isinstance(entry, ToolResultsEntry)
        for result in entry.results
    }
    steps = list[Step]()
    for place, entry in enumerate(entries):
        if isinstance(entry, ModelOutputEntry) and entry.message is not None:
            calls = [
                (call.tool_name, plain(call.raw_arguments), *results[call.tool_call_id])
                for call in entry.tool_calls
            ]
            steps.append((entry.message.text, calls))
        elif isinstance(entry, ModelInputEntry) and SENT in entry.metadata:
            steps.append(to_plain_text(entry.content_sections.live))
        elif isinstance(entry, PartialEntry) and not any(
            isinstance(later, ModelOutputEntry) for later in entries[place:]
        ):
            steps.append((entry.message.text, []))
    return steps


STATES = {
    "output-available": "success",
    "output-error": "failed",
    "output-denied": "rejected",
}


def of_chat(answer: dict[str, Any]) -> list[Step]:
    steps = list[Step]()
    parts = (part for message in answer["messages"][1:] for part in message["parts"])
    for part in parts:
        kind: str = part["type"]
        if kind == "steering-message":
            steps.append("".join(one["text"] for one in part["parts"]))
        elif kind == "step-start":
            steps.append(("", []))
        elif kind == "text":
            assert part["state"] == "done"
            text, calls = steps[-1]
            steps[-1] = (text + part["text"], list[Call](calls))  # type: ignore[arg-type]
        elif kind.startswith("tool-"):
            told = part.get("output") or part.get("errorText") or part["approval"]["reason"]
            status = STATES[part["state"]]
            _, calls = steps[-1]
            calls.append((kind[5:], part["input"], status, plain(told)))  # type: ignore[union-attr]
        else:
            assert kind == "file"
    return steps


def of_ag_ui(answer: dict[str, Any]) -> list[Step]:
    told: dict[str, tuple[str, object]] = {}
    for message in answer["messages"]:
        if message["role"] == "tool":
            content = message["content"]
            text = content if isinstance(content, str) else content[0]["text"]
            status = message.get("metadata", {}).get("status", "success")
            told[message["toolCallId"]] = (status, plain(text))
    steps = list[Step]()
    for message in answer["messages"]:
        if message["role"] == "user":
            steps.append(message["content"])
        elif message["role"] == "assistant":
            before = ""
            if steps and not isinstance(steps[-1], str) and not steps[-1][1]:
                before, _ = steps.pop()  # an answer that went on after a break has two messages
            calls = [
                (call["function"]["name"], plain(call["function"]["arguments"]), *told[call["id"]])
                for call in message.get("toolCalls", [])
            ]
            steps.append((before + message.get("content", ""), calls))
    return steps


def without_skipped(step: Step) -> Step:
    """Return a step in which a skipped call has failed: `ai` has one word for both."""
    if isinstance(step, str):
        return step
    text, calls = step
    failed = {"skipped": "failed"}
    return text, [(name, given, failed.get(how, how), told) for name, given, how, told in calls]


@pytest.mark.parametrize("name", RUNS)
def test_the_clients_read_a_run_as_the_log_has_it(name: str, read: Read) -> None:
    runs, answers = read[name]
    wanted = of_log(runs.state)
    assert of_ag_ui(answers["ag-ui (run)"]) == wanted
    assert of_chat(answers["ai-sdk (run)"]) == list(map(without_skipped, wanted))


@pytest.mark.parametrize("name", RUNS)
def test_the_clients_end_as_the_run_did(name: str, read: Read) -> None:
    runs, answers = read[name]
    chat, ag_ui = answers["ai-sdk (run)"], answers["ag-ui (run)"]
    result = runs.runs[-1][-1].run
    assert result is not None
    assert (chat["requests"], ag_ui["requests"]) == (len(runs.runs), len(runs.runs))
    # One message of the assistant, also when it goes on after an approval.
    assert len(chat["messages"]) == (1 if name == "refused" else 2)
    is_failed = result.status is RunStatus.FAILED
    assert (chat["error"] is not None, ag_ui["error"] is not None) == (is_failed, is_failed)
    if not is_failed:
        ended = ag_ui["ends"][-1]["outcome"]["type"], chat["finishes"][-1]
        is_limit = result.status is RunStatus.ABORTED
        assert ended == (("cancelled", "interrupted") if is_limit else ("success", "stop"))
        usage = chat["messages"][-1]["metadata"]["usage"]
        assert usage["inputTokens"] == result.usage.input_tokens


@pytest.mark.parametrize("name", DECISIONS)
def test_a_run_that_waits_asks_for_its_calls(name: str, read: Read) -> None:
    _, answers = read[name]
    waited = answers["ag-ui (run)"]["ends"][0]["outcome"]
    (decisions,) = DECISIONS[name]
    assert {one["id"] for one in waited["interrupts"]} == set(decisions)
    assert answers["ai-sdk (run)"]["finishes"][0] == "tool-calls"
