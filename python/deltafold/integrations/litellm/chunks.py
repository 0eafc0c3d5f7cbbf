"""Answers as chunks and responses of litellm.

In: batches of deltas, or a message.  Out: `ModelResponseStream`s, or a `ModelResponse`.

Laws: the encoder of Chat Completions writes the chunks as mappings. An answer with facts that Chat
has no member for has one more thinking block, of the type `redacted_thinking`, whose data is the
outline of the answer. The chunk with the finish reason is the last one: litellm ignores what
follows it, usage included. No chunk takes a call back, so that calls wait for the end of an answer
that another model may take over.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from litellm import ModelResponse
from litellm.types.utils import ModelResponseStream, Usage

from deltafold._core import DeltaBatch, Encoder
from deltafold.integrations.carried import MEMBER
from deltafold.integrations.outlines import Outline, is_plain, outline_of
from deltafold.message.messages import Message
from deltafold.streams.encoded import encode_message

Event: TypeAlias = dict[str, Any]

CHAT: Final = "openai-chat"

_BEGIN: Final = '{"' + MEMBER + '":['
_MARK: Final = b64encode(_BEGIN.encode()[: len(_BEGIN) // 3 * 3]).decode()
"""Beginning of the data of a block with an outline."""


class Chunks:
    """The chunks of one answer.

    Args:
        declined_calls: the option of the encoder.
    """

    def __init__(self, declined_calls: Literal["filter", "hold"]) -> None:
        self._encoder = Encoder(CHAT, as_bytes=False, declined_calls=declined_calls)
        self._last: Event | None = None

    def feed(self, deltas: DeltaBatch) -> list[ModelResponseStream]:
        """Return the chunks of deltas, except for the one with the finish reason."""
        chunks: list[ModelResponseStream] = []
        for event in cast("list[Event]", self._encoder.feed(deltas)):
            choices = event.get("choices")
            if choices is None:
                continue  # an error; the caller raises it
            if choices and choices[0]["finish_reason"] is not None:
                self._last = event
                continue
            if choices:
                delta = choices[0]["delta"]
                _show_refusal(delta)
                if delta.get("content") == "":
                    del delta["content"]  # an answer without text has no content in litellm
            chunks.append(ModelResponseStream(**event))
        return chunks

    def end(self, message: Message) -> Iterable[ModelResponseStream]:
        """Yield the last chunks of a whole answer.

        Args:
            message: the answer.
        """
        last = self._last
        if last is None:
            return
        block = _block_of(message)
        if block is not None:
            choice = {"index": 0, "delta": {"thinking_blocks": [block]}, "finish_reason": None}
            before: Event = {**last, "choices": [choice]}
            yield ModelResponseStream(**before)
        yield ModelResponseStream(**last)


def response_of(message: Message) -> ModelResponse:
    """Return a message as the whole response."""
    body: Event = json.loads(encode_message(message, CHAT).body)
    told = body["choices"][0]["message"]
    _show_refusal(told)
    block = _block_of(message)
    if block is not None:
        told["thinking_blocks"] = [block]
    response = ModelResponse(**body)
    if body.get("usage") is None:
        setattr(response, "usage", Usage())  # noqa: B010 - litellm declares no such member
    return response


def outline_in(blocks: Sequence[object] | None) -> Outline | None:
    """Return the outline in the thinking blocks of a message, None without one."""
    for block in blocks or ():
        data = cast("Event", block).get("data") if isinstance(block, Mapping) else None
        if isinstance(data, str) and data.startswith(_MARK):
            try:
                found: object = json.loads(b64decode(data))[MEMBER]
            except ValueError:
                return None
            return cast("Outline", found)
    return None


def _show_refusal(told: Event) -> None:
    """Move a refusal to the content, because litellm has no other member for its text."""
    refusal = told.pop("refusal", None)
    if refusal:
        told["content"] = refusal


def _block_of(message: Message) -> Event | None:
    outline = outline_of(message)
    if is_plain(outline):
        return None
    data = json.dumps({MEMBER: outline}, separators=(",", ":")).encode()
    return {"type": "redacted_thinking", "data": b64encode(data).decode()}
