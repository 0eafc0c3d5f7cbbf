"""Reader of a stream of Chat or of Responses: the official OpenAI client."""

import collections
from typing import Any

import httpx2
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses import ResponseStreamState

from judging import Answer, Stream, parsed

# Events of Responses that carry a piece of the answer, by the kind of the piece.
DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
    "response.function_call_arguments.delta": "input",
    "response.custom_tool_call_input.delta": "input",
}


def client_of(stream: Stream) -> openai.OpenAI:
    """Return a client whose every request is answered with the stream."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(stream.status, headers=dict(stream.headers), content=stream.body)

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="key", max_retries=0, http_client=transport)


def completion_of(stream: Stream, beside: dict[str, object] | None = None) -> Any:  # noqa: ANN401 - the snapshot has members of vendors
    """Return the completion; `beside` takes the members of vendors that chunks have."""
    state: Any = ChatCompletionStreamState()
    events = client_of(stream).chat.completions.create(
        model="m", messages=[{"role": "user", "content": "?"}], stream=True
    )
    for chunk in events:
        state.handle_chunk(chunk)
        if beside is not None:
            beside.update(chunk.model_extra or {})
    return state.current_completion_snapshot


def chat_media(stream: Stream) -> list[object]:
    """Return images, audio and lists of sources that the client reads beside text and calls."""
    beside: dict[str, object] = {}
    message = completion_of(stream, beside).choices[0].message
    members: dict[str, Any] = message.model_dump()
    images: list[Any] = members.get("images") or []
    audio: dict[str, object] | None = members.get("audio")
    found: list[object] = [image["image_url"] for image in images]
    found += [{k: v for k, v in audio.items() if v is not None}] if audio else []
    return found + [beside[name] for name in ("citations", "search_results") if beside.get(name)]


def response_items(stream: Stream) -> list[object]:
    """Return messages (id, phase) and reasoning (id, encrypted, raw content), in any order."""
    found: set[tuple[str | None, ...]] = set()
    event: Any
    for event in client_of(stream).responses.create(model="m", input="?", stream=True):
        item: Any = getattr(event, "item", None)
        if event.type != "response.output_item.done" or item.id is None:
            continue
        if item.type == "message":
            found.add((item.id, getattr(item, "phase", None)))
        elif item.type == "reasoning":
            raw = "".join(part.text for part in item.content or ())
            found.add((item.id, item.encrypted_content, raw))
    return sorted(found, key=str)


def chat(stream: Stream) -> Answer:
    completion = completion_of(stream)
    choice = completion.choices[0]
    message, usage = choice.message, completion.usage
    audio: Any = message.model_dump().get("audio") or {}
    extra: dict[str, Any] = message.model_extra or {}
    answer = Answer(
        (message.content or "") + (message.refusal or "") + (audio.get("transcript") or ""),
        str(extra.get("reasoning_content") or ""),
        finish=choice.finish_reason,
        input_tokens=usage.prompt_tokens if usage else None,
        output_tokens=usage.completion_tokens if usage else None,
    )
    # Only functions have a type here; a call of free text is kept with the members that came.
    for call in message.model_dump().get("tool_calls") or ():
        if "custom" in call:
            custom = call["custom"]
            answer.calls.append((call["id"], custom["name"], {"input": custom["input"]}))
        else:
            function = call["function"]
            answer.calls.append((call["id"], function["name"], parsed(function["arguments"])))
    return answer


def tool_name(item: Any) -> str:  # noqa: ANN401 - calls of two kinds
    """Return the name of a called tool, with the namespace that the client reads beside it."""
    namespace = getattr(item, "namespace", None)
    return item.name if namespace in {None, item.name} else f"{namespace}__{item.name}"


def responses(stream: Stream) -> Answer:
    state: Any = ResponseStreamState(input_tools=openai.omit, text_format=openai.omit)
    last: Any = None
    seen = collections.defaultdict[str, str](str)
    for last in client_of(stream).responses.create(model="m", input="?", stream=True):
        state.handle_event(last)
        if last.type in DELTAS:
            seen[DELTAS[last.type]] += last.delta
    assert last.type in {"response.completed", "response.incomplete"}
    response = last.response
    incomplete, usage = response.incomplete_details, response.usage
    answer = Answer(
        finish=incomplete.reason if incomplete else response.status,
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
    )
    inputs = ""
    for item in response.output:
        if item.type == "message":
            for part in item.content:
                answer.text += part.text if part.type == "output_text" else part.refusal
        elif item.type == "reasoning":
            parts = (*item.summary, *(item.content or ()))
            answer.thinking += "".join(part.text for part in parts)
        elif item.type == "function_call":
            inputs += item.arguments
            answer.calls.append((item.call_id, tool_name(item), parsed(item.arguments)))
        elif item.type == "custom_tool_call":
            inputs += item.input
            answer.calls.append((item.call_id, tool_name(item), {"input": item.input}))
    # A caller shows the deltas while they arrive: they give what the final response has.
    assert (seen["text"], seen["thinking"], seen["input"]) == (answer.text, answer.thinking, inputs)
    return answer
