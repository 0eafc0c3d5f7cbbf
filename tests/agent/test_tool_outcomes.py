"""One outcome for each call, in the result and in the log, whatever the tool does."""

import asyncio
import contextvars
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any, cast

import pytest

import deltafold
from deltafold import FileRefPart, ImagePart, MisuseError, OpenAIChatModel, TextPart, Tool
from deltafold.conversation import ToolExecutor, ToolOutcome
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.conversation.history.sections import LevelOfDetailSections
from deltafold.conversation.history.tool_calls import (
    ContextAttachment,
    HistoryToolCallResult,
    ToolCallRequest,
)
from deltafold.conversation.tools.tool_threads import hung_threads
from deltafold.testing import ReplayServer, answer
from talks import Talk
from tool_outcomes import results_of, tool_outcomes
from tool_values import (
    FORMS,
    INTERRUPTS,
    LeavingTextError,
    Named,
    WithoutTextError,
    awaited,
    deep,
    of_error,
    of_value,
)

CALL = ToolCallRequest("t", "call_1", "{}", {})


BAD = {
    "lone surrogate in a model": of_value(Named.model_construct(name="a\udce9b")),
    "lone surrogate": of_value("a\udce9b"),
    "lone surrogate in a part": of_value(TextPart.model_construct(text="a\udce9b")),
    "image without its bytes": of_value(ImagePart.model_construct(mime_type="image/png")),
    "file with a wrong size": of_value([FileRefPart(path="a").model_copy(update={"size": "x"})]),
    "file with a lone surrogate": of_value(FileRefPart(path="a\udce9.pdf")),
    "attachment that was not checked": of_value(
        HistoryToolCallResult(
            "t",
            "call_1",
            ToolExecutionStatus.SUCCESS,
            LevelOfDetailSections.of_text("x"),
            attachments=[ContextAttachment(ImagePart.model_construct(mime_type="image/png"))],
        )
    ),
    "large integer": of_value(10**5000),
    "deep list": of_value(deep(100_000, lambda found: [found])),
    "own object": of_value(object()),
    "exception": of_error(ValueError("a\udce9b")),
    "exception without a text": of_error(WithoutTextError()),
    "exception whose text leaves": of_error(LeavingTextError()),
    "SystemExit": of_error(SystemExit(2)),
    "StopIteration": of_error(StopIteration("x")),
    "StopAsyncIteration": of_error(StopAsyncIteration("x")),
    "GeneratorExit": of_error(GeneratorExit()),
    "CancelledError": of_error(asyncio.CancelledError()),
    "group": of_error(BaseExceptionGroup("g", [SystemExit(1), ValueError("x")])),
}


def outcome_of(tool: Tool | Callable[..., object], **settings: Any) -> ToolOutcome:  # noqa: ANN401 - those of the executor
    made = tool if isinstance(tool, Tool) else Tool.from_function(tool, name="t")
    return asyncio.run(ToolExecutor([made], **settings).execute(CALL))


def agent(
    server: ReplayServer,
    *tools: Tool | Callable[..., object],
    **settings: Any,  # noqa: ANN401 - those of an agent
) -> Talk[Any]:
    model = OpenAIChatModel({"model_id": "m"}, base_url=f"{server.url}/v1", api_key="k")
    recipe = deltafold.Agent({"model": "openai/x", **settings}, tools, model=model)
    return Talk(recipe, models=(model,))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", BAD)
def test_whatever_a_tool_returns_or_raises_is_one_outcome(bad: str, form: str) -> None:
    outcome = outcome_of(Tool.from_function(FORMS[form](BAD[bad]), name="t"))
    outcome.content.encode()
    deltafold.Message(role=deltafold.Role.TOOL, parts=[outcome.part()]).to_json()
    assert outcome.content or outcome.parts
    assert outcome.history_result().tool_call_id == "call_1"


@pytest.mark.parametrize(
    "count", [400, pytest.param(5_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_whatever_tools_return_and_raise_each_call_has_one_outcome_in_the_log(count: int) -> None:
    found = tool_outcomes(seed=7, first=0, count=count)
    assert not found.wrong, "\n".join(found.wrong[:20])
    assert found.counts["success"] + found.counts["failed"] == count
    assert min(found.counts["success"], found.counts["failed"]) > count // 4
    assert found.counts["interrupted"] > count // 300


def test_records_of_results_refuse_what_no_log_can_have() -> None:
    sections = LevelOfDetailSections.of_text("x")
    unknown: Any = "nonsense"
    with pytest.raises(ValueError, match="nonsense"):
        HistoryToolCallResult("t", "c", unknown, sections)
    with pytest.raises(TypeError, match="attachments must be ContextAttachments, not int"):
        HistoryToolCallResult(
            "t", "c", ToolExecutionStatus.SUCCESS, sections, None, cast("Any", [5])
        )
    with pytest.raises(TypeError, match="part must be an ImagePart or a FileRefPart, not str"):
        ContextAttachment(unknown)
    named: Any = "success"
    made = HistoryToolCallResult("t", "c", named, sections)
    assert made.status is ToolExecutionStatus.SUCCESS


@pytest.mark.parametrize("bad", ["SystemExit", "StopIteration", "deep list", "CancelledError"])
def test_a_run_goes_on_after_a_tool_that_failed_and_its_log_says_so(bad: str) -> None:
    with ReplayServer() as server:
        server.queue(answer("openai-chat", ("c1", "t", {})), answer("openai-chat", "done"))
        one = agent(server, Tool.from_function(BAD[bad], name="t"))
        result = one.run_sync("go")
    assert result.text == "done"
    (known,) = results_of(one)
    assert known.status is ToolExecutionStatus.FAILED


@pytest.mark.parametrize("error", INTERRUPTS)
@pytest.mark.parametrize("form", ["synchronous", "asynchronous"])
def test_an_interrupt_ends_the_run_and_its_call_has_an_outcome(
    error: Callable[[], BaseException], form: str
) -> None:
    with ReplayServer() as server:
        server.queue(answer("openai-chat", ("c1", "t", {})))
        one = agent(server, Tool.from_function(FORMS[form](of_error(error())), name="t"))
        with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
            one.run_sync("go")
    (known,) = results_of(one)
    assert known.status is ToolExecutionStatus.FAILED


def test_a_cancelled_run_has_the_outcome_of_its_call() -> None:
    begun = asyncio.Event()

    async def slow() -> str:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)
        return "never"

    async def cancelled(one: Talk[Any]) -> None:
        running = asyncio.ensure_future(one.run("go"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await one.aclose()

    with ReplayServer() as server:
        server.queue(answer("openai-chat", ("c1", "slow", {})))
        one = agent(server, slow)
        asyncio.run(cancelled(one))
    (known,) = results_of(one)
    assert known.status is ToolExecutionStatus.FAILED


def test_a_result_of_a_tool_belongs_to_its_call() -> None:
    sections = LevelOfDetailSections.of_text("whole")
    other = HistoryToolCallResult("other", "call_9", ToolExecutionStatus.SUCCESS, sections)
    outcome = outcome_of(of_value(other))
    assert outcome.history_result().tool_call_id == "call_1"
    assert outcome.history_result().tool_name == "t"


def test_the_text_of_a_result_has_a_limit_and_files_are_not_counted() -> None:
    picture = ImagePart(mime_type="image/png", data="A" * 4_000)
    outcome = outcome_of(of_value(["é" * 300, picture, "b" * 300]), max_result_bytes=500)
    assert picture in outcome.parts
    kept, _, note = outcome.content.partition("\n[")
    assert kept == "é" * 250
    assert "902 bytes" in note
    assert "max_result_bytes" in note
    assert [part.text for part in outcome.parts if isinstance(part, TextPart)] == [outcome.content]
    sections = LevelOfDetailSections.with_gist("c" * 600)
    entry = HistoryToolCallResult("t", "call_1", ToolExecutionStatus.SUCCESS, sections)
    cut = outcome_of(of_value(entry), max_result_bytes=500).history_result().result
    assert cut.live[0].value.startswith("c" * 500 + "\n[")
    assert cut.gist == sections.gist


def test_a_result_is_measured_once_where_nobody_observes(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []
    limited = ToolOutcome.limited

    def counted(outcome: ToolOutcome, max_bytes: int) -> ToolOutcome:
        measured.append(max_bytes)
        return limited(outcome, max_bytes)

    monkeypatch.setattr(ToolOutcome, "limited", counted)
    assert outcome_of(of_value("a" * 600), max_result_bytes=500).content.startswith("a" * 500)
    assert measured == [500]


def test_a_result_below_the_limit_is_unchanged() -> None:
    assert outcome_of(of_value("x" * (1 << 20))).content == "x" * (1 << 20)
    assert len(outcome_of(of_value("x" * ((1 << 20) + 1))).content) < (1 << 20) + 200


def test_a_tool_sees_the_context_variables_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("the caller's")

    def reads() -> str:
        """Read it."""
        return variable.get()

    assert outcome_of(reads).content == "the caller's"


def test_a_generator_is_stepped_in_one_thread_and_closed_when_it_is_given_up() -> None:
    threads: set[int] = set()
    closed = threading.Event()
    go_on = threading.Event()

    def steps() -> Iterator[str]:
        """Yield."""
        try:
            while True:
                threads.add(threading.get_ident())
                yield "more"
                go_on.wait(0.05)
        finally:
            closed.set()

    seen: list[object] = []
    tool = Tool.from_function(steps, name="t", timeout_ms=200)

    def note(_: ToolCallRequest, value: object) -> None:
        seen.append(value)

    outcome = outcome_of(tool, on_progress=note)
    assert outcome.status is ToolExecutionStatus.FAILED
    assert closed.wait(5)
    assert len(threads) == 1
    assert seen


def test_hung_tools_hold_nothing_but_their_threads() -> None:
    release = threading.Event()

    def hangs() -> str:
        """Hang."""
        release.wait(30)
        return "late"

    tool = Tool.from_function(hangs, name="t", timeout_ms=50)
    before = hung_threads()
    try:
        begun = time.monotonic()
        outcome = outcome_of(tool)
        assert "50 ms" in outcome.content
        assert time.monotonic() - begun < 20  # the thread would be waited for 30 seconds
        assert hung_threads() == before + 1
        refused = outcome_of(tool, max_hung=before + 1)
        assert refused.status is ToolExecutionStatus.FAILED
        assert "max_hung" in refused.content
        assert outcome_of(awaited(of_value("runs")), max_hung=before + 1).content == "runs"
    finally:
        release.set()
    while hung_threads() > before:
        time.sleep(0.01)
    assert outcome_of(of_value("runs"), max_hung=before + 1).content == "runs"


def test_a_process_ends_although_a_tool_hangs() -> None:
    program = dedent(
        """
        import time, deltafold
        from deltafold.testing import ReplayServer, answer
        def hangs() -> str:
            "Hang."
            time.sleep(600)
        tool = deltafold.Tool.from_function(hangs, timeout_ms=50)
        with ReplayServer() as server:
            server.queue(answer("openai-chat", ("c1", "hangs", {})), answer("openai-chat", "done"))
            model = deltafold.OpenAIChatModel(
                {"model_id": "m"}, base_url=server.url + "/v1", api_key="k"
            )
            print(deltafold.Agent({"model": "openai/x"}, [tool], model=model).run_sync("go").text)
        """
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == "done"


NOT_TRUE: list[Any] = ["false", "no", 1, None, {}, [True]]


@pytest.mark.parametrize("given", NOT_TRUE, ids=repr)
@pytest.mark.parametrize("is_async", [False, True])
def test_only_true_approves(
    given: object, caplog: pytest.LogCaptureFixture, *, is_async: bool
) -> None:
    def now(_tool: Tool, _call: ToolCallRequest) -> Any:  # noqa: ANN401 - anything
        return given

    async def later(_tool: Tool, _call: ToolCallRequest) -> Any:  # noqa: ANN401 - anything
        return given

    ran: list[str] = []
    tool = Tool.from_function(lambda: ran.append("ran"), name="t", requires_approval=True)
    outcome = outcome_of(tool, approve=later if is_async else now)
    assert outcome.status is ToolExecutionStatus.REJECTED
    assert not ran
    assert "only True and an Approval approve" in outcome.content
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_an_approval_that_raises_is_a_rejection_with_an_error_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def approve(_tool: Tool, _call: ToolCallRequest) -> bool:
        raise RuntimeError("nobody is there")

    tool = Tool.from_function(of_value("x"), name="t", requires_approval=True)
    outcome = outcome_of(tool, approve=approve)
    assert outcome.status is ToolExecutionStatus.REJECTED
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info


@pytest.mark.parametrize("given", NOT_TRUE, ids=repr)
def test_resume_refuses_what_is_no_bool_before_anything_runs(given: object) -> None:
    ran: list[str] = []

    def danger() -> str:
        """Do it."""
        ran.append("ran")
        return "done"

    with ReplayServer() as server:
        server.queue(answer("openai-chat", ("c1", "danger", {})), answer("openai-chat", "done"))
        one = agent(server, danger, tools={"require_approval": ["danger"]})
        one.run_sync("go")
        approvals: Any = {"c1": given}
        with pytest.raises(MisuseError, match="approvals: 'c1'"):
            one.resume_sync(approvals)
        assert not ran
        assert one.resume_sync({"c1": True}).text == "done"
    assert ran == ["ran"]
