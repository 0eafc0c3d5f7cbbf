"""Agent: the loop of a model, its tools and the log of a conversation.

In: an input of the user.  Out: events while the run goes on, and its result.

Laws: the log has every step before the next one begins, so that a run that was interrupted anywhere
continues from its log. A call is run once; a call that may have run before the interruption is not
run again, and its result says so. A failed answer never enters the history. The state of the run
follows its table.
Source: the conversation history blueprint, "Agent Orchestrator"; the core domain model, AgentConfig
and AgentState.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from deltafold.conversation.budget import Compact, ContextInput, ContextManager
from deltafold.conversation.entries import (
    CallEntry,
    HistoryToolCallResult,
    ModelInputEntry,
    ModelInvocationDescriptor,
    ModelOutputEntry,
    ResetEntry,
    ToolCallRequest,
    ToolResultsEntry,
)
from deltafold.conversation.executor import ToolExecutor
from deltafold.conversation.kinds import CallStage, ToolExecutionStatus
from deltafold.conversation.run import AgentConfig, RunState, RunStatus
from deltafold.conversation.sections import LevelOfDetailSections
from deltafold.conversation.state import AgentState
from deltafold.conversation.tools import Tool, ToolOutcome
from deltafold.errors import ModelError
from deltafold.exceptions import MisuseError
from deltafold.messages import Message
from deltafold.models.loading import load_model

if TYPE_CHECKING:
    from deltafold._core import MessageDelta
    from deltafold.models.base import Model

INTERRUPTED: Final = "The run was interrupted while this call ran. It may have had its effect."
"""Result of a call that had begun when the process ended."""


class AgentEventKind(StrEnum):
    """Kind of an event of a run."""

    TURN = "turn"
    DELTA = "delta"
    RETRY = "retry"
    ANSWER = "answer"
    APPROVAL = "approval"
    TOOL_START = "tool_start"
    PROGRESS = "progress"
    TOOL_END = "tool_end"
    RUN_END = "run_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One event of a run. Members that its kind does not use are None.

    Attributes:
        turn: number of the answer, from 1.
        delta: a delta of the answer (delta).
        seconds: seconds until the next request (retry).
        error: the failure (retry).
        message: the whole answer (answer).
        call: the call (approval, tool_start, progress, tool_end).
        progress: the value that the tool has yielded (progress).
        result: the result of the call (tool_end).
        run: the result of the run (run_end).
    """

    kind: AgentEventKind
    turn: int
    delta: "MessageDelta | None" = None
    seconds: float | None = None
    error: ModelError | None = None
    message: Message | None = None
    call: ToolCallRequest | None = None
    progress: object = None
    result: HistoryToolCallResult | None = None
    run: "RunResult | None" = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run.

    Attributes:
        status: the final status: completed, failed, aborted, or awaiting_human.
        message: the last answer, None if there is none.
        reason: reason of the end: "answered", "approval", "max_turns", "timeout", "max_tokens",
            "max_cost_usd", "does_not_fit", "error" or "cancelled".
        pending: calls that wait for an approval.
        error: the failure, None if the run has not failed.
    """

    status: RunStatus
    message: Message | None
    reason: str
    pending: tuple[ToolCallRequest, ...] = ()
    error: Exception | None = None

    @property
    def text(self) -> str:
        """Text of the last answer."""
        return "" if self.message is None else self.message.text


# Events of tools that run while the loop waits for them; None is the end.
_Events: TypeAlias = "asyncio.Queue[AgentEvent | None]"


class Agent:
    """An agent: a model, tools, a conversation, and the loop between them.

    >>> agent = Agent(AgentConfig(model="anthropic/claude-sonnet-4-5"), tools=[weather])
    >>> result = await agent.run("What is the weather in Brest?")
    >>> result.text

    Args:
        config: the settings; each field acts.
        tools: tools and functions.
        model: the model; None loads the model of the configuration.
        state: the conversation; None begins one. `AgentState.restore(LogFile(path))` continues one.
        approve: asked before a call that requires an approval. None ends the run with the status
            `awaiting_human`, and `resume` continues it, also in another process.
        runtime: given to tools that require it; None gives `config.runtime`.
        compact: summarises what a context leaves out.

    Raises:
        MisuseError: two tools have one name, or the configuration names a tool that does not exist.
    """

    def __init__(
        self,
        config: AgentConfig | Mapping[str, Any],
        tools: Iterable[Any] = (),
        *,
        model: "Model[Any] | None" = None,
        state: AgentState | None = None,
        approve: Any = None,  # noqa: ANN401 - see ToolExecutor
        runtime: object | None = None,
        compact: Compact | None = None,
    ) -> None:
        self.config = (
            config if isinstance(config, AgentConfig) else AgentConfig.model_validate(config)
        )
        self.state = AgentState.create_default() if state is None else state
        self.run_state = RunState()
        self.model = _loaded(self.config) if model is None else model
        self._approve = approve
        self._manager = ContextManager(compact)
        self._tools = self._enabled(tools)
        self._runtime = self.config.runtime if runtime is None else runtime

    async def run(self, message: str | Message, *, run_id: str | None = None) -> RunResult:
        """Answer an input of the user: ask the model and run its calls until it has no calls.

        Raises:
            ModelError: the model failed, and `on_error` of the configuration is "raise".
        """
        return await _result_of(self.stream(message, run_id=run_id))

    async def resume(self, approvals: Mapping[str, bool] | None = None) -> RunResult:
        """Continue a run that was interrupted, or that waits for approvals.

        Args:
            approvals: by the id of the call, whether it may run.

        Raises:
            ModelError: as for `run`.
            MisuseError: an approval names a call that does not wait.
        """
        return await _result_of(self.stream_resumed(approvals))

    def run_sync(self, message: str | Message, *, run_id: str | None = None) -> RunResult:
        """Answer an input of the user, and wait; otherwise as `run`."""
        return asyncio.run(self._closing(self.run(message, run_id=run_id)))

    def resume_sync(self, approvals: Mapping[str, bool] | None = None) -> RunResult:
        """Continue a run, and wait; otherwise as `resume`."""
        return asyncio.run(self._closing(self.resume(approvals)))

    async def _closing(self, running: Coroutine[Any, Any, RunResult]) -> RunResult:
        """Wait for a run, and close the connections, which belong to the event loop."""
        try:
            return await running
        finally:
            await self.model.aclose()

    async def stream(
        self, message: str | Message, *, run_id: str | None = None
    ) -> AsyncGenerator[AgentEvent]:
        """Answer an input of the user, and yield the events of the run; the last is `run_end`.

        >>> async for event in agent.stream("What is the weather in Brest?"):
        ...     if event.delta is not None and event.delta.text:
        ...         print(event.delta.text, end="")

        Raises:
            ModelError: as for `run`.
        """
        said = Message.user(message) if isinstance(message, str) else message
        self.state.log.run_id = self.run_state.begin(run_id)
        self.state.append_model_input(ModelInputEntry.of_message(said))
        async for event in self._guarded():
            yield event

    async def stream_resumed(
        self, approvals: Mapping[str, bool] | None = None
    ) -> AsyncGenerator[AgentEvent]:
        """Continue a run, and yield its events; otherwise as `resume`."""
        waiting = {call.tool_call_id for call in self._open_calls()}
        for call_id, approved in (approvals or {}).items():
            if call_id not in waiting:
                raise MisuseError(f"approvals: no call {call_id!r} waits for an approval")
            stage = CallStage.APPROVED if approved else CallStage.REJECTED
            self.state.log.append(CallEntry(tool_call_id=call_id, stage=stage))
        if self.run_state.status is RunStatus.AWAITING_HUMAN:
            self.run_state.move(RunStatus.PREPARING)
        else:
            self.run_state.begin(self.state.log.run_id)
        async for event in self._guarded():
            yield event

    async def _guarded(self) -> AsyncGenerator[AgentEvent]:
        """Run the loop, and end the state of the run whatever happens."""
        loop = self._loop()
        try:
            async for event in loop:
                yield event
        except (asyncio.CancelledError, GeneratorExit):
            self._end(RunStatus.ABORTED, "cancelled")
            raise
        except Exception as error:
            self._end(RunStatus.FAILED, str(error))
            if self.config.loop.on_error == "raise" or not isinstance(error, ModelError):
                raise
            message = error.partial_message
            result = RunResult(RunStatus.FAILED, message, "error", error=error)
            yield AgentEvent(kind=AgentEventKind.RUN_END, turn=0, run=result)
        finally:
            await loop.aclose()

    async def _loop(self) -> AsyncGenerator[AgentEvent]:
        deadline = None
        if self.config.loop.timeout is not None:
            deadline = time.monotonic() + self.config.loop.timeout
        turn, message = 0, None
        while True:
            calls = self._open_calls()
            if calls:
                pending: list[ToolCallRequest] = []
                async for event in self._answer_calls(calls, turn, pending):
                    yield event
                if pending:
                    self.run_state.move(RunStatus.AWAITING_HUMAN)
                    result = RunResult(
                        RunStatus.AWAITING_HUMAN, message, "approval", tuple(pending)
                    )
                    yield AgentEvent(kind=AgentEventKind.RUN_END, turn=turn, run=result)
                    return
                self.run_state.move(RunStatus.PREPARING)
            reason = self._exhausted(turn, deadline)
            if reason is not None:
                self._end(RunStatus.ABORTED, reason)
                result = RunResult(RunStatus.ABORTED, message, reason)
                yield AgentEvent(kind=AgentEventKind.RUN_END, turn=turn, run=result)
                return
            turn += 1
            yield AgentEvent(kind=AgentEventKind.TURN, turn=turn)
            found: list[Message] = []
            async for event in self._ask(turn, found):
                yield event
            (message,) = found
            if not message.tool_calls:
                self._end(RunStatus.COMPLETED)
                result = RunResult(RunStatus.COMPLETED, message, "answered")
                yield AgentEvent(kind=AgentEventKind.RUN_END, turn=turn, run=result)
                return

    def _exhausted(self, turn: int, deadline: float | None) -> str | None:
        """Return the limit that the run has reached."""
        loop, used = self.config.loop, self.run_state
        if turn >= loop.max_turns:
            return "max_turns"
        if deadline is not None and time.monotonic() >= deadline:
            return "timeout"
        if loop.max_tokens is not None and (used.token_usage.total_tokens or 0) >= loop.max_tokens:
            return "max_tokens"
        if loop.max_cost_usd is not None and (used.cost_usage or 0.0) >= loop.max_cost_usd:
            return "max_cost_usd"
        return None

    async def _ask(self, turn: int, found: list[Message]) -> AsyncGenerator[AgentEvent]:
        """Let the model answer; a retryable failure without content is asked again."""
        wait = self.config.loop.retry_seconds
        for attempt in range(self.config.loop.max_retries + 1):
            context = await self._manager.abuild_context(
                ContextInput(
                    self.state,
                    self.config.context.token_budget,
                    tools=self._tools,
                    dialect=self.model.dialect,
                    model_id=self.model.model_info().model_id,
                )
            )
            self.run_state.move(RunStatus.MODEL_RUNNING)
            stream = self.model.stream(
                context.messages,
                self._tools,
                repair="auto",
                request_metadata={
                    "run_id": self.run_state.current_run_id,
                    "session_id": self.state.log.session_id,
                },
            )
            async with stream:
                async for delta in stream:
                    yield AgentEvent(kind=AgentEventKind.DELTA, turn=turn, delta=delta)
            error = stream.error
            if error is None:
                message = stream.ended_message()
                self.run_state.add_usage(message.meta.usage, message.meta.cost_usd)
                self._append_answer(message)
                found.append(message)
                yield AgentEvent(kind=AgentEventKind.ANSWER, turn=turn, message=message)
                return
            partial = error.partial_message
            if partial is not None:
                self.run_state.add_usage(partial.meta.usage, partial.meta.cost_usd)
            if not error.retryable or attempt == self.config.loop.max_retries:
                raise error
            seconds = wait if error.retry_after is None else error.retry_after
            wait *= 2
            self.run_state.move(RunStatus.PREPARING, error=str(error))
            yield AgentEvent(kind=AgentEventKind.RETRY, turn=turn, seconds=seconds, error=error)
            await asyncio.sleep(seconds)

    def _append_answer(self, message: Message) -> None:
        info = self.model.model_info()
        invocation = ModelInvocationDescriptor(info.provider_id, info.specification, info.model_id)
        self.state.append_model_output(ModelOutputEntry.of_message(message, invocation))

    async def _answer_calls(
        self, calls: Sequence[ToolCallRequest], turn: int, pending: list[ToolCallRequest]
    ) -> AsyncGenerator[AgentEvent]:
        """Run the calls of the last answer, and append their results in one entry."""
        self.run_state.move(RunStatus.TOOL_RUNNING)
        self.run_state.pending_tool_calls = [call.tool_call_id for call in calls]
        stages = self._stages()
        results: dict[str, HistoryToolCallResult] = {}
        runnable: list[ToolCallRequest] = []
        for call in calls:
            known = stages.get(call.tool_call_id, [])
            last = known[-1] if known else None
            ended = next((one for one in known if one.result is not None), None)
            if ended is not None and ended.result is not None:
                results[call.tool_call_id] = ended.result
            elif last is not None and last.stage is CallStage.STARTED:
                results[call.tool_call_id] = _told(call, ToolExecutionStatus.FAILED, INTERRUPTED)
            elif last is not None and last.stage is CallStage.REJECTED:
                text = "The call was rejected."
                results[call.tool_call_id] = _told(call, ToolExecutionStatus.REJECTED, text)
            elif last is None and self._must_ask(call) and self._approve is None:
                pending.append(call)
                yield AgentEvent(kind=AgentEventKind.APPROVAL, turn=turn, call=call)
            else:
                runnable.append(call)
        events: _Events = asyncio.Queue()
        executor = self._executor(turn, events)
        running = asyncio.gather(
            *(self._run_call(executor, call, turn, events) for call in runnable)
        )
        running.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            for outcome in await running:
                results[outcome.call.tool_call_id] = outcome.history_result()
        finally:
            running.cancel()
        if pending:
            return
        ordered = [results[call.tool_call_id] for call in calls]
        self.state.append_tool_results(ToolResultsEntry(results=ordered))
        self.run_state.pending_tool_calls = []

    async def _run_call(
        self, executor: ToolExecutor, call: ToolCallRequest, turn: int, events: _Events
    ) -> ToolOutcome:
        log, put = self.state.log, events.put_nowait
        log.append(CallEntry(tool_call_id=call.tool_call_id, stage=CallStage.STARTED))
        put(AgentEvent(kind=AgentEventKind.TOOL_START, turn=turn, call=call))
        outcome = await executor.execute(call)
        result = outcome.history_result()
        log.append(CallEntry(tool_call_id=call.tool_call_id, stage=CallStage.ENDED, result=result))
        put(AgentEvent(kind=AgentEventKind.TOOL_END, turn=turn, call=call, result=result))
        return outcome

    def _executor(self, turn: int, events: _Events) -> ToolExecutor:
        def report(call: ToolCallRequest, progress: object) -> None:
            kind = AgentEventKind.PROGRESS
            events.put_nowait(AgentEvent(kind=kind, turn=turn, call=call, progress=progress))

        return ToolExecutor(
            self._tools,
            approve=self._approve or _approved_before,
            runtime=self._runtime,
            agent=self,
            state=self.run_state,
            max_parallel=self.config.loop.max_parallel_tools,
            on_progress=report,
        )

    def _open_calls(self) -> list[ToolCallRequest]:
        """Return the calls of the last answer, if they have no results yet."""
        open_calls = set(self.state.log.open_calls)
        for entry in self.state.log.newest_first():
            if isinstance(entry, ModelInputEntry | ToolResultsEntry | ResetEntry):
                return []
            if isinstance(entry, ModelOutputEntry):
                return [call for call in entry.tool_calls if call.tool_call_id in open_calls]
        return []

    def _stages(self) -> dict[str, list[CallEntry]]:
        """Return the stages of the calls since the last answer."""
        stages: dict[str, list[CallEntry]] = {}
        for entry in self.state.log.newest_first():
            if isinstance(entry, ModelOutputEntry):
                break
            if isinstance(entry, CallEntry):
                stages.setdefault(entry.tool_call_id, []).insert(0, entry)
        return stages

    def _must_ask(self, call: ToolCallRequest) -> bool:
        tool = next((tool for tool in self._tools if tool.name == call.tool_name), None)
        return tool is not None and tool.requires_approval

    def _enabled(self, tools: Iterable[Any]) -> list[Tool]:
        """Return the tools that the configuration enables, with its approvals."""
        settings = self.config.tools
        made = [one if isinstance(one, Tool) else Tool.from_function(one) for one in tools]
        made += self.state.enumerate_widget_tools()
        names = {tool.name for tool in made}
        for name in (*(settings.enabled or ()), *settings.require_approval):
            if name not in names:
                known = ", ".join(sorted(names)) or "none"
                raise MisuseError(f"tools: there is no tool {name!r}; there are: {known}")
        return [
            tool.asking() if tool.name in settings.require_approval else tool
            for tool in made
            if settings.enabled is None or tool.name in settings.enabled
        ]

    def _end(self, status: RunStatus, error: str | None = None) -> None:
        if self.run_state.status not in {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.ABORTED}:
            self.run_state.move(status, error=error)


def _approved_before(_tool: Tool, _call: ToolCallRequest) -> bool:
    """Approve: a call without an approval does not reach the executor."""
    return True


def _told(call: ToolCallRequest, status: ToolExecutionStatus, text: str) -> HistoryToolCallResult:
    sections = LevelOfDetailSections.of_text(text)
    return HistoryToolCallResult(call.tool_name, call.tool_call_id, status, sections)


def _loaded(config: AgentConfig) -> "Model[Any]":
    if isinstance(config.model, str):
        return load_model(config.model)
    settings: dict[str, Any] = dict(config.model)
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise MisuseError("model: a mapping must have the member name, as load_model takes it")
    return load_model(name, **settings)


async def _result_of(events: AsyncGenerator[AgentEvent]) -> RunResult:
    result: RunResult | None = None
    async for event in events:
        result = event.run or result
    if result is None:
        raise AssertionError("a run ends with the event run_end")
    return result
