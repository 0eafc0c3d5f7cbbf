"""Calls: what a client asked becomes a call of a Model.

In: `ClientRequest` and an upstream.  Out: a stream that was not read yet, and the upstream to call
after its failure, or the stream that continues its answer.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from deltafold.contract.kinds import json_object
from deltafold.dialects import migrate_config
from deltafold.dialects.recent import Recent
from deltafold.dialects.rendered import Object
from deltafold.dialects.settings import ModelConfig
from deltafold.errors.model_error import ModelError
from deltafold.gateway.chunks import whole_answers
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.origins import with_origins
from deltafold.gateway.protocols import protocol_of
from deltafold.gateway.refusals import reading
from deltafold.gateway.table import Upstream
from deltafold.message.messages import Message
from deltafold.models.fallback import MOVING, OF_THE_SETUP
from deltafold.models.vendors import VENDORS
from deltafold.streams.delta_streams import AsyncDeltaStream
from deltafold.streams.readers import AsyncTee

_MOVING: Final = MOVING | OF_THE_SETUP


class _Settings(NamedTuple):
    """Migrated settings: fields of the upstream's configuration, and notes of lost ones."""

    fields: dict[str, Any]
    notes: tuple[Object, ...]


_MIGRATED: Final = Recent[_Settings](most=256, most_bytes=1 << 20)
"""Migrated settings of recent requests, because the calls of a client mostly have the same.

The owner is part of the key: else the time of a call would tell what another client has sent.
"""
_MOST_KEPT: Final = 1 << 14
"""Bytes of settings that are kept; others cost more to compare than to migrate."""


def open_stream(
    asked: ClientRequest,
    upstream: Upstream,
    *,
    tee: AsyncTee | None = None,
    continue_from: Message | None = None,
) -> AsyncDeltaStream:
    """Begin the call of the upstream; nothing is sent before the stream is read.

    Settings of the request are translated to the upstream's protocol; those that it does not have
    are warnings of the message. A history that the upstream would refuse is repaired.

    >>> table = ModelTable({"m": "openai/gpt-5.6-terra"}, api_key="k")
    >>> asked = read_request("openai-chat", b'{"model":"m","messages":[]}')
    >>> stream = open_stream(asked, table.find(asked.model_id))

    Args:
        asked: the request.
        upstream: the Model, and the name of the model.
        tee: receives the bytes of the upstream as they arrive.
        continue_from: an answer to the request that broke off, which the upstream continues.

    Raises:
        ModelError: the request cannot be translated, its status is 400; or the Model cannot be
            called, because its key is missing for one, its status is 500.
    """
    model = upstream.model
    with reading(asked.protocol):
        asked = with_origins(asked, upstream)
        own = model.get_config()
        settings, notes = _migrated(asked, upstream, own)
        asks_for_usage: bool | None = getattr(own, "include_usage", None)  # of Chat alone
        if asks_for_usage is not None and model.dialect == asked.protocol:
            settings = _asking_for_usage(settings, own, asks=asks_for_usage)
        if asked.headers and model.specification == asked.protocol:
            settings["extra_headers"] = _joined_headers(own.extra_headers, asked.headers)
        in_pieces = protocol_of(asked.protocol).in_pieces and model.dialect != asked.protocol
        stream: AsyncDeltaStream = model.stream(
            list(whole_answers(asked.messages)) if in_pieces else asked.messages,
            asked.parsed.tools or None,
            repair="auto",
            tee=tee,
            continue_from=continue_from,
            notes=notes,
            **settings,
        )
    return stream


def _migrated(asked: ClientRequest, upstream: Upstream, own: ModelConfig) -> _Settings:
    """Return the settings of a request for the upstream, whose own settings are `own`."""
    parsed, model = asked.parsed, upstream.model
    written = _written(parsed.config)
    place = (parsed.dialect, model.dialect, upstream.model_id, model.provider_id)
    key = (asked.owner, written, place, own.known_as, own.strict_settings)
    known = None if written is None else _MIGRATED.find(key)
    if known is None:
        migrated = migrate_config(
            parsed,
            model.dialect,
            model_id=upstream.model_id,
            known_as=own.known_as,
            strict_settings=own.strict_settings,
            vendors=VENDORS[model.provider_id].names,
        )
        known = _Settings(migrated.config.fields_set(), migrated.notes)
        if written is None:
            return known
        _MIGRATED.keep(key, known, 3 * len(written))  # the key, and the fields about twice
    return deepcopy(known)


def _written(settings: Object) -> str | None:
    """Return settings as JSON; None for long ones and for values that JSON lacks."""
    try:
        written = json.dumps(settings)
    except (TypeError, ValueError, RecursionError):
        return None
    return written if len(written) <= _MOST_KEPT else None


def _asking_for_usage(
    settings: Mapping[str, Any], own: ModelConfig, *, asks: bool
) -> dict[str, Any]:
    """Return the settings of a Chat request, which asks for usage exactly if its Model does.

    The client's own `stream_options` apply to the stream that the gateway writes for it. Hooks, and
    clients whose answer is not streamed, need the counts in any case.

    Args:
        settings: settings of the client's request.
        own: settings of the Model; `stream_options` of its `extra_body` are sent unchanged.
        asks: whether the Model asks.
    """
    asking = {name: value for name, value in settings.items() if name != "include_usage"}
    extra = dict(json_object(asking.pop("extra_body", None)) or {})
    options = dict(json_object(extra.pop("stream_options", None)) or {})
    wants_usage = options.pop("include_usage", None) is True
    if not (wants_usage and asks):
        options.pop("continuous_usage_stats", None)  # vLLM's: usage in each chunk
    if options and asks:
        options["include_usage"] = True
    of_model = own.extra_body.get("stream_options", options)
    if extra or options:  # these replace the `extra_body` of the Model
        asking["extra_body"] = {**extra, "stream_options": of_model} if of_model else extra
    return asking


def _joined_headers(own: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a model with those of a request; both name their betas."""
    joined = {name.lower(): value for name, value in own.items()}
    for name, value in asked.items():
        known = joined.get(name)
        joined[name] = value if known is None else f"{known},{value}"
    return joined


def open_rest(
    asked: ClientRequest, upstream: Upstream, error: ModelError | None, partial: Message
) -> tuple[Upstream, AsyncDeltaStream] | None:
    """Begin the call of the next upstream that continues an answer, None without one.

    Args:
        asked: the request.
        upstream: the one whose answer broke off.
        error: the failure that ended it.
        partial: the answer so far.
    """
    following = next_upstream(upstream, error)
    while following is not None:
        try:
            return following, open_stream(asked, following, continue_from=partial)
        except ModelError:  # this model does not continue such an answer
            following = following.fallback
    return None


def next_upstream(upstream: Upstream, error: ModelError | None) -> Upstream | None:
    """Return the upstream to call after a failure, None without one.

    Another model would refuse a wrong request too; it may have the key, the room or the capacity
    that this one lacks. A Model with a fallback decides by itself.
    """
    if error is None:
        return None
    moves = error.code in _MOVING if upstream.moves is None else upstream.moves(error)
    return upstream.fallback if moves else None
