"""The provider for litellm: chunks, responses, histories, parameters and failures."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import litellm
import pytest
from comparing import comparable
from handed_over import CASES, FALLBACKS, RAN, RUNS, SENT, sent
from handed_over import answers as handed_over
from litellm import exceptions
from pydantic import BaseModel
from refused import answers
from served import LOGPROBS, NAMES, cases, folded, likely, model, recording, served, whole_body

import deltafold
from deltafold.dialects import DIALECTS
from deltafold.errors.model_error import ModelError
from deltafold.integrations.litellm import DeltafoldLLM
from deltafold.integrations.litellm.requests import conversation_of
from deltafold.message.messages import Message
from deltafold.testing import Recording, ReplayServer, answer

ALL = list(NAMES)
ASKED: Any = [{"role": "user", "content": "Hi"}]
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Look up the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture(autouse=True)
def no_settings() -> Iterator[None]:
    """Keep the settings of litellm that a test changes in this test."""
    known = litellm.custom_provider_map, litellm.drop_params, litellm.suppress_debug_info
    litellm.suppress_debug_info = True
    yield
    litellm.custom_provider_map, litellm.drop_params, litellm.suppress_debug_info = known


def register(dialect: str, server: ReplayServer, **config: object) -> None:
    handler = DeltafoldLLM({"m": model(dialect, server, **config)})
    litellm.custom_provider_map = [{"provider": "deltafold", "custom_handler": handler}]


def streamed(messages: Any = ASKED, **parameters: Any) -> Any:
    """Read a stream to its end, and return the response that litellm builds of its chunks."""
    chunks = list(litellm.completion("deltafold/m", messages, stream=True, **parameters))
    return litellm.stream_chunk_builder(chunks, messages=messages)


async def astreamed(messages: Any = ASKED, **parameters: Any) -> Any:
    stream: Any = await litellm.acompletion("deltafold/m", messages, stream=True, **parameters)
    chunks = [chunk async for chunk in stream]
    return litellm.stream_chunk_builder(chunks, messages=messages)


def shown(response: Any) -> Any:
    (choice,) = response.choices
    calls = [
        (call.id, call.function.name, json.loads(call.function.arguments))
        for call in choice.message.tool_calls or ()
    ]
    return choice.message.content or "", calls, choice.finish_reason


DIFFERENT = {
    ("openai-chat", "audio"): "litellm keeps the transcript beside the audio, not as the content"
}
"""Fixtures that differ after a way through litellm, with the reason."""


@pytest.mark.parametrize("dialect", ALL)
def test_an_answer_goes_back_as_it_was_received(dialect: str) -> None:
    row = DIALECTS[dialect]
    config = row.config_class.model_validate({"model_id": NAMES[dialect]})
    question = Message.user("Hi")
    checked = 0
    for case in cases(dialect):
        message = folded(dialect, case)
        if message is None or not message.parts:
            continue
        with served(recording(dialect, case)) as server:
            register(dialect, server)
            response = streamed()
        stored = json.loads(response.choices[0].message.model_dump_json())
        back = conversation_of([stored])
        expected = row.render([question, message, question], [], config).body
        found = row.render([question, *back, question], [], config).body
        is_same = comparable(found) == comparable(expected)
        assert is_same == ((dialect, case) not in DIFFERENT), case
        usage = message.meta.usage
        if usage is not None and usage.output_tokens is not None:
            assert response.usage.completion_tokens == usage.output_tokens, case
        checked += 1
    assert checked > 30


@pytest.mark.parametrize("dialect", ALL[:3])
async def test_sync_async_and_whole_answers_are_equal(dialect: str) -> None:
    case = "parallel-calls"
    found: list[Any] = []
    with served(recording(dialect, case)) as server:
        register(dialect, server)
        found += [await asyncio.to_thread(streamed), await astreamed()]
    with served(whole_body(recording(dialect, case), dialect)) as server:
        register(dialect, server)
        found.append(await asyncio.to_thread(litellm.completion, "deltafold/m", ASKED))
        found.append(await litellm.acompletion("deltafold/m", ASKED))
    first, *others = [shown(response) for response in found]
    assert len(first[1]) == 2
    assert others == [first] * 3
    totals = [response.usage.total_tokens for response in found]
    # The recording has no counts: litellm estimates those of a stream, and 1.110 no others.
    assert (totals[0], totals[2]) == (totals[1], totals[3])


@pytest.mark.parametrize("piece_bytes", [1, 7, 100_000])
async def test_any_chunking_gives_the_same_response(piece_bytes: int) -> None:
    told = recording("openai-chat", "parallel-calls")
    with served(told) as server:
        register("openai-chat", server)
        expected = await astreamed()
    with served(Recording.of(told.body, piece_bytes=piece_bytes)) as server:
        register("openai-chat", server)
        assert shown(await astreamed()) == shown(expected)


@pytest.mark.parametrize("case", ["text", "parallel-calls", "tool-call", "deepseek"])
async def test_a_chat_answer_is_that_of_the_own_provider(case: str) -> None:
    with served(recording("openai-chat", case)) as server:
        register("openai-chat", server)
        found = await astreamed()
        stream: Any = await litellm.acompletion(
            "openai/gpt-5", ASKED, stream=True, api_base=server.url, api_key="key"
        )
        chunks = [chunk async for chunk in stream]
    expected: Any = litellm.stream_chunk_builder(chunks, messages=ASKED)
    assert shown(found) == shown(expected)
    reasoning = [
        getattr(one.choices[0].message, "reasoning_content", None) for one in (found, expected)
    ]
    assert reasoning[0] == reasoning[1]


async def test_a_signature_returns_in_the_next_request() -> None:
    dialect = "anthropic-messages"
    with served(recording(dialect, "thinking-signature"), answer(dialect, "Yes.")) as server:
        register(dialect, server)
        told = (await astreamed()).choices[0].message
        assert told.reasoning_content == "First, the tide."
        await astreamed([*ASKED, told, *ASKED])
        sent: Any = server.requests[1].json()
    assert sent["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "First, the tide.",
        "signature": "EqQBCkgIARABGAIiQL+a/b==",
    }


async def test_state_does_not_go_to_another_provider() -> None:
    with served(recording("anthropic-messages", "thinking-signature")) as server:
        register("anthropic-messages", server)
        told = (await astreamed()).choices[0].message
    with served(answer("openai-chat", "Yes.")) as server:
        register("openai-chat", server)
        await astreamed([*ASKED, told, *ASKED])
        sent = json.dumps(server.requests[0].json())
    assert "High at noon." in sent
    assert "EqQBCkgIARABGAIiQL" not in sent
    assert "thinking_blocks" not in sent


async def test_an_answer_that_was_changed_is_read_by_its_members() -> None:
    with served(recording("openai-responses", "annotations")) as server:
        register("openai-responses", server)
        told = (await astreamed()).choices[0].message.model_dump()
    (back,) = conversation_of([{**told, "content": "Redacted."}])
    assert back.text == "Redacted."


@pytest.mark.parametrize("dialect", ALL)
async def test_calls_and_results_reach_the_provider(dialect: str) -> None:
    call = ("call_1", "weather", {"city": "Oslo"})
    with served(answer(dialect, call), answer(dialect, "Rain.")) as server:
        register(dialect, server)
        told = (await astreamed(tools=[TOOL], tool_choice="required")).choices[0].message
        (made,) = told.tool_calls
        result = {"role": "tool", "tool_call_id": made.id, "content": "Rain in Oslo."}
        assert shown(await astreamed([*ASKED, told, result], tools=[TOOL]))[0] == "Rain."
        first, second = [json.dumps(request.json()) for request in server.requests]
    assert "Look up the weather." in first
    assert "Rain in Oslo." in second


class City(BaseModel):
    """A city."""

    name: str


async def test_parameters_are_those_of_the_dialect() -> None:
    with served(answer("anthropic-messages", '{"name": "Oslo"}')) as server:
        register("anthropic-messages", server, model_id="claude-sonnet-4-5")
        await astreamed(
            temperature=0.5,
            max_tokens=100,
            stop=["END"],
            response_format=City,
            extra_headers={"x-trace": "1"},
        )
        request = server.requests[0]
        sent: Any = request.json()
    assert (sent["temperature"], sent["max_tokens"], sent["stop_sequences"]) == (0.5, 100, ["END"])
    assert "json_schema" in json.dumps(sent)
    assert request.headers["x-trace"] == "1"


async def test_a_parameter_that_the_dialect_does_not_have_is_refused_or_dropped() -> None:
    with served(answer("anthropic-messages", "Yes.")) as server:
        register("anthropic-messages", server)
        with pytest.raises(exceptions.UnsupportedParamsError, match="seed"):
            await litellm.acompletion("deltafold/m", ASKED, stream=True, seed=7)
        with pytest.raises(exceptions.UnsupportedParamsError, match="seed"):
            litellm.completion("deltafold/m", ASKED, stream=True, seed=7)
        litellm.drop_params = True
        assert shown(await astreamed(seed=7))[0] == "Yes."


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("ending", ["cut", "reset"])
async def test_a_cut_stream_is_an_error_of_litellm(dialect: str, ending: Any) -> None:
    told = answer(dialect, "One.", " Two.")
    cut = told.stopping(ending, told.body.index(b" Two."))
    with served(cut) as server:
        register(dialect, server)
        with pytest.raises(exceptions.MidStreamFallbackError) as raised:
            await astreamed()
        with pytest.raises(exceptions.MidStreamFallbackError):
            await asyncio.to_thread(streamed)
    failure = raised.value.original_exception
    assert isinstance(failure, exceptions.APIConnectionError)
    assert isinstance(failure.__cause__, ModelError)
    assert failure.__cause__.partial_message is not None


async def test_the_own_provider_may_take_a_cut_stream_as_complete() -> None:
    told = answer("openai-chat", "One.", " Two.")
    cut = Recording.of(told.body[: told.body.index(b'data: {"id"', told.body.index(b"One."))])
    with served(cut) as server:
        stream: Any = await litellm.acompletion(
            "openai/gpt-5", ASKED, stream=True, api_base=server.url, api_key="key"
        )
        # litellm 1.106 takes it as complete, and 1.110 raises.
        with contextlib.suppress(exceptions.MidStreamFallbackError):
            chunks = [chunk async for chunk in stream]
            assert chunks[-1].choices[0].finish_reason == "stop"
        register("openai-chat", server)
        with pytest.raises(exceptions.MidStreamFallbackError):
            await astreamed()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, exceptions.BadRequestError),
        (401, exceptions.AuthenticationError),
        (403, exceptions.PermissionDeniedError),
        (404, exceptions.NotFoundError),
        (429, exceptions.RateLimitError),
        (500, exceptions.InternalServerError),
        (503, exceptions.ServiceUnavailableError),
    ],
)
async def test_a_refusal_is_the_error_of_its_category(status: int, kind: Any) -> None:
    with served(Recording.error(status, {"error": {"message": "no"}})) as server:
        register("openai-chat", server)
        with pytest.raises(kind) as raised:
            await litellm.acompletion("deltafold/m", ASKED, num_retries=0)
        with pytest.raises(kind):
            await asyncio.to_thread(litellm.completion, "deltafold/m", ASKED, num_retries=0)
        with pytest.raises((kind, exceptions.MidStreamFallbackError)):
            await astreamed()
    assert raised.value.status_code == status


async def test_a_refused_history_is_a_bad_request() -> None:
    refusal = Recording.error(400, {"error": {"message": "Thought signature is not valid"}})
    with served(refusal) as server:
        register("openai-chat", server)
        with pytest.raises(exceptions.BadRequestError):
            await litellm.acompletion("deltafold/m", ASKED, num_retries=0)


async def test_a_full_context_window_is_its_own_error() -> None:
    error = {"code": "context_length_exceeded", "message": "maximum context length"}
    with served(Recording.error(400, {"error": error})) as server:
        register("openai-chat", server)
        with pytest.raises(exceptions.ContextWindowExceededError):
            await litellm.acompletion("deltafold/m", ASKED)


async def test_models_are_loaded_by_name_and_access() -> None:
    loaded: list[Any] = []

    def load(name: str, **access: Any) -> Any:
        loaded.append((name, access))
        return deltafold.load_model(name, **access)

    handler = DeltafoldLLM(load=load)
    litellm.custom_provider_map = [{"provider": "deltafold", "custom_handler": handler}]
    name = "deltafold/anthropic/claude-opus-4-8"
    with served(answer("anthropic-messages", "Yes.")) as server:
        for _ in range(2):
            stream: Any = await litellm.acompletion(
                name, ASKED, stream=True, api_base=server.url, api_key="key"
            )
            assert [chunk async for chunk in stream]
    access = {"api_key": "key", "base_url": server.url}
    assert loaded == [("anthropic/claude-opus-4-8", access)]


async def test_leaving_a_stream_closes_its_connection() -> None:
    told = answer("openai-chat", "One.", " Two.")
    with served(told.stopping("stall", told.body.index(b" Two."))) as server:
        register("openai-chat", server)
        begun = asyncio.Event()

        async def read() -> None:
            stream: Any = await litellm.acompletion("deltafold/m", ASKED, stream=True)
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while server.open_connections:  # noqa: ASYNC110 - the server is a thread
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "gemini"])
def test_log_probabilities_are_those_of_litellm(dialect: str) -> None:
    parameters: dict[str, Any] = {"logprobs": True, "top_logprobs": 2}
    asked: Any = {**parameters, "allowed_openai_params": list(parameters)}
    with served(likely(dialect)) as server:
        register(dialect, server)
        chunks = list(litellm.completion("deltafold/m", ASKED, stream=True, **asked))
    pieces = [chunk.choices[0].logprobs for chunk in chunks]
    streamed = [one for piece in pieces if piece for one in piece.content]
    with served(whole_body(likely(dialect), dialect)) as server:
        register(dialect, server)
        response: Any = litellm.completion("deltafold/m", ASKED, **asked)
    for entries in (streamed, response.choices[0].logprobs.content):
        assert [one.token for one in entries] == LOGPROBS["tokens"]
        assert [one.logprob for one in entries] == LOGPROBS["logprobs"]
        assert [top.token for top in entries[0].top_logprobs] == ["Hi", "Yo"]


async def test_a_refused_call_has_the_finish_reason_of_a_filter() -> None:
    with served(answers("refused")[0]) as server:
        register("anthropic-messages", server)
        whole: Any = await litellm.acompletion("deltafold/m", ASKED, tools=[TOOL])
        for response in (whole, await astreamed(tools=[TOOL])):
            assert response.choices[0].finish_reason == "content_filter"
            assert response.choices[0].message.tool_calls[0].function.name == "pay"


@pytest.mark.parametrize("case", CASES)
async def test_a_call_before_a_fallback_is_left_out(case: str) -> None:
    for whole, register_with in ((False, FALLBACKS), (True, {}), (True, FALLBACKS)):
        with served(handed_over(case, whole=whole)[0]) as server:
            register("anthropic-messages", server, extra_body=register_with)
            response: Any = await (
                litellm.acompletion("deltafold/m", ASKED, tools=[TOOL])
                if whole
                else astreamed(tools=[TOOL])
            )
        _, calls, finished = shown(response)
        assert [given["who"] for _, _, given in calls] == RUNS[case]
        assert finished == ("tool_calls" if RUNS[case] else "stop")
        if not RUNS[case]:
            continue
        stored = json.loads(response.choices[0].message.model_dump_json())
        result = {"role": "tool", "tool_call_id": "toolu_Bob", "content": "paid"}
        with served(handed_over(case)[-1]) as server:
            register("anthropic-messages", server)
            streamed([*ASKED, stored, result], tools=[TOOL])
            assert sent(server.requests[0].json()) == [*SENT[case], *RAN]


@pytest.mark.parametrize("case", CASES)
async def test_a_call_that_was_streamed_before_a_fallback_ends_as_a_filter_does(case: str) -> None:
    with served(handed_over(case)[0]) as server:
        register("anthropic-messages", server)
        response = await astreamed(tools=[TOOL])
    assert response.choices[0].finish_reason == "content_filter"


@pytest.mark.parametrize(
    ("parameters", "dialect"),
    [
        ({"seed": 7}, "openai-chat"),
        ({"tools": [TOOL], "allowed_openai_params": ["tools"]}, "openai-responses"),
        ({"tools": [TOOL]}, "openai-responses"),
    ],
)
def test_a_model_of_two_protocols_takes_the_one_that_takes_the_request(
    parameters: dict[str, Any], dialect: str
) -> None:
    litellm.custom_provider_map = [{"provider": "deltafold", "custom_handler": DeltafoldLLM()}]
    with served(answer(dialect, "Hi")) as server:
        response: Any = litellm.completion(
            "deltafold/openai/gpt-5.6-terra",
            ASKED,
            api_base=server.url,
            api_key="k",
            **parameters,
        )
    assert response.choices[0].message.content == "Hi"
    assert server.requests[0].path == DIALECTS[dialect].path
