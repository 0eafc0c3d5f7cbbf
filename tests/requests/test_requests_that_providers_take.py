"""Requests that providers accept: nothing is added to them, and nothing is lost from them."""

import json
from typing import Any, Final

import pytest

from any_name import AnyName
from deltafold import migrate_config, parse_request
from deltafold.conversation import check
from deltafold.dialects import dialect_of

Wire = dict[str, Any]

PROMPT: Final[Wire] = {"model": "gpt-5.2", "prompt": {"id": "pmpt_1", "version": "4"}}
SYSTEM: Final[Wire] = {"role": "system", "content": "You are a potato."}
ASSISTANT_FIRST: Final[list[Wire]] = [
    {"role": "assistant", "content": "Hello, how can I help you?"},
    {"role": "user", "content": "I need a potato!"},
]


def again(dialect: AnyName, body: Wire, model: str | None = None) -> Wire:
    """Return the body that a parsed request becomes, repaired, in its own dialect."""
    parsed = parse_request(body, dialect, model_id=model)
    name = str(parsed.config["model_id"])
    assert not check(parsed.messages, dialect, model_id=name).problems
    config = migrate_config(parsed, dialect, model_id=name).config
    return dict(dialect_of(dialect).render(parsed.messages, parsed.tools, config).body)


def test_a_stored_prompt_needs_no_message() -> None:
    sent = again("openai-responses", PROMPT)
    assert sent["prompt"] == PROMPT["prompt"]
    assert not sent.get("input")


@pytest.mark.parametrize(
    "model",
    [
        "claude-haiku-4-5",
        "claude-sonnet-4-5",
        "claude-sonnet-4-6",
        "claude-opus-4-8",
        "claude-opus-6",
    ],
)
def test_the_assistant_may_begin_with_claude(model: str) -> None:
    body = {"model": model, "max_tokens": 9, "messages": ASSISTANT_FIRST}
    assert [one["role"] for one in again("anthropic-messages", body)["messages"]] == [
        "assistant",
        "user",
    ]


def test_the_user_begins_with_older_models() -> None:
    body = {"model": "claude-3-haiku-20240307", "max_tokens": 9, "messages": ASSISTANT_FIRST}
    parsed = parse_request(body, "anthropic-messages")
    assert check(parsed.messages, "anthropic-messages", model_id="claude-3-haiku-20240307").problems


def test_a_system_message_alone_is_taken_by_openai() -> None:
    body = {"model": "o3-mini", "messages": [SYSTEM]}
    assert again("openai-chat", body)["messages"] == [SYSTEM]
    parsed = parse_request({"model": "llama", "messages": [SYSTEM]}, "openai-chat")
    assert check(parsed.messages, "openai-chat", model_id="llama").problems


@pytest.mark.parametrize("name", ["codeExecution", "code_execution", "googleSearch"])
def test_a_member_of_a_tool_without_a_value_is_no_tool(name: str) -> None:
    declared: list[Wire] = [{"name": "add", "parameters": {"type": "object", "properties": {}}}]
    body: Wire = {
        "contents": [{"role": "user", "parts": [{"text": "x"}]}],
        "tools": [{"functionDeclarations": declared, name: None}],
    }
    assert again("gemini", body, "gemini-3.8-flash")["tools"] == [
        {"functionDeclarations": declared}
    ]


def test_minus_one_stands_for_no_sampling() -> None:
    body: Wire = {
        "model": "claude-3-5-sonnet-20241022",
        "max_tokens": 9,
        "top_k": -1,
        "top_p": -1,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    sent = again("anthropic-messages", body)
    assert (sent["top_k"], sent["top_p"]) == (-1, -1)
    parsed = parse_request(body, "anthropic-messages")
    migrated = migrate_config(parsed, "openai-chat", model_id="gpt-5.2")
    assert any("top_p" in str(note["message"]) for note in migrated.notes)
    rendered = dialect_of("openai-chat").render(parsed.messages, [], migrated.config)
    assert "top_p" not in rendered.body


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (
            {
                "type": "document",
                "title": "X",
                "context": "CTX",
                "source": {"type": "content", "content": "WHOLE"},
            },
            ("X", "CTX", "WHOLE"),
        ),
        (
            {
                "type": "document",
                "source": {"type": "content", "content": [{"type": "text", "text": "CHUNK"}]},
            },
            ("CHUNK",),
        ),
        (
            {
                "type": "search_result",
                "source": "https://src.example/a",
                "title": "T",
                "content": [{"type": "text", "text": "SNIP"}],
            },
            ("https://src.example/a", "T", "SNIP"),
        ),
    ],
)
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini", "mistral"])
def test_the_text_of_a_document_reaches_other_dialects(
    block: Wire, words: tuple[str, ...], target: AnyName
) -> None:
    content = [block, {"type": "text", "text": "Q"}]
    body = {"model": "claude-opus-4-8", "messages": [{"role": "user", "content": content}]}
    parsed = parse_request(body, "anthropic-messages")
    config = migrate_config(parsed, target, model_id="m").config
    sent = json.dumps(dialect_of(target).render(parsed.messages, [], config).body)
    assert all(word in sent for word in words)
    again_sent = again("anthropic-messages", {**body, "max_tokens": 9})
    assert again_sent["messages"][0]["content"][0] == block
