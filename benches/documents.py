"""The JSON texts that are read while they are written: arguments of a tool call, cut into deltas.

In: a shape and a size in bytes.  Out: the text, and the pieces of 12 bytes in which it arrives.
"""

import json
from typing import Final, Literal, TypeAlias, get_args

Shape: TypeAlias = Literal["escaped ASCII", "plain ASCII", "non-ASCII", "structured"]

SHAPES: Final[tuple[Shape, ...]] = get_args(Shape)

DELTA_BYTES: Final = 12

_LINES: Final[dict[Shape, str]] = {
    # A file that is written: a line end or a quotation mark every ten characters or so.
    "escaped ASCII": 'def greet(name):\n\treturn "hello, " + name\n\n',
    "plain ASCII": "a long answer without anything that has to be escaped, ",
    "non-ASCII": "Grüße aus Zürich, 東京は晴れ ☀ ",
}


def document(shape: Shape, size: int) -> bytes:
    """Return a whole JSON text of this shape, of `size` bytes or a few more."""
    if shape == "structured":
        return _items(size)
    line = _LINES[shape]
    lines = size // len(json.dumps(line, ensure_ascii=False).encode()) + 1
    return json.dumps({"path": "a.py", "text": line * lines}, ensure_ascii=False).encode()


def _items(size: int) -> bytes:
    """Many small objects, as a plan or a table has them."""
    items: list[object] = []
    length = 0
    while length < size:
        number = len(items)
        item = {"id": number, "name": f"item {number}", "tags": ["new", "red"], "done": False}
        length += len(json.dumps(item))
        items.append(item)
    return json.dumps({"items": items}).encode()


def deltas(text: bytes) -> list[bytes]:
    """Cut the text into the pieces in which it arrives."""
    return [text[start : start + DELTA_BYTES] for start in range(0, len(text), DELTA_BYTES)]
