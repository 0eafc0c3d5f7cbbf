"""Stores: each append of each class goes through the store, and of two writers one stops."""

import json
import os
import pickle
import random
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from deltafold import Agent, Message, MisuseError, OpenAIChatModel, ToolCallPart
from deltafold.conversation import (
    AgentState,
    ContextInput,
    ContextManager,
    ConversationLog,
    HistoryEntry,
    MemoryLogStore,
    MemoryNotebookWidget,
    ModelInputEntry,
    Session,
    SessionError,
    SQLiteStore,
    Store,
    StoreConflictError,
    ToolCallRequest,
)
from deltafold.testing import ReplayServer, answer
from talks import Talk

KILLS: Final = 40
EntryT = TypeVar("EntryT", bound=HistoryEntry)


@pytest.fixture(params=["memory", "sqlite", "sqlite in memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryLogStore()
    else:
        path = tmp_path / "log.db" if request.param == "sqlite" else ":memory:"
        with SQLiteStore(path) as opened:
            yield opened


def asked(text: str) -> ModelInputEntry:
    return ModelInputEntry.of_message(Message.user(text))


def calling(tool_call_id: str) -> Message:
    return Message.assistant(
        ToolCallPart(tool_call_id=tool_call_id, tool_name="f", raw_args_text="{}")
    )


def rows(store: Store, session_id: str = "s") -> list[Any]:
    return [json.loads(text) for text in store.read(session_id)]


def stored_whole(log: ConversationLog, store: Store) -> bool:
    """Return whether the store has the head and each entry, and opens as the same log."""
    wire = log.to_dict()
    read = ConversationLog(log.session_id, store=store)
    head, *entries = rows(store, log.session_id)
    assert entries == wire["entries"]
    assert {**head, "runId": log.run_id} == log.head()
    return read.entries == log.entries and read.to_dict() == wire


def test_a_store_sees_what_each_class_appends(store: Store) -> None:
    log = ConversationLog("s", "r", {"team": "blue"}, store=store)
    assert rows(store) == []  # a conversation that was only begun leaves nothing
    session = Session(log=log)
    session.append(Message.user("hello\nworld ☃"))
    session.extend([Message.assistant("yes"), Message.user("again")])
    session.append_entry({"saved_as": "chat-7"})
    log.append(asked("directly"))
    log.append_message(calling("a"))
    log.append_message(Message.tool_result("a", "done"))
    session.run_id = "r2"
    state = AgentState(log, [MemoryNotebookWidget()])
    state.set_system_instruction("Be brief.")
    state.append_model_input(asked("x" * 3_000))
    log.append_message(Message.assistant("y" * 3_000))
    state.update_memory_notebook("remember")
    state.append_model_input(asked("and now"))

    def compact(_messages: object) -> str:
        return "They spoke."

    ContextManager(compact).build_context(ContextInput(state, token_budget=900))
    assert "compaction" in {entry.kind.value for entry in log.entries}
    state.reset()
    assert stored_whole(log, store)
    again = ConversationLog("s", "r3", {"team": "red"}, store=store)
    assert (again.run_id, again.metadata) == ("r3", {"team": "blue"})
    assert ConversationLog("s", store=store).run_id == "r2"


def tide(place: str) -> str:
    """Look up the tide."""
    return f"{place}: 17:42"


def agent_of(
    server: ReplayServer,
    log: ConversationLog,
    tools: list[Any],
    **options: Any,  # noqa: ANN401 - arguments of Agent
) -> Talk[None]:
    model = OpenAIChatModel({"model_id": "m"}, base_url=f"{server.url}/v1", api_key="k")
    return Talk(Agent(options.pop("config", {}), tools, model=model, **options), AgentState(log))


def test_a_store_sees_a_run_of_an_agent(store: Store) -> None:
    call = answer("openai-chat", ("c1", "tide", {"place": "Brest"}))
    log = ConversationLog(store=store)
    with ReplayServer() as server:
        server.queue(call, answer("openai-chat", "At 17:42."))
        assert agent_of(server, log, [tide]).run_sync("When?").text == "At 17:42."
    kinds = [row.get("kind") for row in rows(store, log.session_id)]
    assert kinds == [
        None, "model_input", "model_output", "call", "call", "tool_result", "model_output"
    ]  # fmt: skip
    assert stored_whole(log, store)


def test_of_two_runs_of_one_session_one_stops_before_its_tool_runs(store: Store) -> None:
    config = {"tools": {"require_approval": ["tide"]}}
    ran: list[str] = []

    def tide(place: str) -> str:
        """Look up the tide."""
        ran.append(place)
        return "17:42"

    call = answer("openai-chat", ("c1", "tide", {"place": "Brest"}))
    with ReplayServer() as server:
        server.queue(call, answer("openai-chat", "At 17:42."))
        log = ConversationLog("s", store=store)
        assert len(agent_of(server, log, [tide], config=config).run_sync("When?").pending) == 1
        one, other = (
            agent_of(server, ConversationLog("s", store=store), [tide], config=config)
            for _ in range(2)
        )
        assert one.resume_sync({"c1": True}).text == "At 17:42."
        with pytest.raises(StoreConflictError, match="open it again"):
            other.resume_sync({"c1": True})
    assert ran == ["Brest"]
    assert stored_whole(one.state.log, store)


def test_a_stale_log_refuses_all_further_entries(store: Store) -> None:
    one, other = ConversationLog("s", store=store), ConversationLog("s", store=store)
    one.append_message(Message.user("one"))
    for _ in range(2):
        with pytest.raises(StoreConflictError, match="the session 's' has position 0") as caught:
            other.append_message(Message.user("other"))
        assert (caught.value.session_id, caught.value.position) == ("s", 0)
        assert other.entries == ()
    opened = ConversationLog("s", store=store)
    opened.append_message(Message.user("again"))
    with pytest.raises(StoreConflictError, match="position 2"):
        one.append_message(Message.user("late"))
    assert [message.text for message in Session(log=opened).messages] == ["one", "again"]


class _Failing(MemoryLogStore):
    """A store whose connection is lost before or behind its third append."""

    def __init__(self, *, is_stored: bool) -> None:
        super().__init__()
        self.is_stored = is_stored
        self.failures = 1

    def append(self, session_id: str, position: int, data: str) -> None:
        fails = position == 2 and self.failures > 0
        if not fails or self.is_stored:
            super().append(session_id, position, data)
        if fails:
            self.failures -= 1
            raise ConnectionResetError("lost")


def test_an_entry_that_the_store_did_not_take_is_not_in_the_log() -> None:
    store = _Failing(is_stored=False)
    log = ConversationLog("s", store=store)
    log.append_message(calling("a"))
    with pytest.raises(ConnectionResetError):
        log.append_message(Message.tool_result("a", "done"))
    assert (len(log.entries), log.open_calls) == (1, ["a"])
    log.append_message(Message.tool_result("a", "done"))
    assert stored_whole(log, store)


def test_an_entry_that_was_stored_before_a_failure_makes_the_log_stale() -> None:
    store = _Failing(is_stored=True)
    log = ConversationLog("s", store=store)
    log.append_message(calling("a"))
    with pytest.raises(ConnectionResetError):
        log.append_message(Message.tool_result("a", "done"))
    for _ in range(2):
        with pytest.raises(StoreConflictError):
            log.append_message(Message.tool_result("a", "done"))
    assert ConversationLog("s", store=store).open_calls == []


def test_a_refused_entry_is_not_stored(store: Store) -> None:
    log = ConversationLog("s", store=store)
    with pytest.raises(SessionError, match="never made"):
        log.append_message(Message.tool_result("x", "done"))
    assert rows(store) == []


def test_a_conflict_in_a_tool_of_a_widget_is_no_result_of_the_tool(store: Store) -> None:
    log = ConversationLog("s", store=store)
    state = AgentState(log, [MemoryNotebookWidget()])
    (tool,) = (tool.name for tool in state.enumerate_widget_tools())
    call = ToolCallPart(tool_call_id="a", tool_name=tool, raw_args_text='{"text":"x"}')
    request = ToolCallRequest.of_part(call)
    assert state.execute_widget_tool(request) is not None
    ConversationLog("s", store=store).append_message(Message.user("elsewhere"))
    with pytest.raises(StoreConflictError):
        state.execute_widget_tool(request)


def test_an_append_writes_no_earlier_entry(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[HistoryEntry] = []
    to_dict = HistoryEntry.to_dict

    def counted(entry: HistoryEntry) -> dict[str, object]:
        written.append(entry)
        return to_dict(entry)

    monkeypatch.setattr(HistoryEntry, "to_dict", counted)
    state = AgentState.create_default(log=ConversationLog("s", store=store))
    for number in range(100):
        state.append_model_input(asked(str(number)))
    assert len(written) == len(state.log.entries) == 101


def test_a_conflict_survives_pickling() -> None:
    conflict = pickle.loads(pickle.dumps(StoreConflictError("s", 3)))  # noqa: S301 - our own
    assert (conflict.session_id, conflict.position) == ("s", 3)
    assert "'s'" in str(conflict)


def test_a_subclass_sees_each_append() -> None:
    seen: list[str] = []

    class Watched(ConversationLog):
        def append(self, entry: EntryT) -> EntryT:
            seen.append(entry.kind)
            return super().append(entry)

    session = Session(log=Watched())
    session.append(Message.user("a"))
    session.append(Message.assistant("b"))
    session.append_entry({"saved": True})
    assert len(seen) == len(session.entries) == 3


def test_an_entry_has_its_json() -> None:
    log = ConversationLog()
    entry = log.append_message(Message.user("hello"))
    assert log.to_dict()["entries"] == [entry.to_dict()]
    assert entry.to_dict()["kind"] == "model_input"


def test_something_else_than_a_store_is_refused() -> None:
    wrong: Any = "conversations.db"
    with pytest.raises(TypeError, match="store must have read and append, not be a str"):
        ConversationLog(store=wrong)


@pytest.mark.parametrize(
    ("position", "text", "match"),
    [
        (0, "nonsense", "session 's', position 0: version must be 1"),
        (0, '{"version":1,"sessionId":"t"}', "position 0: sessionId must be 's', not 't'"),
        (0, '{"version":1,"sessionId":"s","parent":{}}', "position 0: parent must have the id"),
        (0, '{"version":1,"sessionId":"s","metadata":{"a":NaN}}', "session 's', position 0: "),
        (1, "nonsense", "session 's', position 1 is not a JSON object"),
        (2, '{"kind":"opera"}', "session 's', position 2: kind: "),
        (2, '{"kind":"reset","colour":1}', "session 's', position 2: colour: Unexpected"),
        (2, None, "session 's': position 2 is missing"),
    ],
)
def test_a_damaged_row_is_an_error_that_names_it(
    tmp_path: Path, position: int, text: str | None, match: str
) -> None:
    with SQLiteStore(tmp_path / "log.db") as store:
        log = ConversationLog("s", store=store)
        for message in (Message.user("a"), calling("a"), Message.tool_result("a", "done")):
            log.append_message(message)
        database = sqlite3.connect(store.path)
        with database:
            if text is None:
                query = "DELETE FROM deltafold_entries WHERE position = ?"
                database.execute(query, (position,))
            else:
                query = "UPDATE deltafold_entries SET data = ? WHERE position = ?"
                database.execute(query, (text, position))
        database.close()
        with pytest.raises(ValueError, match=match):
            ConversationLog("s", store=store)


def test_a_session_that_was_deleted_is_not_continued(store: Any) -> None:  # noqa: ANN401 - of two classes
    log = ConversationLog("s", store=store)
    log.append_message(Message.user("one"))
    ConversationLog("t", store=store).append_message(Message.user("two"))
    assert store.sessions() == ["s", "t"]
    store.delete("s")
    store.delete("unknown")
    assert store.sessions() == ["t"]
    with pytest.raises(ValueError, match="was the session deleted"):
        log.append_message(Message.user("late"))
    assert rows(store, "s") == []
    assert ConversationLog("s", store=store).entries == ()


def test_threads_share_a_store(store: Store) -> None:
    def talk(session_id: str) -> None:
        for number in range(25):
            ConversationLog(session_id, store=store).append_message(Message.user(str(number)))

    threads = [threading.Thread(target=talk, args=(f"s{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        log = ConversationLog(f"s{number}", store=store)
        texts = [message.text for message in Session(log=log).messages]
        assert texts == [str(one) for one in range(25)]


def test_logs_of_one_session_have_one_identity(tmp_path: Path) -> None:
    def identity(store: Store | None, session_id: str = "s") -> object:
        return ConversationLog(session_id, store=store).identity

    memory = MemoryLogStore()
    assert identity(memory) == identity(memory) != identity(MemoryLogStore())
    assert identity(memory) != identity(memory, "t")
    assert identity(None) != identity(None)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with SQLiteStore(tmp_path / "a") as one, SQLiteStore(link / "a") as same:
        assert identity(one) == identity(same) != identity(memory)
        assert hash(identity(one)) == hash(identity(same))
    with SQLiteStore(":memory:") as one, SQLiteStore(":memory:") as other:
        assert identity(one) == identity(one) != identity(other)

    class Unhashable(MemoryLogStore):
        __hash__ = None  # type: ignore[assignment]  # as a dataclass has it

    unhashable = Unhashable()
    assert hash(identity(unhashable)) == hash(identity(unhashable))


def test_a_closed_store_is_refused_and_its_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SQLiteStore(path)
    log = ConversationLog("s", store=store)
    log.append_message(Message.user("a"))
    for one in tmp_path.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
    store.close()
    store.close()
    with pytest.raises(MisuseError, match="is closed"):
        log.append_message(Message.user("b"))
    with SQLiteStore(path, sync=True) as opened:
        assert ConversationLog("s", store=opened).entries == log.entries


def test_a_file_of_another_kind_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_text("This is not a database. " * 100)
    with pytest.raises(sqlite3.DatabaseError):
        SQLiteStore(path)
    assert path.read_text() == "This is not a database. " * 100


FORKED: Final = """
import os, pickle, sys
from deltafold import Message, MisuseError
from deltafold.conversation import ConversationLog, SQLiteStore
store, memory = SQLiteStore(sys.argv[1]), SQLiteStore(":memory:")
log = ConversationLog("s", store=store)
log.append_message(Message.user("parent"))
child = os.fork()
if child == 0:
    ConversationLog("s", store=store).append_message(Message.user("child"))
    try:
        memory.read("s")
    except MisuseError:
        sys.exit(0)
    sys.exit(1)
assert os.waitpid(child, 0)[1] == 0
store = pickle.loads(pickle.dumps(store))
ConversationLog("s", store=store).append_message(Message.user("again"))
print(len(ConversationLog("s", store=store).entries))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_process_opens_its_own_connection(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKED, str(tmp_path / "log.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "3\n", done.stderr


RACER: Final = """
import sys
from deltafold import Message
from deltafold.conversation import ConversationLog, SQLiteStore, StoreConflictError
path, name = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
won = 0
for _ in range(40):
    with SQLiteStore(path) as store:
        try:
            ConversationLog("s", store=store).append_message(Message.user(name))
            won += 1
        except StoreConflictError:
            pass
print(won)
"""


def test_processes_that_race_for_a_session_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    won = [int(racer.communicate("go\n", timeout=60)[0]) for racer in racers]
    assert sum(won) >= 40
    with SQLiteStore(path) as store:
        texts = [one.text for one in Session(log=ConversationLog("s", store=store)).messages]
    assert [texts.count(str(number)) for number in range(3)] == won


WRITER: Final = """
import os, sys
from deltafold import Message
from deltafold.conversation import ConversationLog, SQLiteStore
log = ConversationLog("s", store=SQLiteStore(sys.argv[1]))
while True:
    entry = log.append_message(Message.user("x" * int(sys.argv[2])))
    os.write(1, f"{entry.id}\\n".encode())
"""


@pytest.mark.slow
def test_a_killed_process_loses_no_entry_whose_append_returned(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    moments = random.Random(seed)  # noqa: S311 - no secret
    path, returned = tmp_path / "log.db", list[str]()
    for kill in range(KILLS):
        size = moments.choice([10, 4_000, 400_000])
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(size)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        first = writer.stdout.readline()
        threading.Event().wait(moments.random() * 0.02)
        writer.kill()
        returned += [line.decode() for line in (first + writer.communicate()[0]).split()]
        with SQLiteStore(path) as store:
            kept = [str(entry.id) for entry in ConversationLog("s", store=store).entries]
        places = {entry_id: place for place, entry_id in enumerate(kept)}
        assert [places[one] for one in returned] == sorted(places[one] for one in returned), seed
        assert len(kept) - len(returned) <= kill + 1, seed


def test_a_deleted_row_is_not_written_over(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "log.db") as store:
        store.append("s", 0, "{}")
        writes: list[Callable[[], None]] = [
            lambda: store.append("s", 2, "{}"),
            lambda: store.append("s", -1, "{}"),
            lambda: MemoryLogStore().append("s", 1, "{}"),
            lambda: MemoryLogStore().append("s", -1, "{}"),
        ]
        for write in writes:
            with pytest.raises(ValueError, match="cannot be stored"):
                write()
