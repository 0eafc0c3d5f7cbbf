"""Run: one run of an agent on a conversation.

In: messages of the user, or approvals.  Out: batches of events while the run goes on; the last has
`run_end`.

Laws: the log has every step before the next one begins, so that a run that was interrupted anywhere
continues from its log. A run that is refused has written nothing. The state of the run follows its
table. Cancellation ends the run at once, and leaves no task and a log that a later run continues.
Source: docs/blueprint.md#run-state, docs/blueprint.md#provider-clients.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import FinishReason
from deltafold.conversation.agent.deadline import Deadline, LimitReachedError
from deltafold.conversation.agent.given_messages import append_given, messages_given
from deltafold.conversation.agent.model_turn import Asking
from deltafold.conversation.agent.observed import error_type_of, inside
from deltafold.conversation.agent.run_events import AgentEvent, AgentEventKind, RunResult
from deltafold.conversation.agent.run_log import (
    SENT,
    begun_early,
    broken_answer,
    count_run,
    finish_of,
    is_paused,
    last_answer,
    newest_answer,
    undelivered,
    waiting_calls,
)
from deltafold.conversation.agent.run_setup import RunSetup
from deltafold.conversation.agent.tool_turn import Answering, note_decision
from deltafold.conversation.agent.typed_output import Finishing
from deltafold.conversation.context.run_state import ENDED, RunStatus
from deltafold.conversation.history.entries import ModelInputEntry, ModelOutputEntry
from deltafold.conversation.history.frozen import copied, kept_message
from deltafold.conversation.history.tool_calls import ToolCallRequest
from deltafold.conversation.tools.approval import Approval, Approvals
from deltafold.conversation.tools.argument_parser import ArgumentError
from deltafold.errors.model_error import ModelError, OutputError
from deltafold.message.messages import Message
from deltafold.models.call_inputs import Messages
from deltafold.models.observer import CURRENT, NO_STEP, Step


class Run:
    """One run.

    Args:
        setup: the parts of the agent, and the conversation.
    """

    def __init__(self, setup: RunSetup) -> None:
        self._setup = setup
        self._config = setup.config
        self._state = setup.state
        self._run_state = setup.run_state
        self._turn = 0
        self._inputs: list[Message] = []

    async def begun(
        self, messages: Messages, run_id: str | None
    ) -> AsyncGenerator[list[AgentEvent]]:
        """Begin the run, and yield the events of each read."""
        state = self._state
        claim = state.claim()
        try:
            answering = Answering(self._setup, 0)
            given = messages_given(messages, state)
            state.log.run_id = self._run_state.begin(run_id)

            def prepare() -> int:
                self._instruct()
                self._take_early_calls()
                append_given(given, state, answering, self._deliver)
                return 0

            async with aclosing(self._guarded(prepare, self._step(given[-1]))) as batches:
                async for events in batches:
                    yield events
        finally:
            claim.release()

    async def resumed(self, approvals: Approvals) -> AsyncGenerator[list[AgentEvent]]:
        """Continue the run, and yield the events of each read."""
        log = self._state.log
        claim = self._state.claim()
        try:
            Answering(self._setup, 0)  # checks the tools
            has_input = any(isinstance(entry, ModelInputEntry) for entry in log.newest_first())
            if not has_input and not undelivered(log):
                raise MisuseError("the log has no input that a run could go on with")
            decisions = self._decisions(approvals)
            log.run_id = self._run_state.begin(log.run_id)

            def prepare() -> int:
                self._instruct()
                self._take_early_calls()
                for call_id, decision in decisions.items():
                    note_decision(log, call_id, decision, "resume")
                return count_run(log, log.run_id, self._run_state)

            async with aclosing(self._guarded(prepare, self._step(None))) as batches:
                async for events in batches:
                    yield events
        finally:
            claim.release()

    def pending(self) -> list[ToolCallRequest]:
        """Return the calls that wait for an approval; the log is only read."""
        return Answering(self._setup, 0).undecided(waiting_calls(self._state.log))

    def _step(self, said: Message | None) -> Step:
        """Begin the telemetry of a run."""
        telemetry = self._setup.telemetry or CURRENT.steps
        if telemetry is None:
            return NO_STEP
        return telemetry.begun_run(self._config.name, self._state.log.session_id, said)

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
            if self._config.loop.on_error == "raise" or not is_returned:
                raise
            yield self._run_end("error", error=error)
        finally:
            # A run that was cancelled, or whose events are not read any more.
            self._end(RunStatus.ABORTED, "cancelled")
            if step is not NO_STEP:
                answer, used = newest_answer(self._state.log), self._run_state
                step.ended(
                    error_type_of(used.status, failure),
                    usage=used.token_usage,
                    answer=None if answer is None else answer.message,
                )
            del failure  # its traceback holds this frame

    async def _loop(self, turns: int) -> AsyncGenerator[list[AgentEvent]]:
        """Alternate between the model and its calls until an answer has no calls."""
        self._turn = turns
        log = self._state.log
        deadline = Deadline(self._config.loop.timeout)
        answering = Answering(self._setup, turns)
        finishing = Finishing(self._setup)
        try:
            while True:
                answer = last_answer(log)
                calls = waiting_calls(log)
                is_over = False
                if calls and not (answer and finishing.is_output(answer)):
                    self._run_state.move(RunStatus.TOOL_RUNNING)
                    async with aclosing(deadline.each(answering.run(calls))) as batches:
                        async for events in batches:
                            yield events
                    if answering.pending:
                        self._run_state.move(RunStatus.AWAITING_HUMAN)
                        yield self._run_end("approval", pending=tuple(answering.pending))
                        return
                    self._run_state.move(RunStatus.PREPARING)
                else:
                    accepted, defect = finishing.judged(answer)
                    is_over = accepted is not None
                    if accepted is not None and not undelivered(log):
                        yield self._completed(accepted, finishing)
                        return
                    if defect is not None:
                        yield [self._event(AgentEventKind.OUTPUT_DEFECT, defect=defect)]
                if self._run_state.status is RunStatus.MODEL_RUNNING:  # the answer goes on
                    self._run_state.move(RunStatus.PREPARING)
                self._check_limits(deadline)
                self._turn += 1
                self._deliver(is_over=is_over)
                yield [self._event(AgentEventKind.TURN), *self._delivered()]
                answering = Answering(self._setup, self._turn)
                async with aclosing(self._asking(deadline, answering).run()) as batches:
                    async for events in batches:
                        yield events
        finally:
            await answering.close()

    def _deliver(self, *, is_over: bool = False) -> None:
        """Append the messages that were sent, as inputs.

        They wait while the next request lets an answer go on that was paused or broke off.

        Args:
            is_over: whether the run would end, so that messages are due that wait for that.
        """
        answer = last_answer(self._state.log)
        if broken_answer(self._state.log) or (answer and is_paused(answer)):
            return
        for sent in undelivered(self._state.log):
            said = kept_message(sent)
            if said is not None and (is_over or sent.when == "next_turn"):
                entry = ModelInputEntry.of_message(said, {SENT: str(sent.id)})
                self._state.append_model_input(entry)
                self._inputs.append(said)

    def _delivered(self) -> list[AgentEvent]:
        """Return the events of the messages that were delivered since the last call."""
        inputs, self._inputs = self._inputs, []
        return [self._event(AgentEventKind.INPUT, message=copied(said)) for said in inputs]

    def _completed(self, answer: ModelOutputEntry, finishing: Finishing) -> list[AgentEvent]:
        self._run_state.move(RunStatus.COMPLETED)
        return self._run_end(_reason_of(answer), output=finishing.output)

    def _event(self, kind: AgentEventKind, **facts: Any) -> AgentEvent:  # noqa: ANN401 - its members
        return AgentEvent(kind=kind, turn=self._turn, **facts)

    def _check_limits(self, deadline: Deadline) -> None:
        loop, used = self._config.loop, self._run_state
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
            strategy=self._setup.strategy(self._turn),
            deadline=deadline,
            answering=answering if self._config.loop.start_tools_early else None,
        )

    def _instruct(self) -> None:
        """Set the instructions of this agent, if the conversation has others."""
        said = self._setup.instructions
        if said is not None and said != self._state.system_instruction:
            self._state.set_system_instruction(said)

    def _take_early_calls(self) -> None:
        """Append the answer of calls that began before an interruption kept it from the log."""
        begun = begun_early(self._state.log)
        if begun:
            self._state.append_model_output(ModelOutputEntry(tool_calls=begun))

    def _decisions(self, approvals: Mapping[str, object]) -> dict[str, Approval]:
        """Return the decisions about calls, after all of them were checked."""
        waiting = {call.tool_call_id: call for call in waiting_calls(self._state.log)}
        tools = {tool.name: tool for tool in self._setup.tools}
        decisions: dict[str, Approval] = {}
        for call_id, given in approvals.items():
            call = waiting.get(call_id)
            if call is None:
                raise MisuseError(f"approvals: no call {call_id!r} waits for an approval")
            if not isinstance(given, bool | Approval):
                kind = type(given).__name__
                raise MisuseError(
                    f"approvals: {call_id!r} is a {kind}; pass True, False or an Approval"
                )
            decision = Approval(given) if isinstance(given, bool) else given
            tool = tools.get(call.tool_name)
            if decision.arguments is not None and tool is not None:
                try:
                    tool.arguments_of(decision.changed(call))
                except ArgumentError as error:
                    raise MisuseError(f"approvals: {call_id!r}: {error}") from error
            decisions[call_id] = decision
        return decisions

    def _end(self, status: RunStatus, error: str) -> None:
        """End the state of a run that has not ended."""
        if self._run_state.status not in ENDED:
            self._run_state.pending_tool_calls = []
            self._run_state.move(status, error=error)

    def _run_end(self, reason: str, **facts: Any) -> list[AgentEvent]:  # noqa: ANN401 - of the result
        answer = newest_answer(self._state.log)
        used = self._run_state
        result = RunResult[Any](
            used.status,
            None if answer is None else answer.message,
            reason,
            state=self._state,
            turns=self._turn,
            usage=used.token_usage,
            cost_usd=used.cost_usage,
            cost_unpriced=used.cost_unpriced,
            **facts,
        )
        return [self._event(AgentEventKind.RUN_END, run=result)]


def _reason_of(answer: ModelOutputEntry) -> str:
    """Return "answered", or the finish reason of an answer that is not whole."""
    finish = finish_of(answer)
    is_whole = finish in {None, FinishReason.STOP, FinishReason.TOOL_CALLS}
    return "answered" if is_whole else str(finish)
