"""What the fold of a recording says of the answer.

In: the message and the error of the fold.  Out: `Answer`, a record without the content.

Law: nothing is judged here: each member is a member of the message or of the error.
"""

from dataclasses import dataclass

from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A tool call.

    Attributes:
        id: its id.
        name: its tool.
        runnable: whether it may run.
        reason: why it may not run, None if it may.
        repaired: what was decided to read its arguments, None if nothing was.
    """

    id: str
    name: str
    runnable: bool
    reason: str | None
    repaired: str | None


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """The error that ended the stream.

    Attributes:
        code: its code.
        message: the text of the provider.
        advice: one line with the failure and the next step.
    """

    code: str
    message: str
    advice: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer, as its fold says.

    Attributes:
        finish_reason: why it ended.
        raw_finish_reason: the provider's word for that.
        forbids_calls: why its end forbids all of its calls, None if it does not.
        error: the error that ended it.
        warnings: the number of warnings.
        parts: the number of parts.
        usage: the counts, in their wire form.
        calls: the calls, in their order.
    """

    finish_reason: str | None
    raw_finish_reason: str | None
    forbids_calls: str | None
    error: ErrorFacts | None
    warnings: int
    parts: int
    usage: dict[str, object] | None
    calls: list[CallFacts]


def answer_of(message: Message, error: ModelError | None) -> Answer:
    """Return what a fold says.

    Args:
        message: the message, up to the error if there is one.
        error: the error that ended the stream, None after success.
    """
    meta, reasons = message.meta, message.not_runnable
    runnable = {call.tool_call_id for call in message.runnable_tool_calls}
    return Answer(
        finish_reason=None if meta.finish_reason is None else meta.finish_reason.value,
        raw_finish_reason=meta.raw_finish_reason,
        forbids_calls=message.forbids_calls,
        error=None
        if error is None
        else ErrorFacts(code=error.code.value, message=error.message, advice=str(error)),
        warnings=len(meta.warnings),
        parts=len(message.parts),
        usage=None if meta.usage is None else meta.usage.model_dump(mode="json", by_alias=True),
        calls=[
            CallFacts(
                id=call.tool_call_id,
                name=call.tool_name,
                runnable=call.tool_call_id in runnable,
                reason=reasons.get(call.tool_call_id),
                repaired=call.parse_warning,
            )
            for call in message.tool_calls
        ],
    )
