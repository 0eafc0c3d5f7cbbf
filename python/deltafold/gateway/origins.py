"""Origins: the model that made the blocks which a client sends back without a model's name.

In: `Asked`, and the upstreams of its name.  Out: `Asked` whose state belongs to a model of them.

Laws: an unmarked block of the client's protocol is that of the first upstream that speaks the
protocol, the home of the name. A client gets the secrets of this model as its own, so that its
bytes can pass; those of any other model are in an envelope, which names the model. Nothing is kept:
the table and the request decide, also after a restart. A name that a hook has put in the place of
the client's may stand for a different model each time: it has no home.
"""

from collections.abc import Iterator
from dataclasses import replace

from deltafold.dialects.model_names import same_model
from deltafold.gateway.asking import Asked
from deltafold.gateway.table import Upstream
from deltafold.messages import Message, MessagePart


def with_origins(asked: Asked, upstream: Upstream) -> Asked:
    """Return a request whose state has the names of upstream models.

    Args:
        asked: the request. One that was returned from here is returned unchanged.
        upstream: the first of the upstreams that may be called.
    """
    if "own_models" in asked.options:
        return asked
    speakers = [one for one in _each(upstream) if one.model.dialect == asked.protocol]
    if not speakers:
        return asked
    named = asked.parsed.config.get("model_id")
    home = speakers[0].model_id if named == asked.model_id else str(named)
    own = [one.model_id for one in speakers if same_model(one.model_id, home)]
    options = asked.options
    if len(own) < len(speakers):
        options = {**options, "own_models": own}
    if home == named:
        return replace(asked, options=options)
    messages = tuple(_moved(message, asked, home) for message in asked.messages)
    return replace(asked, options=options, parsed=replace(asked.parsed, messages=messages))


def is_at_home(asked: Asked, upstream: Upstream) -> bool:
    """Return whether a client may have the secrets of an upstream as those of its own protocol."""
    own = asked.options.get("own_models")
    return own is None or upstream.model_id in own


def _each(upstream: Upstream | None) -> Iterator[Upstream]:
    while upstream is not None:
        yield upstream
        upstream = upstream.fallback


def _moved(message: Message, asked: Asked, home: str) -> Message:
    """Return a message whose state of the client's name belongs to the home of the name."""
    parts = [_owned(part, asked, home) for part in message.parts]
    if all(one is part for one, part in zip(parts, message.parts, strict=True)):
        return message
    return message.model_copy(update={"parts": parts})


def _owned(part: MessagePart, asked: Asked, home: str) -> MessagePart:
    state = part.provider_state
    if state is None or state.get("dialect") != asked.protocol:
        return part
    if state.get("modelId") != asked.model_id:
        return part
    return part.model_copy(update={"provider_state": {**state, "modelId": home}})
