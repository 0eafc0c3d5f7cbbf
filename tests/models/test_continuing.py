"""Answers that broke off: continued by another request, or resumed from the provider's copy."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

import deltafold
from corpus import ROOT
from deltafold import (
    AnthropicModel,
    Message,
    MisuseError,
    ModelError,
    OpenAIResponsesModel,
    TextPart,
    ToolCallPart,
    load_model,
)
from deltafold.models import Model
from deltafold.testing import Recording, ReplayServer
from wires import claude, gpt

BEGINNING = "The tide is high "
REST = "at 17:42."


USED: list[Model[Any]] = []


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as replay:
        yield replay
    while USED:
        USED.pop().close()


def used(model: Model[Any]) -> Model[Any]:
    """Return a model that is closed after the test."""
    USED.append(model)
    return model


def cut_after_text(body: bytes, mark: bytes) -> Recording:
    """Return a recording that breaks off before the first event with this mark."""
    end = body.rindex(b"\n\n", 0, body.index(mark)) + 2
    return Recording.of_events(body).stopping("cut", end)


def failed(model: Model[Any], **settings: Any) -> ModelError:  # noqa: ANN401
    with model.stream_sync("When?", output=None, **settings) as stream:
        for _ in stream:
            pass
    error = stream.error
    assert error is not None
    assert error.partial_message is not None
    return error


def claude_model(server: ReplayServer, model_id: str = "claude-sonnet-4-5") -> Model[Any]:
    return used(AnthropicModel({"model_id": model_id}, base_url=server.url, api_key="k"))


def test_claude_continues_the_text_that_ends_the_request(server: ReplayServer) -> None:
    server.queue(
        cut_after_text(claude(BEGINNING), b"content_block_stop"), Recording.of_events(claude(REST))
    )
    model = claude_model(server)
    partial = failed(model).partial_message
    assert partial is not None
    assert model.can_continue(partial)
    message = model.send_message_sync("When?", continue_from=partial)
    assert message.text == BEGINNING + REST
    assert len(message.parts) == 1
    assert [warning["code"] for warning in message.meta.warnings] == ["continued"]
    assert message.meta.usage is not None
    assert message.meta.usage.input_tokens == 100
    assert message.meta.usage.output_tokens == 21
    assert message.meta.cost_usd == pytest.approx((100 * 3 + 21 * 15) / 1e6)
    body: Any = server.requests[1].json()
    # The Messages API refuses white space at the end.
    last = {"role": "assistant", "content": [{"type": "text", "text": BEGINNING.rstrip()}]}
    assert body["messages"][1:] == [last]


@pytest.mark.parametrize(
    ("beginning", "rest", "whole"),
    [
        ("The tide ", "is high", "The tide is high"),
        ("The tide ", " is high", "The tide is high"),
        ("The tide", " is high", "The tide is high"),
        ("The tide\n\n", "\n\nis high", "The tide\n\nis high"),
        ("The", "The", "TheThe"),
    ],
)
def test_the_join_has_each_space_once(
    server: ReplayServer, beginning: str, rest: str, whole: str
) -> None:
    server.queue(Recording.of_events(claude(rest)))
    partial = Message.assistant(beginning)
    message = claude_model(server).send_message_sync("When?", continue_from=partial)
    assert message.text == whole


def test_the_example_of_the_documentation_runs(server: ReplayServer) -> None:
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    section = text.partition("### Answers that broke off\n")[2]
    server.queue(
        cut_after_text(claude(BEGINNING), b"content_block_stop"), Recording.of_events(claude(REST))
    )
    found: dict[str, Any] = {"deltafold": deltafold, "model": claude_model(server)}
    exec(section.split("```python\n")[1].split("```")[0], found)  # noqa: S102 - our own
    assert found["ask_on"]("When?").text == BEGINNING + REST


def test_an_answer_may_break_off_again(server: ReplayServer) -> None:
    server.queue(
        cut_after_text(claude("The tide"), b"content_block_stop"),
        cut_after_text(claude(" is high"), b"content_block_stop"),
        Recording.error(529, {"type": "error", "error": {"type": "overloaded_error"}}),
        Recording.of_events(claude(" at 17:42.")),
    )
    model = claude_model(server)
    partial = failed(model).partial_message
    for text in ("The tide is high", "The tide is high"):
        partial = failed(model, continue_from=partial).partial_message
        assert partial is not None
        assert partial.text == text
    message = model.send_message_sync("When?", continue_from=partial)
    assert message.text == "The tide is high at 17:42."
    assert [warning["code"] for warning in message.meta.warnings] == ["continued"]
    assert message.meta.usage is not None
    assert message.meta.usage.input_tokens == 150


def test_deepseek_continues_at_its_beta_address(server: ReplayServer) -> None:
    server.queue(
        cut_after_text(gpt(BEGINNING), b'"finish_reason":"'), Recording.of_events(gpt(REST))
    )
    model = used(load_model("deepseek/deepseek-chat", base_url=f"{server.url}/v1", api_key="k"))
    message = model.send_message_sync("When?", continue_from=failed(model).partial_message)
    assert message.text == BEGINNING + REST
    assert [request.path for request in server.requests] == [
        "/v1/chat/completions",
        "/beta/chat/completions",
    ]
    body: Any = server.requests[1].json()
    assert body["messages"][-1] == {
        "role": "assistant",
        "content": BEGINNING.rstrip(),
        "prefix": True,
    }


@pytest.mark.parametrize("rest", [REST, BEGINNING + REST])
def test_mistral_may_repeat_the_beginning(server: ReplayServer, rest: str) -> None:
    server.queue(Recording.of_events(gpt(rest)))
    address = f"{server.url}/v1"
    model = used(load_model("mistral/mistral-large-latest", base_url=address, api_key="k"))
    message = model.send_message_sync("When?", continue_from=Message.assistant(BEGINNING))
    assert message.text == BEGINNING + REST
    body: Any = server.requests[0].json()
    assert body["messages"][-1]["prefix"] is True


def test_the_stream_of_the_rest_is_asynchronous_too(server: ReplayServer) -> None:
    server.queue(Recording.of_events(claude(REST)))

    async def main() -> tuple[str, Message]:
        partial = Message.assistant(BEGINNING)
        async with claude_model(server) as model:
            async with model.stream("When?", continue_from=partial) as stream:
                received = "".join([text async for text in stream.text()])
            return received, stream.message

    received, message = asyncio.run(main())
    assert received == REST
    assert message.text == BEGINNING + REST


CALL = ToolCallPart(tool_call_id="c", tool_name="f", arguments={}, raw_args_text="{}")


@pytest.mark.parametrize(
    ("name", "settings", "message", "obstacle"),
    [
        ("anthropic/claude-opus-4-6", {}, Message.assistant("a"), "not known to continue"),
        ("anthropic/claude-unheard-of", {}, Message.assistant("a"), "not known to continue"),
        (
            "anthropic/claude-sonnet-4-5",
            {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
            Message.assistant("a"),
            "asks for reasoning",
        ),
        (
            "anthropic/claude-sonnet-4-5",
            {"output_schema": {"type": "object"}},
            Message.assistant("{"),
            "asks for JSON",
        ),
        ("anthropic/claude-sonnet-4-5", {}, Message.assistant(CALL), "tool_call"),
        ("anthropic/claude-sonnet-4-5", {}, Message.assistant(" "), "no text at its end"),
        (
            "anthropic/claude-sonnet-4-5",
            {},
            Message.assistant(TextPart(text="No.", refusal=True)),
            "refusal",
        ),
        ("anthropic/claude-sonnet-4-5", {}, Message.user("a"), "of the assistant"),
        ("openai/gpt-4.1", {}, Message.assistant("a"), "does not continue answers"),
        ("google/gemini-2.5-pro", {}, Message.assistant("a"), "does not continue answers"),
    ],
)
def test_what_cannot_be_continued_is_refused(
    name: str, settings: dict[str, Any], message: Message, obstacle: str
) -> None:
    model = load_model(name, api_key="k", **settings)
    assert not model.can_continue(message)
    with pytest.raises(MisuseError, match=f"continue_from: .*{obstacle}"):
        model.stream_sync("When?", continue_from=message)


# Background responses.


def response_events(*texts: str) -> list[bytes]:
    """Return the events of a background response."""
    response: dict[str, object] = {"id": "resp_1", "model": "gpt-5", "status": "in_progress"}
    item: dict[str, object] = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    place = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
    usage = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
    ended = {**item, "content": [{"type": "output_text", "text": "".join(texts)}]}
    events: list[dict[str, object]] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({"type": "response.output_text.delta", **place, "delta": text} for text in texts),
        {"type": "response.output_item.done", "output_index": 0, "item": ended},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [ended], "usage": usage},
        },
    ]
    return [
        b"event: %b\ndata: %b\n\n"
        % (str(event["type"]).encode(), json.dumps({**event, "sequence_number": place}).encode())
        for place, event in enumerate(events)
    ]


def background(server: ReplayServer) -> OpenAIResponsesModel:
    return OpenAIResponsesModel(
        {"model_id": "gpt-5", "background": True, "store": True},
        base_url=f"{server.url}/v1",
        api_key="k",
    )


EVENTS = response_events("The tide ", "is high ", "at 17:42.")
WHOLE = b"".join(EVENTS)


@pytest.mark.parametrize("end", range(len(EVENTS[0]), len(WHOLE) - 1, 97))
def test_a_background_response_is_resumed_wherever_it_breaks_off(
    server: ReplayServer, end: int
) -> None:
    seen = WHOLE[:end].count(b"\n\n")
    rest = b"".join(EVENTS[seen:])
    server.queue(Recording.of_events(WHOLE).stopping("cut", end), Recording.of_events(rest))
    with background(server) as model, model.stream_sync("When?") as stream:
        received = "".join(stream.text())
    assert received == "The tide is high at 17:42."
    message = stream.message
    assert [warning["code"] for warning in message.meta.warnings] == ["resumed"]
    onward = server.requests[1]
    assert onward.method == "GET"
    assert onward.path == f"/v1/responses/resp_1?stream=true&starting_after={seen - 1}"


def test_a_background_response_is_resumed_asynchronously(server: ReplayServer) -> None:
    end = len(b"".join(EVENTS[:3])) + 20
    server.queue(
        Recording.of_events(WHOLE).stopping("end", end),
        Recording.error(503, {"error": {"message": "busy"}}),
        Recording.of_events(b"".join(EVENTS[3:4])),
        Recording.of_events(b"".join(EVENTS[4:])),
    )

    async def main() -> Message:
        async with background(server) as model:
            return await model.send_message("When?")

    message = asyncio.run(main())
    assert message.text == "The tide is high at 17:42."
    assert len(server.requests) == 4


def test_a_background_response_that_is_gone_keeps_what_arrived(server: ReplayServer) -> None:
    end = len(b"".join(EVENTS[:3]))
    gone = Recording.error(404, {"error": {"message": "no such response"}})
    server.queue(Recording.of_events(WHOLE).stopping("cut", end), gone, gone, gone)
    with background(server) as model:
        error = failed(model)
    assert error.partial_message is not None
    assert error.partial_message.text == "The tide "
    assert error.retryable
    assert len(server.requests) == 4


def test_a_refused_background_request_is_not_resumed(server: ReplayServer) -> None:
    server.queue(Recording.error(400, {"error": {"message": "no background here"}}))
    with background(server) as model, pytest.raises(ModelError, match="no background here"):
        model.send_message_sync("When?")
    assert len(server.requests) == 1


def test_other_responses_are_not_resumed(server: ReplayServer) -> None:
    server.queue(Recording.of_events(WHOLE).stopping("cut", len(WHOLE) // 2))
    model = OpenAIResponsesModel({"model_id": "gpt-5"}, base_url=f"{server.url}/v1", api_key="k")
    with model, pytest.raises(ModelError):
        model.send_message_sync("When?")
    assert len(server.requests) == 1
