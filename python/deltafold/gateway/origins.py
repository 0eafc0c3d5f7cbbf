"""Origins: the model that made the blocks which a client sends back without a model's name.

In: `ClientRequest`, and the upstreams of its name.  Out: the same request, whose state belongs to a
model of them.

Laws: an unmarked block of the client's protocol is that of the first upstream that speaks the
protocol, the home of the name. A client gets the secrets of this model as its own, so that its
bytes can pass; those of any other model are in an envelope, which names the model. What follows an
envelope in an answer is of the same model. Nothing is kept: the table and the request decide, also
after a restart. A name that a hook has put in the place of the client's may stand for a different
model each time: it has no home.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from deltafold.contract.kinds import json_object
from deltafold.dialects.model_names import same_model
from deltafold.dialects.stencils import OutlinedMessages
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.table import Upstream
from deltafold.message.messages import Message, MessagePart, Role, ThinkingPart

_UNKNOWN: Final = "(another model)"
"""Owner of items that an encoder wrote for an upstream of another protocol: no model has them."""


def with_origins(asked: ClientRequest, upstream: Upstream) -> ClientRequest:
    """Return a request whose state has the names of upstream models.

    Args:
        asked: the request. One that was returned from here is returned unchanged.
        upstream: the first of the upstreams that may be called.
    """
    if "own_models" in asked.options:
        return asked
    upstreams = list(_each(upstream))
    speakers = [one for one in upstreams if one.model.dialect == asked.protocol]
    if not speakers:
        return asked
    named = str(asked.parsed.config.get("model_id"))
    home = speakers[0].model_id if named == asked.model_id else named
    own = [one.model_id for one in speakers if same_model(one.model_id, home)]
    options = asked.options
    if len(own) < len(speakers):
        options = {**options, "own_models": own}
    answers = _Answers(asked.protocol, named, home, is_mixed=len(speakers) < len(upstreams))
    messages = asked.messages
    if isinstance(messages, OutlinedMessages):
        key = (asked.protocol, named, home, len(speakers) < len(upstreams))
        owned: Sequence[Message] = messages.changed(answers.all_owned, key)
    else:
        owned = answers.all_owned(messages)
    return replace(asked, options=options, parsed=replace(asked.parsed, messages=owned))


def is_at_home(asked: ClientRequest, upstream: Upstream) -> bool:
    """Return whether a client may have the secrets of an upstream as those of its own protocol."""
    own = asked.options.get("own_models")
    return own is None or upstream.model_id in own


def _each(upstream: Upstream | None) -> Iterator[Upstream]:
    while upstream is not None:
        yield upstream
        upstream = upstream.fallback


class _Answers:
    """The answers of a conversation, message by message.

    Args:
        protocol: the client's protocol.
        named: the client's name for the model, which the parser took for that of unmarked state.
        home: the model that unmarked state belongs to.
        is_mixed: whether upstreams of other protocols may have answered too.
    """

    def __init__(self, protocol: str, named: str, home: str, *, is_mixed: bool) -> None:
        self._protocol = protocol
        self._named = named
        self._home = home
        self._is_mixed = is_mixed
        self._owner = home

    def all_owned(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return messages whose unmarked state belongs to the model that made it."""
        self._owner = self._home
        return tuple(map(self._owned, messages))

    def _owned(self, message: Message) -> Message:
        if message.role is not Role.ASSISTANT:
            self._owner = self._home
            return message
        parts = [self._part(part) for part in message.parts]
        if all(one is part for one, part in zip(parts, message.parts, strict=True)):
            return message
        return message.model_copy(update={"parts": parts})

    def _part(self, part: MessagePart) -> MessagePart:
        state = part.provider_state
        if state is None or "modelId" not in state:  # the caller wrote it
            return part
        if state.get("dialect") != self._protocol:
            self._owner = _UNKNOWN
            return part
        if state["modelId"] != self._named:
            self._owner = str(state["modelId"])
            return part
        if self._is_mixed and isinstance(part, ThinkingPart) and _may_be_made_up(state):
            self._owner = _UNKNOWN
        if self._owner == self._named:
            return part
        return part.model_copy(update={"provider_state": {**state, "modelId": self._owner}})


def _may_be_made_up(state: Mapping[str, object]) -> bool:
    """Return whether reasoning of Responses has no more than an id, which an encoder may have made.

    A provider refuses an item by an id that it does not know.
    """
    data = json_object(state.get("data")) or {}
    return data.get("type") == "reasoning" and not data.get("encrypted_content")
