"""Sources of images and files, independent of the kind of part.

In: image and file parts.  Out: their source: data, an address, or an id of a provider's file store.

Law: nothing is read from disk or network here; `FileRefPart.from_file` does that beforehand.
Source: RFC 4648, parts 4 and 5, for base64.
RFC 2397 for `data:` URLs; their parameter `name` is the name of the file.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote, unquote_to_bytes

from deltafold.contract.exceptions import MisuseError
from deltafold.message.messages import FileRefPart, ImagePart

_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)
_OTHER_SCHEME: Final = re.compile(r"(?!file:)[a-zA-Z][a-zA-Z0-9+.-]+://")
_TO_STANDARD: Final = str.maketrans("-_", "+/")
_GIVEN_ID: Final = re.compile(r"(files/)?[A-Za-z0-9_-]+={0,2}")


@dataclass(frozen=True, slots=True)
class Source:
    """Location of the bytes of an image or a file.

    Attributes:
        kind: `data` is base64 text; `url` is http(s); `uri` is another address (`gs://`, `s3://`);
            `id` is an id of a provider's file store.
        value: the data, address or id.
        name: name of the file, if it is known.
    """

    kind: Literal["data", "url", "uri", "id"]
    value: str
    mime_type: str | None
    name: str | None = None

    @property
    def is_image(self) -> bool:
        """Whether the MIME type is an image type."""
        return (self.mime_type or "").startswith("image/")

    @property
    def subtype(self) -> str:
        """Subtype of the MIME type, "" if it is unknown."""
        return (self.mime_type or "").partition("/")[2]

    @property
    def data_url(self) -> str:
        """The data as an address that holds it."""
        return f"data:{self.mime_type or 'application/octet-stream'};base64,{self.value}"

    @property
    def text(self) -> str | None:
        """Data of a text file, None for other files."""
        if self.kind != "data" or not (self.mime_type or "").startswith("text/"):
            return None
        try:
            return base64.b64decode(self.value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None

    @property
    def shown(self) -> str:
        """Text that replaces the file where it cannot be sent."""
        what = self.name or (self.mime_type if self.kind == "data" else self.value) or "file"
        return f"[{what} left out: it cannot be sent here]"


def source_of(part: ImagePart | FileRefPart) -> Source:
    """Return where an image or a file comes from.

    Raises:
        MisuseError: the part names a local file, which must be read first.
    """
    if isinstance(part, ImagePart):
        if part.data is not None:
            return Source("data", standard_base64(part.data), part.mime_type)
        address = part.url or ""
    else:
        address = part.path
    if address.startswith("data:"):
        return _of_data_url(address, part.mime_type)
    if _ADDRESS.match(address):
        return Source("url", address, part.mime_type)
    if _OTHER_SCHEME.match(address):
        return Source("uri", address, part.mime_type)
    if _GIVEN_ID.fullmatch(address):
        return Source("id", address, part.mime_type)
    maker = "ImagePart.from_file" if isinstance(part, ImagePart) else "FileRefPart.from_file"
    raise MisuseError(f"{address!r} is a local file: read it with {maker}({address!r})")


def has_source(part: ImagePart | FileRefPart) -> bool:
    """Return whether a part has data, an address or an id; a parsed request may have other text."""
    try:
        source_of(part)
    except MisuseError:
        return False
    return True


def standard_base64(data: str) -> str:
    """Return base64 in the standard alphabet and with its padding.

    Gemini also takes the alphabet for addresses, and data without padding; other providers do not.
    """
    if "-" in data or "_" in data:
        data = data.translate(_TO_STANDARD)
    missing = -len(data) % 4
    # A rest of one character, padding and line ends leave nothing to pad.
    if missing in {0, 3} or data.endswith("=") or any(space in data for space in "\n\r "):
        return data
    return data + "=" * missing


def _of_data_url(address: str, mime_type: str | None) -> Source:
    head, _, data = address[len("data:") :].partition(",")
    stated, *parameters = head.split(";")
    pairs = [parameter.partition("=") for parameter in parameters]
    values = {key: value for key, _, value in pairs}
    if "base64" not in values:
        data = base64.b64encode(unquote_to_bytes(data)).decode()
    name = unquote(values.get("name", "")) or None
    return Source("data", standard_base64(data), mime_type or stated or "text/plain", name)
