"""Talks: an agent and one conversation, as one object for tests of a single user."""

from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from deltafold import Agent, Message
from deltafold.conversation import AgentEvent, AgentState, RunResult, RunState
from deltafold.models.base import Model

T = TypeVar("T")


@dataclass
class Talk(Generic[T]):
    """Runs of one agent on one conversation; `async with` closes the models that are named."""

    agent: Agent[T]
    state: AgentState = field(default_factory=AgentState)
    models: tuple[Model[Any], ...] = ()

    @property
    def run_state(self) -> RunState:
        """The state of the last run."""
        return self.state.run_state

    async def run(self, said: str | Message, **options: Any) -> RunResult[T]:  # noqa: ANN401
        return await self.agent.run(said, state=self.state, **options)

    def run_sync(self, said: str | Message, **options: Any) -> RunResult[T]:  # noqa: ANN401
        return self.agent.run_sync(said, state=self.state, **options)

    def stream(self, said: str | Message) -> AsyncGenerator[AgentEvent]:
        return self.agent.stream(said, state=self.state)

    def stream_sync(self, said: str | Message) -> Generator[AgentEvent]:
        return self.agent.stream_sync(said, state=self.state)

    async def resume(self, approvals: Mapping[str, bool] | None = None) -> RunResult[T]:
        return await self.agent.resume(self.state, approvals)

    def resume_sync(self, approvals: Mapping[str, bool] | None = None) -> RunResult[T]:
        return self.agent.resume_sync(self.state, approvals)

    def stream_resumed(self, approvals: Mapping[str, bool]) -> AsyncGenerator[AgentEvent]:
        return self.agent.stream_resumed(self.state, approvals)

    def stream_resumed_sync(self, approvals: Mapping[str, bool]) -> Generator[AgentEvent]:
        return self.agent.stream_resumed_sync(self.state, approvals)

    async def aclose(self) -> None:
        await self.agent.aclose()
        for model in self.models:
            await model.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()
