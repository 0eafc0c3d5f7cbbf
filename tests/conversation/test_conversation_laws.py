"""Laws of a conversation that only unusual use breaks: forks, copies, crashes, odd summaries."""

import asyncio
import base64
import copy
import dataclasses
import json
import os
import pickle
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import deltafold.message.cost
from deltafold import ImagePart, Message, MessageDelta, MisuseError, OpenAIChatModel, TextPart
from deltafold.conversation import (
    AgentState,
    CompactionEntry,
    ContextAttachment,
    ContextInput,
    ContextManager,
    ConversationLog,
    HistoryToolCallResult,
    LevelOfDetailSections,
    LogFile,
    MemoryNotebookWidget,
    ModelInputEntry,
    ModelInvocationDescriptor,
    ModelOutputAccumulator,
    ModelOutputEntry,
    Session,
    SessionError,
    StoredEntry,
    TokenCounter,
    ToolCallRequest,
    ToolExecutionStatus,
    ToolResultsEntry,
    WidgetEntry,
    check,
    to_messages,
)
from deltafold.message.messages import FileRefPart, ProviderPart, ToolCallPart, ToolResultPart
from deltafold.testing import Recording, ReplayServer
from wires import CHAT


def calling(*ids: str) -> Message:
    return Message.assistant(
        *(ToolCallPart(tool_call_id=one, tool_name="f", raw_args_text="{}") for one in ids)
    )


def result(tool_call_id: str, text: str = "fine") -> HistoryToolCallResult:
    sections = LevelOfDetailSections.of_text(text)
    return HistoryToolCallResult("f", tool_call_id, ToolExecutionStatus.SUCCESS, sections)


def asked(text: str) -> ModelInputEntry:
    return ModelInputEntry.of_message(Message.user(text))


def said(message: Message) -> ModelOutputEntry:
    return ModelOutputEntry.of_message(message)


# Files.


@pytest.mark.parametrize(
    "content",
    [
        b"my only notes",
        b"SQLite format 3\0",
        b"[1]",
        b"true",
        b'{"a": 1}',
        "{}".encode("utf-16"),
        b"\0\0\0",
        b'{"version":2,"sessionId":"s"}\n{"kind":"res',
        b"notes\nmore notes",
    ],
)
def test_a_file_that_is_no_log_is_never_changed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="line 1"):
        LogFile(path)
    assert path.read_bytes() == content


def test_a_log_file_is_neither_copied_nor_made_of_json(tmp_path: Path) -> None:
    with LogFile(tmp_path / "a") as log:
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(MisuseError, match="cannot be copied"):
                make(log)
        with pytest.raises(MisuseError, match="open a LogFile"):
            LogFile.from_json(log.to_json())
        other = ConversationLog()
        other.append_message(Message.user("hello"))
        log.load(json.loads(other.to_json())["entries"])
    with LogFile(tmp_path / "a") as log:
        assert log.entries == other.entries


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_child_process_cannot_write_into_the_log_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LogFile(tmp_path / "a") as log:
        process = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: process + 1)
        with pytest.raises(MisuseError, match="another process"):
            log.append_message(Message.user("hello"))
        monkeypatch.undo()
        log.append_message(Message.user("hello"))


def test_an_interrupted_append_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = asked("hello")
    with LogFile(tmp_path / "a", sync=True) as log:

        def interrupt(_: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            log.append(entry)
        monkeypatch.undo()
        assert log.entries == ()
        log.append(entry)
    with LogFile(tmp_path / "a") as log:
        assert [one.id for one in log.entries] == [entry.id]


def test_a_half_line_that_cannot_be_removed_stays_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LogFile(tmp_path / "a") as log:
        log.append(asked("first"))
        write = os.write

        def half(file: int, data: bytes) -> int:
            write(file, data[: len(data) // 2])
            raise OSError(28, "No space left on device")

        def refuse(_file: int, _length: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "write", half)
        monkeypatch.setattr(os, "ftruncate", refuse)
        with pytest.raises(OSError, match="No space left"):
            log.append(asked("second"))
        monkeypatch.undo()
        with pytest.raises(MisuseError, match="closed"):
            log.append(asked("third"))
    with LogFile(tmp_path / "a") as log:
        assert len(log.entries) == 1
        assert log.torn


class CountedId(str):
    """Id of a call that counts how often the log looks it up."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        CountedId.lookups += 1
        return super().__hash__()


def test_an_append_does_not_walk_through_the_calls_of_the_log() -> None:
    log = ConversationLog()
    for number in range(500):
        request = ToolCallRequest("f", CountedId(f"c{number}"), "{}", {})
        log.append(ModelOutputEntry(tool_calls=[request]))
    CountedId.lookups = 0
    log.append(StoredEntry(data={}))
    log.append_message(calling("new"))
    log.append(ToolResultsEntry(results=[result("new")]))
    assert CountedId.lookups == 0


# Runs.


def test_answers_of_a_model_are_in_the_run_of_the_log(tmp_path: Path) -> None:
    with ReplayServer({"*": Recording.of_events(CHAT)}) as server:
        url = f"{server.url}/v1"
        with OpenAIChatModel({"model_id": "m"}, base_url=url, api_key="k") as model:
            every: list[list[str | None]] = [["one", "two"], [None, None]]
            for runs in every:
                path = tmp_path / str(runs[0])
                with LogFile(path) as log:
                    state = AgentState.create_default("i", log=log)
                    for run_id in runs:
                        state.log.run_id = run_id
                        entry = state.append_model_output(said(model.send_message_sync("Hello")))
                        assert run_id is None or entry.run_id == run_id
                        assert entry.message is not None
                        assert entry.message.run_id == entry.run_id
                        results = [result(call.tool_call_id) for call in entry.tool_calls]
                        state.append_tool_results(ToolResultsEntry(results=results))
                        assert log.open_calls == []
                with LogFile(path) as log:
                    assert len(log.entries) == 5
                    assert runs[-1] is None or log.run_id == runs[-1]


# Pairs of calls and results.


def test_an_error_answers_no_call_again() -> None:
    log = ConversationLog()
    log.append_message(calling("a", "b"))
    log.append_message(Message.tool_result("a", "first"))
    log.append(ToolResultsEntry(execute_error="crash"))
    messages = Session(log=log).messages
    answered = [
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResultPart)
    ]
    assert answered == ["a", "b"]
    assert check(messages, "openai-chat").is_clean


def test_a_summary_covers_a_call_with_its_results_or_neither() -> None:
    state = AgentState.create_default("i")
    question = state.append_model_input(asked("q"))
    answer = state.append_model_output(said(calling("a")))
    with pytest.raises(ValueError, match="have no results yet"):
        state.append_compaction("s", [question.id, answer.id])
    results = state.append_tool_results(ToolResultsEntry(results=[result("a")]))
    for half in ([question.id, answer.id], [results.id]):
        with pytest.raises(ValueError, match="cover both or neither"):
            state.append_compaction("s", half)
    state.append_compaction("s", [answer.id, results.id])
    assert len(to_messages(state.render_live_context())) == 3


def test_some_results_of_an_answer_are_covered_with_it() -> None:
    log = ConversationLog()
    answer = log.append_message(calling("a", "b"))
    results = log.append_message(Message.tool_result("a", "first"))
    log.append_message(Message.user("go on"))
    state = AgentState(log, [MemoryNotebookWidget()])
    for half in ([answer.id], [results.id]):
        with pytest.raises(ValueError, match="cover both or neither"):
            state.append_compaction("s", half)
    state.append_compaction("s", [answer.id, results.id])
    assert [message.role.value for message in to_messages(state.render_live_context())] == [
        "user",
        "user",
    ]


@pytest.mark.parametrize("covers", [[], ["own"], ["later"]])
def test_a_summary_covers_earlier_entries_alone(covers: list[str]) -> None:
    log = ConversationLog()
    question = log.append(asked("q"))
    entry = CompactionEntry(summary="s", covers=[question.id])
    ids = {"own": entry.id, "later": asked("later").id}
    with pytest.raises(SessionError, match="covers: must be ids of earlier entries"):
        log.append(dataclasses.replace(entry, covers=[ids[one] for one in covers]))
    assert len(log.entries) == 1


# Budgets.


def test_summaries_do_not_pile_up_in_one_long_exchange() -> None:
    state = AgentState.create_default("i")
    state.append_model_input(asked("question"))
    calls = 0

    def summarise(_: list[Message]) -> str:
        nonlocal calls
        calls += 1
        return "s" * 40

    manager = ContextManager(summarise)
    built = manager.build_context(ContextInput(state, 1_000))
    for number in range(200):
        state.append_model_output(said(calling(f"a{number}")))
        results = [result(f"a{number}", "r" * 400)]
        state.append_tool_results(ToolResultsEntry(results=results))
        built = manager.build_context(ContextInput(state, 1_000))
        assert built.update.fits, number
        assert built.messages[1].text == "question"
    assert calls < 60
    texts = [message.text for message in built.messages]
    assert sum("Summary of the earlier conversation" in text for text in texts) == 1


def test_ids_that_runs_use_again_are_pairs_of_their_own() -> None:
    log = ConversationLog()
    for run in range(10):
        log.run_id = str(run)
        log.append(asked("q" * 400))
        log.append(said(calling("a")))
        log.append(ToolResultsEntry(results=[result("a", "r" * 400)]))
        log.append(said(Message.assistant("done")))
    built = ContextManager().build_context(
        ContextInput(AgentState(log, [MemoryNotebookWidget()]), 600)
    )
    assert built.update.fits
    assert set(check(built.messages, "openai-chat").codes) == {"reused_call_id"}


def test_the_tokens_are_those_of_the_messages() -> None:
    state = AgentState.create_default("i" * 100)
    state.update_memory_notebook("n" * 300)
    provider: dict[str, object] = {"dialect": "gemini", "modelId": "g", "data": {"s": "x" * 900}}
    image = ImagePart(mime_type="image/png", data="AAAA", provider_state=provider)
    state.append_model_input(ModelInputEntry.of_message(Message.user("q", image)))
    block = ProviderPart(dialect="anthropic-messages", block={"type": "search", "x": "y" * 4_000})
    state.log.append_message(calling("a"))
    state.log.append_message(Message.tool_result("a", [TextPart(text="t"), block]))
    state.log.append_message(calling(*(f"b{number}" for number in range(20))))
    state.append_tool_results(ToolResultsEntry(execute_error="e" * 400))
    covered = [entry.id for entry in state.history[-2:]]
    counter = TokenCounter()
    for budget in (None, 10_000, 3_000, 1_000, 100):
        built = ContextManager().build_context(ContextInput(state, budget))
        real = sum(counter.message(message) for message in built.messages)
        assert built.update.tokens == real, budget
    state.append_compaction("s" * 100, covered)
    built = ContextManager().build_context(ContextInput(state))
    assert built.update.tokens == sum(counter.message(message) for message in built.messages)


def test_a_summary_that_does_not_help_is_not_kept() -> None:
    state = AgentState.create_default("i")
    for number in range(10):
        state.append_model_input(asked(f"question {number}"))
        state.append_model_output(said(Message.assistant("a" * 400)))
    before = state.log.entries
    built = ContextManager(lambda _: "s" * 8_000).build_context(ContextInput(state, 800))
    assert state.log.entries == before
    assert built.compaction is None
    assert built.unused_summary == "s" * 8_000
    assert built.update.fits
    assert built.update.left_out


def test_a_conversation_may_go_on_while_it_is_summarised() -> None:
    state = AgentState.create_default("i")
    for number in range(10):
        state.append_model_input(asked(f"question {number}"))
        state.append_model_output(said(Message.assistant("a" * 400)))

    async def summarise(_: list[Message]) -> str:
        await asyncio.sleep(0)
        return "short"

    async def main() -> None:
        manager = ContextManager(summarise)
        given = ContextInput(state, 800)
        both = await asyncio.gather(manager.abuild_context(given), manager.abuild_context(given))
        assert [built.compaction is not None for built in both] == [True, False]
        assert all(built.update.fits for built in both)

    asyncio.run(main())


@pytest.mark.parametrize("budget", [0, -1, True, 1.5, float("nan")])
def test_a_budget_is_a_positive_number(budget: Any) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(ValueError, match="token_budget must be a positive number"):
        ContextManager().build_context(ContextInput(AgentState.create_default(), budget))


@pytest.mark.parametrize("wrong", [None, 7, Message.user("x")])
def test_a_summary_is_a_string(wrong: Any) -> None:  # noqa: ANN401 - wrong on purpose
    state = AgentState.create_default("i")
    for _ in range(3):
        state.append_model_input(asked("q"))
        state.append_model_output(said(Message.assistant("a" * 4_000)))
    with pytest.raises(MisuseError, match="compact must return a string, not"):
        ContextManager(lambda _: wrong).build_context(ContextInput(state, 500))


# Values.


def test_an_attachment_that_is_handed_out_does_not_change_the_log() -> None:
    state: dict[str, Any] = {"dialect": "gemini", "modelId": "g", "data": {"a": 1}}
    part = ImagePart(mime_type="image/png", data="AAAA", provider_state=state)
    log = ConversationLog()
    sections = LevelOfDetailSections.of_text("q")
    log.append(ModelInputEntry(content_sections=sections, attachments=[ContextAttachment(part)]))
    before = log.to_json()
    state["data"]["a"] = 2
    entry: Any = log.entries[0]
    entry.attachments[0].part.provider_state["data"]["a"] = 3
    shown: Any = to_messages([entry])[0].parts[1]
    shown.provider_state["data"]["a"] = 4
    assert log.to_json() == before


def test_the_message_of_replaced_contents_is_not_kept() -> None:
    log = ConversationLog()
    entry: Any = log.append_message(Message.user("my password is hunter2"))
    redacted = LevelOfDetailSections.of_text("[redacted]")
    other = ConversationLog()
    other.append(dataclasses.replace(entry, content_sections=redacted))
    assert "hunter2" not in other.to_json()
    assert Session(log=other).messages[0].text == "[redacted]"


def test_text_that_no_json_can_hold_is_replaced() -> None:
    state = AgentState.create_default("i\udcff")
    state.append_model_output(said(calling("a")))
    state.append_tool_results(ToolResultsEntry(results=[result("a", "name \udcff")]))
    state.log.to_json().encode()
    assert "name \ufffd" in json.dumps(
        [message.to_dict() for message in Session(log=state.log).messages], ensure_ascii=False
    )


def deep(levels: int) -> object:
    value: object = None
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "match"),
    [
        pytest.param(deep(1_000), "nested more than 128 levels", id="deep"),
        pytest.param(10**5_000, "more digits", id="many digits"),
        (float("inf"), "finite number"),
        ({"a": {1: 2}}, r"the name 1 must be a string"),
        ({"a": [b"x"]}, r"\['a'\]\[0\] must be a value of JSON, not bytes"),
        ("\udcff", "lone surrogate"),
    ],
)
def test_what_json_cannot_give_back_is_refused_at_once(value: object, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        StoredEntry(data={"x": value})
    with pytest.raises(ValueError, match=match):
        WidgetEntry(widget="w", change="c", source="s", state=value)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ModelInputEntry(content_sections="hi"), "content_sections must be LevelOfDetail"),  # type: ignore[arg-type]
        (lambda: ModelOutputEntry(contents="abc"), "contents must be a list of strings"),
        (lambda: ModelOutputEntry(contents=["a"], run_id=5), "run_id a string or None"),  # type: ignore[arg-type]
        (lambda: ConversationLog().append(Message.user("x")), "must be a HistoryEntry"),  # type: ignore[type-var]
    ],
)
def test_a_wrong_type_is_named_at_once(make: Any, match: str) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match=match):
        make()


# System messages.


def test_system_messages_stay_in_their_places_with_their_parts() -> None:
    session = Session()
    first = TextPart(text="one", provider_state={"dialect": "anthropic-messages", "data": {}})
    session.append(Message.system(first, TextPart(text="two")))
    session.append(Message.user("hello"))
    session.append(Message.system("From now on in French."))
    session.append(Message.user("bonjour"))
    state = AgentState(session.log, [MemoryNotebookWidget()])
    assert to_messages(state.render_live_context()) == list(session.messages)
    assert state.system_instruction == "onetwo"
    state.set_system_instruction("New.")
    texts = [message.text for message in to_messages(state.render_live_context())]
    assert texts == ["New.", "onetwo", "hello", "From now on in French.", "bonjour"]


def test_a_conversation_without_an_instruction_has_the_same_context_twice() -> None:
    state = AgentState(ConversationLog(), [MemoryNotebookWidget()])
    assert state.render_live_context() == state.render_live_context()


# Answers.


def test_an_answer_is_kept_although_the_price_list_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AttributeError("of the price list")

    with ReplayServer({"*": Recording.of_events(CHAT)}) as server:
        url = f"{server.url}/v1"
        with OpenAIChatModel({"model_id": "gpt-4.1"}, base_url=url, api_key="k") as model:
            message = model.send_message_sync("Hello")
    monkeypatch.setattr(deltafold.message.cost, "cost_of", fail)
    state = AgentState.create_default()
    kept = state.append_model_output(said(message)).message
    assert kept is not None
    assert kept.meta.cost_usd is None
    assert kept.meta.duration_ms is not None


def test_a_loop_that_is_left_closes_the_stream() -> None:
    closed: list[str] = []

    async def client(deltas: list[MessageDelta]) -> AsyncIterator[MessageDelta]:
        try:
            for delta in deltas:
                yield delta
        finally:
            closed.append("client")

    async def main() -> None:
        invocation = ModelInvocationDescriptor("openai", "v1", "m")
        with ReplayServer({"*": Recording.of_events(CHAT)}) as server:
            url = f"{server.url}/v1"
            async with OpenAIChatModel({"model_id": "m"}, base_url=url, api_key="k") as model:
                accumulator = ModelOutputAccumulator(invocation)
                stream = model.stream("Hello")
                async with aclosing(accumulator.follow(stream)) as deltas:
                    async for _ in deltas:
                        break
                assert stream.status == "error"
                assert accumulator.error is not None
                with pytest.raises(MisuseError, match="takes no other deltas"):
                    accumulator.consume(MessageDelta.from_dict(_DONE))
                async with model.stream("Hello") as whole:
                    all_deltas = [delta async for delta in whole]
                other = ModelOutputAccumulator(invocation)
                async with aclosing(other.follow(client(all_deltas))) as deltas:
                    async for _ in deltas:
                        break
        assert closed == ["client"]

    asyncio.run(main())


_DONE: dict[str, Any] = {
    "runId": "r",
    "seq": 1,
    "kind": "done",
    "payload": {"finishReason": "stop"},
    "timestamp": "2026-01-01T00:00:00.000Z",
}


def test_a_file_beside_an_image_is_counted_and_kept() -> None:
    text = base64.b64encode(b"notes").decode()
    file = FileRefPart(path=f"data:text/plain;base64,{text}", mime_type="text/plain")
    log = ConversationLog()
    log.append_message(Message.user("q", file))
    assert Session(log=log).messages[0].parts[1] == file
