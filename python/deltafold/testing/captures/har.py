"""HTTP Archives: responses that a browser, a proxy or a test runner kept.

In: the parsed file.  Out: its answers of models, with their number among all entries.

Laws: an entry is an answer if its body or its address tells a protocol. Other entries are left out.
Source: HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/), sections entries and content.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Final, cast

from deltafold._core import FIRST_REFUSAL
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.foreign_text import well_formed
from deltafold.contract.kinds import json_object
from deltafold.streams.bodies import detect
from deltafold.testing.captures.captured import Captured, captured
from deltafold.testing.content_encoding import unpacked
from deltafold.transports.secrets import shown_url

_STATUS_OK: Final = 200


def entries_of(document: Mapping[str, object]) -> list[object] | None:
    """Return the entries of an archive; None if the document is none."""
    entries = (json_object(document.get("log")) or {}).get("entries")
    return cast("list[object]", entries) if isinstance(entries, list) else None


def answers_of(entries: list[object], name: str) -> Iterator[Captured]:
    """Yield the answers.

    Raises:
        MisuseError: no entry is an answer of a model, or all of them lack their content.
        ValueError: the content of an entry is damaged.
    """
    found, without = 0, ""
    for number, entry in enumerate(entries, 1):
        members = json_object(entry) or {}
        request = json_object(members.get("request")) or {}
        response = json_object(members.get("response")) or {}
        content = json_object(response.get("content")) or {}
        place, url = f"{name}#{number}", str(request.get("url") or "")
        if request.get("method") == "OPTIONS":  # a browser asks whether it may send the request
            continue
        status = response.get("status")
        status = status if isinstance(status, int) and status > 0 else _STATUS_OK
        one = captured(
            _body(content, response, place),
            place,
            url=url,
            status=status,
            headers=_headers(response),
        )
        if one.dialect is None:
            continue
        if not one.body and "text" not in content and status < FIRST_REFUSAL:
            without = without or f"{place} ({status} {shown_url(url)})"
            continue
        found += 1
        yield one
    if without and not found:
        raise MisuseError(
            f"{without}: the archive has no content of this response; save it with content"
        )
    if not found:
        raise MisuseError(f"{name}: none of the {len(entries)} entries is an answer of a model")


def _body(content: Mapping[str, object], response: Mapping[str, object], place: str) -> bytes:
    text = content.get("text")
    if not isinstance(text, str):
        return b""
    if content.get("encoding") != "base64":
        return well_formed(text).encode()
    try:
        body = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise ValueError(f"{place}: the content is not base64: {wrong}") from wrong
    # Most programs undo the content encoding, and keep its header.
    if detect(body).candidates:
        return body
    return unpacked(body, _headers(response).get("content-encoding", ""))


def _headers(response: Mapping[str, object]) -> dict[str, str]:
    headers: dict[str, str] = {}
    listed = response.get("headers")
    for each in cast("list[object]", listed) if isinstance(listed, list) else []:
        header = json_object(each) or {}
        headers[str(header.get("name")).lower()] = str(header.get("value"))
    kind = (json_object(response.get("content")) or {}).get("mimeType")
    if isinstance(kind, str):
        headers.setdefault("content-type", kind)
    return headers
