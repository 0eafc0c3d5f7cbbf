"""The gateway: Models with a fallback are entries of its table."""

from typing import Any

import httpx2
import pytest

from deltafold import ErrorCode, fold
from deltafold.gateway import create_app
from deltafold.gateway.table import ModelTable
from deltafold.models import Model
from deltafold.testing import Recording, ReplayServer
from gateways import served, upstream
from wires import chat, claude

BUSY = Recording.error(503, {"error": {"message": "busy"}})
WRONG_KEY = Recording.error(401, {"error": {"message": "no", "code": "invalid_api_key"}})
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "?"}]}


def asked(entry: Model[Any] | list[Model[Any]]) -> httpx2.Response:
    with served(create_app({"m": entry})) as url:
        return httpx2.post(f"{url}/v1/chat/completions", json=BODY)


def test_a_model_of_another_protocol_answers_the_client() -> None:
    with ReplayServer() as first, ReplayServer() as second:
        first.queue(BUSY)
        second.queue(Recording.of_events(claude("Hello")))
        model = upstream("openai-chat", first.url)
        other = upstream("anthropic-messages", second.url)
        answer = asked(model.with_fallback(other))
    assert fold(answer.content, "openai-chat").text == "Hello"


@pytest.mark.parametrize("is_list", [True, False])
def test_a_model_with_a_fallback_decides_by_itself(*, is_list: bool) -> None:
    with ReplayServer() as first, ReplayServer() as second:
        first.queue(WRONG_KEY)
        second.queue(Recording.of_events(chat("Hello")))
        one, two = upstream("openai-chat", first.url), upstream("openai-chat", second.url)
        answer = asked([one, two] if is_list else one.with_fallback(two))
        assert len(second.requests) == int(is_list)
    assert answer.status_code == (200 if is_list else 401)


def test_a_chain_is_a_row_of_upstreams() -> None:
    first, second = upstream("openai-chat", "http://a"), upstream("gemini", "http://b")
    last = upstream("openai-chat", "http://c")
    table = ModelTable({"m": [first.with_fallback(second, on={ErrorCode.TIMEOUT}), last]})
    row = table.find("m")
    assert row.moves is not None
    assert row.fallback is not None
    assert (row.fallback.model, row.fallback.moves) == (second, None)
    assert row.fallback.fallback is not None
    assert row.fallback.fallback.model is last
