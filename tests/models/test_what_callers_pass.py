"""Mistakes in the arguments of a Model and of the folds raise at the call and name their place.

Each row is one argument, checked with several clients: deltafold refuses, not the client.
"""

import json
import math
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

import anthropic
import httpx
import openai
import pytest

import deltafold
from deltafold import (
    AnthropicModel,
    GeminiModel,
    Hooks,
    Message,
    Model,
    ModelConfig,
    OpenAIChatModel,
    RequestContext,
    ToolSpec,
)
from deltafold.dialects import parse_request
from deltafold.models import Timeouts
from deltafold.testing import Recording, ReplayTransport
from wires import ANTHROPIC, CHAT, chat

CIRCLE: Final[dict[str, object]] = {"name": "f"}
CIRCLE["again"] = [CIRCLE]
DEEP: Final[dict[str, object]] = {}
for _ in range(10_000):
    DEEP["a"] = dict(DEEP)


def asked(**arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - those of a Model
    """Ask through a transport, and return the body that arrived."""
    transport = ReplayTransport({"*": Recording.of_events(chat("Hi"))})
    model = OpenAIChatModel({"model_id": "m"}, client=transport, **arguments.pop("model", {}))
    messages = arguments.pop("messages", "Hello")
    model.send_message_sync(messages, **arguments)
    body: dict[str, Any] = json.loads(transport.requests[-1].body)
    return body


NO_JSON: Final[dict[str, tuple[Mapping[str, object], str]]] = {
    "nan": ({"a": [1, {"b": math.nan}]}, "extra_body.a[1].b is nan"),
    "infinity": ({"a": -math.inf}, "extra_body.a is -inf"),
    "a circle": ({"a": CIRCLE}, "extra_body.a.again[0] contains itself"),
    "a surrogate": ({"a": {"b": "x\ud83d"}}, "extra_body.a.b has a lone surrogate at character 1"),
    "a surrogate in a key": ({"a": {"\ud83d": 1}}, "extra_body.a has a key that has a lone"),
    "an object": ({"a": ({1},)}, "extra_body.a[0] is of type set"),
    "a key": ({"a": {b"b": 1}}, "extra_body.a has a key of type bytes"),
    "digits": ({"a": 10**5000}, "extra_body.a is an integer of too many digits"),
    "depth": ({"a": DEEP}, "lies deeper than 500 levels"),
}


def clients() -> dict[str, Callable[[], Model[Any]]]:
    chat_config = {"model_id": "m"}
    once: dict[str, Any] = {"api_key": "k", "max_retries": 0, "base_url": "http://127.0.0.1:9"}
    return {
        "httpx": lambda: OpenAIChatModel(
            chat_config, client=httpx.Client(), base_url="http://127.0.0.1:9", api_key="k"
        ),
        "openai": lambda: OpenAIChatModel(chat_config, client=openai.OpenAI(**once)),
        "anthropic": lambda: AnthropicModel(chat_config, client=anthropic.Anthropic(**once)),
        "gemini": lambda: GeminiModel(
            chat_config, client=httpx.Client(), base_url="http://127.0.0.1:9", api_key="k"
        ),
    }


@pytest.mark.parametrize("client", clients())
@pytest.mark.parametrize("row", NO_JSON)
def test_a_member_that_json_cannot_hold_raises_at_the_call(row: str, client: str) -> None:
    extra_body, told = NO_JSON[row]
    if client in {"openai", "anthropic"} and row in {"an object", "a key"}:
        return  # the SDK may know how to send it
    model = clients()[client]()
    with pytest.raises(ValueError, match=r"JSON cannot hold") as caught:
        model.stream_sync("Hello", extra_body=extra_body)
    assert told in str(caught.value)


def test_a_config_of_the_model_is_checked_at_the_call_too() -> None:
    model = OpenAIChatModel({"model_id": "m", "extra_body": {"a": math.nan}}, api_key="k")
    with pytest.raises(ValueError, match=r"^extra_body\.a is nan, which JSON cannot hold$"):
        model.stream_sync("Hello")
    with pytest.raises(ValueError, match=r"^body\.a\[0\] is nan"):
        model.stream_request_sync({"a": [math.nan]})


@pytest.mark.parametrize("model", [OpenAIChatModel, AnthropicModel, GeminiModel])
def test_a_schema_that_contains_itself_is_named(model: type[Model[Any]]) -> None:
    client = ReplayTransport({"*": Recording.of_events(CHAT)})
    tool = ToolSpec(name="f", parameter_schema={"type": "object", "properties": {"x": CIRCLE}})
    with pytest.raises(ValueError, match=r"^tool_specs\[0\]\.parameter_schema\..* contains itself"):
        model({"model_id": "m"}, client=client).stream_sync("Hello", [tool])


def test_what_a_hook_puts_into_the_body_is_the_callers_own() -> None:
    def spoil(request: RequestContext) -> None:
        request.body["a"] = {"b": math.nan}

    with pytest.raises(ValueError, match=r"^the request body\.a\.b is nan"):
        asked(model={"hooks": Hooks(before_request=spoil)})

    def add(request: RequestContext) -> None:
        request.body["a"] = 1

    assert asked(model={"hooks": Hooks(before_request=add)})["a"] == 1


@pytest.mark.parametrize(
    ("name", "meant"),
    [("tools", "tool_specs"), ("functions", "tool_specs"), ("system", "system_prompt")],
)
def test_an_argument_by_the_name_of_an_sdk_is_told_its_own(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"no field '{name}': pass {meant} to stream\(\)"):
        asked(**{name: []})
    with pytest.raises(ValueError, match=rf"no field '{name}': pass {meant}"):
        OpenAIChatModel({"model_id": "m", name: []})
    assert ModelConfig.model_validate({"model_id": "m", name: []}).model_extra == {name: []}


# Messages in the Chat form.

CALL: Final = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TALK: Final[list[dict[str, object]]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "content": "1"},
    {"role": "assistant", "content": "one"},
    {"role": "user", "content": [{"type": "text", "text": "and?"}]},
]


def test_messages_in_the_chat_form_are_read_as_parse_request_reads_them() -> None:
    parsed = parse_request({"model": "m", "messages": TALK}, "openai-chat")
    assert asked(messages=TALK)["messages"] == asked(messages=parsed.messages)["messages"]


def test_both_forms_may_stand_in_one_list() -> None:
    mixed = [TALK[0], Message.user("hi"), *TALK[2:4], Message.user("and?").to_dict(), TALK[4]]
    said = [(one["role"], one.get("content")) for one in asked(messages=mixed)["messages"]]
    assert said == [
        ("system", "Be brief."),
        ("user", "hi"),
        ("assistant", None),
        ("tool", "1"),
        ("user", "and?"),
        ("assistant", "one"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"role": "user", "content": [{"text": "hi"}]},
        {"role": "user", "content": 5},
        {"role": "user", "content": "hi", "cache": True},
    ],
    ids=["responses", "bedrock", "a number", "an unknown member"],
)
def test_a_message_of_another_form_is_refused_in_one_sentence(message: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"messages\[1:2\]") as caught:
        asked(messages=[Message.user("hi"), message])
    assert "deltafold.parse_request(body, dialect)" in str(caught.value)
    assert "\n" not in str(caught.value)


# Bodies.


@pytest.mark.parametrize("bodies", [CHAT, bytearray(CHAT), memoryview(CHAT), "text"])
def test_one_body_is_no_list_of_bodies(bodies: Any) -> None:  # noqa: ANN401 - the mistake
    with pytest.raises(TypeError, match=r"^bodies must be a list .*; fold\(\) folds one$"):
        deltafold.fold_many(bodies, "openai-chat")


@pytest.mark.parametrize("wrong", [5, None, [CHAT]])
def test_what_is_no_body_is_named(wrong: Any) -> None:  # noqa: ANN401 - the mistake
    with pytest.raises(TypeError, match=r"^bodies\[1\] must be bytes, .* or str, not"):
        deltafold.fold_many([CHAT, wrong], "openai-chat")
    with pytest.raises(TypeError, match=r"^body must be bytes, .* or str, not"):
        deltafold.decode_response(wrong, "openai-chat")
    with pytest.raises(TypeError, match=r"^first_bytes must be bytes, .* or str, not"):
        deltafold.detect(wrong)


# Limits.


@pytest.mark.parametrize("limit", ["connect", "first_byte", "idle", "total"])
@pytest.mark.parametrize("seconds", [math.inf, -math.inf, math.nan, 1e300, 3e6, 0, -1])
def test_a_limit_that_no_clock_can_hold_is_refused(limit: str, seconds: float) -> None:
    with pytest.raises(ValueError, match=rf"^{limit} must be .* or None for no limit, not "):
        Timeouts(**{limit: seconds})


@pytest.mark.parametrize("limit", ["connect", "first_byte", "idle", "total"])
def test_the_longest_limit_is_taken_by_a_socket(limit: str) -> None:
    timeouts = Timeouts(**{limit: 2_000_000.0})
    with socket.socket() as made:
        made.settimeout(getattr(timeouts, limit))


def test_the_first_message_of_anthropic_is_read_too() -> None:
    transport = ReplayTransport({"*": Recording.of_events(ANTHROPIC)})
    model = AnthropicModel({"model_id": "m", "max_tokens": 1}, client=transport)
    model.send_message_sync([{"role": "user", "content": "hi"}])
    body = json.loads(transport.requests[-1].body)
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
