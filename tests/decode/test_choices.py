"""Of several answers in one response, the one that `choice` names is followed, and no other."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

import deltafold
from corpus import FIXTURES
from deltafold import load_model
from deltafold.testing import Recording, ReplayTransport


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        ("bedrock-invoke/cohere-two-generations", ("ab", "xy")),
        ("bedrock-invoke/titan-two-answers", ("abc", "xy")),
        ("bedrock-invoke/whole-body-generations", ("one", "two")),
        ("bedrock-invoke/whole-body-results", ("one", "two")),
        ("gemini/candidates-sometimes-without-index", ("abcde", "xyyzz")),
        ("gemini/candidates-without-index", ("one", "two")),
        ("gemini/two-candidates", ("zero.", "one!")),
        ("openai-chat/choices-without-index", ("ab", "xy")),
        ("openai-chat/two-choices", ("AB", "x")),
        ("openai-chat/whole-body-two-choices", ("one", "two")),
    ],
)
def test_one_answer_is_followed(case: str, texts: tuple[str, str]) -> None:
    (wire,) = (FIXTURES / case).glob("wire.*")
    dialect = cast("Any", case.partition("/")[0])
    followed: list[str] = []
    for choice in (0, 1):
        batch = deltafold.decode_response(wire.read_bytes(), dialect, choice=choice)
        assembler = deltafold.MessageAssembler()
        assembler.consume(batch)
        message = assembler.snapshot()
        assert "other_choices" in {warning["code"] for warning in message.meta.warnings}
        followed.append(message.text)
    assert tuple(followed) == texts


CALLED = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
SPLIT: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Let me look"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "index": 0, **CALLED}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "b", "index": 0, **CALLED}]},
]
"""An answer in the pieces of GitHub Copilot."""


def split(member: str, numbers: tuple[int | None, ...]) -> list[dict[str, Any]]:
    choices: list[dict[str, Any]] = []
    for content, number in zip(SPLIT, numbers, strict=True):
        index = {} if number is None else {"index": number}
        choices.append({**index, member: content, "finish_reason": "tool_calls"})
    return choices


def whole(numbers: tuple[int | None, ...]) -> bytes:
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**body, "choices": split("message", numbers)}).encode()


def streamed(numbers: tuple[int | None, ...]) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [{**head, "choices": [choice]} for choice in split("delta", numbers)]
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def json_answer(body: bytes) -> Recording:
    return Recording.of(body, content_type="application/json")


@pytest.mark.parametrize("numbers", [(0, 1, 2), (0, 0, 0), (None, None, None)])
@pytest.mark.parametrize("form", [whole, streamed])
def test_choices_that_are_pieces_of_one_answer_are_joined_on_request(
    form: Callable[[tuple[int | None, ...]], bytes], numbers: tuple[int | None, ...]
) -> None:
    body = form(numbers)
    message = deltafold.fold(body, "openai-chat", choice="joined")
    assert [part.kind for part in message.parts] == ["text", "tool_call", "tool_call"]
    assert [call.tool_call_id for call in message.runnable_tool_calls] == ["a", "b"]
    assert (message.meta.finish_reason, message.meta.warnings) == ("tool_calls", [])
    # Without the request, nothing is lost without a word.
    alone = deltafold.fold(body, "openai-chat")
    assert len(alone.parts) == 3 or alone.meta.warnings[0]["code"] == "other_choices"


@pytest.mark.parametrize("form", [whole, streamed])
def test_the_row_of_a_vendor_joins_them(
    form: Callable[[tuple[int | None, ...]], bytes],
) -> None:
    body = form((0, 1, 2))
    recording = Recording.of_events(body) if form is streamed else json_answer(body)
    calls: dict[str, list[str]] = {}
    for name in ("github-copilot/claude-opus-4.5", "openai-chat/gpt-5"):
        model = load_model(name, api_key="k", client=ReplayTransport({"*": recording}))
        message = model.send_message_sync([deltafold.Message.user("Go")])
        calls[name] = [call.tool_call_id for call in message.tool_calls]
    assert list(calls.values()) == [["a", "b"], []]


def test_several_answers_of_the_vendor_stay_several() -> None:
    transport = ReplayTransport({"*": json_answer(whole((0, 1, 2)))})
    name = "github-copilot/claude-opus-4.5"
    model = load_model(name, api_key="k", client=transport, candidate_count=3)
    message = model.send_message_sync([deltafold.Message.user("Go")])
    assert [part.kind for part in message.parts] == ["text"]
    assert message.meta.warnings[0]["message"] == "choice 1 holds a tool call and is not followed"


@pytest.mark.parametrize("count", [None, 1, 3])
def test_a_caller_of_every_choice_gets_every_choice(count: int | None) -> None:
    async def numbers() -> list[int]:
        transport = ReplayTransport({"*": json_answer(whole((0, 1, 2)))})
        model = load_model("github-copilot/gpt-5", api_key="k", client=transport)
        stream = model.stream_choices("Go", candidate_count=count)
        return [ended.choice async for ended in stream]

    assert asyncio.run(numbers()) == [0, 1, 2]
