"""Telemetry of streams whose responses another client has opened."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import deltafold
from deltafold import otel
from sdk_clients import anthropic_client, async_openai_client, openai_client
from watchers import watch
from wires import chat, claude, gpt

BODY = gpt("High tide is at 17:42.")


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    otel.instrument(tracer_provider=tracers, capture_content=True)
    yield exporter
    otel.uninstrument()


def opened(*chunks: bytes) -> Any:  # noqa: ANN401 - a stream of the SDK
    create: Any = openai_client(chunks or [BODY]).chat.completions.create
    return create(model="m", messages=[], stream=True, temperature=0.5)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_stream_of_an_sdk_is_a_span(spans: InMemorySpanExporter, *, is_async: bool) -> None:
    async def awaited() -> None:
        create: Any = async_openai_client([BODY]).chat.completions.create
        response = await create(model="m", messages=[], stream=True, temperature=0.5)
        async with deltafold.astream(response) as stream:
            await stream.final_message()

    if is_async:
        asyncio.run(awaited())
    else:
        with deltafold.stream(opened()) as stream:
            stream.final_message()
    (span,) = spans.get_finished_spans()
    known = dict(span.attributes or {})
    assert span.name == "chat m"
    assert {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 80,
        "gen_ai.usage.output_tokens": 10,
        "server.address": "test",
    }.items() <= known.items()
    (answer,) = json.loads(str(known["gen_ai.output.messages"]))
    assert answer["parts"] == [{"type": "text", "content": "High tide is at 17:42."}]


def test_the_provider_is_that_of_the_protocol(spans: InMemorySpanExporter) -> None:
    create: Any = anthropic_client([claude("Hi")]).messages.create
    with deltafold.stream(create(model="c", max_tokens=9, messages=[], stream=True)) as stream:
        stream.final_message()
    (span,) = spans.get_finished_spans()
    assert dict(span.attributes or {})["gen_ai.provider.name"] == "anthropic"
    assert dict(span.attributes or {})["gen_ai.request.max_tokens"] == 9


def test_a_stream_that_was_left_ends_its_span(spans: InMemorySpanExporter) -> None:
    with deltafold.stream(opened(*chat("a", "b", "c").splitlines(keepends=True))) as stream:
        next(iter(stream))
    (span,) = spans.get_finished_spans()
    assert dict(span.attributes or {})["error.type"] == "cancelled"


def test_a_watched_stream_has_the_spans_of_both(spans: InMemorySpanExporter) -> None:
    client: Any = openai_client([BODY])
    seen = watch("proxy", client)
    response = client.chat.completions.create(model="m", messages=[], stream=True)
    with deltafold.stream(response) as stream:
        stream.final_message()
    assert seen.ends == ["whole"]
    assert len(spans.get_finished_spans()) == 1


def test_bytes_are_no_call(spans: InMemorySpanExporter) -> None:
    for body in ([BODY], BODY, iter([BODY])):
        with deltafold.stream(body, "openai-chat") as stream:
            stream.final_message()
    assert not spans.get_finished_spans()


def test_nothing_is_recorded_after_the_switch_is_off(spans: InMemorySpanExporter) -> None:
    otel.uninstrument()
    with deltafold.stream(opened()) as stream:
        stream.final_message()
    assert not spans.get_finished_spans()
