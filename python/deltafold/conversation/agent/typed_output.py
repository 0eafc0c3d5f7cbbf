"""Finishing: the typed output of a run, from its last answer.

In: an answer without calls of other tools.  Out: the output; or what the model has to mend, in the
log.

Laws: an output is validated once. A refusal and a cut answer are not asked for again.
"""

from typing import Any, Final

from deltafold.conversation.agent.event_facts import ACCEPTED
from deltafold.conversation.agent.run_log import is_given, is_paused, newest_answer, open_calls
from deltafold.conversation.agent.run_setup import RunSetup
from deltafold.conversation.agent.tool_turn import told
from deltafold.conversation.history.entries import (
    ModelInputEntry,
    ModelOutputEntry,
    ResetEntry,
    ToolResultsEntry,
)
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.errors.model_error import OutputError
from deltafold.message.messages import Message

_FINAL: Final = frozenset({"refused", "cut", "tools_called"})
"""Defects that another request would repeat."""


class Finishing:
    """The output of a run.

    Attributes:
        output: the output, None before an answer was accepted, and for runs without a type.
    """

    def __init__(self, setup: RunSetup) -> None:
        self.output: Any = None
        self._setup = setup
        self._log = setup.state.log
        self._left = setup.config.loop.max_retries

    def is_output(self, answer: ModelOutputEntry) -> bool:
        """Return whether an answer has no calls of other tools than the output's."""
        calls = answer.tool_calls
        return not calls or all(self._setup.is_output_call(call.tool_name) for call in calls)

    def judged(
        self, answer: ModelOutputEntry | None
    ) -> tuple[ModelOutputEntry | None, OutputError | None]:
        """Return the answer with which the run would end, and what the model has to mend.

        Args:
            answer: the last answer, None if something was said after it.

        Raises:
            OutputError: as for `defect_of`.
        """
        if answer is None:
            return self.accepted_before(), None
        if is_paused(answer):
            return None, None
        defect = self.defect_of(answer)
        return (answer if defect is None else None), defect

    def accepted_before(self) -> ModelOutputEntry | None:
        """Return the answer whose output an earlier part of the run has accepted by a result."""
        spoken = ModelInputEntry | ModelOutputEntry | ToolResultsEntry | ResetEntry
        newest = next((one for one in self._log.newest_first() if isinstance(one, spoken)), None)
        if not isinstance(newest, ToolResultsEntry) or is_given(newest):
            return None
        if self._setup.output is None:
            return None
        last = newest.results[-1] if newest.results else None
        if last is None or not self._setup.is_output_call(last.tool_name):
            return None
        if last.status is not ToolExecutionStatus.SUCCESS:
            return None
        answer = newest_answer(self._log)
        if answer is not None and answer.message is not None:
            self.output = self._setup.output.of_message(answer.message)
        return answer

    def defect_of(self, answer: ModelOutputEntry) -> OutputError | None:
        """Take the output of an answer, and note in the log what the model has to mend.

        Raises:
            OutputError: the defect is one that the model cannot mend, or it had its tries.
        """
        output, message = self._setup.output, answer.message
        if output is None or message is None:
            return None
        try:
            self.output = output.of_message(message)
        except OutputError as error:
            defect = error
        else:
            self._answer_calls(ToolExecutionStatus.SUCCESS, ACCEPTED)
            return None
        if defect.defect in _FINAL or self._left <= 0:
            raise defect
        self._left -= 1
        if not self._answer_calls(ToolExecutionStatus.FAILED, defect.reason):
            said = Message.user(defect.reason)
            entry = ModelInputEntry.of_message(said, {"output_defect": defect.defect})
            self._setup.state.append_model_input(entry)
        return defect

    def _answer_calls(self, status: ToolExecutionStatus, text: str) -> bool:
        """Append results of the calls of the output's tool; return whether there are such calls."""
        calls = open_calls(self._log)
        if calls:
            results = [told(call, status, text) for call in calls]
            self._setup.state.append_tool_results(ToolResultsEntry(results=results))
        return bool(calls)
