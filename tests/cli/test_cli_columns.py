"""`deltafold fold --to` and `deltafold stats`: streams of any file become rows."""

import gzip
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pytest

import deltafold
from arrow_rows import plain_row, row_of
from corpus import ROOT
from deltafold.cli import main
from deltafold.cli.stats import bar, number
from deltafold.message.cost import cost_of
from deltafold.testing import Recording
from protocol_bodies import ANTHROPIC, CHAT, DONE, USAGE, WHOLE, chunk, finish, said

pa: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")

CASSETTE = ROOT / "tests" / "fixtures" / "cassettes" / "vcrpy.yaml"


def zstd(body: bytes) -> bytes:
    packed: bytes = pa.compress(body, codec="zstd", asbytes=True)
    return packed


def tar_of(members: dict[str, bytes], mode: Literal["w", "w:gz"] = "w") -> bytes:
    out = BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, BytesIO(body))
    return out.getvalue()


def recording_lines(*recordings: Recording, folder: Path) -> bytes:
    path = folder / "one.jsonl"
    lines = b""
    for recording in recordings:
        recording.save(path)
        lines += path.read_bytes()
    path.unlink()
    return lines


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def message_of(row: dict[str, Any]) -> dict[str, Any]:
    names = deltafold.arrow.message_type().names
    return {name: row[name] for name in names}


PLAIN = WHOLE[CHAT]
FORMS: dict[str, Callable[[], tuple[bytes, list[str]]]] = {
    "body": lambda: (PLAIN, [""]),
    "gzip": lambda: (gzip.compress(PLAIN), [""]),
    "two gzips": lambda: (gzip.compress(PLAIN[:50]) + gzip.compress(PLAIN[50:]), [""]),
    "zstd": lambda: (zstd(PLAIN), [""]),
    "tar": lambda: (tar_of({"a.sse": PLAIN, "b/c": PLAIN}), ["/a.sse", "/b/c"]),
    "tar.gz": lambda: (tar_of({"a": PLAIN}, "w:gz"), ["/a"]),
    "tar.zst": lambda: (zstd(tar_of({"a": PLAIN, "b": PLAIN})), ["/a", "/b"]),
    "packed members": lambda: (
        tar_of({"a.gz": gzip.compress(PLAIN), "b": zstd(PLAIN)}),
        ["/a.gz", "/b"],
    ),
    "tar in a tar": lambda: (tar_of({"in.tar": tar_of({"a": PLAIN})}), ["/in.tar/a"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_is_a_row_however_it_is_packed(form: str, tmp_path: Path) -> None:
    content, members = FORMS[form]()
    file = tmp_path / "file"
    file.write_bytes(content)
    assert main(["fold", str(file), "--to", str(tmp_path / "out.parquet")]) == 0
    rows = rows_of(tmp_path / "out.parquet")
    assert [row["source"] for row in rows] == [f"{file}{member}" for member in members]
    for row in rows:
        assert plain_row(message_of(row)) == plain_row(row_of(PLAIN, CHAT, logprobs=True))


def test_recordings_have_their_times_and_their_status(tmp_path: Path) -> None:
    events = [said("a"), finish("stop"), DONE]
    timed = Recording(tuple(zip((0.25, 0.5, 0.0), events, strict=True)), headers_after=0.5)
    refused = Recording.error(429, {"error": {"message": "slow down", "type": "rate_limit_error"}})
    cut = timed.stopping("cut", after=len(events[0]))
    file = tmp_path / "many.jsonl"
    file.write_bytes(recording_lines(timed, refused, cut, folder=tmp_path))
    assert main(["fold", str(file), "--dialect", CHAT, "--to", str(tmp_path / "out.parquet")]) == 1
    first, second, third = rows_of(tmp_path / "out.parquet")
    assert first["source"] == f"{file}#1"
    assert first["timing"] == {
        "time_to_first_byte": 0.75,
        "time_to_first_delta": 0.75,
        "time_to_first_text": 0.75,
        "duration": 1.25,
    }
    assert (second["status"], second["error"]["code"]) == (429, "rate_limited")
    assert (third["text"], third["error"]["code"]) == ("a", "connection_lost")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_each_interaction_of_a_cassette_is_a_row(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    pytest.importorskip("yaml")
    file = tmp_path / ("c.yaml.gz" if pack is gzip.compress else "c.yaml")
    file.write_bytes(pack(CASSETTE.read_bytes()))
    main(["fold", str(file), "--to", str(tmp_path / "out.parquet")])
    rows = rows_of(tmp_path / "out.parquet")
    recordings = deltafold.testing.load_cassette(CASSETTE)
    assert len(rows) == len(recordings) > 0
    assert [row["status"] for row in rows] == [recording.status for recording in recordings]
    assert any(row["text"] for row in rows)


def test_a_folder_is_read_with_all_folders_below(tmp_path: Path) -> None:
    below = tmp_path / "in" / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "in" / "z.sse").write_bytes(PLAIN)
    (below / "y.sse").write_bytes(WHOLE[ANTHROPIC])
    assert main(["fold", str(tmp_path / "in"), "--to", str(tmp_path / "out.parquet")]) == 0
    rows = rows_of(tmp_path / "out.parquet")
    assert [(Path(row["source"]).name, row["dialect"]) for row in rows] == [
        ("y.sse", ANTHROPIC),
        ("z.sse", CHAT),
    ]


def test_a_damaged_file_costs_no_other_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad.gz"
    good.write_bytes(PLAIN)
    for content in (
        gzip.compress(PLAIN)[:-20],
        b"\x1f\x8b" + b"x" * 100,
        zstd(PLAIN)[:20] + b"damaged",
        tar_of({"a": PLAIN * 20})[:1500],
        b'{"recording":1,"status":200}\n{"after":0,"text":5}\n',
        b'{"recording":1',
    ):
        bad.write_bytes(content)
        out = tmp_path / "out.parquet"
        assert main(["fold", str(bad), str(good), "--to", str(out)]) == 2
        assert "bad.gz" in capsys.readouterr().err
        assert rows_of(out)[-1]["text"] == row_of(PLAIN, CHAT)["text"]


def test_many_streams_are_written_by_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltafold.cli.columns._BATCH_ROWS", 7)
    file = tmp_path / "many.tar"
    file.write_bytes(
        tar_of({f"{at:03}": said(f"number {at}") + finish("stop") for at in range(100)})
    )
    out = tmp_path / "out.parquet"
    assert main(["fold", str(file), "--dialect", CHAT, "--to", str(out)]) == 0
    assert [row["text"] for row in rows_of(out)] == [f"number {at}" for at in range(100)]
    assert parquet.ParquetFile(out).num_row_groups == 15


def test_the_summary_has_streams_errors_tokens_and_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_bytes(said("a") + finish("stop") + chunk(None, usage=USAGE) + DONE)
    (tmp_path / "b").write_bytes(said("cut"))
    out = tmp_path / "out.parquet"
    files = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["fold", *files, "--dialect", CHAT, "--to", str(out)]) == 1
    shown = dict(line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:])
    assert shown["streams"] == "2"
    assert shown["ended in an error"] == "1"
    assert shown["  connection_lost"] == "1"
    assert shown["output tokens"] == str(USAGE["completion_tokens"])


def test_the_cost_is_that_of_the_vendor(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    body = json.dumps(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "a"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1_000, "output_tokens": 100},
        }
    )
    (tmp_path / "a").write_text(body)
    out = tmp_path / "out.parquet"
    assert main(["fold", str(tmp_path / "a"), "--to", str(out)]) == 0
    message = deltafold.fold(body.encode(), ANTHROPIC)
    wanted = cost_of(message.meta.usage, "anthropic", "claude-sonnet-4-5").usd
    assert rows_of(out)[0]["cost_usd"] == wanted
    assert main(["fold", str(tmp_path / "a"), "--vendor", "nobody", "--to", str(out)]) == 0
    assert rows_of(out)[0]["cost_usd"] is None


def test_wrong_usage_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out.parquet")
    assert main(["fold", str(tmp_path / "missing"), "--to", out]) == 2
    assert "missing" in capsys.readouterr().err
    assert main(["fold", "--to", out]) == 2
    assert "standard input" in capsys.readouterr().err
    (tmp_path / "a").write_bytes(PLAIN)
    assert main(["fold", str(tmp_path / "a"), "--to", str(tmp_path / "no" / "out")]) == 2
    assert not list(tmp_path.glob("*.unfinished"))
    without = "import sys; sys.modules['pyarrow'] = None; from deltafold.cli import main; "
    program = f"{without}sys.exit(main({['fold', str(tmp_path / 'a'), '--to', out]!r}))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ran.returncode == 2
    assert b"pip install 'deltafold[arrow]'" in ran.stderr


def test_stats_show_distributions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recordings = [
        Recording(((at / 100, said("a" * at)), (0.5, finish("stop") + DONE))) for at in range(1, 40)
    ]
    file = tmp_path / "many.jsonl"
    file.write_bytes(recording_lines(*recordings, folder=tmp_path))
    out = tmp_path / "out.parquet"
    assert main(["fold", str(file), "--dialect", CHAT, "--to", str(out)]) == 0
    capsys.readouterr()
    assert main(["stats", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "seconds to the first text: 0.01 to 0.39; 50% 0.2, 95% 0.371, 99% 0.386" in shown
    histogram = (
        shown.partition("seconds to the first text")[2].partition("\n\n")[0].splitlines()[2:]
    )
    assert sum(int(line.split()[2]) for line in histogram) == 39
    assert "stop           39" in shown


def test_stats_refuse_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(tmp_path / "missing")]) == 2
    (tmp_path / "text").write_text("text")
    assert main(["stats", str(tmp_path / "text")]) == 2
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "other")
    assert main(["stats", str(tmp_path / "other")]) == 2
    assert "has no column" in capsys.readouterr().err


def test_bars_and_numbers() -> None:
    assert [len(bar(share)) for share in (0, 0.5, 1)] == [0, 20, 40]
    assert bar(1 / 320) == "▏"
    assert [number(value) for value in (0, 0.01234, 99.95, 1234567)] == [
        "0",
        "0.0123",
        "100",
        "1,234,567",
    ]


def test_a_bar_is_shown_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    (tmp_path / "a").write_bytes(PLAIN)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    out = tmp_path / "out.parquet"
    assert main(["fold", str(tmp_path / "a"), "--to", str(out)]) == 0
    shutil.copy(out, tmp_path / "copy")
    assert capsys.readouterr().out.startswith("of all streams")
