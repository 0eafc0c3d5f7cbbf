"""The normal form of request bodies, as docs/requests.md states it.

In: the body of a request.  Out: the body in the form in which `deltafold` writes it.

Law: no rule changes what the model sees: each removes a member that is a default of the API or
writes the same content in the other form that the API takes. The rules do not use the parser.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic.alias_generators import to_camel
from typing_extensions import TypeIs

Body = dict[str, Any]

CALLERS_DATA: Final = frozenset(
    {
        "args",
        "arguments",
        "enum",
        "input_schema",
        "json",
        "parameters",
        "parametersJsonSchema",
        "properties",
        "required",
        "response",
        "responseJsonSchema",
        "responseSchema",
        "schema",
    }
)
"""Members whose content is the caller's own JSON: nothing in it is a default of the API."""


def normal(dialect: str, body: Mapping[str, Any]) -> Body:
    """Return the normal form of a body."""
    form: Body = _without_nulls({**body, "stream": bool(body.get("stream"))})
    form.pop("model", None)
    form = _FORMS[dialect](form)
    # An empty list of tools or an empty object of settings is a missing one.
    return {name: value for name, value in form.items() if value not in ([], {}, "")}


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return [_without_nulls(item) for item in items_of(value)]
    if not isinstance(value, dict):
        return value
    return {
        name: member if name in CALLERS_DATA else _without_nulls(member)
        for name, member in members_of(value).items()
        if member is not None
    }


def items_of(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON
    return value if is_list(value) else []


def members_of(value: Any) -> Body:  # noqa: ANN401 - any JSON
    return value if is_object(value) else {}


def is_list(value: object) -> TypeIs[list[Any]]:
    return isinstance(value, list)


def is_object(value: object) -> TypeIs[Body]:
    return isinstance(value, dict)


def _one_text(content: Any, kind: str = "text") -> Any:  # noqa: ANN401 - any JSON
    """Write a list of one text as that text."""
    contents = items_of(content)
    only = members_of(contents[0]) if len(contents) == 1 else {}
    is_plain = only.keys() == {"type", "text"} and only["type"] == kind
    return only["text"] if is_plain else content


def _with_parameters(function: Body) -> Body:
    """Write the parameters of a function that takes none."""
    return {"parameters": {"type": "object", "properties": {}}, **function}


def _openai_chat(form: Body) -> Body:
    form = _with_numbered_calls(_chat(form))
    for tool in form.get("tools", []):
        if "function" in tool:
            tool["function"] = _with_parameters(tool["function"])
    return form


def _with_numbered_calls(form: Body) -> Body:
    """Number the calls: an id that the API does not take is replaced, also in the result."""
    ids: dict[str, str] = {}
    waiting: list[str] = []
    for message in form["messages"]:
        for call in message.get("tool_calls", []):
            number = f"call {len(ids)}"
            call_id = str(call.get("id", number))
            call["id"] = ids[number if call_id == "null" else call_id] = number
            waiting.append(number)
        if message["role"] == "tool" and waiting:
            # A result without an id answers the oldest call.
            number = ids.get(str(message.get("tool_call_id")), waiting[0])
            message["tool_call_id"] = number
            waiting = [call for call in waiting if call != number]
    return form


def _merged(messages: list[Body], member: str) -> list[Body]:
    """Join neighbouring messages of one role, as the API does."""
    joined: list[Body] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {**joined[-1], **message, member: joined[-1][member] + message[member]}
        else:
            joined.append(message)
    return joined


def _chat(form: Body) -> Body:
    messages: list[Body] = []
    for message in form.get("messages", []):
        said = {**message, "content": _one_text(message.get("content", ""))}
        calls = said.get("tool_calls")
        if calls == []:
            del said["tool_calls"]
        # An assistant's content may be missing, null or "" beside its calls.
        if said["content"] in ("", []) and said["role"] == "assistant":
            del said["content"]
        for name in ("refusal", "reasoning_details", "annotations"):
            if said.get(name) in ("", []):
                del said[name]
        messages.append(said)
    form["messages"] = messages
    if isinstance(form.get("stop"), str):
        form["stop"] = [form["stop"]]
    return form


def _mistral(form: Body) -> Body:
    form = _with_numbered_calls(_chat(form))
    for message in form["messages"]:
        if message.get("prefix") is False:
            del message["prefix"]
        for call in message.get("tool_calls", []):
            call.setdefault("type", "function")
            call.pop("index", None)
            arguments = call["function"].get("arguments")
            if is_object(arguments):
                call["function"]["arguments"] = json.dumps(arguments, separators=(",", ":"))
        for item in items_of(message.get("content")):
            image = members_of(item.get("image_url"))
            if image.keys() == {"url"}:
                item["image_url"] = image["url"]
    for tool in form.get("tools", []):
        tool.setdefault("type", "function")
    if form.get("tool_choice") == "any":
        form["tool_choice"] = "required"
    return form


def _responses(form: Body) -> Body:
    given = form.get("input", [])
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    form["input"] = [_item(item) for item in items]
    form["include"] = sorted(form.get("include", []))
    form["tools"] = [
        _with_parameters(tool) if tool["type"] == "function" else tool
        for tool in form.get("tools", [])
    ]
    return form


def _item(item: Body) -> Body:
    if str(item.get("type")).endswith("call_output"):
        return {**item, "output": _one_text(item.get("output", ""), "input_text")}
    if item.get("type", "message") != "message":
        return item
    plain = {name: value for name, value in item.items() if name != "type"}
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    content = plain.get("content")
    if isinstance(content, list):
        content = [_content(part) for part in items_of(content)]
    # An assistant's text with an id or a status is an item of the provider, which has a list.
    plain["content"] = _one_text(content, kind)
    return plain


def _content(part: Body) -> Body:
    defaults: Body = {"annotations": [], "logprobs": []}
    if part.get("type") == "input_image":
        defaults = {"detail": "auto"}
    return {
        name: value
        for name, value in part.items()
        if name not in defaults or value != defaults[name]
    }


def _anthropic(form: Body) -> Body:
    form["system"] = _one_text(form.get("system", ""))
    messages: list[Body] = []
    for message in form.get("messages", []):
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        messages.append({**message, "content": [_block(block) for block in blocks]})
    form["messages"] = _with_ordered_results(_merged(messages, "content"))
    return form


def _with_ordered_results(messages: list[Body]) -> list[Body]:
    """Write the results of one message in the order of the calls."""
    order: dict[str, int] = {}
    for message in messages:
        blocks = message["content"]
        for block in blocks:
            if block.get("type") == "tool_use":
                order[block["id"]] = len(order)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        results.sort(key=lambda block: order.get(str(block["tool_use_id"]), -1))
        others = [block for block in blocks if block.get("type") != "tool_result"]
        message["content"] = [*results, *others]
    return messages


def _block(block: Body) -> Body:
    plain = dict(block)
    if plain.get("citations") == [] and plain["type"] == "text":
        del plain["citations"]
    if plain["type"] == "tool_result":
        if plain.get("is_error") is False:
            del plain["is_error"]
        plain["content"] = _one_text(plain.get("content", ""))
    return plain


def _gemini(form: Body) -> Body:
    form = in_camel_case(form)
    system = form.get("systemInstruction")
    if isinstance(system, str):
        system = {"parts": [{"text": system}]}
    if system is not None:
        parts: Any = members_of(system).get("parts", [])
        # The role of the system instruction is ignored.
        form["systemInstruction"] = {"parts": parts if isinstance(parts, list) else [parts]}
    contents: list[Body] = []
    for content in form.get("contents", []):
        role = "user" if content.get("role") == "function" else content.get("role", "user")
        contents.append({"role": role, "parts": [_part(part) for part in content["parts"]]})
    form["contents"] = _merged(contents, "parts")
    tools = form.get("tools", [])
    form["tools"] = tools if isinstance(tools, list) else [tools]
    calling = form.get("toolConfig", {}).get("functionCallingConfig", {})
    if "mode" in calling:
        calling["mode"] = calling["mode"].upper()
    return form


def _part(part: Body) -> Body:
    plain = dict(part)
    for name in ("functionCall", "functionResponse"):
        if name in plain:
            # The protocol pairs calls and responses by name and order where they have no ids.
            plain[name] = {k: v for k, v in plain[name].items() if k != "id"}
    if "functionCall" in plain:
        plain["functionCall"] = {"args": {}, **plain["functionCall"]}
    if "inlineData" in plain:
        data = str(plain["inlineData"].get("data"))
        plain["inlineData"] = {**plain["inlineData"], "data": standard_base64(data)}
    response = plain.get("functionResponse", {})
    if "parts" in response:
        response["parts"] = [_part(part) for part in response["parts"]]
    return plain


def standard_base64(data: str) -> str:
    """Return base64 in the standard alphabet, without its padding.

    Gemini also takes the alphabet for addresses, and data without padding.
    """
    return data.replace("-", "+").replace("_", "/").rstrip("=")


def in_camel_case(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return [in_camel_case(item) for item in items_of(value)]
    if not isinstance(value, dict):
        return value
    form: Body = {}
    for name, member in members_of(value).items():
        camel = to_camel(name) if "_" in name else name
        form[camel] = member if camel in CALLERS_DATA else in_camel_case(member)
    return form


def _converse(form: Body) -> Body:
    form.pop("stream")
    for message in form.get("messages", []):
        for block in message["content"]:
            result = block.get("toolResult", {})
            if result.get("status") == "success":
                del result["status"]
    return form


def _ollama(form: Body) -> Body:
    for message in form.get("messages", []):
        for call in message.get("tool_calls", []):
            # The number of a call within its stream.
            call["function"].pop("index", None)
            # Results follow their calls in the same order; ids are optional.
            call.pop("id", None)
        message.pop("tool_call_id", None)
    return form


_FORMS: Final[Mapping[str, Callable[[Body], Body]]] = {
    "anthropic-messages": _anthropic,
    "bedrock-converse": _converse,
    "cohere-chat": _chat,
    "gemini": _gemini,
    "mistral": _mistral,
    "ollama": _ollama,
    "openai-chat": _openai_chat,
    "openai-responses": _responses,
}
