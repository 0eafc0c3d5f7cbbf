"""Failures that users of other libraries reported, in every protocol where it can happen.

Cohere, Gemini, Gemini's Interactions, Mistral, OpenAI Responses: one test a failure.  Every body is
decoded whole, in one shot, asynchronously, cut in two at every byte and in pieces of 1 to 17 bytes;
`everywhere` holds all of them equal.
"""

import json

import pytest

from any_name import AnyName
from deltafold import Decoder, ErrorCode, FinishReason
from line_ends import KEEP_ALIVES, line_ends
from protocol_bodies import event
from speakers import (
    COHERE,
    GEMINI,
    INTERACTIONS,
    MISTRAL,
    RESPONSES,
    SPOKEN,
    Call,
    End,
    ending,
    gemini,
    interactions,
    mistral,
    opening,
    saying,
    stream,
    text,
    thought,
    typed,
)
from splits import calls_of, ends_once, everywhere, kinds, usage_of, warning_codes

spoken = pytest.mark.parametrize("dialect", SPOKEN)

F = Call("a", "f", ('{"x":', "1}"))
G = Call("b", "g", ('{"y":2}',))


@spoken
def test_a_whole_answer_is_what_was_said(dialect: str) -> None:
    body = stream(dialect, thought("H", "m."), text("Hi", " you"), F, end="tool_calls")
    deltas, message = everywhere(dialect, body)
    assert (message.thinking, message.text) == ("Hm.", "Hi you")
    assert [part.kind for part in message.parts] == ["thinking", "text", "tool_call"]
    assert ends_once(deltas, "done").finish_reason is FinishReason.TOOL_CALLS
    assert message.meta.response_id == "r"


# Parallel calls (1), usage (2, 23).


@spoken
def test_parallel_calls_stay_apart(dialect: str) -> None:
    deltas, message = everywhere(dialect, stream(dialect, F, G, F, end="tool_calls"))
    assert calls_of(message) == [("f", {"x": 1}), ("g", {"y": 2}), ("f", {"x": 1})]
    if dialect == MISTRAL:
        return  # one id twice is one call there, unless its index is another
    ids = [call.tool_call_id for call in message.tool_calls]
    assert ids == ["a", "b", "a_2"]
    assert kinds(deltas).count("tool_call_end") == 3


@spoken
def test_counts_are_those_of_the_last_record(dialect: str) -> None:
    _, message = everywhere(dialect, stream(dialect, text("Hi"), counts=(10, 4)))
    usage = usage_of(message)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (10, 4, 14)


@spoken
def test_counts_that_nobody_sent_are_unknown(dialect: str) -> None:
    _, message = everywhere(dialect, stream(dialect, text("Hi")))
    assert message.meta.usage is None


def test_counts_on_every_chunk_of_gemini_are_never_added() -> None:
    def counted(**counts: object) -> bytes:
        chunk = {"candidates": [{"content": {"parts": [{"text": "x"}]}}], "usageMetadata": counts}
        return event(chunk)

    body = counted(promptTokenCount=5, thoughtsTokenCount=2)
    body += counted(promptTokenCount=5, thoughtsTokenCount=2, candidatesTokenCount=1)
    body += counted(trafficType="ON_DEMAND")
    body += counted(promptTokenCount=5, candidatesTokenCount=3, cachedContentTokenCount=4)
    _, message = everywhere(GEMINI, body + ending(GEMINI, "stop"))
    usage = usage_of(message)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (5, 5, 10)
    assert (usage.reasoning_tokens, usage.cache_read_tokens) == (2, 4)


# An error under HTTP 200 (3).

ERRORS: dict[str, tuple[str, bytes, ErrorCode]] = {
    "gemini: among events": (
        GEMINI,
        event({"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}}),
        ErrorCode.OVERLOADED,
    ),
    "gemini: bare, on several lines": (
        GEMINI,
        json.dumps(
            {"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED"}}, indent=2
        ).encode(),
        ErrorCode.RATE_LIMITED,
    ),
    "gemini: blocked": (
        GEMINI,
        event({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "no"}}),
        ErrorCode.CONTENT_BLOCKED,
    ),
    "interactions: event": (
        INTERACTIONS,
        interactions("error", error={"code": "not_found", "message": "no"}),
        ErrorCode.NOT_FOUND,
    ),
    "interactions: status": (
        INTERACTIONS,
        interactions(
            "interaction.completed",
            interaction={"status": "failed", "error": {"code": "unavailable", "message": "no"}},
        ),
        ErrorCode.OVERLOADED,
    ),
    "cohere: reason": (
        COHERE,
        typed("message-end", delta={"finish_reason": "ERROR", "error": "no"}),
        ErrorCode.SERVER_ERROR,
    ),
    "cohere: bare": (COHERE, b'{"message":"no"}\n', ErrorCode.SERVER_ERROR),
    "mistral: flat": (
        MISTRAL,
        event({"object": "error", "message": "no", "code": 429}),
        ErrorCode.RATE_LIMITED,
    ),
    "responses: failed": (
        RESPONSES,
        typed(
            "response.failed",
            response={"status": "failed", "error": {"code": "server_error", "message": "no"}},
        ),
        ErrorCode.SERVER_ERROR,
    ),
    "responses: event": (
        RESPONSES,
        typed("error", code="rate_limit_exceeded", message="no"),
        ErrorCode.RATE_LIMITED,
    ),
}


@pytest.mark.parametrize(("dialect", "failure", "code"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_error_and_keeps_what_came(
    dialect: str, failure: bytes, code: ErrorCode
) -> None:
    said = (text("So far"), Call("a", "f", ('{"x":',), stops=False))
    cut = said if dialect != GEMINI else said[:1]
    deltas, message = everywhere(dialect, saying(dialect, *cut) + failure)
    error = ends_once(deltas, "error")
    assert (error.error_code, error.error_message) == (code, "no")
    assert message.text == "So far"
    assert all(call.incomplete for call in message.tool_calls)
    assert len(message.tool_calls) == len(cut) - 1
    alone, _ = everywhere(dialect, failure)
    assert kinds(alone) == ["start", "error"]


# Opaque reasoning comes back byte for byte (4).

SIGNATURE = "EqQBCkgIARABGAIiQL+a/b==\u00e9"


@pytest.mark.parametrize(
    ("dialect", "body", "data"),
    [
        (
            GEMINI,
            gemini({"text": "Hm.", "thought": True, "thoughtSignature": SIGNATURE}),
            {"thoughtSignature": SIGNATURE},
        ),
        (
            INTERACTIONS,
            saying(INTERACTIONS, thought("Hm."))[: -len(interactions("step.stop", index=0))]
            + interactions(
                "step.delta", index=0, delta={"type": "thought_signature", "signature": SIGNATURE}
            ),
            {"signature": SIGNATURE},
        ),
        (
            MISTRAL,
            mistral(
                {
                    "content": [
                        {
                            "type": "thinking",
                            "thinking": [{"type": "text", "text": "Hm."}],
                            "signature": SIGNATURE,
                        }
                    ]
                }
            ),
            {"type": "thinking", "signature": SIGNATURE},
        ),
        (
            RESPONSES,
            typed(
                "response.output_item.done",
                output_index=0,
                item={
                    "type": "reasoning",
                    "id": "rs",
                    "encrypted_content": SIGNATURE,
                    "summary": [{"type": "summary_text", "text": "Hm."}],
                },
            ),
            {
                "type": "reasoning",
                "id": "rs",
                "encrypted_content": SIGNATURE,
                "summary": [{"type": "summary_text", "text": "Hm."}],
            },
        ),
        (
            COHERE,
            typed("tool-plan-delta", delta={"message": {"tool_plan": "Hm."}}),
            {"type": "tool_plan"},
        ),
    ],
)
def test_what_must_go_back_with_reasoning_is_kept(
    dialect: str, body: bytes, data: dict[str, object]
) -> None:
    _, message = everywhere(dialect, body + ending(dialect, "stop"))
    (part,) = message.parts
    assert message.thinking == "Hm."
    assert part.provider_state is not None
    assert (part.provider_state["dialect"], part.provider_state["data"]) == (dialect, data)


def test_signatures_of_gemini_stay_on_the_parts_that_they_came_with() -> None:
    body = gemini({"text": "a", "thoughtSignature": "s1"}, {"text": "b"})
    body += gemini({"functionCall": {"name": "f"}, "thoughtSignature": "s2"})
    body += gemini({"functionCall": {"name": "g"}}, {"text": "", "thoughtSignature": "s3"})
    _, message = everywhere(GEMINI, body + ending(GEMINI, "stop"))
    states = [part.provider_state for part in message.parts]
    assert [part.kind for part in message.parts] == ["text", "text", *["tool_call"] * 2, "text"]
    assert [state and state["data"] for state in states] == [
        {"thoughtSignature": "s1"},
        None,
        {"thoughtSignature": "s2"},
        None,
        {"thoughtSignature": "s3"},
    ]


# Truncation is not success (5).


@spoken
def test_a_stream_that_just_stops_is_connection_lost(dialect: str) -> None:
    body = saying(dialect, text("Half"))
    rest = saying(dialect, text("Half"), text("gone"))[len(body) :]
    for cut in (body, body + rest[:40]):
        deltas, message = everywhere(dialect, cut)
        error = ends_once(deltas, "error")
        assert (error.error_code, error.retryable) == (ErrorCode.CONNECTION_LOST, True)
        assert message.text == "Half"


HALF = ["{", '{"path":"a', '{"path":"a.txt","n":1', '{"a":[1,2]', '{"a":tr']


@pytest.mark.parametrize("fragment", HALF)
@pytest.mark.parametrize("dialect", [COHERE, INTERACTIONS, MISTRAL, RESPONSES])
def test_half_arguments_are_incomplete_however_the_stream_ends(dialect: str, fragment: str) -> None:
    cut = saying(dialect, Call("a", "f", (fragment,), stops=False))
    ends: list[End] = ["stop", "length", "tool_calls"]
    for body in (cut, *(cut + ending(dialect, end) for end in ends)):
        _, message = everywhere(dialect, body)
        (call,) = message.tool_calls
        assert (call.incomplete, call.arguments, call.raw_args_text) == (True, None, fragment)
        assert not message.runnable_tool_calls


def opened(name: str) -> bytes:
    """Begin a call of Gemini whose arguments are streamed."""
    return gemini({"functionCall": {"name": name, "willContinue": True}})


def valued(path: str, value: str, *, more: bool = False) -> bytes:
    """Send a value of it; `more` of the same string follows."""
    entry: dict[str, object] = {"jsonPath": path, "stringValue": value}
    entry |= {"willContinue": True} if more else {}
    return gemini({"functionCall": {"partialArgs": [entry], "willContinue": True}})


@pytest.mark.parametrize("end", ["", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"])
@pytest.mark.parametrize(
    "body",
    [opened("f"), opened("f") + valued("$.a", "x"), opened("f") + valued("$.a", "x", more=True)],
)
def test_streamed_arguments_of_gemini_that_were_cut_are_incomplete(body: bytes, end: str) -> None:
    _, message = everywhere(GEMINI, body + (ending(GEMINI, end) if end else b""))
    (call,) = message.tool_calls
    assert (call.incomplete, call.arguments) == (True, None)
    assert not message.runnable_tool_calls


# Ids: null, missing, empty, numeric, repeated (6).


@spoken
def test_irregular_ids_make_one_call_each(dialect: str) -> None:
    ids: list[object] = ["", None, 7, "null", "same", "same"]
    calls = [Call(name, "f", (json.dumps({"n": n}),)) for n, name in enumerate(ids)]
    _, message = everywhere(dialect, stream(dialect, *calls, end="tool_calls"))
    assert calls_of(message) == [("f", {"n": n}) for n in range(6)]
    found = [call.tool_call_id for call in message.tool_calls]
    assert (found[2], found[4:]) == ("7", ["same", "same_2"])
    assert all(found[n].startswith("call_") for n in (0, 1, 3))
    assert len(set(found)) == 6


# Bytes, lines, keep-alives (7, 8, 10, 22).

WIDE = 'caf\u00e9 \u65e5\u672c \U0001f600 \u2028\u2029\u0085\u000b\u000c "\\/\b\f\n\r\t\u0001'


@spoken
def test_text_and_arguments_are_whole_wherever_the_bytes_are_cut(dialect: str) -> None:
    call = Call("a", "f", (json.dumps({"x": WIDE}, ensure_ascii=False),))
    body = stream(dialect, thought(WIDE), text(WIDE), call, end="tool_calls")
    _, message = everywhere(dialect, body)
    assert (message.thinking, message.text) == (WIDE, WIDE)
    assert calls_of(message) == [("f", {"x": WIDE})]
    assert not warning_codes(message)


@spoken
def test_the_halves_of_an_escaped_character_meet_in_the_next_delta(dialect: str) -> None:
    body = stream(dialect, text("aHIGH", "LOWb"))
    body = body.replace(b"HIGH", rb"\ud83d").replace(b"LOW", rb"\ude00")
    deltas, message = everywhere(dialect, body)
    assert message.text == "a\U0001f600b"
    assert all("\ufffd" not in (delta.text or "") for delta in deltas)
    assert not warning_codes(message)


@spoken
@pytest.mark.parametrize("form", line_ends(b""))
def test_only_cr_and_lf_end_a_line(dialect: str, form: str) -> None:
    _, message = everywhere(dialect, line_ends(stream(dialect, text("a\u2028b\u0085c")))[form])
    assert message.text == "a\u2028b\u0085c"
    assert message.meta.finish_reason is FinishReason.STOP
    assert not warning_codes(message)


@spoken
@pytest.mark.parametrize("alive", [one for one in KEEP_ALIVES if b"{}" not in one])
def test_keep_alives_are_nothing_wherever_they_come(dialect: str, alive: bytes) -> None:
    body = stream(dialect, text("a", "b"))
    expected, _ = everywhere(dialect, body)
    events = body.split(b"\n\n")[:-1]
    deltas, message = everywhere(dialect, alive + b"".join(alive + one + b"\n\n" for one in events))
    assert deltas == expected
    assert not warning_codes(message)


# Finish reasons (9).


@spoken
@pytest.mark.parametrize(
    ("end", "called", "reason"),
    [
        ("stop", False, FinishReason.STOP),
        ("stop", True, FinishReason.TOOL_CALLS),
        ("tool_calls", True, FinishReason.TOOL_CALLS),
        ("length", False, FinishReason.LENGTH),
        ("length", True, FinishReason.LENGTH),
    ],
)
def test_the_finish_reason_is_mapped_and_the_raw_one_kept(
    dialect: str, end: End, called: bool, reason: FinishReason
) -> None:
    said = (text("x"), F) if called else (text("x"),)
    deltas, message = everywhere(dialect, stream(dialect, *said, end=end))
    assert ends_once(deltas, "done").finish_reason is reason
    assert message.meta.raw_finish_reason


@pytest.mark.parametrize(
    ("dialect", "raw"),
    [(COHERE, "BORED"), (GEMINI, "BORED"), (INTERACTIONS, "bored"), (MISTRAL, "bored")],
)
def test_a_finish_reason_of_the_future_is_other(dialect: str, raw: str) -> None:
    deltas, _ = everywhere(dialect, saying(dialect, text("x")) + ending(dialect, raw))
    done = ends_once(deltas, "done")
    assert (done.finish_reason, done.raw_finish_reason) == (FinishReason.OTHER, raw)


def test_text_after_an_early_finish_reason_of_gemini_is_kept() -> None:
    body = gemini({"text": "a"}, finishReason="STOP") + gemini({"text": "b"}, finishReason="STOP")
    body += gemini(finishReason="RECITATION")
    deltas, message = everywhere(GEMINI, body)
    assert message.text == "ab"
    assert ends_once(deltas, "done").finish_reason is FinishReason.CONTENT_FILTER


# The shape of arguments (14).

SHAPES: list[tuple[object, dict[str, object] | None]] = [
    ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
    ({}, {}),
    (None, {}),
    ('{"a":1}', {"a": 1}),
    ('"{\\"a\\":1}"', {"a": 1}),
    ("", {}),
    ([1], None),
    (7, None),
]


@spoken
@pytest.mark.parametrize(("arguments", "parsed"), SHAPES)
def test_arguments_of_any_shape_are_parsed_once(
    dialect: str, arguments: object, parsed: dict[str, object] | None
) -> None:
    call = {"id": "a", "call_id": "a", "type": "function_call", "name": "f", "arguments": arguments}
    function = {"id": "a", "function": {"name": "f", "arguments": arguments}}
    body = {
        COHERE: typed("tool-call-start", index=0, delta={"message": {"tool_calls": function}}),
        GEMINI: gemini({"functionCall": {"name": "f", "id": "a", "args": arguments}}),
        INTERACTIONS: interactions("step.start", index=0, step=call),
        MISTRAL: mistral({"tool_calls": [function]}),
        RESPONSES: typed("response.output_item.done", output_index=0, item=call),
    }[dialect]
    _, message = everywhere(dialect, opening(dialect) + body + ending(dialect, "stop"))
    assert calls_of(message) == [("f", parsed)]


def test_arguments_that_only_the_done_event_has_are_not_lost_and_not_doubled() -> None:
    item = {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'}
    added = typed("response.output_item.added", output_index=0, item={**item, "arguments": ""})
    done = typed("response.function_call_arguments.done", output_index=0, arguments='{"x":1}')
    more = typed("response.function_call_arguments.delta", output_index=0, delta='{"x"')
    for between in (done, more + done, more, b""):
        body = added + between + typed("response.output_item.done", output_index=0, item=item)
        _, message = everywhere(RESPONSES, body + ending(RESPONSES, "stop"))
        assert message.tool_calls[0].raw_args_text == '{"x":1}'


# Linear time (17).


@spoken
def test_a_hundred_thousand_pieces_are_as_many_deltas(dialect: AnyName) -> None:
    body = stream(dialect, text("a", *["x"] * 100_000))
    batch = Decoder(dialect, run_id="run").feed(body)
    assert sum(1 for delta in batch if delta.text) == 100_001


# Chunks without choices or candidates (18), content as a list (21).


@pytest.mark.parametrize(
    ("dialect", "empty"),
    [
        (GEMINI, event({"candidates": []})),
        (GEMINI, event({"usageMetadata": {"trafficType": "ON_DEMAND"}})),
        (GEMINI, event({"candidates": [{"index": 0}]})),
        (GEMINI, event({"candidates": [{"content": {"role": "model"}}]})),
        (MISTRAL, event({"id": "r", "model": "m", "choices": []})),
        (MISTRAL, event({"choices": None})),
    ],
)
def test_chunks_that_say_nothing_break_nothing(dialect: str, empty: bytes) -> None:
    body = empty + saying(dialect, text("Hi")) + empty + ending(dialect, "stop") + empty
    _, message = everywhere(dialect, body)
    assert message.text == "Hi"
    assert message.meta.finish_reason is FinishReason.STOP


def test_contents_of_mistral_as_lists_are_text_thinking_and_references() -> None:
    note = {"type": "reference", "reference_ids": [1]}
    hm = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    body = mistral({"content": [hm, {"type": "text", "text": "See"}]})
    body += mistral({"content": [note, {"type": "text", "text": "."}]}) + mistral({"content": "!"})
    _, message = everywhere(MISTRAL, body + ending(MISTRAL, "stop"))
    assert (message.thinking, message.text) == ("Hm.", "See.!")
    part = message.parts[1]
    assert part.kind == "text"
    assert part.annotations == [note]


# Side channels survive (20).

NOTE: dict[str, object] = {"type": "url_citation", "url": "https://example.com/"}


@pytest.mark.parametrize(
    ("dialect", "cited", "note"),
    [
        (
            GEMINI,
            gemini({"text": "See."}, groundingMetadata={"webSearchQueries": ["q"]}),
            {"type": "groundingMetadata", "groundingMetadata": {"webSearchQueries": ["q"]}},
        ),
        (
            INTERACTIONS,
            saying(INTERACTIONS, text("See."))[: -len(interactions("step.stop", index=0))]
            + interactions(
                "step.delta",
                index=0,
                delta={"type": "text_annotation_delta", "annotations": [NOTE]},
            ),
            NOTE,
        ),
        (
            RESPONSES,
            typed("response.output_text.delta", output_index=0, delta="See.")
            + typed("response.output_text.annotation.added", output_index=0, annotation=NOTE),
            NOTE,
        ),
        (
            COHERE,
            saying(COHERE, text("See."))
            + typed("citation-start", index=0, delta={"message": {"citations": NOTE}}),
            NOTE,
        ),
    ],
)
def test_citations_stay_with_their_text(
    dialect: str, cited: bytes, note: dict[str, object]
) -> None:
    _, message = everywhere(dialect, cited + ending(dialect, "stop"))
    (part,) = message.parts
    assert part.kind == "text"
    assert (part.text, part.annotations) == ("See.", [note])


def test_media_and_tools_that_gemini_ran_are_parts_in_their_place() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "2+2"}}
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    body = gemini({"text": "a"}, code) + gemini(image, {"text": "b"}) + ending(GEMINI, "stop")
    _, message = everywhere(GEMINI, body)
    assert [part.kind for part in message.parts] == ["text", "provider", "image", "text"]
    assert message.parts[1].model_dump(mode="json")["payload"]["block"] == code
    assert not message.tool_calls


def test_logprobs_of_gemini_are_kept_when_they_are_asked_for() -> None:
    def spoken_by(word: str, value: float) -> bytes:
        chosen = [{"token": word, "tokenId": 7, "logProbability": value}]
        return gemini({"text": word}, logprobsResult={"chosenCandidates": chosen})

    body = spoken_by("Hi", -0.5) + spoken_by("!", -1.5) + ending(GEMINI, "stop")
    _, message = everywhere(GEMINI, body, logprobs=True)
    assert message.meta.logprobs is not None
    assert message.meta.logprobs.to_dict() == {
        "tokens": ["Hi", "!"],
        "logprobs": [-0.5, -1.5],
        "tokenIds": [7, 7],
    }
    _, silent = everywhere(GEMINI, body)
    assert silent.meta.logprobs is None


def test_another_candidate_of_gemini_is_followed_when_it_is_asked_for() -> None:
    body = gemini({"text": "zero"}, index=0) + gemini({"text": "one"}, index=1)
    body += gemini(index=1, finishReason="STOP")
    _, message = everywhere(GEMINI, body, choice=1)
    assert message.text == "one"
