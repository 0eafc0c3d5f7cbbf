"""Telemetry: the span and the metrics of a call, named as the GenAI conventions name them."""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import deltafold
from deltafold import MisuseError, ModelError, OpenAIChatModel, otel
from deltafold.testing import Recording, ReplayServer
from wires import CHAT


class Telemetry:
    """Collects the recorded spans and metrics."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    @property
    def span(self) -> Any:  # noqa: ANN401 - the SDK's own class
        (span,) = self.exporter.get_finished_spans()
        return span

    @property
    def points(self) -> dict[str, list[Any]]:
        data: Any = self.reader.get_metrics_data()
        metrics: list[Any] = [
            metric
            for resource in cast("list[Any]", data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        return {metric.name: list(metric.data.data_points) for metric in metrics}


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry()
    yield made
    otel.uninstrument()


@pytest.fixture
def model() -> Iterator[OpenAIChatModel]:
    recordings = {"/v1/chat/completions": Recording.of_events(CHAT)}
    with ReplayServer(recordings) as server:
        settings = {"model_id": "m", "temperature": 0.5, "max_tokens": 7, "stop_sequences": ("x",)}
        made = OpenAIChatModel(settings, base_url=f"{server.url}/v1", api_key="secret")
        with made:
            yield made


def instrument(telemetry: Telemetry, **options: Any) -> None:  # noqa: ANN401
    otel.instrument(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters, **options)


def test_a_call_is_a_span_of_the_conventions(telemetry: Telemetry, model: OpenAIChatModel) -> None:
    instrument(telemetry)
    message = model.send_message_sync("Hello", request_metadata={"session_id": "s"})
    span = telemetry.span
    usage = message.meta.usage
    assert usage is not None
    assert span.name == "chat m"
    assert span.kind.name == "CLIENT"
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 7,
        "gen_ai.request.stop_sequences": ("x",),
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": "s",
        "gen_ai.response.id": message.meta.response_id,
        "gen_ai.response.model": message.meta.model_id,
        "gen_ai.response.finish_reasons": (str(message.meta.finish_reason),),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "server.address": "127.0.0.1",
    }
    assert expected.items() <= dict(span.attributes).items()
    assert span.attributes["server.port"] > 0
    assert span.attributes["gen_ai.response.time_to_first_chunk"] >= 0


def test_content_is_recorded_only_where_it_is_asked_for(
    telemetry: Telemetry, model: OpenAIChatModel
) -> None:
    instrument(telemetry)
    model.send_message_sync("secret words", system_prompt="be terse")
    assert "secret words" not in json.dumps(dict(telemetry.span.attributes), default=str)
    telemetry.exporter.clear()
    instrument(telemetry, capture_content=True)
    tool = deltafold.ToolSpec(name="f")
    message = model.send_message_sync("secret words", [tool], system_prompt="be terse")
    attributes = telemetry.span.attributes
    assert json.loads(attributes["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "secret words"}]}
    ]
    (answer,) = json.loads(attributes["gen_ai.output.messages"])
    assert {"type": "text", "content": message.text} in answer["parts"]
    assert len(answer["parts"]) == len(message.parts)
    assert "be terse" in attributes["gen_ai.system_instructions"]
    assert json.loads(attributes["gen_ai.tool.definitions"])[0]["name"] == "f"


def test_a_failure_names_its_code(telemetry: Telemetry) -> None:
    instrument(telemetry)
    with ReplayServer() as server:
        server.queue(Recording.error(429, {"error": {"message": "slow down"}}))
        model = OpenAIChatModel({"model_id": "m"}, base_url=server.url, api_key="k")
        with model, pytest.raises(ModelError):
            model.send_message_sync("Hello")
    assert telemetry.span.attributes["error.type"] == "rate_limited"
    assert telemetry.span.status.status_code.name == "ERROR"
    (duration,) = telemetry.points["gen_ai.client.operation.duration"]
    assert duration.attributes["error.type"] == "rate_limited"


def test_a_call_is_measured(telemetry: Telemetry, model: OpenAIChatModel) -> None:
    instrument(telemetry)
    message = model.send_message_sync("Hello")
    points = telemetry.points
    assert points["gen_ai.client.operation.duration"][0].count == 1
    assert points["gen_ai.client.operation.time_to_first_chunk"][0].count == 1
    tokens = {
        point.attributes["gen_ai.token.type"]: point.sum
        for point in points["gen_ai.client.token.usage"]
    }
    usage = message.meta.usage
    assert usage is not None
    assert tokens == {"input": usage.input_tokens, "output": usage.output_tokens}


def test_a_stream_that_is_given_up_ends_its_span(
    telemetry: Telemetry, model: OpenAIChatModel
) -> None:
    instrument(telemetry)
    with model.stream_sync("Hello") as stream:
        next(stream.batches())
    assert telemetry.span.attributes["error.type"] == "cancelled"


def test_a_stream_that_was_never_read_has_no_span(
    telemetry: Telemetry, model: OpenAIChatModel
) -> None:
    instrument(telemetry)
    model.stream_sync("Hello").close()
    assert telemetry.exporter.get_finished_spans() == ()


def test_nothing_is_recorded_after_the_switch_is_off(
    telemetry: Telemetry, model: OpenAIChatModel
) -> None:
    instrument(telemetry)
    otel.uninstrument()
    model.send_message_sync("Hello")
    assert telemetry.exporter.get_finished_spans() == ()


def test_one_model_may_have_its_own_telemetry(telemetry: Telemetry) -> None:
    mine = otel.Instrumentation(
        otel.CONVENTIONS["1.41"],
        capture_content=False,
        tracer_provider=telemetry.tracers,
        meter_provider=telemetry.meters,
    )
    recordings = {"/chat/completions": Recording.of_events(CHAT)}
    with (
        ReplayServer(recordings) as server,
        OpenAIChatModel(
            {"model_id": "m"}, base_url=server.url, api_key="k", telemetry=mine
        ) as model,
    ):
        model.send_message_sync("Hello")
    assert telemetry.span.name == "chat m"


def test_an_unknown_version_of_the_conventions_names_those_there_are() -> None:
    with pytest.raises(MisuseError, match=r"1\.41"):
        otel.instrument(conventions="0.1")


def test_each_model_of_a_fallback_has_its_own_span(telemetry: Telemetry) -> None:
    with ReplayServer() as server:
        server.queue(
            Recording.error(503, {"error": {"message": "busy"}}), Recording.of_events(CHAT)
        )
        instrument(telemetry)
        first, second = (
            OpenAIChatModel({"model_id": name}, base_url=f"{server.url}/v1", api_key="k")
            for name in ("first", "second")
        )
        with first.with_fallback(second) as model:
            model.send_message_sync("When?")
    spans: list[Any] = list(telemetry.exporter.get_finished_spans())
    assert [
        (span.attributes["gen_ai.request.model"], span.attributes.get("error.type"))
        for span in spans
    ] == [("first", "overloaded"), ("second", None)]
