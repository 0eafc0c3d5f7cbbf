"""Gateway: any client protocol in front of any Model, as an ASGI application and its functions.

    app = create_app({"gpt-5": "openai/gpt-5", "claude-*": "anthropic/claude-*"})

In: requests in openai-chat, openai-responses, anthropic-messages and gemini, streamed or not.  Out:
calls of Models, answered in the protocol of the client.

Laws: a failure of the upstream keeps its status, code, retry-after and request id in the client's
format. The client's disconnect ends the upstream call. Headers of the client are not forwarded. The
package keeps nothing but the bounded store of responses. Needs the extra `gateway`.
"""

from deltafold.gateway.app import create_app
from deltafold.gateway.client_requests import ClientRequest, read_request
from deltafold.gateway.fetched_files import FetchedFile, FileFetcher, with_files
from deltafold.gateway.hooks import AnswerOptions
from deltafold.gateway.model_call import open_stream
from deltafold.gateway.recorded_models import replay_table
from deltafold.gateway.refusals import refusal
from deltafold.gateway.request_limits import RequestLimits
from deltafold.gateway.response_store import MemoryStore, ResponseStore
from deltafold.gateway.responses import error_response, respond
from deltafold.gateway.table import ModelTable, read_table

__all__ = [
    "AnswerOptions",
    "ClientRequest",
    "FetchedFile",
    "FileFetcher",
    "MemoryStore",
    "ModelTable",
    "RequestLimits",
    "ResponseStore",
    "create_app",
    "error_response",
    "open_stream",
    "read_request",
    "read_table",
    "refusal",
    "replay_table",
    "respond",
    "with_files",
]
