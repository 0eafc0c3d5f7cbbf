"""Providers that refuse everything their documents let them refuse.

In: a dialect and a request body.  Out: nothing, or an AssertionError that names the refused member.

Law: written from the sections "Request" of docs/protocols/; nothing of the renderer is used.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

Body = Mapping[str, Any]
Side = Callable[[Body], tuple[str, str] | None]


def refuse(dialect: str, body: Body, *, secrets: str) -> None:
    """Raise what the provider would refuse; `secrets` is how this model's own signatures begin."""
    PROVIDERS[dialect](body, secrets)


THINKING = frozenset({"thinking", "redacted_thinking"})


def anthropic(body: Body, secrets: str) -> None:
    messages = body["messages"]
    assert messages, "no messages"
    # Recordings show that Claude from 4.5 on takes a conversation which the assistant begins.
    assert messages[0]["role"] in {"user", "assistant"}, "a system message comes first"
    roles = [message["role"] for message in messages]
    for before, role, after in zip(roles, roles[1:], [*roles[2:], "assistant"], strict=False):
        if role == "system":
            assert (before, after) == ("user", "assistant"), "a system message at a wrong position"
    alternates([role for role in roles if role != "system"], {"user", "assistant"})
    seen: set[str] = set()
    served([message["content"] for message in messages], anthropic_tool)
    for position, message in enumerate(messages):
        blocks = message["content"]
        assert blocks, f"{position}: content is empty"
        kinds = [block["type"] for block in blocks]
        for place, block in enumerate(blocks):
            # The API takes a blank text that stood between two blocks of thinking, and no other.
            around = set(kinds[place - 1 : place] + kinds[place + 1 : place + 2])
            if block["type"] == "text" and 0 < place < len(kinds) - 1 and around <= THINKING:
                assert block["text"], "an empty text"
                continue
            anthropic_block(block, message["role"], secrets)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert kinds[: len(results)] == ["tool_result"] * len(results), "results come first"
        asked: list[str] = []
        if position and messages[position - 1]["role"] == "assistant":
            before = messages[position - 1]["content"]
            asked = [block["id"] for block in before if block["type"] == "tool_use"]
        assert sorted(results) == sorted(asked), f"{position}: results {results} of calls {asked}"
        seen.difference_update(results)
        for block in blocks:
            if block["type"] == "tool_use":
                assert block["id"] not in seen, "the id of an open tool_use comes again"
                seen.add(block["id"])
                assert position + 1 < len(messages), "a call without a result"
    last = messages[-1]
    if last["role"] == "assistant" and last["content"][-1]["type"] == "text":
        text = last["content"][-1]["text"]
        assert text == text.rstrip(), "the last answer ends with white space"
    marks = str(body).count("'cache_control'")
    assert marks <= 4, f"{marks} cache marks"


def anthropic_block(block: Body, role: str, secrets: str) -> None:
    match block["type"]:
        case "text":
            assert block["text"].strip(), "a blank text"
        case "thinking":
            assert role == "assistant"
            assert block["signature"].startswith(secrets), "the signature of another model"
        case "redacted_thinking":
            assert block["data"].startswith(secrets)
        case "tool_use":
            assert role == "assistant"
            assert re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), block["id"]
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"]), block["name"]
            assert isinstance(block["input"], dict)
        case "tool_result":
            assert role == "user"
            held: list[Body] = [] if isinstance(block["content"], str) else block["content"]
            assert all(inner["type"] in {"text", "image", "document"} for inner in held)
        case "image" | "document":
            assert role == "user"
            assert block["source"]["type"] in {"base64", "url", "file", "text"}
        case kind:
            assert kind in {"server_tool_use", "web_search_tool_result"}, kind
            assert role == "assistant"


def anthropic_tool(block: Body) -> tuple[str, str] | None:
    if block["type"] == "server_tool_use":
        return "use", block["id"]
    if block["type"].endswith("_tool_result"):
        return "result", block["tool_use_id"]
    return None if block["type"] != "text" else ("text", "")


def served(turns: Sequence[Sequence[Body]], side_of: Side) -> None:
    """Refuse a tool of the provider without a result before the next text of the user.

    The turns of the user have odd places, after the first of them.
    """
    open_uses: set[str] = set()
    for position, blocks in enumerate(turns):
        for block in blocks:
            kind, key = side_of(block) or ("", "")
            if kind == "use":
                open_uses.add(key)
            elif kind == "result":
                assert key in open_uses, "a result of no server tool"
                open_uses.remove(key)
            elif kind == "text" and position % 2 == 0:
                assert not open_uses, f"server tools without a result: {open_uses}"


def bedrock(body: Body, secrets: str) -> None:
    messages = body["messages"]
    assert messages, "no messages"
    # A model of Anthropic accepts that the assistant begins.
    alternates([message["role"] for message in messages], {"user", "assistant"})
    has_tools = False
    served([message["content"] for message in messages], bedrock_tool)
    for position, message in enumerate(messages):
        blocks = [block for block in message["content"] if not is_of_bedrock(block)]
        assert message["content"]
        for block in blocks:
            (kind,) = block
            bedrock_block(kind, block[kind], secrets)
            has_tools = has_tools or kind in {"toolUse", "toolResult"}
        results = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
        assert all("toolResult" in block for block in blocks[: len(results)]), "results come first"
        before: list[Body] = messages[position - 1]["content"] if position else []
        before = [block for block in before if not is_of_bedrock(block)]
        asked = [block["toolUse"]["toolUseId"] for block in before if "toolUse" in block]
        assert sorted(results) == sorted(asked), f"results {results} of calls {asked}"
        assert len(set(asked)) == len(asked)
        if any("toolUse" in block for block in blocks):
            assert position + 1 < len(messages), "a call without a result"
        if any("document" in block for block in blocks):
            assert any("text" in block for block in blocks), "a document without a text"
    assert not has_tools or body["toolConfig"]["tools"], "tool blocks without tools"


def is_of_bedrock(block: Body) -> bool:
    tool: Body = block.get("toolUse") or block.get("toolResult") or {}
    return "type" in tool


def bedrock_tool(block: Body) -> tuple[str, str] | None:
    if not is_of_bedrock(block):
        return ("text", "") if "text" in block else None
    kind = "use" if "toolUse" in block else "result"
    return kind, block.get("toolUse", block.get("toolResult"))["toolUseId"]


def bedrock_block(kind: str, block: Any, secrets: str) -> None:  # noqa: ANN401 - any JSON
    match kind:
        case "text":
            assert block.strip(), "a blank text"
        case "reasoningContent":
            said = block.get("reasoningText")
            secret = said["signature"] if said else block["redactedContent"]
            assert secret.startswith(secrets), "the signature of another model"
        case "toolUse":
            assert re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", block["toolUseId"])
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", block["name"])
            assert isinstance(block["input"], dict)
        case "toolResult":
            assert block["content"], "an empty result"
            for inner in block["content"]:
                assert inner.get("text", "said").strip(), "a blank text"
        case "image":
            assert block["format"] in {"png", "jpeg", "gif", "webp"}
            assert len(block["source"]) == 1
        case "document":
            assert re.fullmatch(r"(?!.*\s\s)[a-zA-Z0-9\s()\[\]-]+", block["name"])
        case _:
            assert kind == "citationsContent", kind


def gemini(body: Body, secrets: str) -> None:
    contents = body["contents"]
    assert contents, "no contents"
    assert contents[0]["role"] == "user"
    assert not any("functionResponse" in part for part in contents[0]["parts"])
    served([content["parts"] for content in contents], gemini_tool)
    for position, content in enumerate(contents):
        parts = content["parts"]
        assert content["role"] in {"user", "model"}
        assert parts, "a content without parts"
        for part in parts:
            signature = part.get("thoughtSignature", secrets)
            is_stand_in = signature == "skip_thought_signature_validator"
            assert is_stand_in or signature.startswith(secrets), "a signature of another model"
            assert len(part.keys() - {"thought", "thoughtSignature"}) == 1
            if part.get("text") == "":
                assert "thoughtSignature" in part, "an empty text"
        calls = [part for part in parts if "functionCall" in part]
        asked = [(c["functionCall"]["id"], c["functionCall"]["name"]) for c in calls]
        is_last = position + 1 == len(contents)
        following: list[Body] = [] if is_last else contents[position + 1]["parts"]
        replies = [part["functionResponse"] for part in following if "functionResponse" in part]
        if calls:
            assert content["role"] == "model"
            assert "thoughtSignature" in calls[0], "the first call of a turn is signed"
            assert contents[position - 1]["role"] == "user", "a call follows a user's turn"
            # A text of the user is accepted where the calls have no response at all.
            replied = [(r["id"], r["name"]) for r in replies]
            is_text = bool(following) and not replies
            assert is_text or replied == asked, "one response for each call"
            assert is_text or len(replies) == len(following), "responses stand alone"
        else:
            assert not replies, "a response without a call"
        for part in calls:
            assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", part["functionCall"]["name"])
            assert isinstance(part["functionCall"]["args"], dict)


def gemini_tool(part: Body) -> tuple[str, str] | None:
    if "executableCode" in part:
        return "use", "code"
    if "codeExecutionResult" in part:
        return "result", "code"
    return ("text", "") if "text" in part else None


def chat(
    body: Body,
    _secrets: str,
    *,
    ids: str = r"(?s).{1,40}",
    names: str = r"[a-zA-Z0-9_-]{1,64}",
) -> None:
    messages = body["messages"]
    assert messages, "no messages"
    # A recording shows that OpenAI takes a system message alone; a chat template may not.
    is_of_openai = str(body["model"]).startswith(("gpt-", "o"))
    assert is_of_openai or any(message["role"] != "system" for message in messages)
    waiting: list[str] = []
    for message in messages:
        role = message["role"]
        if role == "tool":
            assert message["tool_call_id"] in waiting, "a result that no call asked for"
            waiting.remove(message["tool_call_id"])
            assert isinstance(message["content"], str | list)
            continue
        assert not waiting, f"calls without results: {waiting}"
        if role == "assistant":
            calls = message.get("tool_calls", [])
            assert calls or message.keys() - {"role", "tool_calls", "prefix"}, "an empty answer"
            waiting = [call["id"] for call in calls]
            assert len(set(waiting)) == len(waiting), "an id comes twice"
            for call in calls:
                chat_call(call, ids, names, any_arguments=body["model"].startswith("gpt-"))
        else:
            assert role in {"system", "user"}
            assert message["content"], f"an empty {role} message"
    assert not waiting, f"calls without results: {waiting}"


def chat_call(call: Body, ids: str, names: str, *, any_arguments: bool) -> None:
    assert re.fullmatch(ids, call["id"]), call["id"]
    function = call.get("function") or call["custom"]
    assert re.fullmatch(names, function["name"]), function["name"]
    if "function" in call:
        # OpenAI accepts any text; servers that fill a template with the arguments do not.
        assert any_arguments or function["arguments"].lstrip().startswith("{")


def cohere(body: Body, secrets: str) -> None:
    chat(body, secrets, ids="(?s).+", names="(?s).+")


def mistral(body: Body, secrets: str) -> None:
    chat(body, secrets, ids="[a-zA-Z0-9]{9}")
    last = body["messages"][-1]
    assert last["role"] in {"user", "tool", "system"} or last["prefix"] is True
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message.get("name"), "a result without the name of its tool"
        for content in message["content"] if isinstance(message.get("content"), list) else ():
            if content["type"] == "thinking":
                assert content["signature"].startswith(secrets), "a signature of another model"


def ollama(body: Body, _secrets: str) -> None:
    assert body["messages"]
    waiting: list[tuple[str, str]] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert waiting, "a result that no call asked for"
            # Older versions match by name and order alone.
            assert (message["tool_call_id"], message.get("tool_name")) == waiting.pop(0)
            continue
        assert not waiting, f"calls without results: {waiting}"
        calls = message.get("tool_calls", [])
        waiting = [(call["id"], call["function"]["name"]) for call in calls]
        assert all(call_id and name for call_id, name in waiting)
        assert all(isinstance(call["function"]["arguments"], dict) for call in calls)
        assert message["content"] or message.keys() - {"role", "content"}, "an empty message"
    assert not waiting


def responses(body: Body, secrets: str) -> None:
    items = body["input"]  # empty beside a stored prompt
    waiting: dict[str, str] = {}
    for position, item in enumerate(items):
        kind = item.get("type", "message")
        if kind in {"function_call", "custom_tool_call"}:
            assert 1 <= len(item["call_id"]) <= 64
            assert item["call_id"] not in waiting
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["name"])
            waiting[item["call_id"]] = f"{kind}_output"
        elif kind.endswith("_output"):
            assert waiting.pop(item["call_id"], None) == kind, "an output without its call"
        elif kind == "reasoning":
            assert item["encrypted_content"].startswith(secrets), "reasoning of another model"
            following = items[position + 1] if position + 1 < len(items) else {"role": "user"}
            follows = following.get("type", "message")
            is_said = following.get("role", "assistant") == "assistant"
            assert is_said, "reasoning without the item that it led to"
            assert not follows.endswith("_output"), "reasoning without the item that it led to"
        elif kind == "web_search_call":
            assert item["status"] in {"completed", "failed", "incomplete"}, "it has not ended"
        elif kind == "message":
            assert item["content"], "an empty message"
    assert not waiting, f"calls without outputs: {waiting}"


def alternates(roles: Sequence[str], known: set[str]) -> None:
    assert set(roles) <= known
    assert all(one != other for one, other in pairwise(roles)), roles


PROVIDERS: dict[str, Callable[[Body, str], None]] = {
    "anthropic-messages": anthropic,
    "openai-chat": chat,
    "openai-responses": responses,
    "gemini": gemini,
    "bedrock-converse": bedrock,
    "ollama": ollama,
    "cohere-chat": cohere,
    "mistral": mistral,
}
