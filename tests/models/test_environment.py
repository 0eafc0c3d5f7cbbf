"""Variables of the environment: each moves the vendor whose SDK reads it, and no other."""

import inspect
from typing import Any, cast

import anthropic
import boto3
import cohere
import httpx2
import ollama
import openai
import pytest
from google import genai

from deltafold import MisuseError, Model, ModelError, load_model
from deltafold.models.vendors import VENDORS, Vendor
from deltafold.testing import Recording, ReplayServer, ReplayTransport
from deltafold.transports.requests import HttpRequest
from deltafold.transports.sources import Source

VARIABLES = {
    variable
    for vendor in VENDORS.values()
    for variable in (
        *vendor.address_variables,
        *vendor.earlier_key_variables,
        *vendor.header_variables.values(),
        vendor.key_variable,
        vendor.token_variable,
    )
    if variable
}
GATEWAY = "https://gateway.test"


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


class Seeing(ReplayTransport):
    """Keeps the URLs that it is asked for."""

    def __init__(self) -> None:
        super().__init__({"*": Recording.error(500, {})})
        self.urls: list[str] = []

    def open(self, request: HttpRequest) -> Source:
        self.urls.append(request.full_url)
        return super().open(request)


def asked(name: str, **settings: Any) -> tuple[str, dict[str, str]]:  # noqa: ANN401 - of load_model
    """Return the URL and the headers of one request."""
    transport = Seeing()
    model = load_model(name, client=transport, **settings)
    with pytest.raises(ModelError):
        model.send_message_sync("Hello", max_tokens=9)
    return transport.urls[0], dict(transport.requests[0].headers)


MOVED = [
    ("openai", None, "OPENAI_BASE_URL", f"{GATEWAY}/v1/", f"{GATEWAY}/v1/chat/completions"),
    ("openai", "openai-responses", "OPENAI_BASE_URL", f"{GATEWAY}/v1", f"{GATEWAY}/v1/responses"),
    ("anthropic", None, "ANTHROPIC_BASE_URL", GATEWAY, f"{GATEWAY}/v1/messages"),
    ("google", None, "GOOGLE_GEMINI_BASE_URL", GATEWAY, f"{GATEWAY}/v1beta/models/m"),
    ("cohere", None, "CO_API_URL", GATEWAY, f"{GATEWAY}/v2/chat"),
    ("bedrock", None, "AWS_ENDPOINT_URL", GATEWAY, f"{GATEWAY}/model/m"),
    ("bedrock", None, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", GATEWAY, f"{GATEWAY}/model/m"),
    ("ollama", None, "OLLAMA_HOST", "gpu", "http://gpu:11434/v1/chat/completions"),
    ("ollama", "ollama", "OLLAMA_HOST", "https://gpu", "https://gpu:443/api/chat"),
]


@pytest.mark.parametrize(("vendor", "specification", "variable", "value", "url"), MOVED)
def test_a_variable_moves_its_vendor_and_an_argument_beats_it(
    vendor: str,
    specification: str | None,
    variable: str,
    value: str,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, f" {value}\n")
    assert asked(f"{vendor}/m", specification=specification)[0].startswith(url)
    given = asked(f"{vendor}/m", specification=specification, base_url="https://given.test")[0]
    assert given.startswith("https://given.test/")


def test_the_variable_of_the_service_beats_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://all.test")
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "https://one.test")
    assert asked("bedrock/m")[0].startswith("https://one.test/")


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=list(VENDORS))
def test_a_variable_moves_no_other_vendor(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {
        variable
        for other in VENDORS.values()
        if other is not vendor
        for variable in (*other.address_variables, other.token_variable)
        if variable
    }
    for variable in others:
        monkeypatch.setenv(variable, GATEWAY)
    address = vendor.addresses[vendor.dialect]
    if address is None or vendor.dialect == "gemini-interactions":
        return
    place = {} if "{" not in address else {"base_url": "https://given.test"}
    url, headers = asked(f"{vendor.name}/m", **place)
    assert "gateway" not in url
    assert not any("gateway" in value for value in headers.values())


def test_a_blank_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", " ")
    monkeypatch.setenv("OPENAI_ORG_ID", "")
    url, headers = asked("openai/m")
    assert url.startswith("https://api.openai.com/v1/")
    assert "openai-organization" not in headers


@pytest.mark.parametrize(
    ("vendor", "variable", "value"),
    [
        ("openai", "OPENAI_BASE_URL", "user:secret@gateway"),
        ("ollama", "OLLAMA_HOST", "gpu:secret"),
        ("ollama", "OLLAMA_HOST", "ftp://secret"),
    ],
)
def test_a_variable_that_holds_no_address_is_named_without_its_value(
    vendor: str, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(MisuseError, match=variable) as raised:
        asked(f"{vendor}/m")
    assert "secret" not in str(raised.value)


def test_the_headers_of_openai_go_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1\n")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    headers = asked("openai/m")[1]
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")
    assert "openai-organization" not in asked("openrouter/m")[1]


def test_the_variables_are_read_once_for_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Seeing()
    monkeypatch.setenv("OPENAI_API_KEY", "first-key")

    def call(model: Model[Any]) -> None:
        with pytest.raises(ModelError):
            model.send_message_sync("Hello", max_tokens=9)

    model = load_model("openai/m", client=transport)
    call(model)
    monkeypatch.setenv("OPENAI_API_KEY", "second-key")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{GATEWAY}/v1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    call(model)
    call(load_model("openai/m", client=transport))
    first, second, third = transport.requests
    assert first.headers["authorization"] == second.headers["authorization"] == "Bearer first-key"
    assert all(url.startswith("https://api.openai.com") for url in transport.urls[:2])
    assert "openai-organization" not in {name.lower() for name in second.headers}
    assert third.headers["authorization"] == "Bearer second-key"
    assert third.headers["openai-organization"] == "org"
    assert transport.urls[2] == f"{GATEWAY}/v1/chat/completions"


def test_a_token_is_sent_where_there_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token\n")
    headers = asked("anthropic/m")[1]
    assert headers["authorization"] == "Bearer token"
    assert "x-api-key" not in headers
    assert headers["anthropic-version"]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    headers = asked("anthropic/m")[1]
    assert headers["x-api-key"] == "key"
    assert "authorization" not in headers
    monkeypatch.setenv("OLLAMA_API_KEY", "token")
    assert asked("ollama/m")[1]["authorization"] == "Bearer token"


def test_a_token_is_enough_for_a_model_that_makes_its_own_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ReplayServer({"*": Recording.error(500, {})}) as server:
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        with load_model("anthropic/m") as model, pytest.raises(ModelError):
            model.send_message_sync("Hello", max_tokens=9)
        assert server.requests[0].headers["authorization"] == "Bearer token"


def test_the_first_of_two_keys_is_that_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "gemini")
    assert asked("google/m")[1]["x-goog-api-key"] == "gemini"
    monkeypatch.setenv("GOOGLE_API_KEY", "google")
    assert asked("google/m")[1]["x-goog-api-key"] == "google"
    assert asked("google/m", api_key="given")[1]["x-goog-api-key"] == "given"


# The SDKs are where the variables come from.


def test_the_sdks_read_the_same_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{GATEWAY}/v1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    with openai.OpenAI(api_key="key") as sdk:
        assert str(sdk.base_url).rstrip("/") == f"{GATEWAY}/v1"
        names = VENDORS["openai"].header_variables
        sent = {name.lower(): value for name, value in sdk.default_headers.items()}
        assert [sent[name] for name in names] == ["org-1", "proj-1"]
    monkeypatch.setenv("ANTHROPIC_BASE_URL", GATEWAY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    with anthropic.Anthropic() as sdk:
        assert str(sdk.base_url).rstrip("/") == GATEWAY
        assert sdk.auth_headers["Authorization"] == "Bearer token"
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", GATEWAY)
    monkeypatch.setenv("GEMINI_API_KEY", "gemini")
    monkeypatch.setenv("GOOGLE_API_KEY", "google")
    with genai.Client() as client:
        api = cast("Any", client)._api_client
        assert str(api._http_options.base_url).rstrip("/") == GATEWAY
        assert api.api_key == "google"
    monkeypatch.setenv("AWS_ENDPOINT_URL", GATEWAY)
    aws = {"aws_access_key_id": "id", "aws_secret_access_key": "key", "region_name": "r"}
    make: Any = vars(boto3)["client"]
    assert make("bedrock-runtime", **aws).meta.endpoint_url == GATEWAY
    # It is the default of an argument, read when cohere is imported.
    assert 'getenv("CO_API_URL")' in inspect.getsource(cohere.ClientV2.__init__)


@pytest.mark.parametrize(
    "host",
    [
        "1.2.3.4",
        ":56789",
        "1.2.3.4:56789",
        "http://1.2.3.4",
        "https://example.com",
        "https://example.com:56789/path/",
        "example.com/path",
        "[0001:002:003:0004::1]",
        "https://[0001:002:003:0004::1]:56789/path",
    ],
)
def test_a_host_is_read_as_ollama_reads_it(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    inner: Any = vars(ollama.Client())["_client"]  # nothing else tells
    theirs = str(inner.base_url).rstrip("/")
    ours = asked("ollama/m", specification="ollama")[0].removesuffix("/api/chat")
    assert httpx2.URL(ours) == httpx2.URL(theirs)
