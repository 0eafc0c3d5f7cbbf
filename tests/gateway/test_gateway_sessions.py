"""The gateway and long sessions: what it sends, and what its hooks see, is the whole history.

In: generated agent sessions, whole and with faults.  Out: requests of upstreams, and what hooks and
logs are given.

Law: a request that a stencil writes is the request that the rules write, for everybody who looks.
"""

import asyncio
import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import httpx2
import pytest
from starlette.requests import Request

import deltafold
from agent_requests import CLIENTS, Session, request_of
from any_name import AnyName
from deltafold import Message, ModelError
from deltafold.dialects.stencils import Stencils
from deltafold.gateway import ClientRequest, RequestLimits, create_app
from deltafold.gateway import client_requests as reader
from deltafold.models import outlined
from deltafold.models.adapters import adapter_of
from deltafold.models.hooks import Hooks
from deltafold.models.prepared import WrittenCall
from gateway_clients import PATHS, TEXT, body_of
from samples import sampled

UPSTREAMS: Final = {
    "anthropic-messages": "claude-sonnet-4-5",
    "openai-chat": "gpt-5-mini",
    "openai-responses": "gpt-5-mini",
    "gemini": "gemini-3-pro",
}


class Upstream:
    """A provider that keeps the bodies of its requests, and answers each with one text."""

    def __init__(self, dialect: AnyName, **options: Any) -> None:  # noqa: ANN401 - of a Model
        self.bodies: list[bytes] = []
        self.refusals: list[httpx2.Response] = []
        self._answer = body_of(TEXT, dialect)
        adapter = adapter_of(dialect)
        assert adapter is not None
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._respond))
        config: Any = {"model_id": UPSTREAMS[dialect]}
        self.model = adapter(
            config, base_url="http://upstream", api_key="k", client=client, **options
        )

    def _respond(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(request.content)
        if self.refusals:
            return self.refusals.pop(0)
        kind = {"content-type": "text/event-stream"}
        return httpx2.Response(200, content=self._answer, headers=kind)


def posted(
    upstream: Upstream,
    protocol: str,
    *bodies: bytes,
    **options: Any,  # noqa: ANN401 - of the application
) -> httpx2.Response:
    """Send requests through a gateway in front of an upstream, and return the last answer."""

    async def sent() -> httpx2.Response:
        named = json.loads(bodies[0]).get("model", "")
        app = create_app({named: upstream.model}, passthrough=False, **options)
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1"
        ) as client:
            answers = [await client.post(PATHS[protocol], content=body) for body in bodies]
        return answers[-1]

    return asyncio.run(sent())


@contextmanager
def without_outlines(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Let the rules read and write each request."""
    with monkeypatch.context() as patch:
        patch.setattr(reader, "outline_of", _no_outline)
        yield


def _no_outline(_body: bytes, _rows: object) -> None:
    """Find no rounds."""


@sampled(12)
@pytest.mark.parametrize("faulty", [False, True], ids=["whole", "faulty"])
def test_an_upstream_gets_what_the_rules_write(
    monkeypatch: pytest.MonkeyPatch, every: int, *, faulty: bool
) -> None:
    pairs = [(source, target) for source in CLIENTS for target in UPSTREAMS]
    before = outlined.STENCILS.written
    for number in range(0, 1_200, every):
        source, target = pairs[number % len(pairs)]
        body = request_of(number + 1_000_000, source, faulty=faulty)
        upstream = Upstream(target)
        answer = posted(upstream, source, body)
        with without_outlines(monkeypatch):
            plain = posted(upstream, source, body)
        assert (answer.status_code, _said(answer)) == (plain.status_code, _said(plain))
        if answer.status_code == 200:
            made, wanted = upstream.bodies
            assert json.loads(made) == json.loads(wanted), (number, source, target)
    assert outlined.STENCILS.written > before


def _said(answer: httpx2.Response) -> str:
    """Return the error of an answer; a whole answer has ids of its own."""
    return answer.text if answer.status_code != 200 else ""


def test_the_same_upstream_gets_one_turn_more() -> None:
    upstream = Upstream("anthropic-messages")
    body = CLIENTS["openai-chat"][0](Session(5), 12)
    ends = [place for place, one in enumerate(body["messages"]) if one["role"] == "user"]
    for end in ends:
        messages = body["messages"][: end + 1]
        posted(upstream, "openai-chat", json.dumps({**body, "messages": messages}).encode())
    histories = [json.loads(sent)["messages"] for sent in upstream.bodies]
    for earlier, later in pairwise(histories):
        assert later[: len(earlier)] == earlier


def test_hooks_see_the_history_and_may_replace_it() -> None:
    seen: list[list[Message]] = []

    async def on_request(_: Request, asked: ClientRequest) -> ClientRequest:
        seen.append(list(asked.messages))
        asked.parsed.config["max_tokens"] = 77  # of this request alone
        shorter = (*asked.messages[:1], *asked.messages[-3:], Message.user("One thing more."))
        return replace(asked, parsed=replace(asked.parsed, messages=shorter))

    async def on_message(asked: ClientRequest, _: Message, error: ModelError | None) -> None:
        assert error is None
        seen.append(list(asked.messages))

    body = request_of(8, "openai-chat", faulty=False)
    parsed = deltafold.parse_request(json.loads(body), "openai-chat")
    upstream = Upstream("anthropic-messages")
    posted(upstream, "openai-chat", body, on_request=on_request)
    posted(upstream, "openai-chat", body, on_message=on_message)
    replaced, whole = map(json.loads, upstream.bodies)
    assert all(_is_same(one, parsed.messages) for one in seen)
    assert "One thing more." in json.dumps(replaced["messages"])
    assert (replaced["max_tokens"], whole["max_tokens"] == 77) == (77, False)


def _is_same(found: list[Message], wanted: Any) -> bool:  # noqa: ANN401 - a sequence of messages
    pairs = zip(found, wanted, strict=True)
    return all(one.same_content(other) for one, other in pairs)


def test_a_hook_of_the_model_sees_and_changes_the_whole_body() -> None:
    def before_request(context: deltafold.RequestContext) -> None:
        history: Any = context.body["messages"]
        history.append({"role": "user", "content": f"{len(history)} messages before"})

    body = request_of(8, "openai-chat", faulty=False)
    upstream = Upstream("openai-chat", hooks=Hooks(before_request=before_request))
    posted(upstream, "openai-chat", body)
    (sent,) = map(json.loads, upstream.bodies)
    messages = json.loads(body)["messages"]
    assert sent["messages"][-1]["content"] == f"{len(messages)} messages before"
    assert len(sent["messages"]) == len(messages) + 1


def test_refused_reasoning_is_left_out_of_the_whole_history() -> None:
    body = request_of(4, "anthropic-messages", faulty=False)
    assert b'"signature"' in body
    upstream = Upstream("anthropic-messages")
    error = {"type": "invalid_request_error", "message": "Invalid `signature` in `thinking` block"}
    upstream.refusals.append(httpx2.Response(400, json={"type": "error", "error": error}))
    answer = posted(upstream, "anthropic-messages", body)
    assert answer.status_code == 200, answer.text
    first, second = upstream.bodies
    assert b'"signature"' in first
    assert b'"signature"' not in second
    count = len(json.loads(first)["messages"])
    assert count - 2 <= len(json.loads(second)["messages"]) <= count


def test_the_log_counts_all_messages(caplog: pytest.LogCaptureFixture) -> None:
    body = request_of(8, "openai-chat", faulty=False)
    parsed = deltafold.parse_request(json.loads(body), "openai-chat")
    with caplog.at_level(logging.INFO, "deltafold"):
        posted(Upstream("openai-chat"), "openai-chat", body)
    assert f"with {len(parsed.messages)} messages" in caplog.text


@pytest.mark.parametrize("limits", [{"messages": 20}, {"parts": 40}, {"tools": 2}, {"depth": 4}])
def test_a_long_session_has_the_limits_of_each_request(limits: dict[str, int]) -> None:
    body = json.dumps(CLIENTS["openai-chat"][0](Session(2), 40)).encode()
    upstream = Upstream("openai-chat")
    assert (posted(upstream, "openai-chat", body)).status_code == 200
    refused = posted(upstream, "openai-chat", body, limits=RequestLimits(**limits))
    assert refused.status_code in {400, 413}
    assert f"limits.{next(iter(limits))}" in refused.text
    assert len(upstream.bodies) == 1


def test_a_stored_response_goes_on_from_a_long_session(monkeypatch: pytest.MonkeyPatch) -> None:
    body = CLIENTS["openai-responses"][0](Session(3), 12)

    def later_request() -> Any:  # noqa: ANN401 - JSON
        upstream = Upstream("openai-responses")

        async def asked() -> None:
            app = create_app({body["model"]: upstream.model}, passthrough=False)
            async with httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1"
            ) as client:
                first = (await client.post("/v1/responses", json=body)).json()
                rest = {"input": "Go on.", "previous_response_id": first["id"]}
                more = await client.post("/v1/responses", json={"model": body["model"], **rest})
                assert more.status_code == 200

        asyncio.run(asked())
        return json.loads(upstream.bodies[-1])

    later = later_request()
    with without_outlines(monkeypatch):
        assert later == later_request()
    assert len(later["input"]) > len(body["input"])


def test_owners_share_nothing_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlined, "STENCILS", Stencils[WrittenCall]())
    body = json.dumps(CLIENTS["openai-chat"][0](Session(77), 9) | {"user": "of this test"}).encode()
    upstream = Upstream("gemini")

    def kept_after(owner: str) -> int:
        async def on_connect(_: Request) -> str:
            return owner

        posted(upstream, "openai-chat", body, on_connect=on_connect)
        return len(outlined.STENCILS)

    first = kept_after("ann")
    assert kept_after("ann") == first
    assert kept_after("bob") == first + 1
    assert len(set(upstream.bodies)) == 1


def test_a_hook_sees_the_places_of_what_is_not_known() -> None:
    found: list[object] = []

    async def on_request(_: Request, asked: ClientRequest) -> None:
        found.append(asked.parsed.notes)

    body = CLIENTS["openai-chat"][0](Session(6), 30)
    last = max(place for place, one in enumerate(body["messages"]) if one["role"] == "user")
    body["messages"][last]["unknown"] = 1
    posted(Upstream("openai-chat"), "openai-chat", json.dumps(body).encode(), on_request=on_request)
    assert found == [deltafold.parse_request(body, "openai-chat").notes]
    assert f"messages[{last}].unknown" in str(found)
