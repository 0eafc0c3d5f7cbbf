"""Agent: a model, tools, settings, and the loop between them, for any number of conversations.

In: messages of the user, and the conversation.  Out: events while the run goes on, and its result.

Laws: an agent keeps nothing of a run, so that one serves many users, event loops and threads. A run
that needs an event loop of its own closes the connections of that loop.
Source: docs/blueprint.md#agent-config, docs/blueprint.md#provider-clients.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, Self

from typing_extensions import TypeVar

from deltafold.contract.exceptions import MisuseError
from deltafold.conversation.agent.executor import Approve, ToolExecutor
from deltafold.conversation.agent.run import Run
from deltafold.conversation.agent.run_events import AgentEvent, RunResult
from deltafold.conversation.agent.run_setup import RunSetup
from deltafold.conversation.agent.settings import AgentConfig
from deltafold.conversation.context.manager import Compact, ContextManager
from deltafold.conversation.context.router import ModelClient, ProviderRouter
from deltafold.conversation.context.state import AgentState
from deltafold.conversation.history.tool_calls import ToolCallRequest
from deltafold.conversation.tools.approval import Approvals
from deltafold.conversation.tools.tools import Tool
from deltafold.models.base import Model
from deltafold.models.call_inputs import Messages
from deltafold.models.loader import load_model
from deltafold.streams.outputs import Output

if TYPE_CHECKING:
    from types import TracebackType

    from deltafold.otel import Instrumentation

T = TypeVar("T", default=None)
K = TypeVar("K")


class Agent(Generic[T]):
    """A recipe for runs: a model, tools and settings, made once for all users of a program.

    >>> agent = Agent({"model": "anthropic/claude-sonnet-5-5"}, tools=[weather])
    >>> result = await agent.run("What is the weather in Brest?")
    >>> result = await agent.run("And in Dover?", state=result.state)

    The conversation is an `AgentState`: each run without one begins another. Any number of runs go
    on at once, in any event loop and thread; one conversation has one at a time. `async with agent`
    around the program closes the connections of the model that the settings name.

    Args:
        config: the settings; None takes the defaults.
        tools: tools and functions; the model gets these, and the tools of the state's widgets.
        instructions: the system message of its runs; None keeps that of the state, which has none
            by default.
        model: the model, or a router between models; None loads the model of the settings.
        strategy: returns the strategy of an answer for the router, by its number from 1.
        approve: asked before a call that requires an approval. None ends the run with the status
            `awaiting_human`, and `resume` continues it, also in another process.
        runtime: given to tools that require it; None gives the runtime of the settings.
        compact: summarises what a context leaves out.
        output: the type of the result, as `Model.stream` takes it. An answer that is not the
            output goes back to the model with the reason, at most `max_retries` times.

    Attributes:
        config: the settings.

    Raises:
        MisuseError: two tools have one name, a tool has no implementation, or the model is missing.
        ValueError: a setting is wrong or unknown.
    """

    def __init__(
        self,
        config: AgentConfig | Mapping[str, Any] | None = None,
        tools: Iterable[Tool | Callable[..., object]] = (),
        *,
        instructions: str | None = None,
        model: Model[Any] | ProviderRouter | None = None,
        strategy: Callable[[int], str | None] | None = None,
        approve: Approve | None = None,
        runtime: object | None = None,
        compact: Compact | None = None,
        output: type[T] | Output[T, Any] | None = None,
    ) -> None:
        self.config = (
            config if isinstance(config, AgentConfig) else AgentConfig.model_validate(config or {})
        )
        self._telemetry = _telemetry_of(self.config) if model is None else None
        self._loaded = _loaded(self.config, self._telemetry) if model is None else None
        self._router = _router_of(model or self._loaded)
        self._strategy = strategy or _default_strategy
        self._manager = ContextManager(compact)
        self._instructions = instructions
        self._tools = self._checked(tools)
        self._approve = approve
        self._runtime = self.config.runtime or None if runtime is None else runtime
        self._output = None if output is None else Output.of(output)
        self._blocks: Counter[asyncio.AbstractEventLoop] = Counter()
        clients = [route.client for route in self._router.routes.values()]
        if output is not None and not all(isinstance(one, ModelClient) for one in clients):
            raise MisuseError("output: each client of the router must be a ModelClient")

    async def run(
        self,
        messages: Messages,
        *,
        state: AgentState | None = None,
        run_id: str | None = None,
        runtime: object | None = None,
        approve: Approve | None = None,
    ) -> RunResult[T]:
        """Answer the user: ask the model and run its calls until it has no calls.

        Args:
            messages: an input of the user, or messages whose last one is the user's or the result
                of a call, in every form that `Model.stream` takes. They are appended to the
                conversation. Their calls never run, and their answers count in no limit.
            state: the conversation; None begins one, which the result has.
            run_id: id of the run; None makes one.
            runtime: given to tools that require it, in this run; None gives that of the agent.
            approve: asked before a call that requires an approval, in this run; None asks that of
                the agent.

        Raises:
            ModelError: the model failed, and `on_error` of the settings is "raise".
            IllegalTransitionError: a run is under way on this conversation.
            MisuseError: a tool requires a runtime that is not given, the settings name a tool that
                does not exist, or the messages do not fit. Nothing was written.
        """
        return await _result_of(
            self.stream(messages, state=state, run_id=run_id, runtime=runtime, approve=approve)
        )

    async def resume(
        self,
        state: AgentState,
        approvals: Approvals | None = None,
        *,
        runtime: object | None = None,
        approve: Approve | None = None,
    ) -> RunResult[T]:
        """Continue a run that was interrupted, or that waits for approvals.

        A run that has completed returns its result again.

        Args:
            state: the conversation.
            approvals: by the id of the call, whether it may run, or an `Approval`.
            runtime: as for `run`.
            approve: as for `run`.

        Raises:
            ModelError: as for `run`.
            IllegalTransitionError: as for `run`.
            MisuseError: as for `run`, or an approval names a call that does not wait, or the log
                has no input.
        """
        return await _result_of(
            self.stream_resumed(state, approvals, runtime=runtime, approve=approve)
        )

    async def stream(
        self,
        messages: Messages,
        *,
        state: AgentState | None = None,
        run_id: str | None = None,
        runtime: object | None = None,
        approve: Approve | None = None,
    ) -> AsyncGenerator[AgentEvent]:
        """Answer the user, and yield the events of the run; the last is `run_end`.

        >>> async for event in agent.stream("What is the weather in Brest?"):
        ...     if event.delta is not None and event.delta.text:
        ...         print(event.delta.text, end="")

        Leave it early through `contextlib.aclosing`. The arguments and errors are those of `run`.
        """
        run = self._run_on(state, runtime, approve)
        async with aclosing(run.begun(messages, run_id)) as batches:
            async for events in batches:
                for event in events:
                    yield event

    async def stream_resumed(
        self,
        state: AgentState,
        approvals: Approvals | None = None,
        *,
        runtime: object | None = None,
        approve: Approve | None = None,
    ) -> AsyncGenerator[AgentEvent]:
        """Continue a run, and yield its events; otherwise as `resume`."""
        run = self._run_on(state, runtime, approve)
        async with aclosing(run.resumed(approvals or {})) as batches:
            async for events in batches:
                for event in events:
                    yield event

    def run_sync(
        self,
        messages: Messages,
        *,
        state: AgentState | None = None,
        run_id: str | None = None,
        runtime: object | None = None,
        approve: Approve | None = None,
    ) -> RunResult[T]:
        """Answer the user, and wait; otherwise as `run`."""
        _refuse_running_loop()
        return asyncio.run(
            self._alone(
                self.run(messages, state=state, run_id=run_id, runtime=runtime, approve=approve)
            )
        )

    def resume_sync(
        self,
        state: AgentState,
        approvals: Approvals | None = None,
        *,
        runtime: object | None = None,
        approve: Approve | None = None,
    ) -> RunResult[T]:
        """Continue a run, and wait; otherwise as `resume`."""
        _refuse_running_loop()
        return asyncio.run(
            self._alone(self.resume(state, approvals, runtime=runtime, approve=approve))
        )

    def stream_sync(
        self,
        messages: Messages,
        *,
        state: AgentState | None = None,
        run_id: str | None = None,
        runtime: object | None = None,
        approve: Approve | None = None,
    ) -> Generator[AgentEvent]:
        """Answer the user, and wait for each event; otherwise as `stream`.

        Tools run while the caller waits for the next event.
        """
        return self._waiting(self._run_on(state, runtime, approve).begun(messages, run_id))

    def stream_resumed_sync(
        self,
        state: AgentState,
        approvals: Approvals | None = None,
        *,
        runtime: object | None = None,
        approve: Approve | None = None,
    ) -> Generator[AgentEvent]:
        """Continue a run, and wait for each event; otherwise as `stream_sync`."""
        return self._waiting(self._run_on(state, runtime, approve).resumed(approvals or {}))

    def pending(self, state: AgentState) -> list[ToolCallRequest]:
        """Return the calls of a conversation that wait for an approval, oldest first.

        They are those of the event `run_end`, also in another process, whose log has them. The
        answer is [] while an agent asks by `approve`.

        Args:
            state: the conversation, which is only read.

        Raises:
            MisuseError: the settings name a tool that does not exist.
        """
        unused = object()  # no tool runs here
        return self._run_on(state, unused, None).pending()

    async def aclose(self) -> None:
        """Close the connections that this event loop has to the model of the settings.

        A model that was given belongs to who gave it.
        """
        if self._loaded is not None:
            await self._loaded.aclose()

    async def __aenter__(self) -> Self:
        self._blocks[asyncio.get_running_loop()] += 1
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        loop = asyncio.get_running_loop()
        self._blocks[loop] -= 1
        if not self._blocks[loop]:
            del self._blocks[loop]
            await self.aclose()

    def _run_on(
        self, state: AgentState | None, runtime: object | None, approve: Approve | None
    ) -> Run:
        """Return a run on a conversation."""
        state = AgentState() if state is None else state
        if not isinstance(state, AgentState):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller without a checker
            raise MisuseError(
                f"state must be an AgentState, not {type(state).__name__}: AgentState(log) is that "
                "of a log"
            )
        return Run(
            RunSetup(
                self.config,
                state,
                self._router,
                self._strategy,
                self._manager,
                self._instructions,
                self._enabled(state),
                self._approve if approve is None else approve,
                self,
                self._runtime if runtime is None else runtime,
                self._output,
                self._telemetry,
            )
        )

    def _checked(self, tools: Iterable[Tool | Callable[..., object]]) -> list[Tool]:
        """Return the tools, whose schemas are made once."""
        made = [one if isinstance(one, Tool) else Tool.from_function(one) for one in tools]
        given = object()  # a run has what they require, or raises
        ToolExecutor(made, approve=_default_approve, runtime=given, agent=self, state=AgentState())
        return made

    def _enabled(self, state: AgentState) -> list[Tool]:
        """Return the tools that the settings enable, with their approvals."""
        settings = self.config.tools
        made = [*self._tools, *state.enumerate_widget_tools()]
        named = (*(settings.enabled or ()), *settings.require_approval)
        if not named and settings.enabled is None:
            return made
        names = {tool.name for tool in made}
        for name in named:
            if name not in names:
                known = ", ".join(sorted(names)) or "none"
                raise MisuseError(f"tools: there is no tool {name!r}; there are: {known}")
        return [
            tool.asking() if tool.name in settings.require_approval else tool
            for tool in made
            if settings.enabled is None or tool.name in settings.enabled
        ]

    async def _alone(self, running: Coroutine[Any, Any, K]) -> K:
        """Wait for a run that has an event loop of its own, and close the loop's connections."""
        try:
            return await running
        finally:
            for route in self._router.routes.values():
                if isinstance(route.client, ModelClient):
                    await route.client.model.aclose()

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
                runner.run(self._alone(_closed(batches)))


def _router_of(model: Model[Any] | ProviderRouter | None) -> ProviderRouter:
    if isinstance(model, ProviderRouter):
        return model
    if model is None:
        raise MisuseError("model: pass a model, or name one in the settings")
    return ProviderRouter.of_models({"default": model})


def _telemetry_of(config: AgentConfig) -> "Instrumentation | None":
    options: dict[str, Any] = config.observability
    if not options:
        return None
    from deltafold.otel import instrumentation  # noqa: PLC0415 - an optional package

    return instrumentation(**options)


def _loaded(config: AgentConfig, telemetry: "Instrumentation | None") -> Model[Any] | None:
    """Return the model that the settings name, None if they name none."""
    name = config.model
    settings: dict[str, Any] = {}
    if name is None:
        return None
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


def _default_approve(_tool: Tool, _call: ToolCallRequest) -> bool:
    """Reject: nothing is called where the tools are checked."""
    return False


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
