"""Problems of a history that make providers refuse it.

Laws: the list of codes is closed. A problem names its place. Nothing here changes a message.
Source: docs/protocols/anthropic-messages.md#request, docs/protocols/openai-chat.md#request,
docs/protocols/openai-responses.md#request, docs/protocols/gemini.md#request,
docs/protocols/bedrock-converse.md#request; recordings of refused requests, and public reports of
other libraries (read 2026-11).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from deltafold.contract.exceptions import DeltafoldError
from deltafold.contract.names import RequestProtocol
from deltafold.dialects import DIALECTS, Rule
from deltafold.dialects.acceptance import OF_CLAUDE


class ProblemCode(StrEnum):
    """Code of a problem.

    >>> ProblemCode.EMPTY_HISTORY in check([], "openai-chat").codes
    True
    """

    ARGUMENTS_NOT_AN_OBJECT = "arguments_not_an_object"
    ASSISTANT_FIRST = "assistant_first"
    ASSISTANT_LAST = "assistant_last"
    EMPTY_CALL_ID = "empty_call_id"
    EMPTY_HISTORY = "empty_history"
    EMPTY_MESSAGE = "empty_message"
    EMPTY_TEXT = "empty_text"
    EMPTY_TOOL_NAME = "empty_tool_name"
    FOREIGN_BLOCK = "foreign_block"
    FOREIGN_THINKING = "foreign_thinking"
    HALF_CALL = "half_call"
    LATE_RESULT = "late_result"
    LOCAL_FILE = "local_file"
    LONE_REASONING = "lone_reasoning"
    MISPLACED_PART = "misplaced_part"
    ORPHAN_CALL = "orphan_call"
    ORPHAN_RESULT = "orphan_result"
    REFUSED_MEDIUM = "refused_medium"
    REUSED_CALL_ID = "reused_call_id"
    UNPAIRED_SERVER_TOOL = "unpaired_server_tool"
    UNSIGNED_THINKING = "unsigned_thinking"


_RULES: Final[Mapping[ProblemCode, Rule]] = {
    ProblemCode.ASSISTANT_FIRST: Rule.USER_FIRST,
    ProblemCode.EMPTY_TEXT: Rule.NO_EMPTY_TEXT,
    ProblemCode.FOREIGN_THINKING: Rule.SIGNED_THINKING,
    ProblemCode.LONE_REASONING: Rule.REASONING_WITH_ITEMS,
    ProblemCode.UNPAIRED_SERVER_TOOL: Rule.PAIRED_SERVER_TOOLS,
    ProblemCode.UNSIGNED_THINKING: Rule.SIGNED_THINKING,
}
"""Problems that break a rule of some protocols only. All protocols refuse the other problems."""

REFUSED_BY: Final[Mapping[ProblemCode, tuple[str, ...]]] = {
    code: tuple(
        row.name
        for row in DIALECTS.values()
        if (code not in _RULES or _RULES[code] in row.rules)
        and (code is not ProblemCode.ASSISTANT_LAST or row.name in OF_CLAUDE)
    )
    for code in ProblemCode
}
"""Dialects whose providers refuse or misread a request with the problem.

For other dialects the same history is correct.
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    >>> problem = check([], "openai-chat").problems[0]
    >>> problem.message, problem.repaired
    ('nobody speaks', 'the user is made to')

    Attributes:
        message: description, in one line.
        message_index: index of the message; the number of messages if one is missing at the end.
        part_index: index of the part, None if the problem concerns the whole message.
        repaired: the change that `repair` makes.
    """

    code: ProblemCode
    message: str
    message_index: int
    part_index: int | None
    repaired: str

    @property
    def refused_by(self) -> tuple[str, ...]:
        """Dialects whose providers refuse the history."""
        return REFUSED_BY[self.code]

    def to_dict(self) -> dict[str, object]:
        """Return the form of `Meta.warnings`."""
        warning: dict[str, object] = {
            "code": self.code.value,
            "message": self.message,
            "messageIndex": self.message_index,
            "refusedBy": list(self.refused_by),
        }
        if self.part_index is not None:
            warning["partIndex"] = self.part_index
        return warning


@dataclass(frozen=True, slots=True)
class Report:
    """All that is wrong with a history for one dialect, in the order of the messages.

    >>> report = check([Message.user("When is high tide?")], "openai-chat")
    >>> report.is_clean, report.dialect
    (True, 'openai-chat')
    """

    dialect: RequestProtocol
    problems: tuple[Problem, ...]

    @property
    def is_clean(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    @property
    def codes(self) -> list[ProblemCode]:
        """The codes of all problems."""
        return [problem.code for problem in self.problems]

    def to_warnings(self) -> list[dict[str, object]]:
        """Return the problems in the form of `Meta.warnings`."""
        return [problem.to_dict() for problem in self.problems]


class HistoryError(DeltafoldError, ValueError):
    """A provider would refuse the history; `report` has every problem, the text the first.

    >>> try:
    ...     raise HistoryError(check([], "openai-chat"))
    ... except HistoryError as error:
    ...     print(error)
    messages[0]: nobody speaks
    """

    def __init__(self, report: Report) -> None:
        """Keep the report."""
        first = report.problems[0]
        more = len(report.problems) - 1
        also = f", and {more} more" if more else ""
        super().__init__(f"messages[{first.message_index}]: {first.message}{also}")
        self.report = report
