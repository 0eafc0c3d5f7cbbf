"""Lines of a log: a body whose every line has a prefix, such as a time and the name of a container.

In: the lines.  Out: the bodies, one for each source that a prefix names.

Laws: the prefix is learned from a line of an event. Its times, numbers and names may differ in
other lines; its other characters are the same. The lines around the events belong to the log and
are left out; those between two events stay. The cost is linear.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Final

from deltafold.streams.bodies import detect

_PREFIXES: Final = 20
"""Distinct prefixes that are tried: other lines of the log have JSON too."""

_BEFORE: Final = rb"^([^\n{\"]{1,256}?[\s|\]:>])"
_EVENT: Final = re.compile(
    _BEFORE + rb"(?:data: ?(?:[{\"]|\[DONE)|event: ?[\w.-]+[ \r]*$)", re.MULTILINE
)
_JSON: Final = re.compile(_BEFORE + rb"\[?\{(?:\"|[ \r]*$)", re.MULTILINE)
_OF_STREAM: Final = re.compile(rb"(?:data|event|id|retry|error)?:|\[?\{|[\]}]")
_PLAIN: Final = re.compile(rb"(?:data|event|id|retry)?:")

_PIECE: Final = re.compile(
    rb"(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"
    rb"(?:Z|[+-][0-9]{2}:?[0-9]{2})?)"
    rb"|(?P<syslog>[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2})"
    rb"|(?P<cri>(?:stdout|stderr) [FP](?= |$))"
    rb"|(?P<named>\[(?=[^\]\n]*[A-Za-z])(?![^\]\n]*[0-9]:[0-9])[^\]\n]+\])"
    rb"|(?P<service>^[\w.-]+ +\|)"
    rb"|(?P<number>[0-9]+)|(?P<space>[ \t]+)"
)
_PATTERNS: Final = {
    "time": rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"
    rb"(?:Z|[+-][0-9]{2}:?[0-9]{2})?",
    "syslog": rb"[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}",
    "cri": rb"(?:stdout|stderr) ([FP])",
    "named": rb"(\[[^\]\n]{1,256}\])",
    "service": rb"([\w.-]{1,256} {1,256}\|)",
    "number": rb"[0-9]+",
    "space": rb"[ \t]+",
}


def has_prefixes(head: bytes) -> bool:
    """Return whether a line of the first bytes looks like one of an event behind a prefix."""
    return not _PLAIN.match(head) and bool(_EVENT.search(head) or _JSON.search(head))


def bodies_of(content: bytes) -> list[bytes]:
    """Return the bodies whose lines have prefixes; none if no body is found."""
    for prefix in _prefixes(content):
        bodies = _without(prefix, content)
        found = [body for body in bodies if detect(body).dialect is not None]
        if found:
            return found
    return []


def _prefixes(content: bytes) -> Iterator[re.Pattern[bytes]]:
    """Yield the patterns of the prefixes of lines that may belong to an event."""
    tried: set[bytes] = set()
    for form in (_EVENT, _JSON):
        for line in form.finditer(content):
            pattern = _learned(line[1])
            if pattern in tried:
                continue
            tried.add(pattern)
            yield re.compile(pattern)
            if len(tried) == _PREFIXES:
                return


def _learned(prefix: bytes) -> bytes:
    own = prefix.rstrip()
    pattern, at = b"", 0
    for piece in _PIECE.finditer(own):
        pattern += re.escape(own[at : piece.start()]) + _PATTERNS[str(piece.lastgroup)]
        at = piece.end()
    pattern += re.escape(own[at:])
    # A blank line of the body has lost the white space at the end of its prefix.
    return pattern + rb"(?:" + re.escape(prefix[len(own) :]) + rb"|(?=[ \t]*\r?$)[ \t]*)"


def _without(prefix: re.Pattern[bytes], content: bytes) -> list[bytes]:
    """Return the lines of each source without their prefixes."""
    sources: dict[tuple[bytes | None, ...], list[bytes]] = {}
    for line in BytesIO(content):
        found = prefix.match(line)
        if found is None:
            continue
        groups = found.groups()
        rest = line[found.end() :]
        if b"P" in groups:  # Kubernetes splits a long line; the last part has F
            rest = rest.rstrip(b"\r\n")
        source = tuple(group for group in groups if group not in {b"P", b"F"})
        sources.setdefault(source, []).append(rest)
    return [of_events(lines) for lines in sources.values()]


def of_events(lines: list[bytes]) -> bytes:
    """Return the lines from the first to the last one of an event, and the blank ones after it."""
    marked = [number for number, line in enumerate(lines) if _OF_STREAM.match(line)]
    if not marked:
        return b""
    end = marked[-1] + 1
    while end < len(lines) and not lines[end].strip():
        end += 1
    return b"".join(lines[marked[0] : end])
