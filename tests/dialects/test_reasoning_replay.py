"""Vendors that bind reasoning to tools get it with each tool turn, also where there was none."""

from typing import Any, cast

import pytest

import deltafold
from deltafold import Message, ModelConfig, ThinkingPart, ToolCallPart, ToolSpec, load_model
from deltafold.conversation import RepairPolicy, check, repair
from deltafold.dialects import dialect_of
from deltafold.models.vendors import VENDORS
from deltafold.testing import Recording, ReplayTransport
from transcoded import call, calls, chat

Body = dict[str, Any]

TOOL = ToolSpec(name="f", description="d", parameter_schema={"type": "object", "properties": {}})
CALL = ToolCallPart(tool_call_id="call_a", tool_name="f", raw_args_text="{}")
RESULT = Message.tool_result("call_a", "ok")
EMPTY = deltafold.fold(
    chat({"reasoning_content": ""}, calls(call(0, "{}", "call_a", "f")), finish="tool_calls"),
    "openai-chat",
)
OTHER = deltafold.fold(
    chat(calls(call(0, "{}", "call_a", "f")), finish="tool_calls"), "openai-chat", model_id="gpt-5"
)
CLAUDE = Message.assistant(
    ThinkingPart(
        text="plan",
        provider_state={
            "dialect": "anthropic-messages",
            "modelId": "claude-opus-4-8",
            "data": {"signature": "s" * 20},
        },
    ),
    CALL,
)
WITHHELD = Message.assistant(
    ThinkingPart(
        text="",
        redacted=True,
        provider_state={
            "dialect": "anthropic-messages",
            "modelId": "claude-opus-4-8",
            "data": {"type": "redacted_thinking", "data": "x" * 20},
        },
    ),
    CALL,
)
THOUGHT = Message.assistant(ThinkingPart(text="hm"), CALL)

VENDOR_MODELS = [("deepseek/deepseek-v4-pro", ""), ("moonshot/kimi-k2.6", " ")]


def config_of(name: str, dialect: str | None = None) -> ModelConfig:
    settings: Body = {} if dialect is None else {"specification": dialect}
    return cast("ModelConfig", load_model(name, api_key="k", **settings).get_config())


def chat_answers(
    config: ModelConfig, *messages: Message, tools: tuple[ToolSpec, ...] = ()
) -> list[Any]:
    """Return the reasoning of each message of the assistant."""
    history = [Message.user("q"), *messages]
    body = dialect_of("openai-chat").render(history, tools, config).body
    answers = [one for one in cast("list[Body]", body["messages"]) if one["role"] == "assistant"]
    return [one.get("reasoning_content") for one in answers]


@pytest.mark.parametrize(("name", "placeholder"), VENDOR_MODELS)
@pytest.mark.parametrize(
    ("message", "text"),
    [(EMPTY, None), (OTHER, None), (WITHHELD, None), (CLAUDE, "plan"), (THOUGHT, "hm")],
    ids=["empty", "another-model", "withheld", "of-claude", "its-own"],
)
def test_each_call_has_reasoning(
    name: str, placeholder: str, message: Message, text: str | None
) -> None:
    expected = placeholder if text is None else text
    config = config_of(name)
    assert chat_answers(config, message, RESULT) == [expected]
    # A closed turn and its final answer keep theirs.
    later = (message, RESULT, Message.assistant("Done."), Message.user("Thanks"))
    assert chat_answers(config, *later) == [expected, placeholder]
    # A turn without tools needs none.
    assert chat_answers(config, Message.assistant("Hi."), Message.user("Go"), *later) == [
        None,
        expected,
        placeholder,
    ]


@pytest.mark.parametrize(("name", "placeholder"), VENDOR_MODELS)
def test_a_request_with_tools_has_reasoning_in_each_answer(name: str, placeholder: str) -> None:
    config = config_of(name)
    history = (
        Message.assistant("Hi."),
        Message.user("Go"),
        Message.assistant(ThinkingPart(text="hm"), deltafold.TextPart(text="Done.")),
        Message.user("And?"),
    )
    assert chat_answers(config, *history, tools=(TOOL,)) == [placeholder, "hm"]


@pytest.mark.parametrize("name", ["openai/gpt-4.1", "zai/glm-5", "openrouter/a/b", "mistral/large"])
def test_other_vendors_get_no_placeholder(name: str) -> None:
    config = config_of(name)
    dialect = VENDORS[name.partition("/")[0]].dialect
    body = dialect_of(dialect).render([Message.user("q"), EMPTY, RESULT], [TOOL], config).body
    assert "reasoning" not in str(body)


def test_the_model_of_the_vendor_sends_it() -> None:
    transport = ReplayTransport({"*": Recording.of_events(chat({"content": "ok"}))})
    model = load_model("moonshot/kimi-k2.6", api_key="k", client=transport)
    model.send_message_sync([Message.user("q"), EMPTY, RESULT], tool_specs=[TOOL])
    assert cast("Body", transport.requests[0].json())["messages"][1]["reasoning_content"] == " "


def blocks_of(config: ModelConfig, *messages: Message, tools: tuple[ToolSpec, ...] = ()) -> Any:  # noqa: ANN401
    history = [Message.user("q"), *messages]
    body = dialect_of("anthropic-messages").render(history, tools, config).body
    answers = [one for one in cast("list[Body]", body["messages"]) if one["role"] == "assistant"]
    return [one["content"] for one in answers]


USE: Body = {"type": "tool_use", "id": "call_a", "name": "f", "input": {}}


def thinking(text: str) -> Body:
    return {"type": "thinking", "thinking": text}


@pytest.mark.parametrize(("name", "placeholder"), VENDOR_MODELS)
@pytest.mark.parametrize(
    ("message", "text"),
    [(EMPTY, None), (OTHER, None), (WITHHELD, None), (CLAUDE, "plan"), (THOUGHT, "hm")],
    ids=["empty", "another-model", "withheld", "of-claude", "its-own"],
)
def test_each_call_has_a_thinking_block_over_messages(
    name: str, placeholder: str, message: Message, text: str | None
) -> None:
    config = config_of(name, "messages")
    expected = [thinking(placeholder if text is None else text), USE]
    assert blocks_of(config, message, RESULT) == [expected]
    later = (message, RESULT, Message.assistant("Done."), Message.user("Thanks"))
    done = {"type": "text", "text": "Done."}
    assert blocks_of(config, *later) == [expected, [thinking(placeholder), done]]
    plain = blocks_of(config, Message.assistant("Hi."), Message.user("And?"))
    assert plain == [[{"type": "text", "text": "Hi."}]]
    with_tools = blocks_of(config, Message.assistant("Hi."), Message.user("And?"), tools=(TOOL,))
    assert with_tools == [[thinking(placeholder), *plain[0]]]


@pytest.mark.parametrize(("name", "_"), VENDOR_MODELS)
def test_no_blank_text_parts_thinking_without_a_signature(name: str, _: str) -> None:
    config = config_of(name, "messages")
    message = Message.assistant(ThinkingPart(text="a"), "\n", ThinkingPart(text="b"), CALL)
    assert blocks_of(config, message, RESULT) == [[thinking("a"), thinking("b"), USE]]


def test_signed_thinking_of_the_vendor_keeps_its_signature() -> None:
    config = config_of("deepseek/deepseek-v4-pro", "messages")
    state: Body = {
        "dialect": "anthropic-messages",
        "modelId": config.model_id,
        "data": {"signature": "sig"},
    }
    said = Message.assistant(ThinkingPart(text="hm", provider_state=state), CALL)
    assert blocks_of(config, said, RESULT) == [[thinking("hm") | {"signature": "sig"}, USE]]


def test_anthropic_gets_signed_thinking_alone() -> None:
    config = config_of("anthropic/claude-opus-4-8")
    assert blocks_of(config, THOUGHT, RESULT) == [[USE]]
    assert blocks_of(config, EMPTY, RESULT) == [[USE]]


def test_no_repair_takes_the_thinking_away() -> None:
    transport = ReplayTransport({"*": Recording.error(500, {})})
    name = "deepseek/deepseek-v4-pro"
    model = load_model(name, specification="messages", api_key="k", client=transport)
    with pytest.raises(deltafold.ModelError):
        model.send_message_sync(
            [Message.user("q"), THOUGHT, RESULT], tool_specs=[TOOL], repair="auto", strict=True
        )
    sent = cast("Body", transport.requests[0].json())
    assert sent["messages"][1]["content"] == [thinking("hm"), USE]


def test_a_policy_keeps_thinking_without_a_signature() -> None:
    history = [Message.user("q"), THOUGHT, RESULT]
    assert check(history, "anthropic-messages").codes == ["unsigned_thinking"]
    kept, report = repair(history, "anthropic-messages", RepairPolicy(thinking="keep"))
    assert (kept, report.is_clean) == (history, True)


def signed_text() -> Message:
    signature = {"google": {"thought_signature": "AAA="}}
    return deltafold.fold(
        chat({"content": "Hi"}, {"content": "", "extra_content": signature}),
        "openai-chat",
        model_id="gpt-x",
    )


def test_the_signature_of_a_text_goes_back_to_its_model() -> None:
    for model_id, is_sent in (("gpt-x", True), ("another", False)):
        config = deltafold.OpenAIChatConfig(model_id=model_id)
        history = [Message.user("q"), signed_text(), Message.user("And?")]
        body = dialect_of("openai-chat").render(history, [], config).body
        message = cast("list[Body]", body["messages"])[1]
        assert message["content"] == "Hi"
        assert ("extra_content" in message) == is_sent


def test_the_signature_of_a_text_comes_back_from_a_client() -> None:
    config = deltafold.OpenAIChatConfig(model_id="gpt-x")
    history = [Message.user("q"), signed_text()]
    body = dialect_of("openai-chat").render(history, [], config).body
    parsed = deltafold.parse_request(body, "openai-chat")
    again = dialect_of("openai-chat").render(parsed.messages, [], config).body
    assert again["messages"] == body["messages"]
    for written in (
        deltafold.transcode(
            chat({"content": "Hi", "extra_content": {"a": 1}}), "openai-chat", "openai-chat"
        ),
        deltafold.encode_message(
            deltafold.fold(chat({"content": "Hi", "extra_content": {"a": 1}}), "openai-chat"),
            "openai-chat",
        ).body,
    ):
        (part,) = deltafold.fold(written, "openai-chat").parts
        assert cast("Body", part.provider_state)["data"] == {"extra_content": {"a": 1}}
