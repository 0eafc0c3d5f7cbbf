"""Agent: the loop of a model, its tools and the log of a conversation.

In: an input of the user.  Out: events while the run goes on, and its result.

Laws: the log has every step before the next one begins, so that a run that was interrupted anywhere
continues from its log. The state of the run follows its table. Cancellation ends the run at once,
and leaves no task, no connection and a log that a later run continues.
Source: docs/blueprint.md#agent-config, docs/blueprint.md#run-state,
docs/blueprint.md#provider-clients.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Generic, Self

from typing_extensions import TypeVar

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import FinishReason
from deltafold.conversation.agent.deadline import Deadline, LimitReachedError
from deltafold.conversation.agent.executor import Approve
from deltafold.conversation.agent.model_turn import Asking
from deltafold.conversation.agent.observed import error_type_of, inside
from deltafold.conversation.agent.run import AgentConfig, RunState, RunStatus
from deltafold.conversation.agent.run_events import AgentEvent, AgentEventKind, RunResult
from deltafold.conversation.agent.run_log import (
    begun_early,
    count_run,
    last_answer,
    newest_answer,
    open_calls,
    waiting_calls,
)
from deltafold.conversation.agent.run_setup import RunSetup
from deltafold.conversation.agent.tool_turn import Answering
from deltafold.conversation.agent.typed_output import Finishing
from deltafold.conversation.context.manager import Compact, ContextManager
from deltafold.conversation.context.router import ModelClient, ProviderRouter
from deltafold.conversation.context.state import AgentState
from deltafold.conversation.history.entries import ModelInputEntry, ModelOutputEntry
from deltafold.conversation.history.kinds import CallStage
from deltafold.conversation.history.run_entries import CallEntry
from deltafold.conversation.tools.tools import Tool
from deltafold.errors.model_error import ModelError, OutputError
from deltafold.message.messages import Message
from deltafold.models.base import Model
from deltafold.models.loader import load_model
from deltafold.models.observer import CURRENT, NO_STEP, Step
from deltafold.streams.outputs import Output

if TYPE_CHECKING:
    from types import TracebackType

    from deltafold.otel import Instrumentation

T = TypeVar("T", default=None)
K = TypeVar("K")

_ENDED: Final = frozenset(
    {RunStatus.AWAITING_HUMAN, RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.ABORTED}
)
"""Statuses in which no code of a run is under way."""


class Agent(Generic[T]):
    """An agent: a model, tools, a conversation, and the loop between them.

    >>> async with Agent({"model": "anthropic/claude-sonnet-5-5"}, tools=[weather]) as agent:
    ...     result = await agent.run("What is the weather in Brest?")
    ...     print(result.text)

    Args:
        config: the settings; None takes the defaults.
        tools: tools and functions; the model gets these, and the tools of the state's widgets.
        instructions: the system message; None keeps that of the state, which has none by default.
        model: the model, or a router between models; None loads the model of the settings.
        state: the conversation; None begins one. `AgentState(LogFile(path))` begins or continues
            the one of a file.
        strategy: returns the strategy of an answer for the router, by its number from 1.
        approve: asked before a call that requires an approval. None ends the run with the status
            `awaiting_human`, and `resume` continues it, also in another process.
        runtime: given to tools that require it; None gives the runtime of the settings.
        compact: summarises what a context leaves out.
        output: the type of the result, as `Model.stream` takes it. An answer that is not the
            output goes back to the model with the reason, at most `max_retries` times.

    Attributes:
        config: the settings.
        state: the conversation.
        run_state: the state of the run.

    Raises:
        MisuseError: two tools have one name, the settings name a tool that does not exist, or a
            tool requires what is not given.
        ValueError: a setting is wrong or unknown.
    """

    def __init__(
        self,
        config: AgentConfig | Mapping[str, Any] | None = None,
        tools: Iterable[Tool | Callable[..., object]] = (),
        *,
        instructions: str | None = None,
        model: Model[Any] | ProviderRouter | None = None,
        state: AgentState | None = None,
        strategy: Callable[[int], str | None] | None = None,
        approve: Approve | None = None,
        runtime: object | None = None,
        compact: Compact | None = None,
        output: type[T] | Output[T, Any] | None = None,
    ) -> None:
        self.config = (
            config if isinstance(config, AgentConfig) else AgentConfig.model_validate(config or {})
        )
        self.state = AgentState() if state is None else state
        self._instructions = instructions
        self.run_state = RunState()
        self._strategy = strategy or _default_strategy
        self._turn = 0
        telemetry = _telemetry_of(self.config) if model is None else None
        self._setup = RunSetup(
            self.config,
            self.state,
            self.run_state,
            _router_of(self.config, model, telemetry),
            ContextManager(compact),
            self._enabled(tools),
            approve,
            self,
            self.config.runtime or None if runtime is None else runtime,
            None if output is None else Output.of(output),
            telemetry,
        )
        Answering(self._setup, 0)  # checks the tools
        clients = [route.client for route in self._setup.router.routes.values()]
        if output is not None and not all(isinstance(one, ModelClient) for one in clients):
            raise MisuseError("output: each client of the router must be a ModelClient")

    async def run(self, message: str | Message, *, run_id: str | None = None) -> RunResult[T]:
        """Answer an input of the user: ask the model and run its calls until it has no calls.

        Raises:
            ModelError: the model failed, and `on_error` of the settings is "raise".
            IllegalTransitionError: a run is under way.
        """
        return await _result_of(self.stream(message, run_id=run_id))

    async def resume(self, approvals: Mapping[str, bool] | None = None) -> RunResult[T]:
        """Continue a run that was interrupted, or that waits for approvals.

        A run that has completed returns its result again.

        Args:
            approvals: by the id of the call, whether it may run.

        Raises:
            ModelError: as for `run`.
            MisuseError: an approval names a call that does not wait, or the log has no input.
        """
        return await _result_of(self.stream_resumed(approvals))

    async def stream(
        self, message: str | Message, *, run_id: str | None = None
    ) -> AsyncGenerator[AgentEvent]:
        """Answer an input of the user, and yield the events of the run; the last is `run_end`.

        >>> async for event in agent.stream("What is the weather in Brest?"):
        ...     if event.delta is not None and event.delta.text:
        ...         print(event.delta.text, end="")

        Leave it early through `contextlib.aclosing`.

        Raises:
            ModelError: as for `run`.
        """
        async with aclosing(self._begun(message, run_id)) as batches:
            async for events in batches:
                for event in events:
                    yield event

    async def stream_resumed(
        self, approvals: Mapping[str, bool] | None = None
    ) -> AsyncGenerator[AgentEvent]:
        """Continue a run, and yield its events; otherwise as `resume`."""
        async with aclosing(self._resumed(approvals or {})) as batches:
            async for events in batches:
                for event in events:
                    yield event

    def run_sync(self, message: str | Message, *, run_id: str | None = None) -> RunResult[T]:
        """Answer an input of the user, and wait; otherwise as `run`."""
        _refuse_running_loop()
        return asyncio.run(self._closing(self.run(message, run_id=run_id)))

    def resume_sync(self, approvals: Mapping[str, bool] | None = None) -> RunResult[T]:
        """Continue a run, and wait; otherwise as `resume`."""
        _refuse_running_loop()
        return asyncio.run(self._closing(self.resume(approvals)))

    def stream_sync(
        self, message: str | Message, *, run_id: str | None = None
    ) -> Generator[AgentEvent]:
        """Answer an input of the user, and wait for each event; otherwise as `stream`.

        Tools run while the caller waits for the next event.
        """
        return self._waiting(self._begun(message, run_id))

    def stream_resumed_sync(
        self, approvals: Mapping[str, bool] | None = None
    ) -> Generator[AgentEvent]:
        """Continue a run, and wait for each event; otherwise as `stream_sync`."""
        return self._waiting(self._resumed(approvals or {}))

    async def aclose(self) -> None:
        """Close the connections of the models that were not given a client."""
        for route in self._setup.router.routes.values():
            if isinstance(route.client, ModelClient):
                await route.client.model.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        await self.aclose()

    async def _begun(
        self, message: str | Message, run_id: str | None
    ) -> AsyncGenerator[list[AgentEvent]]:
        """Begin a run, and yield the events of each read."""
        said = Message.user(message) if isinstance(message, str) else message
        entry = ModelInputEntry.of_message(said)
        log = self.state.log
        log.run_id = self.run_state.begin(run_id)
        step = self._step(said)

        def prepare() -> int:
            self._instruct()
            self._take_early_calls()
            calls = open_calls(log)
            if calls:
                Answering(self._setup, 0).settle(calls)
            self.state.append_model_input(entry)
            return 0

        async with aclosing(self._guarded(prepare, step)) as batches:
            async for events in batches:
                yield events

    async def _resumed(self, approvals: Mapping[str, bool]) -> AsyncGenerator[list[AgentEvent]]:
        """Continue a run, and yield the events of each read."""
        log, state = self.state.log, self.run_state
        if not any(isinstance(entry, ModelInputEntry) for entry in log.newest_first()):
            raise MisuseError("the log has no input that a run could go on with")
        self._check_approvals(approvals)
        if state.status is RunStatus.AWAITING_HUMAN:
            state.move(RunStatus.PREPARING)
        else:
            log.run_id = state.begin(log.run_id)

        def prepare() -> int:
            self._instruct()
            self._take_early_calls()
            for call_id, is_approved in approvals.items():
                stage = CallStage.APPROVED if is_approved else CallStage.REJECTED
                log.append(CallEntry(tool_call_id=call_id, stage=stage))
            return count_run(log, log.run_id, state)

        async with aclosing(self._guarded(prepare, self._step(None))) as batches:
            async for events in batches:
                yield events

    def _step(self, said: Message | None) -> Step:
        """Begin the telemetry of a run."""
        telemetry = self._setup.telemetry or CURRENT.steps
        if telemetry is None:
            return NO_STEP
        return telemetry.begun_run(self.config.name, self.state.log.session_id, said)

    async def _guarded(
        self, prepare: Callable[[], int], step: Step
    ) -> AsyncGenerator[list[AgentEvent]]:
        """Run the loop, and end the state of the run whatever happens."""
        failure: Exception | None = None
        try:
            async with aclosing(self._loop(prepare())) as loop:
                async for events in inside(step, loop):
                    yield events
        except LimitReachedError as limit:
            failure = limit
            self._end(RunStatus.ABORTED, str(limit))
            yield self._run_end(limit.reason)
        except Exception as error:
            failure = error
            self._end(RunStatus.FAILED, str(error))
            is_returned = isinstance(error, ModelError | OutputError)
            if self.config.loop.on_error == "raise" or not is_returned:
                raise
            yield self._run_end("error", error=error)
        finally:
            # A run that was cancelled, or whose events are not read any more.
            self._end(RunStatus.ABORTED, "cancelled")
            if step is not NO_STEP:
                answer, used = newest_answer(self.state.log), self.run_state
                step.ended(
                    error_type_of(used.status, failure),
                    usage=used.token_usage,
                    answer=None if answer is None else answer.message,
                )
            del failure  # its traceback holds this frame

    async def _loop(self, turns: int) -> AsyncGenerator[list[AgentEvent]]:
        """Alternate between the model and its calls until an answer has no calls."""
        self._turn = turns
        deadline = Deadline(self.config.loop.timeout)
        answering = Answering(self._setup, turns)
        finishing = Finishing(self._setup)
        try:
            while True:
                answer = last_answer(self.state.log)
                if answer is None and (answer := finishing.accepted_before()) is not None:
                    yield self._completed(answer, finishing)
                    return
                calls = waiting_calls(self.state.log)
                if calls and not (answer and finishing.is_output(answer)):
                    self.run_state.move(RunStatus.TOOL_RUNNING)
                    async with aclosing(deadline.each(answering.run(calls))) as batches:
                        async for events in batches:
                            yield events
                    if answering.pending:
                        self.run_state.move(RunStatus.AWAITING_HUMAN)
                        yield self._run_end("approval", pending=tuple(answering.pending))
                        return
                    self.run_state.move(RunStatus.PREPARING)
                elif answer is not None and _finish_of(answer) is not FinishReason.PAUSE:
                    defect = finishing.defect_of(answer)
                    if defect is None:
                        yield self._completed(answer, finishing)
                        return
                    yield [self._event(AgentEventKind.OUTPUT_DEFECT, defect=defect)]
                if self.run_state.status is RunStatus.MODEL_RUNNING:  # the answer goes on
                    self.run_state.move(RunStatus.PREPARING)
                self._check_limits(deadline)
                self._turn += 1
                yield [self._event(AgentEventKind.TURN)]
                answering = Answering(self._setup, self._turn)
                async with aclosing(self._asking(deadline, answering).run()) as batches:
                    async for events in batches:
                        yield events
        finally:
            await answering.close()

    def _completed(self, answer: ModelOutputEntry, finishing: Finishing) -> list[AgentEvent]:
        self.run_state.move(RunStatus.COMPLETED)
        return self._run_end(_reason_of(answer), output=finishing.output)

    def _event(self, kind: AgentEventKind, **facts: Any) -> AgentEvent:  # noqa: ANN401 - its members
        return AgentEvent(kind=kind, turn=self._turn, **facts)

    def _check_limits(self, deadline: Deadline) -> None:
        loop, used = self.config.loop, self.run_state
        if deadline.is_over:
            raise LimitReachedError("timeout")
        if self._turn >= loop.max_turns:
            raise LimitReachedError("max_turns")
        if loop.max_tokens is not None and (used.token_usage.total_tokens or 0) >= loop.max_tokens:
            raise LimitReachedError("max_tokens")
        if loop.max_cost_usd is not None and (used.cost_usage or 0.0) >= loop.max_cost_usd:
            raise LimitReachedError("max_cost_usd")

    def _asking(self, deadline: Deadline, answering: Answering) -> Asking:
        return Asking(
            self._setup,
            self._turn,
            strategy=self._strategy(self._turn),
            deadline=deadline,
            answering=answering if self.config.loop.start_tools_early else None,
        )

    def _instruct(self) -> None:
        """Set the instructions of this agent, if the conversation has others."""
        said = self._instructions
        if said is not None and said != self.state.system_instruction:
            self.state.set_system_instruction(said)

    def _take_early_calls(self) -> None:
        """Append the answer of calls that began before an interruption kept it from the log."""
        begun = begun_early(self.state.log)
        if begun:
            self.state.append_model_output(ModelOutputEntry(tool_calls=begun))

    def _check_approvals(self, approvals: Mapping[str, object]) -> None:
        waiting = {call.tool_call_id for call in waiting_calls(self.state.log)}
        for call_id, answer in approvals.items():
            if call_id not in waiting:
                raise MisuseError(f"approvals: no call {call_id!r} waits for an approval")
            if not isinstance(answer, bool):
                kind = type(answer).__name__
                raise MisuseError(f"approvals: {call_id!r} is a {kind}; pass True or False")

    def _enabled(self, tools: Iterable[Tool | Callable[..., object]]) -> list[Tool]:
        """Return the tools that the settings enable, with their approvals."""
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

    def _end(self, status: RunStatus, error: str) -> None:
        """End the state of a run that has not ended."""
        if self.run_state.status not in _ENDED:
            self.run_state.pending_tool_calls = []
            self.run_state.move(status, error=error)

    def _run_end(self, reason: str, **facts: Any) -> list[AgentEvent]:  # noqa: ANN401 - of the result
        answer = newest_answer(self.state.log)
        used = self.run_state
        result = RunResult[Any](
            used.status,
            None if answer is None else answer.message,
            reason,
            turns=self._turn,
            usage=used.token_usage,
            cost_usd=used.cost_usage,
            cost_unpriced=used.cost_unpriced,
            **facts,
        )
        return [self._event(AgentEventKind.RUN_END, run=result)]

    async def _closing(self, running: Coroutine[Any, Any, K]) -> K:
        """Wait for a run, and close the connections, which belong to the event loop."""
        async with self:
            return await running

    def _waiting(self, batches: AsyncGenerator[list[AgentEvent]]) -> Generator[AgentEvent]:
        """Yield the events of a run, whose event loop runs while the caller waits."""

        async def following() -> list[AgentEvent] | None:
            return await anext(batches, None)

        _refuse_running_loop()
        with asyncio.Runner() as runner:
            try:
                while (events := runner.run(following())) is not None:
                    yield from events
            finally:
                runner.run(self._closing(_closed(batches)))


def _router_of(
    config: AgentConfig,
    model: Model[Any] | ProviderRouter | None,
    telemetry: "Instrumentation | None",
) -> ProviderRouter:
    if isinstance(model, ProviderRouter):
        return model
    made = _loaded(config, telemetry) if model is None else model
    return ProviderRouter.of_models({"default": made})


def _telemetry_of(config: AgentConfig) -> "Instrumentation | None":
    options: dict[str, Any] = config.observability
    if not options:
        return None
    from deltafold.otel import instrumentation  # noqa: PLC0415 - an optional package

    return instrumentation(**options)


def _loaded(config: AgentConfig, telemetry: "Instrumentation | None") -> Model[Any]:
    name = config.model
    settings: dict[str, Any] = {}
    if name is None:
        raise MisuseError("model: pass a model, or name one in the settings")
    if isinstance(name, dict):
        settings = dict(name)
        name = settings.pop("name", None)
        if not isinstance(name, str):
            raise MisuseError("model: a mapping must have the member name, as load_model takes it")
    if telemetry is not None:
        settings["telemetry"] = telemetry
    return load_model(name, **settings)


def _default_strategy(_turn: int) -> None:
    """Leave the strategy to the router."""


def _finish_of(answer: ModelOutputEntry) -> str | None:
    message = answer.message
    return None if message is None else message.meta.finish_reason


def _reason_of(answer: ModelOutputEntry) -> str:
    """Return "answered", or the finish reason of an answer that is not whole."""
    finish = _finish_of(answer)
    is_whole = finish in {None, FinishReason.STOP, FinishReason.TOOL_CALLS}
    return "answered" if is_whole else str(finish)


async def _result_of(events: AsyncGenerator[AgentEvent]) -> RunResult[Any]:
    result: RunResult[Any] | None = None
    async with aclosing(events):
        async for event in events:
            result = event.run or result
    if result is None:
        raise AssertionError("a run ends with the event run_end")
    return result


async def _closed(batches: AsyncGenerator[object]) -> None:
    await batches.aclose()


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise MisuseError("an event loop runs in this thread: await run(), or iterate over stream()")
