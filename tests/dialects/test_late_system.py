"""System messages between the turns: where they stand, and that the system prompt stays.

In: a history, a dialect and a model.  Out: the roles and the texts of the request.

Sources: Anthropic's page on mid-conversation system messages; the chat template of Qwen 3.5; the
request references of the other protocols (read 2026-11).
"""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from deltafold import Message, ToolCallPart, parse_request
from deltafold.dialects import DIALECTS, dialect_of

MARKED: Final = "<system>\nIn French.\n</system>"
U, A, S = Message.user, Message.assistant, Message.system
CALL: Final = ToolCallPart(tool_call_id="call_1", tool_name="f", raw_args_text="{}")
RESULT: Final = Message.tool_result("call_1", "ok")

HISTORIES: Final[dict[str, list[Message]]] = {
    "before the user": [S("Be brief."), U("One"), A("1"), S("In French."), U("Two")],
    "behind the user": [S("Be brief."), U("One"), A("1"), U("Two"), S("In French.")],
    "between two of the user": [S("Be brief."), U("One"), S("In French."), U("Two")],
    "behind a result": [S("Be brief."), U("One"), A(CALL), RESULT, S("In French.")],
    "before the assistant": [S("Be brief."), U("One"), S("In French."), A("1"), U("Two")],
    "at the end": [S("Be brief."), U("One"), A("1"), S("In French.")],
}

TAKES: Final = (
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-fable-5-1",
    "claude-mythos-5",
    "anthropic/claude-opus-4-8",
)
TAKES_NOT: Final = (
    "claude-opus-4-7",
    "claude-sonnet-4-5-20250929",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-3-5-sonnet-latest",
)


def body_of(
    history: Sequence[Message], dialect: str, model_id: str, **settings: object
) -> tuple[dict[str, Any], list[str]]:
    row = dialect_of(dialect)
    config = row.config_class.model_validate({"model_id": model_id, **settings})
    rendered = row.render(history, [], config)
    return rendered.body, [str(note["code"]) for note in rendered.notes]


def roles(body: dict[str, Any]) -> list[str]:
    return [message["role"] for message in body.get("messages") or body["contents"]]


@pytest.mark.parametrize("name", [name for name in HISTORIES if name != "at the end"])
@pytest.mark.parametrize("model_id", TAKES)
def test_a_model_that_takes_it_gets_it_behind_the_user(model_id: str, name: str) -> None:
    body, codes = body_of(HISTORIES[name], "anthropic-messages", model_id)
    assert body["system"] == [{"type": "text", "text": "Be brief."}]
    place = roles(body).index("system")
    assert roles(body)[place - 1] == "user"
    assert roles(body)[place + 1 :][:1] in ([], ["assistant"])
    assert body["messages"][place]["content"] == [{"type": "text", "text": "In French."}]
    assert "system_as_user" not in codes


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("model_id", TAKES_NOT)
def test_a_model_that_takes_none_gets_a_text_of_the_user(model_id: str, name: str) -> None:
    body, codes = body_of(HISTORIES[name], "anthropic-messages", model_id)
    assert body["system"] == [{"type": "text", "text": "Be brief."}]
    assert "system" not in roles(body)
    texts = [block.get("text") for one in body["messages"] for block in one["content"]]
    assert MARKED in texts
    assert codes.count("system_as_user") == 1


def test_without_a_turn_of_the_user_it_becomes_one() -> None:
    body, codes = body_of(HISTORIES["at the end"], "anthropic-messages", "claude-opus-5")
    assert roles(body) == ["user", "assistant", "user"]
    assert body["messages"][-1]["content"] == [{"type": "text", "text": MARKED}]
    assert codes == ["system_as_user"]


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize(
    ("dialect", "model_id"),
    [
        ("gemini", "gemini-3-pro"),
        ("bedrock-converse", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("openai-chat", "Qwen/Qwen3-32B"),
        ("openai-chat", "qwen3.5:9b"),
    ],
)
def test_elsewhere_it_becomes_a_text_of_the_user_in_place(
    dialect: str, model_id: str, name: str
) -> None:
    body, codes = body_of(HISTORIES[name], dialect, model_id)
    system = body.get("systemInstruction") or body.get("system") or body["messages"][0]
    assert "Be brief." in str(system)
    assert "In French." not in str(system)
    assert [role for role in roles(body)[1:] if role == "system"] == []
    assert MARKED.replace("\n", "\\n") in str(body)
    assert codes.count("system_as_user") == 1


@pytest.mark.parametrize("dialect", ["openai-chat", "mistral", "cohere-chat", "ollama"])
def test_where_the_protocol_has_it_everywhere_it_stays(dialect: str) -> None:
    body, codes = body_of(HISTORIES["before the user"], dialect, "gpt-5")
    assert roles(body) == ["system", "user", "assistant", "system", "user"]
    assert codes == []


def test_a_setting_says_what_the_template_takes() -> None:
    history = [S("Be brief."), S("Be kind."), U("One"), S("In French.")]
    body, _ = body_of(history, "openai-chat", "my-model", system_messages="first")
    assert roles(body) == ["system", "user", "user"]
    assert "Be kind." in str(body["messages"][0])
    body, _ = body_of(history, "openai-chat", "qwen3", system_messages="anywhere")
    assert roles(body) == ["system", "system", "user", "system"]


def test_a_client_of_another_vendor_gets_its_own_message_back() -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "system", "content": "In French."}]
    for model_id, expected in (("kimi-k2", ["user", "system"]), ("claude-opus-4-5", ["user"])):
        given = {"model": model_id, "max_tokens": 5, "messages": messages}
        parsed = parse_request(given, "anthropic-messages")
        body, _ = body_of(parsed.messages, "anthropic-messages", model_id)
        assert roles(body) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", [name for name in HISTORIES if name != "between two of the user"])
def test_a_request_is_a_prefix_of_the_next_one(dialect: str, name: str) -> None:
    history = [message for message in HISTORIES[name] if message.role != "tool"]
    history = [message for message in history if not message.tool_calls]
    for model_id in ("claude-opus-5", "claude-sonnet-4-5", "qwen3", "gemini-3-pro"):
        first, _ = body_of(history, dialect, model_id)
        second, _ = body_of([*history, A("ok"), U("Three")], dialect, model_id)
        for member in ("system", "systemInstruction", "instructions"):
            assert first.get(member) == second.get(member)
        before, after = (
            one.get("messages") or one.get("contents") or one["input"] for one in (first, second)
        )
        assert after[: len(before)] == before
