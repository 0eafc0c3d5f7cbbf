"""Requests of other programs, as the documents of the protocols describe them.

In: `tests/fixtures/requests/<dialect>/foreign/<name>.json`, whose member `body` is written by hand.
`make bless` writes the other members: the parsed request, and the body rendered from it.  Out: the
bodies, by dialect and name.

Source: the sections "Request" of docs/protocols/.
"""

import json
from typing import Any

from corpus import ROOT

GOLDEN = ROOT / "tests" / "fixtures" / "requests"


def bodies_of(dialect: str) -> dict[str, Any]:
    files = sorted((GOLDEN / dialect / "foreign").glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8"))["body"] for file in files}


FOREIGN: dict[str, dict[str, Any]] = {
    folder.name: bodies_of(folder.name) for folder in sorted(GOLDEN.iterdir())
}
"""All bodies: by dialect, by name."""
