"""Markup in plain text, from Python: options, forms of tools, every way to read a stream."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

import pytest

import deltafold
import reference
from any_name import AnyName
from deltafold import (
    Decoder,
    DeltaKind,
    Message,
    MessageAssembler,
    MisuseError,
    ThinkingPart,
    ToolCallPart,
    ToolSpec,
    UnknownDialectError,
)
from splits import decode, sized
from wire_deltas import assert_same

CALL = (
    "<tool_call>\n<function=weather>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
)
MARKED: Final[AnyName] = "openai-chat+qwen-xml"
SCHEMA: dict[str, object] = {"type": "object", "properties": {"days": {"type": "integer"}}}


def chat(*pieces: str, finish: str = "stop") -> bytes:
    chunks: list[dict[str, object]] = [{"delta": {"content": piece}} for piece in pieces]
    chunks.append({"delta": {}, "finish_reason": finish})
    lines = [f"data: {json.dumps({'choices': [chunk]})}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def calls(message: Message) -> list[tuple[str, object]]:
    return [
        (part.tool_name, part.arguments) for part in message.parts if isinstance(part, ToolCallPart)
    ]


def test_a_markup_is_named_beside_the_dialect_or_with_it() -> None:
    beside = Decoder("openai-chat", markup="qwen-xml")
    within = Decoder(MARKED)
    assert (beside.dialect, beside.markup) == (within.dialect, within.markup)
    assert (within.dialect, within.markup) == ("openai-chat", "qwen-xml")
    assert Decoder(cast("Any", "openai-chat+think"), markup="think").markup == "think"
    assert Decoder("openai-chat").markup is None
    assert "Decoder of openai-chat+qwen-xml" in repr(within)


@pytest.mark.parametrize("dialect", deltafold.dialect_names())
@pytest.mark.parametrize("markup", deltafold.markup_names())
def test_every_dialect_takes_every_markup(dialect: AnyName, markup: AnyName) -> None:
    assert Decoder(cast("Any", f"{dialect}+{markup}")).markup == markup


def test_an_unknown_markup_is_told_the_known_ones() -> None:
    known = ", ".join(deltafold.markup_names())
    for name in ("qwen", "", "think+think"):
        with pytest.raises(UnknownDialectError) as caught:
            Decoder(cast("Any", f"openai-chat+{name}"))
        assert str(caught.value) == f'unknown markup "{name}"; known: {known}'
        with pytest.raises(UnknownDialectError, match="unknown markup"):
            Decoder("openai-chat", markup=cast("Any", name))
    with pytest.raises(UnknownDialectError, match="unknown dialect"):
        Decoder(cast("Any", "nonsense+think"))


def test_two_markups_or_none_to_start_thinking_in_are_refused() -> None:
    with pytest.raises(ValueError, match="two markups are named"):
        Decoder(cast("Any", "openai-chat+think"), markup="hermes")
    with pytest.raises(ValueError, match="starts_in_thinking needs a markup"):
        Decoder("openai-chat", starts_in_thinking=True)


@dataclass
class Tool:
    """A tool of another library."""

    name: str
    parameter_schema: Mapping[str, object] | None


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "weather", "parameters": SCHEMA},
        {"name": "weather", "parameter_schema": SCHEMA},
        {"name": "weather", "description": "x", "input_schema": SCHEMA},
        {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}},
        {"type": "function", "name": "weather", "parameters": SCHEMA},
        MappingProxyType({"name": "weather", "parameters": MappingProxyType(SCHEMA)}),
        ToolSpec(name="weather", parameter_schema=SCHEMA),
        Tool("weather", SCHEMA),
    ],
)
def test_every_form_of_a_tool_gives_its_parameters_types(tool: object) -> None:
    for tools in ([tool], (tool,), iter([tool])):
        message = deltafold.fold(chat(CALL), MARKED, tools=tools)
        assert calls(message) == [("weather", {"days": 3})]


@pytest.mark.parametrize(
    "tools", [None, [], ["weather"], [{"name": "weather"}], [Tool("weather", None)], {"weather"}]
)
def test_without_a_schema_parameters_are_strings(tools: Iterable[object] | None) -> None:
    message = deltafold.fold(chat(CALL), MARKED, tools=tools)
    assert calls(message) == [("weather", {"days": "3"})]


def test_llama_s_calls_count_only_under_names_that_were_offered() -> None:
    body = chat('{"name": "weather", "parameters": {"days": 3}}')
    for tools, found in ((["weather"], 1), (None, 1), (["other"], 0), ([], 0)):
        message = deltafold.fold(body, cast("Any", "openai-chat+llama"), tools=tools)
        assert len(calls(message)) == found
        assert bool(message.text) is not bool(found)


BAD_TOOLS: list[tuple[object, type[Exception], str]] = [
    ("weather", TypeError, "tools must be an iterable of names or tool specs, not str"),
    ({"weather": {}}, TypeError, "tools must be an iterable of names or tool specs, not dict"),
    (5, TypeError, "tools must be an iterable of names or tool specs, not int"),
    ([5], TypeError, r"tools\[0\] must be a name or a tool spec, not int"),
    (["a", {}], TypeError, r"tools\[1\]\.name is missing"),
    ([{"function": {}}], TypeError, r"tools\[0\]\.function\.name is missing"),
    ([{"name": 3}], TypeError, r"tools\[0\]\.name must be a str, not int"),
    (
        [{"name": "a", "parameters": []}],
        TypeError,
        r"tools\[0\]\.parameters must be a mapping, not list",
    ),
    (
        [{"name": "a", "input_schema": {"x": {1}}}],
        ValueError,
        r"tools\[0\]\.input_schema is no JSON schema",
    ),
]


@pytest.mark.parametrize(("tools", "kind", "words"), BAD_TOOLS)
def test_what_is_no_tool_is_refused_by_its_field(
    tools: Iterable[object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        Decoder(MARKED, tools=tools)


def test_the_prompt_may_have_opened_the_thinking() -> None:
    body = chat("It rains.", "</th", "ink>Take a coat.")
    message = deltafold.fold(body, "openai-chat", markup="think", starts_in_thinking=True)
    thinking = [part.text for part in message.parts if isinstance(part, ThinkingPart)]
    assert (thinking, message.text) == (["It rains."], "Take a coat.")


CUT = [CALL[at : at + 5] for at in range(0, len(CALL), 5)]
PIECES = ["<think>hm</think>I look.\n\n", *CUT, "\nok"]


def test_a_stream_in_pieces_says_what_the_whole_body_says() -> None:
    body = chat(*PIECES)
    expected, _ = decode("openai-chat+qwen-xml", [body], tools=["weather"])
    for size in (1, 7, 64):
        found, _ = decode("openai-chat+qwen-xml", sized(body, size), tools=["weather"])
        assert found == expected
    kinds = [delta.kind for delta in expected]
    assert kinds.index(DeltaKind.TOOL_CALL_START) < kinds.index(DeltaKind.TOOL_CALL_ARGS)
    assert expected[-1].payload["finishReason"] == "tool_calls"


def test_both_assemblers_agree() -> None:
    deltas, _ = decode("openai-chat+qwen-xml", [chat(*PIECES)])
    extension, plain = MessageAssembler("run"), reference.MessageAssembler("run")
    for delta in deltas:
        extension.consume(delta)
        plain.consume(delta)
    assert_same(extension, plain)


def test_every_reader_of_streams_takes_the_options() -> None:
    body = chat(*PIECES)
    tools = [{"name": "weather", "parameters": SCHEMA}]

    def pieces() -> Iterator[bytes]:
        yield from sized(body, 50)

    async def apieces() -> AsyncIterator[bytes]:
        for piece in sized(body, 50):
            yield piece

    async def read() -> Message:
        async with deltafold.astream(
            apieces(), "openai-chat", markup="qwen-xml", tools=iter(tools)
        ) as stream:
            kinds = [delta.kind async for delta in stream]
            assert DeltaKind.THINKING in kinds
            return await stream.final_message()

    with deltafold.stream(pieces(), "openai-chat", markup="qwen-xml", tools=iter(tools)) as stream:
        messages = [stream.final_message(), asyncio.run(read())]
    [folded] = deltafold.fold_many([body], MARKED, tools=tools)
    messages.append(folded.build_final_message())
    assembler = MessageAssembler()
    assembler.consume(deltafold.decode_response(body, MARKED, tools=tools))
    messages.append(assembler.build_final_message())
    for message in messages:
        assert calls(message) == [("weather", {"days": 3})]
        assert [part.kind for part in message.parts] == ["thinking", "text", "tool_call", "text"]


def test_a_closed_decoder_of_markup_is_closed() -> None:
    decoder = Decoder(MARKED)
    decoder.feed(b'data: {"choices":[{"delta":{"content":"a <tool_"}}]}\n\n')
    assert decoder.close().text == " <tool_"
    with pytest.raises(MisuseError):
        decoder.feed(b"x")
