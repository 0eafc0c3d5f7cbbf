"""The protocol of a response by the address or the operation that was called.

In: a response of an SDK or of an HTTP client.  Out: the name of the dialect of its body.

Laws: a path decides only if one protocol alone is spoken there. The body tells the others. The SDK
of mistralai speaks the protocol of its author at any host.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from deltafold.transports.event_streams import event_stream_body
from deltafold.transports.responses import http_response

if TYPE_CHECKING:
    from deltafold.contract.names import ProtocolName

_DIALECTS: Final[Mapping[str, "ProtocolName"]] = {
    "*.mistral.ai/*/chat/completions": "mistral",
    "*.mistral.ai/*/agents/completions": "mistral",
    "*.mistral.ai/*/fim/completions": "mistral",
    "*/chat/completions": "openai-chat",
    "*/responses": "openai-responses",
    "*/v1/messages": "anthropic-messages",
    # Vertex has the models of other authors at the same method.
    "*/publishers/anthropic/models/*:streamRawPredict": "anthropic-messages",
    "*/publishers/anthropic/models/*:rawPredict": "anthropic-messages",
    "*:streamGenerateContent": "gemini",
    "*:generateContent": "gemini",
    "*/interactions": "gemini-interactions",
    "*/model/*/converse-stream": "bedrock-converse",
    "*/model/*/converse": "bedrock-converse",
    "*/model/*/invoke-with-response-stream": "bedrock-invoke",
    "*/api/chat": "ollama",
    "*/api/generate": "ollama",
    "*/v2/chat": "cohere-chat",
}
"""Patterns of host and path, and the dialect; the first one that fits counts.

Sources: the references of the APIs, as `docs/protocols` has them.
"""

_HOST_OF_MISTRAL: Final = "api.mistral.ai"


def dialect_of_address(response: object) -> "ProtocolName | None":
    """Return the dialect of a response; None if its address is not known or tells none."""
    events = event_stream_body(response)
    if events is not None:
        return events.dialect
    try:
        url = cast("object", getattr(http_response(response), "url", None))
    except RuntimeError:  # httpx: a response that was made by hand has no request
        return None
    if url is None:
        return None
    if type(response).__module__.partition(".")[0] == "mistralai":
        return dialect_of_url(f"https://{_HOST_OF_MISTRAL}{urlsplit(str(url)).path}")
    return dialect_of_url(str(url))


def dialect_of_url(url: str) -> "ProtocolName | None":
    """Return the dialect of a URL or of its path; None if it tells none."""
    try:
        parts = urlsplit(url)
        address = f"{parts.hostname or ''}{parts.path.rstrip('/')}"
    except ValueError:  # of a file that anybody wrote
        return None
    return next((dialect for row, dialect in _DIALECTS.items() if fnmatchcase(address, row)), None)
