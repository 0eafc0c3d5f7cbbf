"""Places where a secret could be read: keys that cannot be sent, representations, addresses."""

import asyncio
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest

import deltafold
from deltafold import GeminiModel, MisuseError, ModelError, OpenAIChatModel
from deltafold.models.call_inputs import CallArguments
from deltafold.models.hooks import Hooks
from deltafold.testing import Recorder, Recording, RecordingWarning, ReplayServer
from deltafold.transports.http import make_http_client
from deltafold.transports.requests import HttpRequest
from deltafold.transports.secrets import Redactor, address_of, secrets_of_client, shown_url
from secret_clients import CERTIFICATES, CLIENTS, refusal, server

__all__ = ["server"]  # a fixture


# Keys before they are sent.


# A client of anthropic speaks another protocol than the model of the test.
@pytest.mark.parametrize("package", [name for name in CLIENTS if name != "anthropic"])
def test_a_key_with_a_line_end_is_sent_without_it(package: str, server: ReplayServer) -> None:
    del server.requests[:]
    server.recordings = {"*": refusal({"error": {"message": "no"}})}
    settings: dict[str, Any] = {"api_key": " sk-line-end \r\n", "base_url": server.url}
    config = {"model_id": "m", "extra_headers": {"x-own": "own\n"}}

    async def main() -> None:
        async with CLIENTS[package](server.url) as client:
            model = OpenAIChatModel(config, client=client, **settings)
            with pytest.raises(ModelError, match="authentication"):
                await model.send_message("Hello")

    if "async" in package:
        asyncio.run(main())
    else:
        with CLIENTS[package](server.url) as client:
            model = OpenAIChatModel(config, client=client, **settings)
            with pytest.raises(ModelError, match="authentication"):
                model.send_message_sync("Hello")
    [request] = server.requests
    assert request.headers["x-own"] == "own"
    if package != "openai":
        assert request.headers["authorization"] == "Bearer sk-line-end"


BAD_KEYS = ("sk-\x07bell", "sk-two\nlines", "sk-dash\u2014", "sk-\ud83d")
BAD_KEYS_BY_PLACE = {
    "api_key": BAD_KEYS,
    # The environment cannot hold a lone surrogate.
    "environment": tuple(key for key in BAD_KEYS if "\ud83d" not in key),
    # A header may have a dash, as a key may not.
    "extra_headers": tuple(key for key in BAD_KEYS if "\u2014" not in key),
    "hook": tuple(key for key in BAD_KEYS if "\u2014" not in key),
}


@pytest.mark.parametrize(
    ("place", "key"), [(place, key) for place, keys in BAD_KEYS_BY_PLACE.items() for key in keys]
)
def test_a_character_that_no_header_carries_is_refused_without_showing_the_key(
    place: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: dict[str, Any] = {"model_id": "m"}
    settings: dict[str, Any] = {"api_key": "unused"}
    if place == "environment":
        monkeypatch.setenv("OPENAI_API_KEY", key)
        settings = {}
    elif place == "extra_headers":
        config["extra_headers"] = {"x-own": key}
    elif place == "hook":
        hooks = Hooks(before_request=lambda context: context.headers.update({"x-own": key}))
        settings["hooks"] = hooks
    else:
        settings["api_key"] = key
    with httpx2.Client(verify=CERTIFICATES) as client:
        settings |= {"base_url": "http://127.0.0.1:9", "client": client}
        with pytest.raises((MisuseError, ValueError), match=r"character|surrogate") as raised:
            OpenAIChatModel(config, **settings).send_message_sync("Hello")
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
    assert key not in shown
    assert repr(key)[1:-1] not in shown


def test_a_key_that_is_white_space_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " \n")
    with pytest.raises(MisuseError, match="set OPENAI_API_KEY"):
        OpenAIChatModel({"model_id": "m"}).stream_sync("Hello")


# Other places.


def test_the_key_of_a_query_stays_out_of_what_is_told(server: ReplayServer) -> None:
    server.recordings = {"*": Recording.error(302, {}, {"location": "/login?key=AIza-secret-key"})}
    with httpx.Client(verify=CERTIFICATES) as client:
        config = {"model_id": "m", "extra_query": {"key": "AIza-secret-key"}}
        model = GeminiModel(config, client=client, base_url=server.url)
        with pytest.raises(ModelError, match="/login: use that address") as raised:
            model.send_message_sync("Hello")
    assert "AIza" not in "".join(traceback.format_exception(raised.value))


def test_an_error_within_a_stream_is_raised_without_the_key(server: ReplayServer) -> None:
    body = b'data: {"error": {"message": "bad key sk-in-the-stream", "code": 401}}\n\n'
    server.recordings = {"*": Recording.of(body)}
    with httpx.Client(verify=CERTIFICATES) as client:
        model = OpenAIChatModel(
            {"model_id": "m"}, client=client, base_url=server.url, api_key="sk-in-the-stream"
        )
        with pytest.raises(ModelError, match=r"bad key \*\*\*") as raised:
            model.send_message_sync("Hello")
        with model.stream_sync("Hello") as stream:
            last = list(stream)[-1]
    assert "sk-in" not in repr(raised.value) + str(raised.value)
    assert (last.error_message, last.provider_code) == ("bad key ***", None)
    assert "sk-in" not in last.to_json()


def test_a_response_of_the_users_is_told_without_the_key_of_its_request(
    server: ReplayServer,
) -> None:
    server.recordings = {"*": refusal({"error": {"message": "bad key sk-of-the-user"}})}
    headers = {"authorization": "Bearer sk-of-the-user"}
    with (
        httpx.Client(verify=CERTIFICATES) as client,
        client.stream("POST", server.url, headers=headers) as response,
        deltafold.stream(response, "openai-chat") as stream,
    ):
        assert "sk-of" not in repr([delta.to_dict() for delta in stream])
        assert stream.error is not None
        assert stream.error.message == "bad key ***"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://user:secret-password@host/v1?key=secret", ("host", 443)),
        ("http://[::1]:8080/v1", ("::1", 8080)),
        ("http://[::1]", ("::1", 80)),
        ("https://host?token=secret", ("host", 443)),
        ("https://secret-token@host:8443", ("host", 8443)),
        ("https://host:secret", (None, None)),
        ("", (None, None)),
    ],
)
def test_telemetry_is_told_the_host_and_the_port_alone(
    url: str, address: tuple[str | None, int | None]
) -> None:
    assert address_of(url) == address
    assert "secret" not in shown_url(url) or url == "https://host:secret"


def test_a_client_that_cannot_be_made_is_told_without_the_password_of_its_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://user:secret-password@proxy:1")
    for package in ("httpx", "httpx2"):
        with pytest.raises(Exception, match="proxy") as raised:
            make_http_client("synchronous", package)
        assert "secret-password" not in "".join(traceback.format_exception(raised.value))


def test_representations_leave_out_what_may_be_secret(server: ReplayServer) -> None:
    secret = "sk-in-a-representation"
    request = HttpRequest(
        "POST",
        f"http://user:{secret}@host/v1?key={secret}",
        {"authorization": secret},
        {"key": secret},
        secret.encode(),
    )
    assert repr(request) == "HttpRequest(POST http://host/v1)"
    config = {
        "model_id": "m",
        "extra_headers": {"x": secret},
        "extra_query": {"key": secret},
        "extra_body": {"key": secret},
    }
    shown: list[object] = []
    hooks = Hooks(before_request=shown.append, after_headers=shown.append)
    answer = Recording.error(401, {}, {"x-echo": secret})
    server.recordings = {"*": answer}
    with httpx.Client(verify=CERTIFICATES) as client:
        model = OpenAIChatModel(
            config, client=client, base_url=server.url, api_key=secret, hooks=hooks
        )
        arguments = CallArguments("Hello", invocation_state={"key": secret})
        prepared = model._prepare("synchronous", arguments)  # pyright: ignore[reportPrivateUsage] - what it is made of
        shown += [
            arguments,
            prepared,
            prepared.caller,
            prepared.request,
            prepared.facts,
            prepared.context(),
        ]
        shown += [model.get_config(), model]
        with suppress(ModelError):
            model.send_message_sync("Hello")
    shown += server.requests
    assert len(shown) >= 10
    assert secret not in "".join(f"{one!r}{one!s}" for one in shown)


def test_an_exception_keeps_its_class_and_its_members_where_they_can_be_redacted() -> None:
    redactor = Redactor(["sk-secret-key"])

    class OwnError(Exception):
        def __init__(self, key: str) -> None:
            super().__init__(f"bad {key}")
            self.body = {"errors": [key], "count": 1}

        def __str__(self) -> str:
            return f"{self.args[0]}, {self.body}"

    own = OwnError("sk-secret-key")
    assert redactor.exception(own) is own
    assert str(own) == "bad ***, {'errors': ['***'], 'count': 1}"
    clean = ValueError("nothing")
    assert redactor.exception(clean) is clean
    encoding = UnicodeEncodeError(
        "ascii", "Bearer sk-secret-key\u2026", 20, 21, "ordinal not in range"
    )
    group = ExceptionGroup("sk-secret-key", [ValueError("sk-secret-key")])
    circle = ValueError("one")
    circle.__cause__ = KeyError("sk-secret-key")
    circle.__cause__.__cause__ = circle
    for exception in (encoding, group, circle):
        redacted = redactor.exception(exception)
        assert type(redacted).__name__ == type(exception).__name__
        shown = "".join(traceback.format_exception(redacted)) + repr(redacted)
        assert "sk-secret" not in shown


def test_what_a_client_holds_of_its_own_is_known() -> None:
    with httpx.Client(
        verify=CERTIFICATES,
        headers={"x-own": "of-a-header"},
        params={"key": "of-a-query"},
        cookies={"session": "of-a-cookie"},
        auth=("user", "of-an-auth"),
        base_url="http://user:of-an-address@host",
    ) as client:
        found = set(secrets_of_client(client))
    places = ("header", "query", "cookie", "auth", "address")
    assert {f"of-a-{place}" for place in places[:3]} <= found
    assert {"of-an-auth", "of-an-address"} <= found


@pytest.mark.parametrize("client_class", [httpx.Client, httpx2.Client])
def test_the_password_of_a_proxy_that_a_client_was_made_with_is_known(
    client_class: Callable[..., Any],
) -> None:
    with client_class(verify=CERTIFICATES, proxy="http://user:of-a-proxy@127.0.0.1:9") as client:
        assert "of-a-proxy" in set(secrets_of_client(client))


def test_the_password_of_a_proxy_of_an_asyncio_client_is_known() -> None:
    proxy = "http://user:of-a-proxy@127.0.0.1:9"

    async def main() -> None:
        async with aiohttp.ClientSession(proxy=proxy) as session:
            assert "of-a-proxy" in set(secrets_of_client(session))

    asyncio.run(main())


def test_a_recorder_that_cannot_write_warns_and_the_reader_goes_on(
    server: ReplayServer, tmp_path: Path
) -> None:
    folder = tmp_path / "recordings"
    server.recordings = {"*": refusal({"error": {"message": "no"}})}
    with httpx.Client(verify=CERTIFICATES) as client:
        recorder = Recorder(client, folder)
        folder.rmdir()
        model = OpenAIChatModel({"model_id": "m"}, client=recorder, base_url=server.url)
        with (
            pytest.warns(RecordingWarning, match="was not written"),
            pytest.raises(ModelError, match="authentication"),
        ):
            model.send_message_sync("Hello")
