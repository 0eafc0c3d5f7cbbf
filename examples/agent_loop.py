"""An agent loop in one file: one conversation, two providers, tools, an approval, a broken stream.

The loop projects the log of the conversation into messages, and a router chooses the model. The
answer is streamed, folded and appended, and its tools run. The loop ends with an answer without
tool calls. A server on the loopback interface plays both providers.

    python examples/agent_loop.py
"""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from deltafold import AnthropicModel, ModelError, OpenAIChatModel
from deltafold.conversation import (
    AgentState,
    ContextInput,
    ContextManager,
    LevelOfDetailSections,
    ModelClient,
    ModelInputEntry,
    ModelOutputAccumulator,
    ModelOutputEntry,
    ProviderRouter,
    Route,
    RunState,
    RunStatus,
    Tool,
    ToolCallRequest,
    ToolExecutor,
    ToolResultsEntry,
)
from deltafold.testing import Recording, ReplayServer

MAX_TRIES = 3


@dataclass
class Loop:
    """Everything that one run needs."""

    state: AgentState
    router: ProviderRouter
    tools: ToolExecutor
    run: RunState
    say: Callable[[str], None] = print
    manager: ContextManager = field(default_factory=ContextManager)

    async def ask(self, question: str) -> str:
        """Answer a question; returns the last text."""
        self.run.begin()
        sections = LevelOfDetailSections.of_text(question)
        self.state.append_model_input(ModelInputEntry(content_sections=sections))
        strategy = "plan"
        while True:
            answer = await self.answer(strategy)
            if not answer.tool_calls:
                self.run.move(RunStatus.COMPLETED)
                return "".join(answer.contents)
            self.run.move(RunStatus.TOOL_RUNNING)
            outcomes = await self.tools.execute_all(answer.tool_calls)
            for outcome in outcomes:
                self.say(f"   {outcome.call.tool_name}: {outcome.status}")
            results = [outcome.history_result() for outcome in outcomes]
            self.state.append_tool_results(ToolResultsEntry(results=results))
            self.run.move(RunStatus.PREPARING)
            strategy = "execute"

    async def answer(self, strategy: str) -> ModelOutputEntry:
        """Let a model answer; a stream that broke off is requested again."""
        for attempt in range(1, MAX_TRIES + 1):
            built = self.manager.build_context(ContextInput(self.state, token_budget=50_000))
            request = self.router.request(built.context, self.tools.specs, strategy)
            accumulator = ModelOutputAccumulator(request.invocation)
            self.run.move(RunStatus.MODEL_RUNNING)
            self.say(f"-> {request.invocation.provider_id} ({strategy}, try {attempt})")
            async for _ in accumulator.follow(self.router.call_model(request)):
                pass
            snapshot = accumulator.snapshot()
            self.run.add_usage(snapshot.meta.usage, snapshot.meta.cost_usd)
            error = accumulator.error
            if error is None:
                entry = self.state.append_model_output(accumulator.build_entry(attempt=attempt))
                self.say(f"<- {snapshot.text or [call.tool_name for call in entry.tool_calls]}")
                return entry
            self.say(f"<- {error.code} after {snapshot.text!r}; retryable: {error.retryable}")
            if not error.retryable or attempt == MAX_TRIES:
                self.run.move(RunStatus.FAILED, error=str(error))
                raise error
            self.run.move(RunStatus.PREPARING)
        raise AssertionError


# The tools.


def look_up_tide(place: str) -> str:
    """Look up the next high tide at a place."""
    if place == "Atlantis":
        raise LookupError("no such place on any chart")
    return f"high tide at {place}: 17:42"


def book_boat(place: str, time: str) -> str:
    """Book a boat; this costs money."""
    return f"boat booked at {place} for {time}"


async def agree(tool: Tool, call: ToolCallRequest) -> bool:
    """Approve a call in place of a person."""
    await asyncio.sleep(0)
    return tool.name == "book_boat" and call.arguments is not None


# Answers of the two providers.


def event(data: dict[str, object]) -> bytes:
    """Write one event of the Messages API."""
    return b"event: %b\ndata: %b\n\n" % (str(data["type"]).encode(), json.dumps(data).encode())


def claude(text: str, *calls: tuple[str, str, dict[str, object]]) -> bytes:
    """Write an answer of the Messages API."""
    usage = {"input_tokens": 50, "output_tokens": 1}
    body = event(
        {
            "type": "message_start",
            "message": {"id": "msg_1", "model": "claude-demo", "usage": usage},
        }
    )
    blocks: list[tuple[dict[str, object], dict[str, object]]] = []
    if text:
        said: dict[str, object] = {"type": "text_delta", "text": text}
        blocks.append(({"type": "text", "text": ""}, said))
    for call_id, name, arguments in calls:
        partial: dict[str, object] = {
            "type": "input_json_delta",
            "partial_json": json.dumps(arguments),
        }
        blocks.append(({"type": "tool_use", "id": call_id, "name": name, "input": {}}, partial))
    for index, (block, delta) in enumerate(blocks):
        body += event({"type": "content_block_start", "index": index, "content_block": block})
        body += event({"type": "content_block_delta", "index": index, "delta": delta})
        body += event({"type": "content_block_stop", "index": index})
    reason = "tool_use" if calls else "end_turn"
    ended = {"type": "message_delta", "delta": {"stop_reason": reason}}
    return body + event({**ended, "usage": {"output_tokens": 20}}) + event({"type": "message_stop"})


def gpt(text: str, *calls: tuple[str, str, dict[str, object]]) -> bytes:
    """Write an answer of Chat Completions."""
    chunks: list[dict[str, object]] = [{"delta": {"role": "assistant", "content": text}}]
    for index, (call_id, name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": index, "id": call_id, "type": "function", "function": function}
        chunks.append({"delta": {"tool_calls": [call]}})
    chunks.append({"delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
    common = {"id": "chatcmpl_1", "model": "gpt-demo"}
    body = b"".join(
        b"data: %b\n\n" % json.dumps({**common, "choices": [one]}).encode() for one in chunks
    )
    usage = {"prompt_tokens": 80, "completion_tokens": 10, "total_tokens": 90}
    last = json.dumps({**common, "choices": [], "usage": usage}).encode()
    return body + b"data: %b\n\ndata: [DONE]\n\n" % last


def script() -> list[Recording]:
    """Return the recorded answers, in the order of the calls."""
    plan = claude(
        "First the tides.",
        ("toolu_1", "look_up_tide", {"place": "Brest"}),
        ("toolu_2", "look_up_tide", {"place": "Atlantis"}),
        ("toolu_3", "memory_notebook_replace", {"text": "The trip goes to Brest."}),
    )
    book = gpt("", ("call_1", "book_boat", {"place": "Brest", "time": "17:00"}))
    done = gpt("The boat waits at Brest at 17:00; Atlantis is on no chart.")
    return [
        Recording.of_events(plan),
        Recording.of_events(book).stopping("cut", len(book) // 3),
        Recording.of_events(book),
        Recording.of_events(done),
    ]


async def converse(server: ReplayServer, say: Callable[[str], None] = print) -> Loop:
    """Hold the whole conversation, and return the loop in its final state."""
    server.queue(*script())
    async with (
        AnthropicModel(
            {"model_id": "claude-demo"}, base_url=server.url, api_key="unused"
        ) as planner,
        OpenAIChatModel(
            {"model_id": "gpt-demo"}, base_url=f"{server.url}/v1", api_key="unused"
        ) as worker,
    ):
        clients = {"plan": ModelClient(planner), "execute": ModelClient(worker)}
        routes = {name: Route(client, client.invocation) for name, client in clients.items()}
        run = RunState()
        state = AgentState.create_default("You plan trips by the tides.")
        tools = [
            Tool.from_function(look_up_tide, timeout_ms=5_000),
            Tool.from_function(book_boat, requires_approval=True),
            *state.enumerate_widget_tools(),
        ]
        loop = Loop(
            state,
            ProviderRouter(routes),
            ToolExecutor(tools, approve=agree, state=run),
            run,
            say,
        )
        loop.state.update_memory_notebook("The reader gets seasick.")
        say("?  When can we sail from Brest, or from Atlantis?")
        say(f"=  {await loop.ask('When can we sail from Brest, or from Atlantis?')}")
        return loop


def main() -> int:
    """Hold the conversation and print its token usage."""
    with ReplayServer() as server:
        try:
            loop = asyncio.run(converse(server))
        except ModelError as error:
            print(error, file=sys.stderr)
            return 1
    used = loop.run.token_usage
    print(f"   {loop.run.status}; {used.input_tokens} tokens in, {used.output_tokens} out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
