"""Progress of work on files: one line on a terminal, and nothing elsewhere."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltafold.cli import main
from deltafold.cli.progress import Progress, in_bytes, open_progress, opened_file
from wires import ANTHROPIC

ERASED = "\r\x1b[K"


def clock_of(*seconds: float) -> Iterator[float]:
    return iter(seconds)


def test_the_line_has_files_bytes_and_rate_from_two_seconds_on() -> None:
    times = clock_of(0, 1.9, 2, 2.1, 4)
    shown = io.StringIO()
    progress = Progress(3, 4_000_000, shown, lambda: next(times))
    progress.begin_file()
    progress.add(500_000)
    assert shown.getvalue() == ""
    progress.add(500_000)
    assert shown.getvalue() == "\rfile 1 of 3, 1.0 MB of 4.0 MB, 500 kB/s\x1b[K"
    progress.begin_file()
    progress.add(1)  # within a fifth of a second of the line before
    assert "file 2" not in shown.getvalue()
    progress.add(999_999)
    assert shown.getvalue().endswith("\rfile 2 of 3, 2.0 MB of 4.0 MB, 500 kB/s\x1b[K")
    progress.erase()
    progress.erase()
    assert shown.getvalue().endswith(f"/s\x1b[K{ERASED}")
    assert shown.getvalue().count(ERASED) == 1


def test_nothing_is_erased_that_was_not_shown() -> None:
    times = clock_of(0, 1)
    shown = io.StringIO()
    progress = Progress(1, None, shown, lambda: next(times))
    progress.add(10)
    progress.erase()
    assert shown.getvalue() == ""


def test_reads_of_a_file_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 3_000_000)
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1
        return now

    shown = io.StringIO()
    progress = Progress(1, 3_000_000, shown, clock)
    with opened_file(str(path), progress) as reader:
        assert len(reader.read(10)) == 10
        assert len(reader.read()) == 2_999_990
    assert "3.0 MB of 3.0 MB" in shown.getvalue()


@pytest.mark.parametrize("command", ["fold", "inspect", "transcode", "rows"])
def test_a_terminal_is_asked_for_and_a_pipe_gets_nothing(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if command == "rows":
        pytest.importorskip("pyarrow")
    path = tmp_path / "a.sse"
    path.write_bytes(ANTHROPIC)
    words = {
        "fold": ["fold", str(path), str(path)],
        "inspect": ["inspect", str(path), "--no-open", "--out", str(tmp_path / "page.html")],
        "transcode": ["transcode", str(path), "--to", "openai-chat"],
        "rows": ["fold", str(path), "--to", str(tmp_path / "rows.parquet")],
    }[command]
    monkeypatch.setattr("deltafold.cli.progress._SILENT_SECONDS", 0.0)
    assert main(words) == 0
    assert "file 1 of " not in capfd.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main(words) == 0
    err = capfd.readouterr().err
    assert "file 1 of " in err
    assert err.split(ERASED)[0].startswith("\rfile 1 of ")
    assert err.rfind(ERASED) > err.rfind("/s\x1b[K")


def test_the_size_of_what_is_no_file_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with open_progress(["-"]) as progress:
        assert progress.shows
    with open_progress(["-"], shows=False) as progress:
        assert not progress.shows


def test_bytes_have_their_unit() -> None:
    assert [in_bytes(size) for size in (0, 999, 1000, 12_345, 9_990_000_000, 5e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "12 kB",
        "10.0 GB",
        "5000 TB",
    ]
