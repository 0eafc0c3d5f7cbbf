"""An answer that a streaming client of Gemini sends back in pieces is one message elsewhere."""

from deltafold import Message, TextPart, ThinkingPart, ToolCallPart
from deltafold.gateway.chunks import whole_answers

CALL = ToolCallPart(tool_call_id="a", tool_name="f", raw_args_text="{}")
SIGNED: dict[str, object] = {
    "dialect": "gemini",
    "modelId": "gemini-3-pro",
    "data": {"thoughtSignature": "c2ln"},
}
THOUGHT: dict[str, object] = {"dialect": "gemini", "data": {"thought": True}}


def joined(*answers: Message) -> list[Message]:
    return list(whole_answers([Message.user("Go"), *answers, Message.user("More")]))[1:-1]


def test_a_text_that_was_cut_within_a_word_is_one_text() -> None:
    pieces = [Message.assistant(text) for text in ("The t", "ide at ", "five.", "")]
    (answer,) = joined(*pieces, Message.assistant(CALL))
    assert answer.parts == [TextPart(text="The tide at five."), CALL]


def test_reasoning_and_signed_parts_keep_their_places() -> None:
    signed = ThinkingPart(text="Sure.", provider_state=SIGNED)
    (answer,) = joined(
        Message.assistant(ThinkingPart(text="thinki", provider_state=THOUGHT)),
        Message.assistant(ThinkingPart(text="ng", provider_state=THOUGHT)),
        Message.assistant(signed),
        Message.assistant("Yes"),
    )
    assert [part.kind for part in answer.parts] == ["thinking", "thinking", "text"]
    assert answer.parts[0] == ThinkingPart(text="thinking", provider_state=THOUGHT)
    assert answer.parts[1] is signed


def test_other_messages_stay_the_same_objects() -> None:
    messages = [
        Message.user("a"),
        Message.user("b"),
        Message.assistant("c"),
        Message.tool_result("a", "d"),
    ]
    assert all(one is other for one, other in zip(whole_answers(messages), messages, strict=True))
