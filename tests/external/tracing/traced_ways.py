"""Every way to read a stream under one tracing package, in a process of its own.

In: the name of a package and of an SDK.  Out: a JSON object on the last line: what the spans have
of the answer of each way.

    python tests/external/tracing/traced_ways.py logfire openai

A package that patches classes is switched on between `before` and `after`; one that changes clients
is given the client before or after it is accelerated.
"""

import asyncio
import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final

import anthropic
import openai
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import deltafold
from deltafold.compat import anthropic as compat_anthropic
from deltafold.compat import openai as compat_openai
from deltafold.testing import Recording, ReplayServer, answer

TEXT: Final = "The next high tide at Brest is at 17:42."
TOKENS: Final = 4321
"""Output tokens of the answer; no other number of a span is like it."""

EXPORTER: Final = InMemorySpanExporter()
TRACERS: Final = TracerProvider()
RUNS: Final[list[object]] = []
"""What langsmith would have sent."""

Client = Any


def _nothing() -> None:
    """Switch nothing on."""


def _same(client: Client) -> Client:
    return client


def _logfire(sdk: str) -> tuple[Callable[[], None], Callable[[Client], Client]]:
    import logfire

    processors = [SimpleSpanProcessor(EXPORTER)]
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=processors)
    instrument = getattr(logfire, f"instrument_{sdk}")

    def changed(client: Client) -> Client:
        instrument(client)
        return client

    return _nothing, changed


def _openinference(sdk: str) -> tuple[Callable[[], None], Callable[[Client], Client]]:
    from importlib import import_module

    module = import_module(f"openinference.instrumentation.{sdk}")
    made = module.OpenAIInstrumentor() if sdk == "openai" else module.AnthropicInstrumentor()
    return lambda: made.instrument(tracer_provider=TRACERS), _same


def _traceloop(sdk: str) -> tuple[Callable[[], None], Callable[[Client], Client]]:
    from importlib import import_module

    module = import_module(f"opentelemetry.instrumentation.{sdk}")
    made = module.OpenAIInstrumentor() if sdk == "openai" else module.AnthropicInstrumentor()
    return lambda: made.instrument(tracer_provider=TRACERS), _same


def _langfuse(_sdk: str) -> tuple[Callable[[], None], Callable[[Client], Client]]:
    from langfuse import Langfuse

    os.environ.update(LANGFUSE_PUBLIC_KEY="pk", LANGFUSE_SECRET_KEY="sk")
    Langfuse(tracer_provider=TRACERS, host="http://127.0.0.1:1")

    def imported() -> None:
        import langfuse.openai  # noqa: F401 - the import patches the SDK

    return imported, _same


def _langsmith(_sdk: str) -> tuple[Callable[[], None], Callable[[Client], Client]]:
    import langsmith
    from langsmith.wrappers import wrap_openai

    class Kept(langsmith.Client):
        def create_run(self, *given: object, **named: object) -> None:
            RUNS.append((given, named))

        def update_run(self, *given: object, **named: object) -> None:
            RUNS.append((given, named))

    os.environ["LANGSMITH_TRACING"] = "true"
    kept = Kept(api_key="k", api_url="http://127.0.0.1:1", auto_batch_tracing=False)
    return _nothing, lambda client: wrap_openai(client, tracing_extra={"client": kept})


def _own(_sdk: str) -> tuple[Callable[[], None], Callable[[Client], Client]]:
    return _nothing, lambda client: client.with_options(
        open_telemetry={"tracer_provider": TRACERS, "traces": {"content_mode": "content"}}
    )


PACKAGES: Final = {
    "logfire": _logfire,
    "openinference": _openinference,
    "opentelemetry-instrumentation": _traceloop,
    "langfuse": _langfuse,
    "langsmith": _langsmith,
    "own": _own,
}


class Ways:
    """The ways to read a stream of one SDK."""

    def __init__(self, sdk: str, url: str) -> None:
        self.sdk = sdk
        self.url = url

    def client(self, *, is_async: bool) -> Client:
        """Make a client of the SDK."""
        if self.sdk == "openai":
            kind: Any = openai.AsyncOpenAI if is_async else openai.OpenAI
            return kind(base_url=f"{self.url}/v1", api_key="k")
        kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        return kind(base_url=self.url, api_key="k")

    def accelerated(self, client: Client) -> Client:
        """Accelerate a client."""
        module: Any = compat_openai if self.sdk == "openai" else compat_anthropic
        return module.accelerate(client)

    def create(self, client: Client, *, is_raw: bool = False) -> Any:
        """Ask for a stream, which an asynchronous client returns when it is awaited."""
        said = [{"role": "user", "content": "When?"}]
        of = client.chat.completions if self.sdk == "openai" else client.messages
        of = of.with_raw_response if is_raw else of
        usage = {"stream_options": {"include_usage": True}}
        more: dict[str, Any] = usage if self.sdk == "openai" else {"max_tokens": 9}
        return of.create(model="m", messages=said, stream=True, **more)

    def loop(self, client: Client, *, is_raw: bool = False, items: int = 1_000) -> None:
        """Read as the SDK does, and leave the stream behind so many objects."""
        response = self.create(client, is_raw=is_raw)
        stream = response.parse() if is_raw else response
        for number, _ in enumerate(stream, 1):
            if number == items:
                break
        stream.close()

    async def aloop(self, client: Client) -> None:
        """Read as the SDK does."""
        async for _ in await self.create(client):
            pass

    def stream(self, client: Client, *, is_raw: bool = False) -> None:
        """Read with `deltafold.stream`."""
        with deltafold.stream(self.create(client, is_raw=is_raw)) as stream:
            assert stream.final_message().text == TEXT

    async def astream(self, client: Client, *, is_raw: bool = False) -> None:
        """Read with `deltafold.astream`."""
        async with deltafold.astream(await self.create(client, is_raw=is_raw)) as stream:
            assert (await stream.final_message()).text == TEXT

    def left(self, client: Client) -> None:
        """Leave a stream behind its first text."""
        with deltafold.stream(self.create(client)) as stream:
            next(iter(stream.text()))

    async def aleft(self, client: Client) -> None:
        """Leave a stream behind its first text."""
        async with deltafold.astream(await self.create(client)) as stream:
            await anext(aiter(stream.text()))


def observed(way: Callable[[], object]) -> str:
    """Read in one way, and say what the spans have."""
    EXPORTER.clear()
    RUNS.clear()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            way()
        except Exception as error:  # noqa: BLE001 - a cell that fails is shown
            return f"{type(error).__name__}: {error}"[:200]
    spans = [(dict(one.attributes or {}), one.events) for one in EXPORTER.get_finished_spans()]
    shown = json.dumps(
        [*((known, [*map(str, events)]) for known, events in spans), RUNS], default=str
    )
    named = any("has no answer" in str(one.message) for one in raised)
    if TEXT in shown or json.dumps(TEXT)[1:-1] in shown:
        return "answer and usage" if str(TOKENS) in shown else "answer"
    if str(TOKENS) in shown:
        return "usage"
    return "warning" if named else "span" if spans or RUNS else "nothing"


def main(package: str, sdk: str) -> dict[str, str]:
    """Read in every way."""
    TRACERS.add_span_processor(SimpleSpanProcessor(EXPORTER))
    dialect = "openai-chat" if sdk == "openai" else "anthropic-messages"
    body = answer(dialect, TEXT, output_tokens=TOKENS).body
    path = "/v1/chat/completions" if sdk == "openai" else "/v1/messages"
    switch, changed = PACKAGES[package](sdk)
    run = asyncio.run
    with ReplayServer({path: Recording.of_events(body)}) as server:
        ways = Ways(sdk, server.url)
        early = {one: ways.accelerated(ways.client(is_async=one)) for one in (False, True)}
        switch()

        def plain(*, is_async: bool = False) -> Client:
            return changed(ways.client(is_async=is_async))

        cells: dict[str, Callable[[], object]] = {
            "the SDK's loop": lambda: ways.loop(plain()),
            "the SDK's loop, awaited": lambda: run(ways.aloop(plain(is_async=True))),
            "the SDK's loop, left": lambda: ways.loop(plain(), items=3),
            "the SDK's loop, raw": lambda: ways.loop(plain(), is_raw=True),
            "stream": lambda: ways.stream(plain()),
            "astream": lambda: run(ways.astream(plain(is_async=True))),
            "stream, left": lambda: ways.left(plain()),
            "astream, left": lambda: run(ways.aleft(plain(is_async=True))),
            "raw stream": lambda: ways.stream(plain(), is_raw=True),
            "raw astream": lambda: run(ways.astream(plain(is_async=True), is_raw=True)),
            "accelerate after": lambda: ways.loop(ways.accelerated(plain())),
            "accelerate after, awaited": lambda: run(
                ways.aloop(ways.accelerated(plain(is_async=True)))
            ),
            "accelerate before": lambda: ways.loop(changed(early[False])),
            "accelerate before, awaited": lambda: run(ways.aloop(changed(early[True]))),
            "stream, accelerated": lambda: ways.stream(ways.accelerated(plain())),
            "astream, accelerated": lambda: run(
                ways.astream(ways.accelerated(plain(is_async=True)))
            ),
        }
        return {name: observed(way) for name, way in cells.items()}


if __name__ == "__main__":
    found = main(*sys.argv[1:])
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    os._exit(0)  # exporters of the packages would wait for servers that there are not
