"""Files by address: fetched for upstreams that take only the bytes of a file.

In: `ClientRequest`, and the upstreams of its answer.  Out: the same request with the bytes of the
files that an upstream would leave out.

Laws: only addresses of the internet are called. A name is resolved once, each of its addresses must
be public, and the connection goes to an address that was looked at. The same holds after each
redirection. Bytes, redirections, time and the number of files are bounded. No header and no key of
a client is sent. Fetching ends when its client leaves.
"""

import asyncio
import base64
import ipaddress
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final, Self, TypeVar
from urllib.parse import quote, urljoin, urlsplit

import httpx2
from starlette.requests import Request

from deltafold.contract.kinds import ErrorCode
from deltafold.dialects import dialect_of, migrate_config
from deltafold.dialects.stencils import OutlinedMessages
from deltafold.errors.model_error import ModelError
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.leaving import unless_left
from deltafold.gateway.refusals import refusal
from deltafold.gateway.table import Upstream
from deltafold.message.messages import FileRefPart, ImagePart, Message
from deltafold.message.parts import ToolResultPart

_PartT = TypeVar("_PartT")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTIONS: Final = 3
_AT_ONCE: Final = 4
_OK: Final = 200
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "64:ff9b::/96",  # IPv6 addresses that stand for IPv4 ones: RFC 6052, part 2.1
        "64:ff9b:1::/48",  # the same for local use: RFC 8215
        "192.0.0.0/24",  # protocol assignments: RFC 6890; a cloud's metadata are at 192.0.0.192
    )
)
"""Networks that lead into private ones, and that versions of Python take for public."""


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """The bytes of a file, and the MIME type that its server states, None without one.

    >>> from deltafold.gateway import FetchedFile
    >>> FetchedFile(b"tide", "text/plain").mime_type
    'text/plain'
    """

    data: bytes
    mime_type: str | None


class FileFetcher:
    """Fetches files of the internet, and never those of a private network.

    >>> fetcher = FileFetcher(max_bytes=5_000_000, networks=["10.8.0.0/16"])
    >>> app = create_app({"m": "ollama/llava"}, fetcher=fetcher)
    >>> await fetcher.aclose()

    Args:
        max_bytes: the most bytes of all files of one request.
        max_seconds: the longest time for one file, in seconds.
        max_files: the most files of one request.
        max_total_seconds: the longest time for all files of one request, in seconds.
        networks: networks that are called although they are not public, such as one with the
            company's own images.

    Raises:
        ValueError: a network is wrong.
    """

    def __init__(
        self,
        *,
        max_bytes: int = 20 << 20,
        max_seconds: float = 10.0,
        max_files: int = 64,
        max_total_seconds: float = 60.0,
        networks: Iterable[str] = (),
    ) -> None:
        self.max_bytes = max_bytes
        self.max_files = max_files
        self.max_total_seconds = max_total_seconds
        self._max_seconds = max_seconds
        self._networks = [ipaddress.ip_network(network) for network in networks]
        # A proxy would resolve the name again. A kept connection was made for one name, and another
        # name may have the same address.
        self._client = httpx2.AsyncClient(
            trust_env=False,
            timeout=max_seconds,
            limits=httpx2.Limits(max_connections=100, max_keepalive_connections=0),
        )

    async def fetch(self, url: str, *, max_bytes: int | None = None) -> FetchedFile:
        """Return a file.

        >>> from deltafold.gateway import FileFetcher
        >>> fetcher = FileFetcher()
        >>> await fetcher.fetch("http://127.0.0.1/tide.png")
        Traceback (most recent call last):
        ModelError: the file http://127.0.0.1/tide.png is not fetched: 127.0.0.1 is not public

        Raises:
            ModelError: the file cannot or must not be fetched; its status is 400.
        """
        try:
            async with asyncio.timeout(self._max_seconds):
                return await self._fetch(url, max_bytes or self.max_bytes)
        except TimeoutError as error:
            raise _refused(
                url, f"it took more than {self._max_seconds:g} s (max_seconds)"
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise _refused(url, f"{type(error).__name__}: {error}") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def _fetch(self, url: str, max_bytes: int) -> FetchedFile:
        at = url
        for _ in range(_REDIRECTIONS + 1):
            response = await self._client.send(await self._request(url, at), stream=True)
            try:
                if response.is_redirect:
                    at = urljoin(at, response.headers.get("location", ""))
                    continue
                return await _read(url, response, max_bytes)
            finally:
                await response.aclose()
        raise _refused(url, f"it was redirected more than {_REDIRECTIONS} times")

    async def _request(self, url: str, at: str) -> httpx2.Request:
        """Return the request of an address, to the machine that its name was resolved to."""
        parts = urlsplit(at)
        host, scheme = parts.hostname, parts.scheme
        if scheme not in _PORTS or not host:
            raise _refused(url, f"{at!r} is no address of http or https")
        port = parts.port or _PORTS[scheme]
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(place[4][0]) for place in found]
        for address in addresses:
            if not self._may_call(address):
                raise _refused(url, f"{address} is not public")
        name = f"[{host}]" if ":" in host else host
        return self._client.build_request(
            "GET",
            httpx2.URL(at).copy_with(host=str(addresses[0]), username="", password=""),
            headers={
                "accept-encoding": "identity",
                "host": name if parts.port is None else f"{name}:{port}",
            },
            extensions={"sni_hostname": host},
        )

    def _may_call(self, address: _Address) -> bool:
        if any(address in network for network in self._networks):
            return True
        if isinstance(address, ipaddress.IPv6Address):
            inner = address.ipv4_mapped or address.sixtofour
            if inner is not None:
                return self._may_call(inner)
            if address.teredo is not None:
                return False
        if any(address in network for network in _NOT_PUBLIC):
            return False
        return address.is_global and not address.is_multicast


async def _read(url: str, response: httpx2.Response, max_bytes: int) -> FetchedFile:
    if response.status_code != _OK:
        raise _refused(url, f"its server answered {response.status_code}")
    # A compressed file may unpack to a thousand times its size.
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _refused(url, "its server packed it")
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > max_bytes:
            raise _too_large(url, max_bytes)
    stated = response.headers.get("content-type", "").partition(";")[0].strip()
    return FetchedFile(bytes(data), stated or None)


def _refused(url: str, why: str) -> ModelError:
    return refusal(f"the file {url} is not fetched: {why}")


def _too_large(url: str, max_bytes: int) -> ModelError:
    return _refused(url, f"the files have more than {max_bytes:,} bytes (max_bytes)")


async def with_files(
    asked: ClientRequest,
    upstream: Upstream,
    fetcher: FileFetcher,
    *,
    request: Request | None = None,
) -> ClientRequest:
    """Return a request with the bytes of files that an upstream would leave out.

    >>> from deltafold.gateway import FileFetcher, with_files
    >>> table = ModelTable({"m": "ollama/llava"})
    >>> asked = read_request("openai-chat", b'{"model":"m","messages":[]}')
    >>> async with FileFetcher() as fetcher:
    ...     asked = await with_files(asked, table.find("m"), fetcher)

    Args:
        asked: the request.
        upstream: the first of the upstreams that may be called.
        fetcher: fetches the files.
        request: the client's request, whose body was read; fetching ends when its client leaves.

    Raises:
        ModelError: a file cannot or must not be fetched, or there are too many; its status is 400.
            The status is 499 if the client has left.
    """
    missing = _missing(asked, upstream, fetcher.max_files)
    if not missing:
        return asked
    fetching = _fetched(missing, fetcher)
    fetched = await (fetching if request is None else unless_left(fetching, request.receive))
    if fetched is None:
        raise refusal("the client has left", ErrorCode.CANCELLED, 499)
    messages = tuple(
        message.model_copy(update={"parts": [_filled(part, fetched) for part in message.parts]})
        for message in asked.messages
    )
    return replace(asked, parsed=replace(asked.parsed, messages=messages))


def _missing(asked: ClientRequest, upstream: Upstream, max_files: int) -> list[str]:
    """Return the addresses of the files that an upstream would leave out, each once."""
    given = asked.messages
    messages = given.not_plain() if isinstance(given, OutlinedMessages) else given
    files = {_address_of(part): part for part in _parts(messages) if _address_of(part)}
    missing: list[str] = []
    for url, part in files.items():
        if not _is_left_out(part, asked, upstream):
            continue
        if len(missing) == max_files:
            raise refusal(
                f"the request names more than {max_files:,} files (max_files) by addresses that "
                "this gateway would fetch; send the bytes of the files"
            )
        missing.append(url)
    return missing


async def _fetched(urls: Sequence[str], fetcher: FileFetcher) -> dict[str, FetchedFile]:
    """Fetch files, a few at a time, within the bounds of all files of a request."""
    fetched: dict[str, FetchedFile] = {}
    left = fetcher.max_bytes
    try:
        async with asyncio.timeout(fetcher.max_total_seconds):
            for begin in range(0, len(urls), _AT_ONCE):
                some = urls[begin : begin + _AT_ONCE]
                for url, file in zip(some, await _at_once(some, fetcher, left), strict=True):
                    fetched[url] = file
                    left -= len(file.data)
                if left <= 0:
                    raise _too_large(some[-1], fetcher.max_bytes)
    except TimeoutError as error:
        raise _refused(
            urls[len(fetched)],
            f"all files of the request took more than {fetcher.max_total_seconds:g} s "
            "(max_total_seconds)",
        ) from error
    return fetched


async def _at_once(urls: Sequence[str], fetcher: FileFetcher, max_bytes: int) -> list[FetchedFile]:
    """Fetch files together; a failure ends the others."""
    tasks = [asyncio.ensure_future(fetcher.fetch(url, max_bytes=max_bytes)) for url in urls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _parts(messages: Sequence[Message]) -> Iterator[object]:
    for message in messages:
        for part in message.parts:
            yield part
            if isinstance(part, ToolResultPart) and isinstance(part.content, list):
                yield from part.content


def _address_of(part: object) -> str:
    """Return the address of http or https of a file, "" for everything else."""
    if not isinstance(part, ImagePart | FileRefPart):
        return ""
    address = (part.url or "") if isinstance(part, ImagePart) else part.path
    return address if address.lower().startswith(("http://", "https://")) else ""


def _is_left_out(part: object, asked: ClientRequest, upstream: Upstream | None) -> bool:
    """Return whether an upstream, or one that is called after it, cannot take the address."""
    if not isinstance(part, ImagePart | FileRefPart):
        return False
    while upstream is not None:
        dialect = upstream.model.dialect
        config = migrate_config(asked.parsed, dialect, model_id=upstream.model_id).config
        rendered = dialect_of(dialect).render([Message.user(part)], [], config, stream=False)
        if any(note["code"] == "part_replaced" for note in rendered.notes):
            return True
        upstream = upstream.fallback
    return False


def _filled(part: _PartT, fetched: Mapping[str, FetchedFile]) -> _PartT:
    """Return a part with the bytes of its file, or of the files in it."""
    if isinstance(part, ToolResultPart) and isinstance(part.content, list):
        content = [_filled(one, fetched) for one in part.content]
        return part.model_copy(update={"content": content})
    file = fetched.get(_address_of(part))
    if file is None:
        return part
    data = base64.b64encode(file.data).decode()
    if isinstance(part, ImagePart):
        stated = file.mime_type or ""
        kind = stated if stated.startswith("image/") else part.mime_type
        return part.model_copy(update={"data": data, "url": None, "mime_type": kind})
    if isinstance(part, FileRefPart):
        kind = part.mime_type or file.mime_type or "application/octet-stream"
        name = quote(PurePosixPath(urlsplit(part.path).path).name)
        path = f"data:{kind};name={name};base64,{data}" if name else f"data:{kind};base64,{data}"
        return part.model_copy(update={"path": path, "mime_type": kind})
    return part
