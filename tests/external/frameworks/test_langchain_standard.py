"""The standard suites of langchain-tests, over real HTTP; nothing is expected to fail."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from answering import AnsweringServer
from langchain_core.language_models import BaseChatModel
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from deltafold.integrations.langchain import ChatDeltafold

SERVER: list[str] = []
"""Address of the server while the tests of this module run."""


@pytest.fixture(autouse=True, scope="module")
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer(flat_out=True) as answering:
        SERVER[:] = [answering.url]
        yield answering


@pytest.fixture(autouse=True)
def no_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer the downloads of the suite, which loads images and files from the internet."""

    def get(url: str, **_: Any) -> httpx.Response:
        return httpx.Response(
            200, content=b"%PDF-1.4 or an image", request=httpx.Request("GET", url)
        )

    monkeypatch.setattr(httpx, "get", get)


class TestUnit(ChatModelUnitTests):
    """The unit suite."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatDeltafold

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "openai/gpt-5"}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        return {"OPENAI_API_KEY": "from the environment"}, {"model": "openai/gpt-5"}, {}


class _Integration(ChatModelIntegrationTests):
    name = ""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatDeltafold

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": self.name, "base_url": SERVER[0], "api_key": "key", "max_retries": 0}

    @property
    def supports_image_inputs(self) -> bool:
        return True

    @property
    def supports_image_urls(self) -> bool:
        return True

    @property
    def supports_pdf_inputs(self) -> bool:
        return True

    @property
    def supports_image_tool_message(self) -> bool:
        return True

    @property
    def supports_pdf_tool_message(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def supports_model_override(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return "another-model"


class TestChat(_Integration):
    """The integration suite over Chat Completions."""

    name = "openai/gpt-5"

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_audio_inputs(self) -> bool:
        return True


class TestMessages(_Integration):
    """The integration suite over the Messages API."""

    name = "anthropic/claude-opus-4-8"


del _Integration
