"""Results of batches on the command line: `fold`, `fold --to`, `stats`, `inspect`."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from corpus import ROOT
from deltafold.cli import main

BATCHES: Final = ROOT / "tests" / "fixtures" / "batches"
NAMES: Final = sorted(path.stem for path in BATCHES.glob("*.jsonl"))


def results(name: str) -> list[bytes]:
    return (BATCHES / f"{name}.jsonl").read_bytes().splitlines()


def test_there_are_results_of_each_provider() -> None:
    assert NAMES == ["anthropic", "bedrock", "gemini", "mistral", "openai", "vertex"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_pipe", [False, True])
def test_fold_prints_the_message_of_each_line(
    name: str,
    is_pipe: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = BATCHES / f"{name}.jsonl"
    if is_pipe:
        pipe = io.TextIOWrapper(io.BufferedReader(io.BytesIO(file.read_bytes())))
        monkeypatch.setattr("sys.stdin", pipe)
    assert main(["fold", "-" if is_pipe else str(file), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    source = "standard input" if is_pipe else str(file)
    assert [line["file"] for line in lines] == [
        f"{source}#{number}" for number in range(1, len(results(name)) + 1)
    ]
    details = lines[0]["message"]["meta"]["details"]
    assert (details["custom_id"], lines[0]["error"]) == ("request-1", None)
    assert any(line["error"] for line in lines)


def test_a_heading_has_the_id_of_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fold", str(BATCHES / "mistral.jsonl")]) == 1
    shown = capsys.readouterr()
    assert "mistral.jsonl#1 request-1 (mistral)\ntext: High tide is at 6.\n" in shown.out
    assert "mistral.jsonl#2: invalid_request: temperature must be at most 1.5" in shown.err


def test_half_a_line_is_an_error_and_not_the_end_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *_ = results("anthropic")
    file = tmp_path / "results.jsonl"
    file.write_bytes(first + b"\n\n" + second[:20] + b"\n" + first[:9] + b"\n" + first)
    assert main(["fold", str(file), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    codes = [line["error"] and line["error"]["code"] for line in lines]
    assert codes == [None, "connection_lost", "connection_lost", None]
    assert {line["dialect"] for line in lines} == {"anthropic-messages"}


def rows_of(path: Path) -> list[dict[str, Any]]:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_each_line_is_a_row(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    lines = results("openai")
    file = tmp_path / "results.jsonl"
    file.write_bytes(pack(b"\n".join([*lines, lines[0][:200]])))
    assert main(["fold", str(file), "--to", str(tmp_path / "out.parquet")]) == 1
    rows = rows_of(tmp_path / "out.parquet")
    assert [row["source"] for row in rows] == [f"{file}#{number}" for number in range(1, 6)]
    ids = [f"request-{number}" for number in (1, 2, 3, 4, 1)]
    assert [row["custom_id"] for row in rows] == ids
    codes = [row["error"] and row["error"]["code"] for row in rows]
    assert codes == [None, "not_found", "timeout", None, "connection_lost"]
    # Half of the listed 0.15 and 0.60 dollars for a million tokens.
    assert rows[0]["cost_usd"] == pytest.approx((20 * 0.15 + 7 * 0.6) / 2e6)


def test_the_members_of_a_line_may_come_after_a_long_answer(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    wire = json.loads(results("gemini")[2])
    wire["response"]["candidates"][0]["content"]["parts"][0]["text"] = "tide " * 40_000
    file = tmp_path / "results.jsonl"
    file.write_text(f"{json.dumps(wire)}\n" * 2)
    assert main(["fold", str(file), "--to", str(tmp_path / "out.parquet")]) == 0
    rows = rows_of(tmp_path / "out.parquet")
    assert [(row["custom_id"], len(row["text"])) for row in rows] == [("request-3", 200_000)] * 2
    assert main(["fold", str(file), "--json"]) == 0


def test_stats_of_results_are_those_of_their_messages(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    assert main(["stats", str(BATCHES / "openai.jsonl")]) == 1
    shown = capsys.readouterr().out
    assert shown.count("of all streams") == 1
    assert "ended in an error  2" in shown
    assert "cost               $0.0000 (2 streams with a price)" in shown


def test_inspect_shows_a_file_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "results.jsonl", tmp_path / "page.html"
    file.write_bytes(results("bedrock")[0])
    assert main(["inspect", str(file), "--out", str(page), "--no-open"]) == 0
    assert "High tide is at 6." in page.read_text()
    assert capsys.readouterr().out == f"{page}\n"
