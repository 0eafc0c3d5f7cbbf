"""A history goes into the next call of any SDK, whole and message by message.

In: conversations of the table, answers of every protocol.  Out: the members of a request, what the
official clients send for them, and errors that name what to do instead.
"""

import asyncio
import inspect
import logging
import warnings
from typing import Any, Final, cast
from unittest.mock import create_autospec

import anthropic
import httpx2
import openai
import pytest
from pydantic.alias_generators import to_camel

import deltafold
from conversations import CASES, DIALECTS, MODELS, Case
from deltafold import ImagePart, Message, MisuseError, TextPart, ThinkingPart, ToolCallPart
from deltafold.contract.names import (
    MarkupName,
    ProtocolName,
    RequestProtocol,
    TargetName,
    WrittenProtocol,
)
from deltafold.dialects import DIALECTS as ROWS
from deltafold.dialects import dialect_of
from deltafold.testing import answer
from sdk_calls import CALLS, anthropic_client, openai_client, sent_by

PNG: Final = "iVBORw0KGgo="
PROTOCOLS: Final = cast("list[RequestProtocol]", list(DIALECTS))
MISSPELLED: Final = cast("RequestProtocol", "openai-chta")
WITHOUT_REQUESTS: Final = cast("RequestProtocol", "bedrock-invoke")
every_dialect = pytest.mark.parametrize("dialect", PROTOCOLS)
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def names_of(alias: Any) -> set[str]:  # noqa: ANN401 - a Literal
    return set(alias.__args__)


def test_the_names_of_the_types_are_those_of_the_package() -> None:
    assert names_of(RequestProtocol) == set(ROWS)
    assert names_of(ProtocolName) == set(deltafold.dialect_names())
    assert names_of(TargetName) == set(deltafold.target_names())
    assert names_of(WrittenProtocol) == names_of(ProtocolName) & names_of(TargetName)
    assert names_of(MarkupName) == set(deltafold.markup_names())


def signed(dialect: str) -> list[Message]:
    """Return a conversation with an image, signed thinking, a call and its result."""
    state = {"dialect": dialect, "modelId": MODELS[dialect]}
    data: dict[str, dict[str, object]] = {
        "anthropic-messages": {"signature": "c2ln"},
        "gemini": {"thoughtSignature": "c2ln"},
        "bedrock-converse": {"redactedContent": "c2ln"},
    }
    thought = ThinkingPart(
        text="" if dialect == "bedrock-converse" else "Brest.",
        redacted=dialect == "bedrock-converse",
        provider_state={**state, "data": data.get(dialect, {})},
    )
    call = ToolCallPart(tool_call_id="call12345", tool_name="tide", raw_args_text='{"input": "x"}')
    asked = Message.assistant(thought, "I look.", call)
    asked.meta.model_id = MODELS[dialect]
    return [
        Message.system("Be brief."),
        Message.user("Where?", ImagePart(mime_type="image/png", data=PNG)),
        asked,
        Message.tool_result("call12345", "17:42"),
        Message.assistant("At 17:42."),
        Message.user("And in Dover?"),
    ]


@every_dialect
@every_case
def test_the_members_are_those_of_a_request(case: Case, dialect: RequestProtocol) -> None:
    messages, row = case.messages(dialect), dialect_of(dialect)
    config = row.config_class.model_validate({"model_id": MODELS[dialect]})
    body = row.render(messages, [], config).body
    members = deltafold.render_messages(
        messages, dialect, model_id=MODELS[dialect], vendor=row.author
    )
    if dialect == "bedrock-converse":
        assert members.keys() <= body.keys()
    else:
        assert members == {name: body[name] for name in row.history if name in body}


@every_dialect
def test_the_official_client_sends_the_members_as_they_are(dialect: RequestProtocol) -> None:
    history, row = signed(dialect), dialect_of(dialect)
    config = row.config_class.model_validate({"model_id": MODELS[dialect]})
    wanted = row.render(history, [], config).body
    sent = sent_by(dialect, deltafold.render_messages(history, dialect, vendor=row.author))
    for member in row.history:
        if member in wanted:
            assert normal(sent[member], dialect) == normal(wanted[member], dialect)


@every_dialect
def test_messages_one_by_one_are_the_history(dialect: RequestProtocol) -> None:
    history, row = signed(dialect)[1:], dialect_of(dialect)
    whole = deltafold.render_messages(history, dialect, vendor=row.author)
    pieces: list[dict[str, object]] = []
    for said in (history[:1], history[1:3], history[3:4], history[4:]):
        members = deltafold.render_messages(
            said, dialect, model_id=MODELS[dialect], vendor=row.author, excerpt=True
        )
        pieces += members[row.history[0]]
    if dialect == "ollama":  # its reasoning goes back while a tool loop is open
        pieces[1].pop("thinking")
    assert pieces == whole[row.history[0]]


def test_a_result_alone_goes_where_its_protocol_names_no_tool() -> None:
    result = Message.tool_result("call12345", "17:42")
    chat = {"role": "tool", "tool_call_id": "call12345", "content": "17:42"}
    assert result.to_api("openai-chat") == [chat]
    with pytest.raises(MisuseError, match="excerpt=True"):
        result.to_api("gemini")


def normal(value: Any, client: str) -> Any:  # noqa: ANN401 - JSON
    """Return JSON without empty members, and without what a client is known to change.

    google-genai writes some names in snake_case, and the types of ollama have no id of a call.
    """
    if isinstance(value, list):
        return [normal(item, client) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {
        to_camel(name) if client == "gemini" else name: normal(item, client)
        for name, item in cast("dict[str, object]", value).items()
        if client != "ollama" or name not in {"id", "tool_call_id"}
    }
    return {name: item for name, item in found.items() if item not in (None, [], {}, "", False)}


def test_every_protocol_has_a_client_here() -> None:
    assert set(CALLS) == set(ROWS)


def test_a_fold_goes_back() -> None:
    call = ("call_1", "tide", {"place": "Brest"})
    message = deltafold.fold(answer("openai-chat", "Hi", call).body, "openai-chat")
    function = {"name": "tide", "arguments": '{"place": "Brest"}'}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    expected = [{"role": "assistant", "content": "Hi", "tool_calls": calls}]
    assert message.to_api("openai-chat") == expected


def test_an_excerpt_gets_no_turn_before_it_and_no_end() -> None:
    said = Message.assistant("So far \n")
    assert said.to_api("anthropic-messages")[0]["content"] == [
        {"type": "text", "text": "So far \n"}
    ]
    assert said.to_api("mistral") == [{"role": "assistant", "content": "So far \n"}]
    assert [one["role"] for one in said.to_api("gemini")] == ["model"]
    assert deltafold.render_messages(said, "mistral")["messages"][-1]["prefix"] is True


def test_state_goes_to_its_own_model_alone(caplog: pytest.LogCaptureFixture) -> None:
    asked = signed("anthropic-messages")[2]
    own = asked.to_api("anthropic-messages")[0]["content"]
    assert [block["type"] for block in own] == ["thinking", "text", "tool_use"]
    assert not caplog.records
    other = asked.to_api("anthropic-messages", model_id="claude-haiku-4-5")[0]["content"]
    assert [block["type"] for block in other] == ["text", "tool_use"]
    with caplog.at_level(logging.WARNING, "deltafold"):
        assert "thinking" not in str(asked.to_api("openai-chat"))
    assert "a thinking part carries no state of this model" in caplog.text


def test_the_notes_say_what_is_not_expressed() -> None:
    members = deltafold.render_messages(signed("anthropic-messages"), "openai-chat")
    assert [note["code"] for note in members.notes] == ["thinking_dropped"]


def test_a_vendor_gets_its_reasoning_back() -> None:
    said = Message.assistant(ThinkingPart(text="Brest."), TextPart(text="I look."))
    said.meta.model_id = "deepseek-v4-pro"
    call = ToolCallPart(tool_call_id="c1", tool_name="tide", raw_args_text="{}")
    said = said.model_copy(update={"parts": [*said.parts, call]})
    assert said.to_api("openai-chat")[0]["reasoning_content"] == "Brest."
    assert "reasoning_content" not in said.to_api("openai-chat", vendor="openai")[0]
    assert (
        "reasoning" in said.to_api("openai-chat", vendor="deepseek", model_id="m")[0].popitem()[0]
    )


def test_the_newest_answer_names_the_model() -> None:
    history = signed("anthropic-messages")
    messages: Any = deltafold.render_messages(history, "anthropic-messages")["messages"]
    assert messages[1]["content"][0] == {
        "type": "thinking",
        "thinking": "Brest.",
        "signature": "c2ln",
    }


def test_forms_of_a_history() -> None:
    chat = [{"role": "user", "content": "Hi"}]
    assert deltafold.render_messages("Hi", "openai-chat") == {"messages": chat}
    assert deltafold.render_messages(chat, "openai-chat", system_prompt="Be brief.") == {
        "messages": [{"role": "system", "content": "Be brief."}, *chat]
    }
    unanswered = [Message.user("?"), signed("openai-chat")[2], Message.user("!")]
    kept = deltafold.render_messages(unanswered, "openai-chat")
    assert "orphan_call" in {note["code"] for note in kept.notes}
    mended = deltafold.render_messages(unanswered, "openai-chat", repair="auto")
    assert len(mended["messages"]) == len(kept["messages"]) + 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Message.user("x").to_api(cast("RequestProtocol", "openai-chta")), "openai-chat"),
        (
            lambda: Message.user("x").to_api(cast("RequestProtocol", "bedrock-invoke")),
            "no request is rendered",
        ),
        (lambda: Message.system("x").to_api("anthropic-messages"), "render_messages"),
        (lambda: Message.system("x").to_api("gemini"), "'systemInstruction'"),
        (lambda: Message.user("x").to_api("openai-chat", vendor="nobody"), "'nobody'"),
        (lambda: Message.user("x").to_api("openai-chat", vendor="google"), "google speaks gemini"),
    ],
)
def test_wrong_uses_are_named(call: Any, said: str) -> None:  # noqa: ANN401 - a call
    with pytest.raises(MisuseError, match=said):
        call()


def test_a_message_is_no_message_of_an_sdk() -> None:
    said = Message.assistant("Hi")
    chat, claude = openai_client(), anthropic_client()
    calls: list[Any] = [
        lambda: chat.chat.completions.create(model="m", messages=[said]),
        lambda: chat.chat.completions.create(model="m", messages=[said], stream=True),
        lambda: chat.responses.create(model="m", input=[said]),
        lambda: claude.messages.create(model="m", max_tokens=9, messages=[said]),
        lambda: claude.messages.count_tokens(model="m", messages=[said]),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"message\.to_api\('openai-chat'\)"):
            call()


def test_a_debugger_and_a_mock_look_through_the_members_of_a_message() -> None:
    said = Message.assistant("Hi")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of pydantic's own members
        assert dict(inspect.getmembers(said))["text"] == "Hi"
        assert create_autospec(said).to_api("openai-chat") is not None
    assert hasattr(said, "__api_exclude__")
    assert said.model_dump(exclude={"id"}) == said.model_dump()


def test_a_message_is_no_message_of_an_asynchronous_sdk() -> None:
    def refuse(_: httpx2.Request) -> httpx2.Response:
        raise AssertionError("a request was sent")

    async def run() -> None:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(refuse))
        said: Any = Message.assistant("Hi")
        chat = openai.AsyncOpenAI(api_key="k", http_client=http, max_retries=0)
        with pytest.raises(TypeError, match="to_api"):
            await chat.chat.completions.create(model="m", messages=[said])
        claude = anthropic.AsyncAnthropic(api_key="k", http_client=http, max_retries=0)
        with pytest.raises(TypeError, match="to_api"):
            await claude.messages.create(model="m", max_tokens=9, messages=[said])
        await http.aclose()

    asyncio.run(run())
