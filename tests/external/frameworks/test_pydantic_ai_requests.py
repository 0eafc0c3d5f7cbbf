"""The adapter of pydantic-ai: what a history and settings of the framework become in a request."""

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.native_tools import CodeExecutionTool, WebSearchTool
from pydantic_ai.settings import ModelSettings, ToolOrOutput
from pydantic_ai.tools import ToolDefinition
from pydantic_ai_transcripts import streamed
from served import NAMES, cases, folded, model, recording, served

from deltafold.dialects import DIALECTS
from deltafold.integrations.pydantic_ai import DeltafoldModel, DeltafoldModelSettings
from deltafold.integrations.pydantic_ai.history import conversation_of
from deltafold.message.messages import Message
from deltafold.testing import answer

PNG = b"\x89PNG\r\n"
Body = dict[str, Any]


def is_whole(message: Message) -> bool:
    """Return whether the framework keeps all of an answer: it stores no text of a refusal."""
    return not any(getattr(part, "refusal", False) for part in message.parts)


@pytest.mark.parametrize("dialect", list(NAMES))
async def test_an_answer_goes_back_as_it_was_received(dialect: str) -> None:
    row = DIALECTS[dialect]
    config = row.config_class.model_validate({"model_id": NAMES[dialect]})
    checked = 0
    for case in cases(dialect):
        message = folded(dialect, case)
        if message is None or not is_whole(message):
            continue
        with served(recording(dialect, case)) as server:
            _, response = await streamed(DeltafoldModel(model(dialect, server)))
        stored = ModelMessagesTypeAdapter.dump_json([response])
        history = ModelMessagesTypeAdapter.validate_json(stored)
        provider = DIALECTS[dialect].author
        back = await conversation_of(history, [], dialect=dialect, provider_name=provider)
        question = Message.user("Hi")
        expected = row.render([question, message, question], [], config).body
        found = row.render([question, *back, question], [], config).body
        assert without_made_up_ids(found) == without_made_up_ids(expected), case
        checked += 1
    assert checked > 20


def without_made_up_ids(body: object) -> str:
    """Return a body as text; ids that a run made up differ in each run."""
    return re.sub(r"call_[0-9a-f]{16}", "made up", json.dumps(body, sort_keys=True, indent=1))


async def body_of(dialect: str, messages: list[Any], **options: Any) -> Body:
    """Return the body of the request for a history."""
    config = options.pop("config", {})
    settings = options.pop("settings", None)
    with served(answer(dialect, "Yes.")) as server:
        adapter = DeltafoldModel(model(dialect, server, **config))
        prepared = adapter.prepare_messages(messages)
        parameters = ModelRequestParameters(**options)
        async with adapter.request_stream(prepared, settings, parameters) as stream:
            async for _ in stream:
                pass
        return server.requests[0].json()


def asked(*content: Any) -> list[Any]:
    return [ModelRequest(parts=[UserPromptPart(list(content))])]


async def test_the_history_of_the_own_model_keeps_its_signatures() -> None:
    thinking = ThinkingPart("Hm.", signature="c2ln", provider_name="anthropic")
    redacted = ThinkingPart(
        "", id="redacted_thinking", signature="ZGF0YQ==", provider_name="anthropic"
    )
    call = ToolCallPart("weather", {"city": "Oslo"}, tool_call_id="call_1")
    result = ToolReturnPart("weather", "Rain.", tool_call_id="call_1")
    messages = [
        *asked("Hi"),
        ModelResponse(parts=[thinking, redacted, call], provider_name="anthropic"),
        ModelRequest(parts=[result]),
    ]
    body = await body_of("anthropic-messages", messages)
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}},
    ]


async def test_signatures_of_another_provider_are_not_sent() -> None:
    thinking = ThinkingPart("Hm.", signature="c2ln", provider_name="google")
    messages = [*asked("Hi"), ModelResponse(parts=[thinking], provider_name="google"), *asked("?")]
    assert "c2ln" not in json.dumps(await body_of("anthropic-messages", messages))


async def test_encrypted_reasoning_of_the_own_model_goes_back() -> None:
    thinking = ThinkingPart("Hm.", id="rs_1", signature="gAAA", provider_name="openai")
    answer_text = ToolCallPart("f", "{}", tool_call_id="call_1")
    messages = [
        *asked("Hi"),
        ModelResponse(parts=[thinking, answer_text], provider_name="openai"),
        ModelRequest(parts=[ToolReturnPart("f", "ok", tool_call_id="call_1")]),
    ]
    body = await body_of("openai-responses", messages)
    reasoning = [item for item in body["input"] if item.get("type") == "reasoning"]
    assert [item["encrypted_content"] for item in reasoning] == ["gAAA"]


async def test_cache_points_become_marks() -> None:
    messages = asked("A long text.", CachePoint(ttl="1h"), "A question.")
    body = await body_of("anthropic-messages", messages)
    content = body["messages"][0]["content"]
    assert content[0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in content[1]


async def test_a_cache_point_behind_results_marks_the_last_result() -> None:
    call = ToolCallPart("f", {}, tool_call_id="call_1")
    messages = [
        *asked("Hi"),
        ModelResponse(parts=[call]),
        ModelRequest(
            parts=[
                ToolReturnPart("f", "ok", tool_call_id="call_1"),
                UserPromptPart([CachePoint(), "Go on."]),
            ]
        ),
    ]
    body = await body_of("anthropic-messages", messages)
    results = body["messages"][-1]["content"]
    assert results[0]["cache_control"] == {"type": "ephemeral", "ttl": "5m"}


async def test_images_and_files_of_the_user_are_sent() -> None:
    image = BinaryContent(PNG, media_type="image/png")
    pdf = BinaryContent(b"%PDF-", media_type="application/pdf")
    url = ImageUrl("https://example.com/tide.png")
    body = await body_of("anthropic-messages", asked("Look:", image, url, pdf))
    kinds = [
        (block["type"], (block.get("source") or {}).get("type"))
        for block in body["messages"][0]["content"]
    ]
    assert kinds == [
        ("text", None),
        ("image", "base64"),
        ("image", "url"),
        ("document", "base64"),
    ]


async def test_an_image_of_a_tool_is_sent() -> None:
    call = ToolCallPart("look", {}, tool_call_id="call_1")
    image = BinaryContent(PNG, media_type="image/png")
    messages = [
        *asked("Hi"),
        ModelResponse(parts=[call]),
        ModelRequest(parts=[ToolReturnPart("look", ["A chart:", image], tool_call_id="call_1")]),
    ]
    body = await body_of("anthropic-messages", messages)
    result = body["messages"][-1]["content"][0]
    assert [block["type"] for block in result["content"]] == ["text", "image"]
    chat = await body_of("openai-chat", messages)
    assert "image_url" in json.dumps(chat["messages"][-1])


async def test_a_failed_result_is_marked_where_the_api_can() -> None:
    call = ToolCallPart("f", {}, tool_call_id="call_1")
    failed = ToolReturnPart("f", "no such file", tool_call_id="call_1", outcome="failed")
    messages = [*asked("Hi"), ModelResponse(parts=[call]), ModelRequest(parts=[failed])]
    claude = (await body_of("anthropic-messages", messages))["messages"][-1]["content"][0]
    assert (claude["is_error"], claude["content"]) == (True, "no such file")
    chat = (await body_of("openai-chat", messages))["messages"][-1]
    assert "error" in chat["content"]


async def test_a_part_that_was_not_prepared_is_refused() -> None:
    feedback = RetryFeedbackPart("Again.", retry=RetryInfo("model_retry"))
    with pytest.raises(UserError, match="prepare_messages"):
        await conversation_of(
            [ModelRequest(parts=[feedback])], [], dialect="openai-chat", provider_name="openai"
        )


SETTINGS = ModelSettings(
    max_tokens=100,
    temperature=0.5,
    top_p=0.9,
    stop_sequences=["END"],
    parallel_tool_calls=False,
    seed=7,
    logit_bias={"50256": -100},
    extra_headers={"x-team": "tides"},
    extra_body={"custom": 1},
)


async def test_settings_are_sent() -> None:
    body = await body_of("openai-chat", asked("Hi"), settings=SETTINGS)
    expected = {
        "max_completion_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 7,
        "logit_bias": {"50256": -100},
        "custom": 1,
    }
    assert {name: body[name] for name in expected} == expected
    assert "top_k" not in body


async def test_the_service_tier_has_the_name_of_the_api() -> None:
    settings = ModelSettings(service_tier="default")
    body = await body_of("anthropic-messages", asked("Hi"), settings=settings)
    assert body["service_tier"] == "standard_only"
    settings = ModelSettings(service_tier="flex")
    assert "service_tier" not in await body_of("anthropic-messages", asked("Hi"), settings=settings)
    assert (await body_of("openai-chat", asked("Hi"), settings=settings))["service_tier"] == "flex"


async def test_a_setting_that_the_dialect_does_not_have_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="parallel_tool_calls"):
        await body_of(
            "gemini",
            asked("Hi"),
            settings=ModelSettings(parallel_tool_calls=False),
            function_tools=TOOLS,
        )


async def test_settings_of_the_framework_replace_those_of_the_deltafold_model() -> None:
    settings = ModelSettings(temperature=0.5)
    config = {"temperature": 1.0, "max_tokens": 9}
    body = await body_of("openai-chat", asked("Hi"), settings=settings, config=config)
    assert (body["temperature"], body["max_completion_tokens"]) == (0.5, 9)


async def test_own_settings_are_fields_of_the_configuration() -> None:
    settings = DeltafoldModelSettings(deltafold={"thinking": {"type": "adaptive"}, "top_k": 5})
    body = await body_of("anthropic-messages", asked("Hi"), settings=settings)
    assert (body["thinking"], body["top_k"]) == ({"type": "adaptive"}, 5)


@pytest.mark.parametrize(("level", "effort"), [("high", "high"), (True, "medium"), ("low", "low")])
async def test_thinking_is_the_effort_of_the_api(level: Any, effort: str) -> None:
    settings = ModelSettings(thinking=level)
    body = await body_of("openai-chat", asked("Hi"), settings=settings)
    assert body["reasoning_effort"] == effort


async def test_the_cache_setting_is_sent() -> None:
    body = await body_of("anthropic-messages", asked("Hi"), settings=ModelSettings(cache="1h"))
    assert body["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


class City(BaseModel):
    """A city."""

    name: str


def agent_body(dialect: str, output: Any, content: str | tuple[Any, ...]) -> tuple[Body, Any]:
    """Return the body that an agent with an output type sends, and its output."""
    with served(answer(dialect, content)) as server:
        agent = Agent(DeltafoldModel(model(dialect, server)), output_type=output)
        result = agent.run_sync("Where?")
        return server.requests[0].json(), result.output


def test_an_output_tool_is_forced() -> None:
    call = ("call_1", "final_result", {"name": "Oslo"})
    body, output = agent_body("openai-chat", ToolOutput(City), call)
    assert output == City(name="Oslo")
    assert body["tools"][0]["function"]["name"] == "final_result"
    assert body["tool_choice"] == "required"


def test_a_native_output_is_the_schema_of_the_api() -> None:
    body, output = agent_body("openai-chat", NativeOutput(City), '{"name": "Oslo"}')
    assert output == City(name="Oslo")
    schema = body["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"]) == ("City", True)
    body, output = agent_body("anthropic-messages", NativeOutput(City), '{"name": "Oslo"}')
    assert output == City(name="Oslo")
    assert body["output_config"]["format"]["schema"]["properties"].keys() == {"name"}


def test_a_prompted_output_asks_for_json() -> None:
    body, output = agent_body("openai-chat", PromptedOutput(City), '{"name": "Oslo"}')
    assert output == City(name="Oslo")
    assert body["response_format"] == {"type": "json_object"}
    assert "schema" in json.dumps(body["messages"])


TOOLS = [ToolDefinition(name="weather"), ToolDefinition(name="clock")]


async def test_the_choice_of_a_tool_is_sent() -> None:
    async def choice(dialect: str, chosen: Any) -> Body:
        settings = ModelSettings(tool_choice=chosen)
        return await body_of(dialect, asked("Hi"), settings=settings, function_tools=TOOLS)

    clock = {"type": "function", "function": {"name": "clock"}}
    assert (await choice("openai-chat", ["clock"]))["tool_choice"] == clock
    assert (await choice("openai-chat", "none"))["tool_choice"] == "none"
    assert (await choice("openai-chat", "required"))["tool_choice"] == "required"
    assert "tool_choice" not in await choice("openai-chat", "auto")
    some = await choice("openai-chat", ToolOrOutput(["clock"]))
    assert some["tool_choice"]["allowed_tools"] == {"mode": "auto", "tools": [clock]}
    claude = await choice("anthropic-messages", ToolOrOutput(["clock"]))
    assert [tool["name"] for tool in claude["tools"]] == ["clock"]


def native_body(dialect: str, *tools: Any) -> Body:
    with served(answer(dialect, "Done.")) as server:
        capabilities = [NativeTool(tool) for tool in tools]
        agent = Agent(DeltafoldModel(model(dialect, server)), capabilities=capabilities)
        agent.run_sync("Hi")
        request = server.requests[0]
        return {**request.json(), "beta": request.headers.get("anthropic-beta")}


def test_native_tools_are_sent_in_the_form_of_the_api() -> None:
    search = WebSearchTool(allowed_domains=["example.com"], max_uses=2)
    claude = native_body("anthropic-messages", search, CodeExecutionTool())
    assert claude["tools"] == [
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "max_uses": 2,
            "allowed_domains": ["example.com"],
        },
        {"type": "code_execution_20250825", "name": "code_execution"},
    ]
    assert claude["beta"] == "code-execution-2025-08-25"
    openai = native_body("openai-responses", WebSearchTool(allowed_domains=["example.com"]))
    assert openai["tools"][0]["filters"] == {"allowed_domains": ["example.com"]}
    assert native_body("gemini", WebSearchTool())["tools"] == [{"google_search": {}}]


def test_a_native_tool_that_the_api_does_not_have_is_refused() -> None:
    with pytest.raises(UserError, match=r"(?i)not supported"):
        native_body("openai-chat", WebSearchTool())


def test_a_setting_that_nobody_applies_is_warned_of() -> None:
    with served(answer("openai-chat", "Done.")) as server:
        agent = Agent(DeltafoldModel(model("openai-chat", server)))
        with pytest.warns(UserWarning, match="timeout"):
            agent.run_sync("Hi", model_settings=ModelSettings(timeout=5))
