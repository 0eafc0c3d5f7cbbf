"""Router: selects the client of a request, and converts its deltas to an entry.

In: a context, tools, an invocation, a strategy.  Out: a stream of deltas from the client of the
strategy, and the entry that the deltas make.

Laws: a request is read-only. A client serves one provider in one specification, and has no access
to the state of an agent. Only final output enters the history.
Source: docs/blueprint.md#provider-clients, docs/blueprint.md#history-context-provider.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from deltafold._core import DeltaBatch, MessageAssembler, MessageDelta
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.usage import Usage
from deltafold.conversation.history.context_messages import ContextMessage
from deltafold.conversation.history.entries import ModelInvocationDescriptor, ModelOutputEntry
from deltafold.conversation.history.frozen import FrozenMapping, thawed
from deltafold.conversation.history.projection import shared_messages
from deltafold.errors.model_error import ModelError
from deltafold.message import data_types
from deltafold.message.messages import Message
from deltafold.models.falling_streams import AsyncFallingStream
from deltafold.streams.call_facts import cost_of_answer
from deltafold.streams.delta_streams import AsyncDeltaStream

if TYPE_CHECKING:
    from deltafold.conversation.tools.tools import Tool
    from deltafold.models.base import Model
    from deltafold.specs.tool_specs import ToolSpec

ModelOutputDelta: TypeAlias = MessageDelta
"""A delta of a client's stream."""


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """One request to a model.

    >>> invocation = ModelInvocationDescriptor("openai", "openai-chat", "gpt-5.6-terra")
    >>> request = LlmRequest(
    ...     state.render_live_context(), [], invocation, params={"max_tokens": 100}
    ... )
    >>> request.strategy, request.params["max_tokens"]
    ('default', 100)

    Attributes:
        context: the messages that the model is shown.
        tools: the tools that the model may call.
        invocation: provider, specification and model.
        strategy: purpose of the request: a stage of the task, such as "plan" or "execute".
        params: settings for this call alone.
        place: the place of the Model that answers alone, in `Model.chain` of the client; None lets
            the first one answer, and those after it when it fails.
    """

    context: Sequence[ContextMessage]
    tools: Sequence["Tool | ToolSpec"]
    invocation: ModelInvocationDescriptor
    strategy: str = "default"
    params: Mapping[str, object] = field(default_factory=FrozenMapping)
    place: int | None = None

    def __post_init__(self) -> None:
        """Freeze the contents."""
        object.__setattr__(self, "context", tuple(self.context))
        object.__setattr__(self, "tools", tuple(self.tools))
        object.__setattr__(self, "params", FrozenMapping(self.params))


class ProviderClient(Protocol):
    """Client of one provider in one specification.

    >>> client: ProviderClient = ModelClient(model)
    >>> request = LlmRequest(state.render_live_context(), [], client.invocation)
    >>> [delta.text async for delta in client.call_model(request) if delta.text]
    ['At ', '17:42.']
    """

    def call_model(self, request: LlmRequest) -> AsyncIterable[ModelOutputDelta]:
        """Answer a request, delta by delta; a failure is the last delta."""
        ...


class ModelClient:
    """A provider client over a `Model`.

    >>> client = ModelClient(load_model("anthropic/claude-sonnet-5-5"))
    """

    def __init__(self, model: "Model[Any]") -> None:
        self.model = model

    @property
    def invocation(self) -> ModelInvocationDescriptor:
        """Provider, specification and model of the request."""
        return invocation_of(self.model)

    def call_model(self, request: LlmRequest) -> AsyncIterable[ModelOutputDelta]:
        """Send a request; the model of the request replaces the model of the client.

        Messages that the provider would refuse are repaired, unless `repair` of the request forbids
        it.

        The stream is an `AsyncDeltaStream`: leave it through `async with`, or read it to its end.

        Raises:
            MisuseError: the request is for another provider or specification, which the history
                would record although this client has answered.
        """
        model = self.model if request.place is None else self.model.chain[request.place]
        own, asked = invocation_of(model), request.invocation
        if (own.provider_id, own.specification) != (asked.provider_id, asked.specification):
            raise MisuseError(
                f"invocation: the client is for {own.provider_id} {own.specification}, not for "
                f"{asked.provider_id} {asked.specification}"
            )
        params: dict[str, Any] = thawed(request.params)
        if request.invocation.model:
            params["model_id"] = request.invocation.model
        params.setdefault("repair", "auto")
        stream: AsyncIterable[MessageDelta] = model.stream(
            shared_messages(request.context), request.tools, **params
        )
        return stream


def invocation_of(model: "Model[Any]") -> ModelInvocationDescriptor:
    """Return provider, specification and model of the requests of a Model."""
    return ModelInvocationDescriptor(model.provider_id, model.specification, model.model_id)


@dataclass(frozen=True, slots=True)
class Route:
    """Client and settings for the requests of a strategy.

    >>> client = ModelClient(model)
    >>> Route(client, client.invocation).invocation.provider_id
    'openai'
    """

    client: ProviderClient
    invocation: ModelInvocationDescriptor


class ProviderRouter:
    """Chooses the client by strategy.

    >>> router = ProviderRouter(
    ...     {"plan": Route(claude, plan), "execute": Route(gpt, execute)}
    ... )
    >>> stream = router.call_model(router.request(context, tools, "plan"))

    Args:
        routes: the client and the invocation of each strategy.
        default: the strategy of requests that name none; None is the first.
    """

    def __init__(self, routes: Mapping[str, Route], *, default: str | None = None) -> None:
        if not routes:
            raise MisuseError("routes must contain at least one route")
        self._routes = dict(routes)
        self._default = next(iter(routes)) if default is None else default
        self.route(self._default)

    @classmethod
    def of_models(cls, models: Mapping[str, "Model[Any]"], *, default: str | None = None) -> Self:
        """Make a router of the model of each strategy."""
        clients = {strategy: ModelClient(model) for strategy, model in models.items()}
        routes = {
            strategy: Route(client, client.invocation) for strategy, client in clients.items()
        }
        return cls(routes, default=default)

    @property
    def routes(self) -> Mapping[str, Route]:
        """The route of each strategy."""
        return MappingProxyType(self._routes)

    def route(self, strategy: str | None = None) -> Route:
        """Return the route of a strategy.

        Raises:
            MisuseError: the strategy has no route; the error lists the known strategies.
        """
        strategy = self._default if strategy is None else strategy
        found = self._routes.get(strategy)
        if found is None:
            raise MisuseError(f"strategy: there are {', '.join(self._routes)}, not {strategy!r}")
        return found

    def request(
        self,
        context: Sequence[ContextMessage],
        tools: Sequence["Tool | ToolSpec"] = (),
        strategy: str | None = None,
        **params: object,
    ) -> LlmRequest:
        """Make the request of a strategy."""
        strategy = self._default if strategy is None else strategy
        invocation = self.route(strategy).invocation
        return LlmRequest(context, tools, invocation, strategy, params)

    def call_model(self, request: LlmRequest) -> AsyncIterable[ModelOutputDelta]:
        """Let the client of the request's strategy answer."""
        return self.route(request.strategy).client.call_model(request)


class ModelOutputAccumulator:
    """Collects the deltas of one answer, and makes its entry.

    >>> accumulator = ModelOutputAccumulator(request.invocation)
    >>> async for delta in accumulator.follow(router.call_model(request)):
    ...     print(delta.text)
    >>> state.append_model_output(accumulator.build_entry())

    `follow` takes the message that a `Model`'s stream has folded, with its cost, its duration and
    the notes of repairs. `consume` folds the deltas of any other client; its message has a cost, if
    the price list knows the model.
    """

    def __init__(self, invocation: ModelInvocationDescriptor) -> None:
        self._invocation = invocation
        self._assembler = MessageAssembler()
        self._stream: AsyncDeltaStream | None = None

    async def follow(
        self, stream: AsyncIterable[ModelOutputDelta]
    ) -> AsyncGenerator[ModelOutputDelta]:
        """Yield the deltas of a client's stream, and close the stream at the end.

        A caller that leaves the loop early closes the stream by `contextlib.aclosing`:

        >>> async with aclosing(accumulator.follow(stream)) as deltas:
        ...     async for delta in deltas: ...

        Raises:
            MisuseError: the accumulator has deltas already.
            ContractError: a delta does not follow from those before.
        """
        async with aclosing(self.follow_batches(stream)) as batches:
            async for batch in batches:
                for delta in batch:
                    yield delta

    async def follow_batches(
        self, stream: AsyncIterable[ModelOutputDelta]
    ) -> AsyncGenerator[Iterable[ModelOutputDelta]]:
        """Yield the deltas of each read of a client's stream; otherwise as `follow`."""
        if self._stream is not None or self._assembler.status != "idle":
            raise MisuseError("an accumulator collects one answer; make another one")
        if isinstance(stream, AsyncDeltaStream):
            self._stream = stream
            async with stream:
                async for batch in stream.batches():
                    yield batch
            return
        deltas = aiter(stream)
        try:
            async for delta in deltas:
                self._assembler.consume(delta)
                yield (delta,)
        finally:
            if isinstance(deltas, AsyncGenerator):
                await deltas.aclose()

    def consume(self, delta: ModelOutputDelta | DeltaBatch) -> None:
        """Take a delta.

        Raises:
            MisuseError: `follow` takes the deltas of a stream already.
            ContractError: it does not follow from those before.
        """
        if self._stream is not None:
            raise MisuseError("an accumulator that follows a stream takes no other deltas")
        self._assembler.consume(delta)

    def snapshot(self) -> Message:
        """Return the message with everything that was received so far.

        After the end, the message of a `Model`'s stream has its cost and duration.
        """
        return (self._assembler if self._stream is None else self._stream).snapshot()

    @property
    def usage(self) -> Usage | None:
        """Usage of this call alone, also if it continues an answer."""
        return (self._assembler if self._stream is None else self._stream).usage

    @property
    def cost_usd(self) -> float | None:
        """Cost of this call alone in US dollars; None if it is unknown."""
        return self._cost().usd if self._stream is None else self._stream.cost_usd

    @property
    def cost_unpriced(self) -> tuple[str, ...]:
        """Names of what was billed for this call and is not in its cost."""
        return self._cost().unpriced if self._stream is None else self._stream.cost_unpriced

    @property
    def error(self) -> ModelError | None:
        """Error that ended the answer; None while the stream runs and after success."""
        return self._assembler.get_error() if self._stream is None else self._stream.error

    def _cost(self) -> "data_types.Cost":
        """Return the cost of an answer whose deltas came from another client."""
        invocation, served = self._invocation, self._assembler.model_id
        return cost_of_answer(self.usage, invocation.provider_id, invocation.model, served)

    def build_entry(self, **metadata: object) -> ModelOutputEntry:
        """Make the entry of a whole answer.

        Raises:
            ModelError: the answer failed: nothing of it enters the history.
            MisuseError: it has not ended.
        """
        if self._stream is None:
            message = self._assembler.build_final_message()
            meta, cost = message.meta, self._cost()
            meta.cost_usd, meta.cost_source = cost.usd, cost.source
            meta.cost_unpriced = cost.unpriced
        else:
            message = self._stream.message
        invocation = self._invocation
        if isinstance(self._stream, AsyncFallingStream) and self._stream.moved_to is not None:
            invocation = ModelInvocationDescriptor(*self._stream.moved_to)
        return ModelOutputEntry.of_message(message, invocation, metadata)
