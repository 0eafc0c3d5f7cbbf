"""Answers as events of the Responses API, in the classes of the openai SDK.

In: batches of deltas, and the message that they fold to.  Out: `ResponseStreamEvent`s, ending with
`response.completed`.

Laws: the encoder writes the events as mappings, and the builders of `deltafold.compat` make the
objects. The last item of an answer carries the outline of its parts in `provider_data`, a member
that the SDK keeps in its history. The SDK runs the calls of the last event alone: those before a
fallback are not in it, although their own events were sent.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

from agents.exceptions import ModelBehaviorError
from agents.usage import (
    _mark_request_completed_without_usage,  # pyright: ignore[reportPrivateUsage]
)
from openai.types.responses import ResponseCompletedEvent, ResponseStreamEvent

from deltafold._core import DeltaBatch, Encoder, MessageDelta
from deltafold.compat.builders import builder_of
from deltafold.compat.openai import CONSTRUCT
from deltafold.contract.kinds import FinishReason
from deltafold.integrations.carried import MEMBER
from deltafold.integrations.outlines import outline_of
from deltafold.message.fallbacks import calls_before_fallback
from deltafold.message.messages import Message
from deltafold.message.parts import ThinkingPart

Event: TypeAlias = dict[str, Any]

PROVIDER_DATA: Final = "provider_data"
"""Member of an item that the SDK keeps for the model that wrote it, and never sends."""

_END: Final = "response.completed"


class Events:
    """The events of one answer."""

    def __init__(self) -> None:
        self._encoder = Encoder(
            "openai-responses",
            as_bytes=False,
            envelope=True,
            incomplete_as_completed=True,
            declined_calls="keep",
        )
        self._build = builder_of(ResponseStreamEvent, CONSTRUCT)
        self._last: Event | None = None

    def feed(self, deltas: DeltaBatch | MessageDelta) -> Iterator[ResponseStreamEvent]:
        """Yield the events of deltas; the last event of a whole answer is held back."""
        build = self._build
        for event in self._encoder.feed(deltas):
            if event.get("type") == _END:
                self._last = event
            elif not self._encoder.failed:
                yield cast("ResponseStreamEvent", build(event))

    def end(self, message: Message, request_id: str | None) -> ResponseCompletedEvent:
        """Return the last event, with the facts of the whole message.

        Args:
            message: the answer.
            request_id: the id of the request at the provider.

        Raises:
            ModelBehaviorError: the answer is empty: the provider sent nothing, ended it by an
                error, or reached the limit of tokens first. Or it has calls and was refused or
                filtered: the SDK would run them.
        """
        if message.forbids_calls is not None and message.tool_calls:
            raise ModelBehaviorError(f"no tool call runs: {message.forbids_calls}")
        if self._last is None:
            raise ModelBehaviorError(f"the model ended without an answer ({_reason(message)})")
        last = self._last
        declined = calls_before_fallback(message.parts)
        written: list[Event] = last["response"]["output"]
        items = [item for item in written if item.get("call_id") not in declined]
        if written and not items:
            # The SDK takes the items of the other events for those of an empty response.
            raise ModelBehaviorError("no tool call runs: no model served the answer")
        last["response"]["output"] = items
        if not has_answer(message):
            if message.meta.finish_reason is FinishReason.LENGTH:
                raise ModelBehaviorError(
                    "the model ended with finish_reason='length' before any text, call or refusal"
                )
            if message.meta.finish_reason is FinishReason.CONTENT_FILTER:
                items.append(_WITHHELD)
        if items:
            facts: Event = {"model": message.meta.model_id, "response_id": message.meta.response_id}
            types = [item["type"] for item in items]
            outline = {"types": types, "parts": outline_of(message)}
            items[-1] = {**items[-1], PROVIDER_DATA: {**facts, MEMBER: outline}}
        event = cast("ResponseCompletedEvent", self._build(last))
        if event.response.usage is None:
            _mark_request_completed_without_usage(event.response)
        if request_id is not None:
            # The SDK keeps the id of a request in this private member, and reads it there.
            event.response._request_id = request_id  # pyright: ignore[reportPrivateUsage]
        return event


_WITHHELD: Final[Event] = {
    "id": "msg_withheld",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [
        {"type": "refusal", "refusal": "Response withheld by the provider's content filter."}
    ],
}
"""Item of an answer that a filter kept back; the SDK hands refusals to the caller."""


def has_answer(message: Message) -> bool:
    """Return whether a message has anything but thinking."""
    return any(not isinstance(part, ThinkingPart) for part in message.parts)


def _reason(message: Message) -> str:
    reason = message.meta.finish_reason
    return f"finish reason: {'none' if reason is None else reason.value}"
