"""Inspection of recordings: events, deltas, notes, the page, and the first difference."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

import deltafold
from any_name import AnyName
from corpus import FIXTURES
from deltafold import DeltaKind, UnknownDialectError
from deltafold._core import event_ends
from deltafold.inspector import (
    Inspection,
    first_difference,
    inspect_recording,
    is_page,
    make_page,
    read_page,
)
from deltafold.inspector.page import MODULES
from deltafold.testing import Ending, Recording
from wires import ANTHROPIC, CHAT, CHAT_ERROR

ASSETS = Path(deltafold.__file__).parent / "inspector" / "assets"
BODIES = sorted(path for path in FIXTURES.glob("*/*/wire.*") if "+" not in path.parent.parent.name)
HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\u2028\u0000"


def seen(body: bytes, dialect: AnyName, name: AnyName = "recording") -> Inspection:
    return inspect_recording(Recording.of(body), dialect, name)


def said(text: str) -> bytes:
    """Return an event of Chat that says a text."""
    chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("path", BODIES, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_events_are_the_whole_body_and_deltas_are_those_of_a_stream(path: Path) -> None:
    body, dialect = path.read_bytes(), cast("Any", path.parent.parent.name)
    inspection = seen(body, dialect)
    assert inspection.texts == [
        body[start:end].decode("utf-8", "backslashreplace")
        for start, end in zip(inspection.offsets, [*inspection.offsets[1:], len(body)], strict=True)
    ]
    expected = list(deltafold.stream([body], dialect, run_id="inspected"))
    assert [delta[1:3] for delta in inspection.deltas] == [
        (delta.kind.value, delta.payload) for delta in expected
    ]
    events = [delta[0] for delta in inspection.deltas]
    assert events == sorted(events)
    assert inspection.deltas[-1][1] in {"done", "error"}
    errors = [note for note in inspection.notes if note[1] == "error"]
    assert len(errors) == (inspection.deltas[-1][1] == "error")
    (page,) = read_page(make_page([inspection]))
    assert page == inspection


@pytest.mark.parametrize(
    ("body", "dialect", "ends"),
    [
        (b"data: 1\n\ndata: 2\n\n", "openai-chat", [9, 18]),
        (b"data: 1\r\n\r\ndata: 2\r\n\r\n", "openai-chat", [11, 22]),
        (b"data: 1\r\rdata: 2\r\r", "openai-chat", [9, 18]),
        (b"\n\ndata: 1\n\n\n\ndata: 2", "openai-chat", [13]),
        (b": waiting\n\ndata: 1\n\n", "openai-chat", [11, 20]),
        (b": waiting\r\n\r\ndata: 1\r\n\r\n", "openai-chat", [13, 24]),
        (b"event: a\ndata: 1\ndata: 2\n\n", "openai-chat", [26]),
        (b'{"a":1}\n{"a":2}\r\n\n{"a"', "ollama", [8, 18]),
        (b'[{"a":[1]},\n{"a":2}]\n', "gemini", [12, 21]),
        (b"<html>\n\n</html>", "openai-chat", []),
        (b"\x1f\x8b\x08", "openai-chat", []),
        (b"", "openai-chat", []),
    ],
)
def test_ends_of_events_are_those_of_the_framing(
    body: bytes, dialect: AnyName, ends: list[int]
) -> None:
    assert event_ends(body, dialect) == ends


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(UnknownDialectError, match="chatter"):
        event_ends(b"", cast("Any", "chatter"))


def test_an_event_has_the_time_of_its_last_byte() -> None:
    body = said("one") + said("two")
    cut = len(said("one")) + 5
    recording = Recording(((0.5, body[:cut]), (2.0, body[cut:])), headers_after=0.25)
    inspection = inspect_recording(recording, "openai-chat")
    assert inspection.seconds == [0.75, 2.75, 2.75]
    assert inspection.pieces == [(cut, 0.75), (len(body), 2.75)]
    assert inspection.timed
    assert not seen(body, "openai-chat").timed


@pytest.mark.parametrize(
    ("ending", "code"),
    [("cut", "connection_lost"), ("reset", "connection_lost"), ("stall", "timeout")],
)
def test_an_end_that_is_none_is_an_error_of_the_end(ending: Ending, code: str) -> None:
    recording = replace(Recording.of(said("one")), ending=ending)
    inspection = inspect_recording(recording, "openai-chat")
    assert [note[:3] for note in inspection.notes] == [(1, "error", code)]


def test_a_refusal_is_one_event_with_its_status() -> None:
    recording = Recording.error(429, {"error": {"message": "too many", "code": "rate_limit"}})
    inspection = inspect_recording(recording, "openai-chat")
    assert len(inspection.texts) == 2
    assert [note[:3] for note in inspection.notes] == [(0, "error", "rate_limited")]


def test_a_response_without_headers_is_an_error() -> None:
    recording = Recording.of(b"").stopping("reset", before_headers=True)
    inspection = inspect_recording(recording, "openai-chat")
    assert [note[:3] for note in inspection.notes] == [(0, "error", "connection_lost")]


def test_a_problem_is_at_the_event_that_caused_it() -> None:
    body = said("one") + b"data: no JSON\n\n" + said("two") + b"data: [DONE]\n\n"
    notes = seen(body, "openai-chat").notes
    assert [(event, level) for event, level, *_ in notes][:1] == [(1, "warning")]
    assert notes[0][4] == len(said("one"))


def test_changes_of_arguments_build_the_arguments() -> None:
    inspection = seen(ANTHROPIC, "anthropic-messages")
    leaves: dict[tuple[str | int, ...], object] = {}
    for path, operation, new in (change for delta in inspection.deltas for change in delta[3]):
        place = tuple(path)
        leaves[place] = new if operation == "set" else f"{leaves[place]}{new}"
    (call,) = deltafold.fold(ANTHROPIC, "anthropic-messages").tool_calls
    assert call.arguments is not None
    for place, leaf in leaves.items():
        value: Any = call.arguments
        for name in place:
            value = value[name]
        assert value == leaf or leaf in ({}, [])
    assert {place[0] for place in leaves if place} == call.arguments.keys()


def test_arguments_that_are_not_json_are_noted_once() -> None:
    body = (FIXTURES / "anthropic-messages" / "call-not-json" / "wire.sse").read_bytes()
    codes = [note[2] for note in seen(body, "anthropic-messages").notes]
    assert codes.count("parse_error") == 1


def test_many_events_are_shown_in_groups_and_none_is_lost() -> None:
    body = b": x\n\n" * 200_001 + said("end")
    inspection = seen(body, "openai-chat")
    assert len(inspection.texts) <= 200_001
    assert sum(map(len, inspection.texts)) == len(body)
    assert [delta[1] for delta in inspection.deltas][:2] == ["start", "text"]


def test_the_page_holds_hostile_text_as_data_alone() -> None:
    page = make_page([seen(said(HOSTILE) + HOSTILE.encode(), "openai-chat", HOSTILE)])
    assert len(re.findall("<script", page)) == 2
    assert len(re.findall("</script", page)) == 2
    assert "<!--" not in page
    assert "<img" not in page
    assert "\u2028" not in page.partition('id="data"')[2]
    assert HOSTILE in read_page(page)[0].texts[0] + read_page(page)[0].texts[1]


IMPORTED = re.compile(r"^import { (.+) } from \"./(\w+).js\";$", re.MULTILINE)
DECLARED = re.compile(r"^(export )?(?:const|let|class|function) (\w+)", re.MULTILINE)
MODULE_WORDS = re.compile(r"^(?:import|export)\b", re.MULTILINE)


def test_the_scripts_are_modules_that_can_be_joined() -> None:
    owners: dict[str, str] = {}
    exported: dict[str, set[str]] = {}
    for name in MODULES:
        source = (ASSETS / f"{name}.js").read_text(encoding="utf-8")
        for names, other in IMPORTED.findall(source):
            assert set(names.split(", ")) <= exported[other], (name, other)
        declared = DECLARED.findall(source)
        for _, identifier in declared:
            assert owners.setdefault(identifier, name) == name, identifier
        exported[name] = {identifier for is_exported, identifier in declared if is_exported}
    assert {f"{name}.js" for name in MODULES} == {path.name for path in ASSETS.glob("*.js")}
    assert not MODULE_WORDS.search(make_page([seen(b"", "openai-chat")]))


def test_the_page_is_small_and_loads_nothing() -> None:
    page = make_page([seen(b"", "openai-chat")])
    assert len(page.encode()) < 90_000
    assert re.findall(r"(?:\bsrc|href)=\W*([^\s\">]+)|url\(|import\b", page) == ["data:,"]
    assert "default-src 'none'" in page


def test_a_page_is_known_and_other_text_is_not() -> None:
    assert is_page(make_page([seen(CHAT, "openai-chat")]).encode())
    assert not is_page(b"<!doctype html>\n<p>")
    with pytest.raises(ValueError, match="not a page"):
        read_page("<p>")
    with pytest.raises(ValueError, match="name"):
        Inspection.from_dict({})


@pytest.mark.parametrize(
    "data", ["[" * 200_000, '{"recordings": [{"name": 1}]}', '{"recordings": [1]}', "{", "null"]
)
def test_a_page_with_other_data_is_refused(data: str) -> None:
    page = f'<script type="application/json" id="data">{data}</script>'
    with pytest.raises(ValueError, match=r"."):
        read_page(page)


def test_the_same_recording_has_no_difference() -> None:
    inspection = seen(CHAT, "openai-chat")
    assert first_difference(inspection, inspection) is None


def test_the_same_content_in_other_pieces_has_no_difference() -> None:
    whole = seen(said("high tide"), "openai-chat")
    pieces = seen(b"".join(map(said, ["hi", "gh ti", "", "de"])), "openai-chat")
    assert first_difference(whole, pieces) is None
    assert first_difference(pieces, whole) is None


def test_ids_of_two_calls_are_not_compared() -> None:
    other = ANTHROPIC.replace(b"toolu_01Forecast", b"toolu_02Forecast").replace(b"msg_", b"gsm_")
    assert other != ANTHROPIC
    one = seen(ANTHROPIC, "anthropic-messages")
    assert first_difference(one, seen(other, "anthropic-messages")) is None


@pytest.mark.parametrize(
    ("left", "right", "events", "told"),
    [
        (["a", "b"], ["a", "c"], (1, 1), ("b", "c")),
        (["ab", "cd", "ef"], ["abc", "dxf"], (2, 1), ("ef", "xf")),
        (["a"], ["a", "b"], (1, 1), ("part_end", "b")),
        (["a", "b"], ["a"], (1, 1), ("b", "part_end")),
    ],
)
def test_the_first_event_that_differs_is_found(
    left: list[str], right: list[str], events: tuple[int, int], told: tuple[str, str]
) -> None:
    found = first_difference(
        *(seen(b"".join(map(said, texts)), "openai-chat") for texts in (left, right))
    )
    assert found is not None
    assert (found.left_event, found.right_event) == events
    assert told[0] in found.left
    assert told[1] in found.right


def test_counts_are_compared_after_the_content() -> None:
    fewer = ANTHROPIC.replace(b'"output_tokens":3', b'"output_tokens":2')
    one, other = seen(ANTHROPIC, "anthropic-messages"), seen(fewer, "anthropic-messages")
    found = first_difference(one, other)
    assert found is not None
    assert (found.left_event, found.left[:5]) == (0, "usage")
    both = seen(fewer.replace(b"JP", b"KR"), "anthropic-messages")
    found = first_difference(one, both)
    assert found is not None
    assert "JP" in found.left


def test_an_error_differs_from_a_success() -> None:
    found = first_difference(seen(CHAT, "openai-chat"), seen(CHAT_ERROR, "openai-chat"))
    assert found is not None
    assert found.left != found.right


def test_every_kind_of_delta_is_a_json_value() -> None:
    kinds = {
        delta[1]
        for path in BODIES
        for delta in seen(path.read_bytes(), path.parent.parent.name).deltas
    }
    assert kinds == {kind.value for kind in DeltaKind}
