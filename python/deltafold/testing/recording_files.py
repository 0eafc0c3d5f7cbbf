"""Files of recorded responses: a `Recording` that was saved, or the body alone.

In: the content of a file, and its name.  Out: the recording and its dialect.

Laws: a file that `Recording.save` wrote is known by its first bytes. The dialect is the given one,
else the beginning of the file's name, else it is detected.
"""

from pathlib import PurePath
from typing import Final

from deltafold._core import dialect_content_type, dialect_names
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import ProtocolName
from deltafold.streams.bodies import detect
from deltafold.testing.no_body import no_body
from deltafold.testing.recording import Recording

HEAD: Final = b'{"recording"'
"""Beginning of a file that `Recording.save` or a `Recorder` wrote."""

_SSE: Final = "text/event-stream"


def open_recording(
    content: bytes, name: str, dialect: ProtocolName | None = None, *, advice: str
) -> tuple[ProtocolName, Recording]:
    """Return the dialect and the recording of a file.

    A body has no times: an SSE body becomes one piece per event, any other body one piece.

    Args:
        content: the bytes of the file.
        name: the name of the file; `gemini.weather.sse` names the dialect `gemini`.
        dialect: the dialect, if the caller knows it.
        advice: what the reader of the error can do if the dialect cannot be detected.

    Raises:
        MisuseError: the file is a recording that cannot be read, or its dialect is not known.
    """
    named = PurePath(name).name.partition(".")[0]
    known: ProtocolName | None = dialect or next(
        (name for name in dialect_names() if name == named), None
    )
    if content.startswith(HEAD):
        try:
            recording = Recording.from_bytes(content, name)
        except ValueError as error:
            raise MisuseError(str(error)) from error
        content_type = recording.headers.get("content-type")
        return known or _detected(recording.body, content_type, name, advice), recording
    known = known or _detected(content, None, name, advice)
    is_json = PurePath(name).suffix == ".json"
    content_type = "application/json" if is_json else dialect_content_type(known)
    if content_type in {None, _SSE}:
        return known, Recording.of_events(content)
    return known, Recording.of(content, content_type=content_type)


def _detected(body: bytes, content_type: str | None, name: str, advice: str) -> ProtocolName:
    found = detect(body, content_type)
    if found.dialect is not None:
        return found.dialect
    raise no_body(name, body, found.candidates, advice)
