"""Tools that Codex declares in an item of the input and not in `tools`."""

import json

import pytest

from deltafold import migrate_config, parse_request
from deltafold.dialects import dialect_of
from deltafold.dialects.rendered import Object

SCHEMA: Object = {"type": "object", "properties": {"seconds": {"type": "number"}}}
FUNCTION: Object = {"type": "function", "name": "sleep", "strict": False, "parameters": SCHEMA}
EXEC: Object = {
    "type": "custom",
    "name": "exec",
    "description": "Runs code.",
    "format": {"type": "text"},
}
ITEM: Object = {
    "type": "additional_tools",
    "id": "at_1",
    "role": "developer",
    "tools": [
        {"type": "namespace", "name": "functions", "description": "", "tools": [EXEC]},
        {"type": "namespace", "name": "clock", "description": "", "tools": [FUNCTION]},
        {"type": "web_search"},
        FUNCTION,
    ],
}


def body(*items: Object) -> Object:
    question = {"type": "message", "role": "user", "content": "?"}
    return {"model": "gpt-6", "input": [*items, question], "stream": True, "store": False}


def rendered(request: Object, target: str) -> str:
    parsed = parse_request(request, "openai-responses")
    config = migrate_config(parsed, target, model_id="m").config
    made = dialect_of(target).render(parsed.messages, parsed.tools, config, stream=True)
    return json.dumps(made.body)


@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "gemini", "ollama"])
def test_another_dialect_gets_the_tools_under_flat_names(target: str) -> None:
    text = rendered(body(ITEM), target)
    for name in ("functions__exec", "clock__sleep", '"sleep"'):
        assert name in text
    assert "deltafold_in_input" not in text


def test_the_client_gets_its_calls_back_in_its_own_form() -> None:
    tools = parse_request(body(ITEM), "openai-responses").client_tools
    assert tools["functions__exec"] == {"kind": "custom", "namespace": "functions", "name": "exec"}
    assert tools["clock__sleep"] == {"kind": "function", "namespace": "clock", "name": "sleep"}


def test_its_own_dialect_gets_the_item_as_it_was_and_no_tool_twice() -> None:
    own = {**body(ITEM), "tools": [{**FUNCTION, "name": "other"}]}
    made = json.loads(rendered(own, "openai-responses"))
    assert [tool["name"] for tool in made["tools"]] == ["other"]
    assert ITEM in made["input"]


def test_an_item_that_comes_again_declares_nothing_twice() -> None:
    parsed = parse_request(body(ITEM, ITEM), "openai-responses")
    names = [tool.name for tool in parsed.tools]
    assert sorted(names) == ["clock__sleep", "functions__exec", "sleep"]


@pytest.mark.parametrize("tools", [3, [3], [{"type": "function"}]])
def test_a_wrong_item_names_its_place(tools: object) -> None:
    with pytest.raises(ValueError, match=r"input\[0\]\.tools"):
        parse_request(body({"type": "additional_tools", "tools": tools}), "openai-responses")
