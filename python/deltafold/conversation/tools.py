"""Tools of an agent, and their execution.

In: tool calls of a message.  Out: one result for each call, in the order of the calls, whatever
happens.

Laws: a tool that raises, exceeds its time limit, is refused or does not exist gives a result that
states this. An incomplete call is never run. A tool receives the runtime and the agent only if it
requires them.
Source: the core domain model, ToolDefinition and ToolSpec.
"""

import asyncio
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, Self, TypeAlias

from pydantic import BaseModel

from deltafold.conversation.arguments import ArgumentError
from deltafold.conversation.entries import HistoryToolCallResult
from deltafold.conversation.kinds import ToolExecutionStatus
from deltafold.conversation.run import RunState, RunStatus
from deltafold.conversation.sections import LevelOfDetailSections
from deltafold.exceptions import MisuseError
from deltafold.messages import Message, Role, ToolCallPart, ToolResultPart
from deltafold.tool_specs import ToolSpec

_RUNNING: Final = frozenset({RunStatus.MODEL_RUNNING, RunStatus.TOOL_RUNNING})

Execute: TypeAlias = Callable[..., object]
Approve: TypeAlias = Callable[["ToolDefinition", ToolCallPart], Awaitable[bool] | bool]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool and its implementation.

    Attributes:
        name: the name that the model uses.
        description: purpose of the tool, and when to use it.
        parameter_schema: JSON Schema of the arguments, an object schema.
        execute: called with the arguments by name; a synchronous function runs in a thread.
        timeout_ms: milliseconds until the call fails; None sets no limit.
        requires_approval: whether each call needs an approval.
        requires_runtime: whether `execute` takes `runtime`.
        requires_agent: whether `execute` takes `agent`.
    """

    name: str
    description: str
    parameter_schema: dict[str, object]
    execute: Execute
    timeout_ms: int | None = None
    requires_approval: bool = False
    requires_runtime: bool = False
    requires_agent: bool = False

    @classmethod
    def from_function(cls, function: Execute, **settings: Any) -> Self:  # noqa: ANN401 - the other fields
        """Make a tool of a function: its name, docstring and typed parameters.

        Parameters named `runtime` and `agent` are not the model's: they are given.
        """
        given = {
            name for name in ("runtime", "agent") if name in inspect.signature(function).parameters
        }
        spec = ToolSpec.from_function(_without(function, given))
        return cls(
            spec.name,
            spec.description or "",
            spec.parameter_schema,
            function,
            requires_runtime="runtime" in given,
            requires_agent="agent" in given,
            **settings,
        )

    def to_spec(self, *, strict: bool | None = None) -> ToolSpec:
        """Return the specification that is sent to the model."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameter_schema=self.parameter_schema,
            strict=strict,
        )


def _without(function: Execute, given: set[str]) -> Execute:
    """Return a function whose signature has only the parameters that the model provides."""
    if not given:
        return function
    signature = inspect.signature(function)
    kept = [one for name, one in signature.parameters.items() if name not in given]

    def seen(**arguments: object) -> object:
        return function(**arguments)

    seen.__name__ = function.__name__
    seen.__doc__ = function.__doc__
    seen.__module__ = function.__module__
    seen.__annotations__ = {
        name: hint for name, hint in function.__annotations__.items() if name not in given
    }
    seen.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return seen


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """Outcome of one call.

    Attributes:
        call: the call.
        status: the final status.
        content: the result as text.
        value: the return value of the tool, None if it did not return.
        elapsed: duration of the call.
    """

    call: ToolCallPart
    status: ToolExecutionStatus
    content: str
    value: object = None
    elapsed: timedelta = field(default_factory=timedelta)

    def part(self) -> ToolResultPart:
        """Return the part of a tool message."""
        return ToolResultPart(
            tool_call_id=self.call.tool_call_id,
            is_error=self.status is not ToolExecutionStatus.SUCCESS,
            status=str(self.status),
            content=self.content,
        )

    def history_result(self) -> HistoryToolCallResult:
        """Return the result of a history entry; a context budget may reduce it to its gist."""
        return HistoryToolCallResult(
            self.call.tool_name,
            self.call.tool_call_id,
            self.status,
            LevelOfDetailSections.with_gist(self.content),
            self.elapsed,
        )


def tool_message(outcomes: Iterable[ToolOutcome], run_id: str | None = None) -> Message:
    """Make the message that answers the calls of one turn."""
    return Message(role=Role.TOOL, run_id=run_id, parts=[one.part() for one in outcomes])


class ToolExecutor:
    """Runs calls, several at once.

    >>> executor = ToolExecutor([ToolDefinition.from_function(weather)])
    >>> outcomes = await executor.execute_all(message.tool_calls)

    Args:
        tools: what there is.
        approve: asked before a call of a tool that requires it; may be asynchronous.
        runtime: given to tools that require it.
        agent: given to tools that require it.
        state: goes to `awaiting_human` while somebody is asked, and back.
        max_parallel: how many calls run at once.

    Raises:
        MisuseError: two tools have one name, or one requires what is not given.
    """

    def __init__(
        self,
        tools: Iterable[ToolDefinition],
        *,
        approve: Approve | None = None,
        runtime: object | None = None,
        agent: object | None = None,
        state: RunState | None = None,
        max_parallel: int = 8,
    ) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise MisuseError(f"tools: two tools have the name {tool.name!r}")
            needs = {
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
        # One person answers one question at a time.
        self._asking = asyncio.Lock()

    @property
    def specs(self) -> list[ToolSpec]:
        """Specifications of all tools, as they are sent to the model."""
        return [tool.to_spec() for tool in self._tools.values()]

    async def execute_all(self, calls: Sequence[ToolCallPart]) -> list[ToolOutcome]:
        """Run calls; returns one outcome for each, in their order."""
        free = asyncio.Semaphore(self._max_parallel)

        async def one(call: ToolCallPart) -> ToolOutcome:
            async with free:
                return await self.execute(call)

        return list(await asyncio.gather(*(one(call) for call in calls)))

    async def execute(self, call: ToolCallPart) -> ToolOutcome:
        """Run one call. Failures become an outcome; only cancellation is raised."""
        begun = time.monotonic()
        outcome = await self._execute(call)
        return replace(outcome, elapsed=timedelta(seconds=time.monotonic() - begun))

    async def _execute(self, call: ToolCallPart) -> ToolOutcome:
        tool = self._tools.get(call.tool_name)
        reason = self._unusable(tool, call)
        if tool is None or call.arguments is None or reason is not None:
            return _failed(call, reason or "")
        if tool.requires_approval and not await self._approved(tool, call):
            return ToolOutcome(call, ToolExecutionStatus.REJECTED, "The call was rejected.")
        arguments = {**call.arguments}
        for name, required in (("runtime", tool.requires_runtime), ("agent", tool.requires_agent)):
            if required:
                arguments[name] = self._given[name]
        # Distinguish the TimeoutError of the limit from a TimeoutError that the tool raises.
        limit = asyncio.timeout(None if tool.timeout_ms is None else tool.timeout_ms / 1000)
        try:
            async with limit:
                value = await _called(tool.execute, arguments)
        except Exception as error:  # noqa: BLE001 - a tool is the caller's code
            text = f"{type(error).__name__}: {error}"
            if limit.expired():
                text = f"The tool did not finish within {tool.timeout_ms} ms."
            elif isinstance(error, ArgumentError):
                text = str(error)
            return _failed(call, text)
        return ToolOutcome(call, ToolExecutionStatus.SUCCESS, _as_text(value), value)

    def _unusable(self, tool: ToolDefinition | None, call: ToolCallPart) -> str | None:
        """Return the reason why a call cannot be run, None if it can."""
        if tool is None:
            known = ", ".join(self._tools) or "none"
            return f"There is no tool {call.tool_name!r}; there are: {known}."
        if call.incomplete:
            return "The call was cut off before its end. Call again."
        if call.arguments is None:
            return f"The arguments are not a JSON object: {call.parse_error}. Call again."
        return None

    async def _approved(self, tool: ToolDefinition, call: ToolCallPart) -> bool:
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


async def _called(execute: Execute, arguments: dict[str, Any]) -> object:
    if inspect.iscoroutinefunction(execute):
        return await execute(**arguments)
    value = await asyncio.to_thread(execute, **arguments)
    return await value if inspect.isawaitable(value) else value


def _failed(call: ToolCallPart, text: str) -> ToolOutcome:
    return ToolOutcome(call, ToolExecutionStatus.FAILED, text)


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if value is None:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)
