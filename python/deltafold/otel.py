"""OpenTelemetry: spans of model calls, runs and tools, and the metrics of calls.

In: calls, streams of other clients, runs and tools as they begin and end.  Out: spans and
histograms of OpenTelemetry's API (extra `otel`), by the GenAI conventions.

>>> deltafold.otel.instrument()
>>> deltafold.otel.uninstrument()

Laws: nothing is recorded before `instrument()`. Content is recorded only on request. `CONVENTIONS`
has the names, one table per version of the conventions. Telemetry never makes a call fail. A span
is the parent of what begins inside of it, in any task or thread that has its context variables.
Source: OpenTelemetry semantic conventions for GenAI client spans, agent spans and metrics, 1.41
(read 2026-11).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from deltafold._core import __version__
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.usage import Usage
from deltafold.dialects import DIALECTS, Dialect
from deltafold.dialects.settings_table import setting_in
from deltafold.message.messages import Message, Role
from deltafold.message.timing import Timing
from deltafold.models.call_inputs import CallFacts
from deltafold.models.observer import Step, set_telemetry
from deltafold.streams.core import Observer, StreamCore
from deltafold.streams.foreign_calls import STREAMS
from deltafold.transports.addresses import dialect_of_address
from deltafold.transports.secrets import address_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


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
        "agent_name": "gen_ai.agent.name",
        "tool_name": "gen_ai.tool.name",
        "tool_type": "gen_ai.tool.type",
        "tool_call_id": "gen_ai.tool.call.id",
        "tool_description": "gen_ai.tool.description",
        "tool_arguments": "gen_ai.tool.call.arguments",
        "tool_result": "gen_ai.tool.call.result",
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
    """Record every later call of every Model, each run of an agent and each tool that it runs.

    `deltafold.stream` and `deltafold.astream` are recorded, too, where they read the response of an
    HTTP client. Their spans begin with the first read. Where another package traces the same
    client, there are two spans.

    Args:
        capture_content: whether spans carry the messages, the system prompt, the tools, and what
            tools receive and return.
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
    set_telemetry(made, made)
    STREAMS.telemetry = made.begun_stream
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
    STREAMS.telemetry = None


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
        self.internal_kind: Any = trace.SpanKind.INTERNAL
        self.use_span: Any = trace.use_span
        self.failed: Any = trace.StatusCode.ERROR

    def __call__(self, facts: CallFacts) -> Observer:
        """Begin the span of a call."""
        said = _said(facts) if self.capture_content else {}
        known = {
            "conversation": facts.metadata.session_id,
            "stream": facts.request.stream or None,
            **_settings(facts.row, facts.request.body),
            **said,
        }
        return _Call(self, facts.vendor, facts.model_id, facts.server, known)

    def begun_stream(self, response: object) -> Observer | None:
        """Begin the span of a stream whose response another client has opened.

        Args:
            response: the HTTP response; None is returned for other objects.
        """
        request: object = getattr(response, "request", None)
        address: object = getattr(request, "url", None) or getattr(response, "url", None)
        if address is None:
            return None
        dialect = dialect_of_address(response)
        row = None if dialect is None else DIALECTS.get(dialect)
        body = _body_of(request)
        model = body.get("model")
        known = {} if row is None else {"stream": True, **_settings(row, body)}
        return _Call(
            self,
            "" if row is None else row.author,
            model if isinstance(model, str) else "",
            str(address),
            known,
        )

    def begun_run(
        self, agent_name: str | None, session_id: str | None, said: Message | None
    ) -> Step:
        """Begin the span of a run."""
        known: dict[str, object] = {
            "operation": "invoke_agent",
            "agent_name": agent_name,
            "conversation": session_id,
        }
        if said is not None and self.capture_content:
            known["input_messages"] = _as_json([said])
        return _Step(self, f"invoke_agent {agent_name or ''}".rstrip(), known)

    def begun_tool(self, name: str, call_id: str, description: str, arguments: str) -> Step:
        """Begin the span of one execution of a tool."""
        known: dict[str, object] = {
            "operation": "execute_tool",
            "tool_name": name,
            "tool_type": "function",
            "tool_call_id": call_id,
            "tool_description": description or None,
            "tool_arguments": arguments if self.capture_content else None,
        }
        return _Step(self, f"execute_tool {name}", known)

    def named(self, facts: Mapping[str, object]) -> dict[str, object]:
        """Return facts under the names of the conventions, without unknown values."""
        attributes = self.names.attributes
        return {attributes[fact]: value for fact, value in facts.items() if value is not None}


class _Call:
    """One call under way."""

    __slots__ = ("_common", "_instrumentation", "_span")

    def __init__(
        self,
        instrumentation: Instrumentation,
        vendor: str,
        model_id: str,
        server: str,
        known: Mapping[str, object],
    ) -> None:
        self._instrumentation = instrumentation
        address, port = address_of(server)
        self._common: dict[str, object] = {
            "operation": "chat",
            "provider": instrumentation.names.providers.get(vendor, vendor) or None,
            "request_model": model_id or None,
            "server_address": address,
            "server_port": port,
        }
        self._span: Any = instrumentation.tracer.start_span(
            f"chat {model_id}".rstrip(),
            kind=instrumentation.client_kind,
            attributes=instrumentation.named({**self._common, **known}),
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
            known |= _tokens(usage)
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


class _Step(Step):
    """A run or a tool under way."""

    def __init__(
        self, instrumentation: Instrumentation, name: str, known: Mapping[str, object]
    ) -> None:
        self._instrumentation = instrumentation
        self._span: Any = instrumentation.tracer.start_span(
            name, kind=instrumentation.internal_kind, attributes=instrumentation.named(known)
        )

    def inside(self) -> "AbstractContextManager[object]":
        """Return the context in which the span is the parent of those that begin."""
        entered: AbstractContextManager[object] = self._instrumentation.use_span(
            self._span,
            end_on_exit=False,
            record_exception=False,
            set_status_on_exception=False,
        )
        return entered

    def ended(
        self,
        error_type: str | None,
        *,
        usage: Usage | None = None,
        answer: Message | None = None,
        result: str | None = None,
    ) -> None:
        """Record the outcome of the step."""
        instrumentation = self._instrumentation
        known: dict[str, object] = {"error_type": error_type}
        if usage is not None:
            known |= _tokens(usage)
        if instrumentation.capture_content:
            known["output_messages"] = None if answer is None else _as_json([answer])
            known["tool_result"] = result
        self._span.set_attributes(instrumentation.named(known))
        if error_type is not None:
            self._span.set_status(instrumentation.failed)
        self._span.end()


def _settings(row: Dialect, body: Mapping[str, object]) -> dict[str, object]:
    return {name: setting_in(row.settings, name, body) for name in _SETTINGS}


def _body_of(request: object) -> Mapping[str, object]:
    """Return the JSON body of a request that another client has sent; {} if there is none."""
    try:
        sent: Any = getattr(request, "content", None) or getattr(request, "body", None)
        body: object = json.loads(sent)
    except Exception:  # noqa: BLE001 - a stream that was sent, a form, or no body
        return {}
    return cast("Mapping[str, object]", body) if isinstance(body, dict) else {}


def _tokens(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


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
