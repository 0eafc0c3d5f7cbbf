"""What a request may need before it is answered, and mistakes of clients."""

import gzip
import json
from typing import Any, Final

import httpx2
import pytest

from any_name import AnyName
from client_requests import PATHS, asked
from deltafold.gateway import RequestLimits
from deltafold.testing import answer
from gateways import gateway

CHAT: Final = "/v1/chat/completions"


def conversation(*messages: object, **members: object) -> bytes:
    return json.dumps({"model": "m", "messages": messages, **members}).encode()


SAID: Final = {"role": "user", "content": "?"}
DEEP: Final = json.loads("[" * 60 + "]" * 60)
LARGE: Final[dict[str, tuple[bytes, int]]] = {
    "messages": (conversation(*[SAID] * 6), 413),
    "parts": (
        conversation({"role": "user", "content": [{"type": "text", "text": "?"}] * 8}),
        413,
    ),
    "tools": (
        conversation(SAID, tools=[{"type": "function", "function": {"name": "f"}}] * 4),
        413,
    ),
    "depth": (conversation(SAID, metadata=DEEP), 400),
}
LIMITS: Final = RequestLimits(messages=5, parts=7, tools=3, depth=50, gzip_members=3)


@pytest.mark.parametrize("limit", LARGE)
def test_a_request_that_has_too_much_is_refused_by_the_name_of_the_limit(limit: str) -> None:
    body, status = LARGE[limit]
    with gateway("openai-chat", limits=LIMITS) as (url, server):
        response = httpx2.post(url + CHAT, content=body)
        requests = server.requests
    assert response.status_code == status
    assert f"limits.{limit}" in response.json()["error"]["message"]
    assert not requests


def test_a_request_at_its_limits_is_answered() -> None:
    body = conversation(*[SAID] * 5, some=json.loads("[" * 40 + "]" * 40))
    with gateway("openai-chat", limits=LIMITS) as (url, server):
        server.queue(answer("openai-chat", "hello"))
        assert httpx2.post(url + CHAT, content=body).status_code == 200


def packed(members: int) -> bytes:
    body = conversation(SAID)
    return gzip.compress(body) + gzip.compress(b"") * (members - 1)


@pytest.mark.parametrize(("members", "status"), [(3, 200), (4, 415)])
def test_members_of_gzip_are_bounded(members: int, status: int) -> None:
    with gateway("openai-chat", limits=LIMITS) as (url, server):
        server.queue(answer("openai-chat", "hello"))
        headers = {"content-encoding": "gzip"}
        response = httpx2.post(url + CHAT, content=packed(members), headers=headers)
    assert response.status_code == status
    if status == 415:
        assert "limits.gzip_members" in response.json()["error"]["message"]


def test_a_body_is_bounded_as_it_is_sent() -> None:
    packed_twice = gzip.compress(b"", 0) * 2_000
    headers = {"content-encoding": "gzip"}
    limits = RequestLimits(gzip_members=1_000_000)
    with gateway("openai-chat", limits=limits, max_body_bytes=10_000) as (url, _):
        response = httpx2.post(url + CHAT, content=packed_twice, headers=headers)
    assert response.status_code == 413
    assert "max_body_bytes" in response.json()["error"]["message"]


NAMED_MISTAKES: Final[list[tuple[str, str, dict[str, Any], str]]] = [
    (
        "anthropic-messages",
        "gemini",
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": "x"}}},
        "thinking: a number of tokens was expected, not str",
    ),
    (
        "ollama",
        "anthropic-messages",
        {"thinking": {"type": "enabled", "budget_tokens": [9]}},
        "thinking: a number of tokens was expected, not list",
    ),
    ("openai-chat", "openai-responses", {"text": {"format": "x"}}, "text.format: str is no type"),
]
MISTAKES: Final[list[tuple[str, str, dict[str, Any]]]] = [
    *(mistake[:3] for mistake in NAMED_MISTAKES),
    ("anthropic-messages", "openai-responses", {"metadata": {"a": float("nan")}}),
    ("anthropic-messages", "openai-responses", {"metadata": {"a": "\ud800"}}),
    (
        "openai-chat",
        "openai-chat",
        {"tools": [{"type": "function", "function": {"name": "f"}}] * 2},
    ),
]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: str(list(mistake[2])))
def test_a_mistake_of_a_client_is_400_in_its_form_before_the_upstream_is_called(
    mistake: tuple[AnyName, str, dict[str, Any]], *, streams: bool
) -> None:
    dialect, protocol, members = mistake
    path, body = asked(protocol, streams=streams)
    with gateway(dialect) as (url, server):
        server.queue(answer(dialect, "hello"))
        response = httpx2.post(url + path, content=json.dumps(body | members).encode())
        requests = server.requests
    assert response.status_code == 400, response.text
    assert response.json()["error"]["message"]
    assert not requests


@pytest.mark.parametrize("mistake", NAMED_MISTAKES, ids=lambda mistake: mistake[3])
def test_the_member_that_cannot_be_read_is_named(
    mistake: tuple[AnyName, str, dict[str, Any], str],
) -> None:
    dialect, protocol, members, message = mistake
    path, body = asked(protocol, streams=False)
    with gateway(dialect) as (url, _):
        response = httpx2.post(url + path, content=json.dumps(body | members).encode())
    assert message in response.json()["error"]["message"]


@pytest.mark.parametrize("protocol", PATHS)
def test_a_large_body_is_parsed_as_a_small_one_is(protocol: str) -> None:
    path, body = asked(protocol, streams=False)
    with gateway("openai-chat") as (url, server):
        server.queue(answer("openai-chat", "hello"))
        content = json.dumps(body).encode() + b" " * 300_000
        response = httpx2.post(url + path, content=content)
    assert response.status_code == 200
    assert "hello" in response.text
