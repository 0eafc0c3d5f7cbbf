"""The end of an answer decides, not its first sign.

Sources: docs/protocols/decoding.md#g14, docs/protocols/decoding.md#g15.
"""

import json
from typing import Final

import pytest

from deltafold import FinishReason, Message, TextPart, ThinkingPart
from protocol_bodies import CHAT, DONE, Wire, anthropic, call_chunk, chunk, event, finish, said
from speakers import GEMINI, RESPONSES, gemini, typed
from splits import calls_of, everywhere, warning_codes

ARGUMENTS: Final = '{"lock":"Kiel-3"}'


def runnable(message: Message) -> list[object]:
    return [call.arguments for call in message.runnable_tool_calls]


# Chat: a call is complete at the end of the stream.


@pytest.mark.parametrize("fragments", [[ARGUMENTS], ['{"lock":', '"Kiel-3"}']])
@pytest.mark.parametrize("before", [[], ["{}"], [""]])
def test_arguments_after_a_finish_reason_join_their_call(
    before: list[str], fragments: list[str]
) -> None:
    pieces = [call_chunk("", name="close", id="c", index=0)]
    pieces += [call_chunk(text, index=0) for text in before]
    pieces += [finish("tool_calls")]
    pieces += [call_chunk(text, index=0) for text in fragments]
    _, message = everywhere(CHAT, b"".join(pieces) + DONE)
    assert runnable(message) == [{"lock": "Kiel-3"}]


def test_arguments_that_the_connection_cut_after_a_finish_reason_do_not_run() -> None:
    body = call_chunk("", name="close", id="c", index=0) + finish("tool_calls")
    _, message = everywhere(CHAT, body + call_chunk('{"lock":', index=0) + DONE)
    assert not message.runnable_tool_calls
    assert warning_codes(message) == ["incomplete_call"]


# The last finish reason counts, but a plain stop replaces none.


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("stop", "length"), FinishReason.LENGTH),
        (("length", "stop"), FinishReason.LENGTH),
        (("content_filter", "stop"), FinishReason.CONTENT_FILTER),
        (("length", "content_filter"), FinishReason.CONTENT_FILTER),
        (("stop", "stop"), FinishReason.STOP),
    ],
)
def test_the_last_finish_reason_counts_but_a_plain_stop_replaces_none(
    words: tuple[str, str], reason: FinishReason
) -> None:
    ends = b"".join(finish(word) for word in words)
    _, message = everywhere(CHAT, said("Tide") + ends + DONE)
    assert message.meta.finish_reason == reason


def test_the_rule_of_the_last_finish_reason_holds_in_other_protocols() -> None:
    text = gemini({"text": "Tide"})
    body = text + gemini(finishReason="MAX_TOKENS") + gemini(finishReason="STOP")
    assert everywhere(GEMINI, body)[1].meta.finish_reason == FinishReason.LENGTH
    words = ("max_tokens", "end_turn")
    ends = [anthropic("message_delta", delta={"stop_reason": word}) for word in words]
    start = anthropic("message_start", message={"id": "m", "content": []})
    block: Wire = {"type": "text", "text": "Tide"}
    start += anthropic("content_block_start", index=0, content_block=block)
    _, message = everywhere("anthropic-messages", start + b"".join(ends))
    assert message.meta.finish_reason == FinishReason.LENGTH


@pytest.mark.parametrize("word", ["load", "unload"])
def test_a_line_of_ollama_about_the_model_is_no_answer(word: str) -> None:
    line: Wire = {"model": "m", "message": {"content": ""}, "done": True, "done_reason": word}
    _, message = everywhere("ollama", json.dumps(line).encode())
    assert message.meta.finish_reason == FinishReason.OTHER
    assert warning_codes(message) == ["no_answer"]


# Responses: what the final object alone has.


def call_item(arguments: str = "", **members: object) -> Wire:
    item: Wire = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "close"}
    return {**item, "arguments": arguments, **members}


def added(item: Wire, index: int = 0) -> bytes:
    return typed("response.output_item.added", output_index=index, item=item)


def done(item: Wire, index: int = 0) -> bytes:
    return typed("response.output_item.done", output_index=index, item=item)


def completed(*output: Wire) -> bytes:
    response = {"id": "r", "status": "completed", "output": output}
    return typed("response.completed", response=response)


@pytest.mark.parametrize("follows", [False, True])
def test_arguments_of_the_final_object_fill_a_call_that_came_empty(follows: bool) -> None:
    body = added(call_item()) + done(call_item())
    if follows:
        body += typed("response.output_text.delta", output_index=1, item_id="m", delta="Tide")
    _, message = everywhere(RESPONSES, body + completed(call_item(ARGUMENTS)))
    assert runnable(message) == [{"lock": "Kiel-3"}]
    assert not warning_codes(message)


def test_streamed_arguments_stand_against_those_of_the_final_object() -> None:
    streamed = call_item('{"lock":"Kiel-1"}')
    _, message = everywhere(
        RESPONSES, added(call_item()) + done(streamed) + completed(call_item(ARGUMENTS))
    )
    assert runnable(message) == [{"lock": "Kiel-1"}]


def test_a_call_without_arguments_that_is_done_runs_with_none() -> None:
    _, message = everywhere(
        RESPONSES, added(call_item()) + done(call_item()) + completed(call_item())
    )
    assert runnable(message) == [{}]


@pytest.mark.parametrize(
    "output", [[], [call_item(status="in_progress")]], ids=["absent", "in progress"]
)
def test_a_call_that_nothing_confirms_does_not_run(output: list[Wire]) -> None:
    _, message = everywhere(RESPONSES, added(call_item()) + completed(*output))
    assert message.tool_calls[0].incomplete
    assert not message.runnable_tool_calls
    assert warning_codes(message) == ["incomplete_call"]


@pytest.mark.parametrize(
    "more",
    [
        done(call_item()) + completed(),
        completed(call_item()),
        completed(call_item(status="completed")),
        typed("response.function_call_arguments.done", output_index=0, arguments="") + completed(),
        typed("response.function_call_arguments.delta", output_index=0, delta="{}") + completed(),
    ],
)
def test_a_call_that_anything_confirms_runs(more: bytes) -> None:
    _, message = everywhere(RESPONSES, added(call_item()) + more)
    assert runnable(message) == [{}]


def reasoning(**members: object) -> Wire:
    return {"type": "reasoning", "id": "rs_1", "summary": [], **members}


@pytest.mark.parametrize("says", [False, True])
def test_ciphertext_of_the_final_object_is_kept_with_its_reasoning(says: bool) -> None:
    summary = [{"type": "summary_text", "text": "Hm."}] if says else []
    item = reasoning(summary=summary)
    whole = reasoning(summary=summary, encrypted_content="gAAA")
    body = added(reasoning()) + done(item) + added(call_item(), 1)
    body += done(call_item(ARGUMENTS), 1) + completed(whole, call_item(ARGUMENTS))
    _, message = everywhere(RESPONSES, body)
    thinking, call = message.parts
    assert isinstance(thinking, ThinkingPart)
    assert thinking.text == ("Hm." if says else "")
    assert thinking.provider_state is not None
    assert thinking.provider_state["data"] == whole
    assert call == message.runnable_tool_calls[0]


def test_the_text_of_the_final_object_fills_items_that_came_empty() -> None:
    item: Wire = {"type": "message", "id": "m_1", "role": "assistant", "content": []}
    text = {"type": "output_text", "text": "Tide", "annotations": [{"type": "url_citation"}]}
    summary = [{"type": "summary_text", "text": "Hm."}]
    body = added(reasoning()) + done(reasoning()) + added(item, 1) + done(item, 1)
    final = completed(reasoning(summary=summary), {**item, "content": [text]})
    _, message = everywhere(RESPONSES, body + final)
    # The part that came empty keeps its place, with the whole item as its state.
    assert [part.text for part in message.parts if isinstance(part, ThinkingPart)] == ["", "Hm."]
    assert message.text == "Tide"
    (text_part,) = [part for part in message.parts if isinstance(part, TextPart)]
    assert text_part.annotations == [{"type": "url_citation"}]


# Calls that never run, whatever their end says.


def chat_call(**call: object) -> bytes:
    return chunk({"tool_calls": [{"index": 0, "type": "function", **call}]})


@pytest.mark.parametrize("mark", ["srvtoolu_", "mcptoolu_"])
@pytest.mark.parametrize("streams", [True, False])
def test_a_call_that_the_provider_ran_does_not_run_again(mark: str, *, streams: bool) -> None:
    call: Wire = {"id": f"{mark}1", "function": {"name": "search", "arguments": '{"q":"tide"}'}}
    if streams:
        body = said("17:42") + chat_call(**call) + finish("stop") + DONE
    else:
        answer = {"content": "17:42", "tool_calls": [call]}
        body = json.dumps({"choices": [{"message": answer, "finish_reason": "stop"}]}).encode()
    _, message = everywhere(CHAT, body)
    assert not message.runnable_tool_calls
    assert message.meta.finish_reason == FinishReason.STOP
    assert warning_codes(message) == ["calls_not_runnable"]


def test_a_call_of_a_server_beside_one_of_the_caller_leaves_it_runnable() -> None:
    server: Wire = {"id": "srvtoolu_1", "function": {"name": "search", "arguments": "{}"}}
    own: Wire = {"id": "c", "function": {"name": "pay", "arguments": '{"n":1}'}}
    body = chat_call(**server) + chat_call(**own, index=1) + finish("tool_calls") + DONE
    _, message = everywhere(CHAT, body)
    assert runnable(message) == [{"n": 1}]
    assert message.meta.finish_reason == FinishReason.TOOL_CALLS


def test_a_call_without_a_name_does_not_run() -> None:
    body = chat_call(id="c", function={"arguments": '{"n":1}'}) + finish("tool_calls") + DONE
    _, message = everywhere(CHAT, body)
    assert not message.runnable_tool_calls
    assert warning_codes(message) == ["calls_not_runnable"]


@pytest.mark.parametrize("streams", [True, False])
def test_the_mirror_of_a_call_in_function_call_is_no_call(*, streams: bool) -> None:
    function = {"name": "pay", "arguments": '{"n":1}'}
    calls = [{"index": 0, "id": "c", "type": "function", "function": function}]
    both: Wire = {"tool_calls": calls, "function_call": function}
    if streams:
        halves = ('{"n":', "1}")
        body = chunk({**both, "tool_calls": [{**calls[0], "function": {"name": "pay"}}]})
        body += b"".join(
            chunk(
                {
                    "tool_calls": [{"index": 0, "function": {"arguments": half}}],
                    "function_call": {"name": "pay", "arguments": half},
                }
            )
            for half in halves
        )
        body += finish("tool_calls") + DONE
    else:
        choice = {"message": both, "finish_reason": "tool_calls"}
        body = json.dumps({"choices": [choice]}).encode()
    _, message = everywhere(CHAT, body)
    assert calls_of(message) == [("pay", {"n": 1})]


def test_the_old_member_alone_is_a_call() -> None:
    function = {"name": "pay", "arguments": '{"n":1}'}
    _, message = everywhere(CHAT, chunk({"function_call": function}) + finish("function_call"))
    assert runnable(message) == [{"n": 1}]


def test_a_call_whose_arguments_went_astray_does_not_run() -> None:
    tool: Wire = {"type": "tool_use", "id": "c", "name": "search", "input": {}}
    astray: Wire = {"type": "input_json_delta", "partial_json": '{"q":"tide"}'}
    body = anthropic("message_start", message={"id": "m", "content": []})
    body += anthropic("content_block_start", index=0, content_block=tool)
    body += anthropic("content_block_delta", index=7, delta=astray)
    body += anthropic("content_block_stop", index=0)
    body += anthropic("message_delta", delta={"stop_reason": "tool_use"})
    _, message = everywhere("anthropic-messages", body + anthropic("message_stop"))
    assert not message.runnable_tool_calls
    assert "incomplete_call" in warning_codes(message)
    assert message.tool_calls[0].tool_call_id == "c"


# A call without arguments at a token limit.


@pytest.mark.parametrize("args", ["", "{}"])
@pytest.mark.parametrize("follows", [True, False])
def test_only_a_call_behind_which_nothing_came_may_be_cut(args: str, follows: bool) -> None:
    body = added(call_item()) + done(call_item(args, status="completed"))
    if follows:
        body += typed("response.output_text.delta", output_index=1, item_id="m", delta="Tide")
    details = {"reason": "max_output_tokens"}
    end = {"id": "r", "status": "incomplete", "incomplete_details": details}
    _, message = everywhere(RESPONSES, body + typed("response.incomplete", response=end))
    assert runnable(message) == ([{}] if follows else [])
    assert ("incomplete_call" in warning_codes(message)) is not follows


def test_an_answer_cut_at_its_limit_keeps_the_whole_call_before() -> None:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for n in range(2)
    ]
    body = json.dumps(
        {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "length"}]}
    ).encode()
    _, message = everywhere(CHAT, body)
    assert [call.tool_call_id for call in message.runnable_tool_calls] == ["c0"]
    stream = event({"choices": [{"delta": {"tool_calls": [{"index": 0, **calls[0]}]}}]})
    stream += call_chunk('{"n":', name="g", id="c1", index=1) + finish("length") + DONE
    _, message = everywhere(CHAT, stream)
    assert warning_codes(message) == ["incomplete_call"]
