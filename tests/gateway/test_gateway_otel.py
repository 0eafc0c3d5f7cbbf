"""The gateway's calls are spans, as those of a Model, below the span of the client's request."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.types import ASGIApp, Receive, Scope, Send

from deltafold import otel
from deltafold.gateway import ModelTable, create_app
from deltafold.testing import Recording, ReplayServer
from gateway_clients import TEXT, recorded
from gateways import upstream

ASKED: Final = {
    "model": "m",
    "messages": [{"role": "user", "content": "?"}],
    "stream_options": {"include_usage": True},
}


class Traces:
    """Collects spans."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def served(self, app: ASGIApp) -> ASGIApp:
        """Return the application below a span of each request, as a tracing middleware does it."""
        tracer = self.provider.get_tracer("server")

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            with tracer.start_as_current_span("request"):
                await app(scope, receive, send)

        return traced

    @property
    def calls(self) -> list[Any]:
        """The spans of calls."""
        return [span for span in self.exporter.get_finished_spans() if span.name != "request"]

    @property
    def requests(self) -> list[Any]:
        """The spans of requests."""
        return [span for span in self.exporter.get_finished_spans() if span.name == "request"]


@pytest.fixture
def traces() -> Iterator[Traces]:
    made = Traces()
    otel.instrument(tracer_provider=made.provider)
    yield made
    otel.uninstrument()


def post(traces: Traces, server: ReplayServer, dialects: list[str], **body: object) -> int:
    """Ask a gateway in front of these upstreams, and return the status."""
    table = ModelTable({"m": [upstream(dialect, server.url) for dialect in dialects]})

    async def ask() -> int:
        transport = httpx2.ASGITransport(traces.served(create_app(table)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            response = await client.post("/v1/chat/completions", json=ASKED | body)
        await table.aclose()
        return response.status_code

    return asyncio.run(ask())


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("dialect", ["openai-chat", "gemini"], ids=["passed", "transcoded"])
def test_a_call_is_a_span_below_that_of_the_request(
    traces: Traces, dialect: str, *, streams: bool
) -> None:
    with ReplayServer() as server:
        server.queue(recorded(TEXT, dialect))
        assert post(traces, server, [dialect], stream=streams) == 200
    (call,), (request,) = traces.calls, traces.requests
    assert call.parent.span_id == request.context.span_id
    assert call.attributes["gen_ai.request.model"] == "upstream-model"
    assert call.attributes["gen_ai.usage.input_tokens"] == 11
    assert call.attributes["gen_ai.usage.output_tokens"] == 7


def test_each_upstream_that_was_called_has_a_span(traces: Traces) -> None:
    with ReplayServer() as server:
        server.queue(Recording.error(503, {"error": {"message": "Busy"}}))
        server.queue(recorded(TEXT, "gemini"))
        assert post(traces, server, ["openai-chat", "gemini"], stream=True) == 200
    failed, answered = traces.calls
    assert failed.attributes["error.type"] == "overloaded"
    assert "error.type" not in answered.attributes
    assert {failed.parent.span_id, answered.parent.span_id} == {traces.requests[0].context.span_id}
