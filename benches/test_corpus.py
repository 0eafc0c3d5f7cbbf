"""The recorded streams of both dialects, one after the other: what traffic is really like.

Where a stream is an error, or something that the hand-written baseline does not know, the baseline
raises and is done with it sooner; how often is reported.  Without the recordings this is skipped.
"""

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import cast

import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import DIALECTS, large_feeds
from deltafold import Fold
from measuring import note, together
from readers import FOLD, ORJSON, hand_written_message

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


def read_by_us(dialect: str, streams: Sequence[Sequence[bytes]]) -> int:
    failed = 0
    for feeds in streams:
        folding = Fold(dialect)
        for feed in feeds:
            folding.feed(feed)
        folding.close()
        folding.snapshot()
        failed += folding.status == "error"
    return failed


def read_by_hand(dialect: str, streams: Sequence[Sequence[bytes]]) -> int:
    failed = 0
    for feeds in streams:
        try:
            hand_written_message(orjson.loads, dialect, feeds, as_str=False)
        except Exception:
            failed += 1
    return failed


@pytest.mark.parametrize("dialect", DIALECTS)
def test_corpus(benchmark: BenchmarkFixture, dialect: str) -> None:
    streams = recordings(dialect)
    if not streams:
        pytest.skip(f"no recordings at {CORPUS} (set DELTAFOLD_CORPUS)")
    reads = {
        FOLD: lambda: read_by_us(dialect, streams),
        ORJSON: lambda: read_by_hand(dialect, streams),
    }
    events = sum(b"".join(feeds).count(b"data:") for feeds in streams)
    about = {"dialect": dialect, "events": events, "streams": len(streams)}
    failed = together(benchmark, reads, group="corpus", **about)
    assert all(one < len(streams) / 4 for one in failed.values())
    note(benchmark, failed=failed)
