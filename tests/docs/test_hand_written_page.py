"""Each row of the table in docs/migrate/hand-written.md is true of the loops that the page has.

In: the functions of the page, and fixtures read through the SDKs.  Out: the result or the exception
of the loop, and the message.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pytest

import deltafold
from corpus import FIXTURES
from deltafold import Message
from documentation import python_of, text_of
from sdk_clients import anthropic_client, openai_client

PAGE: Final = "docs/migrate/hand-written.md"
CALL: Final = ("f", {"x": 1})


class Read(NamedTuple):
    """Text, calls to run, finish reason and output tokens of an answer, or its failure."""

    text: str = ""
    calls: tuple[tuple[str, object], ...] = ()
    reason: str | None = None
    tokens: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Body of a row, with the results of the loop and of `stream`."""

    body: bytes
    before: Read
    after: Read
    holds: Callable[[Message], bool] | None = None
    dialect: str = "openai-chat"


def fixture(name: str, dialect: str = "openai-chat") -> bytes:
    return (FIXTURES / dialect / name / "wire.sse").read_bytes()


def loops() -> dict[str, Callable[[Any], tuple[str, list[dict[str, Any]], str | None, int]]]:
    """Return the loops of the page, without running the rest of it."""
    names: dict[str, Any] = {}
    for block in python_of(PAGE):
        module = ast.parse(block.code)
        module.body = [
            one
            for one in module.body
            if (isinstance(one, ast.FunctionDef) and one.name in {"read_chat", "read_messages"})
            or (isinstance(one, ast.Import) and one.names[0].name == "json")
        ]
        exec(compile(module, PAGE, "exec"), names)  # noqa: S102 - our own documentation
    return {"openai-chat": names["read_chat"], "anthropic-messages": names["read_messages"]}


def response_of(row: Row) -> Any:  # noqa: ANN401 - the stream of either SDK
    if row.dialect == "openai-chat":
        chat = openai_client([row.body]).chat.completions
        return chat.create(model="m", messages=[], stream=True)
    claude = anthropic_client([row.body]).messages
    return claude.create(model="m", messages=[], max_tokens=9, stream=True)


def before(row: Row) -> Read:
    try:
        text, calls, reason, tokens = loops()[row.dialect](response_of(row))
    except Exception as raised:  # noqa: BLE001 - compared with the row
        return Read(failure=type(raised).__name__)
    named = tuple((call["name"], call["arguments"]) for call in calls)
    return Read(text, named, reason, tokens)


def after(row: Row) -> tuple[Read, Message]:
    failure = None
    with deltafold.stream(response_of(row)) as stream:
        try:
            message = stream.final_message()
        except deltafold.ModelError as error:
            failure, partial = error.code, error.partial_message
            assert partial is not None
            message = partial
    calls = tuple((call.tool_name, call.arguments) for call in message.runnable_tool_calls)
    usage, reason = message.meta.usage, message.meta.raw_finish_reason
    tokens = 0 if usage is None else usage.output_tokens or 0
    return Read(message.text, calls, reason, tokens, failure), message


FILTERED: Final = fixture("no-finish-reason-call").replace(
    b"data: [DONE]",
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}\n\ndata: [DONE]',
)
COUNTED: Final = b"".join(
    b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}],'
    b'"usage":{"prompt_tokens":9,"completion_tokens":%d,"total_tokens":%d}}\n\n'
    % (text, reason, count, 9 + count)
    for count, (text, reason) in enumerate([(b"Hi", b"null"), (b"!", b'"stop"')], 1)
)
COUNTED_TWICE: Final = fixture("usage-lower-later", "anthropic-messages")
BROKEN: Final = Read(failure="JSONDecodeError")

ROWS: Final[dict[str, Row]] = {
    "a text, then a cut": Row(
        fixture("cut-mid-text"), Read("Half a sent"), Read("Half a sent", failure="connection_lost")
    ),
    "a call with all arguments, then a cut": Row(
        fixture("cut-with-whole-args"), Read(calls=(CALL,)), Read(failure="connection_lost")
    ),
    "arguments cut by the token limit": Row(
        fixture("length-mid-args"),
        BROKEN,
        Read(reason="length"),
        lambda message: message.tool_calls[0].incomplete,
    ),
    "a filtered answer with a call": Row(
        FILTERED,
        Read(calls=(CALL,), reason="content_filter"),
        Read(reason="content_filter"),
        lambda message: [*message.not_runnable] == ["call_a"],
    ),
    "a call without arguments": Row(
        fixture("no-argument-call"), BROKEN, Read(calls=(("now", {}),), reason="tool_calls")
    ),
    "two calls without an index": Row(
        fixture("index-missing"),
        BROKEN,
        Read(calls=(CALL, ("g", {"y": 2})), reason="tool_calls"),
    ),
    "three calls, each with the index 0": Row(
        fixture("index-always-zero"),
        BROKEN,
        Read(calls=(CALL, ("f", {"x": 2}), ("g", {"x": 3})), reason="tool_calls"),
    ),
    "the name of a call in each piece": Row(
        fixture("name-repeated"),
        Read(calls=(("final_result" * 3, {"x": 1}),), reason="tool_calls"),
        Read(calls=(("final_result", {"x": 1}),), reason="tool_calls"),
    ),
    "the tokens so far in each chunk": Row(
        COUNTED, Read("Hi!", (), "stop", 1 + 2), Read("Hi!", (), "stop", 2)
    ),
    "Messages: a first count in `message_start`": Row(
        COUNTED_TWICE,
        Read("Hi", (), "end_turn", 3 + 20),
        Read("Hi", (), "end_turn", 20),
        dialect="anthropic-messages",
    ),
    "`n=2`": Row(fixture("two-choices"), Read("AxB", (), "stop", 4), Read("AB", (), "stop", 4)),
    "reasoning, with its signature": Row(
        fixture("thinking-signature", "anthropic-messages"),
        Read("High at noon.", (), "end_turn", 1 + 40),
        Read("High at noon.", (), "end_turn", 40),
        lambda message: (
            message.thinking == "First, the tide." and message.parts[0].provider_state is not None
        ),
        "anthropic-messages",
    ),
    "a refusal": Row(
        fixture("refusal"),
        Read("", (), "stop"),
        Read("I cannot.", (), "stop"),
        lambda message: message.meta.finish_reason == "refusal",
    ),
}


def test_every_row_of_the_table_is_here() -> None:
    table = text_of(PAGE).partition("{ #changes }")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
    assert cells == ["the provider sends", *ROWS]


@pytest.mark.parametrize("cell", ROWS)
def test_a_row_of_the_table_is_true(cell: str) -> None:
    row = ROWS[cell]
    read, message = after(row)
    assert before(row) == row.before
    assert read == row.after
    assert row.holds is None or row.holds(message)
