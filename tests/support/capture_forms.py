"""Bodies in the forms in which other programs keep them.

In: a body.  Out: the bytes of a capture with this one answer.
"""

import base64
import gzip
import io
import json
from collections.abc import Callable
from typing import Any, Final

SECRET: Final = "sk-secret-of-the-request"
URL: Final = "https://api.example.com/v1/chat/completions"

Form = Callable[[bytes], bytes]


def har_entry(
    content: dict[str, Any], url: str = URL, status: int = 200, method: str = "POST"
) -> dict[str, Any]:
    sent = [{"name": "Authorization", "value": f"Bearer {SECRET}"}]
    received = [{"name": "Content-Type", "value": "text/event-stream"}]
    return {
        "startedDateTime": "2026-11-27T10:00:00.000Z",
        "request": {"method": method, "url": f"{url}?key={SECRET}", "headers": sent},
        "response": {"status": status, "headers": received, "content": content},
    }


def har_of(*entries: dict[str, Any]) -> bytes:
    log = {"version": "1.2", "creator": {"name": "browser", "version": "1"}, "entries": entries}
    return json.dumps({"log": log}).encode()


def in_har(body: bytes) -> bytes:
    page = har_entry({"text": "<html></html>"}, "https://app.example.com/")
    return har_of(page, har_entry({"text": body.decode()}))


def in_har_base64(body: bytes) -> bytes:
    return har_of(har_entry({"text": base64.b64encode(body).decode(), "encoding": "base64"}))


def below_head(body: bytes) -> bytes:
    return b"HTTP/2 200 \r\ncontent-type: text/event-stream\r\n\r\n" + body


def below_heads(body: bytes) -> bytes:
    tunnel = b"HTTP/1.1 200 Connection established\r\n\r\n"
    moved = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /v1\r\n\r\n"
    last = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return tunnel + moved + b"HTTP/1.1 100 Continue\r\n\r\n" + last + body


def in_trace(body: bytes) -> bytes:
    sent = (
        f"> POST /v1/chat/completions HTTP/2\n> Host: api.example.com\n> authorization: {SECRET}\n"
    )
    return sent.encode() + b"> \n< HTTP/2 200 \n< content-type: text/event-stream\n< \n" + body


METER: Final = (
    b"  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
    b"                                 Dload  Upload   Total   Spent    Left  Speed\n"
)


def meter(mark: bytes) -> bytes:
    at = b"100  1369    0  1275  100    94   1034     76  0:00:01  0:00:01 --:--:--  1111"
    return b"\r" + at + mark + b" [1369 bytes data]\n"


def in_trace_of_a_file(body: bytes) -> bytes:
    """Write what `curl -v URL > FILE 2>&1` writes: chunks end inside of lines."""
    half = len(body) // 2
    begin = b"* Host api.example.com:443 was resolved.\n*   Trying 192.0.2.1:443...\n" + METER
    idle = b"\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"
    sent = "* Connected\n> POST /v1/chat/completions HTTP/2\r\n> Host: api.example.com\r\n"
    head = f"> Authorization: Bearer {SECRET}\r\n> \r\n".encode()
    answered = b"{ [15 bytes data]\n< HTTP/2 200 \r\n< content-type: text/event-stream\r\n< \r\n"
    end = b"\r100  1369    0  1275  100    94   1034     76  0:00:01  0:00:01 --:--:--  1111\n"
    pieces = [begin, idle, sent.encode(), head, meter(b"}"), answered, b"{ [5 bytes data]\n"]
    pieces += [body[:half], meter(b"{"), body[half:], end]
    return b"".join([*pieces, b"* Connection #0 to host api.example.com left intact\n"])


def _lines(prefix: Callable[[int], str]) -> Form:
    def form(body: bytes) -> bytes:
        out: list[bytes] = []
        for number, line in enumerate(io.BytesIO(body)):
            own = prefix(number).encode()
            # Some programs cut the white space at the end of a line.
            out.append(own + line if line.strip() or number % 2 else own.rstrip() + line)
        return b"".join(out)

    return form


def as_string(body: bytes) -> bytes:
    return json.dumps(body.decode()).encode()


def as_row(body: bytes) -> bytes:
    return json.dumps({"id": 1, "prompt": "data: x", "body": body.decode()}).encode() + b"\n"


def in_document(body: bytes) -> bytes:
    asked = json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}]})
    document = {"request": {"body": asked}, "response": {"status": 200, "body": body.decode()}}
    return json.dumps(document, indent=1).encode()


def _rows(members: Callable[[str], dict[str, str]]) -> Form:
    def form(body: bytes) -> bytes:
        rows = (members(line.decode()) for line in io.BytesIO(body))
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    return form


def in_cassette(body: bytes) -> bytes:
    request = {"method": "POST", "uri": URL, "body": "{}", "headers": {"authorization": [SECRET]}}
    response = {
        "status": {"code": 200, "message": "OK"},
        "headers": {"content-type": ["text/event-stream"]},
        "body": {"string": body.decode()},
    }
    interaction = {"request": request, "response": response}
    return json.dumps({"version": 1, "interactions": [interaction]}).encode()


EXACT: Final[dict[str, Form]] = {
    "gzip": gzip.compress,
    "two gzips": lambda body: gzip.compress(gzip.compress(body)),
    "har": in_har,
    "har.gz": lambda body: gzip.compress(in_har(body)),
    "har base64": in_har_base64,
    "curl -i": below_head,
    "curl -i redirected": below_heads,
    "curl -v": in_trace,
    "curl -v in a file": in_trace_of_a_file,
    "curl -i -v": lambda body: in_trace(below_head(body)),
    "string": as_string,
    "row": as_row,
    "document": in_document,
    "cassette": in_cassette,
}
"""Forms that keep each byte."""

LINES: Final[dict[str, Form]] = {
    "docker -t": _lines(lambda number: f"2026-11-27T10:00:00.{number:03}000000Z "),
    "kubectl": _lines(
        lambda number: f"[pod/web-7f/app] 2026-11-27T10:00:{number % 60:02}.{number}Z "
    ),
    "syslog": _lines(lambda number: f"Nov  7 10:00:{number % 60:02} host app[{number}]: "),
    "journald": _lines(lambda number: f"2026-11-27T10:00:{number % 60:02}+0000 host app[12]: "),
    "compose": _lines(lambda _: "web-1  | "),
    "cri": _lines(lambda number: f"2026-11-27T10:00:00.{number}Z stdout F "),
    "logging": _lines(lambda number: f"2026-11-27 10:00:00,{number:03} DEBUG app.client: "),
    "docker json": _rows(lambda line: {"log": line, "stream": "stdout", "time": "2026"}),
    "journald json": _rows(lambda line: {"MESSAGE": line.rstrip("\n"), "_PID": "12"}),
}
"""Forms of lines, which may keep a line end that the body does not have."""
