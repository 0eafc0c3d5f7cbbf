"""The ways from the bytes of a request to those of another protocol, each in its own process.

    ways.py WAY     print the CPU of the way, in one line of JSON: milliseconds for each size

In: the name of a way.  Out: "cold" for sessions that the process has not seen, "later" for the same
sessions one turn later.

Laws: a figure is the minimum of five sessions, each with texts of its own. Other sessions with the
same tools go before. Every translation is read, and must have all texts. The garbage collector
skips what was there before the call.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import httpx2
import orjson
from agent_sessions import MAX_TOKENS, MODEL, Session

from deltafold import load_model, parse_request, translate_request
from deltafold.dialects import dialect_of, migrate_config
from deltafold.gateway import create_app

if TYPE_CHECKING:
    from deltafold.contract.names import RequestProtocol

# litellm reads its table of models from the package, not from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

TURNS: Final = (1, 10, 100, 300)
SESSIONS: Final = 5
WARMING: Final = 20
"""Sessions that go before: the first calls of the gateway take a fifth more than later ones."""
CHAT: Final = "openai-chat"
MESSAGES: Final = "anthropic-messages"
RESPONSES: Final = "openai-responses"
CLAUDE: Final = "claude-sonnet-4-5"
MODELS: Final = {CHAT: MODEL, MESSAGES: CLAUDE, "gemini": "gemini-3-pro"}

Translate: TypeAlias = Callable[[bytes], bytes]
"""Turns the body of a client into the body for the provider."""


def ours(source: "RequestProtocol", target: "RequestProtocol") -> Translate:
    """`translate_request`."""
    return lambda body: translate_request(body, source, target, model_id=MODELS[target])


def rules_alone() -> Translate:
    """The parser and the renderer for the whole request."""
    row = dialect_of(MESSAGES)

    def translate(body: bytes) -> bytes:
        parsed = parse_request(json.loads(body), CHAT)
        config = migrate_config(parsed, MESSAGES, model_id=CLAUDE).config
        rendered = row.render(parsed.messages, parsed.tools, config, stream=bool(parsed.stream))
        return json.dumps(rendered.body).encode()

    return translate


def _answer() -> bytes:
    """Return the shortest stream of the Messages API."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, object] = {"id": "m", "type": "message", "role": "assistant"}
    message |= {"model": CLAUDE, "content": [], "stop_reason": None, "usage": usage}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()


def gateway() -> Translate:
    """A whole call of the gateway's application; only the provider and the sockets are missing."""
    sent: list[bytes] = []
    headers_of_stream = {"content-type": "text/event-stream"}
    content = _answer()

    def provider(request: httpx2.Request) -> httpx2.Response:
        sent[:] = [request.content]
        return httpx2.Response(200, content=content, headers=headers_of_stream)

    upstream = httpx2.AsyncClient(transport=httpx2.MockTransport(provider))
    model = load_model(f"anthropic/{CLAUDE}", api_key="unused", client=upstream)
    application = httpx2.ASGITransport(create_app({MODEL: model}))
    client = httpx2.AsyncClient(transport=application, base_url="http://127.0.0.1")
    loop = asyncio.new_event_loop()
    headers = {"content-type": "application/json"}

    def translate(body: bytes) -> bytes:
        called = client.post("/v1/chat/completions", content=body, headers=headers)
        response = loop.run_until_complete(called)
        assert response.status_code == 200, response.text
        return sent[0]

    return translate


def litellm() -> Translate:
    """The two functions of litellm's adapter of Anthropic, with the settings of the request."""
    module: Any = import_module("litellm.llms.anthropic.chat.transformation")

    def translate(body: bytes) -> bytes:
        given = json.loads(body)
        config = module.AnthropicConfig()
        settings = {"tools": given["tools"], "max_tokens": MAX_TOKENS, "stream": True}
        mapped = config.map_openai_params(settings, {}, CLAUDE, False)  # noqa: FBT003 - its API
        request = config.transform_request(CLAUDE, given["messages"], mapped, {}, {})
        return json.dumps(request).encode()

    return translate


def rosetta() -> Translate:
    """The `convert` of llm-rosetta."""
    convert: Any = import_module("llm_rosetta").convert
    return lambda body: json.dumps(convert(json.loads(body), "anthropic", "openai_chat")).encode()


def linguafranca() -> Translate:
    """The `convert_request` of linguafranca."""
    module: Any = import_module("linguafranca")
    names = module.FormatName
    convert = partial(
        module.convert_request,
        source_format=names.OPENAI_CHAT_COMPLETIONS,
        target_format=names.ANTHROPIC_MESSAGES,
    )
    return lambda body: json.dumps(convert(json.loads(body)).value).encode()


def parsed_and_written() -> Translate:
    """The floor: orjson reads the body, and writes the same."""
    return lambda body: orjson.dumps(orjson.loads(body))


class Way(NamedTuple):
    """A way, the protocol of its clients, and whether each session has tools of its own."""

    make: Callable[[], Translate]
    source: "RequestProtocol" = CHAT
    own_tools: bool = False


def _pair(source: "RequestProtocol", target: "RequestProtocol") -> Way:
    return Way(partial(ours, source, target), source)


WAYS: Final = {
    "chat-messages": _pair(CHAT, MESSAGES),
    "chat-messages-new-tools": Way(partial(ours, CHAT, MESSAGES), own_tools=True),
    "chat-chat": _pair(CHAT, CHAT),
    "chat-gemini": _pair(CHAT, "gemini"),
    "messages-chat": _pair(MESSAGES, CHAT),
    "responses-messages": _pair(RESPONSES, MESSAGES),
    "rules": Way(rules_alone),
    "gateway": Way(gateway),
    "litellm": Way(litellm),
    "llm-rosetta": Way(rosetta),
    "martian-linguafranca": Way(linguafranca),
    "orjson": Way(parsed_and_written),
}


def milliseconds(translate: Translate, session: Session, source: "RequestProtocol") -> float:
    """Return the CPU of one translation."""
    body = session.body(source)
    # As `timeit` does: a collection in a call would be that of the objects of many calls, and one
    # before it would leave the caches of the CPU without the code of a server that is running.
    gc.disable()
    begun = time.process_time()
    translated = translate(body)
    spent = time.process_time() - begun
    gc.enable()
    session.check(translated)
    return spent * 1e3


def measured(way: Way) -> dict[str, list[float]]:
    """Return the figures of a way for each size."""
    translate = way.make()
    for number in range(WARMING):
        milliseconds(translate, Session(number, 1), way.source)
    found: dict[str, list[float]] = {"cold": [], "later": []}
    for turns in TURNS:
        numbers = range(1000 * turns, 1000 * turns + SESSIONS)
        for name, more in (("cold", 0), ("later", 1)):
            sessions = (Session(number, turns + more, way.own_tools) for number in numbers)
            times = [milliseconds(translate, session, way.source) for session in sessions]
            found[name].append(min(times))
    return found


if __name__ == "__main__":
    print(json.dumps(measured(WAYS[sys.argv[1]])))
