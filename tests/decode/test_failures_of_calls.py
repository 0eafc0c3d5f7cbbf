"""Failures with tool calls that users of other libraries reported, one test a failure.

Calls that run into each other, ids and names that come irregularly, arguments of another shape.

Every body is decoded whole, in one shot, asynchronously, cut in two at every byte and in pieces of
1 to 17 bytes; `everywhere` holds all of them equal.
"""

import pytest

from deltafold import FinishReason
from protocol_bodies import (
    ANTHROPIC,
    CHAT,
    DONE,
    anthropic,
    call_chunk,
    chunk,
    finish,
    message_end,
    message_start,
    tool_block,
)
from splits import Calls, calls_of, ends_once, everywhere, kinds

# Parallel calls whose index collides or starts anew.

TWO: Calls = [("f", {"x": 1}), ("g", {"y": 2})]

PARALLEL: list[tuple[str, str, bytes]] = [
    (
        "one call a chunk, each with index 0",
        CHAT,
        call_chunk('{"x":1}', name="f", index=0, id="a")
        + call_chunk('{"y":2}', name="g", index=0, id="b"),
    ),
    (
        "index 0 for both, fragments",
        CHAT,
        call_chunk("", name="f", index=0, id="a")
        + call_chunk('{"x":', index=0)
        + call_chunk("1}", index=0)
        + call_chunk("", name="g", index=0, id="b")
        + call_chunk('{"y":2}', index=0),
    ),
    (
        "index 0 for both and no ids",
        CHAT,
        call_chunk('{"x":1}', name="f", index=0) + call_chunk('{"y":2}', name="g", index=0),
    ),
    (
        "the index starts anew in the next chunk",
        CHAT,
        call_chunk('{"x":1}', name="f", index=1, id="a")
        + call_chunk('{"y":2}', name="g", index=0, id="b"),
    ),
    (
        "no index at all",
        CHAT,
        call_chunk('{"x":1}', name="f", id="a") + call_chunk('{"y":2}', name="g", id="b"),
    ),
    (
        "fragments interleave",
        CHAT,
        call_chunk("", name="f", index=0, id="a")
        + call_chunk("", name="g", index=1, id="b")
        + call_chunk('{"y"', index=1)
        + call_chunk('{"x"', index=0)
        + call_chunk(":2}", index=1)
        + call_chunk(":1}", index=0),
    ),
    (
        "blocks after each other",
        ANTHROPIC,
        message_start()
        + tool_block(0, "a", "f", '{"x"', ":1}")
        + tool_block(1, "b", "g", '{"y":2}'),
    ),
    (
        "two blocks of one index",
        ANTHROPIC,
        message_start() + tool_block(0, "a", "f", '{"x":1}') + tool_block(0, "b", "g", '{"y":2}'),
    ),
    (
        "two blocks of one index, the first not stopped",
        ANTHROPIC,
        message_start()
        + tool_block(0, "a", "f", '{"x":1}', stop=False)
        + tool_block(0, "b", "g", '{"y":2}'),
    ),
    (
        "blocks without an index",
        ANTHROPIC,
        message_start()
        + b"".join(
            anthropic("content_block_start", content_block={"type": "tool_use", "id": i, "name": n})
            + anthropic(
                "content_block_delta", delta={"type": "input_json_delta", "partial_json": j}
            )
            + anthropic("content_block_stop")
            for i, n, j in (("a", "f", '{"x":1}'), ("b", "g", '{"y":2}'))
        ),
    ),
]


@pytest.mark.parametrize(
    ("dialect", "body"), [row[1:] for row in PARALLEL], ids=[row[0] for row in PARALLEL]
)
def test_parallel_calls_stay_apart_with_their_ids_names_and_arguments(
    dialect: str, body: bytes
) -> None:
    end = finish("tool_calls") + DONE if dialect == CHAT else message_end("tool_use")
    deltas, message = everywhere(dialect, body + end)
    assert calls_of(message) == TWO
    ids = [call.tool_call_id for call in message.tool_calls]
    assert len(set(ids)) == 2
    if b'"id": "a"' in body:
        assert ids == ["a", "b"]
    assert len(message.runnable_tool_calls) == 2
    assert ends_once(deltas, "done").finish_reason is FinishReason.TOOL_CALLS


def test_ten_calls_of_one_tool_are_ten_calls() -> None:
    body = b"".join(
        call_chunk(f'{{"n":{n}}}', name="add", index=0, id=f"call_{n}") for n in range(10)
    )
    _, message = everywhere(CHAT, body + finish("tool_calls") + DONE)
    assert calls_of(message) == [("add", {"n": n}) for n in range(10)]


def test_one_id_for_two_blocks_is_made_unique() -> None:
    body = message_start() + tool_block(0, "a", "f", '{"x":1}') + tool_block(1, "a", "g", "{}")
    _, message = everywhere(ANTHROPIC, body + message_end("tool_use"))
    assert calls_of(message) == [("f", {"x": 1}), ("g", {})]
    assert len({call.tool_call_id for call in message.tool_calls}) == 2


# Identity of calls: ids, index, name.

ONE: Calls = [("f", {"x": 1})]

IRREGULAR: dict[str, tuple[bytes, list[str] | None]] = {
    "id null": (call_chunk('{"x":1}', name="f", index=0, id=None), None),
    "id missing": (call_chunk('{"x":1}', name="f", index=0), None),
    "id empty on every fragment": (
        call_chunk('{"x"', name="f", index=0, id="") + call_chunk(":1}", index=0, id=""),
        None,
    ),
    "id empty on the continuation": (
        call_chunk('{"x"', name="f", index=0, id="a") + call_chunk(":1}", index=0, id=""),
        ["a"],
    ),
    "id a number": (call_chunk('{"x":1}', name="f", index=0, id=12), ["12"]),
    "id late": (
        call_chunk("", name="f", index=0)
        + call_chunk("", index=0, id="a")
        + call_chunk('{"x":1}', index=0),
        ["a"],
    ),
    "id on every fragment": (
        call_chunk('{"x"', name="f", index=0, id="a") + call_chunk(":1}", index=0, id="a"),
        ["a"],
    ),
    "id new on every fragment": (
        call_chunk("", name="f", index=0, id="a")
        + call_chunk('{"x"', index=1, id="b")
        + call_chunk(":1}", index=2, id="c"),
        ["a"],
    ),
    "index null": (
        call_chunk('{"x"', name="f", index=None, id="a") + call_chunk(":1}", index=None),
        ["a"],
    ),
    "index missing": (call_chunk('{"x"', name="f", id="a") + call_chunk(":1}"), ["a"]),
    "index differs on the continuation": (
        call_chunk("", name="f", index=0, id="a") + call_chunk('{"x":1}', index=1),
        ["a"],
    ),
    "name on every fragment": (
        call_chunk('{"x"', name="f", index=0, id="a")
        + call_chunk(":1", name="f", index=0, id="a")
        + call_chunk("}", name="f", index=0),
        ["a"],
    ),
    "name late": (
        call_chunk("", index=0, id="a") + call_chunk('{"x":1}', name="f", index=0),
        ["a"],
    ),
    "name empty at first": (
        call_chunk("", name="", index=0, id="a") + call_chunk('{"x":1}', name="f", index=0),
        ["a"],
    ),
    "arguments before the name": (
        call_chunk('{"x"', index=0, id="a") + call_chunk(":1}", name="f", index=0),
        ["a"],
    ),
    "arguments before name and id": (
        call_chunk('{"x"', index=0) + call_chunk(":1}", name="f", index=0, id="a"),
        ["a"],
    ),
    "type empty on the continuation": (
        call_chunk('{"x"', name="f", index=0, id="a", type="function")
        + call_chunk(":1}", index=0, type=""),
        ["a"],
    ),
}


@pytest.mark.parametrize(("body", "ids"), IRREGULAR.values(), ids=IRREGULAR)
def test_irregular_ids_indexes_and_names_still_make_one_call(
    body: bytes, ids: list[str] | None
) -> None:
    deltas, message = everywhere(CHAT, body + finish("tool_calls") + DONE)
    assert calls_of(message) == ONE
    found = [call.tool_call_id for call in message.tool_calls]
    assert found == ids if ids else all(found)
    assert kinds(deltas).count("tool_call_start") == kinds(deltas).count("tool_call_end") == 1
    assert len(message.runnable_tool_calls) == 1


def test_a_made_up_id_depends_on_the_run_the_response_and_the_call_alone() -> None:
    body = call_chunk('{"x":1}', name="f", index=0) + finish("tool_calls") + DONE
    _, first = everywhere(CHAT, body)
    _, again = everywhere(CHAT, body)
    _, other = everywhere(CHAT, body.replace(b"chatcmpl-1", b"chatcmpl-2"))
    ids = [message.tool_calls[0].tool_call_id for message in (first, again, other)]
    assert ids[0] == ids[1] != ids[2]


# The shape of arguments.

SHAPES: dict[str, tuple[bytes, str, dict[str, object] | None]] = {
    "an object": (
        call_chunk({"x": 1}, name="f", index=0, id="a"),
        '{"x": 1}',
        {"x": 1},
    ),
    "empty": (call_chunk("", name="f", index=0, id="a"), "", {}),
    "absent": (call_chunk(name="f", index=0, id="a"), "", {}),
    "null": (
        chunk({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": None}}]}),
        "",
        {},
    ),
    "only an empty object": (call_chunk("{}", name="f", index=0, id="a"), "{}", {}),
    "an empty object first": (
        call_chunk("{}", name="f", index=0, id="a") + call_chunk('{"x":1}', index=0),
        '{"x":1}',
        {"x": 1},
    ),
    "an empty object cut in two": (
        call_chunk("{", name="f", index=0, id="a") + call_chunk("}", index=0),
        "{}",
        {},
    ),
    "encoded twice": (
        call_chunk('"{\\"x\\":1}"', name="f", index=0, id="a"),
        '"{\\"x\\":1}"',
        {"x": 1},
    ),
    "the word null": (call_chunk("null", name="f", index=0, id="a"), "null", {}),
    "a list": (call_chunk("[1]", name="f", index=0, id="a"), "[1]", None),
    "no JSON": (call_chunk("{x: 1}", name="f", index=0, id="a"), "{x: 1}", None),
    "empty pieces between": (
        call_chunk('{"x"', name="f", index=0, id="a")
        + call_chunk("", index=0)
        + call_chunk(":1}", index=0),
        '{"x":1}',
        {"x": 1},
    ),
}


@pytest.mark.parametrize(("body", "raw", "arguments"), SHAPES.values(), ids=SHAPES)
def test_arguments_of_any_shape_keep_their_text_and_are_parsed(
    body: bytes, raw: str, arguments: dict[str, object] | None
) -> None:
    _, message = everywhere(CHAT, body + finish("tool_calls") + DONE)
    [call] = message.tool_calls
    assert (call.raw_args_text, call.arguments, call.incomplete) == (raw, arguments, False)
    assert (call.parse_error is None) == (arguments is not None)


def test_input_at_the_start_counts_only_when_nothing_follows() -> None:
    whole = tool_block(0, "a", "f", input={"x": 1})
    _, message = everywhere(ANTHROPIC, message_start() + whole + message_end("tool_use"))
    assert calls_of(message) == [("f", {"x": 1})]
    both = tool_block(0, "a", "f", "", '{"x":', "2}", input={"x": 1})
    _, message = everywhere(ANTHROPIC, message_start() + both + message_end("tool_use"))
    assert calls_of(message) == [("f", {"x": 2})]
