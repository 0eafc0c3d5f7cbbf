"""Recordings of the corpus as the events of the SDKs: they fold into what their bytes say."""

import json
import re
from base64 import b64decode
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, cast

import cohere
import ollama
import pytest
from cohere.core.unchecked_base_model import construct_type
from google.genai import types as google
from mistralai.client import models as mistral

import deltafold
from any_name import AnyName
from corpus import needs_corpus
from deltafold import Message, ModelError
from deltafold._core import EventFramer, event_ends
from deltafold.contract.kinds import json_array, json_object
from deltafold.streams.first_events import dialect_of_event
from sdk_clients import anthropic_client, openai_client
from sdk_objects import read, recordings


def wires(body: bytes) -> list[Any]:
    """Return the JSON of each event of a body."""
    framer = EventFramer("sse")
    events = [*framer.feed(body), *framer.finish()]
    return [json.loads(data) for _, data in events if data.startswith(b"{")]


def of_openai_chat(body: bytes) -> list[object]:
    create: Any = openai_client([body]).chat.completions.create
    return read(create(model="m", messages=[], stream=True)).objects


def of_openai_responses(body: bytes) -> list[object]:
    create: Any = openai_client([body]).responses.create
    return read(create(model="m", input="", stream=True)).objects


def of_anthropic(body: bytes) -> list[object]:
    create: Any = anthropic_client([body]).messages.create
    return read(create(model="m", max_tokens=9, messages=[], stream=True)).objects


def of_mistral(body: bytes) -> list[object]:
    made = mistral.CompletionChunk.model_validate
    return [mistral.CompletionEvent(data=made(wire)) for wire in wires(body)]


def of_gemini(body: bytes) -> list[object]:
    made: Any = attrgetter("_from_response")(google.GenerateContentResponse)
    return [made(response=wire, kwargs={}) for wire in wires(body)]


def of_ollama(body: bytes) -> list[object]:
    lines = [json.loads(line) for line in body.splitlines() if line]
    return [ollama.ChatResponse(**line) for line in lines if "message" in line]


def of_cohere(body: bytes) -> list[object]:
    kind: Any = cohere.V2ChatStreamResponse
    return [construct_type(type_=kind, object_=wire) for wire in wires(body)]


def of_bedrock(body: bytes) -> list[object]:
    """Return the dicts that boto3 yields."""
    framer = EventFramer("aws-event-stream")
    return [{name.decode(): json.loads(data)} for name, data in framer.feed(body)]


def of_bedrock_invoke(body: bytes) -> list[object]:
    """Return the dicts that boto3 yields, whose bytes it has read from base64."""
    payloads = [json.loads(data) for _, data in EventFramer("aws-event-stream").feed(body)]
    return [{"chunk": {"bytes": b64decode(one["bytes"])}} for one in payloads if "bytes" in one]


SDKS: Final[dict[str, Callable[[bytes], list[object]]]] = {
    "openai-chat": of_openai_chat,
    "openai-responses": of_openai_responses,
    "anthropic-messages": of_anthropic,
    "mistral": of_mistral,
    "gemini": of_gemini,
    "ollama": of_ollama,
    "cohere-chat": of_cohere,
    "bedrock-converse": of_bedrock,
    "bedrock-invoke": of_bedrock_invoke,
}

LOST: Final = {
    "firebase__googleai.streaming-failure-recitation-no-content",
    "firebase__vertexai.streaming-failure-error-mid-stream",
    "firebase__vertexai.streaming-failure-invalid-json",
    "firebase__vertexai.streaming-success-image-invalid-safety-ratings",
    "pydantic-ai__groq.tool_use_failed_error_streaming.0",
    "pydantic-ai__groq.tool_use_failed_error_streaming_with_text.0",
    "ruby-llm__chat_with_extended_thinking_gpustack_qwen3_streams_thinking_content_when_available",
    "vercel-ai__openai.responses.openai-error.1",
}
"""Recordings of which the objects of the SDK hold less.

Three have citations, ratings or other members that the classes of google-genai do not know. The
others have an error event, for which the SDKs yield no object: they raise.
"""


UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def outcome(body: object, dialect: AnyName) -> object:
    """Return what a fold says, without what is made anew for each."""
    message: Message | None
    error = None
    try:
        message = deltafold.fold(cast("list[object]", body), dialect, run_id="run")
    except ModelError as raised:
        message, error = raised.partial_message, (raised.code, raised.message, raised.retryable)
    said: dict[str, object] = {} if message is None else json.loads(message.to_json())
    for name in ("id", "runId", "timestamp"):
        said.pop(name, None)
    return settled(said), error


def settled(value: object, name: str = "") -> object:
    """Return a value without what the class of an SDK changes.

    google-genai leaves out counts that it does not know, reads the arguments of a call and writes a
    time in another form. An id
    that a protocol lacks is made for each fold.
    """
    if members := json_object(value):
        return {key: settled(member, key) for key, member in members.items() if key != "raw"}
    if name == "createTime":
        value = str(value).replace("+00:00", "Z")
    if name == "responseId" and UUID.fullmatch(str(value)):
        return ""
    if items := json_array(value):
        return [settled(item) for item in items]
    if name == "rawArgsText" and isinstance(value, str) and value:
        try:
            return cast("object", json.loads(value))
        except ValueError:
            return value
    return value


def without_mark(body: bytes) -> bytes:
    """Return a body without the end mark, which no object stands for."""
    return body.replace(b"data: [DONE]", b": [DONE]")


@needs_corpus
@pytest.mark.parametrize("dialect", SDKS)
def test_objects_of_an_sdk_say_what_the_bytes_say(dialect: str) -> None:
    different: dict[str, object] = {}
    count = 0
    for name, body in recordings(dialect):
        objects = SDKS[dialect](body)
        count += bool(objects)
        ours, theirs = outcome(without_mark(body), dialect), outcome(objects, dialect)
        if objects and ours != theirs:
            different[name] = (ours, theirs)
    assert different.keys() <= LOST
    assert count


@needs_corpus
@pytest.mark.parametrize("dialect", SDKS)
def test_objects_that_end_early_say_what_the_bytes_say(dialect: AnyName) -> None:
    count = 0
    for name, body in recordings(dialect):
        ends = event_ends(body, dialect)
        objects = SDKS[dialect](body)
        marks = body.count(b"data: [DONE]")  # the end mark has no object
        if name in LOST or len(ends) != len(objects) + marks or not 1 < len(objects) < 25:
            continue
        count += 1
        for taken in range(1, len(objects) + 1):
            ours = outcome(body[: ends[taken - 1]], dialect)
            assert ours == outcome(objects[:taken], dialect), (name, taken)
    assert count or dialect == "ollama"


@needs_corpus
@pytest.mark.parametrize("dialect", SDKS)
def test_the_first_object_says_its_protocol(dialect: str) -> None:
    for name, body in recordings(dialect):
        for event in SDKS[dialect](body)[:1]:
            assert dialect_of_event(event) == dialect, name
