"""Options and results of a Model's calls: hooks, raw bytes, headers, time, messages, events."""

import asyncio
import copy
import itertools
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import deltafold
from deltafold import (
    AnthropicModel,
    ErrorCode,
    Hooks,
    Message,
    MisuseError,
    ModelError,
    OpenAIChatModel,
    RateLimit,
    RequestContext,
    ResponseInfo,
    ToolCallPart,
    ToolSpec,
)
from deltafold._core import StreamTimer
from deltafold.conversation import HistoryError
from deltafold.message.timing import timing_of
from deltafold.models import LocalModel
from deltafold.testing import Recording, ReplayServer
from replay_servers import wait_until_closed
from wires import CHAT, chat, two_providers

Ask = Callable[..., Message]


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with two_providers() as replay:
        yield replay


def chat_model(server: ReplayServer, **settings: Any) -> OpenAIChatModel:  # noqa: ANN401
    return OpenAIChatModel(
        {"model_id": "m"}, base_url=f"{server.url}/v1", api_key="secret", **settings
    )


def both_ways(model: OpenAIChatModel, way: str, **arguments: Any) -> Message:  # noqa: ANN401
    if way == "synchronous":
        with model, model.stream_sync("Hello", output=None, **arguments) as stream:
            return stream.final_message()

    async def main() -> Message:
        async with model, model.stream("Hello", output=None, **arguments) as stream:
            return await stream.final_message()

    return asyncio.run(main())


WAYS = pytest.mark.parametrize("way", ["synchronous", "asynchronous"])


COPIES = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])


@COPIES
@WAYS
def test_a_copy_of_a_model_makes_its_own_clients(
    server: ReplayServer, copied: Callable[[OpenAIChatModel], OpenAIChatModel], way: str
) -> None:
    model = chat_model(server)

    async def texts() -> list[str]:
        found = [(await model.send_message("Hello")).text]
        async with copied(model) as other, other.stream("Hello") as stream:
            await anext(stream)
            await model.aclose()
            found.append((await stream.final_message()).text)
        return found

    def texts_sync() -> list[str]:
        found = [model.send_message_sync("Hello").text]
        with copied(model) as other, other.stream_sync("Hello") as stream:
            next(iter(stream))
            model.close()
            found.append(stream.final_message().text)
        return found

    first, second = texts_sync() if way == "synchronous" else asyncio.run(texts())
    assert first == second != ""
    assert server.connections == 2
    wait_until_closed(server)


@COPIES
def test_a_copy_of_a_model_has_the_client_and_the_hooks_of_the_caller(
    server: ReplayServer, copied: Callable[[OpenAIChatModel], OpenAIChatModel]
) -> None:
    seen: list[str] = []
    with httpx.Client() as client:
        hooks = Hooks(before_request=lambda context: seen.append(context.model_id))
        model = chat_model(server, client=client, hooks=hooks)
        other = copied(model)
        other.update_config(model_id="other")
        for one in (model, other):
            with one:
                one.send_message_sync("Hello")
        assert not client.is_closed
    assert seen == ["m", "other"]


@COPIES
def test_a_local_model_whose_pipeline_has_a_lock_can_be_copied(
    copied: Callable[[LocalModel], LocalModel],
) -> None:
    pipeline = SimpleNamespace(tokenizer=None, lock=threading.Lock())
    model = LocalModel({"model_id": "tiny"}, client=pipeline)
    other = copied(model)
    assert other.get_config() == model.get_config()
    assert vars(other)["_transport"] is vars(model)["_transport"]


def test_a_model_that_was_called_can_be_pickled(server: ReplayServer) -> None:
    with chat_model(server) as model:
        first = model.send_message_sync("Hello").text
        again: OpenAIChatModel = pickle.loads(pickle.dumps(model))  # noqa: S301 - made here
        with again:
            assert again.send_message_sync("Hello").text == first != ""
    assert again.get_config() == model.get_config()
    assert server.connections == 2


@WAYS
def test_hooks_see_and_change_the_request_and_see_the_headers(
    way: str, server: ReplayServer
) -> None:
    seen: list[object] = []

    def before(request: RequestContext) -> None:
        seen.append((request.model_id, request.invocation_state["team"], request.metadata.run_id))
        request.headers["x-team"] = str(request.invocation_state["team"])
        request.body["user"] = "u"
        request.query["v"] = "2"

    def after(response: ResponseInfo) -> None:
        seen.append((response.status, response.invocation_state["team"]))

    model = chat_model(server, hooks=Hooks(before, after))
    both_ways(model, way, invocation_state={"team": "blue"}, request_metadata={"run_id": "run"})
    assert seen == [("m", "blue", "run"), (200, "blue")]
    request: Any = server.requests[0]
    assert request.headers["x-team"] == "blue"
    assert request.path.endswith("?v=2")
    assert request.json()["user"] == "u"
    assert "team" not in request.json()


def test_asynchronous_hooks_are_awaited(server: ReplayServer) -> None:
    seen: list[str] = []

    async def before(request: RequestContext) -> None:
        await asyncio.sleep(0)
        seen.append(request.model_id)

    async def after(response: ResponseInfo) -> None:
        await asyncio.sleep(0)
        seen.append(str(response.status))

    both_ways(chat_model(server, hooks=Hooks(before, after)), "asynchronous")
    assert seen == ["m", "200"]


@WAYS
@pytest.mark.parametrize("place", ["before_request", "after_headers", "tee"])
def test_what_the_callers_own_code_raises_reaches_the_caller(
    way: str, place: str, server: ReplayServer
) -> None:
    def fail(_: object) -> None:
        raise KeyError("mine")

    if place == "tee":
        model, arguments = chat_model(server), {"tee": fail}
    else:
        model, arguments = chat_model(server, hooks=Hooks(**{place: fail})), {}
    with pytest.raises(KeyError, match="mine"):
        both_ways(model, way, **arguments)


@WAYS
def test_a_tee_gets_the_bytes_untouched(way: str, server: ReplayServer) -> None:
    pieces: list[bytes] = []
    message = both_ways(chat_model(server), way, tee=pieces.append)
    assert b"".join(pieces) == CHAT
    assert message.text == deltafold.fold(CHAT, "openai-chat").text


def test_the_response_shows_status_headers_and_rate_limits(server: ReplayServer) -> None:
    headers = {
        "content-type": "text/event-stream",
        "x-request-id": "r1",
        "x-ratelimit-limit-requests": "100",
        "x-ratelimit-remaining-requests": "99",
        "x-ratelimit-reset-requests": "1m6.5s",
        "anthropic-ratelimit-input-tokens-remaining": "7",
        "anthropic-ratelimit-input-tokens-reset": "2020-01-01T00:00:00Z",
    }
    server.queue(Recording(Recording.of_events(CHAT).pieces, headers=headers))
    with chat_model(server) as model, model.stream_sync("Hello") as stream:
        before = stream.response
        stream.final_message()
    assert before is None
    response = stream.response
    assert response is not None
    assert (response.status, response.request_id) == (200, "r1")
    limits = response.rate_limits
    assert (limits["requests"].limit, limits["requests"].remaining) == (100, 99)
    assert limits["requests"].reset_after == 66.5
    assert (limits["input-tokens"].remaining, limits["input-tokens"].reset_after) == (7, 0.0)


def test_a_rate_limit_that_is_no_number_is_unknown(server: ReplayServer) -> None:
    headers = {
        "content-type": "text/event-stream",
        "x-ratelimit-limit-requests": "9" * 5000,
        "x-ratelimit-remaining-requests": "-1",
        "x-ratelimit-reset-requests": "9" * 5000 + "h",
        "anthropic-ratelimit-tokens-reset": "99999-01-01T00:00:00Z",
        "anthropic-ratelimit-requests-reset": "0001-01-01T00:00:00+23:59",
    }
    server.queue(Recording(Recording.of_events(CHAT).pieces, headers=headers))
    with chat_model(server) as model, model.stream_sync("Hello") as stream:
        stream.final_message()
    assert stream.response is not None
    limits = stream.response.rate_limits
    assert limits["tokens"] == RateLimit()
    assert (limits["requests"].limit, limits["requests"].remaining) == (None, None)
    assert limits["requests"].reset_after in {None, 0.0}  # two headers say it


def test_a_stream_shows_usage_cost_and_time_while_it_runs(server: ReplayServer) -> None:
    with chat_model(server) as model, model.stream_sync("Hello") as stream:
        before = stream.timing
        next(stream.batches())
        running = stream.timing
        stream.final_message()
        ended = stream.timing
    assert before.duration is None
    assert running.time_to_first_byte is not None
    assert running.duration is not None
    assert ended.duration is not None
    assert ended.duration == stream.timing.duration
    assert ended.time_to_first_text is not None
    assert stream.usage is not None
    assert stream.cost_usd is None
    assert stream.cost_source is None


def test_a_timer_tells_gaps_by_class_and_the_longest_exactly() -> None:
    second = 1_000_000_000
    instants = itertools.accumulate([0, second, second, second, 10 * second, second])
    timer = StreamTimer(lambda: next(instants))
    timer.start()
    timer.read(0)  # at 1 s, no delta yet
    timer.read(1)  # at 2 s
    timer.read(2)  # at 3 s
    timer.text_came()
    timer.read(1)  # at 13 s
    timer.end()  # at 14 s
    timing = timing_of(timer.times(), output_tokens=22)
    assert (timing.time_to_first_byte, timing.time_to_first_delta) == (1.0, 2.0)
    assert (timing.time_to_first_text, timing.duration) == (3.0, 14.0)
    assert (timing.gaps.count, timing.gaps.max) == (2, 10.0)
    assert timing.gaps.p50 == pytest.approx(1.0, rel=0.07)
    assert timing.gaps.p95 == pytest.approx(10.0, rel=0.07)
    assert timing.tokens_per_second == 2.0


@pytest.mark.parametrize("gap", [0, 1, 7, 8, 9, 1_000, 12_345, 999_999_999, 10**12])
def test_a_gap_of_any_length_is_told_within_its_class(gap: int) -> None:
    instants = itertools.accumulate([0, 1, gap, gap, 10 * gap + 1, 0])
    timer = StreamTimer(lambda: next(instants))
    timer.start()
    for _ in range(4):
        timer.read(1)
    gaps = timing_of(timer.times(), None).gaps
    assert gaps.count == 3
    assert gaps.p50 == pytest.approx(gap / 1e9, rel=0.07, abs=4e-9)
    assert gaps.max == (10 * gap + 1) / 1e9


def test_a_providers_own_body_goes_out_as_it_is(server: ReplayServer) -> None:
    body = {"model": "other", "messages": [], "stream": True, "strange": [1]}
    with chat_model(server) as model, model.stream_request_sync(body) as stream:
        assert stream.final_message().text
    assert server.requests[0].json() == body

    async def main() -> None:
        async with chat_model(server) as model, model.stream_request(body) as stream:
            await stream.final_message()

    asyncio.run(main())
    assert server.requests[1].json() == body


WHOLE = (
    b'{"id":"r","model":"m-1","choices":[{"message":{"role":"assistant","content":"Hello"},'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"cost":0.5}}'
)


def send(server: ReplayServer, way: str, **arguments: Any) -> Message:  # noqa: ANN401
    model = chat_model(server)
    if way == "synchronous":
        with model:
            return model.send_message_sync("Hello", output=None, **arguments)

    async def main() -> Message:
        async with model:
            return await model.send_message("Hello", output=None, **arguments)

    return asyncio.run(main())


@WAYS
@pytest.mark.parametrize("first", ["to_json", "to_dict", "copy", "meta", "parts"])
def test_the_facts_of_a_call_are_in_its_message_however_it_is_read(
    way: str, first: str, server: ReplayServer
) -> None:
    server.queue(Recording.of(WHOLE))
    message = send(server, way, stream=False)
    if first == "copy":
        message = message.model_copy(deep=True)
    elif first in {"meta", "parts"}:
        getattr(message, first)
    else:
        getattr(message, first)()
    meta = json.loads(message.to_json())["meta"]
    assert (meta["costUsd"], meta["costSource"]) == (0.5, "provider")
    assert meta["durationMs"] == message.meta.duration_ms
    assert meta["durationMs"] > 0
    assert Message.from_json(message.to_json()) == message


@WAYS
def test_a_whole_message_knows_its_response_cost_and_duration(
    way: str, server: ReplayServer
) -> None:
    server.queue(Recording.of(WHOLE))
    message = send(server, way, stream=False)
    assert (message.text, message.meta.response_id) == ("Hello", "r")
    assert (message.meta.cost_usd, message.meta.cost_source) == (0.5, "provider")
    assert message.meta.duration_ms is not None
    body: Any = server.requests[0].json()
    assert not body.get("stream")
    assert "stream_options" not in body


@WAYS
def test_a_failure_raises_or_is_a_message_that_says_so(way: str, server: ReplayServer) -> None:
    refusal = Recording.error(429, {"error": {"message": "slow down"}})
    server.queue(refusal, refusal)
    with pytest.raises(ModelError) as raised:
        send(server, way)
    assert raised.value.code is ErrorCode.RATE_LIMITED
    assert raised.value.body is not None
    assert "slow down" in raised.value.body
    message = send(server, way, on_error="message")
    assert message.meta.is_api_error_message
    assert "slow down" in message.text
    with pytest.raises(MisuseError, match="on_error"):
        send(server, way, on_error="ignore")


def chunk(**delta: object) -> bytes:
    return json.dumps({"id": "r", "model": "m", "choices": [{"delta": delta}]}).encode()


@WAYS
def test_a_refusal_that_breaks_off_is_the_refusal(way: str, server: ReplayServer) -> None:
    refusal = Recording.error(429, {"error": {"message": "slow down"}}, {"retry-after": "3"})
    server.queue(refusal.stopping("reset", 10))
    with pytest.raises(ModelError) as raised:
        send(server, way)
    error = raised.value
    assert (error.code, error.status) == (ErrorCode.RATE_LIMITED, 429)
    assert error.retry_after == 3.0


CALLS = b"".join(
    b"data: " + line + b"\n\n"
    for line in (
        chunk(reasoning_content="hm"),
        chunk(content="Hel"),
        chunk(content="lo"),
        chunk(
            tool_calls=[{"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a":'}}]
        ),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]),
        (
            b'{"id":"r","model":"m","choices":[{"delta":{},"finish_reason":"tool_calls"}],'
            b'"usage":{"prompt_tokens":1,"completion_tokens":2}}'
        ),
        b"[DONE]",
    )
)
EVENTS = [
    ("message_start", None, None),
    ("part_start", 0, None),
    ("part_delta", 0, "hm"),
    ("part_stop", 0, "hm"),
    ("part_start", 1, None),
    ("part_delta", 1, "Hel"),
    ("part_delta", 1, "lo"),
    ("part_stop", 1, "Hello"),
    ("part_start", 2, None),
    ("part_delta", 2, '{"a":'),
    ("part_delta", 2, "1}"),
    ("usage", None, None),
    ("part_stop", 2, '{"a":1}'),
    ("tool_use", 2, None),
    ("message_stop", None, None),
]


@WAYS
def test_events_tell_parts_that_begin_grow_and_end(way: str, server: ReplayServer) -> None:
    server.queue(Recording.of_events(CALLS))
    if way == "synchronous":
        with chat_model(server) as model, model.stream_message_sync("Hello") as events:
            seen = list(events)
            message = events.final_message()
    else:

        async def main() -> Any:  # noqa: ANN401 - two values
            async with chat_model(server) as model, model.stream_message("Hello") as events:
                return [event async for event in events], await events.final_message()

        seen, message = asyncio.run(main())
    assert [(event.kind, event.part_index, event.text) for event in seen] == EVENTS
    call = next(event.tool_call for event in seen if event.tool_call is not None)
    assert call == message.tool_calls[0]
    last = seen[-1]
    assert last.finish_reason == "tool_calls"
    assert last.message is not None
    assert last.message.parts == message.parts
    assert message.meta.duration_ms is not None


def test_a_failed_stream_tells_its_error_as_the_last_event(server: ReplayServer) -> None:
    server.queue(Recording.of_events(CALLS).stopping("cut", 200))
    with chat_model(server) as model, model.stream_message_sync("Hello") as events:
        seen = list(events)
    assert seen[-1].kind == "error"
    assert seen[-1].error is not None
    assert seen[-1].error.code is ErrorCode.CONNECTION_LOST
    assert seen[-1].error.partial_message is not None


def test_markup_makes_calls_of_text_and_knows_the_tools(server: ReplayServer) -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    server.queue(Recording.of_events(chat(text)))
    model = deltafold.load_model(
        "vllm/qwen", specification="openai-chat+hermes", base_url=f"{server.url}/v1"
    )
    tool = ToolSpec(name="f", parameter_schema={"type": "object", "properties": {}})
    with model, model.stream_sync("Hello", [tool]) as stream:
        message = stream.final_message()
    assert [(call.tool_name, call.arguments) for call in message.tool_calls] == [("f", {"a": 1})]
    assert model.model_info().specification == "openai-chat+hermes"


def broken_history() -> list[Message]:
    """A call that never got its result."""
    call = ToolCallPart(tool_call_id="c1", tool_name="f", arguments={})
    return [Message.user("Hello"), Message.assistant(call), Message.user("And?")]


def test_a_broken_history_is_told_of_and_mended_only_where_that_is_asked_for(
    server: ReplayServer,
) -> None:
    with chat_model(server) as model:
        told = model.send_message_sync(broken_history())
        mended = model.send_message_sync(broken_history(), repair="auto")
    for message in (told, mended):
        assert "orphan_call" in [warning["code"] for warning in message.meta.warnings]
    bodies: list[Any] = [request.json() for request in server.requests]
    roles = [[turn["role"] for turn in body["messages"]] for body in bodies]
    assert roles[1] == ["user", "assistant", "tool", "user"]
    assert "tool" not in roles[0]


def test_a_strict_call_raises_for_a_broken_history_before_anything_is_sent(
    server: ReplayServer,
) -> None:
    with chat_model(server) as model:
        with pytest.raises(HistoryError, match=r"messages\[1\]") as raised:
            model.stream_sync(broken_history(), strict=True)
        assert [str(code) for code in raised.value.report.codes] == ["orphan_call"]
        with pytest.raises(MisuseError, match="repair"):
            model.stream_sync("Hello", repair="always")  # type: ignore[call-overload]
        model.stream_sync("Hello", strict=True).close()
    assert server.requests == []


def test_a_tool_that_had_to_be_renamed_is_called_by_its_own_name(server: ReplayServer) -> None:
    with chat_model(server) as model:
        tool = ToolSpec(name="look up: weather")
        model.send_message_sync("Hello", [tool])
        body: Any = server.requests[0].json()
        renamed = body["tools"][0]["function"]["name"]
        assert renamed != tool.name
        call = {"index": 0, "id": "c1", "function": {"name": renamed, "arguments": "{}"}}
        said = b"data: " + chunk(tool_calls=[call]) + b"\n\n"
        end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
        server.queue(Recording.of(said + end + b"data: [DONE]\n\n"))
        message = model.send_message_sync("Hello", [tool])
    assert [call.tool_name for call in message.tool_calls] == [tool.name]


@pytest.mark.parametrize(
    ("name", "specification", "expected"),
    [
        ("anthropic/claude", None, ("anthropic", "anthropic-messages", "claude")),
        ("openai/gpt", None, ("openai", "openai-chat", "gpt")),
        ("openai/gpt", "responses", ("openai", "openai-responses", "gpt")),
        ("openrouter/a/b:free", None, ("openrouter", "openai-chat", "a/b:free")),
        ("deepseek/d", "anthropic-messages", ("deepseek", "anthropic-messages", "d")),
        ("qwen/q", "openai-chat+qwen-xml", ("dashscope", "openai-chat+qwen-xml", "q")),
        ("gemini/g", None, ("google", "gemini", "g")),
        ("mistral/m", None, ("mistral", "mistral", "m")),
    ],
)
def test_a_name_picks_adapter_vendor_and_specification(
    name: str, specification: str | None, expected: tuple[str, str, str]
) -> None:
    model = deltafold.load_model(name, specification=specification, temperature=0.5)
    info = model.model_info()
    assert (info.provider_id, info.specification, info.model_id) == expected
    assert model.get_config().temperature == 0.5


@pytest.mark.parametrize(
    ("name", "specification", "match"),
    [
        ("some-model", None, "names no vendor.*openrouter/some-model"),
        ("anthropic/", None, "a vendor, a slash and a model"),
        ("antropic/claude", None, "did you mean 'anthropic'"),
        ("sglang/qwen", None, "write vllm/qwen and its base_url; there are anthropic, "),
        ("anthropic/claude", "gemini", "anthropic speaks anthropic-messages"),
        ("openai/gpt", "openai-chat+klingon", "klingon"),
    ],
)
def test_a_name_that_means_nothing_is_an_error_that_says_what_there_is(
    name: str, specification: str | None, match: str
) -> None:
    with pytest.raises((MisuseError, ValueError), match=match):
        deltafold.load_model(name, specification=specification)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"messages": 1}, r"messages\[0\] must be a message, .*not a int"),
        ({"messages": [1]}, r"messages\[0\] must be a message, .*not a int"),
        ({"messages": ToolSpec(name="f")}, r"messages\[0\] .*not a ToolSpec"),
        ({"messages": [{"role": "nobody"}]}, "role"),
        ({"messages": "x", "tool_specs": [{"name": "f"}, {"name": "f"}]}, "have the name 'f'"),
        ({"messages": "x", "system_prompt_content": "x"}, "system_prompt_content"),
        ({"messages": "x", "request_metadata": {"run": "r"}}, "run"),
        ({"messages": "x", "tool_choice": "sometimes"}, "tool_choice"),
    ],
)
def test_a_wrong_argument_raises_at_the_call_and_names_itself(
    arguments: dict[str, Any], match: str
) -> None:
    model = OpenAIChatModel({"model_id": "m"}, api_key="key")
    with pytest.raises((MisuseError, ValueError), match=match):
        model.stream_sync(**arguments)
    with pytest.raises((MisuseError, ValueError), match=match):
        model.stream(**arguments)


def test_wrong_construction_raises_at_once() -> None:
    with pytest.raises(TypeError, match="config"):
        OpenAIChatModel("m")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="error_mapper"):
        OpenAIChatModel({"model_id": "m"}, error_mapper=1)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="client"):
        OpenAIChatModel({"model_id": "m"}, client=object())
    with pytest.raises(MisuseError, match="no SDK that gives bytes"):
        deltafold.GeminiModel({"model_id": "m"}, transport="sdk")
    with pytest.raises(ValueError, match="model_id"):
        OpenAIChatModel({})


def test_get_config_is_a_copy() -> None:
    model = AnthropicModel({"model_id": "m", "extra_body": {"a": 1}})
    config = model.get_config()
    config.extra_body["a"] = 2  # type: ignore[index]
    assert model.get_config().extra_body == {"a": 1}


def test_the_key_travels_in_the_protocols_own_header(server: ReplayServer) -> None:
    with chat_model(server) as model:
        model.send_message_sync("Hello")
    with AnthropicModel({"model_id": "m"}, base_url=server.url, api_key="secret") as other:
        other.send_message_sync("Hello")
    chat_request, messages_request = server.requests
    assert chat_request.headers["authorization"] == "Bearer secret"
    assert messages_request.headers["x-api-key"] == "secret"
    assert messages_request.headers["anthropic-version"] == "2023-06-01"


def test_a_plain_client_brings_its_own_headers(server: ReplayServer) -> None:
    with httpx.Client(headers={"authorization": "Bearer mine"}) as client:
        model = OpenAIChatModel({"model_id": "m"}, client=client, base_url=f"{server.url}/v1")
        model.send_message_sync("Hello")
    assert server.requests[0].headers["authorization"] == "Bearer mine"
