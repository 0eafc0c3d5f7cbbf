"""HTML that shows a message to a person in a notebook.

In: the parts and the metadata of a message.  Out: HTML.

Laws: content is text, and its length on the page is bounded. The colours are those of the notebook.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, Protocol

from deltafold.contract.kinds import FinishReason
from deltafold.contract.usage import Usage
from deltafold.message.parts import MessagePart, TextPart, ThinkingPart, ToolCallPart

_MOST_CHARACTERS: Final = 100_000
_MOST_PARTS: Final = 500

_PART: Final = "border-left:3px solid {colour};padding:0 0 0 .7em;margin:.3em 0"
_TEXT: Final = "white-space:pre-wrap;overflow-wrap:anywhere"
_CODE: Final = f"{_TEXT};font-family:monospace;font-size:.9em"
_DIM: Final = "opacity:.75;font-size:.85em;margin:.3em 0"
_COLOURS: Final = {"text": "#3b82f6", "thinking": "#a855f7", "tool_call": "#22a352"}


class ShownMeta(Protocol):
    """Metadata that is shown below a message."""

    usage: Usage | None
    cost_usd: float | None
    cost_source: str | None
    cost_unpriced: tuple[str, ...]
    model_id: str | None
    finish_reason: FinishReason | None
    warnings: list[dict[str, object]]


def message_html(
    parts: Sequence[MessagePart],
    meta: ShownMeta,
    not_runnable: Mapping[str, str],
    state: str = "",
) -> str:
    """Return a message as HTML.

    >>> message = Message.user("<b>Hello</b>")
    >>> message_html(message.parts, message.meta, {}).count("&lt;b&gt;Hello")
    1

    Args:
        parts: the parts of the message.
        meta: its metadata.
        not_runnable: the reasons why calls may not run, by their ids.
        state: what to say below it, such as the status of its stream.
    """
    shown = "".join(_part(part, not_runnable) for part in parts[:_MOST_PARTS])
    more = len(parts) - _MOST_PARTS
    facts = [state] if state else []
    facts += [f"and {more:,} more parts"] if more > 0 else []
    facts += _facts(meta)
    below = f'<div style="{_DIM}">{escape(" · ".join(facts))}</div>' if facts else ""
    return f'<div class="deltafold-message">{shown}{below}</div>'


def _part(part: MessagePart, not_runnable: Mapping[str, str]) -> str:
    match part:
        case TextPart():
            shown = _box(_TEXT, part.text)
        case ThinkingPart():
            text = "(redacted)" if part.redacted else part.text
            shown = f"<details><summary>thinking</summary>{_box(_TEXT, text)}</details>"
        case ToolCallPart():
            shown = f"<div><b>{escape(part.tool_name)}</b> {_state_of(part, not_runnable)}</div>"
            shown += _box(_CODE, _arguments(part))
        case _:
            shown = f"<div><b>{escape(part.kind)}</b></div>{_box(_CODE, part.model_dump_json())}"
    colour = _COLOURS.get(part.kind, "#888")
    return f'<div style="{_PART.format(colour=colour)}">{shown}</div>'


def _box(style: str, text: str) -> str:
    cut = len(text) - _MOST_CHARACTERS
    if cut > 0:
        # The end of a text is what grows.
        text = f"({cut:,} characters before)\n{text[-_MOST_CHARACTERS:]}"
    return f'<div style="{style}">{escape(text)}</div>'


def _state_of(call: ToolCallPart, not_runnable: Mapping[str, str]) -> str:
    why = not_runnable.get(call.tool_call_id)
    state = [call.tool_call_id, "incomplete" if call.incomplete else ""]
    state += [] if why is None else [f"not runnable: {why}"]
    return f'<span style="{_DIM}">{escape(" ".join(filter(None, state)))}</span>'


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
    usage = meta.usage
    if usage is not None:
        counts = {"in": usage.input_tokens, "out": usage.output_tokens}
        yield ", ".join(
            f"{'?' if count is None else format(count, ',')} tokens {name}"
            for name, count in counts.items()
        )
    if meta.cost_usd is not None:
        without = f" without {', '.join(meta.cost_unpriced)}" if meta.cost_unpriced else ""
        yield f"${meta.cost_usd:.4g} ({meta.cost_source}){without}"
    for warning in meta.warnings:
        yield f"warning {warning.get('code')}: {warning.get('message')}"
