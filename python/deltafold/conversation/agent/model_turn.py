"""Asking: one answer of the model, with retries, and the continuation of broken answers.

In: the conversation and a router.  Out: events while the answer arrives; the answer in the log.

Laws: everything that was received is in the log before the next request. An answer that broke off
is continued where its provider can do that, and asked again elsewhere. A failure that is not
retryable, or the last retry, lets the next Model of `Model.with_fallback` answer, or ends the run.
A context that is too long is compacted before that, once for each answer, if the settings say so.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from deltafold.contract.kinds import DeltaKind, ErrorCode
from deltafold.contract.log import LOGGER
from deltafold.conversation.agent.deadline import Deadline, LimitReachedError
from deltafold.conversation.agent.overflow import HeldBudget, budget_after, held_budget
from deltafold.conversation.agent.run_events import AgentEvent, AgentEventKind
from deltafold.conversation.agent.run_log import begun_early, broken_answer
from deltafold.conversation.agent.run_setup import RunSetup
from deltafold.conversation.agent.tool_turn import Answering
from deltafold.conversation.context.manager import ContextBuildResult, ContextInput, whole_context
from deltafold.conversation.context.router import (
    LlmRequest,
    ModelClient,
    ModelOutputAccumulator,
    invocation_of,
)
from deltafold.conversation.context.run_state import RunStatus
from deltafold.conversation.history.context_messages import ContextMessage
from deltafold.conversation.history.entries import ModelInvocationDescriptor, ModelOutputEntry
from deltafold.conversation.history.frozen import kept_message
from deltafold.conversation.history.run_entries import PartialEntry
from deltafold.conversation.history.tool_calls import ToolCallRequest
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message, ToolCallPart
from deltafold.models.fallback import is_as_small, moved_warning, name_of

if TYPE_CHECKING:
    from deltafold._core import MessageDelta
    from deltafold.models.base import Model

_REFUSED: Final = frozenset({400, 422})
"""Statuses of a request that a provider will never accept."""


class Asking:
    """One answer of the model, while it arrives.

    Args:
        setup: the parts of the agent.
        turn: the number of the answer.
        strategy: the strategy of the request; None is the default of the router.
        deadline: the end of the run.
        answering: starts calls early; None waits for the end of the answer.
    """

    def __init__(
        self,
        setup: RunSetup,
        turn: int,
        *,
        strategy: str | None,
        deadline: Deadline,
        answering: Answering | None,
    ) -> None:
        self._setup = setup
        self._log = setup.state.log
        self._turn = turn
        self._strategy = strategy
        self._deadline = deadline
        self._answering = answering
        client = setup.router.route(strategy).client
        self._whole = client.model if isinstance(client, ModelClient) else None
        self._chain = () if self._whole is None else self._whole.chain
        self._place = 0
        self._moves: list[dict[str, object]] = []
        self._held: HeldBudget | None = None
        self._compacted: ContextBuildResult | None = None

    @property
    def _model(self) -> "Model[Any] | None":
        """The Model that answers, None for another client."""
        return self._chain[self._place] if self._chain else None

    @property
    def _invocation(self) -> ModelInvocationDescriptor:
        """Provider, specification and model of the next request."""
        model = self._model
        if model is not None and self._place:
            return invocation_of(model)
        return self._setup.router.route(self._strategy).invocation

    async def run(self) -> AsyncGenerator[list[AgentEvent]]:
        """Ask until the answer is in the log, and yield the events.

        Raises:
            ModelError: the last request failed.
            LimitReachedError: the context does not fit, or the time is over.
        """
        loop = self._setup.config.loop
        partial = broken_answer(self._log)
        attempt = 0  # at this Model
        for number in count(1):
            continued = partial if self._continues(partial) else None
            request = await self._request(continued)
            self._setup.run_state.move(RunStatus.MODEL_RUNNING)
            answer = ModelOutputAccumulator(request.invocation)
            try:
                following = answer.follow_batches(self._setup.router.call_model(request))
                async with aclosing(self._deadline.each(following)) as batches:
                    async for batch in batches:
                        yield self._events_of(batch, answer)
            finally:
                error = self._ended(answer, continued)
            if error is None:
                entry = self._append(answer, number, is_continued=continued is not None)
                yield [self._event(AgentEventKind.ANSWER, message=entry.message)]
                return
            if self._salvaged(error):
                yield [self._event(AgentEventKind.ANSWER, message=error.partial_message)]
                return
            was_refused = continued is not None and error.status in _REFUSED
            seconds = 0.0 if was_refused else loop.wait(attempt, error.retry_after)
            is_worth_it = attempt < loop.max_retries and (error.retryable or was_refused)
            if is_worth_it and seconds <= loop.max_retry_seconds:
                attempt += 1
            elif self._moved(error):
                attempt, seconds = 0, 0.0
            elif (smaller := await self._smaller(error, continued)) is not None:
                self._setup.run_state.move(RunStatus.PREPARING, error=str(error))
                yield [self._event(AgentEventKind.COMPACTED, error=error, context=smaller)]
                continue
            else:
                raise error
            partial = None if was_refused else error.partial_message
            self._setup.run_state.move(RunStatus.PREPARING, error=str(error))
            yield [self._retry(seconds, error, partial)]
            await self._deadline.of(asyncio.sleep(seconds))

    def _moved(self, error: ModelError) -> bool:
        """Let the next Model answer after a failure, and return whether there is one."""
        if self._whole is None or not self._whole.moves_on(error):
            return False
        failed = self._chain[self._place]
        for place, model in enumerate(self._chain[self._place + 1 :], self._place + 1):
            if not is_as_small(error, failed, model):
                self._place = place
                self._moves.append(moved_warning(name_of(failed), name_of(model), error))
                return True
        return False

    async def _request(self, continued: Message | None) -> LlmRequest:
        model = self._model
        context = await self._context()
        params: dict[str, object] = {}
        if model is not None:
            run_id, session_id = self._setup.run_state.current_run_id, self._log.session_id
            params["request_metadata"] = {"run_id": run_id, "session_id": session_id}
        if continued is not None:
            params["continue_from"] = continued
        if self._setup.output is not None:
            params["output"] = self._setup.output
        if self._moves:
            params["notes"] = tuple(self._moves)
        request = self._setup.router.request(context, self._setup.tools, self._strategy, **params)
        if model is None or len(self._chain) == 1:
            return request
        return replace(request, place=self._place, invocation=self._invocation)

    async def _context(self) -> Sequence[ContextMessage]:
        if self._compacted is not None:
            return self._compacted.context
        settings = self._setup.config.context
        if settings.on_overflow == "compact":
            self._held = held_budget(self._log, self._invocation)
        given = self._context_input()
        if given.token_budget is None:
            return whole_context(self._setup.state)
        built = await self._deadline.of(self._setup.manager.abuild_context(given))
        limit = settings.token_budget
        if limit is not None and built.update.tokens > limit:
            raise LimitReachedError("does_not_fit", built.update.reason)
        return built.context

    def _context_input(self) -> ContextInput:
        budget, held, model = self._setup.config.context.token_budget, self._held, self._model
        is_held = held is not None and (budget is None or held.tokens <= budget)
        return ContextInput(
            self._setup.state,
            held.tokens if held is not None and is_held else budget,
            tools=self._setup.tools,
            dialect=None if model is None else model.dialect,
            model_id="" if model is None else model.model_id,
            budget_since=held.since if held is not None and is_held else None,
        )

    async def _smaller(
        self, error: ModelError, continued: Message | None
    ) -> ContextBuildResult | None:
        """Make a smaller context after one that was too long, None if the failure is the end."""
        settings, manager = self._setup.config.context, self._setup.manager
        if settings.on_overflow != "compact" or self._compacted is not None:
            return None
        is_overflow = error.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED
        if not is_overflow or _has_more(error.partial_message, continued):
            return None
        sent = manager.compute_context_updates(self._context_input()).tokens
        limit = settings.token_budget
        window = None if self._model is None else self._model.model_info().context_window_tokens
        if limit is None and window is not None:
            limit = window // 2
        self._held = budget_after(self._log, sent, limit)
        smaller = await self._deadline.of(manager.abuild_context(self._context_input()))
        if smaller.update.tokens >= sent:
            return None
        self._compacted = smaller
        return smaller

    def _continues(self, partial: Message | None) -> bool:
        model = self._model
        if partial is None or model is None or self._setup.output is not None:
            return False
        return model.can_continue(partial)

    def _events_of(
        self, batch: "Iterable[MessageDelta]", answer: ModelOutputAccumulator
    ) -> list[AgentEvent]:
        turn, kind = self._turn, AgentEventKind.DELTA
        events = [AgentEvent(kind=kind, turn=turn, delta=delta) for delta in batch]
        answering = self._answering
        if answering is None:
            return events
        for event in events:
            call_id = _ended_call(event.delta)
            if call_id is None or self._log.has_call(call_id):
                continue
            call = self._call(answer, call_id)
            if call is not None:
                answering.start_early(call)
        return [*events, *answering.events_so_far()]

    def _call(self, answer: ModelOutputAccumulator, call_id: str) -> ToolCallRequest | None:
        """Return a call that has ended, None if the answer so far says that it must not run."""
        entry = ModelOutputEntry.of_message(answer.snapshot())
        return next((call for call in entry.tool_calls if call.tool_call_id == call_id), None)

    def _ended(
        self, answer: ModelOutputAccumulator, continued: Message | None
    ) -> ModelError | None:
        """Return the failure of a request, after its usage and its partial answer are recorded."""
        error = answer.error
        if error is not None:
            self._setup.run_state.add_usage(answer.usage, answer.cost_usd, answer.cost_unpriced)
        partial = None if error is None else error.partial_message
        if error is not None and partial is not None and _has_more(partial, continued):
            self._log.append(PartialEntry(message=partial, error=str(error)))
        return error

    def _append(
        self, answer: ModelOutputAccumulator, attempt: int, *, is_continued: bool
    ) -> ModelOutputEntry:
        held = self._held if self._compacted is not None else None
        entry = answer.build_entry(attempt=attempt, **({} if held is None else held.metadata))
        if any(self._log.has_call(call.tool_call_id) for call in entry.tool_calls):
            # Some servers count the calls of each answer from zero.
            message = self._with_new_ids(answer.snapshot())
            entry = ModelOutputEntry.of_message(message, entry.invocation, entry.metadata)
        self._warn_of_early_calls(kept_message(entry))
        kept = None if is_continued else kept_message(entry)
        billed = answer if kept is None else kept.meta
        state = self._setup.run_state
        state.add_usage(answer.usage, billed.cost_usd, billed.cost_unpriced)
        return self._setup.state.append_model_output(entry)

    def _warn_of_early_calls(self, message: Message | None) -> None:
        """Log that calls have run whose answer forbids it."""
        reason = None if message is None else message.forbids_calls
        begun = [call.tool_name for call in begun_early(self._log)]
        if reason is not None and begun:
            LOGGER.warning(
                "tools ran early (%s), and then %s; loop.start_tools_early=False waits for the end",
                ", ".join(begun),
                reason,
            )

    def _with_new_ids(self, message: Message) -> Message:
        """Return the message with new ids of the calls whose ids the run has already."""
        parts = [
            part.model_copy(update={"tool_call_id": f"call_{uuid4().hex}"})
            if isinstance(part, ToolCallPart) and self._log.has_call(part.tool_call_id)
            else part
            for part in message.parts
        ]
        return message.model_copy(update={"parts": parts})

    def _salvaged(self, error: ModelError) -> bool:
        """Append an answer that broke off, if some of its calls run already."""
        partial = error.partial_message
        begun = {call.tool_call_id for call in begun_early(self._log)}
        if partial is None or not begun:
            return False
        self._warn_of_early_calls(partial)
        parts = [
            part
            for part in partial.parts
            if not isinstance(part, ToolCallPart) or part.tool_call_id in begun
        ]
        # The entry of the answer that broke off has its usage.
        message = Message(role=partial.role, parts=parts, run_id=partial.run_id)
        self._setup.state.append_model_output(ModelOutputEntry.of_message(message))
        return True

    def _retry(self, seconds: float, error: ModelError, partial: Message | None) -> AgentEvent:
        return self._event(
            AgentEventKind.RETRY,
            seconds=seconds,
            error=error,
            continues=self._continues(partial),
            message=error.partial_message,
        )

    def _event(self, kind: AgentEventKind, **facts: Any) -> AgentEvent:  # noqa: ANN401 - its members
        return AgentEvent(kind=kind, turn=self._turn, **facts)


def _has_more(partial: Message | None, continued: Message | None) -> bool:
    """Return whether a request has brought content."""
    known = [] if continued is None else continued.parts
    return partial is not None and partial.parts != known


def _ended_call(delta: "MessageDelta | None") -> str | None:
    """Return the id of the call that a delta ends, None for other deltas and a cut call."""
    if delta is None or delta.kind != DeltaKind.TOOL_CALL_END or delta.incomplete:
        return None
    return delta.tool_call_id
