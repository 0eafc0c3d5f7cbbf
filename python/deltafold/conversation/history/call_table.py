"""Calls of a log: which there are, and which have their results.

In: entries, before they are added.  Out: the changes that an entry makes, or a `SessionError`.

Laws: the id of a call is new in its run. A result answers a call of the log, and each call gets one
final result.
Source: docs/blueprint.md#session, docs/blueprint.md#invariants.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from deltafold.contract.exceptions import DeltafoldError
from deltafold.conversation.history.entries import (
    HistoryEntry,
    ModelOutputEntry,
    ResetEntry,
    ToolResultsEntry,
)
from deltafold.conversation.history.tool_calls import HistoryToolCallResult, ToolCallRequest


class SessionError(DeltafoldError, ValueError):
    """An entry violates the rules of its log. The log is unchanged.

    `tool_call_id` is the id of the call at fault, None if no call is involved.

    >>> log = ConversationLog()
    >>> try:
    ...     log.append_message(Message.tool_result("call_1", "17:42"))
    ... except SessionError as error:
    ...     error.tool_call_id
    'call_1'
    """

    def __init__(self, message: str, *, tool_call_id: str | None = None) -> None:
        """Store the id of the call in addition to the text."""
        super().__init__(message)
        self.tool_call_id = tool_call_id


class CallTable:
    """Calls of a log by run and id, and whether each has its result."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str | None, str], tuple[ToolCallRequest, bool]] = {}
        self._runs: dict[str, list[str | None]] = {}
        self._last: list[tuple[str | None, str]] = []

    @property
    def open(self) -> list[str]:
        """The ids of calls that have no result yet, in order."""
        return [call_id for (_, call_id), (_, answered) in self._calls.items() if not answered]

    def has(self, run_id: str | None, call_id: str) -> bool:
        """Return whether a run has a call with this id."""
        return (run_id, call_id) in self._calls

    def named(
        self, results: Sequence[HistoryToolCallResult], run_id: str | None
    ) -> tuple[HistoryToolCallResult, ...]:
        """Add the names of the tools to results that have none."""
        return tuple(
            result
            if result.tool_name
            else replace(result, tool_name=self._call(run_id, result.tool_call_id)[1].tool_name)
            for result in results
        )

    def changes(
        self, entry: HistoryEntry
    ) -> dict[tuple[str | None, str], tuple[ToolCallRequest, bool]]:
        """Return the calls that an entry makes and the calls that it answers."""
        changed: dict[tuple[str | None, str], tuple[ToolCallRequest, bool]] = {}
        if isinstance(entry, ModelOutputEntry):
            for call in entry.tool_calls:
                key = (entry.run_id, call.tool_call_id)
                if key in self._calls or key in changed:
                    raise SessionError(
                        f"the call id {call.tool_call_id!r} was used before in this run",
                        tool_call_id=call.tool_call_id,
                    )
                changed[key] = call, False
        if isinstance(entry, ToolResultsEntry):
            for result in entry.results:
                key, call = self._call(entry.run_id, result.tool_call_id)
                if self._calls[key][1] or key in changed:
                    raise SessionError(
                        f"the call {result.tool_call_id!r} has its result already",
                        tool_call_id=result.tool_call_id,
                    )
                changed[key] = call, True
            if entry.execute_error is not None:
                # The error answers the calls of the last answer that have no result.
                changed |= {
                    key: (self._calls[key][0], True)
                    for key in self._last
                    if not self._calls[key][1]
                }
        return changed

    def change(
        self,
        entry: HistoryEntry,
        changed: Mapping[tuple[str | None, str], tuple[ToolCallRequest, bool]],
    ) -> None:
        """Take the changes of an entry that was added."""
        if isinstance(entry, ResetEntry):
            self._calls, self._runs, self._last = {}, {}, []
            return
        for run, call_id in changed:
            if (run, call_id) not in self._calls:
                self._runs[call_id] = [*self._runs.get(call_id, ()), run]
        self._calls.update(changed)
        if isinstance(entry, ModelOutputEntry):
            self._last = list(changed)

    def undo_of(
        self, changed: Mapping[tuple[str | None, str], tuple[ToolCallRequest, bool]]
    ) -> Callable[[], None]:
        """Return a function that takes back the changes of an entry."""
        calls, runs, last = self._calls, self._runs, self._last
        answered = {key: calls[key] for key in changed if key in calls}
        known = {call_id: runs.get(call_id) for _, call_id in changed}

        def undo() -> None:
            for key in changed.keys() - answered.keys():
                calls.pop(key, None)
            calls.update(answered)
            for call_id, of_runs in known.items():
                if of_runs is None:
                    runs.pop(call_id, None)
                else:
                    runs[call_id] = of_runs
            self._calls, self._runs, self._last = calls, runs, last

        return undo

    def _call(
        self, run: str | None, tool_call_id: str
    ) -> tuple[tuple[str | None, str], ToolCallRequest]:
        """Find the call that a result answers.

        It is a call of the last answer, else a call of the result's run, else the only call of that
        id. A stream without a given run id has made up its own.
        """
        for key in self._last:
            if key[1] == tool_call_id and not self._calls[key][1]:
                return key, self._calls[key][0]
        if (run, tool_call_id) in self._calls:
            return (run, tool_call_id), self._calls[run, tool_call_id][0]
        runs = self._runs.get(tool_call_id, [])
        if len(runs) == 1:
            return (runs[0], tool_call_id), self._calls[runs[0], tool_call_id][0]
        reason = "several runs have made" if runs else "was never made"
        raise SessionError(
            f"the result answers the call {tool_call_id!r}, which {reason}",
            tool_call_id=tool_call_id,
        )
