"""Bodies inside of JSON: the members of a document, or of each line, that hold responses.

In: a parsed value.  Out: the members that hold bodies, in their order, and the path of each.

Laws: a text is a body if its own first event tells a protocol. An object or a list is one if no
text is. The message of an error is none. The number of values is bounded.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, TypeAlias, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.foreign_text import well_formed
from deltafold.contract.kinds import json_object
from deltafold.streams.bodies import detect

Path: TypeAlias = tuple[str, ...]

ELEMENT: Final = "[]"
"""The name of the elements of a list in a path."""

_MAX_VALUES: Final = 1_000_000
_MAX_OBJECT_DEPTH: Final = 6
_BEGIN: Final = re.compile(r"\ufeff?\s*(?:(?:data|event|id|retry)?:|[{\[]|HTTP/[0-9])")
_LOGS: Final = {("log",), ("MESSAGE",)}
"""The lines of the json-file driver of Docker, and of `journalctl -o json`."""
_LINE: Final = re.compile(r"(?:data|event|id|retry)?:[^\n]*\n?\Z")


def parsed(content: bytes) -> object:
    """Return the value of JSON.

    Raises:
        ValueError: the content is not JSON, or nested too deeply.
    """
    try:
        return json.loads(content)
    except RecursionError as wrong:
        raise ValueError("JSON that is nested too deeply") from wrong


def body_of(value: object) -> bytes | None:
    """Return the bytes of a member: of a text, or of an answer that was parsed; None of a null."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return well_formed(value).encode()
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def is_body(value: object) -> bool:
    """Return whether a text is a body by its own first event, or the output of curl."""
    if isinstance(value, bytes):
        return detect(value).dialect is not None or value.startswith(b"HTTP/")
    if not isinstance(value, str) or not _BEGIN.match(value):
        return False
    return value.startswith("HTTP/") or detect(value[: 64 << 10]).dialect is not None


def is_line_of_log(value: object, path: Path) -> bool:
    """Return whether a text is one line of a body that was written to a log line by line."""
    if not isinstance(value, str):
        return False
    return _LINE.match(value) is not None or (path in _LOGS and "\n" not in value.rstrip("\n"))


def path_of(column: str, value: object) -> Path:
    """Return the path of a column; a name may have points of its own."""
    members = json_object(value) or {}
    return (
        (column,) if column in members else tuple(column.replace(ELEMENT, f".{ELEMENT}").split("."))
    )


def found_path(value: object, name: str) -> Path | None:
    """Return the path of the members that hold bodies; None if there are none.

    Raises:
        MisuseError: members of several paths do.
    """
    paths = dict.fromkeys(
        path for path, one in _walk(value, name) if is_body(one) and path[:1] != ("error",)
    )
    if not paths:
        paths = dict.fromkeys(
            path
            for path, one in _walk(value, name)
            if 0 < len(path) <= _MAX_OBJECT_DEPTH
            and isinstance(one, dict | list)
            and is_body(json.dumps(one))
        )
        # The events inside of a list of events fit too.
        paths = {
            path: None for path in paths if not any(path[:at] in paths for at in range(len(path)))
        }
    if len(paths) > 1:
        listed = ", ".join(sorted(map(shown, paths)))
        raise MisuseError(f"{name}: several columns hold bodies: {listed}; name one with --column")
    return next(iter(paths), None)


def shown(path: Path) -> str:
    """Return the name of a path, as `--column` takes it."""
    return ".".join(path).replace(f".{ELEMENT}", ELEMENT)


def values_at(value: object, path: Path) -> Iterator[object]:
    """Yield the values at a path; a member that is missing gives none."""
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth == len(path):
            yield one
        elif path[depth] == ELEMENT:
            if isinstance(one, list):
                elements = cast("list[object]", one)
                waiting.extend((each, depth + 1) for each in reversed(elements))
        elif isinstance(one, dict) and path[depth] in one:
            waiting.append((cast("dict[str, object]", one)[path[depth]], depth + 1))


def _walk(value: object, name: str) -> Iterator[tuple[Path, object]]:
    waiting: list[tuple[Path, object]] = [((), value)]
    left = _MAX_VALUES
    while waiting:
        path, one = waiting.pop()
        left -= 1
        if left < 0:
            raise ValueError(f"{name}: JSON with more than {_MAX_VALUES} values")
        yield path, one
        if isinstance(one, dict):
            members = cast("dict[str, object]", one)
            waiting.extend(((*path, key), each) for key, each in reversed(members.items()))
        elif isinstance(one, list):
            elements = cast("list[object]", one)
            waiting.extend(((*path, ELEMENT), each) for each in reversed(elements))
