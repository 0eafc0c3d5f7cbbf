"""Cassettes of VCR as recordings.

In: a file of vcrpy (YAML or JSON), of pytest-recording, of Ruby's VCR, of betamax or of go-vcr.
Out: one `Recording` per interaction, in the order of the file.

Laws: a body has the bytes that a client reads, without content encoding. The request keeps what a
`Recorder` keeps, and its body. Secrets of the request are masked wherever the interaction repeats
them, except in binary bodies. A file is hostile input: it constructs no objects, and its size and
its bodies are bounded.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast
from urllib.parse import parse_qsl, urlsplit

from deltafold.testing.content_encoding import unpacked
from deltafold.testing.recorder import kept_request_headers, kept_response_headers
from deltafold.testing.recording import RecordedRequest, Recording, is_binary
from deltafold.testing.safe_yaml import read_yaml
from deltafold.transports.secrets import (
    HARMLESS_QUERY,
    Redactor,
    secrets_in_headers,
    secrets_in_url,
)

_MAX_FILE_BYTES: Final = 64 * 1024 * 1024
_MAX_PARSED_VALUES: Final = 1_000_000
_INTERACTIONS: Final = ("interactions", "http_interactions")
# Request headers whose values are ordinary words.
_ORDINARY_HEADERS: Final = frozenset(
    {"accept-charset", "accept-language", "cache-control", "pragma", "te", "transfer-encoding"}
)
_STATUS: Final = re.compile(r"[1-5][0-9][0-9]")
_EVENT_END: Final = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")
_LINE_END: Final = re.compile(rb"(?<=\n)")

_Members = Mapping[object, object]


def load_cassette(path: Path | str) -> list[Recording]:
    """Read a cassette of VCR: one recording per interaction, in their order.

    A list of recordings answers the requests of a replay in their order:

    >>> transport = ReplayTransport(load_cassette("cassettes/test_weather.yaml"))
    >>> model = AnthropicModel({"model_id": "claude-demo"}, client=transport)

    A stream is one piece per event, without pauses, because a cassette does not contain them.
    YAML needs the extra `testing`, and so does a body in the encoding `br`.

    Args:
        path: a cassette of vcrpy, pytest-recording, Ruby's VCR, betamax or go-vcr.

    Raises:
        MisuseError: a package that reads the file is not installed.
        ValueError: the file is not a cassette; the message names the interaction.
    """
    path = Path(path)
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise ValueError(f"{path}: larger than {_MAX_FILE_BYTES} bytes")
    return cassette_of(path.read_bytes(), str(path))


def cassette_of(content: bytes, path: str) -> list[Recording]:
    """Read the bytes of a cassette; see `load_cassette`. `path` names it in errors."""
    try:
        interactions = _interactions(content.decode("utf-8-sig"))
    except (RecursionError, ValueError) as wrong:
        raise ValueError(f"{path}: not a cassette: {wrong}") from wrong
    recordings: list[Recording] = []
    for number, interaction in enumerate(interactions, 1):
        try:
            recordings.append(_recording(_members(interaction, "the interaction")))
        except (RecursionError, ValueError) as wrong:
            raise ValueError(f"{path}, interaction {number}: {wrong}") from wrong
    return recordings


def _interactions(text: str) -> list[object]:
    # JSON is YAML, but its parser is faster and needs no package.
    cassette: object
    try:
        cassette = json.loads(text)
    except ValueError:
        cassette = read_yaml(text)
    members = _members(cassette, "the file")
    for name in _INTERACTIONS:
        found = members.get(name)
        if isinstance(found, list):
            return cast("list[object]", found)
    raise ValueError(f"it has no list {' or '.join(map(repr, _INTERACTIONS))}")


def _recording(interaction: _Members) -> Recording:
    request = _members(interaction.get("request"), "'request'")
    response = _members(interaction.get("response"), "'response'")
    url = request.get("uri", request.get("url"))
    if not isinstance(url, str):
        raise _not_a("'uri' of the request", "text")
    parts = urlsplit(url)
    sent = _headers(request.get("headers"))
    received = _headers(response.get("headers"))
    body = unpacked(_body(response), received.get("content-encoding", ""))
    unordinary = {name: value for name, value in sent.items() if name not in _ORDINARY_HEADERS}
    secrets = Redactor([*secrets_in_headers(unordinary), *secrets_in_url(url)])
    asked = unpacked(_body(request), sent.get("content-encoding", ""))
    if not is_binary(asked, sent.get("content-type", "")):
        asked = secrets.content(asked)
    query = parse_qsl(parts.query, keep_blank_values=True)
    recording = Recording(
        tuple((0.0, piece) for piece in _pieces(body, received.get("content-type", ""))),
        _status(response),
        kept_response_headers(received),
        request=RecordedRequest(
            str(request.get("method", "GET")).upper(),
            parts.path,
            {name: value for name, value in query if name in HARMLESS_QUERY},
            kept_request_headers(sent),
            asked or None,
        ),
    )
    for form in secrets.forms:
        recording = recording.starred(form.encode("utf-8", "surrogatepass"))
    return recording


def _not_a(what: str, kind: str) -> ValueError:
    return ValueError(f"{what} is not a {kind}")


def _members(value: object, what: str) -> _Members:
    if not isinstance(value, dict):
        raise _not_a(what, "mapping")
    return cast("_Members", value)


def _headers(value: object) -> dict[str, str]:
    """Return headers with lower-case names; several values of a name are joined."""
    headers: dict[str, str] = {}
    if isinstance(value, dict):
        for name, given in cast("_Members", value).items():
            values = cast("list[object]", given) if isinstance(given, list) else [given]
            texts = [_text(each) for each in values if isinstance(each, str | bytes | int | float)]
            headers[_text(name).lower()] = ", ".join(texts)
    return headers


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _status(response: _Members) -> int:
    """Return the status: a number, `200 OK`, or a mapping with `code`.

    vcrpy before version 7 wrote `status_code`, and `content` for the body, for a client of httpx.
    """
    status = response.get("status")
    if isinstance(status, dict):
        status = cast("_Members", status).get("code")
    status = response.get("status_code", status)
    found = _STATUS.match(str(response.get("code", status)))
    if found is None:
        raise ValueError(f"the status {status!r} is not an HTTP status")
    return int(found[0])


def _body(message: _Members) -> bytes:
    """Return the body of a request or of a response, as it was recorded."""
    if "parsed_body" in message:  # some serializers write JSON bodies as YAML
        return _json_of(message["parsed_body"])
    body = message.get("body", message.get("content"))
    if not isinstance(body, dict):
        return _bytes(body)
    members = cast("_Members", body)
    packed = members.get("base64_string")
    if packed is not None:
        try:
            return base64.b64decode("".join(_text(packed).split()), validate=True)
        except binascii.Error as wrong:
            raise ValueError(f"'base64_string' is not base64: {wrong}") from wrong
    return _bytes(members.get("string"), str(members.get("encoding") or "utf-8"))


def _bytes(content: object, encoding: str = "utf-8") -> bytes:
    if content is None:
        return b""
    if isinstance(content, bytes):
        return content
    if not isinstance(content, str):
        raise _not_a("the body", "text")
    try:
        return content.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        # Ruby's `ASCII-8BIT` means bytes, and a text that its encoding cannot hold is UTF-8.
        return content.encode("utf-8", "surrogateescape")


def _json_of(value: object) -> bytes:
    """Write a parsed body as JSON, bounded: an alias may repeat a value many times."""
    left = _MAX_PARSED_VALUES
    waiting = [value]
    while waiting:
        one = waiting.pop()
        left -= 1
        if left < 0:
            raise ValueError(f"'parsed_body' has more than {_MAX_PARSED_VALUES} values")
        if isinstance(one, dict):
            waiting.extend(cast("_Members", one).values())
        elif isinstance(one, list):
            waiting.extend(cast("list[object]", one))
        elif isinstance(one, bytes):
            raise _not_a("binary data in 'parsed_body'", "JSON value")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _pieces(body: bytes, content_type: str) -> list[bytes]:
    """Return the body in pieces: one an event of SSE, one a line of JSON lines, else the whole."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        pieces = _EVENT_END.split(body)
    elif kind.endswith(("ndjson", "jsonl", "json-seq")):
        pieces = _LINE_END.split(body)
    else:
        pieces = [body]
    return [piece for piece in pieces if piece]
