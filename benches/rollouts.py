"""Rollouts beside the openai SDK: CPU a token of the client's process.

    rollouts.py --docs docs/scale.md        rewrites the table of the document
    rollouts.py serve TOKENS                serve on a free port, which is printed

In: a server of answers with log probabilities and token ids, a process of its own.  Out: a table.

Laws: both read the same streams, so many at once, by turns, and keep text, log probabilities and
ids of each answer. Every answer is compared with what the server has sent.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from deltafold import load_model
from deltafold.rollouts import collect
from measured_parts import rewrite
from rollout_server import Body, RolloutServer, token, tokens

REQUESTS: Final = 200
CHOICES: Final = 8
TOKENS: Final = 64
ROUNDS: Final = 3

Answers: TypeAlias = dict[tuple[int, int], tuple[str, list[float], list[int]]]
"""Text, log probabilities and ids by the numbers of prompt and answer."""


def expected() -> Answers:
    """Return what the server sends."""
    found: Answers = {}
    for prompt in range(REQUESTS):
        for choice in range(CHOICES):
            sent = [token(prompt, choice, place) for place in range(TOKENS)]
            text = "".join(each[0] for each in sent)
            found[prompt, choice] = text, [each[1] for each in sent], [each[2] for each in sent]
    return found


async def by_rollouts(url: str, package: str) -> Answers:
    """Collect the answers by `deltafold.rollouts`."""
    prompts = map(str, range(REQUESTS))
    model = load_model("vllm/m", base_url=url, api_key="key", transport=package)
    found: Answers = {}
    async with model:
        async for one in collect(model, prompts, n=CHOICES, concurrency=REQUESTS):
            assert one.error is None
            assert one.logprobs is not None
            assert one.token_ids is not None
            logprobs, ids = list(one.logprobs), list(one.token_ids)
            found[one.prompt_index, one.choice] = one.message.text, logprobs, ids
    return found


async def by_sdk(url: str) -> Answers:
    """Collect the answers by the openai SDK, as its documentation reads a stream."""
    openai: Any = import_module("openai")
    found: Answers = {}

    async def one(client: Any, prompt: int) -> None:  # noqa: ANN401 - the SDK's client
        texts: list[list[str]] = [[] for _ in range(CHOICES)]
        logprobs: list[list[float]] = [[] for _ in range(CHOICES)]
        ids: list[list[int]] = [[] for _ in range(CHOICES)]
        stream: Any = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": str(prompt)}],
            n=CHOICES,
            logprobs=True,
            stream=True,
        )
        async for chunk in stream:
            for choice in chunk.choices:
                at = int(choice.index)
                if choice.delta.content:
                    texts[at].append(choice.delta.content)
                if choice.logprobs is not None:
                    logprobs[at] += [each.logprob for each in choice.logprobs.content]
                    ids[at] += choice.token_ids
        for at in range(CHOICES):
            found[prompt, at] = "".join(texts[at]), logprobs[at], ids[at]

    async with openai.AsyncOpenAI(base_url=url, api_key="key", max_retries=0) as client:
        await asyncio.gather(*(one(client, prompt) for prompt in range(REQUESTS)))
    return found


def serve(count: int) -> None:
    """Serve answers of so many tokens until standard input ends."""

    def answering(body: Body) -> Any:  # noqa: ANN401 - an answer
        return tokens(int(body["messages"][-1]["content"]), int(body.get("n", 1)), count)

    with RolloutServer(answering) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def measured(url: str) -> list[str]:
    """Measure the readers by turns, and return the rows of a table."""
    readers: dict[str, Callable[[], Awaitable[Answers]]] = {
        "`rollouts.collect` over aiohttp": lambda: by_rollouts(url, "aiohttp"),
        "`rollouts.collect` over httpx2": lambda: by_rollouts(url, "httpx2"),
        "openai SDK": lambda: by_sdk(url),
    }
    wanted = expected()
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(ROUNDS + 1):
        for name, read in readers.items():
            began = time.process_time()
            found = asyncio.run(_awaited(read))
            times[name].append(time.process_time() - began)
            assert found == wanted, name
    count = REQUESTS * CHOICES * TOKENS
    medians = {name: statistics.median(spent[1:]) / count for name, spent in times.items()}
    base = medians["openai SDK"]
    head = f"{REQUESTS} requests at once, {CHOICES} answers of {TOKENS} tokens each,"
    return [
        f"{head} with log probabilities and token ids:",
        "",
        "| reader | CPU, µs a token | of the SDK's |",
        "|---|---:|---:|",
        *(f"| {name} | {cpu * 1e6:.2f} | {cpu / base:.1%} |" for name, cpu in medians.items()),
    ]


async def _awaited(read: Callable[[], Awaitable[Answers]]) -> Answers:
    return await read()


def main() -> None:
    """Measure, and rewrite the document; or serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("serve", nargs="*")
    parser.add_argument("--docs", type=Path)
    asked = parser.parse_args()
    if asked.serve:
        serve(int(asked.serve[1]))
        return
    command = [sys.executable, __file__, "serve", str(TOKENS)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        shown = "\n".join(measured(server.stdout.readline().strip()))
        server.communicate("")
    print(shown)
    if asked.docs is not None:
        rewrite(asked.docs, "rollouts", shown)


if __name__ == "__main__":
    main()
