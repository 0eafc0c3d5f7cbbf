"""Log files: appended line by line, and read back after a crash at any moment."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from deltafold import Message, MisuseError, ToolCallPart
from deltafold.conversation import (
    AgentState,
    LogFile,
    MemoryNotebookWidget,
    ModelInputEntry,
    Session,
    SessionError,
)

KILLS = 200
FILES = 10


def calling(tool_call_id: str) -> Message:
    return Message.assistant(
        ToolCallPart(tool_call_id=tool_call_id, tool_name="f", raw_args_text="{}")
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def filled(path: Path) -> str:
    """Write a small log, and return its JSON."""
    with LogFile(path, "s", "r", {"team": "blue"}) as log:
        log.append_message(Message.user("hello\nworld ☃"))
        log.append_message(calling("a"))
        log.append_message(Message.tool_result("a", "done"))
        return log.to_json()


def test_a_file_keeps_the_log(path: Path) -> None:
    written = filled(path)
    assert len(path.read_bytes().splitlines()) == 4
    with LogFile(path) as log:
        assert log.to_json() == written
        assert log.torn == b""
        log.append_message(Message.user("again"))
    with LogFile(path, run_id="r2") as log:
        log.append_message(calling("a"))
        assert [message.run_id for message in Session(log=log).messages] == [*["r"] * 4, "r2"]
    with LogFile(path) as log:
        assert log.run_id == "r2"
        assert log.session_id == "s"
        assert log.metadata == {"team": "blue"}


def test_a_state_continues_from_its_file(path: Path) -> None:
    with LogFile(path) as log:
        state = AgentState.create_default("Be brief.", log=log)
        state.update_memory_notebook("remember")
        state.append_model_input(ModelInputEntry.of_message(Message.user("hello")))
        context = state.render_live_context()
    with LogFile(path) as log:
        restored = AgentState(log, [MemoryNotebookWidget()])
        assert restored.render_live_context() == context
        assert restored.memory_notebook_snapshot == "remember"


def test_a_line_that_is_cut_anywhere_is_removed(path: Path) -> None:
    filled(path)
    whole = path.read_bytes()
    begin = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(begin, len(whole)):
        path.write_bytes(whole[:cut])
        with LogFile(path) as log:
            kept = 3 if cut == len(whole) - 1 else 2
            assert len(log.entries) == kept
            assert log.torn == (b"" if kept == 3 else whole[begin:cut])
            log.append_message(Message.user("next"))
        with LogFile(path) as log:
            assert [message.text for message in Session(log=log).messages][-1] == "next"


def test_a_head_that_is_cut_begins_a_new_log(path: Path) -> None:
    path.write_bytes(b'{"version":1,"sess')
    with LogFile(path) as log:
        assert log.entries == ()
        assert log.torn == b'{"version":1,"sess'
        log.append_message(Message.user("hello"))
    with LogFile(path) as log:
        assert len(log.entries) == 1


@pytest.mark.parametrize(
    ("line", "damaged", "match"),
    [
        (0, b'{"version":2,"sessionId":"s"}', "line 1: version must be 1, not 2"),
        (0, b"nonsense", "line 1: version must be 1"),
        (1, b"nonsense", "line 2 is not a JSON object"),
        (2, b'{"kind":"opera"}', "line 3: kind: "),
        (2, b'{"kind":"reset","colour":1}', "line 3: colour: Unexpected"),
    ],
)
def test_a_damaged_line_is_an_error_that_names_it(
    path: Path, line: int, damaged: bytes, match: str
) -> None:
    filled(path)
    lines = path.read_bytes().splitlines()
    lines[line] = damaged
    path.write_bytes(b"\n".join(lines) + b"\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=match):
        LogFile(path)
    assert path.read_bytes() == before


def test_a_missing_line_is_an_error_that_names_the_next(path: Path) -> None:
    filled(path)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:2], lines[3]]) + b"\n")
    with pytest.raises(ValueError, match="line 3: the result answers the call 'a'"):
        LogFile(path)


def test_a_file_is_open_once(path: Path) -> None:
    with LogFile(path) as log:
        with pytest.raises(MisuseError, match="open in another place"):
            LogFile(path)
        log.append_message(Message.user("hello"))
    with pytest.raises(MisuseError, match="closed"):
        log.append_message(Message.user("again"))
    assert len(log.entries) == 1


def test_a_refused_entry_writes_nothing(path: Path) -> None:
    with LogFile(path) as log:
        before = path.read_bytes()
        with pytest.raises(SessionError, match="never made"):
            log.append_message(Message.tool_result("x", "done"))
        assert path.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_an_entry_that_cannot_be_written_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LogFile(path) as log:
        write, room = os.write, [100]

        def until_full(file: int, data: bytes) -> int:
            if room[0] == 0:
                raise OSError(28, "No space left on device")
            taken = min(room[0], len(data))
            room[0] -= taken
            return write(file, data[:taken])

        monkeypatch.setattr(os, "write", until_full)
        with pytest.raises(OSError, match="No space left"):
            log.append_message(calling("a"))
        monkeypatch.undo()
        assert log.entries == ()
        log.append_message(calling("a"))
    with LogFile(path) as log:
        assert log.open_calls == ["a"]


def test_an_append_may_wait_for_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with LogFile(path, sync=True) as log:
        log.append_message(Message.user("hello"))
    assert len(synced) == 2


WRITER = """
import os, sys
from deltafold import ImagePart, Message, ToolCallPart
from deltafold.conversation import LogFile

def write(path, number, data):
    with LogFile(path) as log:
        while True:
            call = ToolCallPart(tool_call_id=f"c{number}", tool_name="f", raw_args_text="{}")
            said = [
                Message.user(f"{number}", ImagePart(mime_type="image/png", data=data)),
                Message.assistant(f"{number}", call),
                Message.tool_result(f"c{number}", "done"),
            ]
            for message in said:
                entry = log.append_message(message)
                os.write(1, f"{entry.id}\\n".encode())
            number += 1

write(sys.argv[1], int(sys.argv[2]), "A" * int(sys.argv[3]))
"""

FORKS = """
import os, signal, sys, time
source, path, seed, kills, files = sys.argv[1:]
import random
import deltafold.conversation
moments = random.Random(int(seed))
for kill in range(int(kills)):
    inside, outside = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(outside, 1)
        size = moments.choice([0, 4_000, 40_000])
        sys.argv = ["", f"{path}.{kill % int(files)}", str(kill * 100_000), str(size)]
        exec(source)
    os.close(outside)
    first = os.read(inside, 37)
    time.sleep(moments.random() * 0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(inside, "rb") as acknowledged:
        for line in (first + acknowledged.read()).split():
            print(kill % int(files), line.decode())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_log_survives_kills_at_random_moments(path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    done = subprocess.run(
        [sys.executable, "-c", FORKS, WRITER, str(path), str(seed), str(KILLS), str(FILES)],
        capture_output=True,
        check=True,
        timeout=300,
    )
    acknowledged = [line.split() for line in done.stdout.decode().splitlines()]
    assert len(acknowledged) > KILLS, seed
    for number in range(FILES):
        returned = [entry_id for file, entry_id in acknowledged if file == str(number)]
        survives(path.with_name(f"{path.name}.{number}"), returned, seed)


def survives(path: Path, returned: list[str], seed: int) -> None:
    with LogFile(path) as log:
        kept = [str(entry.id) for entry in log.entries]
        # Every entry whose append had returned is in the log, in its order.
        places = {entry_id: place for place, entry_id in enumerate(kept)}
        assert [places[one] for one in returned] == sorted(places[one] for one in returned), seed
        # A kill between the write and its acknowledgement leaves at most one entry more.
        assert len(kept) - len(returned) <= KILLS // FILES, seed
        log.append_message(Message.user("after all"))
        whole = log.to_json()
    with LogFile(path) as log:
        assert log.to_json() == whole
        assert json.loads(whole)["version"] == 1
