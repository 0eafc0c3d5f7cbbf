"""A server of Chat on the loopback whose answers are a function of the messages of a request.

In: requests of Chat.  Out: texts and calls, as the function says.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from deltafold import OpenAIChatModel
from deltafold.testing import Recording, ReplayServer, answer
from deltafold.testing.answers import ScriptedCall
from deltafold.testing.playlist import Request

Words: TypeAlias = list[tuple[str, Any]]
"""Role and content of the messages of a request."""

Reply: TypeAlias = Callable[[Words], Sequence[str | ScriptedCall] | Recording]


class AnsweringServer(ReplayServer):
    """The server; it may answer many requests at once.

    Args:
        reply: returns the contents of the answer to the messages of a request.
    """

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self._reply = reply

    def answer_to(self, request: Request) -> Recording:
        """Note a request, and make its answer."""
        if not request.body:  # the client was cancelled while it sent
            return Recording.error(400, {})
        self.requests.append(request)
        made = self._reply(words_of(request))
        return made if isinstance(made, Recording) else answer("openai-chat", *made)

    @property
    def words(self) -> list[Words]:
        """Role and content of the messages of each request."""
        return [words_of(request) for request in self.requests]

    def model(self) -> OpenAIChatModel:
        """Make a model that calls this server."""
        return OpenAIChatModel({"model_id": "m"}, base_url=f"{self.url}/v1", api_key="k")


def words_of(request: Request) -> Words:
    """Return role and content of the messages of a request, without an assistant's calls."""
    body = cast("dict[str, Any]", request.json())
    return [(one["role"], one.get("content") or "") for one in body["messages"]]
