"""Output of curl: a response below its head, or between the lines of a trace.

In: what `curl -i` or `curl -v` printed.  Out: the responses with status and headers; of a
trace also the address.

Laws: heads of redirects, of proxies and of `100 Continue` are skipped. Lines of the request are
never kept, because they have its credentials. curl has undone the chunks of the transfer.
Source: curl(1), and `src/tool_cb_dbg.c` and `src/tool_progress.c` of curl.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader, BytesIO
from typing import Any, Final, cast

from deltafold.testing.content_encoding import unpacked

_STATUS: Final = re.compile(rb"HTTP/[0-9](?:\.[0-9])? ([1-5][0-9][0-9])(?: ([^\r\n]*))?\r?\n?")
_REQUEST: Final = re.compile(rb"> [A-Z]+ (\S+) HTTP/")
_HOST: Final = re.compile(rb"> (?:host|:authority): *(\S+)", re.IGNORECASE)
_LINE_BYTES: Final = 64 << 10
_HEADERS: Final = 1_000
_NOTE_BYTES: Final = 1_000
# After one of these curl sends the request again with credentials, and prints the next head.
_INTERIM: Final = frozenset({401, 407})

_AMOUNT: Final = rb" {1,8}[0-9.]{1,7}[kMGTP]?"
_TIME: Final = rb" {1,8}(?:--:--:--|[0-9]{1,3}:[0-9]{2}:[0-9]{2}|[0-9]{1,3}d [0-9]{2}h)"
_METER: Final = re.compile(
    rb"\r? {0,3}[0-9]{1,3}" + _AMOUNT * 7 + _TIME * 3 + _AMOUNT + rb"\r?(?:\n(?=[*<>{}] |\r|$))?"
)
_METER_HEAD: Final = re.compile(rb"^ +(?:% Total|Dload) [^\n]*\n", re.MULTILINE)
_AMOUNT_OF_DATA: Final = re.compile(rb"[{}] \[[0-9]+ bytes data\]\r?\n")
# A body that ends without a line end has the next line of the trace behind it, in the same line.
# The text of a model that looks like such a line is inside of JSON: a quotation mark follows it.
_NOTE: Final = re.compile(
    rb"\* (?:Connection #[0-9]|[Cc]losing connection|shutting down|transfer closed|HTTP/[23] stream"
    rb"|Recv failure|OpenSSL|Operation timed out|Failed|Leftovers|TLSv1|Illegal or missing)"
    rb"[^\n\"{}]{0,300}\n"
)
_CURL_ERROR: Final = re.compile(rb"curl: \([0-9]{1,3}\) [^\n\"]*\n?\Z")
_TRACE_BEGIN: Final = re.compile(rb"(?:[*<>{}] |[<>]\r?\n| +% Total |Note: |Warning: )")
_TRACE_STATUS: Final = re.compile(rb"^(?:< )?HTTP/[0-9](?:\.[0-9])? [1-5][0-9][0-9]", re.MULTILINE)


@dataclass(slots=True)
class Response:
    """A response as curl printed it."""

    status: int
    headers: dict[str, str] = field(default_factory=dict[str, str])
    url: str | None = None
    reason: bytes = b""
    body: bytes = b""

    @property
    def is_interim(self) -> bool:
        """Whether the head of another response follows."""
        is_tunnel = self.reason.lower().startswith(b"connection established")
        return self.status // 100 in {1, 3} or self.status in _INTERIM or is_tunnel


def has_head(head: bytes) -> bool:
    """Return whether the first bytes are the head of a response."""
    return _STATUS.match(head) is not None


def is_trace(head: bytes) -> bool:
    """Return whether the first bytes are a trace with a response."""
    return _TRACE_BEGIN.match(head) is not None and _TRACE_STATUS.search(head) is not None


def read_head(reader: BufferedReader) -> Response:
    """Read the heads before a body; the reader is then at the rest of the body.

    The `body` of the result has what was read of it.

    Raises:
        ValueError: there is no head, or it is too long.
    """
    response: Response | None = None
    line = reader.readline(_LINE_BYTES)
    while found := _STATUS.fullmatch(line):
        response = Response(int(found[1]), reason=found[2] or b"")
        _read_headers(reader, response)
        if not response.is_interim:
            return response
        line = reader.readline(_LINE_BYTES)
    if response is None:
        raise ValueError("there is no status line of HTTP")
    response.body = line
    return response


def _read_headers(reader: BufferedReader, response: Response) -> None:
    for _ in range(_HEADERS):
        line = reader.readline(_LINE_BYTES)
        if not line.strip():
            return
        _add_header(response, line)
    raise ValueError(f"the head of the response has more than {_HEADERS} lines")


def _add_header(response: Response, line: bytes) -> None:
    name, _, value = line.decode("latin-1").partition(":")
    response.headers[name.strip().lower()] = value.strip()


def without_encoding(body: bytes, headers: dict[str, str]) -> bytes:
    """Return the body of `curl -i`: without its last note, and without content encoding."""
    begin = max(len(body) - _NOTE_BYTES, 0)
    error = _CURL_ERROR.search(body, begin)
    body = body if error is None else body[: error.start()]
    return unpacked(body, headers.get("content-encoding", ""))


def responses_of(trace: bytes) -> list[Response]:
    """Return the responses of a trace that have a body; the last one may have none.

    Raises:
        ValueError: there is no response, or its content encoding is damaged.
    """
    for noise in (_METER_HEAD, _METER, _AMOUNT_OF_DATA):
        trace = noise.sub(b"", trace)
    found = list(_split(trace))
    if not found:
        raise ValueError("the trace has no response")
    last = found[-1]
    kept = [each for each in found if each.body or (each is last and not each.is_interim)]
    for each in kept:
        each.body = without_encoding(each.body, each.headers)
    return kept


def _split(trace: bytes) -> Iterator[Response]:
    response: Response | None = None
    path, host = "", ""
    body: list[bytes] = []
    is_head = False
    for line in iter(cast("Any", BytesIO(trace))):
        mark = line[:2].rstrip()
        if mark == b">":
            request, named = _REQUEST.match(line), _HOST.match(line)
            path = request[1].decode("latin-1") if request else path
            host = named[1].decode("latin-1") if named else host
        elif mark == b"<" and line[1:2] in {b" ", b"\r", b"\n", b""}:
            status = _STATUS.match(line[2:])
            if status is not None:
                if response is not None:
                    yield _with_body(response, body)
                url = f"https://{host}{path}" if host and path.startswith("/") else None
                response = Response(int(status[1]), url=url, reason=status[2] or b"")
                body, is_head = [], True
            elif response is not None and is_head and line[2:].strip():
                _add_header(response, line[2:])
            else:
                is_head = False
        elif not line.startswith(b"* "):
            note = _NOTE.search(line)
            body.append(line if note is None else line[: note.start()])
    if response is not None:
        yield _with_body(response, body)
    elif body and has_head(body[0]):
        yield _with_body(Response(200), body)


def _with_body(response: Response, body: list[bytes]) -> Response:
    response.body = b"".join(body)
    if has_head(response.body):  # of `-i` beside `-v`
        reader = BufferedReader(cast("Any", BytesIO(response.body)))
        printed = read_head(reader)
        printed.url, printed.body = response.url, printed.body + reader.read()
        return printed
    return response
