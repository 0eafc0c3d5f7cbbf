"""Rows of the blueprint on Model, MessageAssembler and Message, checked by their words."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from pydantic import TypeAdapter, ValidationError

import deltafold
from deltafold import (
    AnthropicModel,
    CacheConfig,
    ContractError,
    DeltaKind,
    DeltaStream,
    ErrorCode,
    ErrorMapper,
    Hooks,
    Message,
    MessageAssembler,
    MessageDelta,
    MessagePart,
    MisuseError,
    Model,
    ModelConfig,
    ModelError,
    OpenAIChatModel,
    RequestContext,
    RequestMetadata,
    TextPart,
    ToolCallBuffer,
    ToolCallPart,
    ToolChoice,
    ToolSpec,
)
from deltafold.testing import Recording, ReplayServer
from wires import ANTHROPIC, CHAT, CHAT_ERROR, chat

TIME = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer({"*": Recording.of_events(CHAT)}) as replay:
        yield replay


def model_of(server: ReplayServer, **settings: Any) -> Model[Any]:  # noqa: ANN401 - any config
    config = {"model_id": "m", **settings.pop("config", {})}
    url = f"{server.url}/v1"
    return OpenAIChatModel(config, base_url=url, api_key="k", **settings)


def body_of(server: ReplayServer) -> dict[str, Any]:
    return cast("dict[str, Any]", server.requests[-1].json())


def deltas_of(**options: Any) -> list[MessageDelta]:  # noqa: ANN401 - those of Decoder
    return list(deltafold.stream(CHAT, "openai-chat", run_id="run", **options))


def delta(seq: int, kind: str, run_id: str = "run", **payload: object) -> MessageDelta:
    if kind == "start":
        payload = {"modelId": "m", "requestId": "r"}
    wire = {"runId": run_id, "seq": seq, "kind": kind, "payload": payload, "timestamp": TIME}
    return MessageDelta.from_dict(wire)


def started() -> MessageAssembler:
    assembler = MessageAssembler("run")
    assembler.consume(delta(1, "start"))
    return assembler


# 2. Initialisation.


def test_a_model_is_made_of_config_client_cache_and_mapper(server: ReplayServer) -> None:
    mapped: list[object] = []

    class Mapper(ErrorMapper):
        def map_response(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - those of the base
            mapped.append(arguments[0])
            return super().map_response(*arguments, **named)

    server.queue(Recording.error(401, {"error": {"message": "no"}}))
    config = {"model_id": "claude-sonnet-4-5"}
    model = AnthropicModel(
        config,
        base_url=server.url,
        api_key="k",
        cache_config=CacheConfig(strategy="auto"),
        error_mapper=Mapper(),
    )
    assert isinstance(model, Model)
    with model, pytest.raises(ModelError):
        model.send_message_sync("Hello", system_prompt="x" * 9_000)
    assert mapped == [401]
    assert "cache_control" in json.dumps(body_of(server))


def test_wrong_input_raises_and_nothing_is_sent(server: ReplayServer) -> None:
    wrong: Any = OpenAIChatModel
    with pytest.raises(TypeError):
        wrong()
    with pytest.raises(ValidationError, match="temprature"):
        model_of(server, config={"temprature": 1})
    assert isinstance(model_of(server), Model)
    assert server.requests == []


def test_an_assembler_begins_idle_with_its_run() -> None:
    assembler = MessageAssembler("run")
    assert (assembler.status, assembler.run_id) == ("idle", "run")
    assert assembler.snapshot().parts == []
    with pytest.raises(TypeError):
        MessageAssembler(7)  # type: ignore[arg-type]


# 3. Fields.


def test_an_assembler_shows_its_state() -> None:
    assembler = MessageAssembler("run")
    seen: list[int] = []
    for one in deltas_of():
        assembler.consume(one)
        seen.append(assembler.last_seq)
    assert seen == list(range(1, len(seen) + 1))
    assert assembler.status == "done"
    assert assembler.usage is not None
    assert assembler.usage.total_tokens == 349
    assert assembler.get_error() is None
    assert [part.kind for part in assembler.snapshot().parts][:2] == ["thinking", "text"]


def test_calls_are_buffered_by_their_ids() -> None:
    assembler = started()
    assembler.consume(delta(2, "tool_call_start", toolCallId="c", toolName="f"))
    assembler.consume(delta(3, "tool_call_args", toolCallId="c", argsTextDelta='{"a"'))
    buffered = assembler.tool_calls["c"]
    assert isinstance(buffered, ToolCallBuffer)
    assert (buffered.tool_name, buffered.args_text) == ("f", '{"a"')


def test_a_message_has_run_role_parts_time_and_meta() -> None:
    message = deltafold.fold(CHAT, "openai-chat", run_id="run")
    assert isinstance(message, Message)
    wire = message.to_dict()
    assert wire.keys() == {"id", "runId", "role", "parts", "timestamp", "meta"}
    assert (wire["runId"], wire["role"]) == ("run", "assistant")


def test_a_part_has_a_kind_and_a_payload() -> None:
    parts: list[MessagePart] = [TextPart(text="a"), *deltafold.fold(CHAT, "openai-chat").parts]
    adapter = TypeAdapter[MessagePart](MessagePart)
    for part in parts:
        wire = part.model_dump(mode="json")
        assert adapter.validate_python(wire) == part
        assert wire.keys() - {"providerState"} == {"kind", "payload"}
    assert {part.kind for part in parts} == {"text", "thinking", "tool_call"}


def test_a_delta_has_run_seq_kind_payload_time_and_raw() -> None:
    first, *_ = deltas_of(provider_raw=True)
    assert isinstance(first, MessageDelta)
    wire = first.to_dict()
    assert wire.keys() >= {"runId", "seq", "kind", "payload", "timestamp"}
    assert any(one.provider_raw for one in deltas_of(provider_raw=True))
    assert not any(one.provider_raw for one in deltas_of())


def test_payloads_have_the_members_of_their_kind() -> None:
    payloads: dict[str, Any] = {one.kind: one.payload for one in deltas_of()}
    assert payloads[DeltaKind.START].keys() >= {"modelId", "requestId"}
    assert payloads[DeltaKind.TOOL_CALL_START].keys() >= {"toolCallId", "toolName"}
    assert payloads[DeltaKind.TOOL_CALL_ARGS].keys() >= {"toolCallId", "argsTextDelta"}
    assert payloads[DeltaKind.TOOL_CALL_END].keys() >= {"toolCallId"}
    assert payloads[DeltaKind.DONE]["finishReason"] == "tool_calls"
    assert payloads[DeltaKind.USAGE]["totalTokens"] == 349


# 4. Methods.


def test_the_config_is_updated_for_later_calls(server: ReplayServer) -> None:
    with model_of(server) as model:
        model.send_message_sync("Hello")
        model.update_config(temperature=0.5)
        model.send_message_sync("Hello")
    bodies: list[Any] = [request.json() for request in server.requests]
    assert ["temperature" in body for body in bodies] == [False, True]


def test_the_config_that_is_read_is_a_copy(server: ReplayServer) -> None:
    model = model_of(server, config={"temperature": 0.5})
    config = model.get_config()
    assert (config.model_id, config.temperature) == ("m", 0.5)
    assert config is not model.get_config()


def test_a_stream_takes_messages_tools_prompts_choice_and_settings(server: ReplayServer) -> None:
    tool = ToolSpec(name="f", description="d")
    with (
        model_of(server) as model,
        model.stream_sync(
            [Message.user("Hello")],
            [tool],
            "Be brief.",
            tool_choice="required",
            invocation_state={"x": 1},
            temperature=0.25,
        ) as opened,
    ):
        assert opened.final_message().tool_calls
    body = body_of(server)
    assert [one["role"] for one in body["messages"]] == ["system", "user"]
    assert body["tools"][0]["function"]["name"] == "f"
    assert (body["tool_choice"], body["temperature"]) == ("required", 0.25)


def test_an_asynchronous_stream_is_a_stream_of_deltas(server: ReplayServer) -> None:
    async def main() -> list[MessageDelta]:
        async with model_of(server) as model, model.stream("Hello") as opened:
            return [one async for one in opened]

    deltas = asyncio.run(main())
    assert all(isinstance(one, MessageDelta) for one in deltas)
    assert (deltas[0].kind, deltas[-1].kind) == (DeltaKind.START, DeltaKind.DONE)


def test_the_state_of_an_invocation_reaches_hooks_and_never_the_wire(server: ReplayServer) -> None:
    seen: list[object] = []

    def before(context: RequestContext) -> None:
        seen.append(context.invocation_state["team"])

    with model_of(server, hooks=Hooks(before_request=before)) as model:
        model.send_message_sync("Hello", invocation_state={"team": "blue"})
    assert seen == ["blue"]
    assert "blue" not in json.dumps(body_of(server))


def test_the_metadata_of_a_request_names_session_run_and_trace(server: ReplayServer) -> None:
    seen: list[RequestMetadata] = []

    def before(context: RequestContext) -> None:
        seen.append(context.metadata)

    metadata = RequestMetadata(session_id="s", run_id="run", trace_id="t")
    with model_of(server, hooks=Hooks(before_request=before)) as model:
        message = model.send_message_sync("Hello", request_metadata=metadata)
    assert message.run_id == "run"
    assert seen == [metadata]


def test_a_model_has_information(server: ReplayServer) -> None:
    info = model_of(server, config={"model_id": "gpt-4.1"}).model_info()
    assert (info.provider_id, info.specification, info.model_id) == (
        "openai",
        "openai-chat",
        "gpt-4.1",
    )
    assert info.context_window_tokens
    assert server.requests == []


def test_a_config_has_the_common_settings_and_those_of_its_provider(server: ReplayServer) -> None:
    config = {
        "temperature": 0.5,
        "max_tokens": 7,
        "top_p": 0.25,
        "stop_sequences": ["x"],
        "tool_choice": "auto",
        "seed": 3,
    }
    with model_of(server, config=config) as model:
        assert isinstance(model.get_config(), ModelConfig)
        model.send_message_sync("Hello", [ToolSpec(name="f", description="d")])
    body = body_of(server)
    expected = {"temperature": 0.5, "top_p": 0.25, "stop": ["x"], "tool_choice": "auto", "seed": 3}
    assert {name: body[name] for name in expected} == expected
    assert 7 in body.values()


def test_a_cache_config_marks_what_shall_be_cached(server: ReplayServer) -> None:
    server.recordings["/v1/messages"] = Recording.of_events(ANTHROPIC)
    for strategy in ("auto", "none"):
        cache = CacheConfig.model_validate({"strategy": strategy})
        config = {"model_id": "claude-sonnet-4-5", "cache_config": cache}
        with AnthropicModel(config, base_url=server.url, api_key="k") as model:
            model.send_message_sync("Hello", system_prompt="x" * 9_000)
    bodies = [json.dumps(request.json()) for request in server.requests]
    assert ["cache_control" in body for body in bodies] == [True, False]


def test_a_specification_has_a_name_a_description_a_schema_and_strictness(
    server: ReplayServer,
) -> None:
    schema: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}
    spec = ToolSpec(name="f", description="d", parameter_schema=schema, strict=True)
    with model_of(server) as model:
        model.send_message_sync("Hello", [spec])
    function = {"name": "f", "description": "d", "parameters": schema, "strict": True}
    assert body_of(server)["tools"] == [{"type": "function", "function": function}]


def test_a_tool_choice_is_a_mode_or_a_tool(server: ReplayServer) -> None:
    tools = [ToolSpec(name="f", description="d")]
    with model_of(server) as model:
        for choice in (
            *map(ToolChoice.model_validate, ("auto", "required", "none")),
            ToolChoice.tool("f"),
        ):
            model.send_message_sync("Hello", tools, tool_choice=choice)
    bodies: list[Any] = [request.json() for request in server.requests]
    named = {"type": "function", "function": {"name": "f"}}
    assert [body["tool_choice"] for body in bodies] == ["auto", "required", "none", named]


def test_an_error_of_a_provider_has_a_code_of_the_framework(server: ReplayServer) -> None:
    server.queue(Recording.error(429, {"error": {"message": "slow down"}}))
    with model_of(server) as model, pytest.raises(ModelError) as raised:
        model.send_message_sync("Hello")
    assert raised.value.code == ErrorCode.RATE_LIMITED
    assert ErrorMapper().map(TimeoutError("late")).code == ErrorCode.TIMEOUT


def test_a_stream_ends_with_done_or_error() -> None:
    for wire, last in ((CHAT, "done"), (CHAT_ERROR, "error"), (CHAT[:200], "error")):
        opened = deltafold.stream(wire, "openai-chat")
        assert isinstance(opened, DeltaStream)
        kinds = [one.kind for one in opened]
        assert kinds[-1] == last
        assert sum(kind in {"done", "error"} for kind in kinds) == 1


def test_deltas_of_another_run_are_refused() -> None:
    assembler = started()
    with pytest.raises(ContractError, match="run"):
        assembler.consume(delta(2, "text", "other", textDelta="a"))
    assembler.consume(delta(2, "text", textDelta="a"))
    assert assembler.snapshot().text == "a"


def test_a_snapshot_is_readable_before_the_end() -> None:
    assembler = started()
    assembler.consume(delta(2, "text", textDelta="half"))
    early = assembler.snapshot()
    assembler.consume(delta(3, "text", textDelta=" and all"))
    assert (early.text, assembler.snapshot().text) == ("half", "half and all")


def test_the_final_message_comes_after_done_and_not_after_an_error() -> None:
    assembler = started()
    with pytest.raises(MisuseError):
        assembler.build_final_message()
    assembler.consume(delta(2, "text", textDelta="half"))
    assembler.consume(delta(3, "error", errorCode="overloaded"))
    with pytest.raises(ModelError) as raised:
        assembler.build_final_message()
    assert raised.value.partial_message is not None
    assert raised.value.partial_message.text == "half"
    whole = started()
    whole.consume(delta(2, "done", finishReason="stop"))
    assert whole.build_final_message().meta.finish_reason == "stop"


def test_reset_empties_the_buffers() -> None:
    assembler = started()
    assembler.consume(delta(2, "error", errorCode="overloaded"))
    assert assembler.get_error() is not None
    assembler.reset()
    assert (assembler.status, assembler.get_error()) == ("idle", None)
    assert assembler.snapshot().parts == []


# 5. States and laws.


def test_many_calls_of_one_model_run_at_once(server: ReplayServer) -> None:
    async def main() -> list[Message]:
        async with model_of(server) as model:
            assert isinstance(model, Model)
            return await asyncio.gather(*(model.send_message("Hello") for _ in range(8)))

    messages = asyncio.run(main())
    assert len({message.run_id for message in messages}) == 8
    assert len({json.dumps(message.to_dict()["parts"]) for message in messages}) == 1


@pytest.mark.parametrize(
    "deltas",
    [
        [delta(1, "text", textDelta="a")],
        [delta(1, "start"), delta(2, "start")],
        [delta(1, "start"), delta(1, "text", textDelta="a")],
        [delta(1, "start"), delta(2, "tool_call_end", toolCallId="c")],
        [
            delta(1, "start"),
            delta(2, "tool_call_start", toolCallId="c", toolName="f"),
            delta(3, "done", finishReason="stop"),
        ],
        [
            delta(1, "start"),
            delta(2, "done", finishReason="stop"),
            delta(3, "done", finishReason="stop"),
        ],
    ],
    ids=["start first", "one start", "rising", "an end without start", "an open call", "one end"],
)
def test_a_law_of_the_stream_cannot_be_broken(deltas: list[MessageDelta]) -> None:
    *lawful, wrong = deltas
    assembler = MessageAssembler()
    for one in lawful:
        assembler.consume(one)
    with pytest.raises(ContractError):
        assembler.consume(wrong)


# 7 and 8. Decisions.


def test_calls_are_read_from_the_final_message() -> None:
    message = deltafold.fold(CHAT, "openai-chat")
    assert [call.tool_name for call in message.runnable_tool_calls] == ["get_tides"] * 2
    half = ToolCallPart(tool_call_id="c", tool_name="f", raw_args_text='{"a', incomplete=True)
    assert Message.assistant(half).runnable_tool_calls == []


def test_one_stream_is_one_message_of_the_assistant() -> None:
    message = deltafold.fold(chat("one ", "two"), "openai-chat")
    assert isinstance(message, Message)
    assert (message.role, message.text, len(message.parts)) == ("assistant", "one two", 1)


def test_the_provider_s_own_event_is_in_provider_raw() -> None:
    raws = [one.provider_raw for one in deltas_of(provider_raw=True) if one.provider_raw]
    assert "choices" in str(raws[0])


def test_an_error_keeps_the_parts_received_before() -> None:
    with pytest.raises(ModelError) as raised:
        deltafold.fold(chat("half", finish_reason=None, done=False), "openai-chat")
    assert isinstance(raised.value, ModelError)
    assert raised.value.partial_message is not None
    assert raised.value.partial_message.text == "half"
