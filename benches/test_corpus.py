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
from measuring import measure
from readers import hand_written_message

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


@pytest.mark.parametrize("reader", ["deltafold", "hand-written, orjson"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_corpus(benchmark: BenchmarkFixture, dialect: str, reader: str) -> None:
    streams = recordings(dialect)
    if not streams:
        pytest.skip(f"no recordings at {CORPUS} (set DELTAFOLD_CORPUS)")
    read = read_by_us if reader == "deltafold" else read_by_hand
    events = sum(b"".join(feeds).count(b"data:") for feeds in streams)
    about = {"dialect": dialect, "reader": reader, "events": events, "streams": len(streams)}
    failed = measure(benchmark, lambda: read(dialect, streams), group="corpus", **about)
    assert failed < len(streams) / 4
    benchmark.extra_info["failed"] = failed  # pyright: ignore[reportUnknownMemberType]
