"""Fallback: which failures let another Model answer, streamed and whole, waiting and awaited.

In: a table of failures, each an answer of the first server.  Out: the message of the second Model,
or the error of the first one.

Law: a call leaves no socket open, and a failure that moves a call on shows nothing of its answer.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import pytest

from deltafold import (
    AnthropicModel,
    ErrorCode,
    Message,
    MessageAssembler,
    MisuseError,
    ModelError,
    OpenAIChatModel,
    load_model,
)
from deltafold.contract.kinds import DeltaKind
from deltafold.conversation import Agent, AgentConfig, AgentEventKind, ModelOutputEntry
from deltafold.models import Model
from deltafold.models.fallback import FINAL, MOVING, OF_THE_SETUP
from deltafold.testing import Recording, ReplayServer
from deltafold.transports.timeouts import Timeouts
from speakers import stream as spoken
from speakers import text
from talks import Talk
from wires import chat, claude, gpt

Way: TypeAlias = Literal["streamed", "texts", "batches", "message", "whole"]
WAYS: Final[tuple[Way, ...]] = ("streamed", "texts", "batches", "message", "whole")
SECOND: Final = "Here is the tide table."
LIVES: Final = "It rains in Oslo, and the sun shines in Rome."


def refused(status: int, code: str | None = None, message: str = "no") -> Recording:
    body = {"error": {"message": message, "type": code, "code": code}}
    return Recording.error(status, body, {"x-request-id": "req_7"})


@dataclass(frozen=True)
class Failure:
    """An answer of the first server, and the code of its error."""

    recording: Recording
    code: ErrorCode


MOVES: Final = {
    "overload": Failure(refused(503, "overloaded", "busy"), ErrorCode.OVERLOADED),
    "overload within the stream": Failure(
        Recording.of(b'data: {"error":{"message":"busy","code":503}}\n\n'), ErrorCode.OVERLOADED
    ),
    "500": Failure(refused(500), ErrorCode.SERVER_ERROR),
    "a lost connection": Failure(
        Recording.of(b"").stopping("reset", before_headers=True), ErrorCode.CONNECTION_LOST
    ),
    "a cut before the first part": Failure(
        Recording.of_events(chat("Hi")).stopping("cut", 5), ErrorCode.CONNECTION_LOST
    ),
    "a timeout": Failure(replace(Recording.of(chat("Hi")), headers_after=9.0), ErrorCode.TIMEOUT),
    "a rate limit": Failure(refused(429, "rate_limit_exceeded"), ErrorCode.RATE_LIMITED),
    "a spent quota": Failure(refused(429, "insufficient_quota"), ErrorCode.QUOTA_EXCEEDED),
    "an unknown model": Failure(refused(404, "model_not_found"), ErrorCode.NOT_FOUND),
    "a long context": Failure(
        refused(400, "context_length_exceeded"), ErrorCode.CONTEXT_LENGTH_EXCEEDED
    ),
}
STAYS: Final = {
    "a wrong request": Failure(refused(400, "invalid_request_error"), ErrorCode.INVALID_REQUEST),
    "a wrong key": Failure(refused(401, "invalid_api_key"), ErrorCode.AUTHENTICATION),
    "no permission": Failure(refused(403, "permission_denied"), ErrorCode.PERMISSION),
    "a filter": Failure(refused(400, "content_filter"), ErrorCode.CONTENT_BLOCKED),
}


@dataclass
class Servers:
    """Two servers, and a Model of each."""

    first: ReplayServer
    second: ReplayServer
    models: list[Model[Any]]

    def pair(self, **settings: Any) -> tuple[Model[Any], Model[Any]]:  # noqa: ANN401 - those of a Model
        url, limits = self.first.url, Timeouts(first_byte=0.2)
        first = OpenAIChatModel(
            {"model_id": "gpt-demo"}, base_url=f"{url}/v1", api_key="k", timeouts=limits, **settings
        )
        second = AnthropicModel(
            {"model_id": "claude-demo"}, base_url=self.second.url, api_key="k", **settings
        )
        self.models += [first, second]
        return first, second

    def of_mistral(self) -> tuple[Model[Any], Model[Any]]:
        made = [
            load_model("mistral/mistral-demo", base_url=f"{one.url}/v1", api_key="k")
            for one in (self.first, self.second)
        ]
        self.models += made
        return made[0], made[1]


@pytest.fixture
def servers() -> Iterator[Servers]:
    with ReplayServer() as first, ReplayServer() as second:
        made = Servers(first, second, [])
        yield made
        for model in made.models:
            model.close()


def ask(model: Model[Any], way: Way, **settings: Any) -> Message:  # noqa: ANN401 - those of a call
    """Ask in one of the ways that wait; what was seen is the message."""
    if way in {"message", "whole"}:
        return model.send_message_sync("When?", stream=way == "message", output=None, **settings)
    with model.stream_sync("When?", output=None, **settings) as opened:
        if way == "texts":
            assert "".join(opened.text()) == opened.message.text
            return opened.message
        assembler = MessageAssembler()
        if way == "streamed":
            for delta in opened:
                assembler.consume(delta)
        else:
            for batch in opened.batches():
                assembler.consume(batch)
        return same(opened.final_message(), assembler)


async def aask(model: Model[Any], way: Way, **settings: Any) -> Message:  # noqa: ANN401 - those of a call
    """Ask in one of the ways that await."""
    if way in {"message", "whole"}:
        return await model.send_message("When?", stream=way == "message", output=None, **settings)
    async with model.stream("When?", output=None, **settings) as opened:
        if way == "texts":
            assert "".join([one async for one in opened.text()]) == opened.message.text
            return opened.message
        assembler = MessageAssembler()
        if way == "streamed":
            async for delta in opened:
                assembler.consume(delta)
        else:
            async for batch in opened.batches():
                assembler.consume(batch)
        return same(await opened.final_message(), assembler)


def awaited(model: Model[Any], way: Way, **settings: Any) -> Message:  # noqa: ANN401 - those of a call
    async def asked() -> Message:
        async with model:
            return await aask(model, way, **settings)

    return asyncio.run(asked())


def same(message: Message, seen: MessageAssembler) -> Message:
    """Return the message; the deltas that were seen make the same."""
    folded = seen.build_final_message()
    assert folded.parts == message.parts
    assert folded.run_id == message.run_id
    assert folded.meta.model_id == message.meta.model_id
    assert folded.meta.usage == message.meta.usage
    return message


ASKING: Final[dict[str, Callable[..., Message]]] = {"waiting": ask, "awaiting": awaited}


@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("failure", MOVES)
def test_the_next_model_answers_after_a_failure(
    servers: Servers, failure: str, way: Way, asking: str
) -> None:
    servers.first.queue(MOVES[failure].recording)
    servers.second.queue(answer_of(way))
    first, second = servers.pair()
    message = ASKING[asking](first.with_fallback(second), way)
    assert message.text == SECOND
    assert message.meta.model_id == "claude-demo"
    (warning,) = message.meta.warnings
    assert warning["code"] == "fallback"
    told = str(warning["message"])
    assert told.startswith(f"openai gpt-demo failed ({MOVES[failure].code}")
    assert told.endswith("; anthropic claude-demo was called")
    assert ("request req_7" in told) == ("x-request-id" in MOVES[failure].recording.headers)
    assert (len(servers.first.requests), len(servers.second.requests)) == (1, 1)


def answer_of(way: Way) -> Recording:
    """Return the second server's answer."""
    if way != "whole":
        return Recording.of_events(claude(SECOND))
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-demo",
        "content": [{"type": "text", "text": SECOND}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    return Recording.of(json.dumps(body).encode(), content_type="application/json")


@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("failure", STAYS)
def test_a_wrong_call_fails_at_its_first_model(
    servers: Servers, failure: str, way: Way, asking: str
) -> None:
    servers.first.queue(STAYS[failure].recording)
    first, second = servers.pair()
    with pytest.raises(ModelError) as raised:
        ASKING[asking](first.with_fallback(second), way)
    assert raised.value.code is STAYS[failure].code
    assert raised.value.warnings == []
    assert not servers.second.requests


@pytest.mark.parametrize("way", WAYS[:-1])
def test_a_refusal_is_an_answer(servers: Servers, way: Way) -> None:
    servers.first.queue(Recording.of_events(chat("I cannot.", finish_reason="content_filter")))
    first, second = servers.pair()
    message = ask(first.with_fallback(second), way)
    assert message.meta.finish_reason == "content_filter"
    assert not servers.second.requests


def test_each_code_has_a_place_in_one_table() -> None:
    assert frozenset(ErrorCode) == MOVING | OF_THE_SETUP | FINAL
    assert len(ErrorCode) == len(MOVING) + len(OF_THE_SETUP) + len(FINAL)


@pytest.mark.parametrize("piece_bytes", [1, 7, None])
@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("way", WAYS[:-1])
@pytest.mark.parametrize("is_repeated", [True, False], ids=["repeats", "goes on"])
def test_the_next_model_continues_an_answer_that_was_cut(
    servers: Servers, way: Way, asking: str, piece_bytes: int | None, *, is_repeated: bool
) -> None:
    rest = LIVES if is_repeated else LIVES[LIVES.index("sun") :]
    servers.first.queue(cut_mistral(piece_bytes))
    servers.second.queue(Recording.of(mistral(rest), piece_bytes=piece_bytes))
    first, second = servers.of_mistral()
    message = ASKING[asking](first.with_fallback(second), way)
    assert message.text == LIVES
    assert len(message.parts) == 1
    assert [warning["code"] for warning in message.meta.warnings] == ["fallback", "continued"]
    body: Any = servers.second.requests[0].json()
    sent = body["messages"][-1]
    assert (sent["role"], sent["prefix"]) == ("assistant", True)


def mistral(said: str) -> bytes:
    pieces = [f"{word} " for word in said.split(" ")]
    pieces[-1] = pieces[-1][:-1]
    return spoken("mistral", text(*pieces), counts=(11, 7))


def cut_mistral(piece_bytes: int | None = None) -> Recording:
    body = mistral(LIVES)
    return Recording.of(
        body[: body.rindex(b"data:", 0, body.index(b"sun"))], piece_bytes=piece_bytes
    )


@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("way", ["message", "texts"])
def test_an_answer_that_nobody_continues_keeps_its_error(
    servers: Servers, way: Way, asking: str
) -> None:
    servers.first.queue(Recording.of(chat("At ", "17", finish_reason=None, done=False)))
    first, second = servers.pair()
    with pytest.raises(ModelError) as raised:
        ASKING[asking](first.with_fallback(second), way)
    error = raised.value
    assert error.code is ErrorCode.CONNECTION_LOST
    assert error.partial_message is not None
    assert error.partial_message.text == "At 17"
    told = [str(warning["message"]) for warning in error.warnings]
    assert told == ["anthropic claude-demo was not called: it cannot continue the answer"]
    assert not servers.second.requests


def test_a_cut_while_the_rest_arrives_keeps_both_texts(servers: Servers) -> None:
    body = mistral("sun shines in Rome.")
    servers.first.queue(cut_mistral())
    servers.second.queue(Recording.of(body[: body.rindex(b"data:", 0, body.index(b"Rome"))]))
    first, second = servers.of_mistral()
    with first.with_fallback(second).stream_sync("When?") as opened:
        deltas = list(opened)
    assert "".join(delta.text or "" for delta in deltas) == LIVES.removesuffix("Rome.")
    assert [delta.seq for delta in deltas] == list(range(1, len(deltas) + 1))
    kinds = [delta.kind for delta in deltas]
    assert (kinds.count(DeltaKind.START), kinds.count(DeltaKind.ERROR)) == (1, 1)
    assert opened.error is not None
    assert opened.error.partial_message is not None
    assert opened.error.partial_message.text == LIVES.removesuffix("Rome.")


def test_the_error_is_that_of_the_last_model_and_lists_the_others(servers: Servers) -> None:
    servers.first.queue(MOVES["500"].recording)
    servers.second.queue(
        Recording.error(
            529, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
        )
    )
    first, second = servers.pair()
    model = first.with_fallback(second)
    with pytest.raises(ModelError) as raised:
        ask(model, "message")
    assert raised.value.code is ErrorCode.OVERLOADED
    assert [warning["code"] for warning in raised.value.warnings] == ["fallback"]
    servers.first.queue(MOVES["500"].recording)
    servers.second.queue(refused(500))
    message = model.send_message_sync("When?", on_error="message")
    assert message.meta.is_api_error_message


def test_the_caller_decides_which_failures_move(servers: Servers) -> None:
    first, second = servers.pair()
    servers.first.queue(STAYS["a wrong key"].recording, MOVES["500"].recording)
    servers.second.queue(answer_of("message"), answer_of("message"))
    model = first.with_fallback(second, on={ErrorCode.AUTHENTICATION})
    assert ask(model, "message").text == SECOND
    with pytest.raises(ModelError):
        ask(model, "message")
    servers.first.queue(refused(418))
    chosen = first.with_fallback(second, on=lambda error: error.status == 418)
    assert ask(chosen, "message").text == SECOND
    with pytest.raises(ValueError, match="busy"):
        first.with_fallback(second, on=["busy"])  # type: ignore[list-item]
    with pytest.raises(MisuseError, match="at least one"):
        first.with_fallback()


def test_a_smaller_window_and_a_missing_key_are_passed_over(servers: Servers) -> None:
    servers.first.queue(MOVES["a long context"].recording)
    servers.second.queue(answer_of("message"))
    first, second = servers.pair()
    first.update_config(known_as="gpt-4o")
    small = OpenAIChatModel({"model_id": "gpt-4"}, base_url=f"{servers.first.url}/v1", api_key="k")
    keyless = load_model("deepseek/deepseek-chat")
    servers.models += [small, keyless]
    message = ask(first.with_fallback(small, keyless, second), "message")
    told = [str(warning["message"]) for warning in message.meta.warnings]
    assert [one.partition(":")[0] for one in told[:2]] == [
        "openai gpt-4 was not called",
        "deepseek deepseek-chat was not called",
    ]
    assert len(servers.first.requests) == 1


def test_settings_of_a_call_hold_for_each_model(servers: Servers) -> None:
    servers.first.queue(MOVES["500"].recording)
    servers.second.queue(answer_of("message"))
    first, second = servers.pair()
    message = ask(
        first.with_fallback(second),
        "message",
        model_id="gpt-other",
        max_tokens=77,
        frequency_penalty=0.5,
        extra_body={"user": "u"},
    )
    sent: Any = servers.second.requests[0].json()
    assert (sent["model"], sent["max_tokens"]) == ("claude-demo", 77)
    assert "user" not in sent
    codes = [warning["code"] for warning in message.meta.warnings]
    assert codes == ["fallback", "setting_dropped", "setting_dropped"]
    assert str(message.meta.warnings[0]["message"]).startswith("openai gpt-other failed")


def test_what_a_provider_holds_stays_there(servers: Servers) -> None:
    servers.first.queue(refused(500))
    first = load_model(
        "openai/gpt-demo",
        specification="openai-responses",
        base_url=f"{servers.first.url}/v1",
        api_key="k",
    )
    _, second = servers.pair()
    servers.models.append(first)
    with pytest.raises(ModelError) as raised:
        ask(first.with_fallback(second), "message", previous_response_id="resp_1")
    assert raised.value.code is ErrorCode.SERVER_ERROR
    assert "previous_response_id" in str(raised.value.warnings[0]["message"])
    assert not servers.second.requests


def test_an_output_comes_from_the_model_that_answers(servers: Servers) -> None:
    servers.first.queue(MOVES["overload"].recording, MOVES["overload"].recording)
    servers.second.queue(*(Recording.of_events(chat('{"port"', ": 17}")) for _ in range(2)))
    first, _ = servers.pair()
    second = OpenAIChatModel({"model_id": "m"}, base_url=f"{servers.second.url}/v1", api_key="k")
    model, schema = first.with_fallback(second), {"type": "object"}
    with model.stream_sync("When?", output=schema) as opened:
        parts = [str(opened.partial) for _ in opened]
        assert parts[-1] == "{'port': 17}"
        assert opened.final_output() == {"port": 17}

    async def asked() -> object:
        async with model, model.stream("When?", output=schema) as streamed:
            return await streamed.final_output()

    assert asyncio.run(asked()) == {"port": 17}
    second.close()


def test_models_without_a_fallback_are_as_before(servers: Servers) -> None:
    first, second = servers.pair()
    assert first.chain == (first,)
    model = first.with_fallback(second)
    assert isinstance(model, OpenAIChatModel)
    assert first.chain == (first,)
    assert [one.model_id for one in model.with_fallback(first).chain] == [
        "gpt-demo",
        "claude-demo",
        "gpt-demo",
    ]
    nested = first.with_fallback(second.with_fallback(first))
    assert [one.dialect for one in nested.chain] == [
        "openai-chat",
        "anthropic-messages",
        "openai-chat",
    ]
    servers.first.queue(refused(500))
    with pytest.raises(ModelError):
        ask(model.chain[0], "message")
    assert not servers.second.requests


def test_a_copy_has_its_own_clients_and_the_same_fallback(servers: Servers) -> None:
    servers.first.queue(refused(500), refused(500))
    servers.second.queue(answer_of("message"), answer_of("message"))
    first, second = servers.pair()
    model = first.with_fallback(second)
    with copy(model) as other:
        assert ask(other, "message").text == SECOND
        assert other.chain[1] is not second
    assert ask(model, "message").text == SECOND


def test_a_cancelled_call_ends_the_second_model(servers: Servers) -> None:
    servers.first.queue(MOVES["500"].recording)
    servers.second.queue(Recording.of_events(claude(SECOND)).stopping("stall", 300))
    first, second = servers.pair()

    async def asked() -> None:
        async with first.with_fallback(second) as model, model.stream("When?") as opened:
            async with asyncio.timeout(0.3):
                async for _ in opened:
                    pass

    with pytest.raises(TimeoutError):
        asyncio.run(asked())
    assert len(servers.second.requests) == 1


def test_a_stream_that_is_closed_moves_nowhere(servers: Servers) -> None:
    servers.first.queue(Recording.of_events(chat("Hi", "there")))
    first, second = servers.pair()
    with first.with_fallback(second).stream_sync("When?") as opened:
        with suppress(StopIteration):
            next(iter(opened))
        opened.close()
        assert list(opened) == []
    assert opened.error is not None
    assert opened.error.code is ErrorCode.CANCELLED
    assert not servers.second.requests


def test_ways_of_reading_share_one_position(servers: Servers) -> None:
    servers.first.queue(MOVES["500"].recording)
    servers.second.queue(Recording.of(claude(SECOND)))
    first, second = servers.pair()
    with first.with_fallback(second).stream_sync("When?") as opened:
        assert next(iter(opened)).kind is DeltaKind.START
        rest = [delta.seq for batch in opened.batches() for delta in batch]
        assert rest == list(range(2, 2 + len(rest)))
        assert opened.message.text == SECOND


def test_a_whole_message_takes_what_a_reader_has_left(servers: Servers) -> None:
    servers.first.queue(cut_mistral())
    servers.second.queue(Recording.of(mistral(LIVES)))
    first, second = servers.of_mistral()
    with first.with_fallback(second).stream_sync("When?") as opened:
        assert next(iter(opened)).kind is DeltaKind.START
        assert opened.final_message().text == LIVES
        assert list(opened) == []


@pytest.mark.parametrize("retries", [0, 2])
def test_an_agent_retries_before_it_calls_the_next_model(servers: Servers, retries: int) -> None:
    servers.first.queue(*(refused(503, "overloaded") for _ in range(retries + 1)))
    servers.second.queue(answer_of("message"))
    first, second = servers.pair()
    loop = {"max_retries": retries, "retry_seconds": 0.0}
    model = first.with_fallback(second)
    agent = Talk(Agent(AgentConfig.model_validate({"loop": loop}), model=model), models=(model,))

    async def asked() -> list[AgentEventKind]:
        async with agent:
            return [event.kind async for event in agent.stream("When?")]

    kinds = asyncio.run(asked())
    assert kinds.count(AgentEventKind.RETRY) == retries + 1
    assert (len(servers.first.requests), len(servers.second.requests)) == (retries + 1, 1)
    output = agent.state.history[-1]
    assert isinstance(output, ModelOutputEntry)
    assert output.invocation is not None
    assert output.invocation.provider_id == "anthropic"
    assert output.message is not None
    assert [warning["code"] for warning in output.message.meta.warnings] == ["fallback"]


def test_an_agent_stays_after_a_wrong_request(servers: Servers) -> None:
    servers.first.queue(STAYS["a wrong key"].recording)
    first, second = servers.pair()
    model = first.with_fallback(second)
    agent = Agent(model=model)

    async def asked() -> None:
        async with model:
            async for _ in agent.stream("When?"):
                pass

    with pytest.raises(ModelError):
        asyncio.run(asked())
    assert not servers.second.requests


def test_tokens_of_both_answers_are_counted(servers: Servers) -> None:
    beginning = claude("The tide is high ")
    end = beginning.rindex(b"\n\n", 0, beginning.index(b"content_block_stop")) + 2
    servers.first.queue(Recording.of_events(beginning).stopping("cut", end))
    servers.second.queue(Recording.of_events(claude("at 17:42.")))
    made = [
        AnthropicModel({"model_id": "claude-sonnet-4-5"}, base_url=server.url, api_key="k")
        for server in (servers.first, servers.second)
    ]
    servers.models += made
    with made[0].with_fallback(made[1]).stream_sync("When?") as opened:
        message = opened.final_message()
        assert message.text == "The tide is high at 17:42."
        assert message.meta.usage == opened.usage
        assert opened.usage is not None
        assert opened.usage.input_tokens == 100
        assert message.meta.cost_usd == opened.cost_usd


def test_the_first_model_may_be_of_gpt_and_the_second_answers_with_a_call(servers: Servers) -> None:
    servers.first.queue(Recording.of_events(gpt("At 17:42.")))
    first, second = servers.pair()
    message = ask(first.with_fallback(second), "streamed")
    assert message.text == "At 17:42."
    assert message.meta.warnings == []
