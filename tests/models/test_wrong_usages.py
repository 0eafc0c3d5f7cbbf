"""Wrong usages of new users raise errors that say what to write instead.

In: what a user wrote.  Out: an error whose text names the mistake, its place and the next step.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import httpx2
import openai
import pytest

import deltafold
from deltafold import MisuseError, ModelError, OpenAIChatModel
from deltafold.testing import Recording, ReplayServer, ReplayTransport, answer

BODY: Final = answer("openai-chat", "Hi").body


def folded(response: Any) -> str:  # noqa: ANN401 - whatever a user passes
    with deltafold.stream(response) as stream:
        return stream.final_message().text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "None is no response"),
        (Path("recording.sse"), r"path\.read_bytes\(\)"),
        (io.StringIO("data: {}"), "mode 'rb'"),
    ],
)
@pytest.mark.parametrize("entry", [deltafold.fold, folded, deltafold.fold_choices])
def test_what_is_no_body_is_named(given: Any, said: str, entry: Callable[[Any], object]) -> None:  # noqa: ANN401
    with pytest.raises(MisuseError, match=said):
        entry(given)


def responses(package: Any) -> tuple[Any, Any]:  # noqa: ANN401 - httpx or httpx2
    """Return a client, and a function that asks it for a response that is not read."""

    def answered(_: object) -> object:
        headers = {"content-type": "text/event-stream"}
        return package.Response(200, headers=headers, stream=package.ByteStream(BODY))

    transport = package.MockTransport(answered)
    client = package.Client(transport=transport, base_url="http://test")
    return client, lambda: client.send(
        client.build_request("POST", "/chat/completions"), stream=True
    )


@pytest.mark.parametrize("package", [httpx, httpx2], ids=lambda package: package.__name__)
def test_a_response_that_was_closed_says_so(package: Any) -> None:  # noqa: ANN401 - a module
    client, ask = responses(package)
    with client:
        closed = ask()
        closed.close()
        with pytest.raises(MisuseError, match=r"was closed before stream\(\) read it"):
            folded(closed)
        whole = ask()
        whole.read()
        assert folded(whole) == "Hi"


def test_a_stream_of_an_sdk_that_was_closed_says_so() -> None:
    client, _ = responses(httpx2)
    sdk = openai.OpenAI(api_key="k", http_client=client)
    messages: Any = [{"role": "user", "content": "?"}]
    stream = sdk.chat.completions.create(model="m", messages=messages, stream=True)
    stream.close()
    with pytest.raises(MisuseError, match="was closed before"):
        folded(stream)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("openai:gpt-5-mini", "openai/gpt-5-mini"),
        ("anthropic:claude-opus-4-8", "anthropic/claude-opus-4-8"),
        ("openai-chat:m", "openai-chat/m"),
    ],
)
def test_a_colon_behind_the_vendor_is_named(name: str, instead: str) -> None:
    with pytest.raises(MisuseError, match=f"did you mean '{instead}'"):
        deltafold.load_model(name)


def test_a_colon_of_a_name_stays() -> None:
    assert deltafold.load_model("ollama/qwen3:8b").model_id == "qwen3:8b"
    assert (
        deltafold.load_model("openrouter/openai/gpt-5.2:nitro").model_id == "openai/gpt-5.2:nitro"
    )


def refused(url: str) -> ModelError:
    """Ask a server that refuses, and return the error."""
    with OpenAIChatModel({"model_id": "m"}, base_url=url, api_key="k") as model:
        try:
            model.send_message_sync("?")
        except ModelError as error:
            return error
    raise AssertionError("the server has answered")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", r"went to {url}/chat/completions; base_url usually ends with /v1"),
        ("/v1/chat/completions", r"; base_url ends before /chat/completions"),
        ("/v2", r"went to {url}/v2/chat/completions$"),
    ],
)
def test_an_address_that_is_not_there_is_in_the_error(path: str, said: str) -> None:
    with ReplayServer({"/v1/chat/completions": answer("openai-chat", "Hi")}) as server:
        error = refused(f"{server.url}{path}")
        assert re.search(said.format(url=re.escape(server.url)), str(error))
    assert (error.status, error.retryable) == (404, False)


def test_a_version_that_the_path_has_too_is_named() -> None:
    with ReplayServer({"/v1/messages": answer("anthropic-messages", "Hi")}) as server:
        url = f"{server.url}/v1"
        model = deltafold.load_model("anthropic/claude-opus-4-8", base_url=url, api_key="k")
        with model, pytest.raises(ModelError, match=r"/v1/v1/messages; base_url ends before /v1$"):
            model.send_message_sync("?")


def test_a_secret_of_an_address_is_not_in_the_error() -> None:
    with ReplayServer() as server:
        error = refused(f"{server.url.replace('//', '//user:very-secret@')}/v1")
    assert "very-secret" not in str(error)
    assert "/v1/chat/completions" in str(error)


def test_an_unknown_model_has_no_advice_about_the_address() -> None:
    refusal = {"error": {"message": "no such model", "code": "model_not_found"}}
    with ReplayServer({"*": Recording.error(404, refusal)}) as server:
        assert "the request went to" not in str(refused(server.url))


@pytest.mark.parametrize(
    ("setting", "instead"),
    [
        ("max_retries", "error.retryable"),
        ("timeout", "timeouts="),
        ("request_timeout", "timeouts="),
        ("http_client", "client="),
        ("api_base", "base_url="),
        ("default_headers", "extra_headers="),
        ("callbacks", "hooks="),
        ("tools", "tool_specs"),
        ("system", "system_prompt"),
        ("response_model", "output="),
        ("temperatur", "did you mean 'temperature'"),
    ],
)
def test_a_setting_of_another_library_is_named(setting: str, instead: str) -> None:
    given: Any = {setting: 3}
    with pytest.raises(ValueError, match=f"no field '{setting}'.*{instead}"):
        deltafold.load_model("anthropic/claude-opus-4-8", **given)


NO_ROLES: Final[list[tuple[Any, str]]] = [
    ([{"content": "x"}], r"messages\[0\] has no role; the roles are system, developer, user"),
    ([{"role": "user", "content": "x"}, {"parts": []}], r"messages\[1\] has no role"),
    ([{"role": "bot", "content": "x"}], "has the role 'bot'"),
    ([{"role": "model", "parts": [{"text": "x"}]}], "has the role 'model'"),
    ([{"role": 5, "content": "x"}], r"has the role 5.*deltafold\.parse_request"),
    ({"role": None, "content": "x"}, r"messages\[0\] has no role"),
]


@pytest.mark.parametrize(("messages", "said"), NO_ROLES)
def test_a_message_without_a_role_that_apis_know_is_named(messages: Any, said: str) -> None:  # noqa: ANN401
    model = OpenAIChatModel({"model_id": "m"}, client=ReplayTransport([]))
    with pytest.raises(MisuseError, match=said):
        model.send_message_sync(messages)


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_the_roles_of_apis_are_taken(role: str) -> None:
    model = OpenAIChatModel(
        {"model_id": "m"}, client=ReplayTransport([answer("openai-chat", "Hi")])
    )
    assert model.send_message_sync([{"role": role, "content": "x"}, "y"]).text == "Hi"
