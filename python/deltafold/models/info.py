"""Facts about a model, and the place of a request in a session, a run and a trace."""

from pydantic import BaseModel, ConfigDict

from deltafold.cost import Prices
from deltafold.dialects.settings import Capability


class RequestMetadata(BaseModel):
    """Where a request belongs; `run_id` becomes the deltas' run id."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    session_id: str | None = None
    run_id: str | None = None
    trace_id: str | None = None


class ModelInfo(BaseModel):
    """What is known of a model without asking its provider."""

    model_config = ConfigDict(frozen=True)

    provider_id: str
    specification: str
    model_id: str
    capabilities: frozenset[Capability] = frozenset()
    context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    prices: Prices | None = None
