"""Streamed bodies whose events are text: server-sent events, and lines of JSON.

In: the fixtures, and the recordings of the corpus.  Out: dialect, name and bytes of each.
"""

from collections.abc import Iterator
from typing import Final

from any_name import AnyName
from corpus import CORPUS, FIXTURES, recorded
from deltafold import dialect_names

_TEXTUAL: Final = (".sse", ".ndjson")


def text_fixtures() -> Iterator[tuple[AnyName, str, bytes]]:
    """Yield dialect, name and body of the fixtures whose events are text."""
    for path in sorted(FIXTURES.glob("*/*/wire.*")):
        if path.suffix in _TEXTUAL:
            yield path.parents[1].name, path.parent.name, path.read_bytes()


def text_recordings() -> Iterator[tuple[AnyName, str, bytes]]:
    """Yield dialect, name and body of the recordings whose events are text; none without them."""
    if (CORPUS / "manifest.jsonl").is_file():
        for dialect in dialect_names():
            for file, body in recorded(dialect):
                if file.endswith(_TEXTUAL):
                    yield dialect, file.removeprefix(f"{dialect}/"), body
