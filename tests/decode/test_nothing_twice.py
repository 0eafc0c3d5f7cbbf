"""Content that a gateway or a server repeats is written once, and what it carries beside is read.

Sources: docs/protocols/decoding.md#g7, docs/protocols/decoding.md#g15.
"""

import json
from typing import Final

import pytest

from deltafold import Message, TextPart, ThinkingPart
from protocol_bodies import CHAT, DONE, Wire, chunk, event, finish
from speakers import GEMINI, RESPONSES, gemini, typed
from splits import everywhere, usage_of, warning_codes


def texts_of(message: Message) -> list[TextPart]:
    return [part for part in message.parts if isinstance(part, TextPart)]


def text_of(message: Message) -> list[str]:
    return [part.text for part in texts_of(message)]


# Responses.


def item(text: str | None = None, **members: object) -> Wire:
    content: list[Wire] = []
    if text is not None:
        content.append({"type": "output_text", "text": text, "annotations": []})
    return {"type": "message", "id": "m_1", "role": "assistant", "content": content, **members}


def whole_item(text: str, index: int, *, streams: bool) -> bytes:
    at = {"output_index": index, "content_index": 0, "item_id": "m_1"}
    body = typed("response.output_item.added", output_index=index, item=item())
    if streams:
        body += typed("response.output_text.delta", **at, delta=text)
    body += typed("response.output_text.done", **at, text=text)
    return body + typed("response.output_item.done", output_index=index, item=item(text))


def completed(*output: Wire) -> bytes:
    response = {"id": "r", "status": "completed", "output": output}
    return typed("response.completed", response=response)


@pytest.mark.parametrize("announced", [True, False])
def test_a_message_that_comes_again_under_its_id_is_written_once(announced: bool) -> None:
    again = whole_item("Tide", 2, streams=False)
    if not announced:
        again = typed("response.output_item.done", output_index=2, item=item("Tide"))
    body = whole_item("Tide", 0, streams=True) + again + completed(item("Tide"))
    _, message = everywhere(RESPONSES, body)
    assert text_of(message) == ["Tide"]


def test_another_text_under_the_same_id_is_content() -> None:
    body = whole_item("Tide", 0, streams=True) + whole_item("Ebb", 1, streams=False)
    _, message = everywhere(RESPONSES, body + completed())
    assert text_of(message) == ["Tide", "Ebb"]


def test_equal_messages_of_a_whole_body_are_two() -> None:
    body = {"object": "response", "id": "r", "status": "completed", "output": [item("Tide")] * 2}
    _, message = everywhere(RESPONSES, json.dumps(body).encode())
    assert text_of(message) == ["Tide", "Tide"]


PIECES: Final = ("The tide ", "is high ", "at noon.")


@pytest.mark.parametrize("sums", [True, False])
def test_a_part_that_is_added_again_under_its_index_is_written_once(sums: bool) -> None:
    at: Wire = {"output_index": 0, "content_index": 0, "item_id": "m_1"}
    part = {"type": "output_text", "text": ""}
    body = typed("response.output_item.added", output_index=0, item=item())
    said = ""
    for piece in PIECES:
        said += piece
        body += typed("response.content_part.added", **at, part=part)
        body += typed("response.output_text.delta", **at, delta=piece)
        body += typed("response.output_text.done", **at, text=said if sums else piece)
    body += typed("response.output_item.done", output_index=0, item=item(said))
    _, message = everywhere(RESPONSES, body + completed(item(said)))
    assert message.text == said
    assert not warning_codes(message)


# Counts that contradict the total.


def test_thoughts_inside_the_candidates_are_read_by_the_total() -> None:
    counts: Wire = {"promptTokenCount": 339, "candidatesTokenCount": 83, "thoughtsTokenCount": 39}
    body = gemini({"text": "Tide"}, finishReason="STOP")
    _, message = everywhere(
        GEMINI, body + event({"usageMetadata": {**counts, "totalTokenCount": 422}})
    )
    usage = usage_of(message)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (339, 83, 422)
    assert warning_codes(message) == ["usage_read_by_total"]
    _, message = everywhere(
        GEMINI, body + event({"usageMetadata": {**counts, "totalTokenCount": 461}})
    )
    assert usage_of(message).output_tokens == 122
    assert not warning_codes(message)


# What gateways carry beside the text of Chat.

THINKING: Final[Wire] = {"type": "thinking", "thinking": "Hm, tide.", "signature": "c2ln"}


def portkey(streams: bool) -> bytes:
    if not streams:
        answer = {
            "content": "17:42",
            "content_blocks": [THINKING, {"type": "text", "text": "17:42"}],
        }
        return json.dumps({"choices": [{"message": answer, "finish_reason": "stop"}]}).encode()
    deltas: list[Wire] = [
        {"thinking": "", "signature": ""},
        {"thinking": "Hm, "},
        {"thinking": "tide."},
        {"signature": "c2ln"},
    ]
    body = b"".join(chunk({"content_blocks": [{"index": 0, "delta": delta}]}) for delta in deltas)
    text: Wire = {"content": "17:42", "content_blocks": [{"index": 1, "delta": {"text": "17:42"}}]}
    return body + chunk(text) + finish("stop") + DONE


@pytest.mark.parametrize("streams", [True, False])
def test_thinking_in_the_blocks_of_portkey_is_kept_with_its_signature(streams: bool) -> None:
    _, message = everywhere(CHAT, portkey(streams))
    thinking, text = message.parts
    assert isinstance(thinking, ThinkingPart)
    assert (thinking.text, message.text) == ("Hm, tide.", "17:42")
    assert text == texts_of(message)[0]
    assert thinking.provider_state is not None
    assert thinking.provider_state["data"] == {"thinking_blocks": [THINKING]}


def test_redacted_thinking_in_the_blocks_of_portkey_is_kept() -> None:
    block = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    answer = {"content": "17:42", "content_blocks": [block]}
    body = json.dumps({"choices": [{"message": answer, "finish_reason": "stop"}]}).encode()
    _, message = everywhere(CHAT, body)
    thinking = message.parts[0]
    assert isinstance(thinking, ThinkingPart)
    assert thinking.provider_state is not None
    assert thinking.provider_state["data"] == {"thinking_blocks": [block]}


CITATION: Final[Wire] = {"type": "char_location", "cited_text": "17:42", "document_index": 0}


@pytest.mark.parametrize("streams", [True, False])
def test_citations_of_litellm_are_annotations(streams: bool) -> None:
    if streams:
        fields: Wire = {"provider_specific_fields": {"citation": CITATION}}
        body = chunk({"content": "", **fields}) + chunk({"content": "17:42"}) + chunk(fields)
        body += finish("stop") + DONE
    else:
        fields = {"provider_specific_fields": {"citations": [[CITATION], None, [CITATION]]}}
        choice = {"message": {"content": "17:42", **fields}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice]}).encode()
    _, message = everywhere(CHAT, body)
    assert text_of(message) == ["17:42"]
    assert texts_of(message)[0].annotations == [CITATION, CITATION]
