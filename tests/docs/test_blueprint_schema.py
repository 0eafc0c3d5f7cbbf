"""Messages and deltas, by the words of docs/blueprint.md#message-schema."""

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

import pytest
from pydantic import ValidationError

from deltafold import (
    CONTRACT_VERSION,
    ContractError,
    Decoder,
    ErrorCode,
    FileRefPart,
    ImagePart,
    Message,
    MessageAssembler,
    MessageDelta,
    Meta,
    ModelError,
    OpenAIChatModel,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.conversation import ConversationLog, Session, SessionError, ToolResultsEntry
from deltafold.testing import Recording, ReplayServer
from wires import CHAT

PARTS: dict[str, Any] = {
    "text": TextPart(text="a"),
    "thinking": ThinkingPart(text="a"),
    "tool_call": ToolCallPart(tool_call_id="c", tool_name="f", arguments={}),
    "tool_result": ToolResultPart(tool_call_id="c", content="a"),
    "image": ImagePart(mime_type="image/png", url="https://a.org/a.png"),
    "file_ref": FileRefPart(path="a.pdf"),
}


Delta: TypeAlias = tuple[str, dict[str, object]]


def folded(*deltas: Delta) -> MessageAssembler:
    assembler = MessageAssembler()
    start: Delta = ("start", {"modelId": "m", "requestId": "r"})
    for seq, (kind, payload) in enumerate((start, *deltas), start=1):
        assembler.consume(MessageDelta("run", seq, kind, payload))
    return assembler


def call(call_id: str, *pieces: str) -> list[Delta]:
    """Return the deltas of a call."""
    wires: list[dict[str, object]] = [{"argsTextDelta": piece} for piece in pieces]
    args: list[Delta] = [("tool_call_args", {"toolCallId": call_id, **wire}) for wire in wires]
    start: Delta = ("tool_call_start", {"toolCallId": call_id, "toolName": "f"})
    return [start, *args, ("tool_call_end", {"toolCallId": call_id})]


DONE: Delta = ("done", {"finishReason": "stop"})


# Messages.


@pytest.mark.parametrize(
    ("role", "kinds"),
    [
        ("system", {"text", "thinking"}),
        ("user", {"text", "image", "file_ref"}),
        ("assistant", {"text", "thinking", "tool_call", "image", "file_ref"}),
        ("tool", {"tool_result"}),
    ],
)
def test_a_role_holds_its_kinds_and_no_others(role: str, kinds: Iterable[str]) -> None:
    for kind, part in PARTS.items():
        if kind in kinds:
            assert Message(role=Role(role), parts=[part]).parts == [part]
        else:
            with pytest.raises(ValidationError, match=kind):
                Message(role=Role(role), parts=[part])


def test_parts_keep_their_order() -> None:
    kinds = ["text", "image", "text", "file_ref", "image"]
    message = Message(role=Role.USER, parts=[PARTS[kind] for kind in kinds])
    read = Message.from_json(message.to_json())
    assert [str(part.kind) for part in read.parts] == kinds


def test_a_tool_message_has_one_result_for_each_call() -> None:
    results = [ToolResultPart(tool_call_id=one, content="a") for one in ("a", "b")]
    message = Message(role=Role.TOOL, parts=list(results))
    assert [part.tool_call_id for part in message.parts if isinstance(part, ToolResultPart)] == [
        "a",
        "b",
    ]
    with pytest.raises(ValidationError, match="a"):
        Message(role=Role.TOOL, parts=[results[0], results[0]])


def test_a_call_has_its_arguments_and_the_text_of_them() -> None:
    payload: dict[str, object] = {
        "toolCallId": "c",
        "toolName": "f",
        "arguments": {"q": 1},
        "rawArgsText": '{"q":1}',
    }
    wire: dict[str, object] = {
        "role": "assistant",
        "parts": [{"kind": "tool_call", "payload": payload}],
    }
    (part,) = Message.from_dict(wire).parts
    assert isinstance(part, ToolCallPart)
    assert (part.tool_call_id, part.tool_name, part.arguments) == ("c", "f", {"q": 1})
    assert part.raw_args_text == '{"q":1}'


@pytest.mark.parametrize("content", ["done", {"a": 1}, [TextPart(text="done")]])
def test_a_result_is_text_an_object_or_parts(content: Any) -> None:  # noqa: ANN401
    part = ToolResultPart(tool_call_id="c", is_error=True, content=content)
    message = Message.from_json(Message(role=Role.TOOL, parts=[part]).to_json())
    (read,) = message.parts
    assert isinstance(read, ToolResultPart)
    assert (read.is_error, read.content) == (True, content)


def test_an_image_has_data_or_an_address_and_a_file_has_a_path() -> None:
    data = ImagePart(mime_type="image/png", data="aGk=")
    address = ImagePart(mime_type="image/png", url="https://a.org/a.png")
    file = FileRefPart(path="a.pdf", mime_type="application/pdf", size=7)
    message = Message(role=Role.USER, parts=[data, address, file])
    assert Message.from_json(message.to_json()).parts == [data, address, file]
    for wrong in ({"mime_type": "image/png"}, {"mime_type": "image/png", "data": "a", "url": "b"}):
        with pytest.raises(ValidationError):
            ImagePart.model_validate(wrong)


def test_every_message_has_an_id_that_its_json_keeps() -> None:
    first, second = Message.user("a"), Message.user("a")
    assert first.id != second.id
    assert Message.from_json(first.to_json()).id == first.id


# Folding.


def test_the_first_delta_is_start() -> None:
    with pytest.raises(ContractError, match="start"):
        MessageAssembler().consume(MessageDelta("run", 1, "text", {"textDelta": "a"}))


def test_text_and_thinking_are_joined_in_their_order() -> None:
    assembler = folded(
        ("thinking", {"textDelta": "let me "}),
        ("thinking", {"textDelta": "see"}),
        ("text", {"textDelta": "It "}),
        ("text", {"textDelta": "is"}),
        DONE,
    )
    assert isinstance(assembler, MessageAssembler)
    parts = assembler.build_final_message().parts
    assert parts == [ThinkingPart(text="let me see"), TextPart(text="It is")]


def test_pieces_of_arguments_are_joined_for_each_call() -> None:
    first, second = call("a", '{"q"', ": 1}"), call("b", '{"q": ', "2}")
    mixed = [delta for pair in zip(first, second, strict=True) for delta in pair]
    calls = folded(*mixed, DONE).build_final_message().tool_calls
    assert [(one.tool_call_id, one.arguments) for one in calls] == [
        ("a", {"q": 1}),
        ("b", {"q": 2}),
    ]
    assert all(isinstance(one, ToolCallPart) for one in calls)


def test_arguments_that_do_not_parse_are_kept_and_marked_in_meta() -> None:
    message = folded(*call("a", '{"q": nonsense}'), DONE).build_final_message()
    (made,) = message.tool_calls
    assert (made.raw_args_text, made.arguments) == ('{"q": nonsense}', None)
    assert isinstance(message.meta, Meta)
    (error,) = message.meta.parse_errors or []
    assert error["toolCallId"] == "a"


def test_usage_is_in_the_meta_of_the_message() -> None:
    used: dict[str, object] = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cost": 0.5}
    meta = folded(("usage", used), DONE).build_final_message().meta
    assert isinstance(meta, Meta)
    assert meta.usage is not None
    assert (meta.usage.input_tokens, meta.usage.output_tokens, meta.usage.total_tokens) == (3, 4, 7)
    assert meta.usage.cost == 0.5


def test_an_error_leaves_no_final_message() -> None:
    assembler = folded(("text", {"textDelta": "half"}), ("error", {"errorCode": "timeout"}))
    with pytest.raises(ModelError) as raised:
        assembler.build_final_message()
    assert raised.value.partial_message is not None
    assert raised.value.partial_message.text == "half"


def test_an_error_has_a_code_and_perhaps_a_message_and_whether_to_try_again() -> None:
    bare = folded(("error", {"errorCode": "timeout"})).get_error()
    full = folded(
        ("error", {"errorCode": "invalid_request", "message": "no key", "retryable": False})
    ).get_error()
    assert bare is not None
    assert full is not None
    assert (bare.code, bare.retryable) == (ErrorCode.TIMEOUT, True)
    assert (full.code, full.retryable) == (ErrorCode.INVALID_REQUEST, False)
    assert "no key" in str(full)


def test_the_provider_s_own_data_change_nothing_in_the_message() -> None:
    def message(provider_raw: bool) -> dict[str, object]:
        decoder = Decoder("openai-chat", run_id="run", provider_raw=provider_raw)
        assembler = MessageAssembler()
        deltas = [*decoder.feed(CHAT), *decoder.close()]
        assert any(delta.provider_raw for delta in deltas) == provider_raw
        for delta in deltas:
            assembler.consume(delta)
        wire = assembler.build_final_message().to_dict()
        return {name: wire[name] for name in ("role", "parts")}

    assert message(provider_raw=True) == message(provider_raw=False)


def test_a_body_that_was_not_streamed_is_a_message_too() -> None:
    answer = {"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
    body = Recording.of(json.dumps({"choices": [answer]}).encode(), content_type="application/json")
    with ReplayServer([body]) as server:
        model = OpenAIChatModel({"model_id": "g"}, base_url=f"{server.url}/v1", api_key="k")
        with model:
            message = model.send_message_sync("Hello", stream=False)
    assert (message.role, message.text) == (Role.ASSISTANT, "Hi")


def test_a_kind_that_the_contract_does_not_have_is_refused() -> None:
    with pytest.raises((ContractError, ValueError), match="sound"):
        MessageDelta("run", 1, "sound", {})
    with pytest.raises(ValidationError, match="sound"):
        Message.from_dict({"role": "user", "parts": [{"kind": "sound", "payload": {}}]})
    major, minor = CONTRACT_VERSION.split(".")
    assert (int(major), int(minor) > 0) == (1, True)


# Calls and results.


def test_the_id_of_a_call_is_unique_in_its_run() -> None:
    made = Message(role=Role.ASSISTANT, run_id="1", parts=[PARTS["tool_call"]])
    other = Message(role=Role.ASSISTANT, run_id="2", parts=[PARTS["tool_call"]])
    session = Session(messages=[made, other])
    with pytest.raises(SessionError, match="used before in this run"):
        session.append(made)
    with pytest.raises(ContractError):
        folded(*call("a", "{}"), *call("a", "{}"))


def test_a_result_follows_the_call_that_it_answers() -> None:
    result = Message(role=Role.TOOL, parts=[PARTS["tool_result"]])
    session = Session()
    with pytest.raises(SessionError, match="never made"):
        session.append(result)
    session.append(Message(role=Role.ASSISTANT, parts=[PARTS["tool_call"]]))
    session.append(result)
    assert session.open_calls == []


def test_a_result_is_stored_as_the_entry_of_a_message() -> None:
    log = ConversationLog()
    log.append_message(Message(role=Role.ASSISTANT, parts=[PARTS["tool_call"]]))
    log.append_message(Message(role=Role.TOOL, parts=[PARTS["tool_result"]]))
    stored = ConversationLog.from_json(log.to_json()).entries[-1]
    assert isinstance(stored, ToolResultsEntry)
    assert stored.message is not None
    assert stored.message.parts == [PARTS["tool_result"]]
