"""Facts about a model, and the place of a request in a session, a run and a trace."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from deltafold.contract.short_repr import ShortRepr
from deltafold.dialects import Dialect
from deltafold.dialects.capability import Capability
from deltafold.dialects.model_table import find_model
from deltafold.dialects.settings import ModelConfig
from deltafold.message.cost import Prices, listed_model


class RequestMetadata(ShortRepr, BaseModel):
    """Session, run and trace of a request; a mapping may have the names of the wire (`runId`).

    `run_id` becomes the run id of the deltas, and `trace_id` is in `Meta.trace` of the message, as
    `{"traceId": ...}`.

    >>> metadata = RequestMetadata(session_id="s1", run_id="r1")
    >>> metadata.run_id
    'r1'
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )

    session_id: str | None = None
    run_id: str | None = None
    trace_id: str | None = None


class ModelInfo(ShortRepr, BaseModel):
    """Known facts about a model, without a request to its provider; None is not known.

    `known_as` is the row of the table of models that has them.

    >>> info = model.model_info()
    >>> info.provider_id, info.specification
    ('openai', 'openai-responses')
    """

    model_config = ConfigDict(frozen=True)

    provider_id: str
    specification: str
    model_id: str
    capabilities: frozenset[Capability] | None = None
    context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    prices: Prices | None = None
    known_as: str | None = None


def info_of(row: Dialect, vendor: str, specification: str, config: ModelConfig) -> ModelInfo:
    """Return the facts about a model of a vendor.

    Args:
        row: the row of the dialect in the registry.
        vendor: the name of the vendor.
        specification: the dialect, and the markup if there is one.
        config: names the model.
    """
    listed = listed_model(vendor, config.model_id)
    known = find_model(config.known_as or config.model_id)
    facts = None if known is None else known.facts
    window = listed and listed.context_window_tokens
    return ModelInfo(
        provider_id=vendor,
        specification=specification,
        model_id=config.model_id,
        capabilities=facts and frozenset(one for one in row.capabilities if facts.has(one)),
        context_window_tokens=window or (facts and facts.context_window),
        max_output_tokens=facts and facts.max_output_tokens,
        known_as=facts and facts.name,
        prices=listed and listed.prices,
    )
