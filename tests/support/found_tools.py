"""Requests of the Messages API whose tools are found or added on the way, and their renderings."""

import json
from typing import Any

from any_name import AnyName
from conversations import MODELS
from deltafold import (
    ParsedRequest,
    migrate_config,
    parse_request,
)
from deltafold.dialects import dialect_of


def rendered(parsed: ParsedRequest, target: AnyName) -> dict[str, Any]:
    config = migrate_config(parsed, target, model_id=MODELS[target]).config
    made = dialect_of(target).render(parsed.messages, parsed.tools, config, stream=True)
    body: dict[str, Any] = json.loads(json.dumps(made.body))
    return body


DIVE: dict[str, Any] = {"name": "dive", "description": "Dives.", "input_schema": {"type": "object"}}
LOOK: dict[str, Any] = {**DIVE, "name": "look", "defer_loading": True}


def claude(*messages: dict[str, Any]) -> dict[str, Any]:
    question = {"role": "user", "content": "Go."}
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    return {
        "model": "m",
        "max_tokens": 9,
        "messages": [question, *messages],
        "tools": [LOOK, search],
    }


def added(tool: dict[str, Any], kind: str = "tool_addition") -> dict[str, Any]:
    return {"role": "system", "content": [{"type": kind, "tool": tool}]}


SAID = {"role": "assistant", "content": "Here."}
ON = {"role": "user", "content": "On."}


def to_claude(parsed: ParsedRequest, model: str) -> dict[str, Any]:
    """Return a request of the same dialect for a model."""
    config = migrate_config(parsed, "anthropic-messages", model_id=model).config
    made = dialect_of("anthropic-messages").render(parsed.messages, parsed.tools, config).body
    body: dict[str, Any] = json.loads(json.dumps(made))
    return body


def assert_as_it_was(request: dict[str, Any]) -> None:
    """Assert that its own dialect gets each block of the messages, and the list of tools."""
    body = to_claude(parse_request(request, "anthropic-messages"), "claude-opus-4-8")
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    said: list[str | list[Any]] = [turn["content"] for turn in request["messages"]]
    given = [block for content in said if isinstance(content, list) for block in content]
    assert [block for block in blocks if block in given] == given
    assert body["tools"] == request["tools"]
