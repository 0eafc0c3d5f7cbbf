"""Answering: the calls of one answer are run, and each stage is noted in the log.

In: the calls of an answer.  Out: events while they run; one entry with all results.

Laws: a call begins after its entry is in the log, and each that began has one result there, also
when the run is cancelled. A call that had begun before an interruption is not run again, unless its
tool is repeatable; its result states the interruption. No task outlives `close`.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from deltafold.conversation.agent.deadline import LimitReachedError
from deltafold.conversation.agent.executor import ToolExecutor, rejection
from deltafold.conversation.agent.run_events import AgentEvent, AgentEventKind
from deltafold.conversation.agent.run_log import Stages, begun_calls, last_answer, stages_of
from deltafold.conversation.agent.run_setup import RunSetup
from deltafold.conversation.history.entries import ToolResultsEntry
from deltafold.conversation.history.kinds import CallStage, ToolExecutionStatus
from deltafold.conversation.history.log import ConversationLog
from deltafold.conversation.history.projection import to_messages
from deltafold.conversation.history.run_entries import CallEntry
from deltafold.conversation.history.sections import LevelOfDetailSections
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest
from deltafold.conversation.tools.approval import Approval
from deltafold.conversation.tools.argument_parser import ArgumentError
from deltafold.conversation.tools.tools import Tool, as_text
from deltafold.message.messages import Message

if TYPE_CHECKING:
    from deltafold.blocks import ProgressMessage

INTERRUPTED: Final = "The run was interrupted while this call ran. It may have had its effect."
"""Result of a call that had begun when the process ended.

>>> call = ToolCallRequest("tide", "call_1", "{}", {})
>>> ToolOutcome(call, ToolExecutionStatus.FAILED, INTERRUPTED).part().is_error
True
"""

NOT_RUN: Final = "The call was not run, because the conversation went on without it."
"""Result of a call that had not begun when the user spoke."""

OUTPUT_LATER: Final = "Other calls came with this one. Call it again when you have their results."
"""Result of a call that gives the output before the results of other calls."""

_Events = list[AgentEvent]


class Answering:
    """The calls of one answer, while they run.

    Args:
        setup: the parts of the agent.
        turn: the number of the answer.

    Attributes:
        pending: calls that wait for an approval.
    """

    def __init__(self, setup: RunSetup, turn: int) -> None:
        self.pending: list[ToolCallRequest] = []
        self._setup = setup
        self._state = setup.state
        self._run_state = setup.run_state
        self._tools = {tool.name: tool for tool in setup.tools}
        self._turn = turn
        self._asks = setup.approve is not None
        self._free = asyncio.Semaphore(setup.config.loop.max_parallel_tools)
        self._events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._tasks: dict[str, asyncio.Task[HistoryToolCallResult]] = {}
        self._calls: Sequence[ToolCallRequest] = ()
        self._early: set[str] = set()
        self._begun: set[str] = set()
        self._stages: dict[str, Stages] = {}
        self._executor = ToolExecutor(
            setup.tools,
            approve=self._decided,
            runtime=setup.runtime,
            agent=setup.agent,
            state=setup.state,
            on_decision=self._note_decision,
            on_start=self._begin,
            on_progress=self._report,
            max_result_bytes=setup.config.tools.max_result_bytes,
            max_hung=setup.config.tools.max_hung,
            telemetry=setup.telemetry,
        )

    def start_early(self, call: ToolCallRequest) -> None:
        """Start a call whose answer has not ended, unless it needs an approval."""
        tool = self._tools.get(call.tool_name)
        is_free = tool is not None and not tool.requires_approval and call.parse_error is None
        limit = self._setup.config.loop.max_tool_calls
        if is_free and (limit is None or len(self._earlier) + len(self._tasks) < limit):
            self._early.add(call.tool_call_id)
            self._start(call)

    def events_so_far(self) -> _Events:
        """Return the events that have come, without waiting."""
        events: _Events = []
        while not self._events.empty():
            event = self._events.get_nowait()
            if event is not None:
                events.append(event)
        return events

    async def run(self, calls: Sequence[ToolCallRequest]) -> AsyncGenerator[_Events]:
        """Run the calls, yield the events, and append the results in one entry.

        Nothing is appended while calls are pending.

        Raises:
            LimitReachedError: the run may not make all of the calls. Those that have begun early
                end first, and no other one begins.
        """
        self._calls = calls
        self._run_state.pending_tool_calls = [call.tool_call_id for call in calls]
        is_too_much = self._exceeds(calls)
        results = {} if is_too_much else self._started(calls)
        for call in self.pending:
            yield [AgentEvent(kind=AgentEventKind.APPROVAL, turn=self._turn, call=call)]
        finished = asyncio.gather(*self._tasks.values(), return_exceptions=True)
        finished.add_done_callback(lambda _: self._events.put_nowait(None))
        while (event := await self._events.get()) is not None:
            yield [event]
        await finished
        if is_too_much:
            raise LimitReachedError("max_tool_calls")
        for call in calls:
            task = self._tasks.get(call.tool_call_id)
            if task is not None:
                is_cancelled = task.cancelled()
                results[call.tool_call_id] = _broken_off(call) if is_cancelled else task.result()
        if not self.pending:
            self._append(calls, results)

    def _started(self, calls: Iterable[ToolCallRequest]) -> dict[str, HistoryToolCallResult]:
        """Start the calls that can run, and return the results of those that ran before."""
        results: dict[str, HistoryToolCallResult] = {}
        self._stages = stages_of(self._state.log)
        for call in calls:
            if call.tool_call_id in self._tasks:
                continue
            reached = self._stages.get(call.tool_call_id, Stages())
            known = self._known(call, reached)
            if known is not None:
                results[call.tool_call_id] = known
                if reached.result is None:  # its end was told when it ended
                    self._put(AgentEventKind.TOOL_END, call, result=known)
            elif self._waits(call, reached):
                self.pending.append(call)
            else:
                self._start(call)
        return results

    @cached_property
    def _earlier(self) -> set[str]:
        """Ids of the calls that the run has begun before those of this answer."""
        return begun_calls(self._state.log)

    def _exceeds(self, calls: Iterable[ToolCallRequest]) -> bool:
        """Return whether the run has too many calls when these ones begin too."""
        limit = self._setup.config.loop.max_tool_calls
        if limit is None:
            return False
        stages = stages_of(self._state.log)
        beginning = {
            call.tool_call_id
            for call in calls
            if self._known(call, stages.get(call.tool_call_id, Stages())) is None
        }
        return len(self._earlier | self._tasks.keys() | beginning) > limit

    def settle(self, calls: Sequence[ToolCallRequest]) -> None:
        """Append results of calls that are not run any more."""
        stages = stages_of(self._state.log)
        results: dict[str, HistoryToolCallResult] = {}
        for call in calls:
            known = self._known(call, stages.get(call.tool_call_id, Stages()), is_repeated=False)
            results[call.tool_call_id] = known or told(call, ToolExecutionStatus.SKIPPED, NOT_RUN)
        self._append(calls, results)

    def undecided(self, calls: Iterable[ToolCallRequest]) -> list[ToolCallRequest]:
        """Return the calls that wait for an approval."""
        stages = stages_of(self._state.log)
        reached = ((call, stages.get(call.tool_call_id, Stages())) for call in calls)
        return [
            call
            for call, so_far in reached
            if self._known(call, so_far) is None and self._waits(call, so_far)
        ]

    async def close(self) -> None:
        """Cancel the calls that run, and wait until they have ended."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:  # without any, a run whose event loop is closed ends too
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _known(
        self, call: ToolCallRequest, stages: Stages, *, is_repeated: bool = True
    ) -> HistoryToolCallResult | None:
        """Return the result of a call that an earlier part of the run has determined."""
        if stages.result is not None:
            return stages.result
        if self._setup.is_output_call(call.tool_name):
            return told(call, ToolExecutionStatus.SKIPPED, OUTPUT_LATER)
        tool = self._tools.get(call.tool_name)
        runs_again = is_repeated and tool is not None and tool.is_repeatable
        if CallStage.STARTED in stages.reached and not runs_again:
            return _broken_off(call)
        if CallStage.REJECTED in stages.reached:
            reason = None if stages.decision is None else stages.decision.reason
            return told(call, ToolExecutionStatus.REJECTED, rejection(reason))
        return None

    def _waits(self, call: ToolCallRequest, stages: Stages) -> bool:
        """Return whether a call waits for an approval of a later process."""
        tool = self._tools.get(call.tool_name)
        if tool is None or not tool.requires_approval or self._asks or call.parse_error is not None:
            return False
        if CallStage.APPROVED in stages.reached:
            return False
        try:
            tool.arguments_of(call)
        except ArgumentError:
            return False  # nobody needs to approve a call that fails
        return True

    def _start(self, call: ToolCallRequest) -> None:
        self._tasks[call.tool_call_id] = asyncio.create_task(self._run(call))

    async def _run(self, call: ToolCallRequest) -> HistoryToolCallResult:
        async with self._free:
            try:
                result = (await self._executor.execute(call)).history_result()
            except BaseException:
                # A repeatable call has no result yet: a resumed run makes it again.
                tool = self._tools.get(call.tool_name)
                if call.tool_call_id in self._begun and tool and not tool.is_repeatable:
                    self._ended(call, _broken_off(call))
                raise
            self._ended(call, result)
            return result

    async def _decided(self, tool: Tool, call: ToolCallRequest) -> bool | Approval:
        """Return the decision that the log has, else ask for one."""
        known = self._decision(call)
        if known is not None:
            return Approval(
                known.stage is CallStage.APPROVED, known.arguments, known.reason, known.by
            )
        if self._setup.approve is None:  # a call that is not approved waits, and does not come here
            return False
        given = self._setup.approve(tool, call)
        return await given if inspect.isawaitable(given) else given

    def _decision(self, call: ToolCallRequest) -> CallEntry | None:
        return self._stages.get(call.tool_call_id, Stages()).decision

    def _note_decision(self, call: ToolCallRequest, decision: Approval) -> None:
        if self._decision(call) is None:
            note_decision(self._state.log, call.tool_call_id, decision, "approve")

    def _begin(self, call: ToolCallRequest) -> None:
        self._begun.add(call.tool_call_id)
        began_with = {"call": call} if call.tool_call_id in self._early else {}
        self._note(call.tool_call_id, CallStage.STARTED, **began_with)
        self._put(AgentEventKind.TOOL_START, call)

    def _ended(self, call: ToolCallRequest, result: HistoryToolCallResult) -> None:
        self._note(call.tool_call_id, CallStage.ENDED, result=result)
        self._put(AgentEventKind.TOOL_END, call, result=result)

    def _note(self, call_id: str, stage: CallStage, **facts: Any) -> None:  # noqa: ANN401 - fields of the entry
        self._state.log.append(CallEntry(tool_call_id=call_id, stage=stage, **facts))

    def _put(self, kind: AgentEventKind, call: ToolCallRequest, **facts: Any) -> None:  # noqa: ANN401 - fields of the event
        self._events.put_nowait(AgentEvent(kind=kind, turn=self._turn, call=call, **facts))

    def _report(self, call: ToolCallRequest, progress: object) -> None:
        make = self._progress_message(call, progress)
        self._put(AgentEventKind.PROGRESS, call, progress=progress, make_message=make)

    def _progress_message(
        self, call: ToolCallRequest, progress: object
    ) -> "Callable[[], ProgressMessage]":
        def make() -> "ProgressMessage":
            from deltafold.blocks import ProgressMessage, normalized  # noqa: PLC0415 - few ask for it

            shown = (
                progress if isinstance(progress, Message) else Message.assistant(as_text(progress))
            )
            return ProgressMessage(
                content=shown,
                tool_use_id=call.tool_call_id,
                sibling_tool_use_ids=[
                    one.tool_call_id for one in self._calls if one.tool_call_id != call.tool_call_id
                ],
                tools=self._executor.specs,
                normalized_messages=normalized(to_messages(self._state.render_live_context())),
            )

        return make

    def _append(
        self, calls: Iterable[ToolCallRequest], results: Mapping[str, HistoryToolCallResult]
    ) -> None:
        ordered = [results[call.tool_call_id] for call in calls]
        stages = stages_of(self._state.log)
        decisions = [stages.get(call.tool_call_id, Stages()).decision for call in calls]
        records = [entry.approval_record() for entry in decisions if entry is not None]
        entry = ToolResultsEntry(results=ordered, approvals=records)
        if last_answer(self._state.log) is None:  # some calls have their results already
            self._state.log.append(entry)
        else:
            self._state.append_tool_results(entry)
        self._run_state.pending_tool_calls = []


def note_decision(log: ConversationLog, call_id: str, decision: Approval, by: str) -> None:
    """Append who approved or rejected a call.

    Args:
        log: the log.
        call_id: id of the call.
        decision: the decision.
        by: the author of a decision that names none.
    """
    log.append(
        CallEntry(
            tool_call_id=call_id,
            stage=CallStage.APPROVED if decision.approved else CallStage.REJECTED,
            by=decision.by or by,
            reason=decision.reason,
            arguments=decision.arguments,
        )
    )


def _broken_off(call: ToolCallRequest) -> HistoryToolCallResult:
    """Make the result of a call that had begun and was not awaited to its end."""
    return told(call, ToolExecutionStatus.FAILED, INTERRUPTED)


def told(call: ToolCallRequest, status: ToolExecutionStatus, text: str) -> HistoryToolCallResult:
    """Make the result of a call that was not run here."""
    sections = LevelOfDetailSections.of_text(text)
    return HistoryToolCallResult(call.tool_name, call.tool_call_id, status, sections)
