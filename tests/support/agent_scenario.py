"""One run of an agent with everything that can happen to it, and the server of its two providers.

The answer to a request depends on the request alone, so that an interrupted run goes on. Faults
happen once in each conversation, whose name is the first segment of the path.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from deltafold import AnthropicModel, ImagePart, OpenAIChatModel
from deltafold.conversation import (
    Agent,
    AgentEvent,
    AgentState,
    ConversationLog,
    LogFile,
    MemoryNotebookWidget,
    ProviderRouter,
    RunResult,
    RunStatus,
    SQLiteStore,
    Tool,
    ToolCallRequest,
)
from deltafold.testing import Recording, ReplayServer, Request, answer
from talks import Talk

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQ"
    "DwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
QUESTION = "When can we sail from Brest?"
NOTE = "The harbour says"
BEGINNING = ("The boat ", "is booked. ")
REST = ("One more ", "look.")


class Providers(ReplayServer):
    """A server that plays Claude and GPT in any number of conversations.

    Attributes:
        delay: seconds between two events.
        has_faults: whether requests are refused and answers break off.
    """

    def __init__(self, *, delay: float = 0.0, has_faults: bool = True) -> None:
        super().__init__()
        self.delay = delay
        self.has_faults = has_faults
        self._asked: Counter[tuple[str, int]] = Counter()

    def answer_to(self, request: Request) -> Recording:
        """Answer by the number of results in the request."""
        self.requests.append(request)
        if not request.body:  # the client was cancelled while it sent
            return Recording.error(400, {})
        body: Any = request.json()
        conversation = request.path.split("/")[1]
        is_claude = request.path.endswith("/messages")
        results = _count_of_results(body["messages"])
        self._asked[conversation, results] += 1
        is_first = self.has_faults and self._asked[conversation, results] == 1
        given = self._plan(is_first) if results == 0 else self._book(is_first)
        if results >= 3:
            given = self._look(is_first, body["messages"][-1]["role"] == "assistant")
        assert is_claude is (results not in {1, 2})
        pieces = tuple((self.delay, piece) for _, piece in given.pieces)
        return Recording(
            pieces, given.status, given.headers, given.ending, stop_after=given.stop_after
        )

    @staticmethod
    def _plan(is_first: bool) -> Recording:
        if is_first:
            error = {"type": "error", "error": {"type": "rate_limit_error", "message": "slowly"}}
            return Recording.error(429, error, {"retry-after": "0"})
        calls = [("c1", "chart", {"place": "Brest"}), ("c2", "tides", {"place": "Brest"})]
        return answer("anthropic-messages", "First ", "the tides.", *calls)

    @staticmethod
    def _book(is_first: bool) -> Recording:
        call = ("c3", "book", {"place": "Brest", "hour": 17})
        whole = answer("openai-chat", "I book ", "a boat.", call)
        return whole.stopping("cut", whole.body.index(b'"tool_calls"')) if is_first else whole

    @staticmethod
    def _look(is_first: bool, is_continued: bool) -> Recording:
        call = ("c4", "tides", {"place": "Brest"})
        usage = {"input_tokens": 9_000}
        if is_continued:
            return answer("anthropic-messages", *REST, call, **usage)
        whole = answer("anthropic-messages", *BEGINNING, *REST, call, **usage)
        if is_first:
            end = whole.body.index(b"One more")
            return whole.stopping("cut", whole.body.rindex(b"event: ", 0, end))
        return whole


def _count_of_results(messages: Iterable[dict[str, Any]]) -> int:
    count = 0
    for message in messages:
        content: Any = message.get("content")
        count += message["role"] == "tool"
        if not isinstance(content, str | None):
            count += sum(block["type"] == "tool_result" for block in content)
    return count


class Harbour:
    """The tools. Each appends its effect to a file."""

    def __init__(
        self, effects: Path | None = None, *, pause: float = 0.0, sends: bool = False
    ) -> None:
        self._effects = effects
        self._pause = pause
        self._sends = sends

    async def chart(self, place: str) -> list[object]:
        """Draw the chart of a place."""
        await self._do("chart")
        return [f"The chart of {place}:", ImagePart(mime_type="image/png", data=PIXEL)]

    async def tides(
        self, place: str, state: AgentState, call: ToolCallRequest
    ) -> AsyncIterator[str]:
        """Look up the tides of a place."""
        yield f"asking {place}"
        await self._do("tides")
        if self._sends:
            state.send(f"{NOTE} {call.tool_call_id}")
        yield "high tide at 17:42"

    async def book(self, place: str, hour: int) -> dict[str, object]:
        """Book a boat; this costs money."""
        await self._do("book")
        return {"place": place, "hour": hour}

    async def _do(self, name: str) -> None:
        await asyncio.sleep(self._pause)
        if self._effects is not None:
            with self._effects.open("ab", buffering=0) as file:
                file.write(f"{name}\n".encode())
        await asyncio.sleep(self._pause)


def agent_of(
    url: str, log: ConversationLog, harbour: Harbour, conversation: str = "trip", **loop: object
) -> Talk[None]:
    """Make the agent of a conversation; each process makes its own."""
    claude = AnthropicModel(
        {"model_id": "claude-sonnet-4-5"}, base_url=f"{url}/{conversation}", api_key="k"
    )
    gpt = OpenAIChatModel({"model_id": "gpt-4.1"}, base_url=f"{url}/{conversation}/v1", api_key="k")
    has_begun = any(log.newest_first())
    state = (
        AgentState(log, [MemoryNotebookWidget()])
        if has_begun
        else AgentState.create_default("Sail.", log=log)
    )
    agent = Agent(
        {
            "loop": {"retry_seconds": 0, "max_tokens": 8_000, **loop},
            "tools": {"require_approval": ["book"]},
        },
        [
            Tool.from_function(harbour.chart),
            Tool.from_function(harbour.tides),
            Tool.from_function(harbour.book),
        ],
        model=ProviderRouter.of_models({"claude": claude, "gpt": gpt}),
        strategy=lambda turn: "gpt" if turn == 2 else "claude",
    )
    return Talk(agent, state, (claude, gpt))


def go_on(agent: Talk[None]) -> RunResult:
    """Begin the run, or continue it from its log, and approve what waits."""
    if not any(entry.run_id for entry in agent.state.log.newest_first()):
        return agent.run_sync(QUESTION)
    if "c3" in agent.state.log.open_calls:
        return agent.resume_sync({"c3": True})
    return agent.resume_sync()


@contextmanager
def opened(path: Path, conversation: str) -> Generator[ConversationLog]:
    """Open the log of a conversation: a file of its own, or a session of a store."""
    if path.suffix == ".db":
        with SQLiteStore(path) as store:
            yield ConversationLog(conversation, store=store)
    else:
        with LogFile(path / f"{conversation}.jsonl") as log:
            yield log


def effects_of(path: Path, conversation: str) -> Path:
    """Return the file of the effects of a conversation's tools."""
    return path.with_name(f"{conversation}.effects")


def run_in_process(url: str, path: Path, conversation: str, pause: float) -> bool:
    """Go on with a run whose log is on the disk; return whether it has ended."""
    with opened(path, conversation) as log:
        harbour = Harbour(effects_of(path, conversation), pause=pause, sends=True)
        result = go_on(agent_of(url, log, harbour, conversation))
        return result.status is not RunStatus.AWAITING_HUMAN


_RANDOM = {
    "id",
    "timestamp",
    "at",
    "runId",
    "sessionId",
    "covers",
    "elapsed",
    "durationMs",
    "timing",
}


def without_random(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return JSON without what differs from run to run."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {name: without_random(one) for name, one in members if name not in _RANDOM}
    items: Any = value
    return [without_random(one) for one in items] if isinstance(value, list) else value


def shown(event: AgentEvent) -> dict[str, object]:
    """Return an event as JSON without what differs from run to run."""
    seen: dict[str, object] = {"turn": event.turn, "kind": str(event.kind)}
    if event.delta is not None:
        payload = {name: one for name, one in event.delta.payload.items() if name != "requestId"}
        seen["delta"] = {"kind": str(event.delta.kind), **payload}
    if event.message is not None:
        seen["message"] = event.message.text
    if event.error is not None:
        seen |= {"error": str(event.error.code), "seconds": event.seconds}
        seen["continues"] = event.continues
    if event.call is not None:
        seen["call"] = event.call.tool_call_id
    if event.progress_message is not None:
        progress = event.progress_message
        seen["progress"] = [event.progress, progress.content.text, progress.sibling_tool_use_ids]
    if event.result is not None:
        seen["status"] = str(event.result.status)
    if event.run is not None:
        run = event.run
        pending = [call.tool_call_id for call in run.pending]
        seen["run"] = [str(run.status), run.reason, run.turns, run.text, pending]
    return seen
