"""Requests that somebody else wrote, as the protocol documents describe them.

In: `tests/requests/<dialect>/foreign/<name>.json`, whose member `body` is written by hand; the rest
of the file, what is read of it and what it becomes when that is rendered again, is written by
`make bless`.  Out: the bodies, by dialect and name.

Source: the protocol notes on each dialect, the part on requests.
"""

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "requests"


def bodies_of(dialect: str) -> dict[str, Any]:
    files = sorted((GOLDEN / dialect / "foreign").glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8"))["body"] for file in files}


FOREIGN: dict[str, dict[str, Any]] = {
    folder.name: bodies_of(folder.name) for folder in sorted(GOLDEN.iterdir())
}
"""All bodies: by dialect, by name."""
