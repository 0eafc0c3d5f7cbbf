"""Tools that a Responses client declares in forms of its own: freeform, and in namespaces."""

from typing import Any, cast

import pytest

from deltafold import (
    AnthropicConfig,
    Message,
    OpenAIChatConfig,
    OpenAIResponsesConfig,
    parse_request,
    transcode_response,
)
from deltafold.dialects import dialect_of
from deltafold.message.messages import MessagePart, Role, ToolCallPart
from deltafold.testing import answer

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits.", "format": GRAMMAR}
READ = {
    "type": "function",
    "name": "read",
    "description": "Reads.",
    "parameters": {"type": "object"},
}
FILES = {"type": "namespace", "name": "files", "description": "Files.", "tools": [READ]}
SEARCH = {"type": "web_search"}
HISTORY = [
    {"role": "user", "content": "Go"},
    {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": "{*** Begin"},
    {"type": "custom_tool_call_output", "call_id": "a", "output": "Done"},
    {
        "type": "function_call",
        "call_id": "b",
        "namespace": "files",
        "name": "read",
        "arguments": "{}",
    },
    {"type": "function_call_output", "call_id": "b", "output": "text"},
]
BODY = {"model": "m", "input": HISTORY, "tools": [PATCH, FILES, SEARCH], "stream": True}
CHOICES = [
    {"type": "custom", "name": "apply_patch"},
    {"type": "function", "namespace": "files", "name": "read"},
]


def test_the_tools_are_functions_with_the_map_back() -> None:
    parsed = parse_request(BODY, "openai-responses")
    patch, read = parsed.tools
    assert (patch.name, read.name) == ("apply_patch", "files__read")
    assert patch.parameter_schema["required"] == ["input"]
    assert "start: /.+/" in str(patch.description)
    assert parsed.client_tools == {
        "apply_patch": {"kind": "custom", "namespace": None, "name": "apply_patch"},
        "files__read": {"kind": "function", "namespace": "files", "name": "read"},
    }


def test_their_own_dialect_gets_the_native_forms() -> None:
    for choice in CHOICES:
        parsed = parse_request({**BODY, "tool_choice": choice}, "openai-responses")
        config = OpenAIResponsesConfig.model_validate(parsed.config)
        row = dialect_of("openai-responses")
        body: dict[str, Any] = row.render(parsed.messages, parsed.tools, config).body
        assert body["input"] == HISTORY
        assert body["tools"] == [PATCH, FILES, SEARCH]
        assert body["tool_choice"] == choice


def test_a_choice_among_them_comes_back() -> None:
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": CHOICES}
    parsed = parse_request({**BODY, "tool_choice": allowed}, "openai-responses")
    assert parsed.config["tool_choice"] == {
        "mode": "auto",
        "allowed_tools": ["apply_patch", "files__read"],
    }
    config = OpenAIResponsesConfig.model_validate(parsed.config)
    rendered = dialect_of("openai-responses").render(parsed.messages, parsed.tools, config)
    assert rendered.body["tool_choice"] == allowed


def test_chat_gets_functions_in_the_declaration_and_the_history() -> None:
    parsed = parse_request(BODY, "openai-responses")
    config = OpenAIChatConfig(model_id="x")
    body: dict[str, Any] = (
        dialect_of("openai-chat").render(parsed.messages, parsed.tools, config).body
    )
    assert [tool["function"]["name"] for tool in body["tools"]] == ["apply_patch", "files__read"]
    calls = [call for one in body["messages"] for call in one.get("tool_calls", ())]
    assert [call["function"] for call in calls] == [
        {"name": "apply_patch", "arguments": '{"input": "{*** Begin"}'},
        {"name": "files__read", "arguments": "{}"},
    ]


def test_messages_gets_the_text_as_an_object() -> None:
    parsed = parse_request(BODY, "openai-responses")
    config = AnthropicConfig(model_id="x", max_tokens=9)
    body: dict[str, Any] = (
        dialect_of("anthropic-messages").render(parsed.messages, parsed.tools, config).body
    )
    blocks = [
        block for one in body["messages"] for block in one["content"] if one["role"] == "assistant"
    ]
    assert blocks[0]["input"] == {"input": "{*** Begin"}


def test_a_call_of_another_model_becomes_freeform_and_namespaced() -> None:
    parsed = parse_request(BODY, "openai-responses")
    calls: list[MessagePart] = [
        ToolCallPart(tool_call_id="a", tool_name="apply_patch", arguments={"input": "x"}),
        ToolCallPart(tool_call_id="b", tool_name="files__read", arguments={}),
    ]
    said = [Message.user("Go"), Message(role=Role.ASSISTANT, parts=calls)]
    config = OpenAIResponsesConfig(model_id="m")
    body: dict[str, Any] = dialect_of("openai-responses").render(said, parsed.tools, config).body
    items = body["input"]
    assert items[1] == {
        "type": "custom_tool_call",
        "call_id": "a",
        "name": "apply_patch",
        "input": "x",
    }
    assert (items[2]["namespace"], items[2]["name"]) == ("files", "read")


@pytest.mark.parametrize("first", [True, False])
def test_two_tools_of_one_name_are_refused(first: bool) -> None:
    flat = {"type": "function", "name": "files__read"}
    tools = [flat, FILES] if first else [FILES, flat]
    with pytest.raises(ValueError, match="'files__read' is also that of"):
        parse_request({**BODY, "tools": tools}, "openai-responses")


def test_a_call_of_another_provider_comes_back_as_the_client_declared_it() -> None:
    body = {"model": "gpt-5", "input": "Go.", "tools": [PATCH, FILES]}
    parsed = parse_request(body, "openai-responses")
    patch = ("a", "apply_patch", {"input": "*** Begin Patch"})
    upstream = answer("anthropic-messages", patch, ("b", "files__read", {})).body
    encoded = transcode_response(
        upstream, "anthropic-messages", "openai-responses", tools=parsed.client_tools
    )
    items = cast("dict[str, Any]", encoded.json)["output"]
    assert (items[0]["type"], items[0]["input"]) == ("custom_tool_call", "*** Begin Patch")
    assert (items[1]["namespace"], items[1]["name"]) == ("files", "read")
