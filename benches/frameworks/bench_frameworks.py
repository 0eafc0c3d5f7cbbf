"""Cost of the adapters beside the frameworks' own models, over real HTTP.

In: the frameworks of this environment.  Out: CPU for each event, events in a second with 100
streams in one process, and the table between the markers of docs/frameworks.md. Rows of frameworks
that another environment has are kept.

Laws: both models get the same bytes from a server in another process, one event in an HTTP chunk,
and must give the same text. They take turns, and the first round is not counted. The garbage
collector does not look at what the frameworks have imported.

    python benches/frameworks/bench_frameworks.py --docs docs/frameworks.md
"""

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import deltafold
from deltafold.testing import Recording, ReplayServer

# litellm reads its table of models from the package, not from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

EVENTS: Final = 2000
STREAMS: Final = 100
ROUNDS: Final = 5
BEGIN: Final = "<!-- cost of the adapters -->\n"
END: Final = "<!-- end of the cost -->\n"
WORDS: Final = ("The", " tide", " rises", " at", " Brest", ",", " slowly", " and", " evenly", ".")
TEXT: Final = "".join(WORDS[index % len(WORDS)] for index in range(EVENTS))
NAMES: Final = {"openai-chat": "gpt-4.1", "anthropic-messages": "claude-opus-4-8"}

Run: TypeAlias = Callable[[], Awaitable[str]]
"""Streams one answer, reads each event, and returns the text."""


def chat_body() -> Iterator[bytes]:
    """Yield a stream of Chat Completions with the members that OpenAI repeats in each event."""

    def event(choices: list[Any], **more: object) -> bytes:
        head: dict[str, object] = {
            "id": "chatcmpl-CfR0eXq9mUu1vKz5b2nT7aLwYs3Hd",
            "object": "chat.completion.chunk",
            "created": 1763928000,
            "model": "gpt-4.1-2025-04-14",
            "service_tier": "default",
            "system_fingerprint": "fp_b3f1157249",
        }
        return b"data: %b\n\n" % json.dumps({**head, "choices": choices, **more}).encode()

    def choice(delta: dict[str, object], finish: str | None = None) -> list[Any]:
        return [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]

    yield event(choice({"role": "assistant", "content": "", "refusal": None}), usage=None)
    for index in range(EVENTS):
        yield event(choice({"content": WORDS[index % len(WORDS)]}), usage=None)
    yield event(choice({}, "stop"), usage=None)
    counts = {"prompt_tokens": 80, "completion_tokens": EVENTS, "total_tokens": 80 + EVENTS}
    yield event([], usage=counts) + b"data: [DONE]\n\n"


def messages_body() -> Iterator[bytes]:
    """Yield a stream of the Messages API."""

    def event(kind: str, **members: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()

    head: dict[str, object] = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 80, "output_tokens": 1},
    }
    yield event("message_start", message=head)
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for index in range(EVENTS):
        delta = {"type": "text_delta", "text": WORDS[index % len(WORDS)]}
        yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    end: dict[str, object] = {"stop_reason": "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=end, usage={"output_tokens": EVENTS})
    yield event("message_stop")


def serve() -> None:
    """Serve both streams until the standard input ends."""
    recordings = {
        "/openai/chat/completions": Recording.of_events(b"".join(chat_body())),
        "/v1/messages": Recording.of_events(b"".join(messages_body())),
    }
    with ReplayServer(recordings) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def client_of(dialect: str, url: str, transport: str) -> Any:
    """Return the deltafold model of a dialect."""
    config = {"model_id": NAMES[dialect]}
    if dialect == "openai-chat":
        return deltafold.OpenAIChatModel(
            config, base_url=f"{url}/openai", api_key="key", transport=transport
        )
    return deltafold.AnthropicModel(config, base_url=url, api_key="key", transport=transport)


def sdk_of(dialect: str, url: str) -> Any:
    """Return the SDK's client of a dialect."""
    if dialect == "openai-chat":
        from openai import AsyncOpenAI  # noqa: PLC0415 - only where it is measured

        return AsyncOpenAI(base_url=f"{url}/openai", api_key="key")
    from anthropic import AsyncAnthropic  # noqa: PLC0415 - as above

    return AsyncAnthropic(base_url=url, api_key="key")


def pydantic_ai(dialect: str, url: str) -> tuple[Run, Run]:
    """`Model.request_stream`: each event is read."""
    from pydantic_ai.messages import ModelRequest, UserPromptPart  # noqa: PLC0415 - as above
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415 - as above
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - as above
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - as above
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - as above
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - as above

    from deltafold.integrations.pydantic_ai import DeltafoldModel  # noqa: PLC0415 - as above

    sdk, name = sdk_of(dialect, url), NAMES[dialect]
    own: Any = (
        OpenAIChatModel(name, provider=OpenAIProvider(openai_client=sdk))
        if dialect == "openai-chat"
        else AnthropicModel(name, provider=AnthropicProvider(anthropic_client=sdk))
    )
    asked: Any = [ModelRequest(parts=[UserPromptPart("When is high tide?")])]

    def run_of(model: Any) -> Run:
        async def run() -> str:
            parameters = ModelRequestParameters()
            async with model.request_stream(asked, None, parameters) as stream:
                async for _ in stream:
                    pass
                return str(stream.get().text)

        return run

    return run_of(own), run_of(DeltafoldModel(client_of(dialect, url, "httpx2")))


def chat_models(dialect: str, url: str) -> tuple[Any, Any]:
    """Return the own chat model of langchain, and the adapter."""
    from langchain_anthropic import ChatAnthropic  # noqa: PLC0415 - as above
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - as above

    from deltafold.integrations.langchain import ChatDeltafold  # noqa: PLC0415 - as above

    own: Any
    if dialect == "openai-chat":
        make: Any = ChatOpenAI
        own = make(model=NAMES[dialect], base_url=f"{url}/openai", api_key="key", stream_usage=True)
    else:
        make = ChatAnthropic
        own = make(model_name=NAMES[dialect], base_url=url, api_key="key", timeout=60, stop=None)
    return own, ChatDeltafold(client=client_of(dialect, url, "httpx2"))


def langchain(dialect: str, url: str) -> tuple[Run, Run]:
    """`astream`: each chunk is read."""

    def run_of(model: Any) -> Run:
        async def run() -> str:
            return "".join([chunk.text async for chunk in model.astream("When is high tide?")])

        return run

    own, ours = chat_models(dialect, url)
    return run_of(own), run_of(ours)


def langchain_events(dialect: str, url: str) -> tuple[Run, Run]:
    """`astream_events(version="v3")`: each content-block event is read."""

    def run_of(model: Any) -> Run:
        async def run() -> str:
            stream = await model.astream_events("When is high tide?", version="v3")
            async for _ in stream:
                pass
            return str((await stream.output).text)

        return run

    own, ours = chat_models(dialect, url)
    return run_of(own), run_of(ours)


def openai_agents(dialect: str, url: str) -> tuple[Run, Run] | None:
    """`Model.stream_response`: each event is read. The SDK has no model of Anthropic's."""
    if dialect != "openai-chat":
        return None
    import agents  # noqa: PLC0415 - as above
    from agents.models.interface import ModelTracing  # noqa: PLC0415 - as above

    from deltafold.integrations.openai_agents import DeltafoldAgentsModel  # noqa: PLC0415 - as above

    def run_of(model: Any) -> Run:
        async def run() -> str:
            events = model.stream_response(
                system_instructions=None,
                input="When is high tide?",
                model_settings=agents.ModelSettings(include_usage=True),
                tools=[],
                output_schema=None,
                handoffs=[],
                tracing=ModelTracing.DISABLED,
                previous_response_id=None,
                conversation_id=None,
                prompt=None,
            )
            read = [event async for event in events]
            kind = "response.output_text.delta"
            return "".join([event.delta for event in read if event.type == kind])

        return run

    own = agents.OpenAIChatCompletionsModel(NAMES[dialect], sdk_of(dialect, url))
    return run_of(own), run_of(DeltafoldAgentsModel(client_of(dialect, url, "httpx2")))


def strands_models(dialect: str, url: str, transport: str = "httpx") -> tuple[Any, Any]:
    """Make the own model and the adapter. The SDKs of this environment use httpx."""
    from strands.models.anthropic import AnthropicModel  # noqa: PLC0415 - as above
    from strands.models.openai import OpenAIModel  # noqa: PLC0415 - as above

    from deltafold.integrations.strands import DeltafoldStrandsModel  # noqa: PLC0415 - as above

    access = {"base_url": url, "api_key": "key"}
    own: Any = (
        OpenAIModel(client=sdk_of(dialect, url), model_id=NAMES[dialect])
        if dialect == "openai-chat"
        else AnthropicModel(client_args=access, model_id=NAMES[dialect], max_tokens=100)
    )
    return own, DeltafoldStrandsModel(client_of(dialect, url, transport))


def strands(dialect: str, url: str, transport: str = "httpx") -> tuple[Run, Run]:
    """`Model.stream`: each event is read."""
    asked: Any = [{"role": "user", "content": [{"text": "When is high tide?"}]}]

    def run_of(model: Any) -> Run:
        async def run() -> str:
            read = [event async for event in model.stream(asked)]
            deltas = [one["contentBlockDelta"] for one in read if "contentBlockDelta" in one]
            return "".join([delta["delta"]["text"] for delta in deltas])

        return run

    own, ours = strands_models(dialect, url, transport)
    return run_of(own), run_of(ours)


def strands_agent(dialect: str, url: str) -> tuple[Run, Run]:
    """`Agent.stream_async`: each event is read."""
    from strands import Agent  # noqa: PLC0415 - as above

    def run_of(model: Any) -> Run:
        async def run() -> str:
            agent = Agent(model, callback_handler=None)
            read = [event async for event in agent.stream_async("When is high tide?")]
            return "".join([str(event["data"]) for event in read if "data" in event])

        return run

    own, ours = strands_models(dialect, url)
    return run_of(own), run_of(ours)


def litellm(dialect: str, url: str) -> tuple[Run, Run]:
    """`acompletion`: each chunk is read. litellm's own providers bring their HTTP clients."""
    import litellm as framework  # noqa: PLC0415 - as above

    from deltafold.integrations.litellm import DeltafoldLLM  # noqa: PLC0415 - as above

    framework.suppress_debug_info = True
    handler = DeltafoldLLM({one: client_of(one, url, "httpx") for one in NAMES})
    framework.custom_provider_map = [{"provider": "deltafold", "custom_handler": handler}]
    is_chat = dialect == "openai-chat"
    own = f"{'openai' if is_chat else 'anthropic'}/{NAMES[dialect]}"
    access = {"api_base": f"{url}/openai" if is_chat else url, "api_key": "key"}
    asked = [{"role": "user", "content": "When is high tide?"}]

    def run_of(name: str, **access: str) -> Run:
        async def run() -> str:
            stream: Any = await framework.acompletion(name, asked, stream=True, **access)
            read = [chunk async for chunk in stream]
            return "".join([chunk.choices[0].delta.content or "" for chunk in read])

        return run

    return run_of(own, **access), run_of(f"deltafold/{dialect}")


FRAMEWORKS: Final[dict[str, tuple[str, Callable[[str, str], tuple[Run, Run] | None]]]] = {
    "pydantic-ai, `request_stream`": ("pydantic_ai", pydantic_ai),
    "langchain, `astream`": ("langchain_core", langchain),
    'langchain, `astream_events(version="v3")`': ("langchain_core", langchain_events),
    "openai-agents, `stream_response`": ("agents", openai_agents),
    "strands, `Model.stream`": ("strands", strands),
    "strands, `Model.stream`, aiohttp": ("strands", partial(strands, transport="aiohttp")),
    "strands, `Agent.stream_async`": ("strands", strands_agent),
    "litellm, `acompletion`": ("litellm", litellm),
}


async def cpu_of(run: Run) -> float:
    """Return the CPU of one stream, in microseconds for each event."""
    gc.collect()
    gc.freeze()
    begin = time.process_time()
    text = await run()
    spent = time.process_time() - begin
    gc.unfreeze()
    if text != TEXT:
        raise AssertionError(f"wrong text: {text[:80]!r}")
    return spent / EVENTS * 1e6


async def rate_of(run: Run, streams: int) -> float:
    """Return the events in a second of CPU with streams side by side."""
    gc.collect()
    gc.freeze()
    begin = time.process_time()
    texts = await asyncio.gather(*(run() for _ in range(streams)))
    spent = time.process_time() - begin
    gc.unfreeze()
    if set(texts) != {TEXT}:
        raise AssertionError("wrong text")
    return streams * EVENTS / spent


async def row_of(runs: tuple[Run, Run], rounds: int, streams: int) -> list[str]:
    """Measure the own model and the adapter by turns, and return the cells."""
    costs: tuple[list[float], list[float]] = ([], [])
    for done in range(rounds + 1):
        for run, found in zip(runs, costs, strict=True):
            cost = await cpu_of(run)
            if done:
                found.append(cost)
    own, ours = (statistics.median(found) for found in costs)
    own_rate, our_rate = [await rate_of(run, streams) for run in runs]
    return [
        f"{own:.1f}",
        f"{ours:.1f}",
        f"{own / ours:.1f}",
        f"{own_rate:,.0f}",
        f"{our_rate:,.0f}",
    ]


async def measured(url: str, rounds: int, streams: int) -> dict[str, str]:
    """Measure all frameworks that are installed, and return the rows by their first cells."""
    rows: dict[str, str] = {}
    for name, (package, make) in FRAMEWORKS.items():
        if importlib.util.find_spec(package) is None:
            continue
        for dialect in NAMES:
            runs = make(dialect, url)
            if runs is not None:
                begin = f"| {name} | {dialect} |"
                rows[begin] = f"{begin} {' | '.join(await row_of(runs, rounds, streams))} |"
                print(rows[begin], file=sys.stderr)
    return rows


def table(rows: Mapping[str, str], known: str) -> str:
    """Write the table: the measured rows, and the known ones of other environments."""
    head = "µs of CPU an event: own | adapter | ratio | events/s of CPU, 100 streams: own | adapter"
    lines = [f"| | protocol | {head} |", "|---|---|---:|---:|---:|---:|---:|"]
    for begin in [f"| {name} | {dialect} |" for name in FRAMEWORKS for dialect in NAMES]:
        kept = [line for line in known.splitlines() if line.startswith(begin)]
        lines += [rows[begin]] if begin in rows else kept
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure, print the table, and write it into a document."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--docs", type=Path)
    chosen = parser.parse_args()
    if chosen.serve:
        serve()
        return 0
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if server.stdout is None:
        raise AssertionError
    url = server.stdout.readline().strip()
    rows = asyncio.run(measured(url, chosen.rounds, chosen.streams))
    server.communicate()
    text = "" if chosen.docs is None else chosen.docs.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    known, _, after = rest.partition(END)
    written = table(rows, known)
    print(written)
    if chosen.docs is not None:
        chosen.docs.write_text(f"{before}{BEGIN}\n{written}\n{END}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
