"""Protocol of an upstream that has two: the one in which it takes a request.

In: `ClientRequest`, and an upstream that has a Model for each of two protocols.  Out: the upstream
with one Model.

Law: the choice is that of `dialect_beside`.
Source: the table of models (`model_table.json`).
"""

from deltafold.dialects.model_table import find_model
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.table import Upstream
from deltafold.models.defaults import dialect_beside
from deltafold.models.vendors import VENDORS


def speaking(asked: ClientRequest, upstream: Upstream) -> Upstream:
    """Return an upstream, and those after it, with the Models that take a request.

    Args:
        asked: the request.
        upstream: the first of the upstreams that may be called.
    """
    following = upstream.fallback
    fallback = None if following is None else speaking(asked, following)
    if fallback is not following:
        upstream = upstream._replace(fallback=fallback)
    other = upstream.other
    if other is None:
        return upstream
    dialect = _dialect_for(asked, upstream)
    chosen = upstream.model if upstream.model.dialect == dialect else other
    return upstream._replace(model=chosen, other=None)


def _dialect_for(asked: ClientRequest, upstream: Upstream) -> str:
    vendor, own = VENDORS[upstream.model.provider_id], upstream.model.get_config()
    known, parsed = find_model(own.known_as or upstream.model_id), asked.parsed
    has_tools = bool(parsed.tools or parsed.config.get("provider_tools"))
    effort = parsed.config.get("reasoning_effort", own.reasoning_effort)
    written = effort if isinstance(effort, str) else None
    return dialect_beside(asked.protocol, vendor, known, has_tools=has_tools, effort=written)
