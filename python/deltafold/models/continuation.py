"""Continuing: the rest of an answer that broke off, by another request.

In: the message of an answer that broke off.  Out: whether its provider continues it, the message
that ends the request, and one message of both answers.

Laws: no received text is lost or repeated. Usage and cost of the joined message are those of both
requests, and a warning of the message has the code `continued`.
Sources: the references of the Messages API ("Prefill Claude's response") and of the chat APIs of
Mistral and DeepSeek ("Prefix", "Chat Prefix Completion"); the guide on migrating to Claude 4.6;
read 2026-11.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import RequestProtocol
from deltafold.contract.usage import sum_of_usage
from deltafold.dialects import DIALECTS, Continuing
from deltafold.dialects.model_table import find_model
from deltafold.dialects.reasoning import thinks
from deltafold.dialects.settings import ModelConfig
from deltafold.message.messages import Message, MessagePart, Role, TextPart

CONTINUED: Final = "continued"
"""Code of the warning of a joined message."""


@dataclass(frozen=True, slots=True)
class Continuable:
    """Facts about a model that decide whether it continues an answer.

    Attributes:
        dialect: the dialect.
        config: the settings.
        segment: segment of the vendor's address for continued answers, "" if there is none.
        through_sdk: whether an SDK sends the requests.
    """

    dialect: RequestProtocol
    config: ModelConfig
    segment: str
    through_sdk: bool

    def obstacle(self, message: Message) -> str | None:
        """Return the reason why an answer cannot be continued, None if it can."""
        return _obstacle_of(message) or self._obstacle()

    def _obstacle(self) -> str | None:
        if self.config.output_schema is not None:
            return "the request asks for JSON"
        row = DIALECTS.get(self.dialect)
        continuing = None if row is None else row.continuing
        if continuing is Continuing.ALWAYS:
            return None
        if continuing is Continuing.BY_MODEL:
            known = find_model(self.config.known_as or self.config.model_id)
            if known is None or known.facts.vendor != "anthropic" or not known.facts.prefill:
                return f"{self.config.model_id} is not known to continue an answer"
            return "the request asks for reasoning" if thinks(self.config, known) else None
        if not self.segment:
            return f"its provider does not continue answers of {self.dialect}"
        return "the client of an SDK has one address" if self.through_sdk else None

    def checked(self, message: Message) -> Message:
        """Return the message that ends the request.

        Raises:
            MisuseError: the answer cannot be continued; the error has the reason.
        """
        obstacle = self.obstacle(message)
        if obstacle is not None:
            raise MisuseError(f"continue_from: {obstacle}")
        # The Messages API refuses an answer with white space at its end.
        last = message.parts[-1]
        text = last.text.rstrip() if isinstance(last, TextPart) else ""
        parts: list[MessagePart] = [*message.parts[:-1], TextPart(text=text)]
        return Message(role=Role.ASSISTANT, parts=parts, run_id=message.run_id)


def _obstacle_of(message: Message) -> str | None:
    if message.role is not Role.ASSISTANT:
        return f"the message must be of the assistant, not of the {message.role}"
    other = [part.kind for part in message.parts if not isinstance(part, TextPart)]
    if other:
        return f"the answer has a part of the kind {other[0]}, and providers continue text"
    if any(isinstance(part, TextPart) and part.refusal for part in message.parts):
        return "the answer is a refusal"
    last = message.parts[-1] if message.parts else None
    if not isinstance(last, TextPart) or not last.text.strip():
        return "the answer has no text at its end"
    return None


def may_repeat(dialect: RequestProtocol) -> bool:
    """Return whether answers of a dialect may begin with the text that they continue."""
    row = DIALECTS.get(dialect)
    return row is not None and row.repeats


def joined(partial: Message, dialect: RequestProtocol, rest: Message | None) -> Message:
    """Make one message of an answer that broke off and of its rest, which is changed."""
    if rest is None:
        return partial.model_copy(deep=True)
    rest.parts = _joined_parts(partial.parts, rest.parts, repeats=may_repeat(dialect))
    before, meta = partial.meta, rest.meta
    costs = [cost for cost in (before.cost_usd, meta.cost_usd) if cost is not None]
    times = [time for time in (before.duration_ms, meta.duration_ms) if time is not None]
    usage = [one for one in (before.usage, meta.usage) if one is not None]
    meta.usage = sum_of_usage(usage) if usage else None
    meta.cost_usd = sum(costs) if costs else None
    meta.cost_unpriced = tuple(dict.fromkeys((*before.cost_unpriced, *meta.cost_unpriced)))
    meta.duration_ms = sum(times) if times else None
    meta.warnings = [*_without_end(before.warnings), *meta.warnings, _warning(partial, len(usage))]
    return rest


def with_prefix(body: Mapping[str, object]) -> dict[str, object]:
    """Return a Chat body whose last message is marked as the beginning of the answer."""
    *before, last = cast("list[dict[str, object]]", body["messages"])
    return {**body, "messages": [*before, {**last, "prefix": True}]}


def is_continued(message: Message) -> bool:
    """Return whether a message was joined of several answers."""
    return any(warning.get("code") == CONTINUED for warning in message.meta.warnings)


def _without_end(warnings: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    return [warning for warning in warnings if warning.get("code") != CONTINUED]


def _warning(partial: Message, known: int) -> dict[str, object]:
    count = sum(len(part.text) for part in partial.parts if isinstance(part, TextPart))
    counted = "are those of both requests"
    if known < 2:  # noqa: PLR2004 - the two requests
        counted = "are those of the request that reported them"
    text = f"the answer broke off after {count} characters, and another request continued it; "
    return {"code": CONTINUED, "message": f"{text}usage and cost {counted}"}


def _joined_parts(
    before: Sequence[MessagePart], after: Sequence[MessagePart], *, repeats: bool
) -> list[MessagePart]:
    if not after:
        return list(before)
    last, first = before[-1], after[0]
    if not isinstance(last, TextPart) or not isinstance(first, TextPart):
        return [*before, *after]
    annotations = [*(last.annotations or []), *(first.annotations or [])] or None
    text = _joined_text(last.text, first.text, repeats=repeats)
    made = first.model_copy(update={"text": text, "annotations": annotations})
    return [*before[:-1], made, *after[1:]]


def _joined_text(text: str, more: str, *, repeats: bool) -> str:
    sent = text.rstrip()
    if repeats and more.startswith(sent):
        return more
    # The request ended before the white space, which the model may have written again.
    return f"{sent if more[:1].isspace() else text}{more}"
