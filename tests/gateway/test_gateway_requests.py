"""Requests that a gateway parses for one client and renders for another provider.

In: bodies of coding agents.  Out: the bodies that the providers get.
"""

import json
from collections.abc import Iterator
from typing import Final, cast

import pytest

from any_name import AnyName
from conversations import DIALECTS
from deltafold import Decoder, MessageAssembler, migrate_config, parse_request
from deltafold.dialects import dialect_of
from next_turns import Body
from normal_form import normal
from sdk_types import check
from transcoded import sse

CLAUDE: Final = "anthropic-messages"
MODELS: Final = {CLAUDE: "claude-sonnet-4-5", "gemini": "gemini-3-pro", "openai-responses": "gpt-5"}

SCHEMA: Final[Body] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "The file", "pattern": "^/"},
        "limit": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9007199254740991},
        "mode": {"const": "read"},
        "answers": {
            "type": "object",
            "propertyNames": {"type": "string"},
            "additionalProperties": {"type": "string"},
        },
        "where": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "todos": {"type": "array", "items": {"$ref": "#/$defs/todo"}, "uniqueItems": True},
    },
    "required": ["file_path"],
    "additionalProperties": False,
    "$defs": {"todo": {"type": "object", "properties": {"id": {"enum": [1, 2]}}}},
}
"""Words of the schemas of Claude Code's tools and of MCP servers."""


def rendered(request: Body, dialect: AnyName, target: AnyName, model_id: str | None = None) -> Body:
    parsed = parse_request(request, dialect, model_id=model_id)
    model = parsed.config.get("model_id") if target == dialect else MODELS.get(target, "m")
    config = migrate_config(parsed, target, model_id=str(model)).config
    stream = parsed.stream is not False
    body = dialect_of(target).render(parsed.messages, parsed.tools, config, stream=stream).body
    found: Body = json.loads(json.dumps(body))
    return found


def claude_code() -> Body:
    """Return a request as Claude Code sends it."""
    cached = {"cache_control": {"type": "ephemeral"}}
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32000,
        "thinking": {"type": "enabled", "budget_tokens": 31999, "display": "omitted"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "metadata": {"user_id": "user_1_session_2"},
        "system": [{"type": "text", "text": "You are Claude Code.", **cached}],
        "tools": [{"name": "Read", "description": "Reads a file", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Read it"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "", "signature": "c2lnMQ=="},
                    {"type": "text", "text": "I read."},
                    {"type": "redacted_thinking", "data": "d2l0aA=="},
                    {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"n": 1}},
                    {"type": "thinking", "thinking": "Two", "signature": "c2lnMg=="},
                    {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"n": 2}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "two", **cached},
                ],
            },
        ],
        "stream": True,
    }


def test_the_schema_of_a_tool_goes_to_gemini_as_it_is() -> None:
    """The member that takes JSON Schema gets it; the older one knows a part of OpenAPI alone."""
    body = rendered(claude_code(), CLAUDE, "gemini")
    (tool,) = body["tools"]
    assert tool["functionDeclarations"] == [
        {"name": "Read", "description": "Reads a file", "parametersJsonSchema": SCHEMA}
    ]
    check("gemini", body)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_dialect_changes_the_schema_of_a_tool(dialect: str) -> None:
    body = rendered(claude_code(), CLAUDE, dialect)
    assert SCHEMA in list(objects_in(body["toolConfig" if "toolConfig" in body else "tools"]))


def objects_in(value: object) -> Iterator[Body]:
    if isinstance(value, dict):
        members = cast("Body", value)
        yield members
        for inner in members.values():
            yield from objects_in(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from objects_in(inner)


def test_a_request_for_its_own_provider_is_sent_as_the_client_wrote_it() -> None:
    """Also settings that change what a replay carries, such as `thinking.display`."""
    assert rendered(claude_code(), CLAUDE, CLAUDE) == claude_code()


def codex(*items: Body) -> Body:
    """Return a request as Codex sends it."""
    question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "?"}]}
    return {
        "model": "gpt-5",
        "instructions": "You are Codex.",
        "input": [question, *items],
        "tools": [{"type": "function", "name": "shell", "strict": False, "parameters": SCHEMA}],
        "reasoning": {"effort": "high", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
        "prompt_cache_key": "session",
    }


def called(call_id: str) -> Body:
    return {"type": "function_call", "call_id": call_id, "name": "shell", "arguments": "{}"}


def output(call_id: str) -> Body:
    return {"type": "function_call_output", "call_id": call_id, "output": f"of {call_id}"}


def said(text: str) -> Body:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}


HISTORIES: Final = {
    "after the call": [called("c1"), said("I look."), output("c1")],
    "after both calls": [called("c1"), called("c2"), said("I look."), output("c1"), output("c2")],
    "between the outputs": [
        called("c1"),
        called("c2"),
        output("c1"),
        said("I look."),
        output("c2"),
    ],
    "before the second call": [
        called("c1"),
        said("I look."),
        called("c2"),
        output("c1"),
        output("c2"),
    ],
}


def lists(body: Body, *names: str) -> list[Body]:
    """Return the objects of the members that are lists."""
    found: list[Body] = []
    for name in names:
        if isinstance(items := body.get(name), list):
            found += cast("list[Body]", items)
    return found


def turns(body: Body) -> list[tuple[str, Body]]:
    """Return the messages of a body, each with its role."""
    messages = lists(body, "messages", "contents")
    return [(str(message["role"]), message) for message in messages]


def calls_of(message: Body) -> list[Body]:
    return [block for block in lists(message, "tool_calls", "content", "parts") if is_call(block)]


def is_call(item: Body) -> bool:
    kinds = {"function", "toolUse", "functionCall"} & item.keys()
    return bool(kinds) or item.get("type") == "tool_use"


@pytest.mark.parametrize("place", HISTORIES)
@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "openai-responses"])
def test_a_message_between_a_call_and_its_output_leaves_them_together(
    dialect: str, place: str
) -> None:
    request = codex(*HISTORIES[place], {"role": "user", "content": "Next"})
    body = rendered(request, "openai-responses", dialect)
    messages = turns(body)
    at = next(number for number, (_, message) in enumerate(messages) if calls_of(message))
    calls = len(calls_of(messages[at][1]))
    assert calls == sum(item.get("type") == "function_call" for item in HISTORIES[place])
    answers = messages[at + 1 : at + 2]
    if messages[at + 1][0] == "tool":
        answers = messages[at + 1 : at + 1 + calls]
    sent = json.dumps([message for _, message in answers])
    assert [sent.count(f"of c{number}") for number in range(1, calls + 1)] == [1] * calls
    assert json.dumps(body).count("I look.") == 1
    check(dialect, body)


def test_a_history_of_codex_goes_back_to_its_provider_in_its_order() -> None:
    reasoning: Body = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAAA"}
    items = [reasoning, called("c1"), output("c1"), said("Done.")]
    request = codex(*items)
    body = rendered(request, "openai-responses", "openai-responses")
    assert normal("openai-responses", body) == normal("openai-responses", request)


def order(body: Body) -> list[str]:
    """Return what the assistant's blocks are, in their order."""
    found: list[str] = []
    for item in lists(body, "input"):
        kind = str(item.get("type", "message"))
        found.append(str(item["role"]) if kind == "message" else kind)
    for role, message in turns(body):
        if role in {"assistant", "model"}:
            found += map(kind_of, lists(message, "content", "parts"))
    wanted = {"reasoning": "thinking", "function_call": "call", "assistant": "text"}
    known = [wanted.get(kind, kind) for kind in found]
    return [kind for kind in known if kind in {"thinking", "text", "call"}]


def kind_of(block: Body) -> str:
    if is_call(block):
        return "call"
    is_thinking = "thinking" in str(block.get("type")) or block.get("thought")
    return "thinking" if is_thinking or "reasoningContent" in block else "text"


BLOCKS: Final = [CLAUDE, "openai-responses", "gemini", "bedrock-converse"]
"""Dialects whose answers are lists of blocks; the others have a text beside a list of calls."""


def answer_in(dialect: str) -> Body:
    """Return a request with an answer of several blocks, in the client's own form."""
    user: Body
    match dialect:
        case "anthropic-messages":
            return claude_code()
        case "openai-responses":
            reasoning: list[Body] = [
                {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "gA=="}
                for n in (1, 2)
            ]
            first, second = reasoning
            items: list[Body] = [first, said("I read."), called("c1"), second, called("c2")]
            return codex(*items, output("c1"), output("c2"))
        case "gemini":
            user = {"role": "user", "parts": [{"text": "Read it"}]}
            parts: list[Body] = [
                {"text": "One", "thought": True, "thoughtSignature": "dGgx"},
                {"text": "I read."},
                {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "dGgy"},
                {"text": "Two", "thought": True, "thoughtSignature": "dGgz"},
                {"functionCall": {"name": "f", "args": {}}},
            ]
            response: Body = {"functionResponse": {"name": "f", "response": {"output": "ok"}}}
            answers: Body = {"role": "user", "parts": [response, response]}
            return {"contents": [user, {"role": "model", "parts": parts}, answers]}
        case _:
            user = {"role": "user", "content": [{"text": "Read it"}]}
            blocks: list[Body] = [
                {"reasoningContent": {"reasoningText": {"text": "One", "signature": "c2ln"}}},
                {"text": "I read."},
                {"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}},
                {"reasoningContent": {"redactedContent": "YnI="}},
                {"toolUse": {"toolUseId": "t2", "name": "f", "input": {}}},
            ]
            results: list[Body] = [
                {"toolResult": {"toolUseId": name, "content": [{"text": "ok"}]}}
                for name in ("t1", "t2")
            ]
            turn: Body = {"role": "assistant", "content": blocks}
            return {"messages": [user, turn, {"role": "user", "content": results}]}


@pytest.mark.parametrize("target", BLOCKS)
@pytest.mark.parametrize("dialect", BLOCKS)
def test_replayed_blocks_keep_their_order(dialect: str, target: str) -> None:
    request = answer_in(dialect)
    model = request.get("model", "m")
    body = rendered(request, dialect, target, model_id=model)
    given = order(request)
    assert {"thinking", "text", "call"} == set(given)
    kept = given if target == dialect else [kind for kind in given if kind != "thinking"]
    assert order(body) == kept


@pytest.mark.parametrize("signature", ["", None])
def test_thinking_without_a_signature_is_not_sent_to_a_provider_that_signs(
    signature: str | None,
) -> None:
    block: Body = {"type": "thinking", "thinking": "Hm", "signature": signature}
    request = claude_code()
    request["messages"][1]["content"][0] = block
    sent = json.dumps(rendered(request, CLAUDE, CLAUDE)["messages"])
    assert "Hm" not in sent
    assert '"signature": "c2lnMg=="' in sent
    text = {"reasoningText": {"text": "Hm", "signature": signature}}
    converse = answer_in("bedrock-converse")
    converse["messages"][1]["content"][0] = {"reasoningContent": text}
    assert "Hm" not in json.dumps(rendered(converse, "bedrock-converse", "bedrock-converse", "m"))


def test_ids_that_are_made_for_calls_differ_from_turn_to_turn() -> None:
    call: Body = {"functionCall": {"name": "f", "args": {}}}
    candidate: Body = {"content": {"role": "model", "parts": [call, call]}, "finishReason": "STOP"}
    stream = sse({"candidates": [candidate], "modelVersion": "gemini-3"})
    ids: list[str] = []
    for _ in range(3):
        decoder, assembler = Decoder("gemini"), MessageAssembler()
        assembler.consume(decoder.feed(stream))
        assembler.consume(decoder.close())
        ids += [made.tool_call_id for made in assembler.snapshot().tool_calls]
    assert len(set(ids)) == 6


@pytest.mark.parametrize("first", [None, "call_1"])
def test_an_id_that_is_made_for_a_call_of_a_request_is_no_id_of_another_call(
    first: str | None,
) -> None:
    ids = [first, "call_1" if first is None else None]
    contents: list[Body] = []
    for call_id in ids:
        known = {} if call_id is None else {"id": call_id}
        call: Body = {"functionCall": {"name": "f", "args": {}, **known}}
        response: Body = {"functionResponse": {"name": "f", "response": {"output": "ok"}, **known}}
        contents += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [response]}]
    body = rendered({"contents": contents}, "gemini", CLAUDE, model_id="m")
    uses = [block["id"] for block in objects_in(body) if block.get("type") == "tool_use"]
    answers = [block["tool_use_id"] for block in objects_in(body) if "tool_use_id" in block]
    assert len(set(uses)) == 2
    assert uses == answers
