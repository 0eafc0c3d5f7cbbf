"""The extension's assembler does what the reference does, step by step, on generated sequences."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from deltafold import _core
from deltafold.contract.kinds import DeltaKind, ErrorCode, FinishReason
from wire_deltas import (
    STATE,
    Assembler,
    Wire,
    args,
    assert_same,
    call,
    consume,
    delta,
    done,
    end,
    error,
    part,
    start,
    text,
    thinking,
    usage,
)

# Generated sequences: moves over few ids and indexes, so that good and bad ones are both frequent.

Move: TypeAlias = tuple[str, Wire]

call_ids = st.sampled_from(["a", "b"])
part_indexes = st.none() | st.integers(0, 4)
pieces = st.sampled_from(["", "x", "{", "}", '{"k": 1}', "null", "😀"])
said_pieces = st.sampled_from(["x", "{", "}", '{"k": 1}', "null", "😀"])
states: st.SearchStrategy[Wire | None] = st.none() | st.just(STATE)


def optional(**members: object) -> Wire:
    return {name: value for name, value in members.items() if value is not None}


def a_text(kind: str, piece: str, index: int | None, provider_state: Wire | None) -> Move:
    return kind, {"textDelta": piece, **optional(partIndex=index, providerState=provider_state)}


def an_annotated_text(piece: str, index: int | None) -> Move:
    return text(piece, annotations=[{"n": 1}], **optional(partIndex=index))


def a_refusal(piece: str) -> Move:
    return text(piece, refusal=True)


def redacted_thinking(piece: str) -> Move:
    return thinking(piece, redacted=True)


def a_call(call_id: str, index: int | None, input_format: str | None) -> Move:
    return call(call_id, **optional(partIndex=index, inputFormat=input_format))


def an_end(call_id: str, incomplete: bool | None, provider_state: Wire | None) -> Move:
    return end(call_id, **optional(incomplete=incomplete, providerState=provider_state))


def a_usage(count: int | None) -> Move:
    return usage(inputTokens=count)


def an_error(code: str, retryable: bool | None) -> Move:
    return error(code, **optional(retryable=retryable))


def without_members(kind: str) -> Move:
    return kind, {}


starts = st.builds(start)
texts = st.builds(a_text, st.sampled_from(["text", "thinking"]), pieces, part_indexes, states)
annotated = st.builds(an_annotated_text, pieces, part_indexes)
refused = st.builds(a_refusal, said_pieces)
redacted = st.builds(redacted_thinking, pieces)
calls = st.builds(a_call, call_ids, part_indexes, st.sampled_from([None, "json", "text"]))
arguments = st.builds(args, said_pieces, call_ids)
ends = st.builds(an_end, call_ids, st.sampled_from([None, True]), states)
usages = st.builds(a_usage, st.none() | st.integers(0, 9))
whole_parts = st.builds(part, st.integers(0, 4))
dones = st.builds(done, st.sampled_from([reason.value for reason in FinishReason]))
errors = st.builds(
    an_error, st.sampled_from([code.value for code in ErrorCode]), st.none() | st.booleans()
)
malformed = st.builds(
    without_members, st.sampled_from([*(kind.value for kind in DeltaKind), "video"])
)
moves = st.one_of(
    texts, annotated, refused, redacted, calls, calls, arguments, arguments, ends, ends
) | st.one_of(usages, whole_parts)
rare_moves = st.one_of(starts, dones, errors, malformed)
steps = st.tuples(
    st.one_of(moves, moves, moves, rare_moves),
    st.sampled_from([1, 1, 1, 1, 1, 1, 1, 2, 0, -1]),
    st.sampled_from(["run"] * 9 + ["other"]),
)


def outcome(assembler: Assembler, wire: Mapping[str, object]) -> tuple[str, object] | None:
    try:
        assembler.consume(wire)
    except Exception as caught:  # noqa: BLE001 - whatever the one raises, the other must raise
        return type(caught).__name__, getattr(caught, "seq", None)
    return None


@settings(max_examples=400, deadline=None)
@given(st.booleans(), st.lists(steps, max_size=25))
def test_both_assemblers_agree_step_by_step(
    begun: bool,
    sequence: Iterable[tuple[tuple[str, Wire], int, str]],
) -> None:
    one, other = reference.MessageAssembler(), _core.MessageAssembler()
    if begun:
        consume(one, start())
        consume(other, start())
    for (kind, payload), rise, run_id in sequence:
        wire = delta(max(0, one.last_seq + rise), kind, payload, runId=run_id)
        assert outcome(one, wire) == outcome(other, wire)
        assert_same(one, other)
    one.reset()
    other.reset()
    assert_same(one, other)
