"""Whole response bodies, and bodies of an unknown dialect."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

import deltafold
from corpus import FIXTURES
from deltafold import DeltaKind, MessageAssembler, decode_response, detect

WHOLE = sorted(path.parent for path in FIXTURES.glob("*/whole-body*/wire.*"))


def wire_of(folder: Path) -> bytes:
    [wire] = folder.glob("wire.*")
    return wire.read_bytes()


@pytest.mark.parametrize("folder", WHOLE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_whole_body_gives_the_deltas_of_a_stream(folder: Path) -> None:
    dialect, body = cast("Any", folder.parent.name), wire_of(folder)
    batch = decode_response(body, dialect, run_id="run")
    fold = deltafold.Fold(dialect, run_id="run")
    fold.feed(body)
    fold.close()
    assembler = MessageAssembler()
    assembler.consume(batch)
    assert assembler.snapshot().same_content(fold.snapshot())
    assert [delta.seq for delta in batch] == list(range(1, len(batch) + 1))


def test_every_dialect_has_a_whole_body_among_the_fixtures() -> None:
    stream_only = {"bedrock-invoke", "gemini-interactions"}  # decoded as streams only
    assert {path.parent.name for path in WHOLE} >= set(deltafold.dialect_names()) - stream_only


def test_a_recorded_stream_is_a_body_too() -> None:
    body = wire_of(FIXTURES / "openai-chat" / "text")
    kinds = [delta.kind for delta in decode_response(bytearray(body), "openai-chat")]
    assert (kinds[0], kinds[-1]) == (DeltaKind.START, DeltaKind.DONE)


def test_a_failed_response_ends_in_its_error() -> None:
    body = json.dumps({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}).encode()
    batch = decode_response(
        body, "openai-chat", status=429, headers={"retry-after": "7", "x-request-id": "req_1"}
    )
    payload = batch[-1].payload
    assert payload["errorCode"] == "rate_limited"
    assert payload["retryAfter"] == 7
    assert payload["status"] == 429
    assert payload["httpRequestId"] == "req_1"


def test_an_empty_body_is_an_error_and_not_nothing() -> None:
    [start, error] = decode_response(b"", "openai-responses")
    assert (start.kind, error.kind) == (DeltaKind.START, DeltaKind.ERROR)


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(deltafold.UnknownDialectError, match="nonsense"):
        decode_response(b"{}", cast("Any", "nonsense"))


def test_a_dialect_is_told_from_the_first_bytes() -> None:
    assert detect(b'data: {"choices":[').dialect == "openai-chat"
    found = detect(memoryview(b'{"error":{"message":"no","type":"x"}}'))
    assert found.dialect is None
    assert found.candidates == ("openai-chat", "openai-responses")
    assert detect(b"hello") == (None, ())
    assert detect(b"", "application/vnd.amazon.eventstream").candidates == (
        "bedrock-converse",
        "bedrock-invoke",
    )


def test_whatever_is_detected_is_a_dialect() -> None:
    for wire in FIXTURES.glob("*/*/wire.*"):
        assert set(detect(wire.read_bytes()).candidates) <= set(deltafold.dialect_names())
