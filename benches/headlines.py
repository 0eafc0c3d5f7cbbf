"""The short page of the benchmarks, docs/bench.md: the chart, and five rows for users.

In: the results of a pass.  Out: Markdown.

Law: each figure is one of the report, docs/bench-report.md, and its row links to that table.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from calls import BYTES, MODEL
from peers import SDK_HELPER
from readers import FOLD, ORJSON, STREAM_MESSAGE
from results import Results, machine
from tables import cell, multiple, table

PAGE: Final = "bench.md"
REPORT: Final = "bench-report.md"


class Headline(NamedTuple):
    """A comparison of two readers of the same bytes.

    Attributes:
        what: what was measured.
        unit_name: the unit in words.
        unit: the member of the rows that counts the units.
        group: group of the benchmarks.
        about: members of both rows.
        ours: reader of deltafold.
        other: the other reader.
        section: title of the table's section in the report.
    """

    what: str
    unit_name: str
    unit: str
    group: str
    about: Mapping[str, object]
    ours: str
    other: str
    section: str


_CHAT: Final = {"dialect": "openai-chat"}
_WHOLE: Final = {**_CHAT, "events": 2_000, "feed": "16 KiB"}

HEADLINES: Final = (
    Headline(
        "a stream of 2,000 events, one a read, to its message",
        "an event",
        "events",
        "public",
        {**_CHAT, "events": 2_000},
        STREAM_MESSAGE,
        ORJSON,
        "Public path",
    ),
    Headline(
        "a short stream of 20 events, one a read, to its message",
        "an event",
        "events",
        "public",
        {**_CHAT, "events": 20},
        STREAM_MESSAGE,
        ORJSON,
        "Public path",
    ),
    Headline(
        "2,000 events in reads of 16 KiB, beside the openai SDK",
        "an event",
        "events",
        "text",
        _WHOLE,
        FOLD,
        SDK_HELPER,
        "Text",
    ),
    Headline(
        "arguments of a tool call, 100 KB of JSON in pieces of 12 bytes",
        "a byte",
        "bytes",
        "arguments",
        {**_CHAT, "bytes": 100_000, "delta": 12},
        FOLD,
        SDK_HELPER,
        "Tool arguments",
    ),
    Headline(
        "a call of 20 events over aiohttp, beside the client's bytes alone",
        "a call",
        "calls",
        "model path",
        {"transport": "aiohttp", "events": 20},
        MODEL,
        BYTES,
        "A call of a Model",
    ),
)


def _compared(results: Results, headline: Headline) -> list[str]:
    """Return the cells of a comparison."""
    ours = results.one(headline.group, reader=headline.ours, **headline.about)
    other = results.one(headline.group, reader=headline.other, **headline.about)
    cells = [
        "-" if row is None else f"{name}: {cell(row.per(headline.unit))}"
        for name, row in ((headline.ours, ours), (headline.other, other))
    ]
    anchor = headline.section.lower().replace(" ", "-")
    link = f"[{headline.what}]({REPORT}#{anchor}): µs {headline.unit_name}"
    if ours is None or other is None:
        return [link, "-", *cells]
    slower = ours.times(other)
    share = multiple(slower) if slower > 1 else f"1/{multiple(other.times(ours))}"
    takes = f"{share} {'times' if slower > 1 else 'of'} the time"
    return [link, takes, *cells]


def short_page(results: Results) -> str:
    """Return docs/bench.md."""
    lines = [
        "# Benchmarks",
        "",
        "CPU time of deltafold and of other readers of the same bytes. The hand-written assembler",
        "parses each event with orjson and joins the pieces, as a program without a library would.",
        "",
        "![Bar chart of the CPU time an event by reader: deltafold takes the least](bench.svg)",
        "",
        "## Five rows to check",
        "",
        "Streams of Chat Completions, medians of one pass. The tables behind the rows have more",
        "readers, and most of them have Anthropic's Messages too.",
        "",
        *table(
            ["measured", "deltafold takes", "deltafold", "the other"],
            [_compared(results, headline) for headline in HEADLINES],
            rule="---",
        ),
        f"{machine()}. `make bench` measures again.",
        "",
        f"[The report]({REPORT}) has all tables and the targets that are missed. It also lists",
        f"where deltafold is [slower]({REPORT}#slower-than-the-hand-written-assembler).",
    ]
    return "\n".join(lines) + "\n"
