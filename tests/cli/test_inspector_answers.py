"""What the page says of an answer, against its fold: every recording and every fixture."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

import deltafold
from any_name import AnyName
from corpus import CORPUS, FIXTURES, needs_corpus
from deltafold import Message, ModelError
from deltafold._core import dialect_names
from deltafold.inspector import Inspection, inspect_recording, make_page, read_page
from deltafold.inspector.frames import frame_of
from deltafold.testing import Recording

BODIES = sorted(path for path in FIXTURES.glob("*/*/wire.*") if "+" not in path.parent.parent.name)


def folded(body: bytes, dialect: AnyName, status: int = 200) -> tuple[Message, ModelError | None]:
    """Return what `deltafold.fold` says of a body."""
    # Ids of calls that have none are made of the run's.
    options: Any = {"run_id": "inspected"}
    if status >= 400:
        options["status"] = status
    try:
        return deltafold.fold(body, dialect, **options), None
    except ModelError as error:
        return cast("Message", error.partial_message), error


def told_by_fold(message: Message, error: ModelError | None) -> dict[str, object]:
    """Return the facts of an answer, from the message itself."""
    meta, calls = message.meta, message.tool_calls
    defects = {call.tool_call_id: call.defect for call in calls if call.defect is not None}
    usage = meta.usage
    return {
        "error": None if error is None else (error.code, error.message, str(error)),
        "noted error": [] if error is None else [(error.code, error.message or "no message")],
        "warnings": Counter(
            (one["code"], one["message"], one.get("offset")) for one in meta.warnings
        ),
        "number of warnings": len(meta.warnings),
        "finish reason": (meta.finish_reason, meta.raw_finish_reason),
        "refusal": [message.forbids_calls] if message.forbids_calls and error is None else [],
        "calls": [(call.tool_call_id, call.tool_name) for call in calls],
        "runnable calls": [call.tool_call_id for call in message.runnable_tool_calls],
        "reasons": message.not_runnable,
        "noted calls": Counter(
            f"{call.tool_name} ({call.tool_call_id}): {defects[call.tool_call_id]}"
            for call in calls
            if call.tool_call_id in defects
        ),
        "parts": len(message.parts),
        "usage": None if usage is None else json.loads(usage.model_dump_json(by_alias=True)),
    }


def told_by_page(inspection: Inspection) -> dict[str, object]:
    """Return the same facts, from the data of the page."""
    answer, notes = inspection.answer, inspection.notes
    assert answer is not None
    error, calls = answer.error, answer.calls
    return {
        "error": None if error is None else (error.code, error.message, error.advice),
        "noted error": [(code, text) for _, level, code, text, _ in notes if level == "error"],
        "warnings": Counter(
            (code, text, offset) for _, level, code, text, offset in notes if level == "warning"
        ),
        "number of warnings": answer.warnings,
        "finish reason": (answer.finish_reason, answer.raw_finish_reason),
        "refusal": [text for _, level, _, text, _ in notes if level == "refusal"],
        "calls": [(call.id, call.name) for call in calls],
        "runnable calls": [call.id for call in calls if call.runnable],
        "reasons": {call.id: call.reason for call in calls if call.reason is not None},
        "noted calls": Counter(text for _, level, _, text, _ in notes if level == "call"),
        "parts": answer.parts,
        "usage": answer.usage,
    }


def differences(body: bytes, dialect: AnyName, status: int = 200) -> list[str]:
    """Return the names of the facts in which a page and the fold of its recording differ."""
    recording = Recording(((0.0, body),), status=status)
    (page,) = read_page(make_page([inspect_recording(recording, dialect)]))
    expected, found = told_by_fold(*folded(body, dialect, status)), told_by_page(page)
    return [name for name in expected if expected[name] != found[name]]


def test_a_call_without_arguments_is_no_problem() -> None:
    (path,) = (FIXTURES / "openai-responses" / "no-argument-call").glob("wire.*")
    inspection = inspect_recording(Recording.of(path.read_bytes()), "openai-responses")
    assert inspection.notes == []
    assert [change for *_, changes in inspection.deltas for change in changes] == [([], "set", {})]


def test_a_cut_call_is_noted_at_its_event_with_the_reason() -> None:
    (path,) = (FIXTURES / "anthropic-messages" / "cut-mid-args").glob("wire.*")
    inspection = inspect_recording(Recording.of(path.read_bytes()), "anthropic-messages")
    error, call = inspection.notes
    assert (error[1], call[1], call[2]) == ("error", "call", "incomplete")
    assert "the call was cut off" in call[3]


def test_a_refused_answer_is_noted_where_it_ended() -> None:
    (path,) = (FIXTURES / "openai-responses" / "refusal").glob("wire.*")
    inspection = inspect_recording(Recording.of(path.read_bytes()), "openai-responses")
    assert [note[1] for note in inspection.notes] == ["refusal"]
    assert inspection.deltas[-1][0] == inspection.notes[0][0]


def test_binary_frames_have_their_type_and_content_beside_their_bytes() -> None:
    body = (FIXTURES / "bedrock-converse" / "throttling" / "wire.bin").read_bytes()
    inspection = inspect_recording(Recording.of(body), "bedrock-converse")
    frame = inspection.frames[-1]
    assert frame is not None
    assert frame[0] == ":throttlingException"
    assert json.loads(frame[1])["message"].startswith("Too many tokens")
    assert ":exception-type" in inspection.texts[len(inspection.frames) - 1]


def test_the_chunks_of_invoke_model_show_the_events_that_they_hold() -> None:
    name = "anthropic-thinking-and-call"
    (path,) = (FIXTURES / "bedrock-invoke" / name).glob("wire.*")
    inspection = inspect_recording(Recording.of(path.read_bytes()), "bedrock-invoke")
    shown = [json.loads(frame[1]) for frame in inspection.frames if frame is not None]
    assert [event["type"] for event in shown][:2] == ["message_start", "content_block_start"]


@pytest.mark.parametrize("event", [b"", b"data: {}\n\n", b"\0", b"\0\0\0\x10" + b"\0" * 12])
def test_other_bytes_are_no_frame(event: bytes) -> None:
    assert frame_of(event) is None


def test_a_page_of_an_older_version_is_read() -> None:
    inspection = inspect_recording(Recording.of(b"data: [DONE]\n\n"), "openai-chat")
    members = inspection.to_dict()
    del members["answer"], members["frames"]
    older = Inspection.from_dict(members)
    assert (older.answer, older.frames) == (None, [])
    assert older.deltas == inspection.deltas


@needs_corpus
def test_a_page_says_of_every_recording_what_its_fold_says() -> None:
    lines = (CORPUS / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    read = [row for row in rows if row["dialect"] in dialect_names()]
    found = {
        row["file"]: differences(
            (CORPUS / row["file"]).read_bytes(), row["dialect"], row.get("http_status") or 200
        )
        for row in read
    }
    assert len(found) > 900
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("path", BODIES, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_a_page_says_of_a_fixture_what_its_fold_says(path: Path) -> None:
    assert differences(path.read_bytes(), path.parent.parent.name) == []
