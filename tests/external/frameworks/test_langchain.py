"""The adapter of langchain: chunks, events, histories and failures."""

import asyncio
import json
import pickle
import re
from typing import Any

import httpx
import httpx2
import pytest
from handed_over import CASES, RAN, RUNS, SENT, sent
from handed_over import answers as handed_over
from langchain_anthropic import ChatAnthropic
from langchain_core import exceptions
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.load import dumpd, dumps, load
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_openai import ChatOpenAI
from langchain_tests.utils.stream_lifecycle import assert_valid_event_stream
from pydantic import BaseModel, SecretStr
from refused import ALLOWED, ARGUMENTS, HALF, REFUSED, answers
from served import NAMES, cases, folded, likely, model, recording, served, thoughtful, whole_body

import deltafold
from deltafold.dialects import DIALECTS
from deltafold.errors.model_error import ModelError
from deltafold.integrations.langchain import ChatDeltafold
from deltafold.integrations.langchain.history import conversation_of
from deltafold.message.messages import Message
from deltafold.testing import Recording, ReplayServer, answer

ALL = list(NAMES)
MARK = {"type": "ephemeral"}
PDF = "data:application/pdf;base64,JVBERi0="
KEY = SecretStr("key")
PNG = "iVBORw0KGgo="


def chat(dialect: str, server: ReplayServer, **settings: Any) -> ChatDeltafold:
    """Return the adapter over a deltafold model, without retries."""
    return ChatDeltafold(client=model(dialect, server), **{"max_retries": 0, **settings})


def merged(chunks: list[Any]) -> AIMessageChunk:
    full = chunks[0]
    for chunk in chunks[1:]:
        full += chunk
    assert isinstance(full, AIMessageChunk)
    return full


def without_made_up_ids(body: object) -> str:
    return re.sub(r"call_[0-9a-f]{16}", "made up", json.dumps(body, sort_keys=True, indent=1))


@pytest.mark.parametrize("dialect", ALL)
def test_an_answer_goes_back_as_it_was_received(dialect: str) -> None:
    row = DIALECTS[dialect]
    config = row.config_class.model_validate({"model_id": NAMES[dialect]})
    question = Message.user("Hi")
    checked = 0
    for case in cases(dialect):
        message = folded(dialect, case)
        if message is None:
            continue
        with served(recording(dialect, case)) as server:
            adapter = chat(dialect, server)
            streamed = merged(list(adapter.stream("Hi")))
            events = adapter.stream_events("Hi", version="v3")
            answers = [streamed, streamed.model_copy(), events.output]
        expected = without_made_up_ids(row.render([question, message, question], [], config).body)
        for given in answers:
            stored: Any = load(dumpd(given), allowed_objects="messages")
            back = conversation_of([stored], dialect)
            found = row.render([question, *back, question], [], config).body
            assert without_made_up_ids(found) == expected, case
        checked += 1
    assert checked > 20


@pytest.mark.parametrize("dialect", ALL)
def test_every_fixture_gives_a_valid_stream_of_events(dialect: str) -> None:
    for case in cases(dialect):
        with served(recording(dialect, case)) as server:
            events: list[Any] = []
            try:
                events += chat(dialect, server).stream_events("Hi", version="v3")
            except ModelError:
                assert folded(dialect, case) is None
                continue
        assert_valid_event_stream(events)
        assert events[-1]["event"] == "message-finish"


@pytest.mark.parametrize("dialect", ALL)
async def test_all_ways_give_the_same_answer(dialect: str) -> None:
    message = deltafold.fold(recording(dialect, "parallel-calls").body, dialect)
    encoded = deltafold.encode_message(message, dialect)
    whole = Recording.of(encoded.body, content_type="application/json")
    with served(recording(dialect, "parallel-calls")) as server:
        adapter = chat(dialect, server, streaming=True)
        found = [
            merged(list(adapter.stream("Hi"))),
            merged([chunk async for chunk in adapter.astream("Hi")]),
            adapter.invoke("Hi"),
            await adapter.ainvoke("Hi"),
            adapter.stream_events("Hi", version="v3").output,
            await (await adapter.astream_events("Hi", version="v3")),
        ]
    with served(whole) as server:
        found += [chat(dialect, server).invoke("Hi"), await chat(dialect, server).ainvoke("Hi")]
        assert server.requests[0].json().get("stream") in {False, None}
    shown = [(one.text, calls(one), one.usage_metadata, reason(one)) for one in found]
    assert all(one == shown[0] for one in shown)
    assert len(shown[0][1]) >= 2


def test_the_same_agent_has_the_same_transcript() -> None:
    """Thinking, parallel tools and an output; then a refusal; then a cut."""
    dialect = "anthropic-messages"
    asked = [("call_1", "weather", {"city": "Oslo"}), ("call_2", "weather", {"city": "Rome"})]
    whole = answer(dialect, "One.", " Two.")
    told = [
        thoughtful(dialect, "Two cities.", "Let me see.", *asked),
        thoughtful(dialect, "Rain.", "Rain in both."),
        answer(dialect, ("call_3", "City", {"name": "Oslo"})),
        Recording.error(529, {"type": "error", "error": {"type": "overloaded_error"}}),
        whole.stopping("cut", whole.body.index(b" Two.")),
    ]
    found: list[Any] = []
    for is_own in (True, False):
        with served(*told) as server:
            one: Any = chat(dialect, server)
            if is_own:
                make: Any = ChatAnthropic
                one = make(model=NAMES[dialect], base_url=server.url, api_key=KEY, max_retries=0)
            bound = one.bind_tools([weather])
            history: list[Any] = [HumanMessage("How is the weather?")]
            first = merged(list(bound.stream(history)))
            results = [
                ToolMessage(weather(**call["args"]), tool_call_id=call["id"])
                for call in first.tool_calls
            ]
            last = merged(list(bound.stream([*history, first, *results])))
            by_tool = one.with_structured_output(City, method="function_calling")
            city = list(by_tool.stream("Where?"))[-1]
            with pytest.raises(exceptions.ModelAPIError):
                list(one.stream("Hi"))
            with pytest.raises(
                (
                    exceptions.ModelConnectionError,
                    httpx.RemoteProtocolError,
                    httpx2.RemoteProtocolError,
                )
            ):
                list(one.stream("Hi"))
            bodies = [request.json() for request in server.requests]
        sent: Any = bodies[1]["messages"]  # type: ignore[index]
        found.append((first.text, calls(first), last.text, city, sent[1]["content"]))
    assert found[0] == found[1]
    assert found[1][4][0]["signature"] == "c2lnbmVk"


def calls(message: AIMessage) -> list[Any]:
    return [(call["name"], call["args"]) for call in message.tool_calls]


def reason(message: AIMessage) -> object:
    return message.response_metadata["finish_reason"]


@pytest.mark.parametrize(
    "case", ["text", "parallel-calls", "tool-call", "deepseek", "no-argument-call"]
)
def test_a_chat_answer_is_that_of_chatopenai(case: str) -> None:
    with served(recording("openai-chat", case)) as server:
        own: Any = ChatOpenAI(model="m", base_url=server.url, api_key=KEY, stream_usage=True)
        expected, found = (
            merged(list(one.stream("Hi"))) for one in (own, chat("openai-chat", server))
        )
    assert (found.text, found.tool_calls) == (expected.text, expected.tool_calls)
    if expected.usage_metadata is not None:
        counts = {name: count for name, count in expected.usage_metadata.items() if count != {}}
        usage: Any = found.usage_metadata
        assert {name: usage[name] for name in counts} == counts
    assert reason(found) == reason(expected)


@pytest.mark.parametrize("case", ["text", "parallel-calls", "tool-call", "thinking-signature"])
def test_a_messages_answer_is_that_of_chatanthropic(case: str) -> None:
    with served(recording("anthropic-messages", case)) as server:
        own: Any = ChatAnthropic(
            model_name="m", base_url=server.url, api_key=KEY, timeout=9, stop=None
        )
        adapter = chat("anthropic-messages", server)
        expected, found = (merged(list(one.stream("Hi"))) for one in (own, adapter))
    assert (found.text, found.tool_calls) == (expected.text, expected.tool_calls)
    usage = (expected.usage_metadata or {}).get("output_tokens")
    assert (found.usage_metadata or {}).get("output_tokens") == usage


@pytest.mark.parametrize("piece_bytes", [1, 7, 100_000])
def test_any_chunking_gives_the_same_answer(piece_bytes: int) -> None:
    whole = recording("anthropic-messages", "thinking-signature")
    with served(Recording.of(whole.body, piece_bytes=piece_bytes)) as server:
        found = merged(list(chat("anthropic-messages", server).stream("Hi")))
    with served(whole) as server:
        other = merged(list(chat("anthropic-messages", server).stream("Hi")))
    assert found == other.model_copy(update={"id": found.id})


def test_each_delta_is_one_chunk() -> None:
    with served(answer("openai-chat", "a", "b", "c")) as server:
        chunks = list(chat("openai-chat", server).stream("Hi"))
    assert [chunk.content for chunk in chunks] == ["a", "b", "c", ""]
    assert chunks[-1].chunk_position == "last"


FAILURES = [
    (400, {"error": {"message": "no"}}, exceptions.ModelInvalidRequestError),
    (
        400,
        {"error": {"message": "too long", "code": "context_length_exceeded"}},
        exceptions.ContextOverflowError,
    ),
    (
        400,
        {"error": {"message": "Thought signature is not valid"}},
        exceptions.ModelInvalidRequestError,
    ),
    (401, {"error": {"message": "key"}}, exceptions.ModelAuthenticationError),
    (403, {"error": {"message": "key"}}, exceptions.ModelPermissionDeniedError),
    (404, {"error": {"message": "model"}}, exceptions.ModelNotFoundError),
    (429, {"error": {"message": "slow"}}, exceptions.ModelRateLimitError),
    (500, {"error": {"message": "x"}}, exceptions.ModelAPIError),
]


@pytest.mark.parametrize(("status", "body", "expected"), FAILURES)
async def test_a_refusal_is_the_exception_of_the_framework(
    status: int, body: object, expected: type[Exception]
) -> None:
    with served(Recording.error(status, body)) as server:
        adapter = chat("openai-chat", server)
        with pytest.raises(expected) as invoked:
            adapter.invoke("Hi")
        with pytest.raises(expected):
            await adapter.ainvoke("Hi")
        with pytest.raises(expected):
            list(adapter.stream("Hi"))
        with pytest.raises(expected):
            [chunk async for chunk in adapter.astream("Hi")]
        with pytest.raises(expected):
            list(adapter.stream_events("Hi", version="v3"))
    error = invoked.value
    assert isinstance(error, ModelError)
    assert error.status == status
    copied: Any = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(copied), str(copied)) == (type(error), str(error))


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("ending", ["cut", "reset"])
def test_a_cut_stream_is_an_error_of_the_framework(dialect: str, ending: Any) -> None:
    whole = answer(dialect, "One.", " Two.")
    cut = whole.stopping(ending, whole.body.index(b" Two."))
    with served(cut) as server:
        chunks: list[Any] = []
        with pytest.raises(exceptions.ModelConnectionError) as raised:
            chunks += chat(dialect, server).stream("Hi")
        with pytest.raises(exceptions.ModelConnectionError):
            chat(dialect, server, streaming=True).invoke("Hi")
        with pytest.raises(exceptions.ModelConnectionError):
            list(chat(dialect, server).stream_events("Hi", version="v3"))
    partial = getattr(raised.value, "partial_message", None)
    assert partial is not None
    if ending == "cut":
        assert partial.text == "One."


def test_the_own_model_takes_a_cut_stream_as_complete() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    cut = Recording.of(whole.body[: whole.body.index(b'data: {"id"', whole.body.index(b"One."))])
    with served(cut) as server:
        own = ChatOpenAI(model="m", base_url=server.url, api_key=KEY)
        assert merged(list(own.stream("Hi"))).text == "One."
        with pytest.raises(exceptions.ModelConnectionError):
            list(chat("openai-chat", server).stream("Hi"))


async def test_a_retryable_failure_is_sent_again_before_anything_was_received() -> None:
    busy = Recording.error(503, {}, {"retry-after": "0"})
    told = answer("openai-chat", "Here.")
    with served(busy, told, busy, told, busy, told, busy, told) as server:
        adapter = chat("openai-chat", server, max_retries=1, streaming=True)
        assert adapter.invoke("Hi").text == "Here."
        assert (await adapter.ainvoke("Hi")).text == "Here."
        assert merged(list(adapter.stream("Hi"))).text == "Here."
        assert merged([chunk async for chunk in adapter.astream("Hi")]).text == "Here."


def test_an_answer_that_has_begun_is_not_asked_for_again() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    with served(whole.stopping("cut", whole.body.index(b" Two.")), whole) as server:
        with pytest.raises(exceptions.ModelConnectionError):
            list(chat("openai-chat", server, max_retries=2).stream("Hi"))
        assert len(server.requests) == 1


def test_leaving_a_stream_closes_its_connection() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    with served(whole.stopping("stall", whole.body.index(b" Two."))) as server:
        stream = chat("openai-chat", server).stream("Hi")
        assert next(iter(stream)).text == "One."
        stream.close()  # type: ignore[attr-defined]
        while server.open_connections:
            pass


async def test_cancelling_a_task_closes_its_connection() -> None:
    whole = answer("openai-chat", "One.", " Two.")
    with served(whole.stopping("stall", whole.body.index(b" Two."))) as server:
        begun = asyncio.Event()

        async def read() -> None:
            async for _ in chat("openai-chat", server).astream("Hi"):
                begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while server.open_connections:  # noqa: ASYNC110 - the server is a thread
            await asyncio.sleep(0.01)


def test_callbacks_and_tracers_see_the_run() -> None:
    usage, runs = UsageMetadataCallbackHandler(), RunCollectorCallbackHandler()
    with served(answer("anthropic-messages", "Hello.")) as server:
        adapter = chat("anthropic-messages", server, temperature=0.5, max_tokens=9)
        list(adapter.stream("Hi", config={"callbacks": [usage, runs]}))
    assert usage.usage_metadata["claude-demo"]["output_tokens"] == 20
    (run,) = runs.traced_runs
    metadata = (run.extra or {})["metadata"]
    assert metadata["ls_provider"] == "anthropic"
    assert metadata["ls_model_name"] == NAMES["anthropic-messages"]
    assert (metadata["ls_temperature"], metadata["ls_max_tokens"]) == (0.5, 9)
    assert run.error is None


def body_of(dialect: str, messages: Any, **settings: Any) -> dict[str, Any]:
    """Return the body of the request for messages."""
    with served(answer(dialect, "Yes.")) as server:
        merged(list(chat(dialect, server, **settings).stream(messages)))
        body: Any = server.requests[0].json()
        return body


def test_the_history_of_chatanthropic_keeps_its_signatures_and_marks() -> None:
    history = [
        SystemMessage(
            [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
        ),
        HumanMessage("Hi"),
        AIMessage(
            [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {"type": "tool_use", "id": "call_1", "name": "f", "input": {"x": 1}},
            ],
            tool_calls=[{"id": "call_1", "name": "f", "args": {"x": 1}}],
        ),
        ToolMessage("no", tool_call_id="call_1", status="error"),
    ]
    body = body_of("anthropic-messages", history)
    assert body["system"][0]["cache_control"] == MARK
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"x": 1}},
    ]
    assert body["messages"][2]["content"][0]["is_error"] is True


def test_the_history_of_chatopenai_keeps_its_items() -> None:
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "gAAA",
        "index": 0,
    }
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "index": 1}
    content: list[Any] = [reasoning, search, {"type": "text", "text": "High at noon."}]
    metadata = {"model_provider": "openai"}
    history = [
        HumanMessage("Hi"),
        AIMessage(content, response_metadata=metadata),
        HumanMessage("?"),
    ]
    sent = body_of("openai-responses", history)["input"]
    assert [item.get("encrypted_content") for item in sent if item.get("type") == "reasoning"] == [
        "gAAA"
    ]
    assert {"type": "web_search_call", "id": "ws_1", "status": "completed"} in sent
    other = json.dumps(body_of("anthropic-messages", history))
    assert "High at noon." in other
    assert "ws_1" not in other


def test_an_answer_that_was_changed_goes_back_as_it_is_now() -> None:
    with served(recording("anthropic-messages", "thinking-signature")) as server:
        message = chat("anthropic-messages", server, streaming=True).invoke("Hi")
    changed = message.model_copy(update={"content": "Other words."})
    (found,) = conversation_of([changed], "anthropic-messages")
    assert [part.kind for part in found.parts] == ["text"]
    assert found.text == "Other words."


MEDIA = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    {"type": "image", "base64": PNG, "mime_type": "image/png"},
    {"type": "image", "url": "https://example.com/a.png"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    {"type": "file", "base64": "JVBERi0=", "mime_type": "application/pdf"},
    {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
    },
    {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
]


@pytest.mark.parametrize("block", MEDIA, ids=lambda block: str(block["type"]))
def test_images_and_files_are_sent(block: dict[str, Any]) -> None:
    body = body_of("anthropic-messages", [HumanMessage(["Look:", block])])
    kinds = [sent["type"] for sent in body["messages"][0]["content"]]
    assert kinds[0] == "text"
    assert kinds[1] == ("image" if "image" in block["type"] else "document")


def test_an_unknown_block_is_refused() -> None:
    with pytest.raises(ValueError, match="hologram"):
        conversation_of([HumanMessage([{"type": "hologram"}])], "openai-chat")


def test_settings_are_sent_the_nearest_first() -> None:
    with served(answer("openai-chat", "Yes.")) as server:
        adapter = chat(
            "openai-chat", server, temperature=0.5, max_tokens=9, stop=["END"], params={"seed": 7}
        )
        merged(list(adapter.stream("Hi", temperature=0.1, model="other", stop=["STOP"])))
        body: Any = server.requests[0].json()
    expected = {
        "temperature": 0.1,
        "model": "other",
        "max_completion_tokens": 9,
        "stop": ["STOP"],
        "seed": 7,
    }
    assert {name: body[name] for name in expected} == expected


def test_an_unknown_setting_is_refused() -> None:
    with served(answer("openai-chat", "Yes.")) as server:
        with pytest.raises(ValueError, match="temprature"):
            chat("openai-chat", server).invoke("Hi", temprature=1)
        with pytest.raises(ValueError, match="temprature"):
            ChatDeltafold(client=model("openai-chat", server), temprature=1)  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="timeout"):
            ChatDeltafold(client=model("openai-chat", server), timeout=1)
    with pytest.raises(ValueError, match="client="):
        ChatDeltafold()


class City(BaseModel):
    """A city."""

    name: str


def weather(city: str) -> str:
    """Look up the weather of a city."""
    return city


def bound_body(dialect: str, tools: list[Any], **options: Any) -> dict[str, Any]:
    with served(answer(dialect, "Yes.")) as server:
        bound = chat(dialect, server).bind_tools(tools, **options)
        list(bound.stream("Hi"))
        body: Any = server.requests[0].json()
        return body


def test_tools_are_sent() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    marked = {
        "name": "f",
        "input_schema": {"type": "object", "properties": {}},
        "description": "F.",
    }
    tools = [weather, City, {**marked, "cache_control": MARK}, search]
    body = bound_body("anthropic-messages", tools, tool_choice="any", parallel_tool_calls=False)
    assert [tool["name"] for tool in body["tools"]] == ["weather", "City", "f", "web_search"]
    assert body["tools"][2]["cache_control"] == MARK
    assert body["tools"][3] == search
    assert body["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("any", "required"),
        (True, "required"),
        ("none", "none"),
        ("weather", {"type": "function", "function": {"name": "weather"}}),
        (
            {"type": "function", "function": {"name": "weather"}},
            {"type": "function", "function": {"name": "weather"}},
        ),
    ],
)
def test_the_choice_of_a_tool_is_sent(choice: Any, expected: Any) -> None:
    assert bound_body("openai-chat", [weather], tool_choice=choice)["tool_choice"] == expected


def structured_body(dialect: str, told: Recording, **options: Any) -> tuple[dict[str, Any], Any]:
    with served(told) as server:
        adapter = chat(dialect, server, streaming=True)
        result = adapter.with_structured_output(City, **options).invoke("Where?")
        body: Any = server.requests[0].json()
        return body, result


def test_structured_output_is_the_mechanism_of_the_api() -> None:
    told = answer("openai-chat", '{"name": ', '"Oslo"}')
    body, result = structured_body("openai-chat", told)
    assert result == City(name="Oslo")
    assert body["response_format"]["json_schema"]["name"] == "City"
    told = answer("anthropic-messages", '{"name": "Oslo"}')
    body, result = structured_body("anthropic-messages", told, include_raw=True)
    assert result["parsed"] == City(name="Oslo")
    assert isinstance(result["raw"], AIMessage)
    assert body["output_config"]["format"]["type"] == "json_schema"


def test_structured_output_by_a_tool() -> None:
    told = answer("openai-chat", ("call_1", "City", {"name": "Oslo"}))
    body, result = structured_body("openai-chat", told, method="function_calling", strict=True)
    assert result == City(name="Oslo")
    assert body["tools"][0]["function"]["strict"] is True
    assert body["tool_choice"]["function"]["name"] == "City"


def test_the_timeout_is_that_of_the_client() -> None:
    stalled = answer("openai-chat", "Hi").stopping("stall", 0)
    with served(stalled) as server:
        adapter = ChatDeltafold(
            model="openai-chat/gpt-5",
            base_url=server.url,
            api_key="k",
            timeout=0.2,
            max_retries=0,  # type: ignore[arg-type]
        )
        with pytest.raises(exceptions.ModelTimeoutError):
            adapter.invoke("Hi")


def test_a_setting_of_chat_chooses_chat() -> None:
    for params, path in (({"seed": 3}, "/chat/completions"), ({}, "/responses")):
        dialect = "openai-chat" if params else "openai-responses"
        with served(answer(dialect, "Hi")) as server:
            adapter = ChatDeltafold(
                model="openai/gpt-5.6-terra", base_url=server.url, api_key="k", params=params
            )
            assert adapter.invoke("Hi").content == "Hi"
        assert server.requests[0].path == path


def test_log_probabilities_have_the_form_of_chatopenai() -> None:
    settings: dict[str, Any] = {"logprobs": True, "top_logprobs": 2}
    with served(likely("openai-chat")) as server:
        adapter = chat("openai-chat", server, params=settings)
        found = [
            merged(list(adapter.stream("Hi"))),
            adapter.stream_events("Hi", version="v3").output,
        ]
    with served(whole_body(likely("openai-chat"), "openai-chat")) as server:
        found.append(chat("openai-chat", server, params=settings).invoke("Hi"))
        own = ChatOpenAI(model="gpt-5", base_url=server.url, api_key=KEY, **settings)
        expected = own.invoke("Hi").response_metadata["logprobs"]
    for one in found:
        assert one.response_metadata["logprobs"]["content"] == expected["content"]
        assert len(expected["content"]) == 2


@pytest.mark.parametrize(
    ("dialect", "settings"),
    [
        ("openai-responses", {"top_logprobs": 2}),
        ("gemini", {"logprobs": True, "top_logprobs": 2}),
    ],
)
def test_every_dialect_has_log_probabilities(dialect: str, settings: dict[str, Any]) -> None:
    with served(likely(dialect)) as server:
        answered = merged(list(chat(dialect, server, params=settings).stream("Hi")))
    content = answered.response_metadata["logprobs"]["content"]
    assert [one["token"] for one in content] == ["Hi", "!"]


def test_the_settings_can_be_stored_without_the_key() -> None:
    given = ChatDeltafold(
        model="openai/gpt-5", api_key=SecretStr("hidden"), stop_sequences=["."], params={"seed": 3}
    )
    stored = json.loads(json.dumps(given.model_dump()))
    again = ChatDeltafold(**stored, api_key=SecretStr("hidden"))
    assert again.model_dump() == stored
    for text in (json.dumps(stored), dumps(given), repr(given)):
        assert "hidden" not in text


PAY: Any = {"name": "pay", "parameters": {"type": "object", "properties": {}}}


async def answers_of(case: str) -> list[AIMessage]:
    """Return an answer in each way in which the framework reads one."""
    with served(answers(case)[0]) as server:
        bound = chat("anthropic-messages", server).bind_tools([PAY])
        chunks = [chunk async for chunk in bound.astream("Pay.")]
        events = chat("anthropic-messages", server).stream_events("Pay.", version="v3")
        whole = events.output
        return [await bound.ainvoke("Pay."), bound.invoke("Pay."), merged(chunks), whole]


@pytest.mark.parametrize("case", REFUSED)
async def test_a_call_that_may_not_run_is_an_invalid_one(case: str) -> None:
    sent = ARGUMENTS if case == "refused" else HALF
    for answered in await answers_of(case):
        assert answered.tool_calls == []
        (invalid,) = answered.invalid_tool_calls
        assert (invalid["name"], invalid["id"]) == ("pay", "toolu_1")
        assert invalid["args"] is not None
        assert invalid["args"].startswith(sent)
        # The history has the text of the provider.
        messages = conversation_of([HumanMessage("Pay."), answered], "anthropic-messages")
        assert messages[-1].tool_calls[0].raw_args_text == sent


@pytest.mark.parametrize("case", ALLOWED)
async def test_a_whole_call_runs(case: str) -> None:
    for answered in await answers_of(case):
        assert [call["args"] for call in answered.tool_calls] == [json.loads(ARGUMENTS)]
        assert answered.invalid_tool_calls == []


async def handed_over_answers(case: str) -> list[AIMessage]:
    """Return an answer of two models in each way in which the framework reads one."""
    streamed, whole = handed_over(case)[0], handed_over(case, whole=True)[0]
    with served(streamed) as server:
        bound = chat("anthropic-messages", server).bind_tools([PAY])
        chunks = [chunk async for chunk in bound.astream("Pay.")]
        events = chat("anthropic-messages", server).stream_events("Pay.", version="v3")
        found = [await bound.ainvoke("Pay."), merged(chunks), events.output]
    with served(whole) as server:
        bound = chat("anthropic-messages", server, disable_streaming=True).bind_tools([PAY])
        return [*found, bound.invoke("Pay.")]


@pytest.mark.parametrize("case", CASES)
async def test_a_call_before_a_fallback_is_an_invalid_one(case: str) -> None:
    for answered in await handed_over_answers(case):
        assert [call["args"]["who"] for call in answered.tool_calls] == RUNS[case]
        before = {call["id"] for call in answered.invalid_tool_calls}
        assert before
        assert "toolu_Bob" not in before
        finish = "tool_calls" if RUNS[case] else "stop"  # a call that does not run ends no answer
        assert answered.response_metadata["finish_reason"] == finish
        if not RUNS[case]:
            continue
        result = ToolMessage("paid", tool_call_id="toolu_Bob")
        with served(handed_over(case)[-1]) as server:
            chat("anthropic-messages", server).invoke([HumanMessage("Pay."), answered, result])
            assert sent(server.requests[0].json()) == [*SENT[case], *RAN]
