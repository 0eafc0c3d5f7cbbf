"""Contexts that fit a budget: the order of reduction, the counts, and the report."""

import asyncio
import base64
import json
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from any_name import AnyName
from deltafold import (
    FileRefPart,
    ImagePart,
    Message,
    MisuseError,
    Role,
    TextPart,
    ToolCallPart,
    ToolSpec,
)
from deltafold.conversation import (
    AgentState,
    CompactionEntry,
    ContextAttachment,
    ContextBuildResult,
    ContextInput,
    ContextManager,
    ConversationLog,
    HistoryToolCallResult,
    LevelOfDetailSections,
    MemoryNotebookWidget,
    ModelInputEntry,
    ModelOutputEntry,
    TokenCounter,
    ToolExecutionStatus,
    ToolResultsEntry,
    estimate_tokens,
)
from deltafold.message.messages import ToolResultPart
from lines import lines_of


def png(width: int, height: int, size: int = 0) -> str:
    """Return an image file whose size in bytes does not follow from its pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"tEXt", b"c\x00" + b"x" * size)
    return base64.b64encode(file + chunk(b"IEND", b"")).decode()


def built(state: AgentState, budget: int | None, **options: Any) -> ContextBuildResult:  # noqa: ANN401
    return ContextManager().build_context(ContextInput(state, budget, **options))


def turn(state: AgentState, number: int, text: str, *, calls: int = 1) -> None:
    ids = [f"c{number}.{place}" for place in range(calls)]
    parts = [ToolCallPart(tool_call_id=one, tool_name="f", raw_args_text="{}") for one in ids]
    state.append_model_output(ModelOutputEntry.of_message(Message.assistant(*parts)))
    results = [
        HistoryToolCallResult(
            "f", one, ToolExecutionStatus.SUCCESS, LevelOfDetailSections.with_gist(text)
        )
        for one in ids
    ]
    state.append_tool_results(ToolResultsEntry(results=results))


def asked(state: AgentState, text: str, *parts: Any) -> None:  # noqa: ANN401 - parts
    state.append_model_input(ModelInputEntry.of_message(Message.user(text, *parts)))


def unpaired(messages: Sequence[Message]) -> set[str]:
    calls = {call.tool_call_id for message in messages for call in message.tool_calls}
    results = {
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResultPart)
    }
    return calls ^ results


# The order of reduction.


def test_what_fits_is_never_shortened() -> None:
    state = AgentState.create_default("i")
    asked(state, "q" * 3_000)
    for number in range(3):
        turn(state, number, "r" * 9_000)
    for budget in (None, 10_000):
        results = built(state, budget).messages
        texts = [
            part.content
            for message in results
            for part in message.parts
            if isinstance(part, ToolResultPart)
        ]
        assert texts == ["r" * 9_000] * 3


def test_three_hundred_turns_after_one_question_fit() -> None:
    state = AgentState.create_default("You are a careful assistant.")
    asked(state, "Check all 300 files.")
    for number in range(300):
        turn(state, number, f"file {number}: " + "fine. " * 200)
    result = built(state, 20_000)
    assert result.update.fits
    assert result.update.tokens <= 20_000
    assert not unpaired(result.messages)
    assert result.messages[1].text == "Check all 300 files."
    newest: Any = result.messages[-1].parts[0]
    assert newest.content.startswith("file 299: ")
    assert newest.content.endswith("fine. ")
    # The report names every entry that is not shown whole.
    update = result.update
    shown = len(update.levels) - len(update.left_out)
    assert shown == len(result.messages) - 1
    assert set(update.reduced).isdisjoint(update.left_out)
    assert update.left_out[0] == state.history[1].id


def test_a_live_screen_stays_where_it_was_sent_and_is_not_repeated() -> None:
    state = AgentState.create_default("i")
    state.update_memory_notebook("remember")
    asked(state, "first")
    turn(state, 0, "result")
    asked(state, "second")
    texts = [str(message.to_dict()) for message in built(state, None).messages]
    assert ["remember" in text for text in texts] == [False, True, False, False, False]
    state.update_memory_notebook("forget")
    asked(state, "third")
    state.update_memory_notebook(None)
    asked(state, "fourth")
    texts = [str(message.to_dict()) for message in built(state, None).messages]
    assert ["remember" in text for text in texts] == [False, True, *[False] * 5]
    assert ["forget" in text for text in texts] == [*[False] * 5, True, False]
    assert "(empty)" in texts[-1]


def test_a_context_that_cannot_fit_says_why() -> None:
    state = AgentState.create_default("i" * 400)
    asked(state, "q" * 4_000)
    update = built(state, 500).update
    assert not update.fits
    assert update.reason == (
        "the context has at least 1,108 tokens, and the budget is 500: the instruction and the "
        "tools have 104, the newest input and turn 1,004"
    )


def random_state(chance: random.Random) -> AgentState:
    """Return a conversation of any shape that the log allows."""
    state = AgentState.create_default("i" * chance.randrange(400))
    number = 0
    for _ in range(chance.randrange(1, 12)):
        text = "q" * chance.randrange(2_000)
        image = ImagePart(mime_type="image/png", data=png(chance.randrange(1, 3_000), 700))
        asked(state, text, *([image] if chance.random() < 0.2 else []))
        for _ in range(chance.randrange(6)):
            number += 1
            turn(state, number, "r" * chance.randrange(4_000), calls=chance.randrange(1, 4))
        if chance.random() < 0.2:
            state.update_memory_notebook("n" * chance.randrange(300))
        if chance.random() < 0.7:
            said = Message.assistant("a" * chance.randrange(1, 1_500))
            state.append_model_output(ModelOutputEntry.of_message(said))
    if chance.random() < 0.2:
        number += 1
        open_call = ToolCallPart(tool_call_id=f"open{number}", tool_name="f", raw_args_text="{}")
        state.append_model_output(ModelOutputEntry.of_message(Message.assistant(open_call)))
        state.append_tool_results(ToolResultsEntry(execute_error="no sandbox"))
    return state


@pytest.mark.one_in(10)
@pytest.mark.parametrize("part", range(10))
def test_any_history_is_within_its_budget_or_says_why_not(part: int) -> None:
    for seed in range(part * 100, part * 100 + 100):
        chance = random.Random(seed)  # noqa: S311 - a reproducible history
        state = random_state(chance)
        budget = chance.choice([1, 100, 1_000, 3_000, 10_000, 50_000])
        result = built(state, budget)
        update = result.update
        assert update.fits == (update.tokens <= budget), seed
        assert update.fits == (update.reason is None), seed
        messages = result.messages
        assert not unpaired(messages), seed
        whole = built(state, None).update.tokens
        if whole <= budget:
            assert not update.reduced, seed
            assert not update.left_out, seed
        elif update.fits:
            # Nothing is left out for its own sake: entries give way until the rest fits.
            assert update.reduced or update.left_out, seed
        assert messages[0].role is Role.SYSTEM
        assert messages[-1].id == built(state, None).messages[-1].id, seed


def test_an_input_between_a_call_and_its_result_stays_with_them() -> None:
    log = ConversationLog()
    log.append_message(Message.user("first"))
    call = ToolCallPart(tool_call_id="a", tool_name="f", raw_args_text="{}")
    log.append_message(Message.assistant(call))
    log.append_message(Message.user("are you still there?"))
    log.append_message(Message.tool_result("a", "r" * 4_000))
    log.append_message(Message.assistant("done"))
    log.append_message(Message.user("second"))
    state = AgentState(log, [MemoryNotebookWidget()])
    for budget in range(1, 1_200, 25):
        assert not unpaired(built(state, budget).messages), budget


def test_work_is_linear() -> None:
    def work(turns: int) -> Callable[[], object]:
        state = AgentState.create_default("i")
        asked(state, "q")
        for number in range(turns):
            turn(state, number, "r" * 400)
        return lambda: built(state, 2_000).messages

    assert lines_of(work(400)) < 2.3 * lines_of(work(200))


# Counts.


@pytest.mark.parametrize(
    ("dialect", "model_id", "size", "tokens"),
    [
        ("anthropic-messages", "claude-sonnet-4-5", (1000, 1000), 1_334),
        ("anthropic-messages", "claude-sonnet-4-5", (4000, 3000), 1_600),
        ("anthropic-messages", "claude-opus-4-8", (4000, 3000), 4_784),
        ("bedrock-converse", "us.anthropic.claude-sonnet-4-5-v1:0", (200, 200), 54),
        ("openai-chat", "gpt-4o", (1024, 1024), 765),
        ("openai-responses", "gpt-4o", (2048, 4096), 1_105),
        ("gemini", "gemini-2.5-flash", (300, 300), 258),
        ("gemini", "gemini-2.5-flash", (1000, 700), 516),
    ],
)
def test_an_image_counts_what_its_provider_counts(
    dialect: AnyName, model_id: str, size: tuple[int, int], tokens: int
) -> None:
    image = ImagePart(mime_type="image/png", data=png(*size, size=300_000))
    assert len(image.data or "") > 400_000
    assert TokenCounter(dialect=dialect, model_id=model_id).media(image) == tokens
    state = AgentState.create_default("i")
    asked(state, "")
    without = built(state, None, dialect=dialect, model_id=model_id).update.tokens
    asked(state, "", image)
    with_image = built(state, None, dialect=dialect, model_id=model_id).update.tokens
    assert with_image - without - 4 == tokens


def jpeg(width: int, height: int) -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", 60_002) + b"x" * 60_000
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + exif + frame


@pytest.mark.parametrize(
    ("mime_type", "file"),
    [
        ("image/jpeg", jpeg(300, 200)),
        ("image/gif", b"GIF89a" + struct.pack("<HH", 300, 200)),
        ("image/webp", b"RIFF....WEBPVP8X" + bytes(8) + struct.pack("<HBHB", 299, 0, 199, 0)),
        (
            "image/webp",
            b"RIFF....WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 299 | 199 << 14),
        ),
        ("image/webp", b"RIFF....WEBPVP8 " + bytes(10) + struct.pack("<HH", 300, 200)),
    ],
)
def test_the_size_of_every_format_is_read(mime_type: str, file: bytes) -> None:
    image = ImagePart(mime_type=mime_type, data=base64.b64encode(file).decode())
    assert TokenCounter(dialect="anthropic-messages").media(image) == 80
    for cut in range(0, len(file), 997):
        short = ImagePart(mime_type=mime_type, data=base64.b64encode(file[:cut]).decode())
        assert TokenCounter(dialect="gemini").media(short) > 0


@pytest.mark.parametrize("data", ["", "!", "iVBORw0KGgo", "/9j/", "A" * 1_000_000])
def test_data_that_are_no_image_count_as_a_large_one(data: str) -> None:
    image = ImagePart(mime_type="image/png", data=data)
    assert TokenCounter(dialect="openai-chat").media(image) == 765


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (ImagePart(mime_type="image/png", url="https://x/y.png"), 3_279),
        (FileRefPart(path="https://x/y.pdf", mime_type="application/pdf"), 3_000),
        (FileRefPart(path="data:text/plain;base64," + "QUFB" * 100, mime_type="text/plain"), 75),
        (
            FileRefPart(path="data:application/pdf;base64," + "QUFB" * 40_000),
            9_000,
        ),
        (FileRefPart(path="data:audio/wav;base64," + "QUFB" * 40_000), 256),
        (FileRefPart(path="/home/x/notes.txt"), 3_000),
    ],
)
def test_files_count_by_their_kind(part: Any, tokens: int) -> None:  # noqa: ANN401 - parts
    assert TokenCounter().media(part) == tokens


def test_tools_instruction_and_reasoning_are_counted() -> None:
    state = AgentState.create_default("i" * 40)
    tool = ToolSpec(
        name="f",
        description="d" * 100,
        parameter_schema={"type": "object", "properties": {"x" * 200: {}}},
    )
    with_tools = built(state, None, tools=[tool, *state.enumerate_widget_tools()]).update.tokens
    schema = json.dumps(tool.parameter_schema)
    assert with_tools - built(state, None).update.tokens > len(schema) // 4 + 100 // 4

    def words_of(text: str) -> int:
        return len(text.split())

    words = built(state, None, count_tokens=words_of).update.tokens
    assert words == 4 + 1


def test_the_estimate_is_four_bytes_a_token() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "😀😀", "\ud800")] == [
        0,
        1,
        1,
        2,
        2,
        1,
    ]


# Compaction.


def long_state() -> AgentState:
    state = AgentState.create_default("i")
    for number in range(10):
        asked(state, f"question {number} " + "q" * 400)
        said = Message.assistant(f"answer {number} " + "a" * 400)
        state.append_model_output(ModelOutputEntry.of_message(said))
    return state


def recorded(state: AgentState, ids: Sequence[UUID]) -> list[Message]:
    entries = [entry for entry in state.history if entry.id in ids]
    messages = [getattr(entry, "message", None) for entry in entries]
    return [message for message in messages if message is not None]


def test_what_is_left_out_may_be_summarised() -> None:
    state, seen = long_state(), list[list[Message]]()

    def summarise(messages: list[Message]) -> str:
        seen.append(messages)
        return "They spoke about questions."

    manager = ContextManager(summarise)
    result = manager.build_context(ContextInput(state, 1_200))
    assert isinstance(result.compaction, CompactionEntry)
    assert result.update.fits
    assert result.messages[1].text.endswith("They spoke about questions.")
    covered = [message.text.split(" q")[0].split(" a")[0] for message in seen[0]]
    assert covered[:2] == ["question 0", "answer 0"]
    assert covered == [
        message.text.split(" q")[0].split(" a")[0]
        for entry in state.history
        if entry.id in result.compaction.covers
        and isinstance(entry, ModelInputEntry | ModelOutputEntry)
        for message in [entry.message]
        if message is not None
    ]
    # The summary holds: the next turn needs no other one.
    asked(state, "next")
    again = manager.build_context(ContextInput(state, 1_200))
    assert again.compaction is None
    assert len(seen) == 1
    restored = AgentState(ConversationLog.from_json(state.log.to_json()), [MemoryNotebookWidget()])
    assert manager.build_context(ContextInput(restored, 1_200)).messages == again.messages


def test_a_summary_may_be_asynchronous() -> None:
    state = long_state()

    async def summarise(messages: list[Message]) -> str:
        await asyncio.sleep(0)
        return f"{len(messages)} messages"

    manager = ContextManager(summarise)
    with pytest.raises(MisuseError, match="call abuild_context"):
        manager.build_context(ContextInput(state, 1_200))
    result = asyncio.run(manager.abuild_context(ContextInput(state, 1_200)))
    assert result.compaction is not None
    assert result.compaction.summary == f"{len(result.compaction.covers)} messages"


def test_an_empty_summary_is_an_error_and_changes_nothing() -> None:
    state = long_state()
    before = state.log.entries
    with pytest.raises(ValueError, match="must have a summary"):
        ContextManager(lambda _: " ").build_context(ContextInput(state, 1_200))
    assert state.log.entries == before


def test_a_context_that_fits_needs_no_summary() -> None:
    def refuse(_: list[Message]) -> str:
        raise AssertionError

    assert built(long_state(), 100_000).compaction is None
    result = ContextManager(refuse).build_context(ContextInput(long_state(), 100_000))
    assert result.compaction is None


def test_images_of_results_go_with_them() -> None:
    state = AgentState.create_default("i")
    image = ImagePart(mime_type="image/png", data=png(10, 10))
    call = ToolCallPart(tool_call_id="a", tool_name="f", raw_args_text="{}")
    state.append_model_output(ModelOutputEntry.of_message(Message.assistant(call)))
    state.append_tool_results(
        ToolResultsEntry(
            results=[
                HistoryToolCallResult(
                    "f",
                    "a",
                    ToolExecutionStatus.SUCCESS,
                    LevelOfDetailSections.of_text("a chart"),
                    attachments=[ContextAttachment(image)],
                )
            ]
        )
    )
    part: Any = built(state, None).messages[-1].parts[0]
    assert part.content == [TextPart(text="a chart"), image]
