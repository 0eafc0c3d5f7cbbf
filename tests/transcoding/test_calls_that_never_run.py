"""Calls that no client may run are not told: a client would run them with `{}`, or again.

Source: docs/protocols/encoding.md.
"""

import json
from typing import Final

import pytest

import deltafold
from any_name import AnyName
from deltafold import Fold, ToolCallPart, target_names
from protocol_bodies import CHAT, DONE, chunk, finish, said

OPENS_AT_ONCE: Final = {"ag-ui", "ai-sdk", "langchain"}
"""Targets that tell of a call before its arguments, and of its failure."""
CALLS: Final = {
    "run by the provider": ("srvtoolu_1", "pay_bill", '{"n":1}', "stop"),
    "run by a server of tools": ("mcptoolu_1", "pay_bill", '{"n":1}', "tool_calls"),
    "braces at the limit": ("c1", "pay_bill", "{}", "length"),
    "nothing at the limit": ("c1", "pay_bill", "", "length"),
    "without a name": ("c1", None, '{"n":1}', "tool_calls"),
}


def body_of(case: str) -> bytes:
    call_id, name, arguments, reason = CALLS[case]
    function = {"arguments": arguments} | ({} if name is None else {"name": name})
    call = {"index": 0, "id": call_id, "type": "function", "function": function}
    return said("17:42") + chunk({"tool_calls": [call]}) + finish(reason) + DONE


@pytest.mark.parametrize("target", target_names())
@pytest.mark.parametrize("case", CALLS)
def test_a_stream_does_not_tell_of_a_call_that_never_runs(case: str, target: AnyName) -> None:
    written = deltafold.transcode(body_of(case), CHAT, target)
    assert b"17:42" in written
    if target not in OPENS_AT_ONCE or "limit" not in case:
        assert b"pay_bill" not in written
    assert b"toolu_1" not in written


@pytest.mark.parametrize("target", deltafold.dialect_names())
@pytest.mark.parametrize("case", CALLS)
def test_a_whole_body_does_not_tell_of_a_call_that_never_runs(case: str, target: str) -> None:
    if target not in target_names():
        return
    fold = Fold(CHAT)
    fold.feed(body_of(case))
    fold.close()
    written = deltafold.encode_message(fold.snapshot(), target).body
    assert b"17:42" in written
    assert b"pay_bill" not in written


@pytest.mark.parametrize("target", [CHAT, "openai-responses"])
def test_half_a_call_is_told_as_before(target: AnyName) -> None:
    half = {"index": 0, "id": "c", "function": {"name": "pay_bill", "arguments": '{"n":'}}
    body = chunk({"tool_calls": [half]}) + finish("length") + DONE
    written = deltafold.transcode(body, CHAT, target)
    assert b"pay_bill" in written
    call = deltafold.fold(written, target).tool_calls[0]
    assert isinstance(call, ToolCallPart)
    assert call.incomplete
    assert json.dumps('{"n":')[1:-1].encode() in written
