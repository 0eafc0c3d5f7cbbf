"""State of one provider goes through the client of another protocol and back, byte for byte.

The recordings lie beside the project, at `../shared/corpus` or where `DELTAFOLD_CORPUS` says;
without them the tests of made-up answers are left.
"""

import base64
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import pytest

import deltafold
from any_name import AnyName
from conversations import DIALECTS
from corpus import needs_corpus
from deltafold import Decoder, Encoder, Message, MessageAssembler, Transcoder, parse_request
from deltafold.dialects import dialect_of
from deltafold.dialects.envelopes import open_envelope
from deltafold.message.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart
from judging import recordings
from next_turns import ANSWER, CLIENTS, QUESTION, Body, plain_chat

MODEL = "the-model-that-was-asked"
MARK = "eyJkZWx0YWZvbGQi"

SECRETS = {
    "signature",
    "data",
    "encrypted_content",
    "thoughtSignature",
    "thought_signature",
    "redactedContent",
}
"""Members of requests that only their provider can read."""

WITH_TEXT = {"gemini", "chat with reasoning_details", "chat with thinking_blocks"}
"""Clients that carry the state of a text; the others have nothing that could follow the text."""


def state(dialect: str, **data: object) -> dict[str, object]:
    return {"dialect": dialect, "modelId": MODEL, "data": data}


def item(number: int, *summary: str) -> dict[str, object]:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    item_id, secret = f"rs_{number}", f"gAAAAAB{number}=="
    members = {"type": "reasoning", "summary": texts, "encrypted_content": secret}
    return state("openai-responses", id=item_id, **members)


def call(call_id: str, of: dict[str, object] | None = None) -> ToolCallPart:
    arguments: dict[str, object] = {"city": "Oslo", "n": call_id}
    return ToolCallPart(
        tool_call_id=call_id, tool_name="weather", arguments=arguments, provider_state=of
    )


CLAUDE: Final = "anthropic-messages"
ANSWERS: Final[dict[str, list[MessagePart]]] = {
    "openai-responses": [
        ThinkingPart(text="I look it up.", provider_state=item(1, "I look it up.")),
        ThinkingPart(text="", redacted=True, provider_state=item(2)),
        call("call_1"),
        call("call_2"),
    ],
    CLAUDE: [
        ThinkingPart(text="First. é", provider_state=state(CLAUDE, signature="c2lnMQ==")),
        ThinkingPart(
            text="",
            redacted=True,
            provider_state=state(CLAUDE, type="redacted_thinking", data="d2l0aA=="),
        ),
        ThinkingPart(text="Second 😀.", provider_state=state(CLAUDE, signature="c2lnMg==")),
        TextPart(text="I look it up."),
        call("toolu_1"),
        call("toolu_2"),
    ],
    "gemini": [
        ThinkingPart(text="Let me see.", provider_state=state("gemini", thoughtSignature="dGg=")),
        TextPart(text="I look it up.", provider_state=state("gemini", thoughtSignature="dHh0")),
        call("call_1", state("gemini", thoughtSignature="Y2FsbA==")),
        call("call_2"),
        call("call_3", state("gemini", thoughtSignature="Y2FsbDM=")),
    ],
    "openai-chat": [
        ThinkingPart(
            text="Hm",
            provider_state=state(
                "openai-chat",
                reasoning_details=[
                    {"type": "reasoning.text", "text": "Hm", "signature": "c2ln", "index": 0},
                    {"type": "reasoning.encrypted", "data": "ZW5j", "index": 1},
                ],
            ),
        ),
        TextPart(text="I look it up."),
        call("call_1"),
    ],
    "bedrock-converse": [
        ThinkingPart(text="Hm", provider_state=state("bedrock-converse", signature="c2ln")),
        ThinkingPart(
            text="",
            redacted=True,
            provider_state=state("bedrock-converse", redactedContent="YnI="),
        ),
        TextPart(text="I look it up."),
        call("tooluse_1"),
    ],
}
"""An answer of each protocol that has provider state."""


def decoded(dialect: AnyName, body: bytes) -> Message:
    assembler = MessageAssembler()
    decoder = Decoder(dialect, run_id="run", model_id=MODEL)
    for batch in (decoder.feed(body), decoder.close()):
        assembler.consume(batch)
    return assembler.snapshot()


def through(origin: AnyName, body: bytes, name: str, **more: object) -> tuple[AnyName, Body]:
    """Return the dialect and the next request of a client that got a stream of the origin."""
    target, turn, options = CLIENTS[name]
    source = Decoder(origin, run_id="run", model_id=MODEL)
    choices = cast("Any", {**options, **more})
    transcoder = Transcoder(source, target, as_bytes=False, envelope=True, **choices)
    events = [*transcoder.feed(body), *transcoder.close()]
    return target, json.loads(json.dumps(turn(events)))


def stream_of(origin: AnyName, parts: list[MessagePart]) -> bytes:
    encoder = Encoder(origin, hold=True)
    deltas = deltafold.message_deltas(Message.assistant(*parts))
    return b"".join(map(encoder.feed, deltas)) + encoder.close()


def rendered(messages: list[Message], dialect: str, model_id: str) -> Body:
    fields: dict[str, object] = {"model_id": model_id}
    if dialect == "openai-chat":
        fields |= {"replay_reasoning": "reasoning_details", "replay_reasoning_turns": "all"}
    config = dialect_of(dialect).config_class.model_validate(fields)
    body: Body = json.loads(json.dumps(dialect_of(dialect).render(messages, [], config).body))
    return body


def expected(message: Message, dialect: str) -> list[Body]:
    """Return the signed blocks of the request that an own client of the origin sends."""
    results = [Message.tool_result(call.tool_call_id, ANSWER) for call in message.tool_calls]
    return signed(rendered([Message.user(QUESTION), message, *results], dialect, MODEL))


def signed(value: object) -> list[Body]:
    """Return the objects with a secret, in their order."""
    return list(_signed(value))


def _signed(value: object) -> Iterator[Body]:
    if isinstance(value, dict):
        members = cast("Body", value)
        # Data without a type are those of a medium.
        names = SECRETS if "type" in members else SECRETS - {"data"}
        if any(isinstance(members.get(name), str) for name in names):
            yield members
        else:
            for inner in members.values():
                yield from _signed(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _signed(inner)


def secrets_of(blocks: list[Body]) -> set[str]:
    return {block[name] for block in blocks for name in SECRETS & block.keys()} - {
        "skip_thought_signature_validator"
    }


def carried(blocks: list[Body], name: str) -> list[Body]:
    """Return the signed blocks whose state a client carries."""
    if name == "chat with extra_content":
        # The message has one such member, and each call has one.
        others = [block for block in blocks if "functionCall" not in block]
        return [block for block in blocks if "functionCall" in block or block in others[:1]]
    if name in WITH_TEXT:
        return blocks
    return [block for block in blocks if "text" not in block or not is_gemini_text(block)]


def is_gemini_text(block: Body) -> bool:
    return "thoughtSignature" in block and not block.get("thought")


each_client = pytest.mark.parametrize("name", CLIENTS)
each_origin = pytest.mark.parametrize("origin", ANSWERS)


@each_client
@each_origin
def test_state_returns_to_its_origin_in_the_blocks_that_it_came_in(origin: str, name: str) -> None:
    body = stream_of(origin, ANSWERS[origin])
    target, request = through(origin, body, name)
    parsed = parse_request(request, target)
    wanted = carried(expected(decoded(origin, body), origin), name)
    assert len(wanted) >= 1
    if target == origin:
        return  # its own state needs no envelope
    assert MARK in json.dumps(request)
    assert signed(rendered(list(parsed.messages), origin, MODEL)) == wanted


@each_client
@each_origin
def test_state_goes_to_no_other_dialect_and_to_no_other_model(origin: str, name: str) -> None:
    body = stream_of(origin, ANSWERS[origin])
    target, request = through(origin, body, name)
    secrets = secrets_of(expected(decoded(origin, body), origin))
    messages = list(parse_request(request, target).messages)
    others = [(dialect, MODEL) for dialect in DIALECTS if dialect != origin]
    if target != origin:
        others.append((origin, "another-model"))
    for dialect, model_id in others:
        sent = json.dumps(rendered(messages, dialect, model_id))
        assert MARK not in sent
        if dialect != target:
            assert not [secret for secret in secrets if f'"{secret}"' in sent], dialect


@each_client
def test_state_of_another_model_is_marked_in_the_clients_own_protocol(name: str) -> None:
    target = CLIENTS[name][0]
    body = stream_of(target, ANSWERS[target])
    wanted = expected(decoded(target, body), target)
    if target != "openai-chat":  # whose state of a part is one, in whichever member it travels
        wanted = carried(wanted, name)
    _, request = through(target, body, name, own_models=["the-home-of-the-name"])
    messages = list(parse_request(request, target).messages)
    assert MARK in json.dumps(request)
    assert not secrets_of(wanted) & secrets_of(signed(request))
    assert signed(rendered(messages, target, MODEL)) == wanted
    sent = json.dumps(rendered(messages, target, "another-model"))
    assert MARK not in sent
    assert not [secret for secret in secrets_of(wanted) if f'"{secret}"' in sent]


@each_client
@pytest.mark.parametrize("own", [None, [MODEL, "another"]], ids=["every model", "this model"])
def test_state_of_the_clients_own_model_is_written_as_it_is(
    name: str, own: list[str] | None
) -> None:
    target = CLIENTS[name][0]
    body = stream_of(target, ANSWERS[target])
    request = through(target, body, name, own_models=own)
    assert request == through(target, body, name)
    assert MARK not in json.dumps(request)


@each_client
def test_a_whole_body_marks_the_state_of_another_model_too(name: str) -> None:
    target, _, options = CLIENTS[name]
    message = decoded(target, stream_of(target, ANSWERS[target]))
    choices = cast("Any", {**options, "envelope": True, "own_models": []})
    body = deltafold.encode_message(message, target, **choices).body
    secrets = secrets_of(expected(message, target))
    again = deltafold.fold(body, target)
    assert MARK.encode() in body
    assert not [secret for secret in secrets if f'"{secret}"'.encode() in body]
    assert [call.tool_name for call in again.tool_calls] == [
        call.tool_name for call in message.tool_calls
    ]
    assert again.text == message.text


def test_members_that_are_no_secrets_stay_the_clients_own() -> None:
    item = state("openai-responses", type="message", id="msg_1", role="assistant", phase="answer")
    asked = state("openai-responses", type="function_call", id="fc_1", call_id="call_1")
    message = Message.assistant(TextPart(text="Now.", provider_state=item), call("call_1", asked))
    body = deltafold.encode_message(message, "openai-responses", envelope=True, own_models=[]).body
    output = json.loads(body)["output"]
    assert [(one["id"], one.get("phase")) for one in output] == [
        ("msg_1", "answer"),
        ("fc_1", None),
    ]
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    message = Message.assistant(call("toolu_1", state(CLAUDE, caller=caller)))
    body = deltafold.encode_message(message, CLAUDE, envelope=True, own_models=[]).body
    assert json.loads(body)["content"][0]["caller"] == caller


@each_origin
def test_the_parts_are_those_of_the_origin(origin: AnyName) -> None:
    body = stream_of(origin, ANSWERS[origin])
    for name, (target, _, _) in CLIENTS.items():
        if target in {"openai-chat", origin}:
            continue
        parsed = parse_request(through(origin, body, name)[1], target)
        given = [part for message in parsed.messages for part in message.parts]
        said = [(part.kind, getattr(part, "text", None)) for part in given]
        wanted = [(part.kind, getattr(part, "text", None)) for part in decoded(origin, body).parts]
        kinds = {"text", "thinking", "tool_call"}
        spoken = [one for one in said if one[0] in kinds and one[1] not in {QUESTION, "Thanks", ""}]
        assert spoken == [one for one in wanted if one[1] != ""], name


@pytest.mark.parametrize("origin", sorted(ANSWERS.keys() - {"openai-chat"}))
def test_a_client_that_drops_unknown_members_loses_the_state_and_nothing_else(
    origin: AnyName,
) -> None:
    body = stream_of(origin, ANSWERS[origin])
    source = Decoder(origin, run_id="run", model_id=MODEL)
    encoder = Transcoder(
        source, "openai-chat", as_bytes=False, envelope=True, signatures="reasoning_details"
    )
    request = plain_chat([*encoder.feed(body), *encoder.close()])
    parsed = parse_request(request, "openai-chat")
    assert not secrets_of(signed(rendered(list(parsed.messages), origin, MODEL)))
    message = decoded(origin, body)
    assert [part.tool_call_id for one in parsed.messages for part in one.tool_calls] == [
        part.tool_call_id for part in message.tool_calls
    ]


@each_origin
def test_a_whole_body_carries_the_same_state_as_a_stream(origin: str) -> None:
    message = Message.assistant(*ANSWERS[origin])
    for name, (target, _, options) in CLIENTS.items():
        if target == origin:
            continue
        encoded = deltafold.encode_message(message, target, envelope=True, **cast("Any", options))
        parsed = parse_request(next_request(target, cast("Body", encoded.json)), target)
        blocks = signed(rendered(list(parsed.messages), origin, MODEL))
        assert blocks == carried(expected(message, origin), name), name


def next_request(target: str, body: Body) -> Body:
    """Return the request of a client that keeps the whole answer."""
    match target:
        case "anthropic-messages":
            turn = {"role": "assistant", "content": body["content"]}
            return {"model": "m", "max_tokens": 9, "messages": [turn]}
        case "openai-chat":
            return {"model": "m", "messages": [body["choices"][0]["message"]]}
        case "openai-responses":
            return {"model": "m", "input": body["output"]}
        case "gemini":
            return {"contents": [body["candidates"][0]["content"]]}
        case _:
            return {"messages": [body["output"]["message"]]}


@needs_corpus
@each_client
def test_the_state_of_every_recording_comes_back(name: str) -> None:
    count = 0
    for source in recordings():
        target = CLIENTS[name][0]
        if source.dialect not in ANSWERS or source.dialect == target or source.failed:
            continue
        if not any(part.provider_state for part in source.message.parts):
            continue
        message = with_spoken_parts(decoded(source.dialect, source.body))
        wanted = secrets_of(carried(expected(message, source.dialect), name))
        if not wanted:
            continue
        _, request = through(source.dialect, source.body, name)
        messages = list(parse_request(request, target).messages)
        assert secrets_of(signed(rendered(messages, source.dialect, MODEL))) == wanted, source.name
        for other in DIALECTS:
            if other != source.dialect:
                sent = json.dumps(rendered(messages, other, MODEL))
                assert MARK not in sent, (source.name, other)
                assert not [secret for secret in wanted if secret in sent], (source.name, other)
        count += 1
    assert count > 20


def with_spoken_parts(message: Message) -> Message:
    """Return a message without the blocks of its provider, which go to no other client."""
    spoken = [part for part in message.parts if part.kind in {"text", "thinking", "tool_call"}]
    return message.model_copy(update={"parts": spoken})


def sealed(members: object) -> str:
    return base64.b64encode(json.dumps(members, separators=(",", ":")).encode()).decode()


GOOD: Final[Mapping[str, object]] = {
    "deltafold": 1,
    "dialect": "gemini",
    "modelId": "m",
    "data": {"thoughtSignature": "c2ln"},
}
HOSTILE: Final = {
    "no base64": MARK + "!!!!",
    "cut off": sealed(GOOD)[:-3],
    "no UTF-8": base64.b64encode(b'{"deltafold":1,"x":"\xff\xff"}').decode(),
    "no JSON": base64.b64encode(b'{"deltafold":1,').decode(),
    "NaN": base64.b64encode(
        b'{"deltafold":1,"dialect":"d","modelId":"m","data":{"x":NaN}}'
    ).decode(),
    "a lone surrogate": sealed({**GOOD, "data": {"x": "\ud800"}}),
    "too deep": base64.b64encode(b'{"deltafold":1,"data":' + b"[" * 100_000).decode(),
    "two values": base64.b64encode(b'{"deltafold":1}{"deltafold":1}').decode(),
    "version 0": sealed({**GOOD, "deltafold": 0}),
    "version true": sealed({**GOOD, "deltafold": True}),
    "version as text": sealed({**GOOD, "deltafold": "1"}),
    "no dialect": sealed({**GOOD, "dialect": ""}),
    "a dialect that is no text": sealed({**GOOD, "dialect": ["gemini"]}),
    "a model that is no text": sealed({**GOOD, "modelId": None}),
    "data that are no object": sealed({**GOOD, "data": "x"}),
    "a block of a request": sealed({**GOOD, "data": {"block": {"text": "I pay you."}}}),
    "members of a request": sealed({**GOOD, "data": {"members": {"text": "I pay you."}}}),
    "a long text": MARK + "A" * 70_000_000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_text_that_is_no_envelope_stays_the_clients_own(case: str) -> None:
    text = HOSTILE[case]
    assert open_envelope(text) is None
    block = {"type": "thinking", "thinking": "Hm", "signature": text}
    turn = {"role": "assistant", "content": [block]}
    request = {"model": "m", "max_tokens": 9, "messages": [turn]}
    part = parse_request(request, CLAUDE).messages[0].parts[0]
    assert part.provider_state == {
        "dialect": CLAUDE,
        "modelId": "m",
        "data": {"signature": text},
    }


@pytest.mark.parametrize("value", [None, 7, ["x"], {"a": 1}, "", "c2ln"])
def test_other_values_are_no_envelopes(value: object) -> None:
    assert open_envelope(value) is None


NEWER: Final = sealed({"deltafold": 2, "sealed": "x"})
PLACES: Final[dict[str, tuple[str, Body]]] = {
    "signature": (
        CLAUDE,
        {"type": "thinking", "thinking": "Hm", "signature": NEWER},
    ),
    "data": (CLAUDE, {"type": "redacted_thinking", "data": NEWER}),
    "encrypted_content": (
        "openai-responses",
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": NEWER},
    ),
    "reasoning_details": (
        "openai-chat",
        {"reasoning_details": [{"type": "reasoning.text", "text": "", "signature": NEWER}]},
    ),
    "thinking_blocks": (
        "openai-chat",
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": NEWER}]},
    ),
    "extra_content": (
        "openai-chat",
        {"extra_content": {"google": {"thought_signature": NEWER}}},
    ),
    "extra_content of a call": (
        "openai-chat",
        {
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "f", "arguments": "{}"},
                    "extra_content": {"google": {"thought_signature": NEWER}},
                }
            ]
        },
    ),
    "thoughtSignature": ("gemini", {"text": "Hi", "thoughtSignature": NEWER}),
    "thoughtSignature of nothing": ("gemini", {"text": "", "thoughtSignature": NEWER}),
    "thoughtSignature of a call": (
        "gemini",
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": NEWER},
    ),
    "reasoningText": (
        "bedrock-converse",
        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": NEWER}}},
    ),
    "redactedContent": (
        "bedrock-converse",
        {"reasoningContent": {"redactedContent": NEWER}},
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_an_envelope_of_a_newer_version_is_left_out_with_a_note(place: str) -> None:
    dialect, block = PLACES[place]
    match dialect:
        case "openai-chat":
            request: Body = {"messages": [{"role": "assistant", "content": "Hi", **block}]}
        case "openai-responses":
            said = {"type": "message", "role": "assistant", "content": "Hi"}
            request = {"input": [block, said]}
        case "gemini":
            request = {"contents": [{"role": "model", "parts": [block]}]}
        case _:
            request = {"messages": [{"role": "assistant", "content": [block]}]}
    parsed = parse_request({"model": "m", **request}, cast("Any", dialect))
    assert [note["code"] for note in parsed.notes if note["code"] != "unknown_member"] == [
        "envelope_dropped"
    ]
    for target in DIALECTS:
        assert MARK not in json.dumps(rendered(list(parsed.messages), target, "m"))


def test_an_envelope_without_a_model_goes_to_every_model_of_its_dialect() -> None:
    opened = open_envelope(sealed({**GOOD, "modelId": ""}))
    assert opened is not None
    assert opened.state == {"dialect": "gemini", "data": {"thoughtSignature": "c2ln"}}


def test_envelopes_that_a_client_joined_are_told_apart() -> None:
    """Chat's own client joins the texts of an object that comes twice."""
    texts = [sealed({**GOOD, "data": {"signature": word}}) for word in ("a", "b")]
    extra = {"google": {"thought_signature": "".join(texts)}}
    message: Body = {"role": "assistant", "content": "Hi", "extra_content": extra}
    parsed = parse_request({"model": "m", "messages": [message]}, "openai-chat")
    states = [part.provider_state for part in parsed.messages[0].parts if part.provider_state]
    assert [cast("Body", one["data"]) for one in states] == [{"signature": "a"}, {"signature": "b"}]


def test_entries_of_a_vendor_stay_beside_envelopes() -> None:
    own = {"type": "reasoning.encrypted", "data": "ZW5j", "index": 0}
    details = [own, {"type": "reasoning.text", "text": "", "signature": sealed(GOOD), "index": 1}]
    message = {"role": "assistant", "content": "Hi", "reasoning_details": details}
    parsed = parse_request({"model": "m", "messages": [message]}, "openai-chat")
    body = rendered(list(parsed.messages), "openai-chat", "m")
    assert body["messages"][0]["reasoning_details"] == [own]


@pytest.mark.parametrize("text", ["", "First.", "First.\n\nSecond. And more."])
def test_reasoning_that_the_client_changed_keeps_the_state(text: str) -> None:
    body = stream_of(CLAUDE, ANSWERS[CLAUDE])
    _, request = through(CLAUDE, body, "chat with reasoning_details")
    request["messages"][1]["reasoning_content"] = text
    parsed = parse_request(request, "openai-chat")
    blocks = signed(rendered(list(parsed.messages), CLAUDE, MODEL))
    assert secrets_of(blocks) == {"c2lnMQ==", "d2l0aA==", "c2lnMg=="}
    assert "".join(block.get("thinking", "") for block in blocks) == text


TEXTS: Final = ("Hm", "\n\n", "\n\nA", "B\n\n", "é😀", "C\n\nD", " ", "\n")


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "messages"])
def test_each_piece_of_any_reasoning_gets_its_own_state_again(name: str, seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311 - made-up answers
    parts: list[MessagePart] = []
    for number in range(choose.randint(1, 5)):
        signature = base64.b64encode(f"{number}".encode()).decode()
        signed_with = state(CLAUDE, signature=signature)
        text = "".join(choose.choices(TEXTS, k=choose.randint(1, 3)))
        kind = choose.choice(["signed", "signed", "withheld", "unsigned", "text"])
        if kind == "withheld":
            hidden = state(CLAUDE, type="redacted_thinking", data=signature)
            parts.append(ThinkingPart(text="", redacted=True, provider_state=hidden))
        elif kind == "text":
            parts.append(TextPart(text=text))
        else:
            of = signed_with if kind == "signed" else None
            parts.append(ThinkingPart(text=text, provider_state=of))
    body = stream_of(CLAUDE, parts)
    target, request = through(CLAUDE, body, name)
    wanted = carried(expected(decoded(CLAUDE, body), CLAUDE), name)
    given = signed(rendered(list(parse_request(request, target).messages), CLAUDE, MODEL))
    assert given == wanted


def test_a_signature_of_gemini_takes_its_own_text_from_one_that_the_client_joined() -> None:
    end = sealed({**GOOD, "dialect": CLAUDE, "data": {"signature": "c2ln"}, "thinking": [3, 6]})
    parts = [
        {"text": "OneTwo", "thought": True},
        {"text": "", "thought": True, "thoughtSignature": end},
    ]
    request = {"contents": [{"role": "model", "parts": parts}]}
    (message,) = parse_request(request, "gemini").messages
    assert [(part.kind, getattr(part, "text", "")) for part in message.parts] == [
        ("thinking", "One"),
        ("thinking", "Two"),
    ]
    assert signed(rendered([message], CLAUDE, "m")) == [
        {"type": "thinking", "thinking": "Two", "signature": "c2ln"}
    ]


def test_members_of_the_clients_message_do_not_go_to_the_origin() -> None:
    details = [{"type": "reasoning.text", "text": "", "signature": sealed(GOOD)}]
    message = {"role": "assistant", "content": "", "x_own": 1, "reasoning_details": details}
    messages = list(parse_request({"model": "m", "messages": [message]}, "openai-chat").messages)
    assert "x_own" not in json.dumps(rendered(messages, "gemini", "m"))
    assert rendered(messages, "openai-chat", "m")["messages"][0]["x_own"] == 1


def test_members_beside_an_envelope_are_noted() -> None:
    block: Body = {
        "thoughtSignature": sealed({**GOOD, "dialect": CLAUDE}),
        "text": "Hi",
        "videoMetadata": {},
    }
    request = {"contents": [{"role": "model", "parts": [block]}]}
    notes = parse_request(request, "gemini", model_id="m").notes
    assert [(note["code"], "videoMetadata" in str(note["message"])) for note in notes] == [
        ("member_dropped", True)
    ]
