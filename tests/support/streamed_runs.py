"""Runs of an agent with all that a page can be shown, and their streams in the protocols of pages.

In: a server on the loopback that plays the model.  Out: the events of each run, the conversation,
and the bytes of an `Encoder`.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_scenario import QUESTION, Harbour, Providers, agent_of
from answering_server import AnsweringServer, Words
from deltafold import Agent, AnthropicModel, Encoder, ImagePart
from deltafold.conversation import (
    AgentEvent,
    AgentState,
    Approval,
    ConversationLog,
    Tool,
    ToolCallRequest,
)
from deltafold.testing import Recording, ReplayServer, answer

if TYPE_CHECKING:
    from deltafold.testing.answers import ScriptedCall

Target = Literal["ai-sdk", "ag-ui"]
TARGETS: Final[tuple[Target, ...]] = ("ai-sdk", "ag-ui")
LOOK: Final = ("c1", "look", {"place": "Brest"})
BOOK: Final = ("c2", "book", {"place": "Dover"})
PIXEL: Final = "iVBORw0KGgo="


@dataclass
class Tide:
    """A high tide."""

    place: str
    hour: int


@dataclass
class Streamed:
    """The events of runs, one after another on one conversation."""

    state: AgentState
    runs: list[list[AgentEvent]] = field(default_factory=list[list[AgentEvent]])

    def add(self, events: Iterable[AgentEvent]) -> None:
        """Read a run to its end."""
        self.runs.append(list(events))

    def written(self, target: Target) -> list[bytes]:
        """Return the stream of each run."""
        return [written(target, events, number) for number, events in enumerate(self.runs, 1)]


def written(target: Target, events: Iterable[AgentEvent], number: int = 1) -> bytes:
    """Write a run, as a program does that gives it an id."""
    options: dict[str, Any] = {} if target == "ai-sdk" else {"response_id": f"run{number}"}
    encoder = Encoder(target, thread_id="thread", **options)
    data = b"".join([*map(encoder.feed, events), encoder.close()])
    assert encoder.finished
    assert encoder.status == 200
    return re.sub(rb'"timestamp":\d+,', b"", data)


def book(place: str) -> dict[str, object]:
    """Book a boat; this costs money."""
    return {"place": place, "boats": [1, 2]}


async def look(place: str, state: AgentState) -> AsyncIterator[object]:
    """Look up the next high tide at a place."""
    yield f"asking {place}"
    yield {"share": 0.5}
    if place == "Nowhere":
        raise ValueError("no such place")
    if place == "Dover":
        state.send("Only times after 16:00, please.")
    if place == "Ushant":
        yield [f"The chart of {place}:", ImagePart(mime_type="image/png", data=PIXEL)]
    else:
        yield f"high tide at {place}: 17:42"


def streamed(
    reply: Callable[[Words], Any],
    *,
    approve: Callable[[Tool, ToolCallRequest], Approval] | None = None,
    resumed: Sequence[dict[str, bool | Approval]] = (),
    **loop: object,
) -> Streamed:
    """Run an agent whose boats need an approval, and resume it with decisions."""
    settings = {
        "tools": {"require_approval": ["book"]},
        "loop": {"retry_seconds": 0, "on_error": "return", **loop},
    }
    with AnsweringServer(reply) as server:
        made = Agent(settings, [look, book], model=server.model(), approve=approve)
        found = Streamed(AgentState())
        found.add(made.stream_sync("When is high tide?", state=found.state))
        for decisions in resumed:
            found.add(made.stream_resumed_sync(found.state, decisions))
        return found


def answers(*contents: Sequence[Any] | Recording) -> Callable[[Words], Any]:
    """Return a function that answers one request after another."""
    left = iter(contents)

    def reply(_: Words) -> Any:  # noqa: ANN401 - an answer
        return next(left)

    return reply


def cut(before: bytes, *content: Any) -> Recording:  # noqa: ANN401 - of `answer`
    """Return an answer whose connection breaks before some bytes."""
    whole = answer("openai-chat", *content)
    return whole.stopping("cut", whole.body.index(before))


def scenario() -> Streamed:
    """The run with every kind of trouble, which waits for an approval and reaches a limit."""
    with Providers() as server:
        log = ConversationLog()
        talk = agent_of(server.url, log, Harbour(sends=True))
        found = Streamed(talk.state)
        found.add(talk.stream_sync(QUESTION))
        found.add(talk.stream_resumed_sync({"c3": True}))
        return found


def parallel() -> Streamed:
    """Parallel calls: a file, a failed tool, wrong arguments, an unknown tool; a sent message."""
    calls: list[ScriptedCall] = [
        ("c1", "look", {"place": "Dover"}),
        ("c2", "look", {"place": "Nowhere"}),
        ("c3", "look", {"harbour": "Brest"}),
        ("c4", "sail", {}),
        ("c5", "look", {"place": "Ushant"}),
    ]
    return streamed(answers(["Let me ", "see.", *calls], ["At ", "17:42."]), max_parallel_tools=1)


def decided() -> Streamed:
    """Calls that `approve=` decides while the run goes on."""

    def approve(_: Tool, call: ToolCallRequest) -> Approval:
        return Approval(call.tool_call_id == "c2", reason="Too far.")

    far = ("c3", "book", {"place": "Rio"})
    return streamed(answers([BOOK, far], ["Booked."]), approve=approve)


def rejected() -> Streamed:
    """Two calls that wait; one is approved later with other arguments, one is rejected."""
    other = ("c3", "book", {"place": "Rio"})
    changed = Approval(approved=True, arguments={"place": "Calais"})
    decisions: dict[str, bool | Approval] = {"c2": changed, "c3": Approval(approved=False)}
    return streamed(answers(["Shall I?", LOOK, BOOK, other], ["Done."]), resumed=[decisions])


def asked_again() -> Streamed:
    """An answer that breaks off in a call and cannot be continued."""
    broken = cut(b"[DONE]", "The tide ", "is", LOOK)
    broken = broken.stopping("cut", broken.body.index(b"Brest"))
    return streamed(answers(broken, ["High tide: ", LOOK], ["At 17:42."]))


def counted_ids() -> Streamed:
    """A server that counts the calls of each answer from zero."""
    first, second = ("call_0", "look", {"place": "Brest"}), ("call_0", "look", {"place": "Dover"})
    return streamed(answers([first], [second], ["At 17:42."], ["Yes."]))


def limited() -> Streamed:
    """A run that reaches its limit of answers."""
    return streamed(answers(["One.", LOOK]), max_turns=1)


def failed() -> Streamed:
    """A run whose second answer breaks off and is not asked for again."""
    broken = cut(b"world", "Hello, ", "world")
    return streamed(answers([LOOK], broken), max_retries=0)


def refused() -> Streamed:
    """A run that fails before any content."""
    error = {"error": {"message": "no such key", "type": "invalid_request_error"}}
    return streamed(answers(Recording.error(401, error)))


def typed() -> Streamed:
    """A run whose output is given by a call: first a wrong one beside another call, then mended."""
    wrong, right = {"place": "Brest", "hour": "late"}, {"place": "Brest", "hour": 17}
    contents: list[list[Any]] = [
        [("c1", "look", {"place": "Brest"}), ("c2", "Tide", right)],
        [("c3", "Tide", wrong)],
        [("c4", "Tide", right)],
    ]
    with ReplayServer() as server:
        server.queue(*(answer("anthropic-messages", *content) for content in contents))
        model = AnthropicModel({"model_id": "claude-3-5-haiku"}, base_url=server.url, api_key="k")
        found = Streamed(AgentState())
        found.add(
            Agent(tools=[look], model=model, output=Tide).stream_sync("When?", state=found.state)
        )
        return found


DECISIONS: Final[dict[str, list[dict[str, dict[str, object]]]]] = {
    "scenario": [{"c3": {"approved": True}}],
    "rejected": [{"c2": {"approved": True}, "c3": {"approved": False}}],
}
"""What a person answers on the page before each run but the first."""

RUNS: Final[dict[str, Callable[[], Streamed]]] = {
    "scenario": scenario,
    "parallel": parallel,
    "decided": decided,
    "rejected": rejected,
    "asked_again": asked_again,
    "counted_ids": counted_ids,
    "limited": limited,
    "failed": failed,
    "refused": refused,
    "typed": typed,
}
