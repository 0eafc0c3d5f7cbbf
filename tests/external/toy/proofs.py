"""Proofs that the toy additions work, each in a fresh interpreter of a tree that has them.

In: the name of a proof.  Out: exit code 0; an error with its traceback otherwise.

usage: proofs.py {dialect,vendor,gateway,keyword}    started by `tools/toy_additions.py`
"""

import asyncio
import importlib
import json
import sys
from collections.abc import Callable
from typing import Any, Final, cast, get_args

import httpx2
import pytest

import deltafold
from deltafold import Decoder, Message, ModelError, detect, fold, load_model, parse_request
from deltafold.contract.kinds import DeltaKind
from deltafold.contract.names import RequestProtocol
from deltafold.dialects import dialect_of
from deltafold.gateway import create_app
from deltafold.message.messages import ToolCallPart
from deltafold.streams.options import ChoicesOptions
from deltafold.testing import Recording, ReplayServer, answer


def _lines(*events: dict[str, object]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


HELLO: Final[dict[str, object]] = {"toy": "hello", "id": "r1", "model": "toy-1"}
CALL: Final[dict[str, object]] = {
    "toy": "call",
    "id": "c1",
    "name": "tide",
    "arguments": {"place": "Brest"},
}
TOY: Final[Any] = "toy"  # type checkers see the names of this tree
BODY: Final = _lines(
    HELLO,
    {"toy": "say", "text": "Let me "},
    {"toy": "say", "text": "s\u00e9e."},
    CALL,
    {"toy": "bye", "why": "called", "counts": {"in": 5, "out": 7}},
)
FAILED: Final = _lines(
    HELLO,
    {"toy": "say", "text": "Let"},
    {"toy": "fail", "error": {"code": "toys_are_sleeping", "message": "Come back at seven."}},
)


def dialect() -> None:
    """Detect, decode, render, parse and call the toy dialect."""
    assert detect(BODY).dialect == TOY, detect(BODY)
    _decode()
    _render()
    _call("toy/toy-1", "/toy/talk", Recording.of(BODY, content_type="application/x-ndjson"))
    assert importlib.import_module("deltafold.dialects.toy").__doc__
    assert TOY in get_args(RequestProtocol), RequestProtocol
    for name in ("ToyModel", "ToyConfig"):
        assert name in deltafold.__all__, name
        assert getattr(deltafold, name).__doc__, name


def _decode() -> None:
    whole = fold(BODY, TOY)
    call = whole.parts[1]
    assert whole.text == "Let me s\u00e9e.", whole
    assert isinstance(call, ToolCallPart)
    assert (call.tool_name, call.arguments) == ("tide", {"place": "Brest"}), call
    usage = whole.meta.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (5, 7), usage
    assert whole.meta.finish_reason == "tool_calls", whole.meta
    for cut in range(len(BODY) + 1):
        found = fold([BODY[:cut], BODY[cut:]], TOY, run_id=whole.run_id)
        assert found.parts == whole.parts, cut
        assert found.meta.usage == whole.meta.usage, cut
    with pytest.raises(ModelError, match=r"Come back at seven\.") as failed:
        fold(FAILED, TOY)
    partial = failed.value.partial_message
    assert (failed.value.code, partial and partial.text) == ("overloaded", "Let"), failed.value


def _render() -> None:
    row = dialect_of("toy")
    config = row.config_class(model_id="toy-1", temperature=0.5, max_tokens=9)
    said = fold(BODY, TOY)
    result = Message.tool_result("c1", "17:42")
    rendered = row.render([Message.user("When?"), said, result], [], config)
    assert (rendered.body["heat"], rendered.body["limit"]) == (0.5, 9), rendered.body
    parsed = parse_request(rendered.body, TOY)
    again = row.config_class.model_validate(parsed.config)
    assert again == config, again
    assert [message.role for message in parsed.messages] == ["user", "assistant", "tool"]
    assert row.render(parsed.messages, [], again).body == rendered.body


def _call(name: str, path: str, recording: Recording) -> None:
    """Call a vendor on the loopback interface, and stream its answer."""
    with (
        ReplayServer({path: recording}) as server,
        load_model(name, api_key="k", base_url=server.url) as model,
        model.stream_sync("When?") as stream,
    ):
        pieces = [delta.text for delta in stream if delta.kind == DeltaKind.TEXT]
        message = stream.final_message()
    assert pieces == ["Let me ", "s\u00e9e."], pieces
    assert message.text == "Let me s\u00e9e.", message
    assert json.loads(server.requests[0].body)["stream"] is True


def vendor() -> None:
    """Call a toy vendor of a known dialect."""
    call = ("c1", "tide", {"place": "Brest"})
    recording = answer("openai-chat", "Let me ", "s\u00e9e.", call)
    _call("toy-shop/toy-1", "/chat/completions", recording)


def gateway() -> None:
    """Let a client speak a protocol that the gateway did not know."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "When?"}], "stream": True}
    with ReplayServer({"/chat/completions": answer("openai-chat", "At ", "17:42.")}) as server:
        app = create_app({"m": load_model("openai-chat/gpt-5", api_key="k", base_url=server.url)})
        text = _ask(app, "/api/chat", asked)
    assert text == "At 17:42.", text


def _ask(app: Any, path: str, asked: object) -> str:  # noqa: ANN401 - any ASGI application
    async def ask() -> bytes:
        transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            response = await client.post(path, json=asked)
            response.raise_for_status()
            return response.content

    return fold(asyncio.run(ask()), "ollama").text


def keyword() -> None:
    """Decode with a keyword that `Decoder` did not have."""
    assert "one_tool" in ChoicesOptions.__annotations__
    assert "one_tool: call every tool by one name." in (Decoder.__doc__ or "")
    options = cast("ChoicesOptions", {"one_tool": True})
    body = answer("openai-chat", ("c1", "tide", {})).body
    for message in (fold(body, "openai-chat", **options), fold([body], "openai-chat", **options)):
        (call,) = message.parts
        assert isinstance(call, ToolCallPart)
        assert call.tool_name == "tool", call


PROOFS: Final[dict[str, Callable[[], None]]] = {
    "dialect": dialect,
    "vendor": vendor,
    "gateway": gateway,
    "keyword": keyword,
}

if __name__ == "__main__":
    PROOFS[sys.argv[1]]()
