"""Lines of the result file of a batch: the answer in each, with the id of its request.

Source: docs/protocols/decoding.md#batches.
"""

import json
import pickle
from typing import Any, Final

import pytest

import deltafold
from any_name import AnyName
from corpus import ROOT
from deltafold import ErrorCode, ModelError
from deltafold.message.cost import cost_of
from protocol_bodies import ANTHROPIC, CHAT, WHOLE
from splits import everywhere

BATCHES: Final = ROOT / "tests" / "fixtures" / "batches"
GEMINI: Final = "gemini"
TIDE: Final = "High tide is at 6."

# A file: of each line the id, the dialect, and the text or the code of the error with its status.
Told = tuple[str | None, AnyName, str | tuple[ErrorCode, int | None]]
FILES: Final[dict[str, list[Told]]] = {
    "openai": [
        ("request-1", CHAT, TIDE),
        ("request-2", CHAT, (ErrorCode.NOT_FOUND, 400)),
        ("request-3", CHAT, (ErrorCode.TIMEOUT, None)),
        ("request-4", "openai-responses", "Low tide is at noon."),
    ],
    "anthropic": [
        ("request-1", ANTHROPIC, TIDE),
        ("request-2", ANTHROPIC, (ErrorCode.INVALID_REQUEST, None)),
        ("request-3", ANTHROPIC, (ErrorCode.CANCELLED, None)),
        ("request-4", ANTHROPIC, (ErrorCode.TIMEOUT, None)),
    ],
    "bedrock": [
        ("request-1", ANTHROPIC, TIDE),
        ("request-2", "bedrock-converse", "Low tide is at noon."),
        ("request-3", ANTHROPIC, (ErrorCode.INVALID_REQUEST, 400)),
    ],
    "mistral": [
        ("request-1", "mistral", TIDE),
        ("request-2", CHAT, (ErrorCode.INVALID_REQUEST, 422)),
    ],
    "gemini": [
        ("request-1", GEMINI, TIDE),
        ("request-2", GEMINI, (ErrorCode.INVALID_REQUEST, 400)),
        ("request-3", GEMINI, "Low tide is at noon."),
    ],
    "vertex": [
        ("request-1", GEMINI, TIDE),
        (None, GEMINI, (ErrorCode.INVALID_REQUEST, 400)),
    ],
}
LINES: Final = [
    (line, *told)
    for name, expected in FILES.items()
    for line, told in zip(
        (BATCHES / f"{name}.jsonl").read_bytes().splitlines(), expected, strict=True
    )
]
ANSWERS: Final = [line for line in LINES if isinstance(line[3], str)]


@pytest.mark.parametrize(("line", "custom_id", "dialect", "outcome"), LINES)
def test_a_line_is_the_answer_or_the_error_in_it(
    line: bytes,
    custom_id: str | None,
    dialect: AnyName,
    outcome: str | tuple[ErrorCode, int | None],
) -> None:
    assert deltafold.detect(line).candidates[0] == dialect
    deltas, _ = everywhere(dialect, line)
    if isinstance(outcome, str):
        message = deltafold.fold(line + b"\n", dialect)
        assert (message.text, message.meta.custom_id) == (outcome, custom_id)
        assert message.meta.warnings == []
        return
    assert deltas[-1].kind == "error"
    with pytest.raises(ModelError) as caught:
        deltafold.fold(line, dialect)
    assert ((caught.value.code, caught.value.status), caught.value.custom_id) == (
        outcome,
        custom_id,
    )
    assert pickle.loads(pickle.dumps(caught.value)).custom_id == custom_id  # noqa: S301 - own bytes


@pytest.mark.parametrize(("line", "custom_id", "dialect", "text"), ANSWERS)
def test_the_answer_in_a_line_has_the_facts_of_its_body(
    line: bytes, custom_id: str, dialect: AnyName, text: str
) -> None:
    wire: Any = json.loads(line)
    body: Any = wire.get("modelOutput") or wire.get("response") or wire["result"]["message"]
    body = body.get("body", body)
    told = deltafold.fold(json.dumps(body).encode(), dialect, run_id="run").meta
    batched = deltafold.fold(line, dialect, run_id="run").meta
    assert batched.usage is not None
    assert told.usage is not None
    assert (batched.usage.details or {}).pop("processing") == "batch"
    assert batched.usage == told.usage
    assert (batched.details or {}).pop("custom_id") == custom_id
    names = ("model_id", "response_id", "finish_reason", "raw_finish_reason")
    assert [getattr(batched, name) for name in names] == [getattr(told, name) for name in names]
    assert (batched.details or None) == told.details
    assert text


@pytest.mark.parametrize(("line", "custom_id", "dialect", "text"), ANSWERS)
def test_a_line_that_is_printed_over_several_ones_is_the_same(
    line: bytes, custom_id: str, dialect: str, text: str
) -> None:
    printed = json.dumps(json.loads(line), indent=1).encode()
    assert deltafold.detect(printed).dialect == dialect
    _, message = everywhere(dialect, printed)
    assert (message.text, message.meta.custom_id) == (text, custom_id)


@pytest.mark.parametrize("name", FILES)
def test_a_column_of_lines_has_a_column_of_ids(name: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    lines = (BATCHES / f"{name}.jsonl").read_bytes().splitlines()
    half = lines[0][: len(lines[0]) * 2 // 3]
    rows = deltafold.arrow.fold(pyarrow.array([*lines, half, WHOLE[CHAT]]))
    custom_ids = [custom_id for custom_id, _, _ in FILES[name]]
    assert rows.field("custom_id").to_pylist() == [*custom_ids, custom_ids[0], None]
    assert rows.field("dialect").to_pylist()[: len(lines)] == [told[1] for told in FILES[name]]
    codes = [None if isinstance(told[2], str) else told[2][0] for told in FILES[name]]
    errors = [row["error"] and row["error"]["code"] for row in rows.to_pylist()]
    assert errors == [*codes, ErrorCode.CONNECTION_LOST, None]


@pytest.mark.parametrize(("line", "custom_id", "dialect", "text"), ANSWERS)
def test_a_half_line_is_a_lost_connection_with_the_id_that_came(
    line: bytes, custom_id: str, dialect: AnyName, text: str
) -> None:
    assert text
    halves = [line[:end] for end in range(2, len(line))]
    folded = deltafold.fold_many(halves, dialect)
    assert {one.error and one.error.code for one in folded} == {ErrorCode.CONNECTION_LOST}
    found = {one.snapshot().meta.custom_id for one in folded}
    assert found <= {None, custom_id}
    assert line.startswith(b'{"response"') or found == {None, custom_id}


def test_many_lines_are_as_many_messages() -> None:
    lines = (BATCHES / "anthropic.jsonl").read_bytes().splitlines()
    folded = deltafold.fold_many(lines, ANTHROPIC)
    assert [one.snapshot().meta.custom_id for one in folded] == [
        told[0] for told in FILES["anthropic"]
    ]
    assert [one.text for one in folded] == [TIDE, "", "", ""]


@pytest.mark.parametrize("name", FILES)
def test_several_lines_in_one_body_are_an_error_that_names_the_way(name: str) -> None:
    body = (BATCHES / f"{name}.jsonl").read_bytes()
    dialect = FILES[name][0][1]
    lines = body.splitlines()
    for several in (b"\n".join(lines[:2]), b"".join(lines[:2]), lines[0] + b"\n" + lines[1][:30]):
        deltas, _ = everywhere(dialect, several)
        assert deltas[-1].error_code == ErrorCode.PROTOCOL_ERROR
        assert not any(delta.text for delta in deltas)
        with pytest.raises(ModelError, match="fold_many"):
            deltafold.fold(several, dialect)


def test_a_connection_that_is_lost_behind_the_line_takes_nothing_of_it() -> None:
    decoder = deltafold.Decoder(CHAT)
    folded = deltafold.MessageAssembler()
    folded.consume(decoder.feed(LINES[0][0] + b"\n"))
    folded.consume(decoder.fail("connection_lost", "the peer closed it"))
    message = folded.build_final_message()
    assert (message.text, message.meta.custom_id) == (TIDE, "request-1")


def test_a_line_holds_all_answers_of_its_request() -> None:
    wire = json.loads(LINES[0][0])
    choices = wire["response"]["body"]["choices"]
    choices.append({**choices[0], "index": 1, "message": {"content": "At 18."}})
    folded = deltafold.fold_choices(json.dumps(wire).encode(), CHAT)
    assert {number: one.text for number, one in folded.items()} == {0: TIDE, 1: "At 18."}
    assert {one.snapshot().meta.custom_id for one in folded.values()} == {"request-1"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"custom_id": "a", "response": {"status_code": 200}}', "neither an answer nor an error"),
        (b'{"custom_id": "a", "result": {"type": "lost"}}', "did not run: lost"),
        (b'{"custom_id": "a", "response": {"status_code": 500, "body": null}}', "HTTP status 500"),
        (b'{"key": "a", "response": {"news": [1]}}', "no event of openai-chat was recognised"),
    ],
)
def test_a_line_without_an_answer_is_an_error(line: bytes, message: str) -> None:
    deltas, _ = everywhere(CHAT, line)
    assert message in str(deltas[-1].payload["message"])
    assert (deltas[-1].details or {})["custom_id"] == "a"


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": "batch_req_1", "object": "chat.completion", "custom_id": "a", "response": {}}',
        b'{"key": "a", "choices": []}',
        b'{"error": {"message": "no"}}',
        b'{"status": "failed", "error": {"message": "no"}}',
        b'{"custom_id": "a"}',
    ],
)
def test_other_bodies_are_no_lines(body: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        deltafold.fold(body, CHAT)
    assert "line" not in caught.value.message


@pytest.mark.parametrize(
    ("name", "vendor", "model_id"),
    [
        ("openai", "openai", "gpt-4o-mini"),
        ("anthropic", "anthropic", "claude-sonnet-4-5"),
        ("gemini", "gemini", "gemini-2.5-flash"),
        ("mistral", "mistral", "mistral-small-latest"),
    ],
)
def test_a_line_has_the_prices_of_a_batch(name: AnyName, vendor: str, model_id: str) -> None:
    pytest.importorskip("genai_prices")
    line = (BATCHES / f"{name}.jsonl").read_bytes().splitlines()[0]
    usage = deltafold.fold(line, FILES[name][0][1]).meta.usage
    assert usage is not None
    counts = deltafold.Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    price = cost_of(usage, vendor, model_id).usd
    listed = cost_of(counts, vendor, model_id).usd
    assert price is not None
    assert listed is not None
    assert price == pytest.approx(listed / 2)
