"""Request bodies of both dialects, rule by rule.

Checked against docs/protocols/anthropic-messages.md#request and
docs/protocols/openai-chat.md#request.
"""

from typing import Any, cast

import pytest

from deltafold import (
    CacheConfig,
    FileRefPart,
    ImagePart,
    Message,
    MisuseError,
    OpenAIChatConfig,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolChoice,
    ToolSpec,
)
from deltafold.dialects import (
    DIALECTS as REGISTRY,
)
from deltafold.dialects import dialect_of
from deltafold.dialects.rendered import NoteCode
from deltafold.models import AnthropicConfig, GeminiConfig

DIALECTS = list(REGISTRY)
anthropic_messages = dialect_of("anthropic-messages")
gemini = dialect_of("gemini")
openai_chat = dialect_of("openai-chat")
CLAUDE = AnthropicConfig(model_id="m")
CHAT = OpenAIChatConfig(model_id="m")
WEATHER = ToolSpec(
    name="weather",
    description="The weather in a city",
    parameter_schema={"type": "object", "properties": {"city": {"type": "string"}}},
    strict=True,
)


def state(data: dict[str, object], dialect: str, model_id: str = "m") -> dict[str, object]:
    return {"dialect": dialect, "modelId": model_id, "data": data}


def signed(text: str, model_id: str = "m") -> ThinkingPart:
    data: dict[str, object] = {"signature": f"sig:{text}"}
    return ThinkingPart(text=text, provider_state=state(data, "anthropic-messages", model_id))


def call(call_id: str, raw: str = '{"city": "Brest"}', *, incomplete: bool = False) -> ToolCallPart:
    return ToolCallPart(
        tool_call_id=call_id, tool_name="weather", raw_args_text=raw, incomplete=incomplete
    )


TOOL_TURNS = [
    Message.system("Be brief."),
    Message.user("Weather in Brest and Nantes?"),
    Message.assistant(signed("two calls"), TextPart(text="Looking."), call("a"), call("b", "{}")),
    Message.tool_result("a", "rain"),
    Message.tool_result("b", {"sky": "clear"}, is_error=True),
    Message.user("And tomorrow?"),
]


def test_anthropic_renders_a_tool_conversation() -> None:
    config = AnthropicConfig(
        model_id="m",
        max_tokens=9,
        temperature=0.5,
        stop_sequences=("END",),
        tool_choice=ToolChoice.tool("weather"),
        cache_config=CacheConfig(),
        thinking={"type": "adaptive"},
    )
    assert anthropic_messages.render(TOOL_TURNS, [WEATHER], config).body == {
        "model": "m",
        "max_tokens": 9,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief."}],
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "thinking": {"type": "adaptive"},
        "cache_control": {"type": "ephemeral"},
        "tool_choice": {"type": "tool", "name": "weather"},
        "tools": [
            {
                "name": "weather",
                "description": "The weather in a city",
                "input_schema": WEATHER.parameter_schema,
                "strict": True,
            }
        ],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "Weather in Brest and Nantes?"}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "two calls", "signature": "sig:two calls"},
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Brest"}},
                    {"type": "tool_use", "id": "b", "name": "weather", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "rain"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "b",
                        "content": '{"sky":"clear"}',
                        "is_error": True,
                    },
                    {"type": "text", "text": "And tomorrow?"},
                ],
            },
        ],
    }


def test_openai_chat_renders_a_tool_conversation() -> None:
    config = OpenAIChatConfig(
        model_id="m",
        max_tokens=9,
        stop_sequences=("END",),
        tool_choice=ToolChoice.tool("weather"),
        seed=7,
    )
    assert openai_chat.render(TOOL_TURNS, [WEATHER], config).body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 9,
        "stop": ["END"],
        "seed": 7,
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "The weather in a city",
                    "parameters": WEATHER.parameter_schema,
                    "strict": True,
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Brest and Nantes?"},
            {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city": "Brest"}'},
                    },
                    {
                        "id": "b",
                        "type": "function",
                        "function": {"name": "weather", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "rain"},
            {"role": "tool", "tool_call_id": "b", "content": '{"sky":"clear"}'},
            {"role": "user", "content": "And tomorrow?"},
        ],
    }


def claude_turns(*messages: Message) -> list[Any]:
    body: Any = anthropic_messages.render(messages, [], CLAUDE).body
    return list(body["messages"])


def claude_blocks(*messages: Message) -> list[Any]:
    turns = claude_turns(Message.user("?"), *messages)
    return [block for turn in turns[1:] for block in turn["content"]]


def chat_turns(*messages: Message, config: OpenAIChatConfig = CHAT) -> list[Any]:
    body: Any = openai_chat.render([Message.user("?"), *messages], [], config).body
    return list(body["messages"][1:])


@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_tool_choices_have_each_dialects_own_words(choice: str) -> None:
    settings = {"model_id": "m", "tool_choice": choice}
    claude = AnthropicConfig.model_validate(settings)
    words = {"auto": "auto", "required": "any", "none": "none"}
    body = anthropic_messages.render([], [WEATHER], claude).body
    assert body["tool_choice"] == {"type": words[choice]}
    chat = OpenAIChatConfig.model_validate(settings)
    assert openai_chat.render([], [WEATHER], chat).body["tool_choice"] == choice


def test_signatures_go_back_only_to_their_own_model_and_dialect() -> None:
    foreign = ThinkingPart(text="t", provider_state=state({"signature": "s"}, "openai-chat"))
    unsigned = ThinkingPart(text="t")
    answer = Message.assistant(signed("mine"), signed("other", "n"), foreign, unsigned, "said")
    assert claude_blocks(answer) == [
        {"type": "thinking", "thinking": "mine", "signature": "sig:mine"},
        {"type": "text", "text": "said"},
    ]
    assert chat_turns(answer) == [{"role": "assistant", "content": "said"}]


def test_a_caller_and_a_toolset_go_back_with_their_call_to_every_model() -> None:
    of_call: dict[str, object] = {
        "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"},
        "toolset_name": "browser",
    }
    use = {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Brest"}}
    for model_id in ("m", "n"):
        known = {"provider_state": state(of_call, "anthropic-messages", model_id)}
        made = Message.assistant(call("a").model_copy(update=known))
        assert claude_blocks(made) == [use | of_call]
        config = AnthropicConfig(model_id="m", max_tokens=10)
        history = [Message.user("Hi"), made, Message.tool_result("a", "Sunny")]
        body = dialect_of("anthropic-messages").render(history, [], config).body
        result = cast("list[Any]", body["messages"])[2]["content"][0]
        assert (result["toolset_name"], "caller" in result) == ("browser", False)
    elsewhere = {"provider_state": state(of_call, "openai-responses", "m")}
    assert claude_blocks(Message.assistant(call("a").model_copy(update=elsewhere))) == [use]


def test_redacted_thinking_goes_back_as_the_secret_that_came() -> None:
    secret = state({"data": "opaque"}, "anthropic-messages")
    redacted = ThinkingPart(text="", redacted=True, provider_state=secret)
    assert claude_blocks(Message.assistant(redacted)) == [
        {"type": "redacted_thinking", "data": "opaque"}
    ]


def test_provider_blocks_go_back_to_their_dialect_alone() -> None:
    block: dict[str, object] = {"type": "server_tool_use", "id": "srvtoolu_1", "input": {}}
    answer = Message.assistant(ProviderPart(dialect="anthropic-messages", block=block))
    assert claude_blocks(answer) == [block]
    assert chat_turns(answer) == []


def test_empty_text_and_empty_messages_do_not_go_to_anthropic() -> None:
    assert claude_blocks(Message.assistant("", "on"), Message.assistant("")) == [
        {"type": "text", "text": "on"}
    ]


def test_turns_of_one_speaker_are_one_message_for_anthropic() -> None:
    turns = claude_turns(
        Message.user("a"), Message.user("b"), Message.assistant("c"), Message.assistant("d")
    )
    assert [(turn["role"], len(turn["content"])) for turn in turns] == [
        ("user", 2),
        ("assistant", 2),
    ]


def test_a_call_that_was_cut_off_goes_only_if_it_was_answered() -> None:
    cut = Message.assistant("I tried", call("a", '{"ci', incomplete=True))
    assert claude_blocks(cut) == [{"type": "text", "text": "I tried"}]
    assert chat_turns(cut) == [{"role": "assistant", "content": "I tried"}]
    result = Message.tool_result("a", "never ran", is_error=True)
    used: dict[str, object] = {"type": "tool_use", "id": "a", "name": "weather", "input": {}}
    assert used in claude_blocks(cut, result)
    assert chat_turns(cut, result)[0]["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    ]


@pytest.mark.parametrize(
    ("raw", "sent"), [("", "{}"), ("null", "{}"), ('{"a":  1}', '{"a":  1}'), ("[1]", "{}")]
)
def test_chat_arguments_go_back_as_they_came_where_they_are_an_object(raw: str, sent: str) -> None:
    (turn,) = chat_turns(Message.assistant(call("a", raw)))
    assert turn["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "weather", "arguments": sent}}
    ]


def test_a_refusal_goes_back_as_a_refusal() -> None:
    answer = Message.assistant(TextPart(text="No.", refusal=True))
    assert chat_turns(answer) == [{"role": "assistant", "refusal": "No."}]


def test_only_citations_of_its_own_kind_go_to_anthropic() -> None:
    own = {"type": "char_location", "cited_text": "x"}
    text = TextPart(text="said", annotations=[own, {"type": "url_citation"}])
    assert claude_blocks(Message.assistant(text)) == [
        {"type": "text", "text": "said", "citations": [own]}
    ]


def test_images_go_by_url_or_as_data() -> None:
    data = ImagePart(mime_type="image/png", data="AAAA")
    url = ImagePart(mime_type="image/png", url="https://example.com/a.png")
    asked = Message.user("What?", data, url)
    (turn,) = claude_turns(asked)
    assert [block.get("source") for block in turn["content"]] == [
        None,
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        {"type": "url", "url": "https://example.com/a.png"},
    ]
    (turn,) = chat_turns(asked)
    assert turn["content"] == [
        {"type": "text", "text": "What?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("path", ["/a.pdf", "a.pdf", "C:\\a.pdf", "~/a", "file:///a.pdf"])
def test_a_local_file_must_be_read_first(dialect: str, path: str) -> None:
    asked = [Message.user(FileRefPart(path=path))]
    config = dialect_of(dialect).config_class.model_validate({"model_id": "m"})
    with pytest.raises(MisuseError, match=r"local file: read it with FileRefPart.from_file"):
        dialect_of(dialect).render(asked, [], config)


def test_an_image_in_a_tool_result_follows_in_a_user_message_where_it_cannot_go() -> None:
    picture = Message.tool_result(
        "a", [TextPart(text="Look:"), ImagePart(mime_type="image/png", data="AAAA")]
    )
    turns = [Message.user("?"), Message.assistant(call("a"), call("b")), picture]
    rendered = openai_chat.render([*turns, Message.tool_result("b", "rain")], [], CHAT)
    body: Any = rendered.body
    url = {"url": "data:image/png;base64,AAAA"}
    assert body["messages"][2:] == [
        {"role": "tool", "tool_call_id": "a", "content": "Look:"},
        {"role": "tool", "tool_call_id": "b", "content": "rain"},
        {"role": "user", "content": [{"type": "image_url", "image_url": url}]},
    ]
    assert [note["code"] for note in rendered.notes] == [NoteCode.PART_MOVED]


@pytest.mark.parametrize(
    ("model_id", "is_apart"), [("gemini-2.5-flash", True), ("gemini-3-pro-preview", False)]
)
def test_older_models_of_gemini_see_the_image_of_a_result_beside_it(
    model_id: str, *, is_apart: bool
) -> None:
    picture = Message.tool_result(
        "a", [TextPart(text="Look:"), ImagePart(mime_type="image/png", data="AAAA")]
    )
    turns = [Message.user("?"), Message.assistant(call("a")), picture, Message.user("And?")]
    rendered = gemini.render(turns, [], GeminiConfig(model_id=model_id))
    body: Any = rendered.body
    inline = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    response = {"id": "a", "name": "weather", "response": {"output": "Look:"}}
    whole = response if is_apart else {**response, "parts": [inline]}
    assert [content["parts"] for content in body["contents"][2:]] == [
        [{"functionResponse": whole}],
        [*([inline] if is_apart else []), {"text": "And?"}],
    ]
    assert [note["code"] for note in rendered.notes] == [NoteCode.PART_MOVED] * is_apart


def test_an_image_in_a_tool_result_goes_to_anthropic() -> None:
    picture = Message.tool_result("a", [ImagePart(mime_type="image/png", data="AAAA")])
    assert claude_blocks(Message.assistant(call("a")), picture)[-1] == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
            }
        ],
    }


def test_vendors_get_their_reasoning_back_while_a_tool_loop_is_open() -> None:
    config = OpenAIChatConfig(model_id="m", replay_reasoning="reasoning_content")
    thought = Message.assistant(ThinkingPart(text="hm"), call("a"))
    closed = [thought, Message.tool_result("a", "rain"), Message.user("Thanks")]
    open_turn = chat_turns(thought, Message.tool_result("a", "rain"), config=config)[0]
    assert open_turn["reasoning_content"] == "hm"
    assert "reasoning_content" not in chat_turns(*closed, config=config)[0]
    assert "reasoning_content" not in chat_turns(thought)[0]


def test_openrouter_gets_its_reasoning_details_back_unchanged() -> None:
    config = OpenAIChatConfig(model_id="m", replay_reasoning="reasoning_details")
    details = [{"type": "reasoning.encrypted", "data": "opaque"}]
    own = state({"reasoning_details": details}, "openai-chat")
    thought = Message.assistant(ThinkingPart(text="hm", provider_state=own), call("a"))
    assert chat_turns(thought, config=config)[0]["reasoning_details"] == details


def test_extra_body_goes_over_everything() -> None:
    claude = AnthropicConfig(model_id="m", extra_body={"max_tokens": 1, "speed": "fast"})
    body = anthropic_messages.render([], [], claude).body
    assert (body["max_tokens"], body["speed"]) == (1, "fast")
    chat = OpenAIChatConfig(model_id="m", include_usage=False, extra_body={"top_k": 3})
    body = openai_chat.render([], [], chat).body
    assert body["top_k"] == 3
    assert "stream_options" not in body


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_a_choice_among_no_tools_is_not_sent(dialect: str, choice: str) -> None:
    config = dialect_of(dialect).config_class.model_validate(
        {"model_id": "m", "tool_choice": choice}
    )
    rendered = dialect_of(dialect).render([Message.user("Hello")], [], config)
    assert rendered.body.keys().isdisjoint({"tool_choice", "toolConfig", "tools"})
    # Ollama has no member for a choice; it does these two without being asked.
    is_silent = dialect == "ollama" and choice in {"auto", "none"}
    assert bool(rendered.notes) == (not is_silent)
