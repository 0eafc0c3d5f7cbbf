"""The recorded streams of both dialects, one after the other: what traffic is really like.

One pair of readers ends with the message and all that is read from it, another with its JSON.

Where a stream is an error, or something that the hand-written baseline does not know, the baseline
raises and is done with it sooner; how often is reported.  Without the recordings this is skipped.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, large_feeds
from deltafold import Message, ModelError, fold
from measuring import note, together
from readers import ORJSON, hand_written_message

if TYPE_CHECKING:
    from any_name import AnyName

CORPUS = Path(os.environ.get("DELTAFOLD_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus")


@cache
def recordings(dialect: str) -> list[list[bytes]]:
    """The feeds of each recording that is framed as server-sent events."""
    if not (CORPUS / "manifest.jsonl").is_file():
        return []

    def lines(name: str) -> list[dict[str, object]]:
        text = (CORPUS / name).read_text()
        return [cast("dict[str, object]", json.loads(line)) for line in text.splitlines()]

    files = {line["id"]: str(line["file"]) for line in lines("manifest.jsonl")}
    return [
        large_feeds([(CORPUS / files[line["id"]]).read_bytes()])
        for line in lines("expected.jsonl")
        if line["reader"] == dialect
        and line["framing"] == "sse"
        and line["terminal"] != "unsupported"
    ]


FOLDED: Final = "fold(), all that is read"
FOLDED_JSON: Final = "fold(), to_json()"
ORJSON_JSON: Final = "hand-written, orjson.dumps"

Streams = Sequence[Sequence[bytes]]


def messages_of(dialect: "AnyName", streams: Streams) -> Iterator[tuple[Message, bool]]:
    """Yield each message, a partial one of a failed stream, and whether the stream failed."""
    for feeds in streams:
        try:
            yield fold(feeds, dialect), False
        except ModelError as error:
            yield cast("Message", error.partial_message), True


def read_by_us(dialect: str, streams: Streams) -> int:
    count = 0
    for message, failed in messages_of(dialect, streams):
        _ = message.text, message.meta.usage, message.meta.finish_reason
        for call in message.tool_calls:
            _ = call.arguments
        count += failed
    return count


def written_by_us(dialect: str, streams: Streams) -> int:
    count = 0
    for message, failed in messages_of(dialect, streams):
        message.to_json()
        count += failed
    return count


def read_by_hand(
    dialect: str, streams: Streams, finish: Callable[[dict[str, Any]], object] = len
) -> int:
    failed = 0
    for feeds in streams:
        try:
            finish(hand_written_message(orjson.loads, dialect, feeds, as_str=False))
        except Exception:
            failed += 1
    return failed


@pytest.mark.parametrize("dialect", DIALECTS)
def test_corpus(benchmark: BenchmarkFixture, dialect: str) -> None:
    streams = recordings(dialect)
    if not streams:
        pytest.skip(f"no recordings at {CORPUS} (set DELTAFOLD_CORPUS)")
    reads = {
        FOLDED: lambda: read_by_us(dialect, streams),
        FOLDED_JSON: lambda: written_by_us(dialect, streams),
        ORJSON: lambda: read_by_hand(dialect, streams),
        ORJSON_JSON: lambda: read_by_hand(dialect, streams, orjson.dumps),
    }
    events = sum(b"".join(feeds).count(b"data:") for feeds in streams)
    about = {"dialect": dialect, "events": events, "streams": len(streams)}
    failed = together(benchmark, reads, group="corpus", **about)
    assert all(one < len(streams) / 4 for one in failed.values())
    note(benchmark, failed=failed)
