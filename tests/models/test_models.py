"""Models over real HTTP on the loopback interface, through the real SDK clients, both kinds."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import anthropic
import anyio
import openai
import pytest
from pydantic import ValidationError

import deltafold
from any_name import AnyName
from deltafold import (
    AnthropicConfig,
    AnthropicModel,
    CacheConfig,
    Capability,
    ErrorCode,
    Message,
    MisuseError,
    Model,
    ModelConfig,
    ModelError,
    OpenAIChatModel,
    ToolChoice,
    ToolSpec,
)
from deltafold.testing import Ending, Recording, ReplayServer
from replay_servers import wait_until_closed
from wires import ANTHROPIC, ANTHROPIC_CUT, CHAT, CHAT_ERROR, WHOLE, chat

T = TypeVar("T")
Outcome = Message | ModelError

MODELS: dict[str, type[Model[Any]]] = {
    "anthropic-messages": AnthropicModel,
    "openai-chat": OpenAIChatModel,
}
DIALECTS = list(MODELS)
WAYS = ["synchronous", "asynchronous"]

both_dialects = pytest.mark.parametrize("dialect", DIALECTS)
both_ways = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    paths = {
        "/v1/messages": Recording.of_events(ANTHROPIC),
        "/v1/chat/completions": Recording.of_events(CHAT),
    }
    with ReplayServer(paths) as replay:
        yield replay
        wait_until_closed(replay)


def client_of(dialect: str, way: str, url: str) -> Any:  # noqa: ANN401 - four unrelated classes
    if dialect == "anthropic-messages":
        make = anthropic.Anthropic if way == "synchronous" else anthropic.AsyncAnthropic
        return make(base_url=url, api_key="key", max_retries=0)
    chat_client = openai.OpenAI if way == "synchronous" else openai.AsyncOpenAI
    return chat_client(base_url=f"{url}/v1", api_key="key", max_retries=0)


def model_of(dialect: str, way: str, url: str) -> Model[Any]:
    return MODELS[dialect]({"model_id": "m"}, client=client_of(dialect, way, url))


def ask(dialect: str, way: str, url: str, **arguments: Any) -> tuple[list[str], Outcome]:  # noqa: ANN401
    """Ask "Hello"; returns the kinds of all deltas, and the message or the error."""
    if way == "synchronous":
        client = client_of(dialect, way, url)
        with (
            client,
            MODELS[dialect]({"model_id": "m"}, client=client).stream_sync(
                "Hello", **arguments
            ) as stream,
        ):
            kinds = [str(delta.kind) for delta in stream]
            try:
                return kinds, stream.final_message()
            except ModelError as error:
                return kinds, error

    async def main() -> tuple[list[str], Outcome]:
        async with client_of(dialect, way, url) as client:
            model = MODELS[dialect]({"model_id": "m"}, client=client)
            async with model.stream("Hello", **arguments) as stream:
                kinds = [str(delta.kind) async for delta in stream]
                try:
                    return kinds, await stream.final_message()
                except ModelError as error:
                    return kinds, error

    return asyncio.run(main())


@both_dialects
@both_ways
def test_the_message_over_http_is_the_message_of_the_bytes(
    dialect: AnyName, way: str, server: ReplayServer
) -> None:
    kinds, message = ask(dialect, way, server.url, request_metadata={"run_id": "run"})
    assert isinstance(message, Message)
    expected = deltafold.fold(WHOLE[dialect], dialect, run_id="run", model_id="m")
    assert message.same_content(expected)
    assert (kinds[0], kinds[-1]) == ("start", "done")


@both_dialects
@both_ways
@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (401, ErrorCode.AUTHENTICATION, False),
        (403, ErrorCode.PERMISSION, False),
        (404, ErrorCode.NOT_FOUND, False),
        (429, ErrorCode.RATE_LIMITED, True),
        (500, ErrorCode.SERVER_ERROR, True),
        (529, ErrorCode.OVERLOADED, True),
    ],
)
def test_an_http_error_is_an_error_delta_with_its_evidence(
    dialect: str, way: str, status: int, code: ErrorCode, retryable: bool, server: ReplayServer
) -> None:
    headers = {"retry-after": "3", "x-request-id": "r1", "request-id": "r1"}
    server.queue(Recording.error(status, {"error": {"message": "no"}}, headers))
    kinds, error = ask(dialect, way, server.url)
    assert kinds == ["start", "error"]
    assert isinstance(error, ModelError)
    assert (error.code, error.retryable, error.status) == (code, retryable, status)
    assert (error.retry_after, error.http_request_id) == (3.0, "r1")


@both_dialects
@both_ways
def test_a_refused_connection_is_connection_lost(dialect: str, way: str) -> None:
    with ReplayServer() as gone:
        url = gone.url
    kinds, error = ask(dialect, way, url)
    assert kinds == ["start", "error"]
    assert isinstance(error, ModelError)
    assert (error.code, error.retryable) == (ErrorCode.CONNECTION_LOST, True)


@both_dialects
@both_ways
@pytest.mark.parametrize("ending", ["cut", "reset"])
def test_a_connection_that_breaks_keeps_what_came(
    dialect: str,
    way: str,
    ending: Ending,
    server: ReplayServer,
) -> None:
    body = WHOLE[dialect]
    server.queue(Recording.of_events(body).stopping(ending, len(body) // 2))
    kinds, error = ask(dialect, way, server.url)
    assert isinstance(error, ModelError)
    assert error.code is ErrorCode.CONNECTION_LOST
    assert kinds[-1] == "error"
    assert error.partial_message is not None


@pytest.mark.parametrize(
    ("dialect", "body", "code"),
    [
        ("openai-chat", CHAT_ERROR, ErrorCode.OVERLOADED),
        ("anthropic-messages", ANTHROPIC_CUT, ErrorCode.CONNECTION_LOST),
    ],
)
@both_ways
def test_an_error_in_the_stream_keeps_what_came(
    dialect: str, way: str, body: bytes, code: ErrorCode, server: ReplayServer
) -> None:
    server.queue(Recording.of_events(body))
    _, error = ask(dialect, way, server.url)
    assert isinstance(error, ModelError)
    assert error.code is code
    assert error.partial_message is not None
    assert error.partial_message.text


@both_dialects
def test_leaving_a_synchronous_stream_closes_its_connection(
    dialect: str, server: ReplayServer
) -> None:
    body = WHOLE[dialect]
    server.queue(Recording.of_events(body).stopping("stall", len(body) // 2))
    with client_of(dialect, "synchronous", server.url) as client:
        model = MODELS[dialect]({"model_id": "m"}, client=client)
        with model.stream_sync("Hello") as stream:
            for _ in stream.batches():
                if stream.snapshot().parts:
                    break
        assert stream.snapshot().parts


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@both_dialects
def test_cancelling_closes_the_connection_and_keeps_what_came(
    dialect: str, backend: str, server: ReplayServer
) -> None:
    body = WHOLE[dialect]
    server.queue(Recording.of_events(body).stopping("stall", len(body) // 2))

    async def main() -> None:
        async with client_of(dialect, "asynchronous", server.url) as client:
            model = MODELS[dialect]({"model_id": "m"}, client=client)
            stream = model.stream("Hello")
            with anyio.move_on_after(0.5) as scope:
                async with stream:
                    await stream.final_message()
            assert scope.cancelled_caught
            assert stream.status == "error"
            assert stream.snapshot().parts

    anyio.run(main, backend=backend)


@both_dialects
def test_many_streams_run_at_once_on_one_model(dialect: str, server: ReplayServer) -> None:
    async def main() -> list[Message]:
        async with client_of(dialect, "asynchronous", server.url) as client:
            model = MODELS[dialect]({"model_id": "m"}, client=client)
            return await asyncio.gather(*(one(model) for _ in range(20)))

    async def one(model: Model[Any]) -> Message:
        async with model.stream("Hello", request_metadata={"run_id": "run"}) as stream:
            return await stream.final_message()

    messages = asyncio.run(main())
    assert all(message.same_content(messages[0]) for message in messages)


def raw_chat(client: openai.OpenAI) -> Any:  # noqa: ANN401 - classes that the SDK does not export
    return client.chat.completions.with_raw_response.create(
        model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
    )


def parsed_chat(client: openai.OpenAI) -> Any:  # noqa: ANN401 - as above
    return client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
    )


@pytest.mark.parametrize("open_response", [raw_chat, parsed_chat])
def test_stream_takes_what_the_openai_sdk_returns_and_knows_its_dialect(
    open_response: Callable[[openai.OpenAI], Any], server: ReplayServer
) -> None:
    with (
        client_of("openai-chat", "synchronous", server.url) as client,
        deltafold.stream(open_response(client), run_id="run") as stream,
    ):
        message = stream.final_message()
    assert message.same_content(deltafold.fold(CHAT, "openai-chat", run_id="run"))


def test_astream_takes_what_the_anthropic_sdk_returns(server: ReplayServer) -> None:
    async def main() -> Message:
        async with (
            client_of("anthropic-messages", "asynchronous", server.url) as client,
            client.messages.with_streaming_response.create(
                model="m",
                max_tokens=10,
                messages=[{"role": "user", "content": "Hello"}],
                stream=True,
            ) as response,
            deltafold.astream(response, run_id="run") as stream,
        ):
            return await stream.final_message()

    expected = deltafold.fold(ANTHROPIC, "anthropic-messages", run_id="run")
    assert asyncio.run(main()).same_content(expected)


def test_a_response_that_is_of_the_other_kind_is_misuse(server: ReplayServer) -> None:
    with client_of("openai-chat", "synchronous", server.url) as client:
        response = parsed_chat(client)
        with pytest.raises(MisuseError, match=r"use stream\(\)"):
            deltafold.astream(response)
        response.close()


@both_dialects
def test_the_wrong_kind_of_client_raises_at_the_call_and_names_both(dialect: str) -> None:
    url = "http://127.0.0.1:1"
    model = model_of(dialect, "synchronous", url)
    with pytest.raises(
        MisuseError, match="asynchronous client, and this Model has the synchronous"
    ):
        model.stream("Hello")
    model = model_of(dialect, "asynchronous", url)
    with pytest.raises(
        MisuseError, match="synchronous client, and this Model has the asynchronous"
    ):
        model.stream_sync("Hello")


def test_a_client_of_another_sdk_raises_at_construction() -> None:
    client = client_of("openai-chat", "synchronous", "http://127.0.0.1:1")
    with pytest.raises(MisuseError, match="anthropic SDK"):
        AnthropicModel({"model_id": "m"}, client=client)


def test_an_unknown_setting_names_the_nearest_known_one() -> None:
    with pytest.raises(ValidationError, match="did you mean 'temperature'"):
        AnthropicModel({"model_id": "m", "temprature": 1})
    with pytest.raises(ValidationError, match="did you mean 'max_tokens'"):
        AnthropicModel(ModelConfig.model_validate({"model_id": "m", "max_token": 1}))
    model = OpenAIChatModel({"model_id": "m"})
    with pytest.raises(ValidationError, match="did you mean 'seed'"):
        model.stream_sync("Hello", sed=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    with pytest.raises(ValidationError, match="temperature"):
        model.update_config(temperature="hot")


@pytest.mark.parametrize("name", ["kind", "streamed"])
def test_a_setting_named_like_an_argument_of_a_private_method_is_unknown(name: str) -> None:
    model = OpenAIChatModel({"model_id": "m"})
    settings: dict[str, Any] = {name: False, "output": None}
    wrong = f"has no field '{name}'"
    with pytest.raises(ValidationError, match=wrong):
        model.stream_sync("Hello", **settings)
    with pytest.raises(ValidationError, match=wrong):
        model.send_message_sync("Hello", **settings)
    with pytest.raises(ValidationError, match=wrong):
        model.stream_message_sync("Hello", **settings)
    with pytest.raises(ValidationError, match=wrong):
        model.stream_choices("Hello", **settings)


TOOL = ToolSpec(name="weather")


def test_settings_of_the_call_beat_the_config_and_a_stream_keeps_its_own(
    server: ReplayServer,
) -> None:
    with client_of("anthropic-messages", "synchronous", server.url) as client:
        model = AnthropicModel(AnthropicConfig(model_id="m", max_tokens=5), client=client)
        first = model.stream_sync("Hello", [TOOL], max_tokens=7, tool_choice="required")
        model.update_config(max_tokens=9)
        assert model.get_config().max_tokens == 9
        first.final_message()
        model.stream_sync("Hello").final_message()
    bodies: list[Any] = [request.json() for request in server.requests]
    assert [body["max_tokens"] for body in bodies] == [7, 9]
    assert [body.get("tool_choice") for body in bodies] == [{"type": "any"}, None]


def test_extra_headers_and_query_travel_with_the_request(server: ReplayServer) -> None:
    with client_of("openai-chat", "synchronous", server.url) as client:
        config = {"model_id": "m", "extra_headers": {"x-tag": "1"}, "extra_query": {"v": "2"}}
        OpenAIChatModel(config, client=client).stream_sync("Hello").final_message()
    request = server.requests[0]
    assert request.headers["x-tag"] == "1"
    assert request.path.endswith("/chat/completions?v=2")


def test_the_system_prompt_precedes_the_system_messages(server: ReplayServer) -> None:
    with client_of("openai-chat", "synchronous", server.url) as client:
        model = OpenAIChatModel({"model_id": "m"}, client=client)
        history: list[Message | dict[str, object]] = [
            Message.system("third"),
            Message.user("Hello").to_dict(),
        ]
        model.stream_sync(
            history, system_prompt="beaten", system_prompt_content=["first ", {"text": "second"}]
        ).final_message()
    body: Any = server.requests[0].json()
    said = [(message["role"], message["content"]) for message in body["messages"]]
    texts = [{"type": "text", "text": "first "}, {"type": "text", "text": "second"}]
    assert said == [("system", texts), ("system", "third"), ("user", "Hello")]


def test_nothing_is_sent_before_the_stream_is_read(server: ReplayServer) -> None:
    with client_of("openai-chat", "synchronous", server.url) as client:
        model = OpenAIChatModel({"model_id": "m"}, client=client)
        model.stream_sync("Hello").close()
    assert server.requests == []


def test_model_info_and_capabilities_need_no_network() -> None:
    model = OpenAIChatModel({"model_id": "m"}, vendor="deepseek")
    info = model.model_info()
    assert (info.provider_id, info.specification, info.model_id) == ("deepseek", "openai-chat", "m")
    with pytest.raises(ValueError, match="flying"):
        model.supports("flying")


@pytest.mark.parametrize(
    ("model_id", "images", "thinking", "max_output_tokens"),
    [
        ("gpt-4o-2024-08-06", True, False, 16_384),
        ("gpt-5.1-codex", True, True, 128_000),
        ("o3-mini", False, True, 100_000),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", True, True, 32_000),
        ("anthropic/claude-sonnet-4-5", True, True, 64_000),
        ("gemini-2.5-flash-lite", True, True, 65_536),
        ("gpt-3.5-turbo", False, False, 4_096),
        ("gpt-4o-audio-preview", None, False, None),
        ("claude-opus-4-99", True, True, 32_000),
        ("mygpt-4o", None, None, None),
        ("anthropic/claude-opus-4.5", True, True, 64_000),
        ("anthropic/claude-3.7-sonnet:thinking", True, True, 64_000),
        ("claude-sonnet-4-7", True, True, 64_000),
        ("claude-sonnet-4@20250514", True, True, 64_000),
        ("ft:gpt-4o-mini-2024-07-18:team::id", True, False, 16_384),
        ("gpt-5.5", True, True, 128_000),
        ("gpt-5.3-codex-spark", None, None, None),
        ("o1-mini", None, True, None),
        ("o1-preview", None, True, None),
        ("marco-o1", None, None, None),
        ("deepseek-r1-gpt-4o-distill", None, None, None),
        ("m", None, None, None),
    ],
)
def test_capabilities_are_those_of_the_model_or_unknown(
    model_id: str, images: bool | None, thinking: bool | None, max_output_tokens: int | None
) -> None:
    model = OpenAIChatModel({"model_id": model_id}, api_key="k")
    assert model.supports(Capability.IMAGES) is images
    assert model.supports("thinking") is thinking
    info = model.model_info()
    assert info.max_output_tokens == max_output_tokens
    assert (info.capabilities is None) is (images is None and thinking is None)
    assert (Capability.IMAGES in (info.capabilities or ())) is bool(images)


def test_a_protocol_without_a_capability_has_it_for_no_model() -> None:
    model = deltafold.OllamaModel({"model_id": "gpt-oss:20b"})
    assert model.supports(Capability.CACHING) is False
    assert model.supports(Capability.TOOLS) is None


def test_a_vendor_brings_its_defaults_and_wants_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    model = OpenAIChatModel({"model_id": "m"}, vendor="deepseek")
    assert model.get_config().max_tokens_member == "max_tokens"
    with pytest.raises(MisuseError, match="DEEPSEEK_API_KEY"):
        model.stream_sync("Hello")
    with pytest.raises(MisuseError, match="known: alibaba, anthropic, "):
        OpenAIChatModel({"model_id": "m"}, vendor="nobody")
    with pytest.raises(MisuseError, match="speaks openai-chat"):
        AnthropicModel({"model_id": "m"}, vendor="groq")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "key")
    with pytest.raises(MisuseError, match="resource"):
        OpenAIChatModel({"model_id": "m"}, vendor="azure").stream_sync("Hello")


@pytest.mark.parametrize("transport", ["httpx2", "httpx", "sdk"])
def test_a_model_makes_its_own_client_without_retries(
    transport: str, monkeypatch: pytest.MonkeyPatch, server: ReplayServer
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    server.queue(Recording.error(500, {"error": {"message": "no"}}))
    base_url = None if transport == "sdk" else server.url
    model = AnthropicModel({"model_id": "m"}, transport=transport, base_url=base_url)
    with pytest.raises(ModelError):
        model.stream_sync("Hello").final_message()
    assert len(server.requests) == 1
    model.close()

    async def main() -> None:
        async with model.stream("Hello") as stream:
            await stream.final_message()
        await model.aclose()

    asyncio.run(main())
    asyncio.run(main())
    assert len(server.requests) == 3


def test_a_missing_sdk_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with pytest.raises(MisuseError, match=r"pip install 'deltafold\[openai\]'"):
        OpenAIChatModel({"model_id": "m"}, transport="sdk").stream_sync("Hello")


def test_the_cache_config_of_the_model_beats_the_one_of_its_config() -> None:
    config = AnthropicConfig(model_id="m", cache_config=CacheConfig(strategy="none"))
    model = AnthropicModel(config, cache_config=CacheConfig())
    assert model.get_config().cache_config == CacheConfig(strategy="auto")


def test_a_tool_choice_names_a_tool_exactly_when_it_is_one() -> None:
    assert ToolChoice.tool("f") == ToolChoice(mode="tool", name="f")
    assert ToolChoice.model_validate("auto").mode == "auto"
    with pytest.raises(ValidationError):
        ToolChoice(mode="tool")
    with pytest.raises(ValidationError):
        ToolSpec(name="")


def test_a_custom_error_mapper_has_the_last_word(server: ReplayServer) -> None:
    class Patient(deltafold.ErrorMapper):
        def map(self, exception: BaseException) -> Any:  # noqa: ANN401
            fields = super().map(exception)
            return type(fields)(code=ErrorCode.OVERLOADED, message="busy", retryable=True)

    server.queue(Recording.error(418, {"error": {"message": "teapot"}}))
    with client_of("openai-chat", "synchronous", server.url) as client:
        model = OpenAIChatModel({"model_id": "m"}, client=client, error_mapper=Patient())
        with pytest.raises(ModelError) as raised:
            model.stream_sync("Hello").final_message()
    assert (raised.value.code, raised.value.message) == (ErrorCode.OVERLOADED, "busy")


def test_a_stream_of_a_model_shows_text_as_it_comes(server: ReplayServer) -> None:
    server.queue(Recording.of_events(chat("Hel", "lo")))

    async def main() -> list[str]:
        async with client_of("openai-chat", "asynchronous", server.url) as client:
            model = OpenAIChatModel({"model_id": "m"}, client=client)
            async with model.stream("Hello") as stream:
                return [text async for text in stream.text()]

    assert asyncio.run(main()) == ["Hel", "lo"]
