"""A provider with a small window: requests above a number of bytes get its own refusal.

In: requests of one protocol.  Out: scripted answers, or the refusal of a context that is too long.

Source: the error pages of OpenAI, Anthropic and Google, and recorded refusals (read 2026-11).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from deltafold import load_model
from deltafold.contract.names import WrittenProtocol
from deltafold.models.base import Model
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.testing.answers import ScriptedCall
from deltafold.testing.playlist import Request

Contents: TypeAlias = Sequence[str | ScriptedCall]

_LONG: Final = "This model's maximum context length is 8192 tokens, your messages have 9001 tokens."


@dataclass(frozen=True)
class Provider:
    """A provider, and how it refuses a context that is too long.

    Attributes:
        name: the vendor and a model whose window is not known.
        protocol: the protocol of its answers.
        base: the path before those of its API.
        refusal: the refusal.
    """

    name: str
    protocol: WrittenProtocol
    base: str
    refusal: Recording

    def model(self, server: ReplayServer, model_id: str = "m") -> Model[Any]:
        """Make a model that calls a server."""
        url = f"{server.url}{self.base}"
        name = f"{self.name}/{model_id}"
        return load_model(name, specification=self.protocol, base_url=url, api_key="k")


CHAT: Final = Provider(
    "openai",
    "openai-chat",
    "/v1",
    Recording.error(400, {"error": {"message": _LONG, "code": "context_length_exceeded"}}),
)
_FAILED: Final[dict[str, Any]] = {
    "type": "response.failed",
    "sequence_number": 1,
    "response": {
        "id": "resp_1",
        "object": "response",
        "status": "failed",
        "output": [],
        "error": {"code": "context_length_exceeded", "message": "Your input exceeds the window."},
    },
}
CLAUDE: Final = Provider(
    "anthropic",
    "anthropic-messages",
    "",
    Recording.error(
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 210000 tokens > 200000 maximum",
            },
        },
    ),
)
PROVIDERS: Final = {
    "chat": CHAT,
    "responses": Provider(
        "openai",
        "openai-responses",
        "/v1",
        Recording.error(400, {"error": {"message": _LONG, "code": "context_length_exceeded"}}),
    ),
    "responses, within the stream": Provider(
        "openai",
        "openai-responses",
        "/v1",
        Recording.of_events(
            f"event: response.failed\ndata: {json.dumps(_FAILED)}\n\n".encode(),
        ),
    ),
    "messages": CLAUDE,
    "gemini": Provider(
        "gemini",
        "gemini",
        "/v1beta",
        Recording.error(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1200000) exceeds the maximum number of "
                    "tokens allowed (1048575).",
                    "status": "INVALID_ARGUMENT",
                }
            },
        ),
    ),
}


class SmallWindow(ReplayServer):
    """A server that refuses requests above a size.

    Args:
        limit: the largest body of a request that it answers, in bytes.
        answers: the contents of its answers; after the last one it says "Noted."
        provider: its protocol and its refusal.
    """

    def __init__(self, limit: int, *answers: Contents, provider: Provider = CHAT) -> None:
        super().__init__()
        self.limit = limit
        self.answers = [*answers]
        self.provider = provider
        self.refused: list[int] = []

    def answer_to(self, request: Request) -> Recording:
        """Note a request, and answer or refuse it."""
        if len(request.body) > self.limit:
            self.refused.append(len(self.requests))
            self.requests.append(request)
            return self.provider.refusal
        self.requests.append(request)
        contents = self.answers.pop(0) if self.answers else ("Noted.",)
        return answer(self.provider.protocol, *contents)

    def model(self, model_id: str = "m") -> Model[Any]:
        """Make a model that calls this server."""
        return self.provider.model(self, model_id)

    @property
    def bodies(self) -> list[str]:
        """The bodies of all requests, as text."""
        return [request.body.decode() for request in self.requests]

    @property
    def messages(self) -> list[list[Any]]:
        """The messages of the requests of Chat and the Messages API."""
        return [json.loads(body)["messages"] for body in self.bodies]
