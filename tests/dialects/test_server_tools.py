"""Tools that the provider runs, in histories that go back to it.

In: answers whose server tools have no result, as a cut, a pause or a status leaves them.  Out: the
problems of `check`, the histories of `repair`, and the requests that an agent and a log send.

Law: a turn that the provider can go on with is left alone.
Source: Anthropic's pages "Server tools" and "Programmatic tool calling" (read 2026-11).
"""

from collections.abc import Sequence
from typing import Any

import pytest

import deltafold
from any_name import AnyName
from deltafold import Agent, AnthropicModel, Message, MessagePart, ProviderPart, ToolCallPart
from deltafold.conversation import (
    AgentState,
    ConversationLog,
    ProblemCode,
    check,
    repair,
    to_messages,
)
from deltafold.dialects import dialect_of
from deltafold.testing import Recording, ReplayServer
from talks import Talk
from wires import claude, event

MODEL = "claude-opus-4-8"
ASKED = Message.user("Search.")
ON = Message.user("Go on.")
USE: dict[str, object] = {"type": "server_tool_use", "id": "srv_1", "name": "web_search"}
FOUND: dict[str, object] = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
CODE: dict[str, object] = {"type": "server_tool_use", "id": "srv_1", "name": "code_execution"}
RAN: dict[str, object] = {"type": "code_execution_tool_result", "tool_use_id": "srv_1"}


def of(*blocks: dict[str, object], dialect: str = "anthropic-messages") -> list[MessagePart]:
    return [ProviderPart(dialect=dialect, block=block) for block in blocks]


def calling(call_id: str = "toolu_1") -> ToolCallPart:
    """Make a call of the caller's tool, made by code that runs at the provider."""
    state: dict[str, object] = {"caller": {"type": "code_execution_20260120", "tool_id": "srv_1"}}
    return ToolCallPart(
        tool_call_id=call_id,
        tool_name="tide",
        arguments={},
        provider_state={"dialect": "anthropic-messages", "data": state},
    )


def stream(*, stop_reason: str | None) -> bytes:
    """Write an answer that searches; without a stop reason it is cut before its end."""
    searching = claude("I search.")
    begun = searching[: searching.rindex(b"event: message_delta")]
    use: list[dict[str, object]] = [
        {"type": "content_block_start", "index": 1, "content_block": {**USE, "input": {}}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"query":"tides"}'},
        },
        {"type": "content_block_stop", "index": 1},
    ]
    end: list[dict[str, object]] = [
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]
    events = use if stop_reason is None else [*use, *end]
    return begun + b"".join(event(one) for one in events)


def folded(body: bytes) -> Message:
    [assembler] = deltafold.fold_many([body], "anthropic-messages")
    return assembler.snapshot()


def kinds(body: Any) -> list[str]:  # noqa: ANN401 - any request
    return [block["type"] for turn in body["messages"] for block in turn["content"]]


@pytest.mark.parametrize("stop_reason", [None, "pause_turn"], ids=["cut", "pause"])
def test_a_tool_whose_answer_the_user_broke_off_is_found_and_left_out(
    stop_reason: str | None,
) -> None:
    history = [ASKED, folded(stream(stop_reason=stop_reason)), ON]
    mended, report = repair(history, "anthropic-messages", model_id=MODEL)
    assert report.to_warnings() == [
        {
            "code": "unpaired_server_tool",
            "message": "the server tool web_search has no result",
            "messageIndex": 1,
            "partIndex": 1,
            "refusedBy": [
                "anthropic-messages",
                "openai-responses",
                "gemini",
                "bedrock-converse",
            ],
        }
    ]
    assert [part.kind for part in mended[1].parts] == ["text"]
    assert check(mended, "anthropic-messages", model_id=MODEL).is_clean


def test_an_answer_of_a_server_tool_alone_goes_with_it() -> None:
    mended, report = repair([ASKED, Message.assistant(*of(USE)), ON], "anthropic-messages")
    assert report.codes == [ProblemCode.UNPAIRED_SERVER_TOOL]
    assert mended == [ASKED, ON]


VALID: dict[str, Sequence[Message]] = {
    "a pause that goes on": [ASKED, Message.assistant("I search.", *of(USE))],
    "a result behind the pause": [
        ASKED,
        Message.assistant("I search.", *of(USE)),
        Message.assistant(*of(FOUND), "Done."),
        ON,
    ],
    "a server tool that waits for a call beside it": [
        ASKED,
        Message.assistant(*of(USE), calling()),
        Message.tool_result("toolu_1", "17:42"),
    ],
    "code that calls": [
        ASKED,
        Message.assistant(*of(CODE), calling()),
        Message.tool_result("toolu_1", "17:42"),
        Message.assistant(calling("toolu_2")),
        Message.tool_result("toolu_2", "18:42"),
        Message.assistant(*of(RAN), "Done."),
        ON,
    ],
    "text beside the results": [
        ASKED,
        Message.assistant(*of(CODE), calling()),
        Message.tool_result("toolu_1", "17:42"),
        ON,
    ],
    "a tool of a connector": [
        ASKED,
        Message.assistant(
            *of(
                {"type": "mcp_tool_use", "id": "m_1", "name": "tide", "input": {}},
                {"type": "mcp_tool_result", "tool_use_id": "m_1", "content": []},
            ),
            "Done.",
        ),
        ON,
    ],
}


@pytest.mark.parametrize("history", VALID.values(), ids=list(VALID))
def test_a_turn_that_the_provider_takes_is_left_alone(history: Sequence[Message]) -> None:
    mended, report = repair(history, "anthropic-messages", model_id=MODEL)
    assert report.is_clean
    assert all(one is other for one, other in zip(mended, history, strict=True))


def test_a_call_of_code_that_is_left_out_is_a_call_of_the_model() -> None:
    history = [ASKED, Message.assistant("I run it.", *of(CODE), calling()), ON]
    mended, report = repair(history, "anthropic-messages", model_id=MODEL)
    assert report.codes == [ProblemCode.UNPAIRED_SERVER_TOOL, ProblemCode.ORPHAN_CALL]
    dialect = dialect_of("anthropic-messages")
    config = dialect.config_class.model_validate({"model_id": MODEL, "max_tokens": 9})
    body = dialect.render(mended, [], config).body
    assert "caller" not in str(body)
    assert kinds(body) == ["text", "text", "tool_use", "tool_result", "text"]


RUNNING: list[tuple[str, str, dict[str, Any]]] = [
    ("web_search_call", "in_progress", {}),
    ("web_search_call", "searching", {}),
    ("file_search_call", "searching", {"queries": ["tides"], "results": None}),
    ("code_interpreter_call", "interpreting", {"code": "1", "outputs": None}),
    ("image_generation_call", "generating", {"result": None}),
    ("mcp_call", "calling", {"name": "tide"}),
    ("computer_call", "in_progress", {"call_id": "c"}),
]
ENDED: list[tuple[str, str | None, dict[str, Any]]] = [
    ("web_search_call", "completed", {}),
    ("web_search_call", "incomplete", {}),
    ("code_interpreter_call", "failed", {}),
    ("image_generation_call", "generating", {"result": "iVBORw0KGgo="}),
    ("mcp_call", None, {"output": "17:42"}),
]


def item(kind: str, status: str | None, members: dict[str, Any]) -> list[MessagePart]:
    block: dict[str, object] = {"type": kind, "id": "i_1", "status": status, **members}
    return of(block, dialect="openai-responses")


@pytest.mark.parametrize(("kind", "status", "members"), RUNNING)
def test_an_item_that_has_not_ended_is_left_out(
    kind: str, status: str, members: dict[str, Any]
) -> None:
    history = [ASKED, Message.assistant("I search.", *item(kind, status, members)), ON]
    mended, report = repair(history, "openai-responses", model_id="gpt-5.4")
    assert [problem.message for problem in report.problems] == [
        f"the {kind} has not ended, it is {status!r}"
    ]
    assert [part.kind for part in mended[1].parts] == ["text"]


@pytest.mark.parametrize(("kind", "status", "members"), ENDED)
def test_an_item_that_has_ended_is_left_alone(
    kind: str, status: str | None, members: dict[str, Any]
) -> None:
    history = [ASKED, Message.assistant(*item(kind, status, members)), ON]
    assert check(history, "openai-responses", model_id="gpt-5.4").is_clean


def test_an_item_that_the_caller_has_answered_is_left_alone() -> None:
    request: dict[str, Any] = {
        "input": [
            {"role": "user", "content": "Look."},
            {"type": "shell_call", "call_id": "c", "status": "in_progress", "action": {}},
            {"type": "shell_call_output", "call_id": "c", "output": []},
        ]
    }
    messages = deltafold.parse_request(request, "openai-responses").messages
    assert check(messages, "openai-responses", model_id="gpt-5.4").is_clean


@pytest.mark.parametrize(
    ("dialect", "blocks"),
    [
        ("gemini", [{"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB"}}]),
        (
            "gemini",
            [
                {"executableCode": {"code": "1"}},
                {"codeExecutionResult": {"output": "1"}},
                {"codeExecutionResult": {"output": "2"}},
                {"executableCode": {"code": "2"}},
            ],
        ),
        ("bedrock-converse", [{"toolUse": {"toolUseId": "t", "type": "server_tool_use"}}]),
    ],
)
def test_the_last_use_without_a_result_is_left_out(
    dialect: AnyName, blocks: list[dict[str, object]]
) -> None:
    history = [ASKED, Message.assistant("I search.", *of(*blocks, dialect=dialect)), ON]
    mended, report = repair(history, dialect)
    assert report.codes == [ProblemCode.UNPAIRED_SERVER_TOOL]
    assert mended[1].parts == history[1].parts[:-1]


@pytest.mark.parametrize(
    ("dialect", "block"),
    [
        ("anthropic-messages", {"type": "server_tool_use", "id": [1], "name": [2]}),
        ("anthropic-messages", {"type": [1]}),
        ("anthropic-messages", {"type": "web_search_tool_result", "tool_use_id": {}}),
        ("openai-responses", {"type": "web_search_call", "status": [1]}),
        ("openai-responses", {"type": "shell_call", "status": "in_progress", "call_id": [1]}),
        ("gemini", {"toolCall": {"id": [1]}}),
        ("bedrock-converse", {"toolUse": {"toolUseId": [1]}}),
    ],
)
def test_a_block_of_another_form_is_checked_too(dialect: AnyName, block: dict[str, object]) -> None:
    history = [ASKED, Message.assistant("I search.", *of(block, dialect=dialect)), ON]
    mended, _ = repair(history, dialect)
    assert check(mended, dialect).is_clean


def test_an_agent_sends_no_tool_of_a_turn_that_it_left() -> None:
    with ReplayServer() as server:
        server.queue(
            Recording.of_events(stream(stop_reason="pause_turn")),
            Recording.of_events(claude("Done.")),
        )
        model = AnthropicModel({"model_id": MODEL}, base_url=server.url, api_key="k")
        agent = Talk(Agent({"loop": {"max_turns": 1}}, model=model))
        agent.run_sync("Search.")
        result = agent.run_sync("Go on.")
        bodies: list[Any] = [request.json() for request in server.requests]
    assert result.text == "Done."
    assert kinds(bodies[1]) == ["text", "text", "text"]


def test_an_agent_goes_on_with_a_tool_behind_a_pause() -> None:
    with ReplayServer() as server:
        server.queue(
            Recording.of_events(stream(stop_reason="pause_turn")),
            Recording.of_events(claude("Done.")),
        )
        model = AnthropicModel({"model_id": MODEL}, base_url=server.url, api_key="k")
        Agent(model=model).run_sync("Search.")
        body: Any = server.requests[1].json()
    assert kinds(body) == ["text", "text", "server_tool_use"]


def test_a_log_with_a_cut_answer_is_sent_without_its_tool() -> None:
    log = ConversationLog()
    for message in (ASKED, folded(stream(stop_reason=None)), ON):
        log.append_message(message)
    state = AgentState.create_default(log=log)
    with ReplayServer() as server:
        server.queue(Recording.of_events(claude("Done.")))
        history = to_messages(state.render_live_context())
        with AnthropicModel({"model_id": MODEL}, base_url=server.url, api_key="k") as model:
            answer = model.stream_sync(history, repair="auto").final_message()
        body: Any = server.requests[0].json()
    assert kinds(body) == ["text", "text", "text"]
    assert [one["code"] for one in answer.meta.warnings or ()] == ["unpaired_server_tool"]


def test_a_server_tool_that_the_removed_one_called_stays_without_its_caller() -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_0"}
    outer: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "srvtoolu_0",
        "name": "code_execution",
        "input": {},
    }
    inner: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
    }
    result: dict[str, Any] = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [],
    }
    blocks: list[dict[str, Any]] = [
        outer,
        {**inner, "caller": caller},
        {**result, "caller": caller},
    ]
    parts = [ProviderPart(dialect="anthropic-messages", block=block) for block in blocks]
    history = [ASKED, Message.assistant("I look.", *parts), ON]
    mended, report = repair(history, "anthropic-messages", model_id="claude-opus-4-8")
    assert report.codes == [ProblemCode.UNPAIRED_SERVER_TOOL]
    kept = [part.block for part in mended[1].parts if isinstance(part, ProviderPart)]
    assert kept == [inner, result]
