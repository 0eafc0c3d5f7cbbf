"""Cards of messages and failures.

In: a message, or an exception.  Out: its card.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from deltafold.contract.kinds import FinishReason
from deltafold.contract.usage import Usage
from deltafold.message.card import Block, Card
from deltafold.message.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart
from deltafold.message.shown import Shown, card_of

_MOST_PARTS: Final = 500
"""Parts of a message that are shown."""


class ShownMeta(Protocol):
    """Metadata that is shown below a message."""

    usage: Usage | None
    cost_usd: float | None
    cost_source: str | None
    cost_unpriced: tuple[str, ...]
    model_id: str | None
    finish_reason: FinishReason | None
    warnings: list[dict[str, object]]


class ShownMessage(Protocol):
    """The members of a message that are shown."""

    @property
    def parts(self) -> Sequence[MessagePart]:
        """The parts of the message."""
        ...

    @property
    def meta(self) -> ShownMeta:
        """Its metadata."""
        ...

    @property
    def not_runnable(self) -> Mapping[str, str]:
        """The reasons why calls may not run, by their ids."""
        ...


def message_card(message: ShownMessage, state: str = "", *, grows: bool = False) -> Card:
    """Return the card of a message.

    >>> message_card(Message.user("Hello")).blocks[0].text
    'Hello'

    Args:
        message: the message.
        state: what to say below it, such as the status of its stream.
        grows: whether its stream goes on.
    """
    more = len(message.parts) - _MOST_PARTS
    facts = [state] if state else []
    facts += [f"and {more:,} more parts"] if more > 0 else []
    facts += _facts(message.meta)
    blocks = [_block(part, message.not_runnable) for part in message.parts[:_MOST_PARTS]]
    return Card(blocks=blocks, facts=facts, grows=grows)


def nested(title: str, card: Card) -> Card:
    """Return a card with a title, for a card around it."""
    return replace(card, title=title)


def failure_card(error: BaseException) -> Card:
    """Return the card of a failure.

    >>> failure_card(ValueError("too late")).title
    'ValueError'
    """
    if isinstance(error, Shown):
        return card_of(error)
    text = str(error)
    blocks = [Block(kind="error", text=text)] if text else []
    return Card(title=type(error).__name__, is_error=True, blocks=blocks)


def tokens_of(usage: Usage) -> str:
    """Return the counts of a usage record, `?` for one that is not known."""
    counts = {"in": usage.input_tokens, "out": usage.output_tokens}
    return ", ".join(
        f"{'?' if count is None else format(count, ',')} tokens {name}"
        for name, count in counts.items()
    )


def cost_text(usd: float, unpriced: Sequence[str], source: str | None = None) -> str:
    """Return a cost in US dollars, and what it leaves out."""
    without = f" without {', '.join(unpriced)}" if unpriced else ""
    return f"${usd:.4g}{f' ({source})' if source else ''}{without}"


def _block(part: MessagePart, not_runnable: Mapping[str, str]) -> Block:
    match part:
        case TextPart():
            return Block(kind="text", text=part.text, label="refusal" if part.refusal else "")
        case ThinkingPart():
            text = "(redacted)" if part.redacted else part.text
            return Block(kind="thinking", label="thinking", text=text, folds=True)
        case ToolCallPart():
            return Block(
                kind="call",
                label=part.tool_name,
                note=_note(part, not_runnable),
                text=_arguments(part),
                is_code=True,
            )
        case _:
            return Block(kind="other", label=part.kind, text=part.model_dump_json(), is_code=True)


def _note(call: ToolCallPart, not_runnable: Mapping[str, str]) -> str:
    why = not_runnable.get(call.tool_call_id)
    note = [call.tool_call_id, "incomplete" if call.incomplete else ""]
    note += [] if why is None else [f"not runnable: {why}"]
    return " ".join(filter(None, note))


def _arguments(call: ToolCallPart) -> str:
    if call.arguments is None or call.incomplete:
        return call.raw_args_text
    return json.dumps(call.arguments, ensure_ascii=False, indent=2)


def _facts(meta: ShownMeta) -> Iterator[str]:
    """Yield the model, the end, the counts, the cost and the warnings."""
    if meta.model_id:
        yield meta.model_id
    if meta.finish_reason is not None:
        yield meta.finish_reason.value
    if meta.usage is not None:
        yield tokens_of(meta.usage)
    if meta.cost_usd is not None:
        yield cost_text(meta.cost_usd, meta.cost_unpriced, meta.cost_source)
    for warning in meta.warnings:
        yield f"warning {warning.get('code')}: {warning.get('message')}"
