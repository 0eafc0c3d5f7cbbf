"""Wrong uses of the command: the exit code, one to three lines, and what to do instead."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from deltafold.cli import main
from deltafold.testing import Recording, ReplayServer
from wires import ANTHROPIC, CHAT_ERROR

FILES: Final = {
    "a.sse": ANTHROPIC,
    "empty.sse": b"",
    "blank.sse": b"\n \n",
    "notes.txt": b"hello world\n",
    "picture.sse": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0",
    "program.sse": b"\x7fELF\2\1\1\0",
    "page.sse": b"<!DOCTYPE html><title>502 Bad Gateway</title>",
    "random.sse": b"\xfe\xff\x9c\x80" * 40,
    "other.json": b'{"a": 1}',
    "wrong.toml": b"[models\n",
    "no-table.toml": b"[model]\n",
    "misspelled.toml": b'[models]\na = "opnai/gpt-5"\n',
    "setting.toml": b'[models.a]\nmodel = "openai/gpt-5"\ntemperatur = 1\n',
    "address.toml": b'[models.a]\nmodel = "vllm/qwen3"\nbase_url = 3\n',
    "value.toml": b'[models.a]\nmodel = "openai/gpt-5"\ntemperature = "hot"\n',
    "number.toml": b"[models]\na = 3\n",
    "numbers.toml": b"[models]\na = [3]\n",
    "damaged.gz": b"\x1f\x8bdamaged",
    "damaged.parquet": b"PAR1damaged",
    "full/a.sse": ANTHROPIC,
    "breaks.py": b"1 / 0\n",
}

USAGE, ERROR = 2, 1

WRONG_USES: Final = [
    # The command, its exit code, and what its lines say.
    ("fodl a.sse", USAGE, ["no command 'fodl'", "did you mean 'fold'?", "deltafold --help"]),
    ("--vers1on", USAGE, ["no option --vers1on", "did you mean '--version'?"]),
    ("fold a.sse --jsn", USAGE, ["no option --jsn", "did you mean '--json'?", "fold --help"]),
    ("fold a.sse --dialect openai-chatt", USAGE, ["did you mean 'openai-chat'?"]),
    ("fold a.sse --dialect openai", USAGE, ["'openai-chat' or 'openai-responses'?"]),
    ("fold a.sse --dialect klingon", USAGE, ["no protocol 'klingon'", "anthropic-messages"]),
    ("fold empty.sse", USAGE, ["empty.sse is empty", "these work: a body as it came"]),
    ("fold blank.sse", USAGE, ["blank.sse is empty"]),
    ("fold full", USAGE, ["full is a folder", "full/a.sse", "fold full --to rows.parquet"]),
    ("fold none", USAGE, ["none is a folder without files"]),
    ("fold picture.sse", USAGE, ["is a picture (PNG)", "these work"]),
    ("fold program.sse", USAGE, ["is a program", "these work"]),
    ("fold page.sse", USAGE, ["is a page of HTML, perhaps of a proxy"]),
    ("fold random.sse", USAGE, ["is binary data of no known form", "these work"]),
    ("fold notes.txt", USAGE, ["fit no protocol", "--dialect: anthropic-messages"]),
    ("fold other.json", USAGE, ["no answer of a known protocol", "--column"]),
    ("fold damaged.gz", USAGE, ["damaged.gz: "]),
    ("inspect damaged.gz --no-open", USAGE, ["damaged.gz: "]),
    ("stats damaged.parquet", USAGE, ["damaged.parquet: ", "not a parquet file"]),
    ("fold a.see", USAGE, ["a.see: no such file; did you mean a.sse?"]),
    ("fold gone/a.sse", USAGE, ["there is no folder gone"]),
    ("fold a.sse#2", USAGE, ["has no such answer; it has a.sse"]),
    ("fold a.sse --dialect gemini", ERROR, ["this is anthropic-messages", "(--dialect)"]),
    ("fold a.sse --to rows.csv", USAGE, ["it writes Parquet", "rows.parquet", "--json"]),
    ("fold a.sse --to gemini", USAGE, ["deltafold transcode FILE --to gemini"]),
    ("fold none --to rows.parquet", USAGE, ["none has no files"]),
    ("fold - --to rows.parquet", USAGE, ["name the files and folders"]),
    ("fold a.sse --vendor anthropic", USAGE, ["--vendor is for --to"]),
    ("fold a.sse --to r.parquet --vendor antropic", USAGE, ["did you mean 'anthropic'?"]),
    ("fold a.sse --max-bytes lots", USAGE, ["'lots' is no whole number above 0"]),
    ("stats a.sse", USAGE, ["is no Parquet file", "deltafold fold a.sse --to rows.parquet"]),
    ("stats empty.sse", USAGE, ["empty.sse is empty"]),
    ("stats full", USAGE, ["full is a folder", "deltafold fold full --to rows.parquet"]),
    ("stats", USAGE, ["required: FILE", "deltafold stats rows.parquet"]),
    ("transcode a.sse", USAGE, ["required: --to", "--to openai-chat"]),
    ("transcode a.sse --to opnai-chat", USAGE, ["no target", "did you mean 'openai-chat'?"]),
    ("transcode a.sse --from gemini --to ag-ui", ERROR, ["--from anthropic-messages"]),
    ("transcode empty.sse --to gemini", USAGE, ["empty.sse is empty"]),
    ("inspect full", USAGE, ["full is a folder", "full/a.sse"]),
    ("inspect empty.sse", USAGE, ["empty.sse is empty"]),
    ("inspect picture.sse", USAGE, ["is a picture (PNG)"]),
    ("inspect a.sse --diff b.sse", USAGE, ["b.sse: no such file; did you mean a.sse?"]),
    ("inspect a.sse --no-open --out full", USAGE, ["full is a folder: name a file"]),
    ("inspect a.sse --no-open --out gone/p.html", USAGE, ["there is no folder gone"]),
    ("inspect a.sse full/a.sse", USAGE, ["one argument too many: 'full/a.sse'"]),
    ("chat", USAGE, ["required: model", "deltafold chat anthropic/"]),
    ("chat openai:gpt-5-mini hi", USAGE, ["did you mean 'openai/gpt-5-mini'?"]),
    ("chat opnai/gpt-5-mini hi", USAGE, ["did you mean 'openai'?"]),
    ("chat gpt-5-mni hi", USAGE, ["did you mean 'gpt-5-mini'?"]),
    ("chat openai hi", USAGE, ["'openai' is a vendor", "deltafold models openai"]),
    ("chat openai/gpt-5-mini hi", USAGE, ["export OPENAI_API_KEY=...", "--set api_key=..."]),
    ("chat openai/o1 hi --set temperatur=1", USAGE, ["--set temperatur", "'temperature'?"]),
    ("chat openai/o1 hi --set temperature=hot", USAGE, ["--set temperature: it must be"]),
    ("chat openai/o1 hi --set temperature", USAGE, ["must be NAME=VALUE"]),
    ("chat openai/o1 hi --set max_retries=3", USAGE, ["sends nothing twice; run it again"]),
    ("chat openai/o1 hi --set extra_body={", USAGE, ["--set extra_body: not valid JSON"]),
    ("chat openai/o1 hi --set timeouts=3", USAGE, ["which a program alone can give"]),
    ("chat openai/o1 hi --set specification=3", USAGE, ["openai speaks openai-chat"]),
    ("models opnai", USAGE, ["did you mean 'openai'?"]),
    ("models gpt-5-mni", USAGE, ["did you mean 'gpt-5-mini'?"]),
    ("models openai:gpt-5-mini", USAGE, ["did you mean 'openai/gpt-5-mini'?"]),
    ("doctor opnai/gpt-5", USAGE, ["did you mean 'openai'?"]),
    ("serve", USAGE, ["--model fast=openai/gpt-5.6-terra", "[models]", "--replay FOLDER"]),
    ("serve gone.toml", USAGE, ["gone.toml: no such file"]),
    ("serve wrong.toml", USAGE, ["wrong.toml: ", "line 1", "below a line [models]"]),
    ("serve no-table.toml", USAGE, ["no table [models]", "below a line [models]"]),
    ("serve misspelled.toml", USAGE, ["model a: unknown vendor", "did you mean 'openai'?"]),
    ("serve setting.toml", USAGE, ["model a: there is no setting", "mean 'temperature'?"]),
    ("serve value.toml", USAGE, ["model a: temperature: it must be a valid number"]),
    ("serve address.toml", USAGE, ["model a: base_url: it must be a valid string"]),
    ("serve number.toml", USAGE, ["model a: it must be a name, a table or a list, not 3"]),
    ("serve numbers.toml", USAGE, ["model a: it must be a name, a table or a list, not [3]"]),
    ("serve picture.sse", USAGE, ["is no text", "--model"]),
    ("serve full", USAGE, ["full is a folder: --replay full"]),
    ("serve --model fast", USAGE, ["must be NAME=VENDOR/MODEL"]),
    ("serve --model fast=openai:gpt-5", USAGE, ["model fast", "did you mean 'openai/gpt-5'?"]),
    ("serve --replay a.sse", USAGE, ["a.sse is no folder"]),
    ("serve --replay full --port 70000", USAGE, ["'70000' is no port"]),
    ("serve --replay full --drain nan", USAGE, ["'nan' is no number of seconds"]),
    ("serve --replay full --print-config claud-code", USAGE, ["did you mean 'claude-code'?"]),
    ("types Recipe", USAGE, ["must be package.module:Name"]),
    ("types breaks:Recipe", USAGE, ["ZeroDivisionError: division by zero"]),
    ("types gone:Recipe", USAGE, ["No module named 'gone'", "in this folder"]),
    ("completion fsh", USAGE, ["did you mean 'zsh'?"]),
    ("demo --save b.sse x", USAGE, ["one argument too many: 'x'", "demo --save broken.sse"]),
    ("demo --save a.sse", USAGE, ["a.sse exists: name a new file"]),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])  # `types` adds the folder
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def code_of(words: list[str]) -> int | str | None:
    """Run the command, which may leave by SystemExit, and return its exit code."""
    try:
        return main(words)
    except SystemExit as left:
        return left.code


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("use", "code", "said"), WRONG_USES, ids=[one[0] for one in WRONG_USES])
def test_a_wrong_use_has_its_code_and_says_in_few_lines_what_to_do(
    use: str, code: int, said: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert code_of(use.split()) == code
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert 1 <= len(lines) <= 3
    assert all(line.startswith("deltafold: ") for line in lines)
    for words in said:
        assert words in err
    for of_python in ("Traceback", "[Errno", "pass ", "Value error", "Config has no field"):
        assert of_python not in err
    if code == USAGE:
        assert out == ""


def test_the_command_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("usage: deltafold")
    assert "transcode" in shown.out
    assert shown.err == ""


def test_a_misspelled_model_that_its_provider_refuses_is_corrected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refusal = {"error": {"message": "gone", "type": "x", "code": "model_not_found"}}
    with ReplayServer() as server:
        server.queue(Recording.error(404, refusal))
        asked = ["chat", "openai/gpt-5-mni", "Hi", "--set", "api_key=k"]
        assert main([*asked, "--set", f"base_url={server.url}/v1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "did you mean 'gpt-5-mini'?" in line


def test_the_facts_about_a_misspelled_model_name_the_right_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["models", "openai/gpt-5-mni"]) == 0
    assert "Did you mean openai/gpt-5-mini?" in capsys.readouterr().out
    assert main(["models", "openai/gpt-5-mini"]) == 0
    assert "Did you mean" not in capsys.readouterr().out


def test_a_setting_may_be_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    with ReplayServer() as server:
        server.queue(Recording.of_events(CHAT_ERROR))
        asked = ["chat", "openai-chat/gpt-5", "Hi", "--set", "api_key=k", "--set"]
        asked += ['extra_body={"seed": 7}', "--set", f"base_url={server.url}/v1"]
        assert main(asked) == 1
        (sent,) = server.requests
    assert json.loads(sent.body)["seed"] == 7
    assert "overloaded" in capsys.readouterr().err


def test_a_defect_is_one_line_with_what_to_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise KeyError("x")

    monkeypatch.setattr("deltafold.cli.doctor.examine", fail)
    assert main(["doctor"]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert "please report it: KeyError: 'x'" in line
    assert "python -X dev -m deltafold" in line


def test_a_file_that_the_environment_names_is_missed_in_one_line() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "deltafold", "models", "gpt-5-mini"],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "DELTAFOLD_MODELS": "/gone/models.toml"},
    )
    assert done.returncode == 2
    assert done.stderr == "deltafold: /gone/models.toml: there is no folder /gone\n"


def test_ctrl_c_ends_a_command_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("deltafold.cli.doctor.examine", interrupted)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "missing", "extra"),
    [
        (["fold", "a.sse", "--to", "rows.parquet"], "pyarrow", "arrow"),
        (["serve", "--model", "fast=openai/gpt-5"], "starlette", "gateway"),
        (["completion", "bash"], "shtab", "cli"),
        (["demo"], "anthropic", "demo"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    words: list[str], missing: str, extra: str, folder: Path
) -> None:
    hidden = f"import sys; sys.modules[{missing!r}] = None; from deltafold.cli import main; "
    done = subprocess.run(
        [sys.executable, "-c", f"{hidden}sys.exit(main({words}))"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"deltafold[{extra}]" in line
    assert missing in line
