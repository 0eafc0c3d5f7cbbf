"""The core domain, by the words of its document: settings, runs, sessions, tools, deltas."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from any_name import AnyName
from deltafold import (
    ContractError,
    Decoder,
    DeltaKind,
    FinishReason,
    Message,
    MessageAssembler,
    MessageDelta,
    OpenAIChatModel,
    Role,
    ToolCallPart,
    ToolResultPart,
    ToolSpec,
    load_model,
)
from deltafold.conversation import (
    AgentConfig,
    AgentState,
    ContextBuildResult,
    ContextConfig,
    ContextInput,
    ContextManager,
    ContextUpdateResult,
    IllegalTransitionError,
    LevelOfDetailSections,
    LoopConfig,
    ModelInputEntry,
    ModelOutputEntry,
    RunState,
    RunStatus,
    Session,
    SessionError,
    StoredEntry,
    ToolDefinition,
    ToolExecutionStatus,
    ToolExecutor,
    ToolOutcome,
    ToolsConfig,
)
from deltafold.testing import Recording, ReplayServer
from wires import ANTHROPIC_CUT, CHAT_ERROR, claude, gpt


def conversation(exchanges: int) -> AgentState:
    """Return a state of questions of 100 tokens and short answers."""
    state = AgentState.create_default("i")
    for number in range(exchanges):
        sections = LevelOfDetailSections.of_text(f"{number}" * 400)
        state.append_model_input(ModelInputEntry(content_sections=sections))
        state.append_model_output(ModelOutputEntry(contents=["answer"]))
    return state


# Settings.


def config(**members: object) -> AgentConfig:
    return AgentConfig.model_validate({"model": "openai/gpt", **members})


def test_the_model_of_the_settings_is_a_name_or_its_own_settings() -> None:
    name = AgentConfig(model="openai/gpt").model
    assert isinstance(name, str)
    assert load_model(name, api_key="k").model_info().model_id == "gpt"
    settings = AgentConfig(model={"model_id": "gpt", "temperature": 0.5}).model
    assert OpenAIChatModel(settings, api_key="k").get_config().temperature == 0.5  # type: ignore[arg-type]


def test_runtime_and_observability_are_kept_as_they_were_given() -> None:
    given = {"runtime": {"root": "/work"}, "observability": {"trace": True}}
    read: Any = AgentConfig.model_validate_json(config(**given).model_dump_json())
    assert (read.runtime, read.observability) == ({"root": "/work"}, {"trace": True})
    assert (config().runtime, config().observability) == ({}, {})
    with pytest.raises(ValidationError, match="frozen"):
        read.runtime = {}


def test_settings_of_tools_name_the_tools_and_those_that_need_approval() -> None:
    tools = config(tools={"enabled": ["f"], "require_approval": ["f"]}).tools
    assert tools == ToolsConfig(enabled=("f",), require_approval=("f",))
    assert config().tools.enabled is None
    with pytest.raises(ValidationError, match="disabled"):
        config(tools={"disabled": ["f"]})


def test_settings_of_the_context_are_a_budget_that_a_context_takes() -> None:
    state = conversation(4)
    assert ContextManager().build_context(ContextInput(state)).update.tokens > 200
    budget = config(context={"token_budget": 200}).context.token_budget
    assert ContextManager().build_context(ContextInput(state, budget)).update.tokens <= 200
    with pytest.raises(ValidationError):
        ContextConfig(token_budget=0)


def test_settings_of_the_loop_limit_time_retries_and_parallel_calls() -> None:
    loop = config(loop={"timeout": 2.5, "max_retries": 0, "max_parallel_tools": 1}).loop
    assert loop == LoopConfig(timeout=2.5, max_retries=0, max_parallel_tools=1)
    running = [0, 0]

    async def busy() -> None:
        """Count the calls that run at once."""
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.001)
        running[0] -= 1

    tools = [ToolDefinition.from_function(busy)]
    executor = ToolExecutor(tools, max_parallel=loop.max_parallel_tools)
    asyncio.run(executor.execute_all([call("busy", one) for one in ("a", "b", "c")]))
    assert running == [0, 1]
    for wrong in ({"timeout": 0}, {"max_retries": -1}, {"max_parallel_tools": 0}):
        with pytest.raises(ValidationError):
            config(loop=wrong)


# Runs.


def test_a_run_goes_through_the_statuses_and_stops_in_one_of_three_ways() -> None:
    path = ["preparing", "model_running", "tool_running", "awaiting_human", "tool_running"]
    for last in ("completed", "failed", "aborted"):
        run = RunState()
        assert run.status is RunStatus.IDLE
        for status in (*path, last):
            run.move(status)
            assert run.status is RunStatus(status)
        with pytest.raises(IllegalTransitionError, match=f"{last} cannot become tool_running"):
            run.move("tool_running")


def test_a_run_keeps_its_open_calls_and_its_last_error() -> None:
    run = RunState()
    assert run.begin("r1") == run.current_run_id == "r1"
    run.pending_tool_calls = Session(messages=[calling("a", "b"), answering("a")]).open_calls
    run.move("failed", error="no sandbox")
    assert RunState.model_validate_json(run.model_dump_json()) == run
    assert (run.pending_tool_calls, run.last_error) == (["b"], "no sandbox")
    run.begin()
    assert (run.pending_tool_calls, run.last_error) == ([], None)


# Sessions.


def calling(*ids: str) -> Message:
    calls = [ToolCallPart(tool_call_id=one, tool_name="f", arguments={"q": 1}) for one in ids]
    return Message(role=Role.ASSISTANT, parts=list(calls))


def answering(*ids: str, status: str | None = None) -> Message:
    results = [ToolResultPart(tool_call_id=one, content="done", status=status) for one in ids]
    return Message(role=Role.TOOL, parts=list(results))


def test_messages_belong_to_the_run_that_is_active() -> None:
    session = Session("s", "r1")
    session.append(Message.user("one"))
    session.run_id = "r2"
    session.append(Message.user("two"))
    again = Session.from_json(session.to_json())
    assert (again.session_id, again.run_id) == ("s", "r2")
    assert [message.run_id for message in again.messages] == ["r1", "r2"]


def test_an_entry_of_a_storage_layer_is_kept_and_sent_to_no_model() -> None:
    session = Session(messages=[Message.user("one")])
    session.append_entry({"type": "compaction", "summary": "long ago"})
    again = Session.from_json(session.to_json())
    assert isinstance(again.entries[-1], StoredEntry)
    assert again.entries[-1].data == {"type": "compaction", "summary": "long ago"}
    assert [message.text for message in again.messages_for("openai-chat")[0]] == ["one"]


def test_metadata_of_a_session_is_kept_and_cannot_be_changed() -> None:
    given = {"user": {"name": "a"}}
    session = Session(metadata=given)
    given["user"]["name"] = "b"
    metadata: Any = Session.from_json(session.to_json()).metadata
    assert metadata == {"user": {"name": "a"}}
    with pytest.raises(TypeError):
        metadata["user"] = 1


def test_a_session_keeps_the_order_in_which_messages_were_appended() -> None:
    session = Session()
    for number in range(5):
        before = [message.id for message in session.messages]
        session.append(Message.user(str(number)))
        assert [message.id for message in session.messages][:-1] == before
    session.messages[0].parts.clear()
    assert [message.text for message in session.messages] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("status", ["success", "failed", "rejected"])
def test_a_call_gets_one_final_result_whatever_it_is(status: str) -> None:
    session = Session(messages=[calling("a"), answering("a", status=status)])
    for second in ("success", "failed", "rejected"):
        with pytest.raises(SessionError, match="its result already"):
            session.append(answering("a", status=second))
    assert len(session.messages) == 2


def test_a_tool_message_answers_calls_that_were_made() -> None:
    session = Session(messages=[calling("a")])
    with pytest.raises(SessionError, match="'b', which was never made") as raised:
        session.append(answering("a", "b"))
    assert raised.value.tool_call_id == "b"
    assert session.open_calls == ["a"]
    with pytest.raises(ValidationError, match="at least one tool_result"):
        Message(role=Role.TOOL, parts=[])


# Messages.

WIRE: list[tuple[str, list[dict[str, object]]]] = [
    ("system", [{"kind": "text", "payload": {"text": "Be brief."}}]),
    (
        "user",
        [
            {"kind": "text", "payload": {"text": "Look."}},
            {"kind": "image", "payload": {"mimeType": "image/png", "url": "https://a.org/a.png"}},
            {
                "kind": "file_ref",
                "payload": {"mimeType": "application/pdf", "path": "https://a.org/a.pdf"},
            },
        ],
    ),
    (
        "assistant",
        [
            {"kind": "thinking", "payload": {"text": "hm"}},
            {
                "kind": "tool_call",
                "payload": {
                    "toolCallId": "a",
                    "toolName": "f",
                    "arguments": {"q": 1},
                    "rawArgsText": '{"q": 1}',
                },
            },
        ],
    ),
    (
        "tool",
        [
            {
                "kind": "tool_result",
                "payload": {
                    "toolCallId": "a",
                    "isError": False,
                    "content": [{"kind": "text", "payload": {"text": "done"}}],
                },
            }
        ],
    ),
]


@pytest.mark.parametrize(("role", "parts"), WIRE)
def test_a_message_has_run_role_parts_time_and_meta(
    role: str, parts: list[dict[str, object]]
) -> None:
    wire: dict[str, object] = {
        "id": "b1c7e2f0-0000-4000-8000-000000000000",
        "runId": "r",
        "role": role,
        "parts": parts,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "meta": {"modelId": "m"},
    }
    message = Message.from_dict(wire)
    assert message.to_dict() == wire
    assert (message.run_id, message.role, len(message.parts)) == ("r", role, len(parts))


def test_a_session_has_messages_that_have_calls_and_results() -> None:
    session = Session(messages=[calling("a", "b"), answering("a", "b")])
    asked, answered = session.messages
    assert isinstance(asked, Message)
    made = [(one.tool_call_id, one.tool_name, one.arguments) for one in asked.tool_calls]
    assert made == [("a", "f", {"q": 1}), ("b", "f", {"q": 1})]
    results = [part for part in answered.parts if isinstance(part, ToolResultPart)]
    assert [(one.tool_call_id, one.is_error, one.content) for one in results] == [
        ("a", False, "done"),
        ("b", False, "done"),
    ]


# Models and contexts.


def test_a_stream_of_a_model_is_message_deltas() -> None:
    async def main(server: ReplayServer) -> list[MessageDelta]:
        model = OpenAIChatModel({"model_id": "g"}, base_url=f"{server.url}/v1", api_key="k")
        async with model, model.stream("Hello") as stream:
            return [delta async for delta in stream]

    with ReplayServer([Recording.of(gpt("Hi."))]) as server:
        deltas = asyncio.run(main(server))
    assert all(isinstance(delta, MessageDelta) for delta in deltas)
    assert [str(delta.kind) for delta in deltas] == ["start", "text", "usage", "part_end", "done"]


def test_a_new_configuration_is_in_the_next_request() -> None:
    with ReplayServer([Recording.of(gpt("a")), Recording.of(gpt("b"))]) as server:
        model = OpenAIChatModel({"model_id": "g"}, base_url=f"{server.url}/v1", api_key="k")
        with model:
            model.stream_sync("Hello").final_message()
            model.update_config(temperature=0.25)
            model.stream_sync("Hello").final_message()
        bodies: list[Any] = [request.json() for request in server.requests]
    assert [body.get("temperature") for body in bodies] == [None, 0.25]
    assert model.get_config().temperature == 0.25


def test_updates_are_computed_and_nothing_is_built() -> None:
    state = conversation(4)
    summaries: list[int] = []

    def compact(messages: list[Message]) -> str:
        summaries.append(len(messages))
        return "summary"

    manager, given = ContextManager(compact), ContextInput(state, 150)
    before = state.log.to_json()
    update = manager.compute_context_updates(given)
    assert isinstance(update, ContextUpdateResult)
    assert update.left_out
    assert (state.log.to_json(), summaries) == (before, [])
    assert update == ContextManager().build_context(given).update


def test_a_context_is_messages_with_the_level_of_each_entry() -> None:
    state = AgentState.create_default("i")
    state.append_model_input(ModelInputEntry(content_sections=LevelOfDetailSections.of_text("q")))
    built = ContextManager().build_context(ContextInput(state))
    assert isinstance(built, ContextBuildResult)
    assert [(one.role, one.text) for one in built.messages] == [("system", "i"), ("user", "q")]
    assert built.update.levels == ("live",)


# Tools.


def call(name: str, tool_call_id: str = "c", **arguments: object) -> ToolCallPart:
    return ToolCallPart(tool_call_id=tool_call_id, tool_name=name, arguments=arguments)


def execute(executor: ToolExecutor, one: ToolCallPart) -> ToolOutcome:
    return asyncio.run(executor.execute(one))


SCHEMA: dict[str, object] = {"type": "object", "properties": {"path": {"type": "string"}}}


def read_file(path: str, runtime: dict[str, str], agent: str) -> str:
    """Read a file."""
    return f"{agent} reads {runtime['root']}/{path}"


def test_a_tool_is_executed_with_the_arguments_of_the_call() -> None:
    def join(path: str) -> str:
        return f"/{path}"

    tool = ToolDefinition("join", "Join.", SCHEMA, join)
    assert execute(ToolExecutor([tool]), call("join", path="a")).content == "/a"


def test_a_call_that_exceeds_its_time_fails() -> None:
    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(30)
        return "late"

    slow = ToolDefinition.from_function(sleep, timeout_ms=10)
    outcome = execute(ToolExecutor([slow]), call("sleep"))
    assert outcome.status is ToolExecutionStatus.FAILED
    assert outcome.content == "The tool did not finish within 10 ms."


def test_a_call_that_needs_approval_runs_only_with_it() -> None:
    ran: list[str] = []

    def delete() -> None:
        ran.append("deleted")

    tool = ToolDefinition("delete", "Delete.", SCHEMA, delete, requires_approval=True)
    answers = iter([False, True])
    executor = ToolExecutor([tool], approve=lambda _tool, _call: next(answers))
    assert execute(executor, call("delete")).status is ToolExecutionStatus.REJECTED
    assert ran == []
    assert execute(executor, call("delete")).status is ToolExecutionStatus.SUCCESS
    assert ran == ["deleted"]


def test_the_model_cannot_pass_the_runtime_or_the_agent() -> None:
    tool = ToolDefinition.from_function(read_file)
    assert (tool.requires_runtime, tool.requires_agent) == (True, True)
    executor = ToolExecutor([tool], runtime={"root": "/safe"}, agent="A")
    forged = call("read_file", path="a", runtime={"root": "/etc"}, agent="B")
    refused = execute(executor, forged)
    assert refused.status is ToolExecutionStatus.FAILED
    assert "'runtime' is not one of its arguments" in refused.content
    right = call("read_file", path="a")
    assert execute(executor, right).content == "A reads /safe/a"


def test_a_specification_is_taken_from_the_definition_of_a_tool() -> None:
    tool = ToolDefinition("f", "Read.", SCHEMA, read_file)
    expected = ToolSpec(name="f", description="Read.", parameter_schema=SCHEMA, strict=True)
    assert tool.to_spec(strict=True) == expected
    assert tool.to_spec().strict is None


def test_a_specification_tells_a_model_nothing_of_runtime_and_agent() -> None:
    spec = ToolDefinition.from_function(read_file, timeout_ms=5).to_spec()
    with ReplayServer([Recording.of(gpt("a"))]) as server:
        model = OpenAIChatModel({"model_id": "g"}, base_url=f"{server.url}/v1", api_key="k")
        with model:
            model.stream_sync("Hello", [spec]).final_message()
        body: Any = server.requests[0].json()
    sent = json.dumps(body["tools"])
    assert "path" in sent
    assert [word for word in ("runtime", "agent", "timeout") if word in sent] == []


# Deltas.

BODY = claude("Let me look.", ("t1", "look", {"place": "Brest"})).replace(
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0',
    b"event: content_block_start\n"
    b'data: {"type": "content_block_start", "index": 9, '
    b'"content_block": {"type": "thinking", "thinking": ""}}\n\n'
    b"event: content_block_delta\n"
    b'data: {"type": "content_block_delta", "index": 9, '
    b'"delta": {"type": "thinking_delta", "thinking": "Where?"}}\n\n'
    b"event: content_block_stop\n"
    b'data: {"type": "content_block_stop", "index": 9}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0',
)


def decoded(body: bytes, dialect: AnyName = "anthropic-messages") -> list[MessageDelta]:
    decoder = Decoder(dialect, run_id="run")
    return [*decoder.feed(body), *decoder.close()]


def of_kind(kind: DeltaKind, body: bytes = BODY) -> list[MessageDelta]:
    return [delta for delta in decoded(body) if delta.kind is kind]


def test_a_delta_has_a_run_a_number_a_kind_a_payload_and_a_time() -> None:
    for delta in decoded(BODY):
        wire = delta.to_dict()
        assert set(wire) == {"runId", "seq", "kind", "payload", "timestamp"}
        assert (delta.run_id, delta.kind, delta.payload) == ("run", wire["kind"], wire["payload"])
        assert delta.timestamp.tzinfo is not None
        assert MessageDelta.from_dict(wire) == delta


def test_sequence_numbers_rise_within_a_stream() -> None:
    numbers = [delta.seq for delta in decoded(BODY)]
    assert numbers[0] == 1
    assert all(after > before for before, after in pairwise(numbers))


def test_start_has_model_and_request() -> None:
    (start,) = of_kind(DeltaKind.START)
    assert (start.seq, start.model_id, start.request_id) == (1, "claude-demo", "msg_1")


def test_text_and_thinking_come_in_pieces() -> None:
    assert "".join(one.text or "" for one in of_kind(DeltaKind.TEXT)) == "Let me look."
    assert "".join(one.text or "" for one in of_kind(DeltaKind.THINKING)) == "Where?"


def test_a_call_begins_with_id_and_name_grows_and_ends() -> None:
    (start,), (end,) = of_kind(DeltaKind.TOOL_CALL_START), of_kind(DeltaKind.TOOL_CALL_END)
    pieces = of_kind(DeltaKind.TOOL_CALL_ARGS)
    assert (start.tool_call_id, start.tool_name) == ("t1", "look")
    assert "".join(one.args_text or "" for one in pieces) == '{"place": "Brest"}'
    assert start.seq < pieces[0].seq <= pieces[-1].seq < end.seq
    assert (end.tool_call_id, end.incomplete) == ("t1", False)


def test_usage_has_counts_and_the_cost_that_the_provider_states() -> None:
    body = gpt("a").replace(b'"total_tokens":90', b'"total_tokens":90,"cost":0.5')
    (usage,) = [one.usage for one in decoded(body, "openai-chat") if one.kind is DeltaKind.USAGE]
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cost) == (80, 10, 0.5)


def test_done_has_the_reason_of_the_end() -> None:
    (done,) = of_kind(DeltaKind.DONE)
    assert done.finish_reason is FinishReason.TOOL_CALLS
    assert done.raw_finish_reason == "tool_use"


def test_a_stream_that_fails_ends_in_an_error() -> None:
    for body, dialect in ((ANTHROPIC_CUT, "anthropic-messages"), (CHAT_ERROR, "openai-chat")):
        last = decoded(body, dialect)[-1]
        assert last.kind is DeltaKind.ERROR
        assert last.error_code is not None
        assert last.error_message


@pytest.mark.parametrize("at", range(0, len(BODY), 97))
def test_every_stream_ends_once_in_done_or_in_an_error(at: int) -> None:
    deltas = decoded(BODY[:at])
    ends = [one for one in deltas if one.kind in {DeltaKind.DONE, DeltaKind.ERROR}]
    assert ends == deltas[-1:]


def test_nothing_follows_the_end_of_a_stream() -> None:
    assembler = MessageAssembler()
    deltas = decoded(BODY)
    for delta in deltas:
        assembler.consume(delta)
    more = MessageDelta("run", deltas[-1].seq + 1, "done", {"finishReason": "stop"})
    with pytest.raises(ContractError):
        assembler.consume(more)
    assert assembler.build_final_message().tool_calls[0].arguments == {"place": "Brest"}


@pytest.mark.parametrize("seq", [0, 1, 2])
def test_a_sequence_number_that_does_not_rise_is_refused(seq: int) -> None:
    assembler = MessageAssembler()
    for delta in decoded(BODY)[:2]:
        assembler.consume(delta)
    with pytest.raises(ContractError):
        assembler.consume(MessageDelta("run", seq, "text", {"textDelta": "again"}))
    assert assembler.last_seq == 2
