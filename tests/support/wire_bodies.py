"""Small request bodies of the eight protocols around one content.

In: a place and a content.  Out: the smallest conversation with the content at this place.
"""

from typing import Any, Final

Body = dict[str, Any]


def anthropic(place: str, content: Any) -> Body:  # noqa: ANN401 - any JSON
    """Return a request with a block at a place."""
    use = {"type": "tool_use", "id": "c", "name": "look", "input": {"at": "sky"}}
    body: Body = {"max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]}
    messages = body["messages"]
    if place == "system":
        body["system"] = [content]
    elif place == "user":
        messages[0]["content"] = [{"type": "text", "text": "See:"}, content]
    elif place == "assistant":
        said = [content, {"type": "text", "text": "So it is."}]
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "Go on."}]
    elif place == "between":
        messages += [{"role": "system", "content": content}, {"role": "assistant", "content": "A"}]
    else:
        result = {"type": "tool_result", "tool_use_id": "c", **content}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return body


def chat(place: str, content: Any) -> Body:  # noqa: ANN401 - any JSON
    """Return a request with a content or, of the assistant, with members at a place."""
    messages: list[Body] = [{"role": "user", "content": "Hello."}]
    if place in {"system", "developer"}:
        messages.insert(0, {"role": place, "content": content})
    elif place == "user":
        messages[0]["content"] = [{"type": "text", "text": "See:"}, content]
    elif place == "assistant":
        messages += [{"role": "assistant", **content}, {"role": "user", "content": "Go on."}]
    elif place == "call":
        messages += [{"role": "assistant", **content[0]}, *content[1:]]
    else:
        function = {"name": "look", "arguments": '{"at": "sky"}'}
        call = {"id": "call00001", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": "call00001", "content": content})
    return {"model": "m", "messages": messages}


def ollama(place: str, content: Any) -> Body:  # noqa: ANN401 - any JSON
    """Return a request with members of a message at a place."""
    messages: list[Body] = [{"role": "user", "content": "Hello."}]
    if place == "result":
        call = {"function": {"name": "look", "arguments": {"at": "sky"}}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_name": "look", **content})
    else:
        messages.append({"role": place, **content})
    return {"model": "m", "messages": messages}


def responses(place: str, content: Any) -> Body:  # noqa: ANN401 - any JSON
    """Return a request with a content at a place; "item" is a list of items."""
    items: list[Body] = [{"role": "user", "content": "Hello."}]
    if place == "item":
        items += [*content, {"role": "user", "content": "Go on."}]
    elif place == "result":
        call = {"call_id": "c", "name": "look", "arguments": '{"at": "sky"}'}
        items.append({"type": "function_call", **call})
        items.append({"type": "function_call_output", "call_id": "c", "output": content})
    else:
        items.append({"role": place, "content": content})
    return {"model": "m", "input": items}


def gemini(place: str, content: Any) -> Body:  # noqa: ANN401 - any JSON
    """Return a request with a part at a place."""
    contents: list[Body] = [{"role": "user", "parts": [{"text": "Hello."}]}]
    body: Body = {"contents": contents}
    if place == "system":
        body["systemInstruction"] = {"parts": [content]}
    elif place == "user":
        contents[0]["parts"].append(content)
    elif place == "assistant":
        contents.append({"role": "model", "parts": [content, {"text": "So it is."}]})
        contents.append({"role": "user", "parts": [{"text": "Go on."}]})
    else:
        call = {"functionCall": {"name": "look", "args": {"at": "sky"}}}
        contents.append({"role": "model", "parts": [call]})
        response = {"functionResponse": {"name": "look", **content}}
        contents.append({"role": "user", "parts": [response]})
    return body


def converse(place: str, content: Any) -> Body:  # noqa: ANN401 - any JSON
    """Return a request with a block at a place."""
    messages: list[Body] = [{"role": "user", "content": [{"text": "Hello."}]}]
    body: Body = {"messages": messages}
    if place == "system":
        body["system"] = [content]
    elif place == "user":
        messages[0]["content"].append(content)
    elif place == "assistant":
        messages.append({"role": "assistant", "content": [content, {"text": "So it is."}]})
        messages.append({"role": "user", "content": [{"text": "Go on."}]})
    else:
        use = {"toolUseId": "c", "name": "look", "input": {"at": "sky"}}
        messages.append({"role": "assistant", "content": [{"toolUse": use}]})
        result = {"toolUseId": "c", "content": content, "status": "error"}
        messages.append({"role": "user", "content": [{"toolResult": result}]})
    return body


BODIES: Final = {
    "anthropic-messages": anthropic,
    "bedrock-converse": converse,
    "cohere-chat": chat,
    "gemini": gemini,
    "mistral": chat,
    "ollama": ollama,
    "openai-chat": chat,
    "openai-responses": responses,
}
