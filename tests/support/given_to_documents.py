"""Names that the examples of some pages use without defining them: the text introduces them.

In: a page.  Out: the names, beside those of `documentation.surround`; the answers of the provider
to the first requests of the page, where it shows failures or counts of its own.

Laws: a page without a row here defines everything itself.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from operator import methodcaller
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import deltafold
from any_provider import of_model
from corpus import FIXTURES
from deltafold import ThinkingPart, conversation
from deltafold.testing import Recording, answer
from next_turns import messages as next_messages

Names = dict[str, Any]


class Response:
    """A response of an HTTP client, as far as the examples read it."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def iter_bytes(self) -> list[bytes]:
        """Return the body in pieces."""
        return [self.body[at : at + 1000] for at in range(0, len(self.body), 1000)]


def _conversation(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - the signature of a row
    model = deltafold.load_model("openai/gpt-5-mini")
    client = conversation.ModelClient(model)
    names |= {
        **{name: getattr(conversation, name) for name in conversation.__all__},
        "model": model,
        "router": conversation.ProviderRouter(
            {"plan": conversation.Route(client, client.invocation)}
        ),
        "strategy": "plan",
        "tools": conversation.ToolExecutor([]),
        "question": "When is high tide?",
    }


def _models(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - as above
    async def send_to_client(data: bytes) -> None:
        names.setdefault("sent", []).append(data)

    names["send_to_client"] = send_to_client


def _upstream() -> bytes:
    """Return an answer of the Responses API with encrypted reasoning."""
    data: Names = {"id": "rs_1", "type": "reasoning", "encrypted_content": "gAAAAAB", "summary": []}
    state: Names = {"dialect": "openai-responses", "modelId": "m", "data": data}
    part = ThinkingPart(text="", redacted=True, provider_state=state)
    encoder = deltafold.Encoder("openai-responses")
    deltas = deltafold.message_deltas(deltafold.Message.assistant(part, "Hi"))
    return b"".join(map(encoder.feed, deltas)) + encoder.close()


def _next_request(body: bytes) -> Names:
    """Return the next request of a client of the Messages API, with the answer in its history."""
    events = [json.loads(line[6:]) for line in body.splitlines() if line[:5] == b"data:"]
    return next_messages(events)


def send(*sent: object) -> int:
    """Stand for the function that sends bytes to a client."""
    return len(sent)


def _transcoding(names: Names, stack: ExitStack) -> None:
    recording = names["recording"]
    try:
        deltafold.fold(recording[:100], "openai-chat")
    except deltafold.ModelError as error:
        names["error"] = error
    names |= {
        "message": deltafold.fold(recording, "openai-chat"),
        "response": Response(recording),
        "stream": stack.enter_context(deltafold.stream([recording], "openai-chat")),
        "upstream": _upstream(),
        "next_request": _next_request,
        "send": send,
    }


def _inspect(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - as above
    # A function of notebooks; test_notebook.py and tests/external/browser have the real display.
    names["display"] = methodcaller("_repr_html_")


def _scale(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - as above
    bodies = [names["body"], answer("gemini", "At ", "17:42.").body]
    arrow: Any = pa  # pyarrow has no types
    files: Any = import_module("pyarrow.parquet")
    files.write_table(arrow.table({"body": bodies}), "mixed.parquet")
    lines = [json.dumps({"body": body.decode()}) for body in bodies]
    Path("mixed.jsonl").write_text("\n".join(lines))


def _caching(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - as above
    made = answer("anthropic-messages", "At ", "17:42.", input_tokens=14)
    read = b'"input_tokens":14,"cache_creation_input_tokens":0,"cache_read_input_tokens":1850,'
    names["server"].queue(Recording.of_events(made.body.replace(b'"input_tokens":14,', read)))


def _cost(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - as above
    made = answer("openai-responses", "At ", "17:42.")
    searched = FIXTURES / "openai-responses" / "web-search" / "wire.sse"
    names["server"].queue(of_model(made, "openai-responses", "gpt-5.2"), Recording.read(searched))


def _errors(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - as above
    refusal = {"message": "Rate limit reached for gpt-5.6-terra", "code": "rate_limit_exceeded"}
    made = answer("openai-responses", "At ", "17:42.")
    names["server"].queue(
        Recording.error(429, {"error": refusal}, {"retry-after": "20"}),
        made.stopping("cut", after=made.body.index(b'"17:42."')),
    )


def _fallback(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - as above
    refusal = {"message": "Our servers are currently overloaded", "code": "server_is_overloaded"}
    names["server"].queue(Recording.error(503, {"error": refusal}, {"x-request-id": "req_7"}))


def _structured_output(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - as above
    whole = ('{"pla', 'ce": "B', 'rest", "ho', 'ur": 17}')
    said = (whole, whole, ('{"place": "Brest", ', '"hour": "late"}'))
    names["server"].queue(*(answer("openai-responses", *pieces) for pieces in said))


_TIDES: Final = '''
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("tides")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def tide(place: str) -> str:
    """Look up the next high tide at a place."""
    return f"17:42 at {place}"


@server.tool()
def book(place: str) -> str:
    """Book a berth at a place."""
    return f"booked at {place}"


server.run()
'''


def _mcp(names: Names, stack: ExitStack) -> None:  # noqa: ARG001 - as above
    Path("tides.py").write_text(_TIDES)


GIVEN: Final[dict[str, Callable[[Names, ExitStack], None]]] = {
    "docs/conversation.md": _conversation,
    "docs/how-to/caching.md": _caching,
    "docs/how-to/cost.md": _cost,
    "docs/how-to/errors.md": _errors,
    "docs/how-to/fallback.md": _fallback,
    "docs/how-to/mcp.md": _mcp,
    "docs/how-to/structured-output.md": _structured_output,
    "docs/inspect.md": _inspect,
    "docs/models.md": _models,
    "docs/scale.md": _scale,
    "docs/transcoding.md": _transcoding,
}


def give(page: str, names: Names, stack: ExitStack) -> None:
    """Add the names of a page, and queue its answers."""
    if page in GIVEN:
        GIVEN[page](names, stack)


TYPES: Final = {
    "recording": "bytes",
    "body": "bytes",
    "messages": "typing.Any",
    "tools": "typing.Any",
    "url": "str",
}
"""Types of the names that `documentation.surround` gives, for a checker of the examples."""

TYPES_OF_PAGES: Final[dict[str, dict[str, str]]] = {
    "docs/conversation.md": {
        "model": "deltafold.Model[typing.Any]",
        "router": "conversation.ProviderRouter",
        "strategy": "str",
        "tools": "conversation.ToolExecutor",
        "question": "str",
    },
    "docs/inspect.md": {"display": "typing.Any"},
    "docs/models.md": {
        "send_to_client": "typing.Callable[[object], typing.Awaitable[object]]",
    },
    "docs/transcoding.md": {
        "error": "deltafold.ModelError",
        "message": "deltafold.Message",
        "next_request": "typing.Callable[[bytes], dict[str, object]]",
        "response": "typing.Any",
        "send": "typing.Callable[..., object]",
        "stream": "deltafold.DeltaStream",
        "upstream": "bytes",
    },
}
