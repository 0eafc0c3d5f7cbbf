r"""A recorded response: the exact bytes of its body, their split points, and the pauses between.

In: a body, or a file.  Out: `Recording`, a file.

The file is JSON lines in UTF-8, one object a line:

    {"recording": 1, "request": {"method": "POST", "path": "/v1/messages"}, "after": 0.412,
     "status": 200, "headers": {"content-type": "text/event-stream"}}
    {"after": 0.0, "text": "event: message_start\n…"}
    {"after": 0.031, "base64": "AAAAhA=="}
    {"ending": "end"}

The first line is the head; `recording` is the version of the format, `request` may be missing.
Each further line is a piece of the body, `text` where its bytes are UTF-8, else `base64`.  `after`
is the seconds of silence before.  The last line is how the body stopped, with `stop_after` and
`before_headers` where they are set; a file without it was cut, and so is its body.

Laws: a recording that is saved and loaded is equal to the original. Unknown members are ignored, so
that a later version may add some.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias, cast, get_args

from deltafold.contract.kinds import json_object

Ending: TypeAlias = Literal["end", "cut", "reset", "stall"]
"""End of a body: complete, closed in the middle, reset, or left open in silence.

>>> recording = Recording.of_events(body).stopping("cut", after=100)
>>> recording.ending
'cut'
"""

SUFFIX: Final = ".jsonl"
_VERSION: Final = 1
_SSE: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """Recorded part of the request that was answered.

    >>> RecordedRequest("POST", "/v1/chat/completions").query
    {}

    Attributes:
        method: the HTTP method.
        path: the path of the URL, without the host and the query.
        query: members of the query without secrets.
        headers: headers without secrets.
        body: the body, None unless it was requested.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded response.

    >>> recording = Recording.read("recording.sse")
    >>> recording.save("copy.jsonl")
    >>> Recording.load("copy.jsonl").body == recording.body
    True

    Attributes:
        pieces: the body: seconds of silence before each piece, and its bytes.
        status: the HTTP status.
        headers: response headers without those of the transfer itself.
        ending: the end of the body.
        stop_after: number of bytes of body before the end, None for all of them.
        before_headers: the response ends before its headers; `ending` states how.
        headers_after: seconds of silence before the headers.
        request: the request.

    Raises:
        TypeError: the pieces are a whole body, of which `Recording.of` makes a recording.
    """

    pieces: tuple[tuple[float, bytes], ...]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": _SSE})
    ending: Ending = "end"
    stop_after: int | None = None
    before_headers: bool = False
    headers_after: float = 0.0
    request: RecordedRequest | None = None

    def __post_init__(self) -> None:
        pieces: object = self.pieces
        if isinstance(pieces, bytes | bytearray | memoryview | str):
            raise TypeError(
                f"the pieces of a Recording are pairs of seconds and bytes, not "
                f"{type(pieces).__name__}: use Recording.of(body)"
            )

    @classmethod
    def of(
        cls, body: bytes, *, piece_bytes: int | None = None, content_type: str | None = None
    ) -> Self:
        """Make a recording of a whole body without pauses, in pieces of so many bytes.

        The content type is that of SSE unless it is given; it may be binary.
        """
        size = piece_bytes or max(len(body), 1)
        pieces = tuple((0.0, body[at : at + size]) for at in range(0, len(body), size))
        return cls(pieces, headers={"content-type": content_type or _SSE})

    @classmethod
    def of_events(cls, body: bytes, *, delay: float = 0.0) -> Self:
        """Make a recording of an SSE body: one piece an event, so many seconds apart."""
        events = body.split(b"\n\n")
        whole = [event + b"\n\n" for event in events[:-1]] + ([events[-1]] if events[-1] else [])
        return cls(tuple((delay, event) for event in whole))

    @classmethod
    def read(cls, path: Path | str, *, delay: float = 0.0) -> Self:
        """Read an SSE body from a file; see `of_events`."""
        return cls.of_events(Path(path).read_bytes(), delay=delay)

    @classmethod
    def error(cls, status: int, body: object, headers: Mapping[str, str] | None = None) -> Self:
        """Make an answer with an error status and a JSON body."""
        piece = (0.0, json.dumps(body).encode())
        return cls((piece,), status, {"content-type": "application/json", **(headers or {})})

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a recording that `save` or a `Recorder` wrote.

        Raises:
            ValueError: the file is not a recording; the message names the line.
        """
        return cls.from_bytes(Path(path).read_bytes(), str(path))

    @classmethod
    def from_bytes(cls, content: bytes, path: str = "recording") -> Self:
        """Read the bytes of a file that `save` or a `Recorder` wrote; `path` names it in errors.

        >>> Recording.from_bytes(Path("copy.jsonl").read_bytes()).ending
        'end'

        Raises:
            ValueError: the bytes are not a recording; the message names the line.
        """
        # JSON text may contain characters at which splitlines would split.
        return cls._of_lines(list(_lines(content.split(b"\n"), path)), path)

    @classmethod
    def each(cls, lines: Iterable[bytes], name: str = "the file") -> Iterator[Self]:
        """Read recordings that follow one another in one file, each as `save` writes it.

        >>> with open("many.jsonl", "rb") as lines:
        ...     bodies = [recording.body for recording in Recording.each(lines)]

        Args:
            lines: the lines of the file; one recording is held at a time.
            name: the name of the file, for errors.

        Raises:
            ValueError: a line does not belong to a recording; the message names the line.
        """
        own: list[dict[str, object]] = []
        for line in _lines(lines, name):
            if "recording" in line and own:
                yield cls._of_lines(own, name)
                own = []
            own.append(line)
        if own:
            yield cls._of_lines(own, name)

    @classmethod
    def _of_lines(cls, lines: list[dict[str, object]], path: Path | str) -> Self:
        head = lines[0] if lines else {}
        if head.get("recording") != _VERSION:
            raise ValueError(f"{path}: not a recording of version {_VERSION}")
        last = lines.pop() if "ending" in lines[-1] else {"ending": "cut"}
        ending = last["ending"]
        if ending not in get_args(Ending):
            raise ValueError(f"{path}: unknown ending {ending!r}")
        try:
            return cls(
                pieces=tuple((_seconds(line), _bytes(line)) for line in lines[1:]),
                status=int(cast("int", head["status"])),
                headers=_texts(head.get("headers")),
                ending=cast("Ending", ending),
                stop_after=cast("int | None", last.get("stop_after")),
                before_headers=bool(last.get("before_headers", False)),
                headers_after=_seconds(head),
                request=_request(head.get("request")),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as wrong:
            raise ValueError(f"{path}: not a recording: {wrong!r}") from wrong

    @classmethod
    def load_all(cls, folder: Path | str) -> list[Self]:
        """Read all recordings of a folder, in the order of their names, which is that of time."""
        return [cls.load(path) for path in sorted(Path(folder).glob(f"*{SUFFIX}"))]

    def save(self, path: Path | str) -> None:
        """Write the recording to a file; the module's head describes it."""
        head: dict[str, object] = {"recording": _VERSION}
        if self.request is not None:
            head["request"] = _request_members(self.request)
        head |= {
            "after": self.headers_after,
            "status": self.status,
            "headers": dict(self.headers),
        }
        last: dict[str, object] = {"ending": self.ending}
        if self.stop_after is not None:
            last["stop_after"] = self.stop_after
        if self.before_headers:
            last["before_headers"] = True
        lines = [head, *(_piece_members(after, piece) for after, piece in self.pieces), last]
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        Path(path).write_text(text, encoding="utf-8", newline="\n")

    def stopping(
        self, ending: Ending, after: int | None = None, *, before_headers: bool = False
    ) -> Self:
        """Return the same recording that stops after so many bytes of body, in this way."""
        return replace(self, ending=ending, stop_after=after, before_headers=before_headers)

    def garbled(self, at: int, count: int = 1) -> Self:
        """Return the same recording with so many bytes of its body inverted, from this one on."""
        return self._with_body(
            bytes(
                byte ^ 0xFF if at <= index < at + count else byte
                for index, byte in enumerate(self._whole)
            )
        )

    def starred(self, secret: bytes) -> Self:
        """Return the same recording with a secret replaced by as many stars wherever it is read.

        A binary body stays as it is: its frames have checksums.
        """
        stars = b"*" * len(secret)
        headers = {
            name: value.encode().replace(secret, stars).decode()
            for name, value in self.headers.items()
        }
        starred = self
        if not is_binary(self._whole, self.headers.get("content-type", "")):
            starred = self._with_body(self._whole.replace(secret, stars))
        return replace(starred, headers=headers)

    @property
    def body(self) -> bytes:
        """The bytes that go out."""
        return b"" if self.before_headers else self._whole[: self.stop_after]

    def pieces_sent(self) -> Iterator[tuple[float, bytes]]:
        """Yield the pieces that are sent; the last of them may be cut."""
        left = len(self.body)
        for after, piece in self.pieces:
            sent = piece[:left]
            left -= len(sent)
            if sent:
                yield after, sent

    @property
    def _whole(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)

    def _with_body(self, body: bytes) -> Self:
        pieces: list[tuple[float, bytes]] = []
        for after, piece in self.pieces:
            pieces.append((after, body[: len(piece)]))
            body = body[len(piece) :]
        return replace(self, pieces=tuple(pieces))


def is_binary(body: bytes, content_type: str) -> bool:
    """Return whether a body is binary: it has a NUL byte, and its type is not one of text.

    Each frame of an AWS event stream begins with its length, which has a NUL byte.
    """
    kind = content_type.partition(";")[0].strip().lower()
    return b"\0" in body and not kind.startswith("text/") and "json" not in kind


def _lines(lines: Iterable[bytes], path: Path | str) -> Iterator[dict[str, object]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            members = json_object(json.loads(line))
        except ValueError as wrong:
            raise ValueError(f"{path}, line {number}: not valid JSON: {wrong}") from wrong
        if members is None:
            raise ValueError(f"{path}, line {number}: not a JSON object")
        yield dict(members)


def _piece_members(after: float, piece: bytes) -> dict[str, object]:
    try:
        return {"after": after, "text": piece.decode()}
    except UnicodeDecodeError:
        return {"after": after, "base64": base64.b64encode(piece).decode()}


def _bytes(line: Mapping[str, object]) -> bytes:
    if "text" in line:
        return cast("str", line["text"]).encode()
    return base64.b64decode(cast("str", line["base64"]), validate=True)


def _seconds(line: Mapping[str, object]) -> float:
    return float(cast("float", line.get("after", 0.0)))


def _texts(members: object) -> dict[str, str]:
    return {str(name): str(value) for name, value in (json_object(members) or {}).items()}


def _request_members(request: RecordedRequest) -> dict[str, object]:
    members: dict[str, object] = {"method": request.method, "path": request.path}
    if request.query:
        members["query"] = dict(request.query)
    if request.headers:
        members["headers"] = dict(request.headers)
    if request.body is not None:
        members["body"] = base64.b64encode(request.body).decode()
    return members


def _request(value: object) -> RecordedRequest | None:
    members = json_object(value)
    if members is None:
        return None
    body = members.get("body")
    return RecordedRequest(
        str(members["method"]),
        str(members["path"]),
        _texts(members.get("query")),
        _texts(members.get("headers")),
        None if body is None else base64.b64decode(cast("str", body), validate=True),
    )
