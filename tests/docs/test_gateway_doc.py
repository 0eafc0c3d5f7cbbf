"""The Python blocks of docs/gateway.md run: hooks, and a route of another application."""

import re

import openai
import pytest

from corpus import ROOT
from deltafold.testing import ReplayServer
from gateway_clients import TEXT, recorded
from gateways import served

TEXT_OF_DOC = (ROOT / "docs" / "gateway.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT_OF_DOC, re.DOTALL)


def test_the_blocks_of_the_document_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "k")
    with ReplayServer() as server:
        server.queue(recorded(TEXT, "openai-chat"), recorded(TEXT, "anthropic-messages"))
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        found: dict[str, object] = {}
        for block in BLOCKS:
            exec(block, found)  # noqa: S102 - the document's own code
        with served(found["app"]) as url, pytest.raises(openai.AuthenticationError):
            ask(url, "gpt-5.6-terra", "wrong")
        with served(found["app"]) as url:
            assert ask(url, "gpt-5.6-terra", "right") == TEXT.text
        assert found["spent"] == {"gpt-5.6-terra": 18}
        with served(found["api"]) as url:
            assert ask(url, "m", "any") == TEXT.text
            with pytest.raises(openai.NotFoundError, match="does not exist"):
                ask(url, "other", "any")


def ask(url: str, model: str, key: str) -> str | None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
        completion = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "?"}]
        )
        return completion.choices[0].message.content
