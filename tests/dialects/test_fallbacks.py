"""Server-side fallback: one model begins an answer of the Messages API, and another one serves it.

In: answers with `fallback` blocks, streamed and whole.  Out: the calls that run, the next request,
usage and cost.
Source: Anthropic, "Refusals and fallback", continuing the conversation, streaming and billing; the
types of anthropic-sdk-python 2.14 (read 2026-11).
"""

import json
from typing import Any, Final, cast

import httpx2
import pytest

import deltafold
from any_name import AnyName
from conversations import DIALECTS
from deltafold import (
    Agent,
    AnthropicModel,
    Message,
    MessagePart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Transcoder,
)
from deltafold.conversation.history.entries import ModelOutputEntry
from deltafold.dialects import dialect_of
from deltafold.dialects.repairs.repair import check, repair
from deltafold.errors.model_error import ModelError
from deltafold.gateway import create_app
from deltafold.message.cost import cost_of
from deltafold.message.fallbacks import calls_before_fallback
from deltafold.streams.bodies import decode_response
from deltafold.streams.outputs import Output
from deltafold.testing import Recording, ReplayServer
from gateways import served
from signed_answers import Blocks, Body, called, messages_stream, said, thinking

CLAUDE: Final = "anthropic-messages"
FABLE, OPUS, SONNET = "claude-fable-5", "claude-opus-4-8", "claude-sonnet-5"


def fallback(asked: str = FABLE, served_by: str = OPUS) -> tuple[Body, list[Body]]:
    ends = {"from": {"model": asked}, "to": {"model": served_by}}
    return {"type": "fallback", **ends, "trigger": {"type": "refusal", "category": None}}, []


def attempt(kind: str, model: str, tokens: tuple[int, int]) -> Body:
    counts = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
    return {"type": kind, "model": model, **counts, "cache_read_input_tokens": 0}


MIXED: Final[Blocks] = [
    thinking("f", "SIG_FABLE"),
    ({"type": "redacted_thinking", "data": "DATA_FABLE"}, []),
    said("Let me see. "),
    ({"type": "connector_text", "text": "And now"}, []),
    ({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}, []),
    ({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}, []),
    ({"type": "server_tool_use", "id": "srv_2", "name": "web_search", "input": {}}, []),
    called("toolu_0"),
    fallback(),
    thinking("o", "SIG_OPUS"),
    ({"type": "redacted_thinking", "data": "DATA_OPUS"}, []),
    called("toolu_1"),
]
"""A decline in the middle of an answer, after each kind of block."""

KEPT: Final = [
    "text",
    "server_tool_use srv_1",
    "web_search_tool_result",
    "fallback",
    "thinking SIG_OPUS",
    "redacted_thinking DATA_OPUS",
    "tool_use toolu_1",
]


def mixed(**options: Any) -> Message:  # noqa: ANN401 - those of `fold`
    return deltafold.fold(messages_stream(FABLE, MIXED), CLAUDE, **options)


def history(message: Message, *answered: str) -> list[Message]:
    results = [Message.tool_result(call_id, f"done {call_id}") for call_id in answered]
    return [Message.user("Go"), message, *results]


def rendered(messages: list[Message], model_id: str, dialect: str = CLAUDE) -> Any:  # noqa: ANN401 - a request
    config = dialect_of(dialect).config_class.model_validate({"model_id": model_id})
    return dialect_of(dialect).render(messages, [], config)


def sent(body: Body) -> list[str]:
    """Return the blocks of the answer in a request, each with its id or its secret."""
    names = ("id", "signature", "data")
    return [
        " ".join([block["type"], *(block[name] for name in names if name in block)])
        for block in body["messages"][1]["content"]
    ]


@pytest.mark.parametrize(
    "model", [FABLE, "claude-fable-5-20260601", f"anthropic/{FABLE}", OPUS, "us.anthropic." + OPUS]
)
@pytest.mark.parametrize("asked", [None, FABLE, OPUS], ids=["reported", "asked", "pinned"])
def test_what_the_serving_model_wrote_goes_back(model: str, asked: str | None) -> None:
    message = mixed() if asked is None else mixed(model_id=asked)
    request = rendered(history(message, "toolu_1"), model)
    assert sent(request.body) == KEPT
    results = request.body["messages"][2]["content"]
    assert [result["tool_use_id"] for result in results] == ["toolu_1"]
    noted = [(note["code"], note["partIndex"]) for note in request.notes]
    assert noted == [
        ("thinking_dropped", 0),
        ("thinking_dropped", 1),
        ("part_dropped", 3),
        ("part_dropped", 6),
        ("call_dropped", 7),
    ]


def test_another_model_gets_the_texts_the_tools_and_the_calls_that_ran() -> None:
    request = rendered(history(mixed(), "toolu_1"), SONNET)
    assert sent(request.body) == [one for one in KEPT if "OPUS" not in one]


def test_what_goes_back_needs_no_repair() -> None:
    messages = history(mixed(), "toolu_1")
    for model in (FABLE, OPUS):
        mended, report = repair(messages, CLAUDE, model_id=model)
        assert report.codes == []
        assert all(one is other for one, other in zip(mended, messages, strict=True))
    assert "foreign_thinking" in check(history(mixed(), "toolu_1"), CLAUDE, model_id=SONNET).codes


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("repairs", [False, True], ids=["as it is", "repaired"])
def test_a_result_of_a_call_that_is_left_out_is_left_out_too(
    dialect: AnyName, *, repairs: bool
) -> None:
    messages = history(mixed(), "toolu_0", "toolu_1")
    if repairs:
        messages = repair(messages, dialect, model_id=OPUS)[0]
    request = rendered(messages, OPUS, dialect)
    body = json.dumps(request.body)
    assert "toolu_0" not in body
    assert "done toolu_0" not in body
    assert "done toolu_1" in body
    dropped = [note for note in request.notes if "left out, and its result" in str(note["message"])]
    assert [note["messageIndex"] for note in dropped] == [2]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_that_is_left_out_needs_no_result(dialect: AnyName) -> None:
    messages = history(mixed(), "toolu_1")
    assert "orphan_call" not in check(messages, dialect, model_id=OPUS).codes
    mended = repair(messages, dialect, model_id=OPUS)[0]
    assert "toolu_0" not in json.dumps(rendered(mended, OPUS, dialect).body)


def test_only_the_last_of_several_boundaries_counts() -> None:
    blocks = [
        thinking("f", "SIG_FABLE"),
        called("toolu_0"),
        fallback(FABLE, OPUS),
        thinking("o", "SIG_OPUS"),
        called("toolu_1"),
        fallback(OPUS, SONNET),
        thinking("s", "SIG_SONNET"),
        called("toolu_2"),
    ]
    message = deltafold.fold(messages_stream(FABLE, blocks), CLAUDE)
    assert [call.tool_call_id for call in message.runnable_tool_calls] == ["toolu_2"]
    wanted = ["fallback", "fallback", "thinking SIG_SONNET", "tool_use toolu_2"]
    for model in (FABLE, SONNET):
        assert sent(rendered(history(message, "toolu_2"), model).body) == wanted
    # The model in the middle did not write what follows, and was not asked for it.
    assert "SIG_SONNET" not in json.dumps(rendered(history(message, "toolu_2"), OPUS).body)


def test_a_call_before_the_boundary_does_not_run() -> None:
    message = mixed()
    assert [call.tool_call_id for call in message.tool_calls] == ["toolu_0", "toolu_1"]
    assert [call.tool_call_id for call in message.runnable_tool_calls] == ["toolu_1"]
    entry = ModelOutputEntry.of_message(message)
    assert [call.tool_call_id for call in entry.tool_calls] == ["toolu_1"]
    again = Message.from_json(message.to_json())
    assert [call.tool_call_id for call in again.runnable_tool_calls] == ["toolu_1"]


def test_an_output_is_not_taken_from_a_call_before_the_boundary() -> None:
    def call(n: int) -> ToolCallPart:
        raw = json.dumps({"n": n})
        return ToolCallPart(tool_call_id=f"toolu_{n}", tool_name="Found", raw_args_text=raw)

    block = ProviderPart(dialect=CLAUDE, block=fallback()[0])
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    output: Output[Any] = Output(schema, name="Found")
    assert output.of_message(Message.assistant(call(0), block, call(1))) == {"n": 1}
    before = Message.assistant(call(0), block, TextPart(text='{"n": 2}'))
    assert output.of_message(before) == {"n": 2}


HOSTILE: Final[list[Body]] = [
    {"type": "fallback"},
    {"type": "fallback", "from": None, "to": None},
    {"type": "fallback", "from": [], "to": "x"},
    {"type": "fallback", "from": {"model": 1}, "to": {"model": {}}},
    {"type": "fallback", "from": {"model": ""}, "to": {"model": ""}},
    {"type": "fallback", "from": {"model": "x" * 10_000}, "to": {}},
]


@pytest.mark.parametrize("block", HOSTILE, ids=range(len(HOSTILE)))
def test_a_boundary_without_models_is_still_one(block: Body) -> None:
    message = deltafold.fold(
        messages_stream(FABLE, [called("toolu_0"), (block, []), thinking("o", "SIG"), said("Hi")]),
        CLAUDE,
    )
    assert message.runnable_tool_calls == []
    assert "toolu_0" not in json.dumps(rendered(history(message), FABLE).body)
    assert check(history(message), CLAUDE, model_id=FABLE).codes == []


def test_a_block_of_that_name_in_another_dialect_is_no_boundary() -> None:
    call = ToolCallPart(tool_call_id="a", tool_name="find", raw_args_text="{}")
    parts: list[MessagePart] = [call, ProviderPart(dialect="gemini", block={"type": "fallback"})]
    assert calls_before_fallback(parts) == frozenset()
    assert Message.assistant(*parts).runnable_tool_calls == [call]


def test_reasoning_without_a_signature_after_the_boundary_is_noted() -> None:
    block = ProviderPart(dialect=CLAUDE, block=fallback()[0])
    message = Message.assistant(block, ThinkingPart(text="Hm."), TextPart(text="Hi"))
    assert sent(rendered(history(message), FABLE).body) == ["fallback", "text"]
    assert check(history(message), CLAUDE, model_id=FABLE).codes == ["unsigned_thinking"]


SERVED: Final = (412, 264)
DECLINED: Final = attempt("message", FABLE, (535, 7))
ATTEMPTS: Final = [DECLINED, attempt("fallback_message", OPUS, SERVED)]


def whole(**usage: object) -> bytes:
    """Write a whole answer: the partial output of the model that declined is not in it."""
    counts = {"input_tokens": SERVED[0], "output_tokens": SERVED[1], **usage}
    content = [fallback()[0], {"type": "text", "text": "Hi"}]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": OPUS}
    ended = {"stop_reason": "end_turn", "stop_sequence": None, "usage": counts}
    return json.dumps({**head, "content": content, **ended}).encode()


ANSWERS: Final[dict[str, bytes]] = {
    "whole": whole(iterations=ATTEMPTS),
    "before any output": messages_stream(
        OPUS,
        [fallback(), said("Hi")],
        "end_turn",
        input_tokens=SERVED[0],
        output_tokens=SERVED[1],
        iterations=ATTEMPTS,
    ),
    "in the middle": messages_stream(
        FABLE,
        [said("H"), fallback(), said("Hi")],
        "end_turn",
        input_tokens=SERVED[0],
        output_tokens=SERVED[1],
        iterations=ATTEMPTS,
    ),
    "in the middle, counts in the attempts alone": messages_stream(
        FABLE,
        [said("H"), fallback(), said("Hi")],
        "end_turn",
        input_tokens=None,
        output_tokens=SERVED[1],
        iterations=ATTEMPTS,
    ),
    "by sticky routing": messages_stream(
        OPUS,
        [said("Hi")],
        "end_turn",
        input_tokens=SERVED[0],
        output_tokens=SERVED[1],
        iterations=ATTEMPTS[1:],
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_usage_and_cost_are_those_of_the_serving_model(case: str) -> None:
    kind = "application/json" if case == "whole" else "text/event-stream"
    with ReplayServer() as server:
        server.queue(Recording.of(ANSWERS[case], content_type=kind))
        model = AnthropicModel({"model_id": FABLE}, base_url=server.url, api_key="k")
        with model.stream_sync([Message.user("Go")]) as stream:
            message = stream.final_message()
            cost = stream.cost_usd
        model.close()
    usage = message.meta.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == SERVED
    assert message.meta.model_id == OPUS
    wanted = cost_of(usage, "anthropic", OPUS).usd
    assert wanted not in {None, cost_of(usage, "anthropic", FABLE).usd}
    assert message.meta.cost_usd == cost == wanted


def test_a_model_without_a_price_costs_what_the_requested_one_costs() -> None:
    body = messages_stream("claude-of-next-year", [said("Hi")], "end_turn", output_tokens=9)
    with ReplayServer() as server:
        server.queue(Recording.of(body, content_type="text/event-stream"))
        model = AnthropicModel({"model_id": FABLE}, base_url=server.url, api_key="k")
        message = model.send_message_sync([Message.user("Go")])
        model.close()
    assert message.meta.cost_usd == cost_of(message.meta.usage, "anthropic", FABLE).usd
    assert message.meta.cost_usd is not None


@pytest.mark.parametrize(
    ("early", "pause", "runs"),
    [
        (False, 0.0, ["toolu_1"]),
        (True, 0.0, ["toolu_1"]),
        # Nobody can know of the boundary when the first call has ended.
        (True, 0.2, ["toolu_0", "toolu_1"]),
    ],
    ids=["after the answer", "early", "early, before the boundary"],
)
def test_an_agent_runs_the_calls_of_the_serving_model(
    *, early: bool, pause: float, runs: list[str]
) -> None:
    ran: list[str] = []

    def find(word: str = "") -> str:
        """Find."""
        ran.append(word)
        return f"found {word}"

    def call(call_id: str) -> tuple[Body, list[Body]]:
        started, _ = called(call_id)
        return started, [{"type": "input_json_delta", "partial_json": f'{{"word": "{call_id}"}}'}]

    blocks: Blocks = [
        thinking("f", "SIG_FABLE"),
        call("toolu_0"),
        fallback(),
        thinking("o", "SIG_OPUS"),
        call("toolu_1"),
    ]
    body = messages_stream(FABLE, blocks)
    at = body.index(b'"fallback"') - 200
    at = body.index(b"event: content_block_start", at)
    pieces = ((0.0, body[:at]), (pause, body[at:])) if pause else ((0.0, body),)
    with ReplayServer() as server:
        server.queue(Recording(pieces))
        server.queue(Recording.of(messages_stream(FABLE, [said("Hi")], "end_turn")))
        model = AnthropicModel({"model_id": FABLE}, base_url=server.url, api_key="k")
        agent: Any = Agent({"loop": {"start_tools_early": early}}, [find], model=model)
        result = agent.run_sync("Go")
        request = json.loads(bytes(server.requests[-1].body))
    assert result.text == "Hi"
    assert ran == runs
    assert sent(request) == ["fallback", "thinking SIG_OPUS", "tool_use toolu_1"]
    results = [block["tool_use_id"] for block in request["messages"][2]["content"]]
    assert results == ["toolu_1"]


@pytest.mark.parametrize("model", [FABLE, f"{FABLE}-20260601"])
def test_a_gateway_sends_back_what_the_serving_model_wrote(model: str) -> None:
    with ReplayServer() as server:
        upstream = AnthropicModel({"model_id": model}, base_url=server.url, api_key="k")
        for body in (
            messages_stream(FABLE, MIXED),
            messages_stream(FABLE, [said("Hi")], "end_turn"),
        ):
            server.queue(Recording.of(body, content_type="text/event-stream"))
        asked: Body = {"model": "m", "max_tokens": 900, "stream": True}
        question = {"role": "user", "content": "Go"}
        with served(create_app({"m": upstream})) as url:
            first = httpx2.post(f"{url}/v1/messages", json={**asked, "messages": [question]})
            assert first.content == messages_stream(FABLE, MIXED)
            # A client that knows no boundary sends every block back.
            content = [block | filled(deltas) for block, deltas in MIXED]
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
            turns = [question, {"role": "assistant", "content": content}]
            turns.append({"role": "user", "content": [result]})
            httpx2.post(f"{url}/v1/messages", json={**asked, "messages": turns})
        assert sent(json.loads(bytes(server.requests[-1].body))) == KEPT


PROTOCOLS: Final = {
    "openai-chat": ("content_filter", "tool_calls"),
    "openai-responses": ("content_filter", "completed"),
    "gemini": ("SAFETY", "STOP"),
    "bedrock-converse": ("content_filtered", "tool_use"),
}
"""Other protocols, with their words for the end of a filter and for a good one with a call."""

LEFT_OUT: Final = "a call of a model that another one took over from"


@pytest.mark.parametrize("target", [*PROTOCOLS, "ollama"])
@pytest.mark.parametrize("way", ["message", "assembler", "body"])
def test_a_whole_answer_in_another_protocol_has_the_calls_of_the_serving_model(
    target: AnyName, way: str
) -> None:
    body = messages_stream(FABLE, MIXED)
    if way == "body":
        encoded = deltafold.transcode_response(body, CLAUDE, target, envelope=True)
    else:
        assembler = deltafold.MessageAssembler()
        assembler.consume(decode_response(body, CLAUDE))
        message = mixed() if way == "message" else assembler
        encoded = deltafold.encode_message(message, target, envelope=True)
    again = deltafold.fold(encoded.body, target)
    assert [call.tool_call_id for call in again.runnable_tool_calls] == ["toolu_1"]
    assert [call.tool_call_id for call in again.tool_calls] == ["toolu_1"]
    assert again.thinking == "o"
    note = {"what": "a part of a model that another one took over from", "count": 3}
    assert [one for one in encoded.notes if one["what"] == note["what"]] == [
        {"code": "part", **note}
    ]


def test_each_of_several_whole_answers_has_the_calls_of_its_serving_model() -> None:
    encoded = deltafold.encode_choices({0: mixed(), 1: mixed()}, "openai-chat")
    choices = deltafold.fold_choices(encoded.body, "openai-chat").values()
    assert [list(one.tool_calls) for one in choices] == [["toolu_1"]] * 2


def streamed(target: AnyName, blocks: Blocks = MIXED, **options: Any) -> tuple[bytes, list[str]]:  # noqa: ANN401 - those of an encoder
    """Transcode an answer, and return the bytes and the notes about calls."""
    transcoder = Transcoder(CLAUDE, target, **options)
    body = transcoder.feed(messages_stream(FABLE, blocks)) + transcoder.close()
    return body, [note["what"] for note in transcoder.notes if note["code"] == "call"]


@pytest.mark.parametrize("target", PROTOCOLS)
def test_a_streamed_call_before_the_boundary_ends_the_answer_as_a_filter_does(
    target: AnyName,
) -> None:
    body, notes = streamed(target)
    again = deltafold.fold(body, target)
    assert [call.tool_call_id for call in again.tool_calls] == ["toolu_0", "toolu_1"]
    assert again.runnable_tool_calls == []
    assert again.meta.raw_finish_reason == PROTOCOLS[target][0]
    assert notes == ["a written call of a model that another one took over from"]
    # Nothing changes without a call before the boundary.
    body, notes = streamed(target, [said("A"), fallback(), called("toolu_1")])
    again = deltafold.fold(body, target)
    assert [call.tool_call_id for call in again.runnable_tool_calls] == ["toolu_1"]
    assert again.meta.raw_finish_reason == PROTOCOLS[target][1]
    assert notes == []


@pytest.mark.parametrize("target", PROTOCOLS)
def test_calls_that_are_held_back_are_those_of_the_serving_model(target: AnyName) -> None:
    blocks: Blocks = [said("A"), called("toolu_0"), said("B"), *MIXED[-4:], said("C")]
    body, notes = streamed(target, blocks, declined_calls="hold")
    again = deltafold.fold(body, target)
    assert [call.tool_call_id for call in again.tool_calls] == ["toolu_1"]
    assert [call.tool_call_id for call in again.runnable_tool_calls] == ["toolu_1"]
    assert again.text == "ABC"
    assert again.meta.raw_finish_reason == PROTOCOLS[target][1]
    assert notes == [LEFT_OUT]


@pytest.mark.parametrize("target", PROTOCOLS)
def test_calls_that_are_kept_are_for_a_caller_who_takes_them_back(target: AnyName) -> None:
    body, notes = streamed(target, declined_calls="keep")
    again = deltafold.fold(body, target)
    assert [call.tool_call_id for call in again.runnable_tool_calls] == ["toolu_0", "toolu_1"]
    assert (again.meta.raw_finish_reason, notes) == (PROTOCOLS[target][1], [])


@pytest.mark.parametrize("option", ["filter", "hold"])
def test_the_stream_of_ollama_has_the_calls_of_the_serving_model(option: str) -> None:
    body, notes = streamed("ollama", declined_calls=option)
    again = deltafold.fold(body, "ollama")
    assert [call.tool_call_id for call in again.runnable_tool_calls] == ["toolu_1"]
    assert (again.meta.raw_finish_reason, notes) == ("stop", [LEFT_OUT])


@pytest.mark.parametrize("target", ["ag-ui", "ai-sdk"])
def test_a_user_interface_does_not_take_such_an_answer_for_a_good_one(target: str) -> None:
    last = {"ag-ui": b'"type":"RUN_ERROR"', "ai-sdk": b'"finishReason":"content-filter"'}[target]
    assert last in streamed(target)[0]
    held, _ = streamed(target, declined_calls="hold")
    assert last not in held
    assert b"toolu_0" not in held
    assert b"toolu_1" in held


@pytest.mark.parametrize("option", ["filter", "hold", "keep"])
def test_a_stream_in_its_own_protocol_has_every_block(option: str) -> None:
    body, notes = streamed(CLAUDE, declined_calls=option)
    again = deltafold.fold(body, CLAUDE)
    assert again.parts == mixed().parts
    assert [call.tool_call_id for call in again.runnable_tool_calls] == ["toolu_1"]
    assert notes == []


@pytest.mark.parametrize("target", [*PROTOCOLS, "ollama"])
def test_held_calls_of_a_refused_or_failed_answer_are_left_out(target: AnyName) -> None:
    whole = messages_stream(FABLE, [said("A"), called("toolu_0")], "refusal")
    cut = whole[: whole.index(b"event: message_delta")]
    for body in (whole, cut):
        transcoder = Transcoder(CLAUDE, target, declined_calls="hold")
        written = transcoder.feed(body) + transcoder.close()
        assert b"toolu_0" not in written
        noted = [note["what"] for note in transcoder.notes if note["code"] == "call"]
        assert noted == ["the call of find, which may not run after this end"]


def test_calls_are_held_back_up_to_the_limit_of_an_event() -> None:
    start, _ = called("toolu_0")
    deltas = [{"type": "input_json_delta", "partial_json": " " * 1_000}] * 9
    limits = deltafold.Limits(event_bytes=5_000)
    transcoder = Transcoder(CLAUDE, "openai-chat", declined_calls="hold", limits=limits)
    body = transcoder.feed(messages_stream(FABLE, [(start, deltas)])) + transcoder.close()
    with pytest.raises(ModelError, match="limit reached"):
        deltafold.fold(body, "openai-chat")


def test_an_unknown_fate_of_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="'filter', 'hold' or 'keep'"):
        Transcoder(CLAUDE, "openai-chat", declined_calls=cast("Any", "drop"))


@pytest.mark.parametrize("asks", [True, False], ids=["asked for", "not asked for"])
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_gateway_gives_a_client_of_another_protocol_no_declined_call(
    *, asks: bool, streams: bool
) -> None:
    members = {"fallbacks": [{"model": OPUS}]} if asks else {}
    with ReplayServer() as server:
        config = {"model_id": FABLE, "extra_body": members}
        upstream = AnthropicModel(config, base_url=server.url, api_key="k")
        server.queue(Recording.of(messages_stream(FABLE, MIXED), content_type="text/event-stream"))
        asked: Body = {"model": "m", "messages": [{"role": "user", "content": "Go"}]}
        with served(create_app({"m": upstream})) as url:
            given = httpx2.post(f"{url}/v1/chat/completions", json={**asked, "stream": streams})
    message = deltafold.fold(given.content, "openai-chat")
    runs = ["toolu_1"] if asks or not streams else []
    assert [call.tool_call_id for call in message.runnable_tool_calls] == runs
    assert message.meta.raw_finish_reason == ("tool_calls" if runs else "content_filter")


DECLINED_CALL: Final[Blocks] = [called("c1"), fallback(), said("post")]
ENDS: Final[dict[str, tuple[Blocks, list[str]]]] = {
    "a call of the declining model": (DECLINED_CALL, []),
    "a call of the serving model": ([*DECLINED_CALL, called("c2")], ["c2"]),
    "a call between two boundaries": ([*DECLINED_CALL, called("c2"), fallback(OPUS, SONNET)], []),
}
"""Answers that end with `end_turn`, and the calls of the model that served them."""


@pytest.mark.parametrize("case", ENDS)
@pytest.mark.parametrize("way", ["one byte at a time", "streamed", "whole"])
def test_only_a_call_of_the_serving_model_is_the_reason_for_the_end(case: str, way: str) -> None:
    blocks, runs = ENDS[case]
    body = messages_stream(FABLE, blocks, "end_turn")
    if way == "whole":
        content = [block | filled(deltas) for block, deltas in blocks]
        head: Body = {"id": "msg_1", "type": "message", "role": "assistant", "model": FABLE}
        body = json.dumps({**head, "content": content, "stop_reason": "end_turn"}).encode()
    pieces = [bytes([byte]) for byte in body] if way == "one byte at a time" else [body]
    message = deltafold.fold(pieces, CLAUDE)
    assert [call.tool_call_id for call in message.runnable_tool_calls] == runs
    assert message.meta.finish_reason == ("tool_calls" if runs else "stop")
    for encoded in (deltafold.encode_message(message, CLAUDE).body, transcoded(pieces, CLAUDE)):
        again = deltafold.fold(encoded, CLAUDE)
        assert [call.tool_call_id for call in again.runnable_tool_calls] == runs
        assert again.meta.raw_finish_reason == ("tool_use" if runs else "end_turn")
    chat = json.loads(deltafold.encode_message(message, "openai-chat").body)["choices"][0]
    assert [call["id"] for call in chat["message"].get("tool_calls", [])] == runs
    assert chat["finish_reason"] == ("tool_calls" if runs else "stop")
    held = deltafold.fold(transcoded(pieces, "openai-chat", declined_calls="hold"), "openai-chat")
    assert [call.tool_call_id for call in held.tool_calls] == runs
    assert held.meta.raw_finish_reason == chat["finish_reason"]


def transcoded(pieces: list[bytes], target: AnyName, **options: Any) -> bytes:  # noqa: ANN401 - those of an encoder
    transcoder = Transcoder(CLAUDE, target, **options)
    return b"".join([*map(transcoder.feed, pieces), transcoder.close()])


def test_a_whole_answer_in_its_own_protocol_has_every_block() -> None:
    content = json.loads(deltafold.encode_message(mixed(), CLAUDE).body)["content"]
    assert [block["type"] for block in content] == [block["type"] for block, _ in MIXED]


def filled(deltas: Any) -> Body:  # noqa: ANN401 - those of a block
    """Return the members of a block that its deltas set."""
    members: Body = {}
    for delta in deltas:
        members |= {k: v for k, v in delta.items() if k not in {"type", "partial_json"}}
    return members
