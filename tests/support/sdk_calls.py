"""Calls of the official clients with the members of a history: what each of them sends.

In: a protocol, and the members of a request that `deltafold.render_messages` gives.  Out: the JSON
that the client of the protocol's author sends for them.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import anthropic
import cohere
import httpx
import httpx2
import ollama
import openai
from google import genai
from mistralai.client import Mistral

from judge_bedrock import client as bedrock_client

Members = Mapping[str, Any]
_URL: Final = "http://provider.test"


class SentError(Exception):
    """Ends a call whose request is known."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.body: dict[str, Any] = json.loads(body)


def _stop(request: httpx.Request | httpx2.Request) -> Any:  # noqa: ANN401 - it never returns
    raise SentError(request.read())


def _http() -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(_stop))


def _http2() -> httpx2.Client:
    return httpx2.Client(transport=httpx2.MockTransport(_stop))


def openai_client() -> Any:  # noqa: ANN401 - a call takes a mapping of members
    return openai.OpenAI(api_key="k", base_url=_URL, http_client=_http2(), max_retries=0)


def anthropic_client() -> Any:  # noqa: ANN401 - as above
    return anthropic.Anthropic(api_key="k", base_url=_URL, http_client=_http2(), max_retries=0)


def _gemini(members: Members) -> None:
    options = genai.types.HttpOptions(httpx_client=_http())
    models: Any = genai.Client(api_key="k", http_options=options).models
    config = {"system_instruction": members.get("systemInstruction")}
    models.generate_content(model="m", contents=members["contents"], config=config)


def _bedrock(members: Members) -> None:
    def stop(request: Any, **_: object) -> None:  # noqa: ANN401 - botocore has no types
        raise SentError(request.body)

    client = bedrock_client()
    client.meta.events.register_first("before-send", stop, unique_id="sent")
    try:
        client.converse_stream(modelId="m", **members)
    finally:
        client.meta.events.unregister("before-send", unique_id="sent")


def _mistral(members: Members) -> None:
    http: Any = _http()  # the types of the client name the httpx of another package
    chat: Any = Mistral(api_key="k", server_url=_URL, client=http).chat
    chat.complete(model="m", **members)


def _cohere(members: Members) -> None:
    client: Any = cohere.ClientV2(api_key="k", base_url=_URL, httpx_client=_http())
    client.chat(model="m", **members)


def _ollama(members: Members) -> None:
    client: Any = ollama.Client(host=_URL, transport=httpx.MockTransport(_stop))
    client.chat(model="m", **members)


CALLS: Final[Mapping[str, Callable[[Members], object]]] = {
    "anthropic-messages": lambda members: anthropic_client().messages.create(
        model="m", max_tokens=9, **members
    ),
    "bedrock-converse": _bedrock,
    "cohere-chat": _cohere,
    "gemini": _gemini,
    "mistral": _mistral,
    "ollama": _ollama,
    "openai-chat": lambda members: openai_client().chat.completions.create(model="m", **members),
    "openai-responses": lambda members: openai_client().responses.create(model="m", **members),
}
"""The next call of the official client of each protocol."""


def sent_by(protocol: str, members: Members) -> dict[str, Any]:
    """Return the JSON that the official client sends for the members of a history."""
    cause: BaseException | None = None
    try:
        CALLS[protocol](members)
    except Exception as error:  # noqa: BLE001 - a client may wrap what the transport raises
        cause = error
    while cause is not None and not isinstance(cause, SentError):
        cause = cause.__cause__ or cause.__context__
    assert cause is not None, f"the client of {protocol} sent nothing"
    return cause.body
