"""Executor: runs the calls of a model.

In: calls of messages or of entries.  Out: one outcome for each call, in the order of the calls,
whatever happens; the progress of tools that report it.

Laws: a tool that raises, exceeds its time limit, is refused or does not exist gives a result that
states this. An incomplete call is never run. A tool receives the runtime and the agent only if it
requires them.
Source: docs/blueprint.md#tool-definition.
"""

import asyncio
import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeAlias

from deltafold.contract.exceptions import MisuseError
from deltafold.conversation.agent.run import RunState, RunStatus
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.conversation.history.sections import to_plain_text
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest
from deltafold.conversation.tools.argument_parser import ArgumentError
from deltafold.conversation.tools.tools import Execute, Tool, ToolOutcome
from deltafold.message.messages import ToolCallPart
from deltafold.specs.tool_specs import ToolSpec

_RUNNING: Final = frozenset({RunStatus.MODEL_RUNNING, RunStatus.TOOL_RUNNING})
_END: Final = object()

Approve: TypeAlias = Callable[[Tool, ToolCallRequest], Awaitable[bool] | bool]
OnStart: TypeAlias = Callable[[ToolCallRequest], None]
OnProgress: TypeAlias = Callable[[ToolCallRequest, object], None]


class ToolExecutor:
    """Runs calls, several at once.

    >>> executor = ToolExecutor([Tool.from_function(weather)])
    >>> outcomes = await executor.execute_all(message.runnable_tool_calls)

    Args:
        tools: the tools that may be called.
        approve: asked before a call of a tool that requires it; may be asynchronous.
        runtime: given to tools that require it.
        agent: given to tools that require it.
        state: goes to `awaiting_human` while an approval is awaited, and back.
        max_parallel: how many calls run at once.
        on_start: receives a call before its function is called, when it has been checked and
            approved.
        on_progress: receives each value that a tool yields before its result.

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
        state: RunState | None = None,
        max_parallel: int = 8,
        on_start: OnStart | None = None,
        on_progress: OnProgress | None = None,
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
            }
            for name, missing in needs.items():
                if missing:
                    raise MisuseError(f"{name}: the tool {tool.name!r} requires it")
            self._tools[tool.name] = tool
        self._approve = approve
        self._given = {"runtime": runtime, "agent": agent}
        self._state = state
        self._max_parallel = max_parallel
        self._on_start = on_start
        self._on_progress = on_progress
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
        """Run one call. Failures become an outcome; only cancellation is raised."""
        asked = ToolCallRequest.of_part(call) if isinstance(call, ToolCallPart) else call
        begun = time.monotonic()
        outcome = await self._execute(asked)
        return replace(outcome, elapsed=timedelta(seconds=time.monotonic() - begun))

    async def _execute(self, call: ToolCallRequest) -> ToolOutcome:
        tool = self._tools.get(call.tool_name)
        if tool is None or tool.execute is None:
            known = ", ".join(self._tools) or "none"
            return _failed(call, f"There is no tool {call.tool_name!r}; there are: {known}.")
        try:
            arguments = tool.arguments_of(call, **self._given)
        except ArgumentError as error:
            return _failed(call, str(error))
        if tool.requires_approval and not await self._approved(tool, call):
            return ToolOutcome(call, ToolExecutionStatus.REJECTED, "The call was rejected.")
        if self._on_start is not None:
            self._on_start(call)
        # Distinguish the TimeoutError of the limit from a TimeoutError that the tool raises.
        limit = asyncio.timeout(None if tool.timeout_ms is None else tool.timeout_ms / 1000)
        try:
            async with limit:
                value = await self._value(tool.execute, arguments, call)
        except Exception as error:  # noqa: BLE001 - a tool is the caller's code
            text = f"{type(error).__name__}: {error}"
            if limit.expired():
                text = f"The tool did not finish within {tool.timeout_ms} ms."
            elif isinstance(error, ArgumentError):
                text = str(error)
            return _failed(call, text)
        if isinstance(value, HistoryToolCallResult):
            return ToolOutcome(call, value.status, to_plain_text(value.result.live), value)
        return ToolOutcome.of_value(call, value)

    async def _value(
        self, execute: Execute, arguments: dict[str, Any], call: ToolCallRequest
    ) -> object:
        """Call a function of any kind, and return its result."""
        is_coroutine = bool(inspect.iscoroutinefunction(execute))
        value: object
        if is_coroutine or bool(inspect.isasyncgenfunction(execute)):
            value = execute(**arguments)
        else:
            value = await asyncio.to_thread(execute, **arguments)
        if inspect.isasyncgen(value):
            return await self._last_of(value, call)
        if inspect.isgenerator(value):
            return await self._returned_by(value, call)
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

    async def _returned_by(
        self, values: Generator[object, Any, object], call: ToolCallRequest
    ) -> object:
        """Return the return value of a generator, or its last value; it runs in a thread."""
        last: object = _END
        while True:
            done, value = await asyncio.to_thread(_step, values)
            if done and value is None:
                return None if last is _END else last
            if last is not _END:
                self._report(call, last)
            if done:
                return value
            last = value

    def _report(self, call: ToolCallRequest, progress: object) -> None:
        if self._on_progress is not None:
            self._on_progress(call, progress)

    async def _approved(self, tool: Tool, call: ToolCallRequest) -> bool:
        if self._approve is None:
            return False
        async with self._asking:
            state = self._state
            running = state is not None and state.status in _RUNNING
            before = RunStatus.TOOL_RUNNING if state is None else state.status
            if state is not None and running:
                state.move(RunStatus.AWAITING_HUMAN)
            try:
                answer = self._approve(tool, call)
                return bool(await answer if inspect.isawaitable(answer) else answer)
            except Exception:  # noqa: BLE001 - who cannot be asked has not agreed
                return False
            finally:
                if state is not None and running and state.status is RunStatus.AWAITING_HUMAN:
                    state.move(before)


def _step(values: Generator[object, Any, object]) -> tuple[bool, object]:
    """Run a generator to its next value; StopIteration cannot leave a thread."""
    try:
        return False, next(values)
    except StopIteration as stop:
        return True, stop.value


def _failed(call: ToolCallRequest, text: str) -> ToolOutcome:
    return ToolOutcome(call, ToolExecutionStatus.FAILED, text)
