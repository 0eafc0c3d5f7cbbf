"""Texts of a call that could contain one of its secrets, and contain none.

In: a table of the places that carry a secret into a request, of responses and exceptions that quote
it, of secrets and of clients.  Out: each text of the call, searched for each secret.

Responses come from a real server over the real clients. Exceptions are raised at the place where
the clients raise theirs.
"""

import asyncio
import json
import logging
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote, quote_plus

import aiohttp
import httpx
import httpx2
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deltafold import AnthropicModel, Model, OpenAIChatModel
from deltafold.models.hooks import Hooks, RequestContext
from deltafold.otel import CONVENTIONS, Instrumentation
from deltafold.testing import Recorder, Recording, ReplayServer
from secret_clients import CLIENTS, refusal, server

__all__ = ["server"]  # a fixture

SECRETS: Final = {
    "key": "sk-proj-4fJq0w",
    "reserved": "a/b+c==&d?e#f@g:h%i",
    "quotes": 'it\'s "q\\u0t3d"',
    "line end": "sk-line-end-7Xu\n",
    "long": "eyJhbGciOiJIUzI1NiJ9." + "Zm9vYmFyYmF6cXV4" * 20,
}


def forms(secret: str) -> dict[str, str]:
    """Return the forms in which a text quotes a secret, by the name of the form."""
    text = secret.strip()
    return {
        "as it is": text,
        "as bytes": repr(f"Bearer {text}".encode()),
        "with its line end": repr(f"Bearer {secret}".encode()),
        "percent": quote(text, safe=""),
        "plus": quote_plus(text),
        "JSON": json.dumps({"key": text}),
        "base64": b64encode(text.encode()).decode(),
        "basic": b64encode(f"user:{text}".encode()).decode(),
        "basic, other place": b64encode(f"users:{text}".encode()).decode(),
    }


def traces(secret: str) -> set[str]:
    """Return the strings that show a secret; no text may contain one of them."""
    text = secret.strip()
    found = {text, quote(text, safe=""), quote_plus(text), json.dumps(text)[1:-1]}
    found |= {repr(text)[1:-1], repr(text.encode())[2:-1]}
    for before in range(3):
        written = b64encode(b"\0" * before + text.encode()).decode().rstrip("=")
        found.add(written[-(-before * 4 // 3) : (before + len(text.encode())) * 4 // 3])
    return found


# Places that carry a secret. A carrier returns the arguments of a Model and those of its client.


@dataclass
class Carried:
    """Arguments and environment variables of a call, one of which contains the secret."""

    model: dict[str, Any] = field(default_factory=dict[str, Any])
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    client: dict[str, Any] = field(default_factory=dict[str, Any])
    environment: dict[str, str] = field(default_factory=dict[str, str])


Carrier: TypeAlias = Callable[[str, str], Carried]


def hooked(change: Callable[[RequestContext, str], None]) -> Carrier:
    def carrier(secret: str, _: str) -> Carried:
        hooks = Hooks(before_request=lambda context: change(context, secret))
        return Carried({"hooks": hooks, "api_key": "unused"})

    return carrier


def with_user(secret: str, url: str) -> Carried:
    user = quote(secret.strip(), safe="")
    return Carried({"base_url": url.replace("://", f"://user:{user}@"), "api_key": "unused"})


def with_password_first(secret: str, url: str) -> Carried:
    user = quote(secret.strip(), safe="")
    return Carried({"base_url": url.replace("://", f"://{user}@"), "api_key": "unused"})


CARRIERS: Final[dict[str, Carrier]] = {
    "api_key": lambda secret, _: Carried({"api_key": secret}),
    "environment": lambda secret, _: Carried(environment={"OPENAI_API_KEY": secret}),
    "extra_headers": lambda secret, _: Carried(
        {"api_key": "unused"}, {"extra_headers": {"x-gateway": secret}}
    ),
    "extra authorization": lambda secret, _: Carried(
        {"api_key": "unused"}, {"extra_headers": {"Authorization": f"Bearer {secret}"}}
    ),
    "extra_query": lambda secret, _: Carried(
        {"api_key": "unused"}, {"extra_query": {"key": secret.strip()}}
    ),
    "header of a hook": hooked(lambda context, secret: context.headers.update({"X-Own": secret})),
    "query of a hook": hooked(lambda context, secret: context.query.update({"own": secret})),
    "password of the base URL": with_user,
    "user of the base URL": with_password_first,
    "client headers": lambda secret, _: Carried(
        {"api_key": "unused"}, client={"headers": {"x-own": secret.strip()}}
    ),
    "client cookies": lambda secret, _: Carried(
        {"api_key": "unused"}, client={"cookies": {"session": quote(secret.strip(), safe="")}}
    ),
    "client auth": lambda secret, _: Carried(
        {"api_key": "unused"}, client={"auth": ("user", secret.strip())}
    ),
    "proxy of the environment": lambda secret, _: Carried(
        {"api_key": "unused"},
        environment={"FTP_PROXY": f"http://user:{quote(secret.strip(), safe='')}@127.0.0.1:1"},
    ),
}

# Responses that quote a secret. Nothing listens at port 1, so that no name has to resolve.


RESPONSES: Final[dict[str, Callable[[str, str], Recording]]] = {
    "message": lambda form, _: refusal({"error": {"message": f"Incorrect API key: {form}"}}),
    "code": lambda form, _: refusal({"error": {"message": "no", "code": form, "type": form}}),
    "body": lambda form, _: refusal({"error": {"message": "no"}, "request": {"headers": [form]}}),
    "page": lambda form, _: replace(
        Recording.of(f"no such key: {form}".encode()),
        status=403,
        headers={"content-type": "text/plain"},
    ),
    "request id": lambda form, _: refusal(
        {"error": {"message": "no"}}, {"x-request-id": quote(form), "request-id": quote(form)}
    ),
    "redirect": lambda form, _: Recording.error(
        307, {}, {"location": f"http://127.0.0.1:1/v1?token={quote(form, safe='')}"}
    ),
    "redirect to a user": lambda form, _: Recording.error(
        302, {}, {"location": f"http://user:{quote(form, safe='')}@127.0.0.1:1/v1"}
    ),
}
# Parts of a client's exception that quote a secret.
EXCEPTIONS: Final = ("text", "cause", "context", "note", "two arguments")


def failing(kind: str, make: Callable[[str], Exception], form: str) -> Exception:
    """Make an exception of a client with the form of a secret in the part that `kind` names."""
    text = f"Illegal header value {form}"
    if kind == "text":
        return make(text)
    if kind == "two arguments":
        exception = make(text)
        exception.args = (text, {"headers": [form]})
        return exception
    outer = make("it failed")
    if kind == "note":
        outer.add_note(text)
    elif kind == "cause":
        outer.__cause__ = ValueError(text)
    else:
        outer.__context__ = make(text)
    return outer


# Clients: the real one, and one of the same class that raises exceptions.


class Raising:
    """Replacement of the network that raises `exception`."""

    exception: Exception = RuntimeError()

    def raise_it(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - never returns
        raise self.exception

    async def raise_it_later(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - never returns
        raise self.exception


ERRORS: Final[dict[str, tuple[Callable[[str], Exception], ...]]] = {
    "httpx": (httpx.LocalProtocolError, httpx.ConnectError),
    "httpx2": (httpx2.LocalProtocolError, httpx2.ReadError),
    "aiohttp": (aiohttp.ClientError, aiohttp.InvalidURL),
    "openai": (httpx.LocalProtocolError, httpx.ConnectError),
    "anthropic": (httpx.LocalProtocolError, httpx.ReadTimeout),
}


def raising(package: str, client: Any, raiser: Raising, patch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 - any client
    """Make a client raise an exception in place of its network access."""
    if package.startswith("aiohttp"):
        patch.setattr(client, "_request", raiser.raise_it_later, raising=False)
    else:
        http = getattr(client, "_client", client)
        name = "handle_async_request" if "async" in package else "handle_request"
        later = raiser.raise_it_later if "async" in package else raiser.raise_it
        patch.setattr(http._transport, name, later)


@dataclass
class Watch:
    """Texts that a call produces: messages, errors, logs, spans and recordings."""

    spans: InMemorySpanExporter
    telemetry: Instrumentation
    logs: list[str]
    texts: list[str] = field(default_factory=list[str])

    def note(self, *things: object) -> None:
        for thing in things:
            self.texts += [str(thing), repr(thing)]

    def note_error(self, error: BaseException) -> None:
        self.note(error, getattr(error, "message", None), getattr(error, "body", None))
        self.note(getattr(error, "provider_code", None), getattr(error, "http_request_id", None))
        self.texts += traceback.format_exception(error)

    def check(self, secret: str, where: str) -> None:
        for span in self.spans.get_finished_spans():
            self.texts.append(span.to_json(indent=None))
        self.spans.clear()
        whole = "\n".join([*self.texts, *self.logs])
        for trace in traces(secret):
            place = whole.find(trace)
            assert place < 0, (where, whole[max(place - 200, 0) : place + 200])
        self.texts.clear()
        self.logs.clear()


@pytest.fixture
def watch() -> Iterator[Watch]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentation = Instrumentation(
        CONVENTIONS["1.41"],
        capture_content=True,
        tracer_provider=provider,
        meter_provider=MeterProvider(),
    )
    logs: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logs.append(self.format(record))

    handler, logger = Handler(logging.DEBUG), logging.getLogger("deltafold")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield Watch(exporter, instrumentation, logs)
    logger.setLevel(level)
    logger.removeHandler(handler)


@dataclass
class Row:
    """Model and client with one secret, which send a request for each case."""

    package: str
    model: Model[Any]
    client: Any
    watch: Watch
    folder: Path

    def ask(self) -> None:
        watch = self.watch
        stream = self.model.stream_sync("Hello")
        with stream:
            try:
                watch.note(stream, *[delta.to_dict() for delta in stream], *stream.snapshot().parts)
                watch.note(stream.error, stream.response)
                stream.final_message()
            except Exception as error:  # noqa: BLE001 - its texts are searched
                self.watch.note_error(error)
        self.note_recordings()

    async def ask_async(self) -> None:
        watch = self.watch
        stream = self.model.stream("Hello")
        async with stream:
            try:
                deltas = [delta.to_dict() async for delta in stream]
                watch.note(stream, *deltas, *stream.snapshot().parts)
                watch.note(stream.error, stream.response)
                await stream.final_message()
            except Exception as error:  # noqa: BLE001 - its texts are searched
                self.watch.note_error(error)
        self.note_recordings()

    def note_recordings(self) -> None:
        for path in self.folder.iterdir():
            self.watch.texts.append(path.read_text())
            path.unlink()


def model_of(package: str, carried: Carried, client: object, url: str, watch: Watch) -> Model[Any]:
    model_class = AnthropicModel if package == "anthropic" else OpenAIChatModel
    settings: dict[str, Any] = {"base_url": url, "telemetry": watch.telemetry, **carried.model}
    config = {"model_id": "m", "max_tokens": 9, **carried.config}
    return model_class(config, client=client, **settings)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("package", CLIENTS)
@pytest.mark.parametrize("failures", [False, True], ids=["response", "exception"])
def test_what_repeats_a_secret_is_told_without_it(
    package: str,
    carrier: str,
    failures: bool,
    server: ReplayServer,
    watch: Watch,
    tmp_path: Path,
) -> None:
    for secret in SECRETS.values():
        with pytest.MonkeyPatch.context() as patch:
            run(package, carrier, secret, server, watch, tmp_path, patch, failures=failures)


def cases(
    package: str,
    carrier: str,
    secret: str,
    server: ReplayServer,
    raiser: Raising,
    *,
    failures: bool,
) -> Iterator[str]:
    """Set up the server or the client for each case in turn, and yield the name of the case."""
    shown = forms(secret)
    turn = (
        [*CARRIERS].index(carrier) + [*SECRETS.values()].index(secret) + [*CLIENTS].index(package)
    )
    makers = ERRORS[package.partition(",")[0]]
    for number, kind in enumerate(EXCEPTIONS if failures else RESPONSES):
        # The forms take turns: the whole table has each form in each response and exception.
        form = [*shown][(number + turn) % len(shown)]
        if failures:
            raiser.exception = failing(kind, makers[(number + turn) % 2], shown[form])
        else:
            server.recordings = {"*": RESPONSES[kind](shown[form], secret)}
        yield f"{package}: {carrier}, {kind}, {form}"


def run(
    package: str,
    carrier: str,
    secret: str,
    server: ReplayServer,
    watch: Watch,
    folder: Path,
    patch: pytest.MonkeyPatch,
    *,
    failures: bool,
) -> None:
    """Send a request for each case of one carrier, one secret and one client."""
    carried = CARRIERS[carrier](secret, server.url)
    for name, value in carried.environment.items():
        patch.setenv(name, value)
    if package in {"openai", "anthropic"}:
        key = carried.model.get("api_key") or carried.environment.get("OPENAI_API_KEY", "unused")
        carried.client["api_key"] = key.strip()
    url = carried.model.get("base_url", server.url)
    raiser = Raising()
    wheres = partial(cases, package, carrier, secret, server, raiser, failures=failures)

    def row(client: object) -> Row:
        if failures:
            raising(package, client, raiser, patch)
        recorded = client if failures else Recorder(client, folder)
        model = model_of(package, carried, recorded, url, watch)
        watch.note(model, model.get_config())
        return Row(package, model, client, watch, folder)

    if "async" not in package:
        with CLIENTS[package](url, **carried.client) as client:
            one = row(client)
            for where in wheres():
                one.ask()
                assert watch.texts
                watch.check(secret, where)
        return

    async def main() -> None:
        async with CLIENTS[package](url, **carried.client) as client:
            one = row(client)
            for where in wheres():
                await one.ask_async()
                assert watch.texts
                watch.check(secret, where)

    asyncio.run(main())
