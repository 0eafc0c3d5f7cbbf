"""Typed outputs of an agent: accepted, mended, given by a tool, and found again."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_type

import pytest

from deltafold import Agent, AnthropicModel, Message, Output, OutputError, load_model
from deltafold.conversation import (
    AgentState,
    ConversationLog,
    MemoryNotebookWidget,
    ModelInputEntry,
    RunResult,
    RunStatus,
    check,
)
from deltafold.testing import Recording, ReplayServer, answer
from talks import Talk


@dataclass
class Tide:
    """A high tide."""

    place: str
    hour: int


BREST = Tide("Brest", 17)
JSON = json.dumps({"place": "Brest", "hour": 17})
WRONG = json.dumps({"place": "Brest", "hour": "late"})


def look(place: str) -> str:
    """Look up the tide."""
    return f"high tide at {place}: 17 o'clock"


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as replay:
        yield replay


def said(*content: Any) -> Recording:  # noqa: ANN401 - of `answer`
    return answer("openai-chat", *content)


def typed(
    server: ReplayServer,
    *answers: Recording,
    name: str = "openai/gpt-4.1",
    **options: Any,  # noqa: ANN401
) -> Talk[Tide]:
    server.queue(*answers)
    model = load_model(name, base_url=f"{server.url}/v1", api_key="k")
    return Talk(
        Agent({"loop": options.pop("loop", {})}, [look], model=model, output=Tide, **options)
    )


def test_the_output_of_a_run_has_its_type(server: ReplayServer) -> None:
    agent = typed(server, said(("c1", "look", {"place": "Brest"})), said(JSON))
    result = agent.run_sync("When?")
    assert_type(result, RunResult[Tide])
    assert (result.output, result.reason) == (BREST, "answered")
    bodies: list[Any] = [request.json() for request in server.requests]
    schemas = [body["response_format"]["json_schema"]["name"] for body in bodies]
    assert schemas == ["Tide", "Tide"]
    again = agent.resume_sync()
    assert (again.output, again.status) == (BREST, RunStatus.COMPLETED)
    assert len(server.requests) == 2


def test_without_a_type_there_is_no_output(server: ReplayServer) -> None:
    server.queue(said("At 17."))
    model = load_model("openai/gpt-4.1", base_url=f"{server.url}/v1", api_key="k")
    agent = Agent(model=model)
    assert_type(agent, Agent[None])
    assert agent.run_sync("When?").output is None


def test_a_wrong_output_goes_back_with_the_reason(server: ReplayServer) -> None:
    agent = typed(server, said(WRONG), said(JSON))
    events = list(agent.stream_sync("When?"))
    defects = [event.defect for event in events if event.defect is not None]
    assert [defect.defect for defect in defects] == ["invalid"]
    result = events[-1].run
    assert result is not None
    assert (result.output, result.turns) == (BREST, 2)
    body: Any = server.requests[1].json()
    assert "hour" in body["messages"][-1]["content"]
    entries = agent.state.log.entries
    inputs = [entry for entry in entries if isinstance(entry, ModelInputEntry)]
    assert inputs[1].metadata == {"output_defect": "invalid"}


def test_a_model_that_does_not_mend_it_fails(server: ReplayServer) -> None:
    agent = typed(server, said(WRONG), said(WRONG), loop={"max_retries": 1})
    with pytest.raises(OutputError, match="hour"):
        agent.run_sync("When?")
    assert agent.run_state.status is RunStatus.FAILED
    agent = typed(server, said(WRONG), loop={"max_retries": 0, "on_error": "return"})
    result = agent.run_sync("When?")
    assert (result.status, result.output) == (RunStatus.FAILED, None)
    assert isinstance(result.error, OutputError)


@pytest.mark.parametrize(("finish", "defect"), [("length", "cut"), ("content_filter", "refused")])
def test_a_cut_or_refused_output_is_not_asked_again(
    server: ReplayServer, finish: str, defect: str
) -> None:
    whole = said(JSON[:9])
    body = whole.body.replace(b'"stop"', f'"{finish}"'.encode())
    with pytest.raises(OutputError) as raised:
        typed(server, Recording.of_events(body)).run_sync("When?")
    assert raised.value.defect == defect
    assert len(server.requests) == 1


# By a tool, where the provider has no mechanism.


def claude(server: ReplayServer, *answers: Recording, log: ConversationLog) -> Talk[Tide]:
    server.queue(*answers)
    model = AnthropicModel({"model_id": "claude-3-5-haiku"}, base_url=server.url, api_key="k")
    has_begun = any(log.newest_first())
    state = (
        AgentState(log, [MemoryNotebookWidget()])
        if has_begun
        else AgentState.create_default(log=log)
    )
    return Talk(Agent(tools=[look], model=model, output=Tide), state)


def call(call_id: str, name: str, arguments: str) -> tuple[str, str, dict[str, object]]:
    return call_id, name, json.loads(arguments)


def test_a_call_gives_the_output(server: ReplayServer) -> None:
    log = ConversationLog()
    look_up = call("c1", "look", '{"place": "Brest"}')
    answers = [
        answer("anthropic-messages", look_up),
        answer("anthropic-messages", call("c2", "Tide", WRONG)),
        answer("anthropic-messages", call("c3", "Tide", JSON)),
    ]
    result = claude(server, *answers, log=log).run_sync("When?")
    assert (result.output, result.turns) == (BREST, 3)
    bodies: list[Any] = [request.json() for request in server.requests]
    assert [body["tool_choice"]["type"] for body in bodies] == ["any"] * 3
    (told,) = bodies[2]["messages"][-1]["content"]
    assert told["is_error"]
    assert "hour" in told["content"]
    # Every call has its result, so that the conversation can go on.
    messages, _ = AgentState(log, [MemoryNotebookWidget()]).messages_for("anthropic-messages")
    assert check(messages, "anthropic-messages").is_clean
    again = claude(server, log=ConversationLog.from_json(log.to_json())).resume_sync()
    assert (again.output, again.status) == (BREST, RunStatus.COMPLETED)
    assert len(server.requests) == 3


def test_an_output_beside_other_calls_waits_for_their_results(server: ReplayServer) -> None:
    log = ConversationLog()
    both = answer(
        "anthropic-messages", call("c1", "look", '{"place": "Brest"}'), call("c2", "Tide", JSON)
    )
    last = answer("anthropic-messages", call("c3", "Tide", JSON))
    result = claude(server, both, last, log=log).run_sync("When?")
    assert (result.output, result.turns) == (BREST, 2)
    body: Any = server.requests[1].json()
    results = [block["content"] for block in body["messages"][-1]["content"]]
    assert results[0] == "high tide at Brest: 17 o'clock"
    assert "Call it again" in results[1]


def test_an_interrupted_run_checks_the_answer_in_its_log(server: ReplayServer) -> None:
    log = ConversationLog(run_id="r")
    log.append_message(Message.user("When?"))
    log.append_message(Message.assistant(JSON))
    server.queue()
    model = load_model("openai/gpt-4.1", base_url=f"{server.url}/v1", api_key="k")
    agent = Agent(model=model, output=Output(Tide))
    assert agent.resume_sync(AgentState(log)).output == BREST
    assert not server.requests


def test_the_output_of_a_list_is_unwrapped(server: ReplayServer) -> None:
    server.queue(said('{"value": [1, 2]}'))
    model = load_model("openai/gpt-4.1", base_url=f"{server.url}/v1", api_key="k")
    assert Agent(model=model, output=list[int]).run_sync("Count.").output == [1, 2]
