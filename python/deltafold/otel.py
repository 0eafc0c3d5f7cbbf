"""OpenTelemetry: a span and the metrics of every model call, by the GenAI conventions.

In: calls as they begin and end.  Out: spans and histograms of OpenTelemetry's API (extra `otel`).

>>> deltafold.otel.instrument()
>>> deltafold.otel.uninstrument()

Laws: nothing is recorded before `instrument()`. Content is recorded only on request. `CONVENTIONS`
has the names, one table per version of the conventions. Telemetry never makes a call fail.
Source: OpenTelemetry semantic conventions for GenAI client spans and metrics, 1.41 (read 2026-11).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from deltafold._core import __version__
from deltafold.contract.exceptions import MisuseError
from deltafold.dialects.settings_table import setting_in
from deltafold.message.messages import Message, Role
from deltafold.message.timing import Timing
from deltafold.models.call_inputs import CallFacts
from deltafold.models.observer import set_telemetry
from deltafold.streams.core import Observer, StreamCore
from deltafold.transports.secrets import address_of


@dataclass(frozen=True, slots=True)
class Conventions:
    """Names of one version of the conventions.

    Attributes:
        schema_url: identifies the version to the receiver of the data.
        attributes: name of a fact in deltafold -> name of the attribute.
        metrics: name of a measure in deltafold -> name, unit and description of the histogram.
        providers: name of a vendor in deltafold -> well-known value of the provider attribute.
    """

    schema_url: str
    attributes: Mapping[str, str]
    metrics: Mapping[str, tuple[str, str, str]]
    providers: Mapping[str, str]


_V1_41: Final = Conventions(
    schema_url="https://opentelemetry.io/schemas/1.41.0",
    attributes={
        "operation": "gen_ai.operation.name",
        "provider": "gen_ai.provider.name",
        "conversation": "gen_ai.conversation.id",
        "request_model": "gen_ai.request.model",
        "stream": "gen_ai.request.stream",
        "max_tokens": "gen_ai.request.max_tokens",
        "temperature": "gen_ai.request.temperature",
        "top_p": "gen_ai.request.top_p",
        "top_k": "gen_ai.request.top_k",
        "stop_sequences": "gen_ai.request.stop_sequences",
        "seed": "gen_ai.request.seed",
        "frequency_penalty": "gen_ai.request.frequency_penalty",
        "presence_penalty": "gen_ai.request.presence_penalty",
        "response_id": "gen_ai.response.id",
        "response_model": "gen_ai.response.model",
        "finish_reasons": "gen_ai.response.finish_reasons",
        "time_to_first_chunk": "gen_ai.response.time_to_first_chunk",
        "input_tokens": "gen_ai.usage.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
        "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
        "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
        "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
        "token_type": "gen_ai.token.type",
        "input_messages": "gen_ai.input.messages",
        "output_messages": "gen_ai.output.messages",
        "system_instructions": "gen_ai.system_instructions",
        "tool_definitions": "gen_ai.tool.definitions",
        "error_type": "error.type",
        "server_address": "server.address",
        "server_port": "server.port",
    },
    metrics={
        "duration": ("gen_ai.client.operation.duration", "s", "GenAI operation duration."),
        "tokens": ("gen_ai.client.token.usage", "{token}", "Number of tokens used."),
        "time_to_first_chunk": (
            "gen_ai.client.operation.time_to_first_chunk",
            "s",
            "Time to receive the first chunk.",
        ),
        "time_per_output_chunk": (
            "gen_ai.client.operation.time_per_output_chunk",
            "s",
            "Time per output chunk, received after the first chunk.",
        ),
    },
    providers={
        "azure": "azure.ai.openai",
        "bedrock": "aws.bedrock",
        "google": "gcp.gemini",
        "google-vertex": "gcp.vertex_ai",
        "mistral": "mistral_ai",
        "watsonx": "ibm.watsonx.ai",
        "xai": "x_ai",
    },
)

CONVENTIONS: Final[Mapping[str, Conventions]] = {"1.41": _V1_41}
"""The names by version; the last one is the default."""

_SETTINGS: Final = (
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "seed",
    "frequency_penalty",
    "presence_penalty",
)
"""Settings that a span records, if the request body has them."""


def instrument(
    *,
    capture_content: bool = False,
    tracer_provider: object | None = None,
    meter_provider: object | None = None,
    conventions: str = "1.41",
) -> "Instrumentation":
    """Record every later call of every Model.

    Args:
        capture_content: whether the span carries the messages, the system prompt and the tools.
        tracer_provider: makes the tracer; None is the global provider.
        meter_provider: makes the meter; None is the global provider.
        conventions: the version of the names, a key of `CONVENTIONS`.

    Raises:
        MisuseError: OpenTelemetry is not installed, or the version is not known.
    """
    made = instrumentation(
        capture_content=capture_content,
        tracer_provider=tracer_provider,
        meter_provider=meter_provider,
        conventions=conventions,
    )
    set_telemetry(made)
    return made


def instrumentation(
    *,
    capture_content: bool = False,
    tracer_provider: object | None = None,
    meter_provider: object | None = None,
    conventions: str = "1.41",
) -> "Instrumentation":
    """Make the `telemetry` of one Model; arguments and errors are those of `instrument`."""
    if conventions not in CONVENTIONS:
        raise MisuseError(
            f"unknown conventions; known: {', '.join(CONVENTIONS)}, not {conventions!r}"
        )
    return Instrumentation(
        CONVENTIONS[conventions],
        capture_content=capture_content,
        tracer_provider=tracer_provider,
        meter_provider=meter_provider,
    )


def uninstrument() -> None:
    """Record no further call; those under way are recorded at their end."""
    set_telemetry(None)


class Instrumentation:
    """Turns calls into spans and measures; a `Telemetry` that a single Model may be given too."""

    def __init__(
        self,
        names: Conventions,
        *,
        capture_content: bool,
        tracer_provider: object | None,
        meter_provider: object | None,
    ) -> None:
        try:
            trace: Any = import_module("opentelemetry.trace")
            metrics: Any = import_module("opentelemetry.metrics")
        except ModuleNotFoundError as missing:
            raise MisuseError(
                "OpenTelemetry is not installed: pip install 'deltafold[otel]'"
            ) from missing
        self.names = names
        self.capture_content = capture_content
        self.tracer: Any = trace.get_tracer(
            "deltafold", __version__, tracer_provider, schema_url=names.schema_url
        )
        meter = metrics.get_meter(
            "deltafold", __version__, meter_provider, schema_url=names.schema_url
        )
        self.histograms: dict[str, Any] = {
            measure: meter.create_histogram(name, unit=unit, description=description)
            for measure, (name, unit, description) in names.metrics.items()
        }
        self.client_kind: Any = trace.SpanKind.CLIENT
        self.failed: Any = trace.StatusCode.ERROR

    def __call__(self, facts: CallFacts) -> Observer:
        """Begin the span of a call."""
        return _Call(self, facts)

    def named(self, facts: Mapping[str, object]) -> dict[str, object]:
        """Return facts under the names of the conventions, without unknown values."""
        attributes = self.names.attributes
        return {attributes[fact]: value for fact, value in facts.items() if value is not None}


class _Call:
    """One call under way."""

    __slots__ = ("_common", "_instrumentation", "_span")

    def __init__(self, instrumentation: Instrumentation, facts: CallFacts) -> None:
        self._instrumentation = instrumentation
        address, port = address_of(facts.server)
        self._common: dict[str, object] = {
            "operation": "chat",
            "provider": instrumentation.names.providers.get(facts.vendor, facts.vendor),
            "request_model": facts.model_id,
            "server_address": address,
            "server_port": port,
        }
        body = facts.request.body
        known: dict[str, object] = {
            **self._common,
            "conversation": facts.metadata.session_id,
            "stream": facts.request.stream or None,
            **{name: setting_in(facts.row.settings, name, body) for name in _SETTINGS},
        }
        if instrumentation.capture_content:
            known |= _said(facts)
        self._span: Any = instrumentation.tracer.start_span(
            f"chat {facts.model_id}",
            kind=instrumentation.client_kind,
            attributes=instrumentation.named(known),
        )

    def ended(self, core: StreamCore) -> None:
        """Record the outcome of the call."""
        instrumentation = self._instrumentation
        message = core.assembler.snapshot()
        error = core.error()
        timing = core.timing
        usage, meta = message.meta.usage, message.meta
        known: dict[str, object] = {
            "response_id": meta.response_id,
            "response_model": meta.model_id,
            "finish_reasons": None if meta.finish_reason is None else [str(meta.finish_reason)],
            "time_to_first_chunk": timing.time_to_first_byte,
            "error_type": None if error is None else str(error.code),
        }
        if usage is not None:
            known |= {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cache_read_tokens": usage.cache_read_tokens,
                "cache_write_tokens": usage.cache_write_tokens,
                "reasoning_tokens": usage.reasoning_tokens,
            }
        if instrumentation.capture_content:
            known["output_messages"] = _as_json([message])
        self._span.set_attributes(instrumentation.named(known))
        if error is not None:
            self._span.set_status(instrumentation.failed, error.message)
        self._span.end()
        facts = {**self._common, "response_model": meta.model_id, "error_type": known["error_type"]}
        self._measure(facts, timing)
        if usage is not None:
            counts = {"input": usage.input_tokens, "output": usage.output_tokens}
            for kind, count in counts.items():
                if count is not None:
                    self._record("tokens", count, {**facts, "token_type": kind})

    def _measure(self, facts: Mapping[str, object], timing: Timing) -> None:
        measures = {
            "duration": timing.duration,
            "time_to_first_chunk": timing.time_to_first_byte,
            "time_per_output_chunk": timing.gaps.p50,
        }
        for measure, seconds in measures.items():
            if seconds is not None:
                self._record(measure, seconds, facts)

    def _record(self, measure: str, value: float, facts: Mapping[str, object]) -> None:
        instrumentation = self._instrumentation
        instrumentation.histograms[measure].record(value, attributes=instrumentation.named(facts))


def _said(facts: CallFacts) -> dict[str, object]:
    system = [message for message in facts.messages if message.role is Role.SYSTEM]
    others = [message for message in facts.messages if message.role is not Role.SYSTEM]
    tools = [tool.model_dump(mode="json", exclude_none=True) for tool in facts.tools]
    return {
        "system_instructions": _as_json(system) if system else None,
        "input_messages": _as_json(others),
        "tool_definitions": json.dumps(tools) if tools else None,
    }


def _as_json(messages: Sequence[Message]) -> str:
    """Write messages in the conventions' form: role and parts, each part with its type."""
    return json.dumps([_message(message) for message in messages], ensure_ascii=False)


def _message(message: Message) -> dict[str, object]:
    parts = [_part(part.model_dump(mode="json")) for part in message.parts]
    written: dict[str, object] = {"role": str(message.role), "parts": parts}
    if message.meta.finish_reason is not None:
        written["finish_reason"] = str(message.meta.finish_reason)
    return written


def _part(part: Mapping[str, Any]) -> dict[str, object]:
    payload = part["payload"]
    match part["kind"]:
        case "text":
            return {"type": "text", "content": payload["text"]}
        case "thinking":
            return {"type": "reasoning", "content": payload["text"]}
        case "tool_call":
            return {
                "type": "tool_call",
                "id": payload["toolCallId"],
                "name": payload["toolName"],
                "arguments": payload["arguments"],
            }
        case "tool_result":
            return {
                "type": "tool_call_response",
                "id": payload["toolCallId"],
                "response": payload["content"],
            }
        case kind:
            return {"type": kind, **payload}
