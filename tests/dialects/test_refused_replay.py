"""Requests whose reasoning is refused: an error code of their own, and one repair.

In: histories with signed reasoning, and providers that refuse it.  Out: the requests, sync and
async, over clients of HTTP and of the SDKs, of a Model, an Agent and the gateway.
"""

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, cast

import anthropic
import httpx2
import pytest

from any_name import AnyName
from binding_server import BETA, BindingServer, Block, thinking_in
from deltafold import (
    AnthropicModel,
    ErrorCode,
    ErrorMapper,
    Message,
    Model,
    ModelConfig,
    ModelError,
    ThinkingPart,
    ToolCallPart,
    ToolSpec,
)
from deltafold.conversation import Agent, AgentState, ConversationLog, MemoryNotebookWidget
from deltafold.gateway import create_app
from deltafold.models.adapters import adapter_of
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.testing.playlist import Request
from gateways import served
from talks import Talk

BOUND: Final = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
    "different conversation. Remove the block."
)
LATEST: Final = (
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
    "message cannot be modified. These blocks must remain as they were in the original response."
)
OF_MESSAGES: Final[list[dict[str, Any]]] = [
    {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    for message in (BOUND, LATEST)
]
OF_GEMINI: Final[list[dict[str, Any]]] = [
    {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    for message in (
        "Corrupted thought signature.",
        "Thought signature is not valid.",
        "Function call is missing a thought_signature in functionCall parts.",
    )
]
REFUSALS: Final[list[tuple[str, dict[str, Any]]]] = [
    *(("anthropic-messages", refusal) for refusal in OF_MESSAGES),
    *(("gemini", refusal) for refusal in OF_GEMINI),
    ("openai-chat", {"error": {"code": 400, "message": "Corrupted thought signature."}}),
    ("bedrock-converse", {"__type": "ValidationException", "message": BOUND}),
    ("bedrock-converse", {"message": LATEST}),
    (
        "openai-responses",
        {
            "error": {
                "message": "The encrypted content gAAA could not be verified.",
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_encrypted_content",
            }
        },
    ),
]
MODELS: Final = {
    "anthropic-messages": "claude-opus-4-5",
    "bedrock-converse": "anthropic.claude-opus-4-5-v1:0",
    "openai-responses": "gpt-5.4",
    "openai-chat": "gemini-3-pro-preview",
    "gemini": "gemini-3-pro-preview",
}
STATES: Final[dict[str, dict[str, Any]]] = {
    "anthropic-messages": {"signature": "SECRET"},
    "bedrock-converse": {"signature": "SECRET"},
    "openai-responses": {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "SECRET",
    },
    "openai-chat": {},
    "gemini": {"thought": True},
}
CALL_STATES: Final[dict[str, dict[str, Any]]] = {
    "openai-chat": {"extra_content": {"google": {"thought_signature": "SECRET"}}},
    "gemini": {"thoughtSignature": "SECRET"},
}
TOOL: Final = ToolSpec(name="tide", parameter_schema={"type": "object", "properties": {}})


class Refusing(ReplayServer):
    """Refuses each request that holds the secret."""

    def __init__(self, dialect: AnyName, refusal: dict[str, Any]) -> None:
        super().__init__()
        self._dialect, self._refusal = dialect, refusal
        self.status: list[int] = []

    def answer_to(self, request: Request) -> Recording:
        """Refuse or answer."""
        self.requests.append(request)
        if b"SECRET" in json.dumps(request.json()).encode():
            self.status.append(400)
            return Recording.error(400, self._refusal)
        self.status.append(200)
        return answer(self._dialect, "Done.")


def state(dialect: str, data: dict[str, Any]) -> dict[str, object] | None:
    return {"dialect": dialect, "modelId": MODELS[dialect], "data": data} if data else None


def history(dialect: str) -> list[Message]:
    thought = ThinkingPart(text="hm", provider_state=state(dialect, STATES[dialect]))
    data = CALL_STATES.get(dialect, {})
    call = ToolCallPart(
        tool_call_id="call_1",
        tool_name="tide",
        raw_args_text="{}",
        provider_state=state(dialect, data),
    )
    parts = [thought, call] if STATES[dialect] else [call]
    return [Message.user("q"), Message.assistant(*parts), Message.tool_result("call_1", "17:42")]


Refused: TypeAlias = tuple[Refusing, Model[ModelConfig]]


@contextmanager
def refusing(dialect: str, refusal: dict[str, Any]) -> Generator[Refused]:
    adapter = adapter_of(dialect)
    assert adapter is not None
    config = {"model_id": MODELS[dialect]} | ({"store": False} if "responses" in dialect else {})
    with Refusing(dialect, refusal) as server:
        base = f"{server.url}/v1" if dialect.startswith("openai") else server.url
        model = adapter(config, base_url=base, api_key="k")
        yield server, model
        model.close()


def ask(
    model: Model[ModelConfig],
    dialect: str,
    *,
    is_sync: bool,
    **options: Any,  # noqa: ANN401 - options of a call
) -> Message:
    messages = history(dialect)
    if is_sync:
        return cast("Message", model.send_message_sync(messages, [TOOL], **options))

    async def asked() -> Message:
        async with model:
            return cast("Message", await model.send_message(messages, [TOOL], **options))

    return asyncio.run(asked())


@pytest.mark.parametrize(("dialect", "refusal"), REFUSALS)
def test_a_refused_replay_has_a_code_of_its_own(dialect: str, refusal: dict[str, Any]) -> None:
    fields = ErrorMapper().map_response(400, {}, refusal)
    assert fields.code is ErrorCode.REPLAY_REFUSED
    assert not fields.retryable
    with refusing(dialect, refusal) as (server, model):
        with pytest.raises(ModelError) as raised:
            ask(model, dialect, is_sync=True)
        assert raised.value.code is ErrorCode.REPLAY_REFUSED
        assert server.status == [400]


# Of Anthropic's binding error, the reasoning stays, and the provider drops it: tested below.
@pytest.mark.parametrize("is_sync", [True, False])
@pytest.mark.parametrize(("dialect", "refusal"), REFUSALS[1:])
def test_it_is_sent_once_more_without_the_reasoning(
    dialect: str, refusal: dict[str, Any], is_sync: bool
) -> None:
    for is_whole in (False, True):
        with refusing(dialect, refusal) as (server, model):
            options = {"stream": not is_whole}
            message = ask(model, dialect, is_sync=is_sync, repair="auto", **options)
            assert server.status == [400, 200]
        assert message.text == "Done."
        assert "replay_repaired" in [warning["code"] for warning in message.meta.warnings]
        first, second = (request.json() for request in server.requests)
        assert "17:42" in json.dumps(second)
        assert "tide" in json.dumps(second)
        assert "SECRET" in json.dumps(first)


def test_a_budget_of_thinking_is_off_where_an_open_call_has_none() -> None:
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": LATEST}}
    with refusing("anthropic-messages", refusal) as (server, model):
        ask(
            model,
            "anthropic-messages",
            is_sync=True,
            repair="auto",
            thinking={"type": "enabled", "budget_tokens": 1024},
            max_tokens=2000,
        )
        sent: dict[str, Any] = json.loads(server.requests[-1].body)
        assert sent["thinking"] == {"type": "disabled"}


def test_a_refusal_of_another_kind_is_not_repaired() -> None:
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    for is_sync in (True, False):
        with refusing("anthropic-messages", refusal) as (server, model):
            with pytest.raises(ModelError) as raised:
                ask(model, "anthropic-messages", is_sync=is_sync, repair="auto")
            assert raised.value.message == "no"
            assert raised.value.status == 400
            assert server.status == [400]


def test_a_request_that_has_nothing_to_take_out_is_not_sent_again() -> None:
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": LATEST}}
    with refusing("anthropic-messages", refusal) as (server, model):
        with pytest.raises(ModelError) as raised:
            model.send_message_sync("SECRET", repair="auto")
        assert raised.value.code is ErrorCode.REPLAY_REFUSED
        assert server.status == [400]


def thought(text: str) -> Block:
    return {"type": "thinking", "thinking": text}


def said(text: str) -> Block:
    return {"type": "text", "text": text}


SCRIPT: Final = [[thought(f"t{number}"), said(f"a{number}")] for number in range(12)]


def changed_conversation(model: AnthropicModel) -> list[Message]:
    """Have a conversation, and change its beginning."""
    messages = [Message.system("Monday."), Message.user("q0")]
    for number in range(2):
        messages += [model.send_message_sync(messages), Message.user(f"q{number + 1}")]
    messages[0] = Message.system("Tuesday.")
    return messages


@pytest.mark.parametrize("through", ["httpx2", "sdk"])
def test_bound_thinking_is_dropped_by_the_provider_on_request(through: str) -> None:
    with BindingServer(SCRIPT) as server:
        client = None
        if through == "sdk":
            client = anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)
        config = {
            "model_id": "claude-fable-5-1",
            "max_tokens": 1000,
            "extra_headers": {"Anthropic-Beta": "context-1m-2025-08-07"},
        }
        model = AnthropicModel(config, base_url=server.url, api_key="k", client=client)
        messages = changed_conversation(model)
        count = len(server.requests)
        message = model.send_message_sync(messages, repair="auto")
        assert len(server.requests) == count + 2
        model.close()
    assert len(server.refusals) == 1
    sent = server.bodies[-1]
    assert sent["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert sent["thinking"]["type"] == "adaptive"
    betas = next(
        value
        for name, value in server.requests[-1].headers.items()
        if name.lower() == "anthropic-beta"
    )
    assert betas == f"context-1m-2025-08-07,{BETA}"
    assert server.dropped[-1] == ["messages.1.content.0", "messages.3.content.0"]
    codes = [warning["code"] for warning in message.meta.warnings]
    assert "replay_repaired" in codes
    assert "input_transformed" in codes


@pytest.mark.parametrize("is_sync", [True, False])
def test_an_agent_is_refused_once_a_session(is_sync: bool) -> None:
    with BindingServer(SCRIPT) as server:
        state_of = AgentState.create_default("Monday.")
        config = {"model_id": "claude-fable-5-1", "max_tokens": 1000}
        for number in range(8):
            if number == 3:
                state_of.set_system_instruction("Tuesday.")
            if number == 6:  # another process
                state_of = AgentState(
                    ConversationLog.from_json(state_of.log.to_json()), [MemoryNotebookWidget()]
                )
            model = AnthropicModel(config, base_url=server.url, api_key="k")
            agent = Talk(Agent(model=model), state_of, (model,))
            result = agent.run_sync(f"q{number}") if is_sync else asyncio.run(_run(agent, number))
            assert result.text == f"a{number}"
    assert len(server.refusals) == 1
    # What was said after the repair goes back again.
    assert len(thinking_in(server.bodies[-1])) == 4


async def _run(agent: Talk[None], number: int) -> Any:  # noqa: ANN401 - a result
    async with agent:
        return await agent.run(f"q{number}")


def test_the_gateway_repairs_each_refused_request() -> None:
    with BindingServer(SCRIPT) as server:
        config = {"model_id": "claude-fable-5-1", "max_tokens": 1000}
        model = AnthropicModel(config, base_url=server.url, api_key="k")
        with served(create_app({"claude-fable-5-1": model})) as url:
            messages: list[Block] = [{"role": "user", "content": "q0"}]
            for number in range(4):
                system = "Monday." if number < 2 else "Tuesday."
                body = {
                    "model": "claude-fable-5-1",
                    "max_tokens": 1000,
                    "system": system,
                    "messages": messages,
                }
                response = httpx2.post(f"{url}/v1/messages", json=body, timeout=30)
                assert response.status_code == 200, response.text
                messages.append({"role": "assistant", "content": response.json()["content"]})
                messages.append({"role": "user", "content": f"q{number + 1}"})
    # The client sends the thinking of before the change again and again.
    assert len(server.refusals) == 2
    assert len(server.bodies) == 4
