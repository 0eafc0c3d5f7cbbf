"""Tools that Codex declares in an item of the input and not in `tools`."""

import json

import pytest

from any_name import AnyName
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


def rendered(request: Object, target: AnyName) -> str:
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


ODD: list[object] = [None, 3, "", "x", [], [3], {}, {"a": 1}]


def damaged(tool: Object) -> list[Object]:
    """Return a tool with each odd value in each of its members, and without the member."""
    changed = [{**tool, name: value} for name in tool for value in ODD]
    without = [{n: v for n, v in tool.items() if n != name} for name in tool]
    return changed + without


def odd_tools() -> list[object]:
    """Return values of `tools` that cannot be read, or not in full."""
    inner = [tool for own in (FUNCTION, EXEC) for tool in damaged({**own, "description": ""})]
    spaces = damaged({"type": "namespace", "name": "x", "description": "", "tools": [FUNCTION]})
    within = [{"type": "namespace", "name": "x", "tools": [tool, EXEC]} for tool in inner]
    return [*ODD, *([tool] for tool in (*ODD, *inner, *spaces, *within))]


@pytest.mark.parametrize("kind", ["additional_tools", "tool_search_output"])
@pytest.mark.parametrize("execution", ["client", "server"])
def test_a_tool_that_cannot_be_read_stays_in_its_item(kind: str, execution: str) -> None:
    for tools in odd_tools():
        item: Object = {"type": kind, "call_id": "c", "execution": execution, "tools": tools}
        request = body(item, {**ITEM, "tools": [{**FUNCTION, "name": "last"}]})
        assert item in json.loads(rendered(request, "openai-responses"))["input"], tools
        assert '"last"' in rendered(request, "openai-chat"), tools


def test_a_tool_that_cannot_be_read_is_noted_and_hides_no_other() -> None:
    nameless: Object = {"type": "namespace", "tools": [{"type": "function", "name": "a"}]}
    unreadable = {**FUNCTION, "parameters": [3]}
    parsed = parse_request(
        body({**ITEM, "tools": [nameless, unreadable, FUNCTION]}), "openai-responses"
    )
    assert [tool.name for tool in parsed.tools] == ["sleep"]
    assert [note["message"] for note in parsed.notes] == [
        "input[0].tools[0].tools[0] is not known to openai-responses: it is kept as it is",
        "input[0].tools[1] is not known to openai-responses: it is kept as it is",
    ]


def test_a_namespace_with_a_damaged_tool_in_the_list_is_sent_as_it_is() -> None:
    space: Object = {"type": "namespace", "name": "x", "tools": [{"type": {}}]}
    made = json.loads(rendered({**body(), "tools": [space]}, "openai-responses"))
    assert made["tools"] == [space]
