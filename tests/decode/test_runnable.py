"""When a tool call may be run: a table of (dialect, ending, state of the call).

A call whose arguments are one whole JSON value is whole whatever the ending, unless the provider
said that more would come.  A call for which no argument text came is whole with `{}` only after
its own end event, or after an ending that marks the message as finished; behind its end event, a
token limit or a stop string may still have cut it.  A call whose
text ends inside a value is never whole.  A whole call is runnable unless the ending forbids it: a
refusal, a filter, an error, a cut.

Sources of the endings: the enumerations of the providers' API references, as
docs/protocols/decoding.md#finish-reasons lists them; `unheard_of` stands for words to come.
`test_finish_words.py` walks every finish word of the table in docs/concepts/cuts.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import pytest

import event_stream as aws
from any_name import AnyName
from deltafold import Fold, ToolCallPart
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    Wire,
    anthropic,
    block,
    call_chunk,
    chunk,
    event,
    finish,
    message_start,
    said,
)
from speakers import (
    COHERE,
    GEMINI,
    INTERACTIONS,
    MISTRAL,
    RESPONSES,
    Call,
    gemini,
    interactions,
    mistral,
    saying,
    typed,
)

BEDROCK: Final = "bedrock-converse"
INVOKE: Final = "bedrock-invoke"
OLLAMA: Final = "ollama"

Begin: TypeAlias = Callable[[tuple[str, ...], bool], bytes]

STATES: Final[dict[str, tuple[str, ...]]] = {
    "nothing": (),
    "placeholder": ("{}",),
    "half": ('{"a":',),
    "whole": ('{"a":', "1}"),
}


COUNTS: Final[Wire] = {"prompt_tokens": 9, "completion_tokens": 3}


@dataclass(frozen=True)
class Ending:
    """Ending of a stream, and whether it marks the message as finished."""

    wire: bytes
    finished: bool


def _chat(fragments: tuple[str, ...], closed: bool) -> bytes:
    assert not closed, "Chat has no end event of a call"
    events = [call_chunk("", name="f", id="c", index=0)]
    events += [call_chunk(fragment, index=0) for fragment in fragments]
    return b"".join(events)


def _mistral(fragments: tuple[str, ...], closed: bool) -> bytes:
    assert not closed, "Mistral has no end event of a call"
    return saying(MISTRAL, Call("c", "f", fragments))


def _anthropic_events(fragments: tuple[str, ...], closed: bool) -> list[tuple[str, Wire]]:
    tool: Wire = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": text} for text in ("", *fragments)]
    events: list[tuple[str, Wire]] = [
        ("message_start", {"message": {"id": "m", "model": "m", "content": []}}),
        ("content_block_start", {"index": 0, "content_block": tool}),
        *(("content_block_delta", {"index": 0, "delta": delta}) for delta in deltas),
    ]
    return [*events, ("content_block_stop", {"index": 0})] if closed else events


def _anthropic(fragments: tuple[str, ...], closed: bool) -> bytes:
    events = _anthropic_events(fragments, closed)
    return b"".join(anthropic(kind, **members) for kind, members in events)


def _invoke(fragments: tuple[str, ...], closed: bool) -> bytes:
    events = _anthropic_events(fragments, closed)
    return b"".join(aws.chunk({"type": kind, **members}) for kind, members in events)


def _bedrock(fragments: tuple[str, ...], closed: bool) -> bytes:
    start = {"toolUse": {"toolUseId": "c", "name": "f"}}
    events = [aws.event("contentBlockStart", {"contentBlockIndex": 0, "start": start})]
    for text in fragments:
        delta = {"toolUse": {"input": text}}
        events.append(aws.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}))
    if closed:
        events.append(aws.event("contentBlockStop", {"contentBlockIndex": 0}))
    return b"".join(events)


def _spoken(dialect: str) -> Begin:
    def begin(fragments: tuple[str, ...], closed: bool) -> bytes:
        return saying(dialect, Call("c", "f", fragments, stops=closed))

    return begin


def _gemini(fragments: tuple[str, ...], closed: bool) -> bytes:
    """Stream arguments as values under paths: a half value is a string that is not closed."""
    text = "".join(fragments)
    values: list[Wire] = []
    if text == '{"a":':
        values = [{"jsonPath": "$.a", "stringValue": "x", "willContinue": True}]
    elif text == '{"a":1}':
        values = [{"jsonPath": "$.a", "numberValue": 1}]
    events = [gemini({"functionCall": {"name": "f", "willContinue": True}})]
    events += [
        gemini({"functionCall": {"partialArgs": [value], "willContinue": True}}) for value in values
    ]
    if closed:
        events.append(gemini({"functionCall": {}}))
    return b"".join(events)


def _endings_of_chat(done: bytes = DONE) -> dict[str, Ending]:
    words = ["length", "model_length", "model_context_window_exceeded", "content_filter"]
    words += ["sensitive", "error", "network_error", "unheard_of", "insufficient_system_resource"]
    finished = ("stop", "eos", "tool_calls", "function_call")
    endings = {word: Ending(finish(word) + done, word in finished) for word in (*finished, *words)}
    error = event({"error": {"message": "busy", "code": 503}})
    return endings | {
        "a named stop string": Ending(
            b'data: {"choices":[{"delta":{},"finish_reason":"stop","stop_reason":"###"}]}\n\n'
            + DONE,
            finished=True,
        ),
        "the end marker alone": Ending(DONE, finished=False),
        "usage, then the end marker": Ending(chunk({}, usage=COUNTS) + DONE, finished=True),
        "the end of the body": Ending(b"", finished=False),
        "an error event": Ending(error, finished=False),
        "a reason, then the end of the body": Ending(finish("stop"), finished=True),
        "an error beside choices": Ending(
            chunk({"content": ""}, "error", error={"message": "busy"}) + DONE, finished=False
        ),
    }


ANTHROPIC_WORDS: Final = {
    "end_turn": True,
    "stop_sequence": True,
    "tool_use": True,
    "max_tokens": False,
    "model_context_window_exceeded": False,
    "refusal": False,
    "pause_turn": False,
    "compaction": False,
    "unheard_of": False,
}


def _anthropic_ending(word: str) -> list[tuple[str, Wire]]:
    return [("message_delta", {"delta": {"stop_reason": word}}), ("message_stop", {})]


def _endings_of_anthropic() -> dict[str, Ending]:
    def wire(events: list[tuple[str, Wire]]) -> bytes:
        return b"".join(anthropic(kind, **members) for kind, members in events)

    error = anthropic("error", error={"type": "overloaded_error", "message": "busy"})
    return {
        **{
            word: Ending(wire(_anthropic_ending(word)), finished)
            for word, finished in ANTHROPIC_WORDS.items()
        },
        "a named stop string": Ending(
            anthropic(
                "message_delta", delta={"stop_reason": "stop_sequence", "stop_sequence": "###"}
            )
            + anthropic("message_stop"),
            finished=True,
        ),
        "message_stop alone": Ending(anthropic("message_stop"), finished=False),
        "the end of the body": Ending(b"", finished=False),
        "an error event": Ending(error, finished=False),
        "another message": Ending(
            message_start("other") + wire(_anthropic_ending("end_turn")), finished=False
        ),
        "another block of that index": Ending(
            block(0, {"type": "text", "text": "x"}) + wire(_anthropic_ending("end_turn")),
            finished=False,
        ),
    }


def _endings_of_invoke() -> dict[str, Ending]:
    return {
        word: Ending(
            b"".join(aws.chunk({"type": kind, **more}) for kind, more in _anthropic_ending(word)),
            finished,
        )
        for word, finished in ANTHROPIC_WORDS.items()
    } | {"an exception": Ending(aws.exception("throttlingException", {}), finished=False)}


def _endings_of_bedrock() -> dict[str, Ending]:
    words = {"end_turn": True, "stop_sequence": True, "tool_use": True}
    words |= dict.fromkeys(
        (
            "max_tokens",
            "model_context_window_exceeded",
            "guardrail_intervened",
            "content_filtered",
            "malformed_model_output",
            "malformed_tool_use",
            "unheard_of",
        ),
        False,
    )
    return {
        word: Ending(aws.event("messageStop", {"stopReason": word}), finished)
        for word, finished in words.items()
    } | {
        "the end of the body": Ending(b"", finished=False),
        "an exception": Ending(aws.exception("throttlingException", {}), finished=False),
    }


def _endings_of_cohere() -> dict[str, Ending]:
    words = {"COMPLETE": True, "STOP_SEQUENCE": True, "TOOL_CALL": True}
    others = ("MAX_TOKENS", "ERROR_LIMIT", "ERROR_TOXIC", "ERROR", "TIMEOUT", "USER_CANCEL")
    words |= dict.fromkeys((*others, "UNHEARD_OF"), False)
    return {
        word: Ending(typed("message-end", delta={"finish_reason": word}), finished)
        for word, finished in words.items()
    } | {
        "an end event without a reason": Ending(typed("message-end", delta={}), finished=False),
        "the end of the body": Ending(b"", finished=False),
    }


def _endings_of_gemini() -> dict[str, Ending]:
    # The call that is open said that more would come, so that no word finishes it.
    words = ("STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "CONTINUATION", "UNHEARD")
    return {word: Ending(gemini(finishReason=word), finished=False) for word in words} | {
        "the end of the body": Ending(b"", finished=False),
        "another call": Ending(
            gemini({"functionCall": {"name": "g"}}) + gemini(finishReason="STOP"), finished=False
        ),
    }


def _endings_of_interactions() -> dict[str, Ending]:
    words = {"completed": True, "requires_action": True}
    others = ("incomplete", "budget_exceeded", "failed", "cancelled", "unheard_of")
    words |= dict.fromkeys(others, False)
    return {
        word: Ending(
            interactions("interaction.completed", interaction={"id": "r", "status": word}), finished
        )
        for word, finished in words.items()
    } | {"the end of the body": Ending(b"", finished=False)}


def _endings_of_responses() -> dict[str, Ending]:
    def response(status: str, **members: object) -> bytes:
        return typed(f"response.{status}", response={"id": "r", "status": status, **members})

    reasons = ("max_output_tokens", "content_filter", "max_messages", "steered", "unheard_of")
    return {
        "completed": Ending(response("completed"), finished=True),
        **{
            f"incomplete: {reason}": Ending(
                response("incomplete", incomplete_details={"reason": reason}), finished=False
            )
            for reason in reasons
        },
        "failed": Ending(response("failed", error={"message": "x"}), finished=False),
        "an error event": Ending(typed("error", message="busy"), finished=False),
        "the end of the body": Ending(b"", finished=False),
    }


BEGINNINGS: Final[dict[str, Begin]] = {
    ANTHROPIC: _anthropic,
    BEDROCK: _bedrock,
    INVOKE: _invoke,
    COHERE: _spoken(COHERE),
    GEMINI: _gemini,
    INTERACTIONS: _spoken(INTERACTIONS),
    MISTRAL: _mistral,
    CHAT: _chat,
    RESPONSES: _spoken(RESPONSES),
}
ENDINGS: Final[dict[str, dict[str, Ending]]] = {
    ANTHROPIC: _endings_of_anthropic(),
    BEDROCK: _endings_of_bedrock(),
    INVOKE: _endings_of_invoke(),
    COHERE: _endings_of_cohere(),
    GEMINI: _endings_of_gemini(),
    INTERACTIONS: _endings_of_interactions(),
    MISTRAL: {
        word: Ending(mistral({"content": ""}, word) + DONE, word in {"stop", "tool_calls"})
        for word in ("stop", "tool_calls", "length", "model_length", "error", "unheard_of")
    },
    CHAT: _endings_of_chat(),
    RESPONSES: _endings_of_responses(),
}
WITHOUT_END_EVENT: Final = frozenset({CHAT, MISTRAL})
CUTTING: Final = frozenset(
    {
        "max_tokens",
        "model_context_window_exceeded",
        "MAX_TOKENS",
        "ERROR_LIMIT",
        "incomplete",
        "budget_exceeded",
        "incomplete: max_output_tokens",
        "a named stop string",
    }
)
"""Endings that may have cut a last call without arguments, whatever its end event says."""
ABANDONING: Final = frozenset({"another message"})
"""Endings after which not even a whole call is runnable: its message was given up."""


FORBIDDING: Final = frozenset(
    {
        "the end of the body",
        "the end marker alone",
        "message_stop alone",
        "an end event without a reason",
        "an error event",
        "an error beside choices",
        "an exception",
        "failed",
        "cancelled",
        "content_filter",
        "incomplete: content_filter",
        "sensitive",
        "error",
        "network_error",
        "insufficient_system_resource",
        "refusal",
        "guardrail_intervened",
        "content_filtered",
        "malformed_model_output",
        "malformed_tool_use",
        "ERROR_TOXIC",
        "ERROR",
        "TIMEOUT",
        "USER_CANCEL",
        "SAFETY",
        "MALFORMED_FUNCTION_CALL",
    }
)
"""Endings after which no call runs."""


def first_call(dialect: AnyName, body: bytes, *, is_forbidden: bool = False) -> ToolCallPart:
    """Fold a body and return the first call of its message, failed or not."""
    fold = Fold(dialect)
    fold.feed(body)
    fold.close()
    message = fold.snapshot()
    call = message.tool_calls[0]
    runs = call in message.runnable_tool_calls
    assert runs is (call.arguments is not None and not is_forbidden)
    assert (call.tool_call_id in message.not_runnable) is not runs
    return call


def rows() -> Iterator[tuple[str, str, str, bool]]:
    for dialect, endings in ENDINGS.items():
        for name in endings:
            for state in STATES:
                # The end event of Gemini closes an unfinished string too: Gemini has no row here.
                never_closed = dialect in WITHOUT_END_EVENT or (dialect, state) == (GEMINI, "half")
                for closed in (False,) if never_closed else (False, True):
                    yield dialect, name, state, closed


@pytest.mark.parametrize(("dialect", "name", "state", "closed"), [*rows()])
def test_a_call_is_runnable_as_the_table_says(
    dialect: str, name: str, state: str, closed: bool
) -> None:
    ending = ENDINGS[dialect][name]
    fragments = STATES[state]
    body = BEGINNINGS[dialect](fragments, closed) + ending.wire
    call = first_call(dialect, body, is_forbidden=name in FORBIDDING)
    finished = closed or ending.finished
    if state == "half":
        is_whole = False
    elif state == "whole":
        more_to_come = dialect == GEMINI and not closed
        is_whole = closed or not (more_to_come or name in ABANDONING)
    elif dialect == RESPONSES and state == "nothing" and not closed:
        is_whole = False  # the final object should have confirmed it
    else:
        is_whole = finished and name not in CUTTING
    arguments = {"a": 1} if state == "whole" else {}
    assert call.arguments == (arguments if is_whole else None), call
    assert call.incomplete is not is_whole


def test_every_dialect_that_streams_calls_is_in_the_table() -> None:
    from deltafold import dialect_names  # noqa: PLC0415 - beside its one use

    assert {*BEGINNINGS, OLLAMA} == {*dialect_names()}


# Calls that come whole.


@pytest.mark.parametrize("function", [{"name": "f"}, {"name": "f", "arguments": {}}])
def test_a_call_of_ollama_comes_whole(function: Wire) -> None:
    call = {"message": {"tool_calls": [{"function": function}]}, "done": False}
    end: Wire = {"message": {"content": ""}, "done": True, "done_reason": "stop"}
    wire = b"".join(event(line).removeprefix(b"data: ") for line in (call, end))
    assert first_call(OLLAMA, wire).arguments == {}


@pytest.mark.parametrize(
    ("reason", "runnable"), [("tool_use", True), ("max_tokens", False), ("refusal", False)]
)
def test_the_last_call_of_a_whole_anthropic_body_was_cut_where_its_stop_reason_says_so(
    reason: str, runnable: bool
) -> None:
    tools: list[Wire] = [
        {"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}} for n in range(2)
    ]
    body: Wire = {"type": "message", "id": "m", "model": "m", "content": tools}
    fold = Fold(ANTHROPIC)
    fold.feed(event(body | {"stop_reason": reason}).removeprefix(b"data: "))
    fold.close()
    first, last = fold.snapshot().tool_calls
    assert (first.arguments, last.arguments) == ({}, {} if runnable else None)


@pytest.mark.parametrize(
    ("reason", "runnable"), [("tool_use", True), ("max_tokens", False), ("unheard_of", False)]
)
def test_the_last_call_of_a_whole_converse_body_was_cut_where_its_stop_reason_says_so(
    reason: str, runnable: bool
) -> None:
    content: list[Wire] = [
        {"toolUse": {"toolUseId": f"c{n}", "name": "f", "input": {}}} for n in range(2)
    ]
    body: Wire = {"output": {"message": {"role": "assistant", "content": content}}}
    fold = Fold(BEDROCK)
    fold.feed(event(body | {"stopReason": reason}).removeprefix(b"data: "))
    fold.close()
    first, last = fold.snapshot().tool_calls
    assert (first.arguments, last.arguments) == ({}, {} if runnable else None)


@pytest.mark.parametrize("reason", ["tool_calls", "length", "content_filter"])
def test_empty_arguments_of_a_whole_chat_body_are_no_placeholder(reason: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    choice = {"index": 0, "message": {"tool_calls": [call]}, "finish_reason": reason}
    body = {"object": "chat.completion", "id": "r", "model": "m", "choices": [choice]}
    wire = event(body).removeprefix(b"data: ")
    found = first_call(CHAT, wire, is_forbidden=reason in FORBIDDING)
    assert found.arguments == (None if reason == "length" else {})


@pytest.mark.parametrize(("status", "runnable"), [("completed", True), ("incomplete", False)])
@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter", "unheard_of"])
def test_an_item_of_responses_says_itself_whether_it_is_complete(
    status: str, runnable: bool, reason: str
) -> None:
    # vLLM marks a call as completed that the token limit cut.
    runnable = runnable and reason != "max_output_tokens"
    item = {"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": ""}
    done = typed("response.output_item.done", output_index=0, item=item | {"status": status})
    end = {"id": "r", "status": "incomplete", "incomplete_details": {"reason": reason}}
    body = done + typed("response.incomplete", response=end)
    call = first_call(RESPONSES, body, is_forbidden=reason == "content_filter")
    assert call.incomplete is not runnable


@pytest.mark.parametrize(("status", "runnable"), [("requires_action", True), ("incomplete", False)])
def test_the_last_step_of_a_whole_interaction_was_cut_where_its_status_says_so(
    status: str, runnable: bool
) -> None:
    steps = [{"type": "function_call", "id": "c", "name": "f"}]
    body = {"id": "r", "object": "interaction", "model": "m", "status": status, "steps": steps}
    call = first_call(INTERACTIONS, event(body).removeprefix(b"data: "))
    assert call.incomplete is not runnable


# Free text, which never shows by itself whether it is whole.


@pytest.mark.parametrize("word", [*ENDINGS[CHAT]])
def test_free_text_is_runnable_only_where_the_provider_is_finished(word: str) -> None:
    custom: Wire = {"index": 0, "id": "c", "custom": {"name": "f", "input": "print("}}
    ending = ENDINGS[CHAT][word]
    call = first_call(CHAT, chunk({"tool_calls": [custom]}) + ending.wire)
    assert call.arguments == ({"input": "print("} if ending.finished else None)


@pytest.mark.parametrize("dialect", [ANTHROPIC, CHAT, OLLAMA])
@pytest.mark.parametrize("finished", [True, False])
def test_code_that_markup_holds_is_runnable_only_where_the_provider_is_finished(
    dialect: str, finished: bool
) -> None:
    text = "<|channel|>commentary to=python<|message|>print("
    if dialect == CHAT:
        body = said(text) + (finish("stop") + DONE if finished else b"")
    elif dialect == ANTHROPIC:
        body = message_start() + block(0, {"type": "text", "text": text}, stop=finished)
        body += ENDINGS[ANTHROPIC]["end_turn"].wire if finished else b""
    else:
        line: Wire = {"model": "m", "message": {"content": text}, "done": False}
        last: Wire = {"done": True, "done_reason": "stop"} if finished else {"error": "busy"}
        body = b"".join(event(one).removeprefix(b"data: ") for one in (line, last))
    call = first_call(f"{dialect}+harmony", body)
    assert call.arguments == ({"input": "print("} if finished else None)
