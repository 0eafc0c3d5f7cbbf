"""Executor: runs the calls of a model.

In: calls of messages or of entries.  Out: one outcome for each call, in the order of the calls,
whatever happens; the progress of tools that report it.

Laws: a tool that raises, exceeds its time limit, returns what has no text, is refused or does not
exist gives a result that states this. Only KeyboardInterrupt and a cancellation from outside end
more than the call. Only True approves. An incomplete call is never run. A tool receives the runtime
and the agent only if it requires them.
Source: docs/blueprint.md#tool-definition.
"""

import asyncio
import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.foreign_text import well_formed
from deltafold.contract.log import LOGGER
from deltafold.conversation.context.run_state import RunStatus
from deltafold.conversation.context.state import AgentState
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.conversation.history.tool_calls import ToolCallRequest
from deltafold.conversation.tools.approval import Approval
from deltafold.conversation.tools.argument_parser import ArgumentError
from deltafold.conversation.tools.tool_threads import MAX_HUNG_TOOLS, call_in_thread, hung_threads
from deltafold.conversation.tools.tools import MAX_RESULT_BYTES, Execute, Tool, ToolOutcome
from deltafold.message.messages import ToolCallPart
from deltafold.models.observer import CURRENT, NO_STEP, Step, StepTelemetry
from deltafold.specs.tool_specs import ToolSpec

_RUNNING: Final = frozenset({RunStatus.MODEL_RUNNING, RunStatus.TOOL_RUNNING})
_END: Final = object()

REJECTED: Final = "The call was rejected."
"""Result of a call that was not approved."""

_NOT_ASKED: Final = "the call %r of the tool %r is rejected: its approval raised an exception"
_NOT_BOOL: Final = (
    "the call %r of the tool %r is rejected: its approval answered %s, not a bool or an Approval"
)
_NOT_FITTING: Final = "the call %r of the tool %r is rejected: its approval changed the arguments"
_SHOWN: Final = frozenset({str, int, float, type(None)})

Approve: TypeAlias = Callable[[Tool, ToolCallRequest], Awaitable[bool | Approval] | bool | Approval]
OnDecision: TypeAlias = Callable[[ToolCallRequest, Approval], None]
OnStart: TypeAlias = Callable[[ToolCallRequest], None]
OnProgress: TypeAlias = Callable[[ToolCallRequest, object], None]


class ToolExecutor:
    """Runs calls, several at once.

    >>> executor = ToolExecutor([Tool.from_function(weather)])
    >>> outcomes = await executor.execute_all(message.runnable_tool_calls)

    Args:
        tools: the tools that may be called.
        approve: asked before a call of a tool that requires it; may be asynchronous. Only True
            and an `Approval` approve; any other value than these and False, an exception, and
            changed arguments that do not fit are a rejection with an ERROR line in the log.
        runtime: given to tools that require it.
        agent: given to tools that require it.
        state: the conversation, given to tools that require it. Its run goes to `awaiting_human`
            while an approval is awaited, and back.
        max_parallel: how many calls run at once.
        on_decision: receives each decision of `approve`.
        on_start: receives a call before its function is called, when it has been checked and
            approved.
        on_progress: receives each value that a tool yields before its result.
        max_result_bytes: the longest text of a result, in bytes of UTF-8; the rest is cut off, and
            the text says so. Files have no limit here.
        max_hung: how many synchronous tools of this process may run on after their calls were
            cancelled or exceeded their time limits; then calls of synchronous tools fail at once.
        telemetry: is told of each execution; None is what `deltafold.otel.instrument()` has set.

    Raises:
        MisuseError: two tools have one name, or one requires what is not given.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        approve: Approve | None = None,
        runtime: object | None = None,
        agent: object | None = None,
        state: AgentState | None = None,
        max_parallel: int = 8,
        on_decision: OnDecision | None = None,
        on_start: OnStart | None = None,
        on_progress: OnProgress | None = None,
        max_result_bytes: int = MAX_RESULT_BYTES,
        max_hung: int = MAX_HUNG_TOOLS,
        telemetry: StepTelemetry | None = None,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise MisuseError(f"tools: two tools have the name {tool.name!r}")
            needs = {
                "execute": tool.execute is None,
                "approve": tool.requires_approval and approve is None,
                "runtime": tool.requires_runtime and runtime is None,
                "agent": tool.requires_agent and agent is None,
                "state": tool.requires_state and state is None,
            }
            for name, missing in needs.items():
                if missing:
                    raise MisuseError(f"{name}: the tool {tool.name!r} requires it")
            self._tools[tool.name] = tool
        self._approve = approve
        self._given = {"runtime": runtime, "agent": agent, "state": state}
        self._run_state = None if state is None else state.run_state
        self._max_parallel = max_parallel
        self._on_decision = on_decision
        self._on_start = on_start
        self._on_progress = on_progress
        self._max_result_bytes = max_result_bytes
        self._max_hung = max_hung
        self._telemetry = telemetry
        # One person answers one question at a time.
        self._asking = asyncio.Lock()

    @property
    def specs(self) -> list[ToolSpec]:
        """Specifications of all tools, as they are sent to the model."""
        return [tool.to_spec() for tool in self._tools.values()]

    async def execute_all(
        self, calls: Sequence[ToolCallPart | ToolCallRequest]
    ) -> list[ToolOutcome]:
        """Run calls of a message or of an entry; returns one outcome for each, in their order.

        The calls of an entry know whether their answer was refused, filtered or cut; such calls do
        not run. Of a message, pass `runnable_tool_calls`.
        """
        free = asyncio.Semaphore(self._max_parallel)

        async def one(call: ToolCallPart | ToolCallRequest) -> ToolOutcome:
            async with free:
                return await self.execute(call)

        return list(await asyncio.gather(*(one(call) for call in calls)))

    async def execute(self, call: ToolCallPart | ToolCallRequest) -> ToolOutcome:
        """Run one call.

        Failures become an outcome; only a cancellation from outside and KeyboardInterrupt are
        raised.
        """
        asked = ToolCallRequest.of_part(call) if isinstance(call, ToolCallPart) else call
        begun = time.monotonic()
        outcome = (await self._execute(asked)).limited(self._max_result_bytes)
        return replace(outcome, elapsed=timedelta(seconds=time.monotonic() - begun))

    async def _execute(self, call: ToolCallRequest) -> ToolOutcome:
        tool = self._tools.get(call.tool_name)
        if tool is None or tool.execute is None:
            known = ", ".join(self._tools) or "none"
            return _failed(call, f"There is no tool {call.tool_name!r}; there are: {known}.")
        try:
            arguments = self._arguments(tool, call)
        except Exception as error:  # noqa: BLE001 - types of arguments are the caller's code
            return _failed(call, _described(error))
        if not tool.requires_approval:
            return await self._started(tool, tool.execute, arguments, call)
        decision = await self._decision(tool, call)
        asked = decision.changed(call)
        if asked is not call:
            try:
                arguments = self._arguments(tool, asked)
            except Exception as error:  # noqa: BLE001 - as above
                LOGGER.error(_NOT_FITTING, call.tool_call_id, call.tool_name, exc_info=error)
                reason = f"Its approval changed the arguments. {_described(error)}"
                decision = Approval(approved=False, reason=reason, by=decision.by)
        if self._on_decision is not None:
            self._on_decision(call, decision)
        if not decision.approved:
            return ToolOutcome(call, ToolExecutionStatus.REJECTED, rejection(decision.reason))
        outcome = await self._started(tool, tool.execute, arguments, asked)
        return outcome.noted(decision.note())

    def _arguments(self, tool: Tool, call: ToolCallRequest) -> dict[str, object]:
        return tool.arguments_of(call, report=partial(self._report, call), **self._given)

    async def _started(
        self, tool: Tool, execute: Execute, arguments: dict[str, Any], call: ToolCallRequest
    ) -> ToolOutcome:
        if self._on_start is not None:
            self._on_start(call)
        return await self._run(tool, execute, arguments, call)

    async def _run(
        self, tool: Tool, execute: Execute, arguments: dict[str, Any], call: ToolCallRequest
    ) -> ToolOutcome:
        """Call a function; nothing that it raises or returns ends more than its call."""
        task = asyncio.current_task()
        cancels = _cancels(task)
        step = self._begun(tool, call)
        # Distinguish the TimeoutError of the limit from a TimeoutError that the tool raises.
        limit = asyncio.timeout(None if tool.timeout_ms is None else tool.timeout_ms / 1000)
        try:
            with step.inside():
                async with limit:
                    value = await self._value(execute, arguments, call)
            outcome = ToolOutcome.of_value(call, value)
        except BaseException as error:
            is_cancelled = isinstance(error, asyncio.CancelledError)
            failure = "cancelled" if is_cancelled else type(error).__qualname__
            step.ended("timeout" if limit.expired() else failure)
            if limit.expired():
                text = f"The tool did not finish within {tool.timeout_ms} ms."
            elif _is_interrupt(error) or (is_cancelled and _cancels(task) > cancels):
                raise
            else:
                text = "The tool cancelled itself." if is_cancelled else _described(error)
            return _failed(call, text)
        if step is not NO_STEP:
            is_well = outcome.status is ToolExecutionStatus.SUCCESS
            step.ended(
                None if is_well else str(outcome.status),
                result=outcome.limited(self._max_result_bytes).content,
            )
        return outcome

    def _begun(self, tool: Tool, call: ToolCallRequest) -> Step:
        telemetry = self._telemetry or CURRENT.steps
        if telemetry is None:
            return NO_STEP
        return telemetry.begun_tool(
            call.tool_name, call.tool_call_id, tool.description, call.raw_arguments
        )

    async def _value(
        self, execute: Execute, arguments: dict[str, Any], call: ToolCallRequest
    ) -> object:
        """Call a function of any kind, and return its result."""
        report = partial(self._report, call)
        is_coroutine = bool(inspect.iscoroutinefunction(execute))
        value: object
        if is_coroutine or bool(inspect.isasyncgenfunction(execute)):
            value = execute(**arguments)
        else:
            hung = hung_threads()
            if hung >= self._max_hung:
                raise ArgumentError(
                    f"The tool was not run: {hung} calls of synchronous tools run on after their "
                    "time limit or their cancellation, and no more may (max_hung)."
                )
            value = await call_in_thread(execute, arguments, report)
        if inspect.isasyncgen(value):
            return await self._last_of(value, call)
        return await value if inspect.isawaitable(value) else value

    async def _last_of(self, values: AsyncGenerator[object, Any], call: ToolCallRequest) -> object:
        """Return the last value of an asynchronous generator; those before are its progress."""
        last: object = _END
        try:
            async for value in values:
                if last is not _END:
                    self._report(call, last)
                last = value
        finally:
            await values.aclose()
        return None if last is _END else last

    def _report(self, call: ToolCallRequest, progress: object) -> None:
        if self._on_progress is not None:
            self._on_progress(call, progress)

    async def _decision(self, tool: Tool, call: ToolCallRequest) -> Approval:
        """Ask whether a call may run."""
        if self._approve is None:
            return Approval(approved=False)
        async with self._asking:
            state = self._run_state
            running = state is not None and state.status in _RUNNING
            before = RunStatus.TOOL_RUNNING if state is None else state.status
            if state is not None and running:
                state.move(RunStatus.AWAITING_HUMAN)
            try:
                given: object = self._approve(tool, call)
                answer = cast("object", await given if inspect.isawaitable(given) else given)
            except Exception as error:  # noqa: BLE001 - who cannot be asked has not agreed
                LOGGER.error(_NOT_ASKED, call.tool_call_id, call.tool_name, exc_info=error)
                return Approval(
                    approved=False, reason=f"Its approval raised {type(error).__name__}."
                )
            finally:
                if state is not None and running and state.status is RunStatus.AWAITING_HUMAN:
                    state.move(before)
        if isinstance(answer, Approval):
            return answer
        if isinstance(answer, bool):
            return Approval(answer)
        shown = f"{answer!r:.100}" if type(answer) in _SHOWN else f"a {type(answer).__name__}"
        LOGGER.error(_NOT_BOOL, call.tool_call_id, call.tool_name, shown)
        reason = f"Its approval answered {shown}, and only True and an Approval approve."
        return Approval(approved=False, reason=reason)


def rejection(reason: str | None) -> str:
    """Return the text of the result of a call that was rejected."""
    return REJECTED if reason is None else f"{REJECTED} {reason}"


def _cancels(task: asyncio.Task[Any] | None) -> int:
    return 0 if task is None else task.cancelling()


def _is_interrupt(error: BaseException) -> bool:
    """Return whether an exception is or holds a KeyboardInterrupt."""
    if not isinstance(error, BaseExceptionGroup):
        return isinstance(error, KeyboardInterrupt)
    group: list[BaseException] = [error]
    while group:
        one = group.pop()
        if isinstance(one, BaseExceptionGroup):
            group += cast("BaseExceptionGroup[BaseException]", one).exceptions
        elif isinstance(one, KeyboardInterrupt):
            return True
    return False


def _described(error: BaseException) -> str:
    """Describe an exception of a tool for the model."""
    if isinstance(error, ArgumentError):
        return str(error)
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except BaseException as unreadable:  # its `__str__` is the caller's code
        if _is_interrupt(unreadable):
            raise
        return f"{name}, whose text cannot be read"


def _failed(call: ToolCallRequest, text: str) -> ToolOutcome:
    return ToolOutcome(call, ToolExecutionStatus.FAILED, well_formed(text))
