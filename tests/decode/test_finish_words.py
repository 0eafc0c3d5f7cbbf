"""Every finish word of every protocol: whether a tool call of the answer may run.

In: the table of docs/concepts/cuts.md, and the types of the official clients.  Out: the calls that
run, in a message, in an agent and behind every encoder.

Law: the table has each literal of the clients' types, so that a new one fails here.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, get_args

import pytest

import event_stream as aws
from any_name import AnyName
from corpus import ROOT
from deltafold import Fold, Message, ModelError, encode_message, transcode
from deltafold.conversation import Agent
from deltafold.models.adapters import adapter_of
from deltafold.testing import Recording, ReplayTransport
from protocol_bodies import ANTHROPIC, CHAT, DONE, Wire, anthropic, chunk
from speakers import COHERE, GEMINI, INTERACTIONS, MISTRAL, RESPONSES, Call, saying, typed
from speakers import ending as ended

BEDROCK: Final = "bedrock-converse"
INVOKE: Final = "bedrock-invoke"
OLLAMA: Final = "ollama"
UNHEARD: Final = "unheard_of"

_PROTOCOLS: Final = {
    "Messages": ANTHROPIC,
    "InvokeModel": INVOKE,
    "Chat": CHAT,
    "Mistral": MISTRAL,
    "Responses": RESPONSES,
    "Gemini": GEMINI,
    "Interactions": INTERACTIONS,
    "Converse": BEDROCK,
    "Cohere": COHERE,
    "Ollama": OLLAMA,
}
_OUTCOMES: Final = {"may run": "runs", "may run, with a warning": "unsure", "may not run": "never"}
_PAGE: Final = ROOT / "docs/concepts/cuts.md"


def _table() -> dict[str, dict[str, str]]:
    """Return the outcome of each word of the documented table, by protocol."""
    found: dict[str, dict[str, str]] = {name: {UNHEARD: "unsure"} for name in _PROTOCOLS.values()}
    for line in _PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or cells[2] not in _OUTCOMES or cells[0] == "every protocol":
            continue
        assert "](https://" in cells[3], line
        for protocol in cells[0].split(", "):
            for word in re.findall(r"`(\w+)`", cells[1]):
                assert word not in found[_PROTOCOLS[protocol]], (protocol, word)
                found[_PROTOCOLS[protocol]][word] = _OUTCOMES[cells[2]]
    return found


TABLE: Final = _table()
WORDS: Final = [(name, word) for name, words in TABLE.items() for word in words]


def _literals(kind: object) -> set[str]:
    """Return the strings of a literal type, and those of the literals in a union."""
    found: set[str] = set()
    for one in get_args(kind):
        found |= {one} if isinstance(one, str) else _literals(one)
    return found


def _words_of_clients() -> Iterator[tuple[str, set[str]]]:
    import anthropic.types as of_anthropic  # noqa: PLC0415 - the clients take a second to import
    import botocore.session  # noqa: PLC0415
    from anthropic.types import beta  # noqa: PLC0415
    from cohere.types import ChatFinishReason  # noqa: PLC0415
    from google.genai import interactions, types  # noqa: PLC0415
    from mistralai.client import models  # noqa: PLC0415
    from openai.types.chat import chat_completion, chat_completion_chunk  # noqa: PLC0415
    from openai.types.responses import response, response_status  # noqa: PLC0415

    yield ANTHROPIC, _literals(of_anthropic.StopReason) | _literals(beta.BetaStopReason)
    for choice in (chat_completion.Choice, chat_completion_chunk.Choice):
        yield CHAT, _literals(choice.model_fields["finish_reason"].annotation)
    reason = response.IncompleteDetails.model_fields["reason"].annotation
    # `incomplete` says that the reason stands in the details.
    yield RESPONSES, _literals(reason) | _literals(response_status.ResponseStatus) - {"incomplete"}
    yield GEMINI, {one.value for one in types.FinishReason}
    yield INTERACTIONS, _literals(interactions.Interaction.model_fields["status"].annotation)
    yield MISTRAL, _literals(models.ChatCompletionChoiceFinishReason)
    yield MISTRAL, _literals(models.CompletionResponseStreamChoiceFinishReason)
    yield COHERE, _literals(ChatFinishReason)
    session: Any = botocore.session.get_session()  # pyright: ignore[reportUnknownMemberType]
    yield BEDROCK, {*session.get_service_model("bedrock-runtime").shape_for("StopReason").enum}


def test_the_table_has_every_word_of_the_clients() -> None:
    count = 0
    for protocol, words in _words_of_clients():
        assert words, protocol
        assert words - TABLE[protocol].keys() == set(), protocol
        count += len(words)
    assert count > 70, count


OF_WHOLE_BODIES: Final = frozenset({(RESPONSES, "in_progress"), (RESPONSES, "queued")})
"""Words that no stream ends with."""

ARGUMENTS: Final = {"whole": '{"n":1}', "half": '{"n":'}


def _anthropic_events(word: str, arguments: str) -> list[tuple[str, Wire]]:
    tool: Wire = {"type": "tool_use", "id": "c", "name": "pay", "input": {}}
    delta: Wire = {"type": "input_json_delta", "partial_json": arguments}
    return [
        ("message_start", {"message": {"id": "r", "model": "m", "role": "assistant"}}),
        ("content_block_start", {"index": 0, "content_block": tool}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": word}, "usage": {"output_tokens": 2}}),
        ("message_stop", {}),
    ]


def _converse_events(word: str, arguments: str) -> bytes:
    start = {"toolUse": {"toolUseId": "c", "name": "pay"}}
    delta = {"toolUse": {"input": arguments}}
    return b"".join(
        [
            aws.event("messageStart", {"role": "assistant"}),
            aws.event("contentBlockStart", {"contentBlockIndex": 0, "start": start}),
            aws.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}),
            aws.event("contentBlockStop", {"contentBlockIndex": 0}),
            aws.event("messageStop", {"stopReason": word}),
        ]
    )


def _response_of(word: str) -> Wire:
    """Return the members of a response that ended with a status, or for a reason."""
    response: Wire = {"id": "r", "object": "response", "model": "m"}
    if word in {"completed", "failed", "cancelled", "in_progress", "queued"}:
        error = {"code": "server_error", "message": "x"} if word == "failed" else None
        return {**response, "status": word, "error": error}
    return {**response, "status": "incomplete", "incomplete_details": {"reason": word}}


def streamed(dialect: str, word: str, arguments: str) -> bytes:
    """Write the stream of one call that ends with a word."""
    call = Call("c", "pay", (arguments,))
    writers: dict[str, Callable[[], bytes]] = {
        ANTHROPIC: lambda: b"".join(
            anthropic(kind, **members) for kind, members in _anthropic_events(word, arguments)
        ),
        INVOKE: lambda: b"".join(
            aws.chunk({"type": kind, **members})
            for kind, members in _anthropic_events(word, arguments)
        ),
        BEDROCK: lambda: _converse_events(word, arguments),
        CHAT: lambda: _chat_events(word, arguments),
        OLLAMA: lambda: _ollama_lines(word),
        RESPONSES: lambda: saying(RESPONSES, call) + _response_event(word),
    }
    write = writers.get(dialect)
    return saying(dialect, call) + ended(dialect, word) if write is None else write()


def _chat_events(word: str, arguments: str) -> bytes:
    function = {"name": "pay", "arguments": arguments}
    piece: Wire = {"index": 0, "id": "c", "type": "function", "function": function}
    return chunk({"tool_calls": [piece]}) + chunk({}, word) + DONE


def _ollama_lines(word: str) -> bytes:
    lines: list[Wire] = [
        {"model": "m", "message": _ollama_message(), "done": False},
        {"model": "m", "message": {"content": ""}, "done": True, "done_reason": word},
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _response_event(word: str) -> bytes:
    response = _response_of(word)
    status = str(response["status"])
    kind = status if status in {"completed", "failed", "incomplete"} else "completed"
    return typed(f"response.{kind}", response=response)


def _ollama_message() -> Wire:
    function = {"name": "pay", "arguments": {"n": 1}}
    return {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}


def whole(dialect: str, word: str) -> bytes:
    """Write the whole body of an answer with one call."""
    function = {"name": "pay", "arguments": ARGUMENTS["whole"]}
    call: Wire = {"id": "c", "type": "function", "function": function}
    tool: Wire = {"type": "tool_use", "id": "c", "name": "pay", "input": {"n": 1}}
    body: Wire
    match dialect:
        case "anthropic-messages" | "bedrock-invoke":
            body = {"type": "message", "id": "r", "model": "m", "role": "assistant"}
            body |= {"content": [tool], "stop_reason": word, "usage": {"output_tokens": 2}}
        case "bedrock-converse":
            use = {"toolUse": {"toolUseId": "c", "name": "pay", "input": {"n": 1}}}
            body = {"output": {"message": {"role": "assistant", "content": [use]}}}
            body |= {"stopReason": word, "usage": {"inputTokens": 1, "outputTokens": 2}}
        case "openai-chat" | "mistral":
            choice = {"index": 0, "message": {"tool_calls": [call]}, "finish_reason": word}
            body = {"object": "chat.completion", "id": "r", "model": "m", "choices": [choice]}
        case "openai-responses":
            item = {"type": "function_call", "id": "i", "call_id": "c", "status": "completed"}
            body = {**_response_of(word), "output": [{**item, **function}]}
        case "gemini":
            part = {"functionCall": {"name": "pay", "args": {"n": 1}}}
            candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": word}
            body = {"candidates": [candidate], "responseId": "r", "modelVersion": "m"}
        case "gemini-interactions":
            step = {"type": "function_call", "id": "c", "name": "pay", "arguments": {"n": 1}}
            body = {"id": "r", "object": "interaction", "model": "m", "status": word}
            body |= {"steps": [step]}
        case "cohere-chat":
            body = {"id": "r", "finish_reason": word}
            body |= {"message": {"role": "assistant", "tool_calls": [call]}}
        case _:
            body = {"model": "m", "message": _ollama_message(), "done": True, "done_reason": word}
    return json.dumps(body).encode()


def folded(dialect: AnyName, body: bytes) -> Message:
    """Fold a body; of a failed answer, return what it had."""
    fold = Fold(dialect)
    fold.feed(body)
    fold.close()
    return fold.snapshot()


@pytest.mark.parametrize(("dialect", "word"), WORDS)
def test_a_whole_call_runs_as_the_documented_table_says(dialect: str, word: str) -> None:
    expected = TABLE[dialect][word]
    bodies = [whole(dialect, word)]
    if (dialect, word) not in OF_WHOLE_BODIES:
        bodies.append(streamed(dialect, word, ARGUMENTS["whole"]))
    for body in bodies:
        message = folded(dialect, body)
        (call,) = message.tool_calls
        assert [*message.runnable_tool_calls] == ([] if expected == "never" else [call]), body
        assert [*message.not_runnable] == ([call.tool_call_id] if expected == "never" else [])
        codes = {warning["code"] for warning in message.meta.warnings}
        if not message.meta.is_api_error_message:
            assert ("calls_not_runnable" in codes) is (expected == "never"), codes
            assert ("calls_after_unsure_end" in codes) is (expected == "unsure"), codes


@pytest.mark.parametrize(
    ("dialect", "word"), [row for row in WORDS if row[0] not in {OLLAMA, GEMINI}]
)
def test_half_a_call_never_runs(dialect: str, word: str) -> None:
    message = folded(dialect, streamed(dialect, word, ARGUMENTS["half"]))
    assert message.runnable_tool_calls == []
    assert [*message.not_runnable] == ["c"]


def _ran(dialect: str, body: bytes, content_type: str | None) -> list[int]:
    """Return the arguments with which an agent ran the call of an answer."""
    ran: list[int] = []

    def pay(n: int) -> str:
        """Pay an amount."""
        ran.append(n)
        return "paid"

    adapter = adapter_of(dialect)
    assert adapter is not None
    transport = ReplayTransport([Recording.of(body, content_type=content_type)], flat_out=True)
    config: dict[str, Any] = {"model_id": "m"}
    model = adapter(config, client=transport, base_url="http://127.0.0.1:9", api_key="k")
    settings = {"loop": {"max_retries": 0, "on_error": "return", "max_turns": 1}}
    asyncio.run(Agent(settings, [pay], model=model).run("Pay."))
    return ran


@pytest.mark.parametrize(
    ("dialect", "word"), [row for row in WORDS if adapter_of(row[0]) is not None]
)
def test_an_agent_runs_the_calls_that_the_table_lets_run(dialect: str, word: str) -> None:
    expected = [] if TABLE[dialect][word] == "never" else [1]
    kinds = {BEDROCK: "application/vnd.amazon.eventstream", OLLAMA: "application/x-ndjson"}
    assert _ran(dialect, whole(dialect, word), "application/json") == expected
    if (dialect, word) not in OF_WHOLE_BODIES:
        body = streamed(dialect, word, ARGUMENTS["whole"])
        assert _ran(dialect, body, kinds.get(dialect)) == expected


TARGETS: Final = (CHAT, RESPONSES, ANTHROPIC, GEMINI, BEDROCK, OLLAMA)


@pytest.mark.parametrize(("dialect", "word"), [row for row in WORDS if row not in OF_WHOLE_BODIES])
@pytest.mark.parametrize("target", TARGETS)
def test_no_encoder_lets_a_call_run_that_the_table_forbids(
    dialect: AnyName, word: str, target: AnyName
) -> None:
    body = streamed(dialect, word, ARGUMENTS["whole"])
    allowed = TABLE[dialect][word] != "never"
    back = folded(target, transcode(body, dialect, target))
    assert bool(back.runnable_tool_calls) is allowed, back
    message = folded(dialect, body)
    if message.meta.is_api_error_message:
        return
    try:
        again = folded(target, encode_message(message, target).body)
    except ModelError:
        assert not allowed
        return
    assert bool(again.runnable_tool_calls) is allowed, again
