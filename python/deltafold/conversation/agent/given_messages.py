"""Given messages: what the caller brings to a run, appended to the conversation.

In: messages of every form that `Model.stream` takes.  Out: their entries in the log.

Laws: nothing is appended before all of them fit. The last one is an input of the user or a result.
The calls of given answers never run, and given answers count in no limit: they are marked, and each
has a run of its own, since a client may have used one id for several calls.
"""

from collections import deque
from collections.abc import Callable, Sequence
from uuid import uuid4

from deltafold.contract.exceptions import MisuseError
from deltafold.conversation.agent.run_log import GIVEN, open_calls
from deltafold.conversation.agent.tool_turn import Answering
from deltafold.conversation.context.state import AgentState
from deltafold.conversation.history.entries import ModelInputEntry
from deltafold.message.messages import Message, Role, ToolCallPart, ToolResultPart
from deltafold.models.call_inputs import Messages, conversation_of


def messages_given(messages: Messages, state: AgentState) -> list[Message]:
    """Return messages of every form as such, after all of them were checked.

    Raises:
        MisuseError: there is none, the last one is of another role, or a result answers no call.
    """
    given = conversation_of(messages, None, None)
    last = given[-1].role if given else None
    if last not in {Role.USER, Role.TOOL}:
        found = "there is none" if last is None else f"it has the role {last.value}"
        raise MisuseError(
            f"messages: the last one must be the user's or the result of a call, and {found}"
        )
    if len(given) == 1 and last is Role.USER:
        return given
    unanswered = {call.tool_call_id for call in open_calls(state.log)}
    for place, message in enumerate(given):
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                unanswered.add(part.tool_call_id)
            elif isinstance(part, ToolResultPart):
                if part.tool_call_id not in unanswered:
                    raise MisuseError(
                        f"messages[{place}]: the result answers the call {part.tool_call_id!r}, "
                        "which is not made before it, or has its result"
                    )
                unanswered.remove(part.tool_call_id)
    return given


def append_given(
    given: Sequence[Message],
    state: AgentState,
    answering: Answering,
    deliver: Callable[[], object],
) -> None:
    """Append messages; calls that nobody answers any more get a result that says so.

    `deliver` appends what was sent before, when no call is open any more.
    """
    left = deque(given)
    while left and left[0].role is Role.TOOL:  # results of calls that the conversation has
        state.log.append_message(left.popleft(), **GIVEN)
    _settle(state, answering)
    if left:
        deliver()
    runs: dict[str, str] = {}
    while len(left) > 1 or (left and left[0].role is Role.TOOL):
        message = left.popleft()
        run_id = str(uuid4())
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                runs[part.tool_call_id] = run_id
            elif isinstance(part, ToolResultPart):
                run_id = runs[part.tool_call_id]
        state.log.append_message(message.model_copy(update={"run_id": run_id}), **GIVEN)
    if left:
        state.append_model_input(ModelInputEntry.of_message(left[0]))
    else:
        _settle(state, answering)


def _settle(state: AgentState, answering: Answering) -> None:
    calls = open_calls(state.log)
    if calls:
        answering.settle(calls)
