"""Searches for tools and tools that are added on the way, in the dialects that have none.

In: requests of Codex, whose client searches for tools, and of Claude's clients, with tools that a
search found or that a message adds.  Out: requests in every other dialect, and answers for Codex.

Laws: the search is a function, and what it found is declared. The history stays readable. The own
dialect gets what it sent.
Source: requests of Codex 0.169; Anthropic's pages "Tool search tool" and "Mid-conversation system
messages and tool changes" (read 2026-11).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from conversations import DIALECTS, MODELS
from deltafold import (
    Message,
    ProviderPart,
    Role,
    ToolSpec,
    encode_message,
    fold,
    migrate_config,
    parse_request,
    transcode,
)
from deltafold.conversation import check, repair
from deltafold.dialects import dialect_of
from found_tools import DIVE, ON, SAID, added, assert_as_it_was, claude, rendered, to_claude
from transcoded import call, calls, chat, sse, transcoded
from wires import gpt

SEARCH: dict[str, Any] = {
    "type": "tool_search",
    "execution": "client",
    "description": "Searches for tools.",
    "parameters": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    },
}
SHELL: dict[str, Any] = {
    "type": "function",
    "name": "shell",
    "strict": False,
    "parameters": {"type": "object", "properties": {}},
}
ORDERS: dict[str, Any] = {
    "type": "function",
    "name": "list_orders",
    "description": "Lists orders.",
    "strict": False,
    "defer_loading": True,
    "parameters": {"type": "object", "properties": {"of": {"type": "string"}}},
}
CRM: dict[str, Any] = {
    "type": "namespace",
    "name": "mcp__crm",
    "description": "Customers",
    "tools": [ORDERS],
}
LIST = "mcp__crm__list_orders"


def codex(*, execution: str = "client") -> dict[str, Any]:
    """Return a request of Codex after a search and a call of the tool that it found."""
    search = {"call_id": "call_ts", "execution": execution, "status": "completed"}
    return {
        "model": "gpt-6",
        "store": False,
        "stream": True,
        "tools": [SHELL, SEARCH],
        "input": [
            {"type": "message", "role": "user", "content": "How many orders?"},
            {"type": "tool_search_call", "arguments": {"query": "orders"}, **search},
            {"type": "tool_search_output", "tools": [CRM], **search},
            {
                "type": "function_call",
                "call_id": "call_1",
                "namespace": "mcp__crm",
                "name": "list_orders",
                "arguments": "{}",
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "3 orders"},
        ],
    }


def declared(body: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools in a request of any dialect."""
    given = body.get("tools") or body.get("toolConfig", {}).get("tools", [])
    listed = [one for tool in given for one in tool.get("functionDeclarations", [tool])]
    forms = ("function", "toolSpec")
    functions = (next((tool[form] for form in forms if form in tool), tool) for tool in listed)
    return [function["name"] for function in functions]


def turns(body: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = body.get("messages") or body["contents"]
    return found


OTHERS = [name for name in DIALECTS if name != "openai-responses"]
every_other = pytest.mark.parametrize("target", OTHERS)


@every_other
def test_a_search_of_codex_is_a_function_and_what_it_found_is_declared(target: str) -> None:
    body = rendered(parse_request(codex(), "openai-responses"), target)
    assert declared(body) == ["shell", "tool_search", LIST]
    assert f"Tools found: {LIST}" in json.dumps(turns(body))
    roles = [turn["role"] for turn in turns(body)]
    assert sum(role in {"assistant", "model"} for role in roles) == 2
    assert "deltafold_in_input" not in json.dumps(body)


def test_the_search_and_its_result_have_the_forms_of_chat() -> None:
    body = rendered(parse_request(codex(), "openai-responses"), "openai-chat")
    called, result = body["messages"][1:3]
    assert called["tool_calls"][0]["function"] == {
        "name": "tool_search",
        "arguments": '{"query":"orders"}',
    }
    assert result == {
        "role": "tool",
        "tool_call_id": "call_ts",
        "content": f"Tools found: {LIST}",
    }
    functions = {tool["function"]["name"]: tool["function"] for tool in body["tools"]}
    assert functions["tool_search"]["description"] == SEARCH["description"]
    assert functions["tool_search"]["parameters"] == SEARCH["parameters"]
    assert functions[LIST]["parameters"] == ORDERS["parameters"]


@pytest.mark.parametrize("execution", ["client", "server"])
def test_its_own_dialect_gets_the_search_as_it_was(execution: str) -> None:
    request = codex(execution=execution)
    body = rendered(parse_request(request, "openai-responses"), "openai-responses")
    assert body["input"][1:] == request["input"][1:]
    for place in (1, 2):
        assert json.dumps(body["input"][place]) == json.dumps(request["input"][place])
    assert body["tools"] == request["tools"]


@every_other
def test_a_search_of_the_provider_is_read_as_a_text(target: str) -> None:
    parsed = parse_request(codex(execution="server"), "openai-responses")
    body = rendered(parsed, target)
    assert LIST in declared(body)
    assert f"Tools found: {LIST}" in json.dumps(turns(body))
    assert sum(turn["role"] == "user" for turn in turns(body)) <= 2


def test_a_search_has_no_problems_and_notes_no_unknown_item() -> None:
    parsed = parse_request(codex(), "openai-responses")
    assert parsed.notes == ()
    for target in DIALECTS:
        assert check(parsed.messages, cast("Any", target), model_id=MODELS[target]).is_clean


def responses(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> tuple[Any, list[str]]:
    """Return a request of Responses and the codes of its notes."""
    own = dialect_of("openai-responses")
    config = own.config_class.model_validate({"model_id": "gpt-6"})
    made = own.render(messages, tools, config)
    return json.loads(json.dumps(made.body)), [str(note["code"]) for note in made.notes]


def search_for(call_id: str) -> dict[str, Any]:
    """Return the item of a call of the client's search."""
    called = {"type": "tool_search_call", "call_id": call_id, "execution": "client"}
    return {**called, "arguments": {}}


def found_by(call_id: str, *tools: dict[str, Any]) -> dict[str, Any]:
    """Return the item of a result of the client's search."""
    return {
        "type": "tool_search_output",
        "call_id": call_id,
        "execution": "client",
        "status": "completed",
        "tools": list(tools),
    }


def test_a_search_that_a_function_answers_is_one_call() -> None:
    request = codex()
    request["input"][2] = {"type": "function_call_output", "call_id": "call_ts", "output": "One."}
    parsed = parse_request(request, "openai-responses")
    assert rendered(parsed, "openai-chat")["messages"][2]["content"] == "One."
    body, notes = responses(parsed.messages, parsed.tools)
    assert body["input"][1:] == [
        request["input"][1],
        found_by("call_ts"),
        *request["input"][3:],
    ]
    assert notes == ["part_dropped"]


def test_a_changed_result_of_a_search_keeps_its_tools() -> None:
    parsed = parse_request(codex(), "openai-responses")
    result = parsed.messages[2].parts[0].model_copy(update={"content": "[left out]"})
    messages = list(parsed.messages)
    messages[2] = messages[2].model_copy(update={"parts": [result]})
    body, notes = responses(messages, parsed.tools)
    assert body["input"][2] == found_by("call_ts", CRM)
    assert body["tools"] == [SHELL, SEARCH]
    assert notes == ["part_dropped"]


def test_a_search_without_a_result_gets_one_in_its_own_form() -> None:
    search = search_for("lc")
    said = [
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": "Go on."},
    ]
    request = {**codex(), "input": [{"role": "user", "content": "Hi."}, search, *said]}
    parsed = parse_request(request, "openai-responses")
    mended, report = repair(parsed.messages, "openai-responses", model_id="gpt-6")
    assert report.codes
    body, notes = responses(mended, parsed.tools)
    assert search in body["input"]
    assert found_by("lc") in body["input"]
    assert "function_call_output" not in json.dumps(body)
    assert "part_dropped" in notes


def test_a_search_of_an_answer_is_answered_in_its_own_form() -> None:
    """A search that a streamed answer asked for is an item of the provider."""
    search = search_for("lc")
    answer = Message(
        role=Role.ASSISTANT, parts=[ProviderPart(dialect="openai-responses", block=search)]
    )
    messages = [Message.user("Hi."), answer, Message.tool_result("lc", "Nothing.")]
    body, _ = responses(messages, ())
    assert body["input"][1:] == [search, found_by("lc")]


def test_a_call_of_a_function_with_the_id_of_an_earlier_search_has_its_own_result() -> None:
    request = codex()
    request["input"][3]["call_id"] = request["input"][4]["call_id"] = "call_ts"
    parsed = parse_request(request, "openai-responses")
    body, _ = responses(parsed.messages, parsed.tools)
    assert body["input"][1:] == request["input"][1:]


@pytest.mark.parametrize("item", ["search", "additional_tools"])
def test_tools_of_an_item_that_is_no_longer_sent_are_declared_in_the_list(item: str) -> None:
    request = codex()
    if item == "additional_tools":
        said = {"role": "user", "content": "Go on."}
        request["input"][1:3] = [{"type": "additional_tools", "tools": [CRM]}, said]
    parsed = parse_request(request, "openai-responses")
    kept = [parsed.messages[0], *parsed.messages[-2:]]
    body, _ = responses(kept, parsed.tools)
    assert [one["type"] for one in body["input"][1:]] == ["function_call", "function_call_output"]
    loaded = {name: value for name, value in ORDERS.items() if name != "defer_loading"}
    assert body["tools"] == [SHELL, SEARCH, {**CRM, "tools": [loaded]}]


def test_a_function_named_like_the_search_stays_a_function() -> None:
    function = {**SHELL, "name": "tool_search"}
    request = {**codex(), "tools": [SEARCH, function]}
    parsed = parse_request(request, "openai-responses")
    assert [tool.name for tool in parsed.tools] == ["tool_search", LIST]
    assert rendered(parsed, "openai-responses")["tools"] == [SEARCH, function]


def test_a_call_of_another_model_goes_to_its_own_dialect_as_a_search() -> None:
    request = {**codex(), "input": codex()["input"][:1]}
    parsed = parse_request(request, "openai-responses")
    answer = fold(gpt(("call_9", "tool_search", {"query": "orders"})), "openai-chat")
    config = dialect_of("openai-responses").config_class.model_validate({"model_id": "gpt-6"})
    messages = [*parsed.messages, answer]
    body: Any = dialect_of("openai-responses").render(messages, parsed.tools, config).body
    assert body["input"][1] == {
        "type": "tool_search_call",
        "execution": "client",
        "status": "completed",
        "call_id": "call_9",
        "arguments": {"query": "orders"},
    }


def test_repair_keeps_what_a_search_of_another_provider_found() -> None:
    parsed = parse_request(codex(execution="server"), "openai-responses")
    mended, report = repair(parsed.messages, "openai-chat", model_id="gpt-5.2")
    assert [str(code) for code in report.codes] == ["foreign_block"]
    body = dialect_of("openai-chat").render(
        mended, parsed.tools, migrate_config(parsed, "openai-chat", model_id="m").config
    )
    assert f"Tools found: {LIST}" in json.dumps(body.body)


def test_a_signed_search_goes_back_to_the_model_that_signed_it() -> None:
    called = {"name": "tool_search", "id": "call_9", "args": {"query": "orders"}}
    parts = [{"functionCall": called, "thoughtSignature": "c2ln"}]
    chunk = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "modelVersion": "gemini-3-pro",
        "responseId": "r",
    }
    request = codex()
    tools = parse_request(request, "openai-responses").client_tools
    events = transcoded(sse(chunk), "gemini", "openai-responses", tools=tools, envelope=True)
    items = events[-1]["response"]["output"]
    assert [item["type"] for item in items] == ["reasoning", "tool_search_call"]
    found = {**request["input"][2], "call_id": "call_9"}
    request["input"] = [request["input"][0], *items, found]
    parsed = parse_request(request, "openai-responses")
    config = migrate_config(parsed, "gemini", model_id="gemini-3-pro").config
    body: Any = dialect_of("gemini").render(parsed.messages, parsed.tools, config).body
    sent = body["contents"][1]["parts"][0]
    assert (sent["functionCall"]["name"], sent["thoughtSignature"]) == ("tool_search", "c2ln")


# Answers for Codex.


SEARCHED = {
    "type": "tool_search_call",
    "status": "completed",
    "call_id": "call_9",
    "execution": "client",
    "arguments": {"query": "orders"},
}


def without_id(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "id"}


def test_codex_gets_a_call_of_the_search_in_its_own_form() -> None:
    tools = parse_request(codex(), "openai-responses").client_tools
    assert tools["tool_search"] == {"kind": "tool_search", "namespace": None, "name": "tool_search"}
    answer = gpt(("call_9", "tool_search", {"query": "orders"}))
    events = transcoded(answer, "openai-chat", "openai-responses", tools=tools, codex=True)
    items = [event for event in events if "output_item" in event["type"]]
    assert [event["type"].rpartition(".")[2] for event in items] == ["added", "done"]
    assert items[0]["item"]["arguments"] == {}
    assert items[0]["item"]["status"] == "in_progress"
    assert without_id(items[1]["item"]) == SEARCHED
    assert not [event for event in events if "arguments" in event["type"]]
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["output"] == [items[1]["item"]]


def test_arguments_of_several_lines_are_one_line() -> None:
    tools = parse_request(codex(), "openai-responses").client_tools
    spread = calls(call(0, '{\n"query": "orders"\n}', "call_9", "tool_search"))
    body = transcode(
        chat(spread, finish="tool_calls"), "openai-chat", "openai-responses", tools=tools
    )
    assert b'"arguments":{"query":"orders"}' in body


def test_a_whole_answer_has_the_same_item() -> None:
    tools = parse_request(codex(), "openai-responses").client_tools
    message = fold(gpt(("call_9", "tool_search", {"query": "orders"})), "openai-chat")
    body: Any = encode_message(message, "openai-responses", tools=tools).json
    assert [without_id(item) for item in body["output"]] == [SEARCHED]


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [("", {}), ("[1]", "[1]"), ("orders", "orders")],
    ids=["none", "list", "text"],
)
def test_arguments_that_are_no_object_reach_the_client(raw: str, arguments: object) -> None:
    tools = parse_request(codex(), "openai-responses").client_tools
    whole = fold(gpt(("call_9", "tool_search", {})), "openai-chat")
    searched = whole.tool_calls[0].model_copy(update={"raw_args_text": raw, "arguments": None})
    message = whole.model_copy(update={"parts": [searched]})
    body: Any = encode_message(message, "openai-responses", tools=tools).json
    assert body["output"][0]["arguments"] == arguments


# Requests of Claude's clients.


REQUESTS: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "addition": (
        claude(added({"type": "tool_reference", "name": "look"}), SAID, ON),
        "Tools added: look",
        ["look"],
    ),
    "removal": (
        claude(added({"type": "tool_reference", "name": "look"}, "tool_removal"), SAID, ON),
        "Tools removed: look",
        [],
    ),
    "definition": (
        claude(added({"type": "tool_definition", "definition": DIVE}), SAID, ON),
        "Tools added: dive",
        ["look", "dive"],
    ),
    "search of the client": (
        claude(
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "find", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "tool_reference", "tool_name": "look"}],
                    }
                ],
            },
        ),
        "Tools found: look",
        ["look"],
    ),
    "search of the provider": (
        claude(
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "server_tool_use",
                        "id": "s",
                        "name": "tool_search_tool_bm25",
                        "input": {"query": "look"},
                    },
                    {
                        "type": "tool_search_tool_result",
                        "tool_use_id": "s",
                        "content": {
                            "type": "tool_search_tool_search_result",
                            "tool_references": [{"type": "tool_reference", "tool_name": "look"}],
                        },
                    },
                    {"type": "text", "text": "Found."},
                ],
            },
            ON,
        ),
        "Tools found: look",
        ["look"],
    ),
}
CLAUDE_TO = [name for name in DIALECTS if name != "anthropic-messages"]


@pytest.mark.parametrize("target", CLAUDE_TO)
@pytest.mark.parametrize("name", REQUESTS)
def test_tools_of_a_conversation_are_declared_and_said(name: str, target: str) -> None:
    request, said, tools = REQUESTS[name]
    body = rendered(parse_request(request, "anthropic-messages"), target)
    if target == "openai-responses":
        assert declared(body) == tools
        assert said in json.dumps(body["input"])
    else:
        assert declared(body) == tools
        assert said in json.dumps(body)
    assert "deltafold_in_input" not in json.dumps(body)


@pytest.mark.parametrize("name", REQUESTS)
def test_its_own_dialect_gets_the_conversation_as_it_was(name: str) -> None:
    request, _, _ = REQUESTS[name]
    assert_as_it_was(request)


def test_a_model_without_system_messages_between_the_turns_gets_the_tools_in_the_list() -> None:
    request, said, tools = REQUESTS["definition"]
    parsed = parse_request(request, "anthropic-messages")
    body = to_claude(parsed, "claude-sonnet-4-5")
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][0]["content"][1] == {
        "type": "text",
        "text": f"<system>\n{said}\n</system>",
    }
    assert [tool["name"] for tool in body["tools"] if "input_schema" in tool] == tools
    assert "deltafold_in_input" not in json.dumps(body)
