"""Deltas of a stream as events of pydantic-ai.

In: an `AsyncDeltaStream`, or the deltas of a whole message.  Out: the framework's
`StreamedResponse`.

Laws: one delta of text, thinking or arguments is one event of the framework. Parts, usage, finish
reason and details have the form of the framework's own models, so that a history can go on with
them. What those have no field for is in `provider_details["deltafold"]`. A failure raises the
framework's exception; a pause of the provider is a suspended response.
"""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai.messages import FinishReason as FrameworkReason
from pydantic_ai.messages import (
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    ToolCallPart,
)
from pydantic_ai.models import StreamedResponse
from pydantic_ai.usage import RequestUsage

from deltafold._core import forbids_calls
from deltafold.contract.kinds import DeltaKind, FinishReason
from deltafold.integrations.carried import MEMBER, Carried, added, state_of
from deltafold.integrations.pydantic_ai.citations import citations_of
from deltafold.integrations.pydantic_ai.failures import exception_of
from deltafold.integrations.pydantic_ai.native_tools import parts_of_whole
from deltafold.integrations.token_logprobs import entries_of
from deltafold.message.fallbacks import is_boundary
from deltafold.message.messages import Message
from deltafold.streams.delta_streams import AsyncDeltaStream

if TYPE_CHECKING:
    from deltafold._core import MessageDelta
    from deltafold.contract.usage import Usage

_FINISH_REASONS: Final[dict[FinishReason, FrameworkReason]] = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_CALLS: "tool_call",
    FinishReason.CONTENT_FILTER: "content_filter",
    FinishReason.REFUSAL: "content_filter",
    FinishReason.PAUSE: "stop",
    FinishReason.ERROR: "error",
}

_PAUSED: Final = "pause_turn"
"""Reason of Anthropic for an answer that goes on after another request."""

Deltas = Iterable["MessageDelta"]
Events = list[ModelResponseStreamEvent]


@dataclass
class DeltafoldStreamedResponse(StreamedResponse):
    """A response that deltafold decodes.

    Args:
        model_request_parameters: the framework's facts about the request.
        _batches: the deltas, a batch for each read.
        _model_name: the name of the requested model.
        _provider_name: the name of the vendor.
    """

    _batches: AsyncIterator[Deltas]
    _model_name: str
    _provider_name: str
    _timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    _stream: AsyncDeltaStream | None = field(default=None, init=False, repr=False)
    _usage_received: bool | None = field(default=False, init=False)
    _begun: Events = field(default_factory=list[ModelResponseStreamEvent], init=False)
    _carried: dict[int | str, Carried] = field(default_factory=dict[int | str, Carried], init=False)
    _refusal: str = field(default="", init=False)
    _forbids_calls: str | None = field(default=None, init=False)
    _declined_calls: set[str] = field(default_factory=set[str], init=False)
    _incomplete_calls: set[str] = field(default_factory=set[str], init=False)
    _native_names: dict[str, str] = field(default_factory=dict[str, str], init=False)
    _texts_of_input: dict[str, str] = field(default_factory=dict[str, str], init=False)

    def __post_init__(self) -> None:
        """Keep the name of the requested model, which failures name."""
        self._requested = self._model_name

    def follow(self, stream: AsyncDeltaStream) -> None:
        """Take failures from a stream, and close it on a cancellation."""
        self._stream = stream

    async def begin(self) -> None:
        """Read up to the first event, so that a refusal raises where the request is made."""
        async for batch in self._batches:
            self._begun += self._events_of(batch)
            if self._begun:
                return
        self._check()

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        for event in self._begun:
            yield event
        self._begun = []
        events_of = self._events_of
        async for batch in self._batches:
            for event in events_of(batch):
                yield event
        self._check()
        if self._stream is not None and not self.cancelled:
            self.add_logprobs(self._stream.message)

    def add_logprobs(self, message: Message) -> None:
        """Add the log probabilities of the whole answer to the details of the response.

        Args:
            message: the answer.
        """
        entries = entries_of(message)
        if entries:
            self.provider_details = {**(self.provider_details or {}), "logprobs": entries}

    def _check(self) -> None:
        """Raise the failure of a stream that is over.

        Raises:
            ModelAPIError: the request failed, or the stream was cut.
        """
        stream = self._stream
        error = None if stream is None else stream.error
        if error is None or self.cancelled:
            return
        response = None if stream is None else stream.response
        headers = None if response is None else response.headers
        raise exception_of(error, self._requested, headers) from error

    async def close_stream(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            await self._stream.aclose()

    def _events_of(self, deltas: Deltas) -> Events:
        events: Events = []
        append = events.append
        manager = self._parts_manager
        for delta in deltas:
            kind = delta.kind
            if kind is DeltaKind.TEXT:
                self._add_text(delta, events)
            elif kind is DeltaKind.TOOL_CALL_ARGS:
                name = delta.tool_call_id or ""
                if name in self._texts_of_input:
                    self._texts_of_input[name] += delta.args_text or ""
                    continue
                event = manager.handle_tool_call_delta(vendor_part_id=name, args=delta.args_text)
                if event is not None:
                    append(event)
            elif kind is DeltaKind.THINKING:
                self._add_thinking(delta, events)
            else:
                events += self._rare_events(delta)
        return events

    def _add_text(self, delta: "MessageDelta", events: Events) -> None:
        text, index = delta.text or "", delta.part_index
        is_plain = delta.provider_state is None and delta.annotations is None
        if is_plain and not delta.refusal:
            events += self._parts_manager.handle_text_delta(vendor_part_id=index, content=text)
            return
        facts = added(self._carried.get(index or 0), delta)
        if delta.refusal:
            # The framework takes a refusal as a filtered response, whose text is a detail.
            self._refusal += text
            return
        self._carried[index or 0] = facts = facts or {}
        events += self._parts_manager.handle_text_delta(
            vendor_part_id=index,
            content=text,
            provider_name=self._provider_name,
            provider_details=_details_of(facts),
            citations=citations_of(delta.annotations or []),
        )

    def _add_thinking(self, delta: "MessageDelta", events: Events) -> None:
        text, index = delta.text or "", delta.part_index
        plain = delta.provider_state is None and not delta.redacted
        facts = None if plain else added(self._carried.get(index or 0), delta)
        if facts is None:
            events += self._parts_manager.handle_thinking_delta(
                vendor_part_id=index, content=text, provider_name=self._provider_name
            )
            return
        self._carried[index or 0] = facts
        state = state_of(facts)
        signature = state.get("signature") or state.get("encrypted_content") or state.get("data")
        name = state.get("id")
        events += self._parts_manager.handle_thinking_delta(
            vendor_part_id=index,
            content=text,
            id="redacted_thinking" if delta.redacted else name if isinstance(name, str) else None,
            signature=signature if isinstance(signature, str) else None,
            provider_name=self._provider_name,
            provider_details={MEMBER: facts},
        )

    def _rare_events(self, delta: "MessageDelta") -> Events:
        match delta.kind:
            case DeltaKind.START:
                self._model_name = delta.model_id or self._model_name
                self.provider_response_id = delta.request_id or None
            case DeltaKind.TOOL_CALL_START | DeltaKind.TOOL_CALL_END:
                return self._call_events(delta)
            case DeltaKind.PART:
                return self._whole_events(delta)
            case DeltaKind.USAGE:
                if delta.usage is not None:
                    usage, reported = usage_of(delta.usage)
                    self._add_usage(usage, reported=reported, cumulative=True)
            case DeltaKind.DONE:
                self._end(delta)
            case _:
                pass
        return []

    def _call_events(self, delta: "MessageDelta") -> Events:
        name = delta.tool_call_id or ""
        facts = added(self._carried.get(name), delta)
        details: dict[str, Any] | None = None
        if facts is not None:
            self._carried[name] = facts
            details = _details_of(facts)
        if delta.incomplete:
            self._incomplete_calls.add(name)
        is_start = delta.kind is DeltaKind.TOOL_CALL_START
        arguments: str | None = None
        if is_start and delta.input_format == "text":
            self._texts_of_input[name] = ""
        elif not is_start and name in self._texts_of_input:
            arguments = json.dumps({"input": self._texts_of_input.pop(name)}, ensure_ascii=False)
        if not is_start and details is None and arguments is None:
            return []
        event = self._parts_manager.handle_tool_call_delta(
            vendor_part_id=name,
            tool_name=delta.tool_name if is_start else None,
            args=arguments,
            tool_call_id=name if is_start else None,
            provider_name=None if details is None else self._provider_name,
            provider_details=details,
        )
        return [] if event is None else [event]

    def _whole_events(self, delta: "MessageDelta") -> Events:
        wire = cast("Mapping[str, object]", delta.payload["part"])
        # An image is not read for this.
        whole = delta.part if wire["kind"] == "provider" else None
        if whole is not None and is_boundary(whole):
            written = self._parts_manager.get_parts()
            self._declined_calls |= {
                part.tool_call_id for part in written if isinstance(part, ToolCallPart)
            }
        parts = parts_of_whole(wire, self._provider_name, self._native_names)
        return [self._parts_manager.handle_part(vendor_part_id=None, part=part) for part in parts]

    def _end(self, delta: "MessageDelta") -> None:
        reason, raw = delta.finish_reason, delta.raw_finish_reason
        # Some servers never send a reason; the framework's own model takes that for a stop.
        unknown: FrameworkReason | None = "stop" if raw is None else None
        known = None if reason is None else _FINISH_REASONS.get(reason)
        self._forbids_calls = None if reason is None else forbids_calls(reason)
        self.finish_reason = known or unknown
        if raw == _PAUSED:
            self.finish_reason, self.state = None, "suspended"
        details: dict[str, Any] = {**(delta.details or {})}
        if raw is not None:
            details["finish_reason"] = raw
        if self._refusal:
            details["refusal"] = self._refusal
            self.finish_reason = "content_filter"
        if delta.warnings:
            details[MEMBER] = {"warnings": delta.warnings}
        self.provider_details = details or None

    def get(self) -> ModelResponse:
        """Return the response so far.

        It has no calls if the end of the answer forbids them, none before a fallback, and no
        incomplete one that looks whole, because the framework runs all calls of the response, and
        none of the events.
        """
        response = super().get()
        if self._forbids_calls is not None or self._declined_calls or self._incomplete_calls:
            response.parts = [one for one in response.parts if not self._is_forbidden(one)]
        return response

    def _is_forbidden(self, part: ModelResponsePart) -> bool:
        return isinstance(part, ToolCallPart) and (
            self._forbids_calls is not None
            or part.tool_call_id in self._declined_calls
            or (part.tool_call_id in self._incomplete_calls and _looks_whole(part.args))
        )

    @property
    def model_name(self) -> str:
        """Name of the model, from the response if the response names one."""
        return self._model_name

    @property
    def provider_name(self) -> str:
        """Name of the vendor."""
        return self._provider_name

    @property
    def provider_url(self) -> str | None:
        """None: the address belongs to the client of the model."""
        return None

    @property
    def timestamp(self) -> datetime:
        """Time at which the response began."""
        return self._timestamp


def _looks_whole(arguments: object) -> bool:
    """Return whether the framework would run a call with these arguments.

    It takes no arguments for `{}`. Half a call is refused by itself, and the model asked again.
    """
    if not isinstance(arguments, str) or not arguments.strip():
        return True
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True


def _details_of(facts: Carried) -> dict[str, Any]:
    """Return the provider facts of a part; a signature of Gemini has the framework's name too."""
    signature = state_of(facts).get("thoughtSignature")
    known = {"thought_signature": signature} if isinstance(signature, str) else {}
    return {MEMBER: facts, **known}


def usage_of(usage: "Usage") -> tuple[RequestUsage, bool]:
    """Return a usage record in the framework's form, and whether the provider reported counts."""
    reported = usage.input_tokens is not None or usage.output_tokens is not None
    audio = usage.details or {}
    raw = audio.get("raw")
    counts = RequestUsage(
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cache_read_tokens=usage.cache_read_tokens or 0,
        cache_write_tokens=usage.cache_write_tokens or 0,
        output_reasoning_tokens=usage.reasoning_tokens or 0,
        input_audio_tokens=_count(audio.get("audioInputTokens")),
        output_audio_tokens=_count(audio.get("audioOutputTokens")),
        details=dict(_details(raw)),
    )
    if usage.cost is not None:
        counts.cost = Decimal(str(usage.cost))
    return counts, reported


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _details(raw: object) -> Iterable[tuple[str, int]]:
    """Yield the provider's own counts by their names, those of its nested objects too."""
    if not isinstance(raw, dict):
        return
    for name, value in raw.items():  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, dict):
            yield from _details(value)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, int) and not isinstance(value, bool):
            yield str(name), value  # pyright: ignore[reportUnknownArgumentType]
