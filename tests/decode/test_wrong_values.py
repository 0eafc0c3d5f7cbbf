"""Members and blocks that were read as something else: each has its own value now."""

import json
from base64 import b64encode
from typing import Any, Final, cast

import pytest

import deltafold
from deltafold import ErrorCode, FinishReason, Message, ModelError, ProviderPart, ToolCallPart
from deltafold.dialects import DIALECTS
from event_stream import event as frame

Wire = dict[str, Any]

COUNTS: Final = {"total_input_tokens": 10, "total_output_tokens": 20, "total_tokens": 30}


def interactions(*events: Wire) -> bytes:
    """Write events of the Interactions API."""
    named = [(one["event_type"], json.dumps(one)) for one in events]
    return b"".join(f"event: {name}\ndata: {text}\n\n".encode() for name, text in named)


def created(**more: Any) -> Wire:  # noqa: ANN401 - members of any type
    interaction = {"id": "int_1", "object": "interaction", "model": "g", "status": "in_progress"}
    return {"event_type": "interaction.created", "interaction": interaction, **more}


def output(text: str, index: int = 0, **step: Any) -> list[Wire]:  # noqa: ANN401 - as above
    made: list[Wire] = [
        {
            "event_type": "step.start",
            "index": index,
            "step": {"type": "model_output", **step},
        }
    ]
    if text:
        delta = {"type": "text", "text": text}
        made.append({"event_type": "step.delta", "index": index, "delta": delta})
    return [*made, {"event_type": "step.stop", "index": index}]


COMPLETED: Final[Wire] = {
    "event_type": "interaction.completed",
    "interaction": {"id": "int_1", "object": "interaction", "status": "completed"},
}


def test_counts_before_the_identity_do_not_hide_it() -> None:
    early = created(metadata={"usage": {"total_input_tokens": 10}})
    message = deltafold.fold(interactions(early, *output("Hi"), COMPLETED), "gemini-interactions")
    assert (message.meta.response_id, message.meta.model_id) == ("int_1", "g")


def test_counts_of_a_step_and_of_a_status_are_read() -> None:
    status: Wire = {
        "event_type": "interaction.status_update",
        "interaction_id": "int_1",
        "status": "completed",
    }
    begun, said, stop = output("Hi")
    for events in (
        [created(), begun, said, stop | {"usage": COUNTS}, status],
        [created(), begun, said, stop, status | {"usage": COUNTS}],
        [begun, said, stop, status | {"usage": COUNTS}],
    ):
        usage = deltafold.fold(interactions(*events), "gemini-interactions").meta.usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens) == (10, 20)


def test_a_failed_output_is_no_empty_success() -> None:
    failed = output("", error={"code": 8, "message": "step failed"})
    with pytest.raises(ModelError, match="step failed") as caught:
        deltafold.fold(interactions(created(), *failed, COMPLETED), "gemini-interactions")
    assert caught.value.provider_code == "8"
    # Another output shows that the model went on.
    went_on = interactions(created(), *failed, *output("Hi", 1), COMPLETED)
    message = deltafold.fold(went_on, "gemini-interactions")
    assert message.text == "Hi"
    assert [one["code"] for one in message.meta.warnings] == ["failed_step"]


def messages_events(*events: Wire) -> bytes:
    start: Wire = {
        "type": "message_start",
        "message": {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": []},
    }
    end: list[Wire] = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ]
    made = [start, *events, *end]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in made)


@pytest.mark.parametrize("kind", ["connector_text", "a_kind_of_tomorrow"])
def test_a_block_with_text_and_a_signature_is_one_block(kind: str) -> None:
    block = {"type": kind, "text": "", "signature": ""}
    deltas = [
        {"type": "text_delta", "text": "from the "},
        {"type": "text_delta", "text": "connector"},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "SIG"},
    ]
    events: list[Wire] = [{"type": "content_block_start", "index": 0, "content_block": block}]
    events += [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
    events += [{"type": "content_block_stop", "index": 0}]
    message = deltafold.fold(messages_events(*events), "anthropic-messages")
    (part,) = message.parts
    assert isinstance(part, ProviderPart)
    whole = {"type": kind, "text": "from the connector", "thinking": "hm", "signature": "SIG"}
    assert part.block == whole
    assert not message.meta.warnings
    row = DIALECTS["anthropic-messages"]
    config = row.config_class(model_id="c")
    body = row.render([Message.user("q"), message, Message.user("q")], [], config).body
    sent = cast("list[Wire]", body["messages"])
    assert sent[1]["content"] == [whole]


def responses_events(*events: Wire) -> bytes:
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def shell(*commands: str) -> list[Wire]:
    item: Wire = {"type": "shell_call", "id": "sh", "call_id": "c", "action": {"commands": []}}
    place = {"output_index": 0}
    made: list[Wire] = [{"type": "response.output_item.added", **place, "item": item}]
    pieces = [(at, piece) for at, one in enumerate(commands) for piece in (one[:2], one[2:])]
    kind = "response.shell_call_command.delta"
    made += [{"type": kind, **place, "command_index": at, "delta": piece} for at, piece in pieces]
    return made


@pytest.mark.parametrize("commands", [["ls -l"], ["ls -l", "pwd"], ['echo "a"', "b\\c", "d"]])
def test_a_cut_call_of_a_shell_keeps_its_commands_apart(commands: list[str]) -> None:
    with pytest.raises(ModelError) as caught:
        deltafold.fold(responses_events(*shell(*commands)), "openai-responses")
    assert caught.value.code is ErrorCode.CONNECTION_LOST
    partial = caught.value.partial_message
    assert partial is not None
    (part,) = partial.parts
    assert isinstance(part, ProviderPart)
    assert cast("Wire", part.block["action"])["commands"] == commands
    assert "command" not in part.block
    assert partial.client_actions == []


def titan(*chunks: Wire) -> bytes:
    encoded = [b64encode(json.dumps(chunk).encode()).decode() for chunk in chunks]
    return b"".join(frame("chunk", {"bytes": data}) for data in encoded)


def test_a_guardrail_does_not_make_a_cut_a_success() -> None:
    guarded: Wire = {
        "outputText": "Once",
        "index": 0,
        "inputTextTokenCount": 28,
        "amazon-bedrock-guardrailAction": "INTERVENED",
    }
    with pytest.raises(ModelError) as caught:
        deltafold.fold(titan(guarded), "bedrock-invoke")
    assert caught.value.code is ErrorCode.CONNECTION_LOST
    counted: Wire = {**guarded, "amazon-bedrock-invocationMetrics": {"inputTokenCount": 28}}
    last: Wire = {"amazon-bedrock-invocationMetrics": {}, "outputText": ""}
    for chunks in ([counted], [guarded, last]):
        message = deltafold.fold(titan(*chunks), "bedrock-invoke")
        assert message.meta.finish_reason is FinishReason.CONTENT_FILTER


def test_a_compacted_conversation_says_nothing_and_goes_back() -> None:
    items: list[Wire] = [
        {
            "type": "message",
            "id": "m1",
            "role": "user",
            "status": "completed",
            "content": [
                {"type": "input_text", "text": "What is high tide?"},
                {"type": "input_image", "image_url": "https://x.example/a.png", "detail": "auto"},
            ],
        },
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "ENC"},
    ]
    body: Wire = {"id": "r", "object": "response.compaction", "created_at": 1, "output": items}
    message = deltafold.fold(json.dumps(body).encode(), "openai-responses")
    assert message.text == ""
    assert [part.block for part in message.parts if isinstance(part, ProviderPart)] == items
    row = DIALECTS["openai-responses"]
    sent = row.render([message, Message.user("And now?")], [], row.config_class(model_id="m")).body
    assert cast("list[Wire]", sent["input"])[:2] == items


def test_a_generated_image_can_be_reached_and_goes_back_as_its_item() -> None:
    picture = b64encode(b"\x89PNG").decode()
    item: Wire = {
        "type": "image_generation_call",
        "id": "ig_1",
        "status": "completed",
        "output_format": "webp",
        "result": picture,
    }
    body: Wire = {"id": "r", "object": "response", "status": "completed", "output": [item]}
    message = deltafold.fold(json.dumps(body).encode(), "openai-responses")
    (image,) = message.images
    assert (image.mime_type, image.data) == ("image/webp", picture)
    (part,) = message.parts
    assert isinstance(part, ProviderPart)
    assert part.block == item
    others = ProviderPart(dialect="openai-responses", block={"type": "x", "result": picture})
    assert Message.assistant(others, ToolCallPart(tool_call_id="c", tool_name="f")).images == []


def harness(*events: tuple[str, Wire]) -> bytes:
    return b"".join(frame(name, payload) for name, payload in events)


def turn(role: str, text: str, reason: str, counts: tuple[int, int] | None) -> list[Any]:
    given, made = counts or (0, 0)
    usage = {"inputTokens": given, "outputTokens": made, "totalTokens": given + made}
    said: list[Any] = [("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}})]
    return [
        ("messageStart", {"role": role}),
        *(said if text else []),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": reason}),
        *([("metadata", {"usage": usage})] if counts else []),
    ]


@pytest.mark.parametrize("is_cut", [False, True])
def test_the_counts_of_an_agent_at_the_provider_are_added(*, is_cut: bool) -> None:
    turns = [
        *turn("assistant", "one ", "tool_use", (10, 20)),
        *turn("user", "", "tool_result", None),
        *turn("assistant", "two", "end_turn", (100, 50)),
    ]
    body = harness(*(turns[:-2] if is_cut else turns))
    if is_cut:
        with pytest.raises(ModelError) as caught:
            deltafold.fold(body, "bedrock-converse")
        assert caught.value.partial_message is not None
        assert caught.value.partial_message.text == "one two"
        return
    message = deltafold.fold(body, "bedrock-converse")
    usage = message.meta.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (110, 70)
    assert message.meta.finish_reason is FinishReason.STOP
    assert message.meta.warnings == []
    assert message.text == "one two"


def of_agents(*, is_cut: bool) -> bytes:
    """Write an answer whose agent started another one, which spoke first."""
    events: list[Wire] = []
    items: list[Wire] = []
    for place, (name, text) in enumerate([("/root/other", "draft"), ("/root", "answer")]):
        item: Wire = {
            "type": "message",
            "id": f"m{place}",
            "role": "assistant",
            "agent": {"agent_name": name},
        }
        where: Wire = {"item_id": f"m{place}", "output_index": place}
        done: Wire = {**item, "content": [{"type": "output_text", "text": text, "annotations": []}]}
        items.append(done)
        added: Wire = {"type": "response.output_item.added", "output_index": place}
        delta: Wire = {"type": "response.output_text.delta", "delta": text, "content_index": 0}
        events.append(added | {"item": {**item, "content": []}})
        events.append(delta | where)
        if is_cut:
            break
        whole: Wire = {"type": "response.output_text.done", "text": text, "content_index": 0}
        ended: Wire = {"type": "response.output_item.done", "output_index": place, "item": done}
        events += [whole | where, ended]
    response: Wire = {"id": "r", "status": "completed", "output": items}
    if not is_cut:
        events.append({"type": "response.completed", "response": response})
    named = [(one["type"], json.dumps(one)) for one in events]
    return b"".join(f"event: {name}\ndata: {text}\n\n".encode() for name, text in named)


def test_the_text_of_another_agent_is_not_that_of_the_answer() -> None:
    message = deltafold.fold(of_agents(is_cut=False), "openai-responses")
    assert message.text == "answer"
    part = message.parts[0]
    assert isinstance(part, ProviderPart)
    assert cast("Wire", part.block["agent"])["agent_name"] == "/root/other"
    assert message.meta.warnings == []
    with pytest.raises(ModelError) as caught:
        deltafold.fold(of_agents(is_cut=True), "openai-responses")
    partial = caught.value.partial_message
    assert partial is not None
    assert partial.text == ""
    assert "draft" in json.dumps(cast("ProviderPart", partial.parts[0]).block)


def test_the_name_of_a_call_in_its_last_event_is_no_unread_member() -> None:
    item: Wire = {
        "type": "function_call",
        "id": "f",
        "call_id": "c",
        "name": "n",
        "arguments": "{}",
    }
    whole: Wire = {"item_id": "f", "output_index": 0, "name": "n", "arguments": "{}"}
    events: list[Wire] = [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "arguments": ""},
        },
        {"type": "response.function_call_arguments.done", **whole},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
    ]
    body = b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in events)
    assert deltafold.fold(body, "openai-responses").meta.warnings == []
