"""One library's agent loop in a process of its own, driven by `loops`.

In: lines of JSON on the standard input: {"url": ..., "runs": 1}.  Out: a line of JSON for each: CPU
seconds, wall seconds, peak RSS, and the outcomes of the runs.

Laws: each library runs by its public streaming API, and each delta is read. What a service makes
once (client, model, tools) is made before the measurement. What a conversation needs is made in it.
Telemetry is off.

    python benches/loops/loop_runs.py pydantic-ai
"""

import asyncio
import importlib
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

QUESTION = "When is high tide at Brest?"
MODEL = "gpt-4.1"
MAX_TURNS = 50
# The events after the finish reason are shorter than this.
END_BYTES = 2000


@dataclass
class Outcome:
    """Result of one run: its last text, and the number of the text deltas that were read."""

    text: str = ""
    deltas: int = 0


Run = Callable[[], Awaitable[Outcome]]
TOOL_RUNS = [0]
"""Number of executions of the tool in this process."""


async def tide(place: str, days: int) -> str:
    """Look up the high tides of a place.

    Args:
        place: name of the harbour.
        days: number of days.
    """
    TOOL_RUNS[0] += 1
    await asyncio.sleep(0)
    return f"High tide at {place} at 17:42 on each of {days} days."


def deltafold(url: str) -> Run:
    """`Agent.stream`: each event is read."""
    from deltafold import OpenAIChatModel
    from deltafold.conversation import Agent, AgentConfig, Tool

    model = OpenAIChatModel({"model_id": MODEL}, base_url=url, api_key="key")
    config = AgentConfig.model_validate({"model": MODEL, "loop": {"max_turns": MAX_TURNS}})
    tool = Tool.from_function(tide)

    async def run() -> Outcome:
        outcome = Outcome()
        async for event in Agent(config, [tool], model=model).stream(QUESTION):
            if event.delta is not None and event.delta.text:
                outcome.deltas += 1
            if event.run is not None:
                outcome.text = event.run.text
        return outcome

    return run


def pydantic_ai(url: str) -> Run:
    """`Agent.run_stream_events`: each event is read."""
    from openai import AsyncOpenAI
    from pydantic_ai import (
        Agent,
        AgentRunResultEvent,
        PartDeltaEvent,
        PartStartEvent,
        TextPart,
        TextPartDelta,
        UsageLimits,
    )
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=url, api_key="key")
    agent = Agent(OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client)))
    agent.tool_plain(tide)

    async def run() -> Outcome:
        outcome = Outcome()
        limits = UsageLimits(request_limit=MAX_TURNS)
        async with agent.run_stream_events(QUESTION, usage_limits=limits) as events:
            async for event in events:
                if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    outcome.deltas += 1
                elif isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    outcome.deltas += bool(event.part.content)
                elif isinstance(event, AgentRunResultEvent):
                    outcome.text = event.result.output
        return outcome

    return run


def openai_agents(url: str) -> Run:
    """`Runner.run_streamed`: each event is read."""
    import agents
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(disabled=True)
    client = AsyncOpenAI(base_url=url, api_key="key")
    agent = agents.Agent(
        name="tides",
        model=agents.OpenAIChatCompletionsModel(model=MODEL, openai_client=client),
        model_settings=agents.ModelSettings(include_usage=True),
        tools=[agents.function_tool(tide)],
    )

    async def run() -> Outcome:
        outcome = Outcome()
        result = agents.Runner.run_streamed(agent, QUESTION, max_turns=MAX_TURNS)
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                outcome.deltas += event.data.type == "response.output_text.delta"
        outcome.text = result.final_output
        return outcome

    return run


def strands(url: str) -> Run:
    """`Agent.stream_async`: each event is read."""
    from openai import AsyncOpenAI
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    client = AsyncOpenAI(base_url=url, api_key="key")
    model = OpenAIModel(client=client, model_id=MODEL)
    function = tool(tide)

    async def run() -> Outcome:
        outcome = Outcome()
        agent = Agent(model=model, tools=[function], callback_handler=None)
        async for event in agent.stream_async(QUESTION):
            outcome.deltas += bool(event.get("data"))
            if "result" in event:
                content = event["result"].message["content"]
                outcome.text = "".join(block.get("text", "") for block in content)
        return outcome

    return run


def bare(package: str, url: str) -> Run:
    """Make the requests of a run by an HTTP client, and read the bytes without decoding them."""
    client = importlib.import_module(package).AsyncClient(timeout=60)
    call = {"name": "tide", "arguments": '{"place":"Brest","days":3}'}
    result = "High tide at Brest at 17:42 on each of 3 days."
    said = "The tide rises at Brest, slowly and evenly." * 6

    async def run() -> Outcome:
        messages: list[dict[str, object]] = [{"role": "user", "content": QUESTION}]
        options = {"stream": True, "stream_options": {"include_usage": True}}
        for turn in itertools.count(1):
            end = b""
            body = {"model": MODEL, "messages": messages, **options}
            async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
                async for piece in response.aiter_bytes():
                    end = end[-END_BYTES:] + piece
            if b'"finish_reason":"stop"' in end:
                break
            ids = [f"call_{turn:02}_{index}" for index in range(2)]
            calls = [{"id": one, "type": "function", "function": call} for one in ids]
            messages.append({"role": "assistant", "content": said, "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": one, "content": result} for one in ids]
        return Outcome()

    return run


LIBRARIES: dict[str, Callable[[str], Run]] = {
    "deltafold": deltafold,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "strands": strands,
    "httpx2": lambda url: bare("httpx2", url),
    "httpx": lambda url: bare("httpx", url),
}


def peak_mb() -> float:
    """Return the peak of the resident memory of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, ru_maxrss of a new process begins with the memory of its parent.
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


async def measured(run: Run, runs: int) -> dict[str, object]:
    """Measure concurrent runs."""
    before = TOOL_RUNS[0]
    wall, cpu = time.perf_counter(), time.process_time()
    outcomes = await asyncio.gather(*(run() for _ in range(runs)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "peak_mb": peak_mb(),
        "tool_runs": TOOL_RUNS[0] - before,
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


async def main() -> int:
    """Answer each line of the standard input; the client belongs to one event loop."""
    os.environ["OTEL_SDK_DISABLED"] = "true"
    made: dict[str, Run] = {}
    make = LIBRARIES[sys.argv[1]]
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        url = order["url"]
        if url not in made:
            made[url] = make(url)
        try:
            report = await measured(made[url], order["runs"])
        except Exception as error:
            report = {"error": f"{type(error).__name__}: {error}"[:200]}
        sys.stdout.write(f"{json.dumps(report)}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
