"""SDKs: how an official SDK's client is asked for a response's bytes.

In: a client that the caller made, or the wish for one; a prepared request.  Out: sources.

Laws: an SDK is imported only where a client of it is made; its clients are known by the names of
their classes; authentication, proxies, retries and the forms of the endpoint stay the SDK's.  A
client that is made here follows redirects as `transports/http.py` does: none to another origin.
botocore follows none.  SDKs that hand out parsed objects alone (google-genai, ollama, cohere) have
no row: their protocols are spoken through a plain HTTP client.
"""

from base64 import b64decode
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast
from urllib.parse import unquote

from deltafold.contract.exceptions import MisuseError
from deltafold.transports.http import ClientKind, redirect_target
from deltafold.transports.packages import MAX_CONNECTIONS, MAX_IDLE_CONNECTIONS
from deltafold.transports.requests import PreparedRequest
from deltafold.transports.responses import async_source_of, source_of
from deltafold.transports.secrets import clean_headers
from deltafold.transports.sources import AsyncSource, Source

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from deltafold.contract.names import ProtocolName


T = TypeVar("T")

_BOTH: Final[frozenset[ClientKind]] = frozenset({"synchronous", "asynchronous"})
_NEITHER: Final[frozenset[ClientKind]] = frozenset()


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings of a client that is made here.

    Attributes:
        base_url: the address, None for the SDK's default.
        api_key: the key, None if the SDK finds it.
        timeout: maximum of seconds without a byte.
        max_connections: the number of connections at once.
    """

    base_url: str | None = field(repr=False)
    api_key: str | None = field(repr=False)
    timeout: float | None
    max_connections: int = MAX_CONNECTIONS


class Sdk(Protocol):
    """One SDK, as far as deltafold calls through it."""

    @property
    def package(self) -> str:
        """The package's name."""
        ...

    def kinds(self, client: object) -> frozenset[ClientKind]:
        """Return the kinds of calls that a client supports; none if it is not of this SDK."""
        ...

    def dialect(self, client: object, dialect: "ProtocolName") -> "ProtocolName":
        """Return the dialect of a client's responses to requests in `dialect`."""
        ...

    def open(self, client: object, request: PreparedRequest) -> Source:
        """Send a request and return the unread response."""
        ...

    async def open_async(self, client: object, request: PreparedRequest) -> AsyncSource:
        """Send a request and return the unread response."""
        ...

    def make_client(self, kind: ClientKind, settings: ClientSettings) -> object:
        """Make a client that does not retry."""
        ...


def import_sdk(package: str, extra: str | None = None) -> Any:  # noqa: ANN401 - a module is untyped
    """Import an SDK.

    Raises:
        MisuseError: it is not installed; the error names the command that installs it.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as missing:
        raise MisuseError(
            f"the {package} SDK is not installed: pip install 'deltafold[{extra or package}]'"
        ) from missing


# The base classes that the clients of both SDKs have, by name: asking them needs no import.
_CLIENT_BASES: Final[Mapping[str, ClientKind]] = {
    "SyncAPIClient": "synchronous",
    "AsyncAPIClient": "asynchronous",
}


@dataclass(frozen=True, slots=True)
class GeneratedSdk:
    """The openai and anthropic SDKs, which come from the same generator.

    Attributes:
        package: the package's name.
        clients: the names of the synchronous and of the asynchronous client's class.
        resource: path of attributes from a client to `create`.
        named: the members of a body that `create` takes as arguments; all others travel in
            `extra_body`, independent of the version of the SDK.
        dialects: dialects of clients for another service, by the name of their class.
        headers: headers of the version of the API in which requests are rendered, which replace
            those of the SDK's version, but not those of the caller.
        members: members of the body in place of these headers, by the name of a client's class.
    """

    package: str
    clients: tuple[str, str]
    resource: tuple[str, ...]
    named: tuple[str, ...]
    dialects: "Mapping[str, ProtocolName]" = field(default_factory=dict[str, "ProtocolName"])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    members: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def kinds(self, client: object) -> frozenset[ClientKind]:
        """Return the kinds of calls that a client supports."""
        bases = type(client).__mro__
        if not any(base.__module__.partition(".")[0] == self.package for base in bases):
            return _NEITHER
        names = (base.__name__ for base in bases)
        found: list[ClientKind] = [_CLIENT_BASES[name] for name in names if name in _CLIENT_BASES]
        return frozenset(found)

    def dialect(self, client: object, dialect: "ProtocolName") -> "ProtocolName":
        """Return the dialect of a client's responses."""
        names = (base.__name__ for base in type(client).__mro__)
        named = next((name for name in names if name in self.dialects), None)
        return dialect if named is None else self.dialects[named]

    def open(self, client: object, request: PreparedRequest) -> Source:
        """Send a request through the SDK's streaming response."""
        opening = cast("AbstractContextManager[object]", self._opening(client, request))
        response = opening.__enter__()
        try:
            return source_of(response)
        except BaseException as exception:
            opening.__exit__(type(exception), exception, exception.__traceback__)
            raise

    async def open_async(self, client: object, request: PreparedRequest) -> AsyncSource:
        """Send a request through the SDK's streaming response."""
        opening = cast("AbstractAsyncContextManager[object]", self._opening(client, request))
        response = await opening.__aenter__()
        try:
            return async_source_of(response)
        except BaseException as exception:
            await opening.__aexit__(type(exception), exception, exception.__traceback__)
            raise

    def make_client(self, kind: ClientKind, settings: ClientSettings) -> object:
        """Make a client of the SDK."""
        name = self.clients[kind == "asynchronous"]
        arguments: dict[str, object] = {"max_retries": 0, "timeout": settings.timeout}
        if settings.base_url is not None:
            arguments["base_url"] = settings.base_url
        if settings.api_key is not None:
            arguments["api_key"] = settings.api_key
        sdk = import_sdk(self.package)
        arguments["http_client"] = _http_client(sdk, kind, settings)
        return getattr(sdk, name)(**arguments)

    def _opening(self, client: object, request: PreparedRequest) -> object:
        body = request.body
        missing = [name for name in self.named if name not in body and name != "stream"]
        if missing:
            raise MisuseError(
                f"the {self.package} SDK requires {' and '.join(missing)} in the body"
            )
        resource: Any = reduce(getattr, self.resource, client)
        names = (base.__name__ for base in type(client).__mro__)
        members = next((self.members[name] for name in names if name in self.members), None)
        headers = clean_headers(request.headers)
        if members is None:
            own = cast("Mapping[str, str]", getattr(client, "_custom_headers", {}))
            given = {name.lower() for name in (*own, *headers)}
            headers = {**_without(self.headers, given), **headers}
        return resource.with_streaming_response.create(
            **{name: body[name] for name in self.named if name in body},
            extra_body={**(members or {}), **_without(body, self.named)},
            extra_headers=headers,
            extra_query=dict(request.query),
        )


def _without(members: Mapping[str, T], names: Collection[str]) -> dict[str, T]:
    return {name: value for name, value in members.items() if name not in names}


def _http_client(sdk: Any, kind: ClientKind, settings: ClientSettings) -> object:  # noqa: ANN401 - a module is untyped
    """Make the HTTP client of a generated SDK, with its defaults but for redirects."""
    make = sdk.DefaultHttpxClient if kind == "synchronous" else sdk.DefaultAsyncHttpxClient
    # The SDK's own class is made of one of httpx or httpx2.
    package = import_module(make.__base__.__module__.partition(".")[0])
    limits = package.Limits(
        max_connections=settings.max_connections, max_keepalive_connections=MAX_IDLE_CONNECTIONS
    )
    client: object = make(limits=limits, event_hooks=_event_hooks(kind))
    return client


def _event_hooks(kind: ClientKind) -> dict[str, list[Any]]:
    """Return the hooks of httpx that raise for a redirect which must not be followed."""
    return {"response": [_refuse_redirect if kind == "synchronous" else _refuse_redirect_async]}


def _refuse_redirect(response: Any) -> None:  # noqa: ANN401 - of httpx or httpx2
    redirect_target(str(response.url), response.status_code, response.headers.get("location"))


async def _refuse_redirect_async(response: Any) -> None:  # noqa: ANN401 - as above
    _refuse_redirect(response)


class MistralSdk:
    """The mistralai SDK, whose streams keep the response that they read."""

    @property
    def package(self) -> str:
        """The package's name."""
        return "mistralai"

    def kinds(self, client: object) -> frozenset[ClientKind]:
        """Both: one class has the methods of either kind."""
        mine = any(
            base.__name__ == "Mistral" and base.__module__.partition(".")[0] == self.package
            for base in type(client).__mro__
        )
        return _BOTH if mine else _NEITHER

    def dialect(self, client: object, dialect: "ProtocolName") -> "ProtocolName":  # noqa: ARG002 - one service, one dialect
        """Return the dialect of a client's responses."""
        return dialect

    def open(self, client: object, request: PreparedRequest) -> Source:
        """Send a request; the parsed events of the stream are never made."""
        stream = cast("Any", client).chat.stream(**self._arguments(request))
        return source_of(stream.response)

    async def open_async(self, client: object, request: PreparedRequest) -> AsyncSource:
        """Send a request; the parsed events of the stream are never made."""
        stream = await cast("Any", client).chat.stream_async(**self._arguments(request))
        return async_source_of(stream.response)

    def make_client(self, kind: ClientKind, settings: ClientSettings) -> object:  # noqa: ARG002 - one class for both
        """Make a client of the SDK."""
        module = import_sdk("mistralai.client", "mistral")
        if not hasattr(module, "Mistral"):
            # Version 1 has the class in the package itself.
            module = import_sdk("mistralai", "mistral")
        milliseconds = None if settings.timeout is None else int(settings.timeout * 1000)
        client = module.Mistral(
            api_key=settings.api_key,
            server_url=(settings.base_url or "").removesuffix("/v1") or None,
            timeout_ms=milliseconds,
        )
        # The SDK closes only the HTTP clients that it has made.
        known = client.sdk_configuration
        known.client.event_hooks = _event_hooks("synchronous")
        known.async_client.event_hooks = _event_hooks("asynchronous")
        return client

    def _arguments(self, request: PreparedRequest) -> dict[str, object]:
        if not request.stream:
            raise MisuseError(
                "the mistralai SDK parses an answer that comes whole: stream it, or pass an "
                "httpx client"
            )
        if request.query:
            raise MisuseError("the mistralai SDK takes no query parameters: pass an httpx client")
        body = {name: value for name, value in request.body.items() if name != "stream"}
        return {**body, "http_headers": clean_headers(request.headers)}


class BedrockSdk:
    """boto3's and aiobotocore's clients of the service bedrock-runtime."""

    @property
    def package(self) -> str:
        """The package's name."""
        return "boto3"

    def kinds(self, client: object) -> frozenset[ClientKind]:
        """Return the kinds of calls that a client supports; those of aiobotocore are awaited."""
        names = {base.__name__ for base in type(client).__mro__}
        service: Any = getattr(getattr(client, "meta", None), "service_model", None)
        if getattr(service, "service_name", None) != "bedrock-runtime":
            return _NEITHER
        kind: ClientKind = "asynchronous" if "AioBaseClient" in names else "synchronous"
        return frozenset((kind,))

    def dialect(self, client: object, dialect: "ProtocolName") -> "ProtocolName":  # noqa: ARG002 - one service, one dialect
        """Return the dialect of a client's responses."""
        return dialect

    def open(self, client: object, request: PreparedRequest) -> Source:
        """Send a request; the frames are read below botocore's own parser."""
        return source_of(cast("Any", client).converse_stream(**self._arguments(request)))

    async def open_async(self, client: object, request: PreparedRequest) -> AsyncSource:
        """Send a request; the frames are read below aiobotocore's own parser."""
        arguments = self._arguments(request)
        return async_source_of(await cast("Any", client).converse_stream(**arguments))

    def make_client(self, kind: ClientKind, settings: ClientSettings) -> object:
        """Make a client of boto3; its credentials and region are found by boto3."""
        if kind == "asynchronous":
            raise MisuseError(
                "boto3 has no asynchronous client: pass one of aiobotocore, or an httpx client "
                "and a bearer key"
            )
        config = import_sdk("botocore.config", "bedrock").Config(
            retries={"total_max_attempts": 1}, read_timeout=settings.timeout
        )
        boto3 = import_sdk("boto3", "bedrock")
        return boto3.client("bedrock-runtime", endpoint_url=settings.base_url, config=config)

    def _arguments(self, request: PreparedRequest) -> dict[str, object]:
        if not request.stream:
            raise MisuseError(
                "boto3 parses an answer that comes whole: stream it, or pass an httpx client"
            )
        if request.headers or request.query:
            raise MisuseError(
                "boto3 takes no headers or query parameters: use its events, or an httpx client"
            )
        model_id = unquote(request.path.removeprefix("/model/").partition("/")[0])
        return {"modelId": model_id, **cast("dict[str, object]", _with_blobs(request.body))}


# Members of a Converse request that hold any JSON, where text is not base64.
_DOCUMENTS: Final = frozenset({"input", "json", "additionalModelRequestFields"})
_BLOBS: Final = frozenset({"bytes", "redactedContent"})


def _with_blobs(value: object) -> object:
    """Turn base64, as the wire has it, into the bytes that boto3 wants to encode itself.

    Source: the service description of bedrock-runtime in botocore 1.43, members of type blob.
    """
    if isinstance(value, list):
        return [_with_blobs(item) for item in cast("list[object]", value)]
    if not isinstance(value, Mapping):
        return value
    return {
        name: b64decode(member)
        if name in _BLOBS and isinstance(member, str)
        else member
        if name in _DOCUMENTS
        else _with_blobs(member)
        for name, member in cast("Mapping[str, object]", value).items()
    }


ANTHROPIC: Final = GeneratedSdk(
    "anthropic",
    ("Anthropic", "AsyncAnthropic"),
    ("messages",),
    ("model", "max_tokens", "messages", "stream"),
    # Bedrock frames the events of the Messages API anew.
    {"AnthropicBedrock": "bedrock-invoke", "AsyncAnthropicBedrock": "bedrock-invoke"},
    # anthropic 2 sends the version of 2026, which refuses the sampling that older models take
    # (docs/protocols/anthropic-messages.md#version).
    {"anthropic-version": "2023-06-01"},
    {
        name: {"anthropic_version": version}
        for cloud, version in (
            ("Bedrock", "bedrock-2023-05-31"),
            ("Vertex", "vertex-2023-10-16"),
        )
        for name in (f"Anthropic{cloud}", f"AsyncAnthropic{cloud}")
    },
)
OPENAI_CHAT: Final = GeneratedSdk(
    "openai",
    ("OpenAI", "AsyncOpenAI"),
    ("chat", "completions"),
    ("model", "messages", "stream"),
)
OPENAI_RESPONSES: Final = GeneratedSdk(
    "openai", ("OpenAI", "AsyncOpenAI"), ("responses",), ("model", "input", "stream")
)
MISTRAL: Final = MistralSdk()
BEDROCK: Final = BedrockSdk()
