"""One provider's stream written as another's: text, tool arguments, and all pairs of dialects."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bodies import FEED_BYTES, Feed, arguments_feeds, feeds, text
from deltafold import fold
from documents import document
from measuring import measure, together
from other_bodies import SOURCES, TARGETS, source_body
from readers import FOLD
from transcoding import (
    FIRST_PAIR,
    HAND_WRITTEN,
    LINGUAFRANCA,
    TRANSCODER,
    Write,
    folded,
    hand_written,
    linguafranca,
    transcoder,
)

EVENTS = 2_000


def said(body: bytes) -> str:
    """Return the text of a Messages stream."""
    return fold(body, "anthropic-messages").text


@pytest.mark.parametrize(
    ("count", "feed"), [(2_000, "16 KiB"), (2_000, "1 event"), (20, "16 KiB"), (20, "1 event")]
)
def test_transcoding(benchmark: BenchmarkFixture, count: int, feed: Feed) -> None:
    chunks = feeds("openai-chat", count, feed)
    writes = {
        FOLD: folded(chunks),
        TRANSCODER: transcoder("openai-chat", "anthropic-messages", chunks),
        HAND_WRITTEN: hand_written(chunks),
    }
    written = together(benchmark, writes, group="transcoding", events=count, feed=feed)
    wanted = text(count, "openai-chat")
    assert written.pop(FOLD).decode() == wanted
    assert {said(body) for body in written.values()} == {wanted}


def test_transcoding_of_a_peer(benchmark: BenchmarkFixture) -> None:
    write = linguafranca(feeds("openai-chat", EVENTS, "16 KiB"))
    about = {"reader": LINGUAFRANCA, "events": EVENTS, "feed": "16 KiB"}
    written = measure(benchmark, write, group="transcoding", **about)
    assert said(written) == text(EVENTS, "openai-chat")


def test_pairs(benchmark: BenchmarkFixture) -> None:
    writes: dict[str, Write] = {}
    for source in SOURCES:
        body = source_body(source, EVENTS)
        chunks = [body[at : at + FEED_BYTES] for at in range(0, len(body), FEED_BYTES)]
        for target in TARGETS:
            writes[f"{source} to {target}"] = transcoder(source, target, chunks)
    written = together(benchmark, writes, group="pairs", events=EVENTS)
    assert FIRST_PAIR in written
    assert all(len(body) > EVENTS * 20 for body in written.values())


@pytest.mark.parametrize("target", TARGETS)
def test_growth_of_transcoded_arguments(benchmark: BenchmarkFixture, target: str) -> None:
    small, large = 100_000, 1_000_000
    writes = {
        name: transcoder(
            "openai-chat",
            target,
            arguments_feeds("openai-chat", document("escaped ASCII", size), 12),
        )
        for name, size in (("small", small), ("large", large))
    }
    about = {"what": "transcoding", "target": target, "small": small, "large": large}
    written = together(benchmark, writes, group="growth", **about)
    sizes = {len(written["large"]) // large, len(written["small"]) // small}
    assert len(sizes) == 1
