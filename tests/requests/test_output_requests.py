"""Requests for an output: the mechanism of each provider, over HTTP on the loopback interface."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, cast

import pytest
from pydantic import BaseModel

import deltafold
from deltafold import Answer, MisuseError, Model, Output
from deltafold.dialects import DIALECTS
from deltafold.models.adapters import adapter_of
from deltafold.testing import Recording, ReplayServer
from output_bodies import CONTENT_TYPES, MODELS, WRITERS
from recipes import Dish, Recipe, Step
from sdk_types import check

DISH: Final = Dish(title="Süpp", steps=[Step(text="Boil.\n", minutes=3), Step(text="Eat 🥣")])
PIECES: Final = [DISH.model_dump_json()[at : at + 7] for at in range(0, 200, 7)]
TOOL: Final = {"name": "clock", "description": "Return the time."}

every_dialect = pytest.mark.parametrize("dialect", list(DIALECTS))


def model_of(dialect: str, url: str, **settings: object) -> Model[Any]:
    """Return a model that calls a replay."""
    given: dict[str, object] = {"model_id": MODELS.get(dialect, "m"), **settings}
    if dialect == "anthropic-messages":
        given.setdefault("max_tokens", 1000)
    adapter = adapter_of(dialect)
    assert adapter is not None
    return adapter(given, base_url=url, api_key="key")


def answer(dialect: str, tool: str | None = None) -> ReplayServer:
    """Return a server whose every answer is the dish."""
    body = WRITERS[dialect](PIECES, tool)
    recording = Recording.of(body, content_type=CONTENT_TYPES.get(dialect, "text/event-stream"))
    return ReplayServer({"*": recording})


def sent(server: ReplayServer) -> dict[str, Any]:
    """Return the body of the last request."""
    return cast("dict[str, Any]", server.requests[-1].json())


def schema_in(dialect: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401, PLR0911 - JSON, and one case an API
    """Return the schema in a request, from the member of each API."""
    match dialect:
        case "openai-chat" | "mistral":
            assert body["response_format"]["type"] == "json_schema"
            return body["response_format"]["json_schema"]["schema"]
        case "openai-responses":
            assert body["text"]["format"]["type"] == "json_schema"
            return body["text"]["format"]["schema"]
        case "anthropic-messages":
            assert body["output_config"]["format"]["type"] == "json_schema"
            return body["output_config"]["format"]["schema"]
        case "bedrock-converse":
            structure = body["outputConfig"]["textFormat"]["structure"]
            return json.loads(structure["jsonSchema"]["schema"])
        case "gemini":
            assert body["generationConfig"]["responseMimeType"] == "application/json"
            return body["generationConfig"]["responseJsonSchema"]
        case "ollama":
            return body["format"]
        case _:
            return body["response_format"]["json_schema"]


def tools_in(body: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools of a request."""
    given: Any = body.get("tools") or body.get("toolConfig", {}).get("tools", [])
    tools = [one for tool in given for one in tool.get("functionDeclarations", [tool])]
    return [(one.get("function") or one.get("toolSpec") or one)["name"] for one in tools]


@every_dialect
def test_the_schema_of_each_api_gives_the_output(dialect: str) -> None:
    with answer(dialect) as server:
        model = model_of(dialect, server.url)
        with model, model.stream_sync("A dish.", output=Dish) as stream:
            last: object = None
            for _ in stream:
                last = dict(stream.partial)
            assert stream.final_output() == DISH
            message = stream.final_message()
        body = sent(server)
    check(dialect, body)
    assert last == json.loads(DISH.model_dump_json())
    assert message.meta.warnings == []
    schema = schema_in(dialect, body)
    assert list(schema["properties"]) == ["title", "serves", "level", "steps"]
    assert tools_in(body) == []


@every_dialect
def test_the_arguments_of_a_forced_call_give_the_output(dialect: str) -> None:
    output = Output(Dish, mode="tool")

    async def ask(url: str) -> Answer[Dish]:
        async with model_of(dialect, url) as model:
            async with model.stream("A dish.", output=output) as stream:
                async for _ in stream:
                    assert isinstance(stream.partial, dict)
                assert stream.partial == json.loads(DISH.model_dump_json())
                assert await stream.final_output() == DISH
            return await model.send_message("A dish.", [TOOL], output=output)

    with answer(dialect, "Dish") as server:
        got = asyncio.run(ask(server.url))
        first, second = (cast("dict[str, Any]", request.json()) for request in server.requests)
    assert got.output == DISH
    assert [call.tool_name for call in got.message.tool_calls] == ["Dish"]
    assert got.message.meta.warnings == []
    check(dialect, first)
    check(dialect, second)
    assert (tools_in(first), tools_in(second)) == (["Dish"], ["clock", "Dish"])
    choice = first.get("tool_choice") or first.get("toolConfig") or "none"
    assert (dialect == "ollama") == (choice == "none")  # Ollama has no choice of tools


@every_dialect
def test_a_whole_answer_has_the_output(dialect: str) -> None:
    with answer(dialect) as server, model_of(dialect, server.url) as model:
        got = model.send_message_sync("A dish.", output=Dish)
    assert (got.output, got.message.text) == (DISH, DISH.model_dump_json())


@pytest.mark.parametrize(
    ("dialect", "model_id", "tools", "is_tool"),
    [
        ("anthropic-messages", "claude-3-7-sonnet-latest", [], True),
        ("anthropic-messages", "claude-opus-4-6", [TOOL], False),
        ("bedrock-converse", "amazon.nova-pro-v1:0", [], True),
        ("bedrock-converse", "qwen.qwen3-32b-v1:0", [], False),
        ("gemini", "gemini-2.5-flash", [TOOL], True),
        ("gemini", "gemini-3-flash-preview", [TOOL], False),
        ("ollama", "qwen3", [TOOL], True),
        ("cohere-chat", "command-a-03-2025", [TOOL], True),
        ("openai-chat", "gpt-5", [TOOL], False),
    ],
)
def test_a_model_without_a_mechanism_gets_a_tool(
    dialect: str, model_id: str, tools: list[dict[str, str]], is_tool: bool
) -> None:
    with answer(dialect, "Dish" if is_tool else None) as server:
        model = model_of(dialect, server.url, model_id=model_id)
        with model:
            got = model.send_message_sync("A dish.", tools, output=Dish)
        body = sent(server)
    check(dialect, body)
    assert got.output == DISH
    assert ("Dish" in tools_in(body)) == is_tool
    assert got.message.meta.warnings == []


@pytest.mark.parametrize("vendor", ["deepseek", "zai"])
def test_a_vendor_without_a_mechanism_gets_a_tool(vendor: str) -> None:
    with answer("openai-chat", "Dish") as server:
        model = deltafold.OpenAIChatModel(
            {"model_id": "m"}, vendor=vendor, base_url=server.url, api_key="key"
        )
        with model:
            assert model.send_message_sync("A dish.", output=Dish).output == DISH
        assert tools_in(sent(server)) == ["Dish"]


@pytest.mark.parametrize(
    "settings",
    [{"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"reasoning_effort": "low"}],
)
def test_a_claude_that_thinks_is_not_forced_to_call(settings: dict[str, object]) -> None:
    with answer("anthropic-messages", "Dish") as server:
        settings = {"model_id": "claude-3-7-sonnet-latest", "max_tokens": 3000, **settings}
        with model_of("anthropic-messages", server.url, **settings) as model:
            got = model.send_message_sync("A dish.", output=Dish)
        body = sent(server)
    assert "tool_choice" not in body
    assert body["thinking"]["type"] == "enabled"
    assert got.output == DISH


def test_a_choice_of_the_caller_stays() -> None:
    with answer("openai-chat", "Dish") as server, model_of("openai-chat", server.url) as model:
        output = Output(Dish, mode="tool", name="Dish")
        model.send_message_sync("A dish.", output=output, tool_choice="auto")
        assert sent(server)["tool_choice"] == "auto"


def test_strict_is_asked_for_where_the_type_fits() -> None:
    class Free(BaseModel):
        members: dict[str, int]

    with answer("openai-chat") as server, model_of("openai-chat", server.url) as model:
        for output in (Output(Dish), Output(Free), Output(Dish, strict=False)):
            with model.stream_sync("A dish.", output=output) as stream:
                stream.final_message()
        with pytest.raises(ValueError, match="strict subset"):
            model.stream_sync("A dish.", output=Output(Free, strict=True))
    sent_bodies = [cast("dict[str, Any]", request.json()) for request in server.requests]
    forms = [body["response_format"]["json_schema"] for body in sent_bodies]
    schemas = [form["schema"] for form in forms]
    assert [form.get("strict") for form in forms] == [True, None, False]
    assert schemas[0]["required"] == ["title", "serves", "level", "steps"]
    assert schemas[0]["$defs"]["Step"]["additionalProperties"] is False
    assert schemas[2]["required"] == ["title"]


def test_a_type_outside_the_subset_of_claude_gets_a_tool() -> None:
    with answer("anthropic-messages", "Recipe") as server:
        with model_of("anthropic-messages", server.url) as model:
            assert model.send_message_sync("A recipe.", output=Recipe).output.title == "Süpp"
        assert tools_in(sent(server)) == ["Recipe"]


def test_the_provider_must_have_the_mechanism_that_is_asked_for() -> None:
    model = model_of("bedrock-converse", "http://127.0.0.1:1", model_id="amazon.nova-pro-v1:0")
    with model, pytest.raises(MisuseError, match='use mode="tool"'):
        model.stream_sync("A dish.", output=Output(Dish, mode="schema"))


def test_a_schema_of_the_caller_is_sent_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "title": "Letter"}
    with answer("openai-chat") as server, model_of("openai-chat", server.url) as model:
        got = model.send_message_sync("A dish.", output=schema)
        form = sent(server)["response_format"]["json_schema"]
    assert form == {"name": "Letter", "schema": schema}
    assert got.output == json.loads(DISH.model_dump_json())


def test_an_output_replaces_the_schema_of_the_settings() -> None:
    with answer("openai-chat") as server, model_of("openai-chat", server.url) as model:
        model.update_config(output_schema={"type": "object"})
        model.send_message_sync("A dish.", output=Dish)
        assert sent(server)["response_format"]["json_schema"]["name"] == "Dish"


def test_a_message_in_place_of_an_error_has_no_output() -> None:
    model = model_of("openai-chat", "http://127.0.0.1:1")
    with model, pytest.raises(MisuseError, match="leave out on_error"):
        model.send_message_sync("A dish.", on_error="message", output=Dish)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


def test_an_answer_that_is_continued_has_no_output() -> None:
    model = model_of("anthropic-messages", "http://127.0.0.1:1", model_id="claude-sonnet-4-5")
    begun = deltafold.Message.assistant('{"title"')
    with model, pytest.raises(MisuseError, match="of_message"):
        model.stream_sync("A dish.", output=Dish, continue_from=begun)
