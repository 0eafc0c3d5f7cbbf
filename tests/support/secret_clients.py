"""Clients that are given secrets in their own settings, and a server that refuses them."""

import gc
import ssl
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest

from deltafold.testing import Recording, ReplayServer

CERTIFICATES: Final = ssl.create_default_context()


def refusal(body: object, headers: Mapping[str, str] | None = None) -> Recording:
    return Recording.error(401, body, headers)


def aiohttp_session(_url: str, **own: Any) -> aiohttp.ClientSession:  # noqa: ANN401 - of the session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # aiohttp 4 takes a header
        if "auth" in own:
            own["auth"] = aiohttp.BasicAuth(*own["auth"])
        return aiohttp.ClientSession(**own)


def sdk_client(package: Any, name: str, url: str, **own: Any) -> Any:  # noqa: ANN401 - an SDK
    http = package.DefaultHttpxClient(
        verify=CERTIFICATES, **{key: own[key] for key in ("cookies", "auth") if key in own}
    )
    arguments = {"api_key": own.get("api_key", "unused"), "max_retries": 0, "base_url": url}
    headers = own.get("headers")
    return getattr(package, name)(http_client=http, default_headers=headers, **arguments)


def made_by(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a client from a URL and the client's own settings."""

    def made(_url: str, **own: Any) -> Any:  # noqa: ANN401 - any client
        return make(verify=CERTIFICATES, **own)

    return made


CLIENTS: Final[dict[str, Callable[..., Any]]] = {
    "httpx": made_by(httpx.Client),
    "httpx, async": made_by(httpx.AsyncClient),
    "httpx2": made_by(httpx2.Client),
    "httpx2, async": made_by(httpx2.AsyncClient),
    "aiohttp, async": aiohttp_session,
    "openai": partial(sdk_client, openai, "OpenAI"),
    "anthropic": partial(sdk_client, anthropic, "Anthropic"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ReplayServer]:
    gc.collect()
    gc.freeze()
    with ReplayServer() as replay:
        yield replay
    gc.unfreeze()
