"""Many bodies of Chat and Anthropic Messages, of 20 to 80 events.

In: a number of rows.  Out: bodies, each with an id of its own.
"""

from collections.abc import Iterator
from typing import Final

from bodies import DIALECTS, feeds

IDS: Final = (b"C5vyvpkVGXKzJvbjMV6HzCEmnmNYE", b"01QyV2n8hHkVYzJ4sEwZ3bTx")


def bodies_and_dialects(rows: int) -> Iterator[tuple[bytes, str]]:
    """Yield bodies of both dialects by turns, each with an id of its own, and their dialects."""
    made = {
        dialect: [b"".join(feeds(dialect, events, "16 KiB")) for events in range(20, 81, 2)]
        for dialect in DIALECTS
    }
    for row in range(rows):
        dialect = DIALECTS[row % len(DIALECTS)]
        body = made[dialect][row // len(DIALECTS) % len(made[dialect])]
        name = IDS[row % len(DIALECTS)]
        yield body.replace(name, b"%0*d" % (len(name), row)), dialect
