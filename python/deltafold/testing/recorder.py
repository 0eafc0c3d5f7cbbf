"""Recorder of the responses of a client.

In: the responses of a client or transport.  Out: the same responses, and one file for each.

Laws: the reader gets the same bytes at the same time as without a recorder. A file is written when
its response ends or is closed. The file does not identify the caller: it keeps only harmless
headers and query members of the request, leaves out response headers that name an account, and
masks a key that the response repeats, except in a binary body.
"""

import itertools
import re
import threading
import time
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

from deltafold.contract.exceptions import MisuseError
from deltafold.testing.recording import SUFFIX, Ending, RecordedRequest, Recording
from deltafold.transports.http import open_http, open_http_async
from deltafold.transports.requests import HttpRequest
from deltafold.transports.secrets import (
    HARMLESS_QUERY,
    Redactor,
    secrets_in_headers,
    secrets_in_url,
    secrets_of_client,
    secrets_of_environment,
)
from deltafold.transports.sources import AsyncSource, Source
from deltafold.transports.timeouts import is_timeout

_KEPT_REQUEST_HEADERS: Final = frozenset(
    {
        "accept",
        "anthropic-beta",
        "anthropic-version",
        "content-type",
        "openai-beta",
        "user-agent",
    }
)
_ACCOUNT_HEADER: Final = re.compile(
    r"cookie|authenticat|authoriz|api-?key|secret|organization|project|account"
)
# A body arrives decoded and unframed, so that these are not true of it.
_TRANSFER_HEADERS: Final = frozenset(
    {"connection", "content-encoding", "content-length", "transfer-encoding"}
)


class RecordingWarning(UserWarning):
    """A `Recorder` could not write its file.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter(
    ...         "error", RecordingWarning
    ...     )  # a file that cannot be written raises
    """


class Recorder:
    """Writes the responses of a client to files; a `Model` accepts it instead of the client.

    >>> model = AnthropicModel(config, client=Recorder(httpx.AsyncClient(), "recordings"))
    >>> ...
    >>> ReplayTransport(Recording.load_all("recordings"))

    The owner of the client closes it.

    Args:
        client: an HTTP client, a transport, or an SDK's client that opens responses itself.
        path: a folder, made if it is missing: one file per response, numbered after the existing
            files.  A path that ends in `.jsonl` is the file of one response.
        keep_requests: also writes the bodies of the requests, which contain the prompts.

    Attributes:
        client: the wrapped client.
    """

    def __init__(self, client: object, path: Path | str, *, keep_requests: bool = False) -> None:
        self.client: object = client
        self._path = Path(path)
        self._keep_requests = keep_requests
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        if self._path.suffix != SUFFIX:
            self._path.mkdir(parents=True, exist_ok=True)
            taken = [path.name.partition("-")[0] for path in self._path.glob(f"*{SUFFIX}")]
            self._numbers = itertools.count(
                max((int(number) for number in taken if number.isdecimal()), default=0) + 1
            )

    def open(self, request: HttpRequest) -> Source:
        """Send the request through the wrapped client, and record its response.

        Raises:
            MisuseError: the file of one response exists already; or an error of `open_http`.
        """
        take = self._take(request)
        return take.listen(open_http(self.client, request))

    async def open_async(self, request: HttpRequest) -> AsyncSource:
        """Send the request through the client inside, and listen to its response."""
        take = self._take(request)
        return take.listen_async(await open_http_async(self.client, request))

    def tap(self, source: Source, request: HttpRequest) -> Source:
        """Return a source of the same bytes that is listened to."""
        return self._take(request).listen(source)

    def tap_async(self, source: AsyncSource, request: HttpRequest) -> AsyncSource:
        """Return a source of the same bytes that is listened to."""
        return self._take(request).listen_async(source)

    def _take(self, request: HttpRequest) -> "_Take":
        with self._lock:
            number = next(self._numbers)
        path = self._path
        if path.suffix != SUFFIX:
            parts = re.findall(r"[A-Za-z0-9.]+", urlsplit(request.url).path)
            path /= f"{number:04}-{'-'.join(parts[-3:]) or 'response'}{SUFFIX}"
        elif number > 1:
            raise MisuseError(
                f"{path} is a file and holds one response; pass a folder to record several"
            )
        return _Take(path, _kept_request(request, self._keep_requests), self._secrets(request))

    def _secrets(self, request: HttpRequest) -> tuple[bytes, ...]:
        """Return the secrets of this request, which no file may contain."""
        secrets = Redactor(
            [
                *secrets_in_headers(request.headers),
                *secrets_in_url(request.full_url),
                *secrets_of_client(self.client),
                *secrets_of_environment(),
            ]
        )
        return tuple(form.encode("utf-8", "surrogatepass") for form in secrets.forms)


class _Take:
    """One response while it is recorded."""

    def __init__(self, path: Path, request: RecordedRequest, secrets: tuple[bytes, ...]) -> None:
        self._path = path
        self._request = request
        self._secrets = secrets
        self._begun = time.monotonic()
        self._pieces: list[tuple[float, bytes]] = []
        self._head = Recording(())
        self._written = False

    def listen(self, source: Source) -> Source:
        """Listen to a source."""
        self._note_head(source)

        def close() -> None:
            try:
                source.close()
            finally:
                self.write("end")

        return replace(source, chunks=_Heard(self, source.chunks), close=close)

    def listen_async(self, source: AsyncSource) -> AsyncSource:
        """Listen to a source."""
        self._note_head(source)

        async def close() -> None:
            try:
                await source.close()
            finally:
                self.write("end")

        heard = _AsyncHeard(self, source.chunks)
        # A stream does not close a body that is over, and this `close` writes the file.
        return replace(source, chunks=heard, close=close, is_over=None)

    def note(self, asked: float, chunk: bytes) -> None:
        """Note a piece, and how long it was waited for, which leaves the reader's own time out."""
        self._pieces.append((round(time.monotonic() - asked, 6), chunk))

    def failed(self, exception: Exception) -> None:
        """Note how the body broke off."""
        self.write(_ending_of(exception))

    def write(self, ending: Ending) -> None:
        """Write the file once; a reader that leaves early has recorded a body that ends there."""
        if self._written:
            return
        self._written = True
        recording = replace(self._head, pieces=tuple(self._pieces), ending=ending)
        try:
            for secret in self._secrets:
                recording = recording.starred(secret)
            recording.save(self._path)
        except (OSError, ValueError) as error:
            # The reader of the response made no mistake.
            warnings.warn(
                f"{self._path} was not written: {type(error).__name__}: {error}",
                RecordingWarning,
                stacklevel=2,
            )

    def _note_head(self, source: Source | AsyncSource) -> None:
        self._head = Recording(
            (),
            source.status,
            kept_response_headers(source.headers),
            headers_after=round(time.monotonic() - self._begun, 6),
            request=self._request,
        )


class _Heard:
    """Chunks of a body, each recorded when it is read."""

    def __init__(self, take: _Take, chunks: Iterator[bytes]) -> None:
        self._take = take
        self._chunks = chunks

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        asked = time.monotonic()
        try:
            chunk = next(self._chunks)
        except StopIteration:
            self._take.write("end")
            raise
        except Exception as exception:
            self._take.failed(exception)
            raise
        self._take.note(asked, chunk)
        return chunk


class _AsyncHeard:
    """The same, awaited."""

    def __init__(self, take: _Take, chunks: AsyncIterator[bytes]) -> None:
        self._take = take
        self._chunks = chunks

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        asked = time.monotonic()
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            self._take.write("end")
            raise
        except Exception as exception:
            self._take.failed(exception)
            raise
        self._take.note(asked, chunk)
        return chunk


def _ending_of(exception: Exception) -> Ending:
    if is_timeout(exception):
        return "stall"
    cause: BaseException | None = exception
    while cause is not None:
        # aiohttp keeps the address only in the text of its error.
        if isinstance(cause, ConnectionResetError) or "ConnectionResetError" in str(cause):
            return "reset"
        cause = cause.__cause__ or cause.__context__
    return "cut"


def _query(request: HttpRequest) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(request.full_url).query, keep_blank_values=True)


def _kept_request(request: HttpRequest, keep_body: bool) -> RecordedRequest:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return RecordedRequest(
        request.method,
        urlsplit(request.url).path,
        {name: value for name, value in _query(request) if name in HARMLESS_QUERY},
        kept_request_headers(headers),
        request.content if keep_body else None,
    )


def kept_request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the request headers that a recording keeps; names are in lower case."""
    return {name: value for name, value in headers.items() if name in _KEPT_REQUEST_HEADERS}


def kept_response_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the response headers that a recording keeps; names are in lower case."""
    return {
        name: value
        for name, value in headers.items()
        if name not in _TRANSFER_HEADERS and not _ACCOUNT_HEADER.search(name)
    }
