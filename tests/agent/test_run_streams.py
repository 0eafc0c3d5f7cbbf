"""Runs of an agent as the streams of `ai-sdk` and `ag-ui`.

The Rust suite reads the files of the fixture with the grammars of both targets, and
tests/external/runs lets the clients of npm read them.
"""

import asyncio
import json
import os
import re
from typing import Any

import pytest

import streamed_runs
from answering_server import AnsweringServer
from corpus import ROOT
from deltafold import Agent, Encoder, Message, MisuseError, Usage
from deltafold.conversation import AgentEvent, AgentEventKind, AgentState, RunResult, RunStatus
from streamed_runs import RUNS, TARGETS, Target, written

GOLDENS = ROOT / "tests" / "fixtures" / "agents" / "streams"


def golden(case: str, number: int, target: Target, data: bytes) -> None:
    # An answer that never came and a call whose id was used before have random ids.
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "random", data.decode())
    text = re.sub(r"call_[0-9a-f]{32}", "call_random", text)
    path = GOLDENS / f"{case}.{number}.{target}.sse"
    if os.environ.get("DELTAFOLD_BLESS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def chunks(data: bytes) -> list[dict[str, Any]]:
    lines = data.decode().split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def kinds(data: bytes) -> list[str]:
    return [chunk["type"] for chunk in chunks(data)]


@pytest.mark.parametrize("case", RUNS)
def test_the_streams_of_a_run(case: str) -> None:
    runs = RUNS[case]()
    for target in TARGETS:
        for number, data in enumerate(runs.written(target), 1):
            golden(case, number, target, data)


def test_no_stream_is_left_without_its_run() -> None:
    cases = {path.name.split(".")[0] for path in GOLDENS.iterdir()}
    assert cases == set(RUNS)


@pytest.mark.parametrize("target", TARGETS)
def test_a_run_that_is_cancelled_anywhere_ends_in_one_failure(target: Target) -> None:
    events = RUNS["rejected"]().runs[0]
    for count in range(1, len(events)):
        data = written(target, events[:count])
        ends = [kind for kind in kinds(data) if kind in {"finish", "error", "RUN_ERROR"}]
        assert ends == ["error" if target == "ai-sdk" else "RUN_ERROR"], count


@pytest.mark.parametrize("target", TARGETS)
def test_a_delta_alone_goes_on_as_a_part_of_the_run(target: Target) -> None:
    (events,) = RUNS["failed"]().runs
    alone = Encoder(target, response_id="run1", thread_id="thread")
    data = b"".join(alone.feed(event if event.delta is None else event.delta) for event in events)
    assert kinds(data) == kinds(written(target, events))


@pytest.mark.parametrize("target", TARGETS)
def test_mappings_are_those_of_the_bytes(target: Target) -> None:
    (events,) = RUNS["parallel"]().runs
    objects, lines = Encoder(target, as_bytes=False), Encoder(target)
    found = [mapping for event in events for mapping in objects.feed(event)]
    assert found == chunks(b"".join(map(lines.feed, events)))


def test_another_target_names_those_with_runs() -> None:
    event = AgentEvent(kind=AgentEventKind.TURN, turn=1)
    with pytest.raises(MisuseError, match=r"openai-chat has no .* ag-ui and ai-sdk"):
        Encoder("openai-chat").feed(event)
    with pytest.raises(TypeError, match="AgentEvent, not int"):
        Encoder("ai-sdk").feed(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_follows_the_end_and_the_usage_is_that_of_the_run(target: Target) -> None:
    (events,) = RUNS["counted_ids"]().runs
    encoder = Encoder(target)
    assert (encoder.status, encoder.headers) == (None, None)
    data = b"".join(map(encoder.feed, events))
    assert (encoder.status, encoder.finished, encoder.failed) == (200, True, False)
    assert (encoder.headers or {})["content-type"] == "text/event-stream"
    assert encoder.feed(events[0]) + encoder.keep_alive() + encoder.close() == b""
    end = chunks(data)[-1]
    usage = end["messageMetadata"]["usage"] if target == "ai-sdk" else end["usage"][0]
    run = events[-1].run
    assert run is not None
    assert (usage["inputTokens"], usage["outputTokens"]) == (
        run.usage.input_tokens,
        run.usage.output_tokens,
    )


@pytest.mark.parametrize(
    ("reason", "word"),
    [("length", "length"), ("refusal", "content-filter"), ("content_filter", "content-filter")],
)
def test_an_answer_that_is_not_whole_ends_with_its_reason(reason: str, word: str) -> None:
    result = RunResult[None](RunStatus.COMPLETED, Message.assistant("At"), reason, AgentState())
    event = AgentEvent(kind=AgentEventKind.RUN_END, turn=1, run=result)
    (_, end) = chunks(written("ai-sdk", [event]))
    assert end["finishReason"] == word
    (_, end) = chunks(written("ag-ui", [event]))
    assert end["metadata"] == {"finishReason": reason}


def test_an_answer_that_ended_in_an_error_fails() -> None:
    result = RunResult[None](RunStatus.COMPLETED, Message.assistant("At"), "error", AgentState())
    event = AgentEvent(kind=AgentEventKind.RUN_END, turn=1, run=result)
    assert kinds(written("ai-sdk", [event])) == ["start", "error"]
    assert kinds(written("ag-ui", [event])) == ["RUN_STARTED", "RUN_ERROR"]


def test_facts_are_json_without_paths_and_requests() -> None:
    for make in RUNS.values():
        for event in (event for run in make().runs for event in run):
            facts = event.facts
            assert json.loads(json.dumps(facts)) == facts
            assert facts["kind"] == event.kind
    usage = Usage(input_tokens=9, output_tokens=1, total_tokens=10, cost=1.0, details={"a": 1})
    result = RunResult[None](RunStatus.COMPLETED, None, "answered", AgentState(), usage=usage)
    facts = AgentEvent(kind=AgentEventKind.RUN_END, turn=1, run=result).facts
    assert facts["usage"] == {"inputTokens": 9, "outputTokens": 1, "totalTokens": 10}


def test_a_rejection_by_resume_is_told() -> None:
    events = RUNS["rejected"]().runs[1]
    ended = {
        event.call.tool_call_id: event.result for event in events if event.call and event.result
    }
    assert {name: str(result.status) for name, result in ended.items()} == {
        "c2": "success",
        "c3": "rejected",
    }


def test_tools_that_start_early_are_told_inside_of_their_answer() -> None:
    reply = streamed_runs.answers(["Wait.", streamed_runs.LOOK], ["At 17:42."])
    runs = streamed_runs.streamed(reply, start_tools_early=True)
    for target in TARGETS:
        (data,) = runs.written(target)
        assert "17:42" in data.decode()


def test_the_events_of_asyncio_are_the_same() -> None:
    reply = streamed_runs.answers(["Wait.", streamed_runs.LOOK], ["At 17:42."])

    async def read(server: AnsweringServer) -> list[bytes]:
        encoder = Encoder("ai-sdk")
        async with server.model() as model:
            events = Agent(tools=[streamed_runs.look], model=model).stream("go")
            return [data async for event in events if (data := encoder.feed(event))]

    with AnsweringServer(reply) as server:
        data = b"".join(asyncio.run(read(server)))
    assert data.endswith(b"data: [DONE]\n\n")
