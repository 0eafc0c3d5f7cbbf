"""One captured response.

In: a body and what its capture tells about it.  Out: `Captured`, whose protocol is detected.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from deltafold._core import FIRST_REFUSAL, dialect_content_type
from deltafold.contract.names import ProtocolName
from deltafold.streams.bodies import detect
from deltafold.testing.recorder import kept_response_headers
from deltafold.testing.recording import Recording
from deltafold.transports.addresses import dialect_of_url
from deltafold.transports.secrets import shown_url

_SSE: Final = "text/event-stream"
_TYPE: Final = "content-type"


@dataclass(frozen=True, slots=True)
class Captured:
    """One response of a capture.

    >>> (captured,) = deltafold.read_capture("recording.sse")
    >>> captured.place, captured.dialect, captured.status
    ('recording.sse', 'openai-chat', 200)

    Attributes:
        body: the bytes that a client reads: content encoding, chunks and prefixes are undone.
        place: the file, the member of an archive, and the number in it, counted from 1; the command
            line takes it as the name of the response.
        dialect: the protocol, by the address or the body; None if neither tells it.
        url: the address without its user and query; None if the capture does not have it.
        status: the HTTP status; 200 if the capture does not have it.
        headers: response headers without those of the transfer and of an account.
        is_batched: the request was one of a batch.
        recording: the recording, if the capture has the times of the pieces.
    """

    body: bytes
    place: str
    dialect: ProtocolName | None = None
    url: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    is_batched: bool = False
    recording: Recording | None = None

    def as_recording(self) -> Recording:
        """Return the response as a recording: one piece an event of SSE, without pauses.

        >>> captured.as_recording().body == captured.body
        True
        """
        if self.recording is not None:
            return self.recording
        own = None if self.dialect is None else dialect_content_type(self.dialect)
        kind = self.headers.get(_TYPE) or own or _SSE
        if kind.partition(";")[0].strip() == _SSE:
            recording = Recording.of_events(self.body)
        else:
            recording = Recording.of(self.body, content_type=kind)
        return replace(recording, status=self.status, headers={_TYPE: kind, **self.headers})

    def __str__(self) -> str:
        parts = (self.place, str(self.status), self.dialect or "unknown protocol", self.url)
        return " ".join(part for part in parts if part)


def captured(
    body: bytes,
    place: str,
    *,
    url: str | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Captured:
    """Return a response whose protocol is that of its body, or else of its address."""
    given = headers or {}
    found = detect(body, given.get(_TYPE))
    dialect = found.dialect
    if dialect is None and url is not None:
        dialect = dialect_of_url(url)
    if dialect is None and status >= FIRST_REFUSAL and found.candidates:
        dialect = found.candidates[0]  # the status tells the failure, whose form they share
    address = None if url is None else shown_url(url)
    return Captured(body, place, dialect, address, status, kept_response_headers(given))
