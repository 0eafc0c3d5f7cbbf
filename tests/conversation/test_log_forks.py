"""Forks: a log that shares the entries of another one up to a place, and goes on by itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from deltafold import Message, MisuseError, ToolCallPart
from deltafold.conversation import (
    ConversationLog,
    LogFile,
    LogParent,
    MemoryLogStore,
    Session,
    SQLiteStore,
    Store,
    StoreConflictError,
)


@pytest.fixture(params=["none", "memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store | None]:
    if request.param == "sqlite":
        with SQLiteStore(tmp_path / "log.db") as opened:
            yield opened
    else:
        yield MemoryLogStore() if request.param == "memory" else None


@pytest.fixture(params=["memory", "sqlite"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryLogStore | SQLiteStore]:
    if request.param == "sqlite":
        with SQLiteStore(tmp_path / "log.db") as opened:
            yield opened
    else:
        yield MemoryLogStore()


def said(log: ConversationLog, *texts: str) -> list[UUID]:
    return [log.append_message(Message.user(text)).id for text in texts]


def texts_of(log: ConversationLog) -> list[str]:
    return [message.text for message in Session(log=log).messages]


def again(log: ConversationLog, store: Store | None) -> ConversationLog:
    """Return the log that is read from the store, or from the JSON, which has the same entries."""
    read = ConversationLog.from_json(log.to_json())
    assert read.to_dict() == log.to_dict()
    assert (read.entries, read.parent) == (log.entries, log.parent)
    if store is None:
        return read
    opened = ConversationLog(log.session_id, store=store)
    assert opened.to_dict() == log.to_dict()
    return opened


def test_a_fork_shares_the_entries_up_to_its_place(store: Store | None) -> None:
    log = ConversationLog("s", "r", {"team": "blue"}, store=store)
    first, _ = said(log, "one", "two")
    fork = log.fork(at=first, session_id="f")
    assert (fork.session_id, fork.run_id, fork.metadata) == ("f", "r", {"team": "blue"})
    assert fork.parent == LogParent("s", first)
    assert fork.entries[0] is log.entries[0]
    assert texts_of(again(fork, store)) == ["one"]
    said(log, "three")
    said(fork, "two of the fork")
    assert texts_of(again(log, store)) == ["one", "two", "three"]
    opened = again(fork, store)
    said(opened, "three of the fork")
    assert texts_of(again(opened, store)) == ["one", "two of the fork", "three of the fork"]


def test_nothing_is_copied(kept: MemoryLogStore | SQLiteStore) -> None:
    log = ConversationLog("s", store=kept)
    *_, newest = said(log, *("x" * 10_000 for _ in range(10)))
    log.fork(session_id="f")
    (head,) = map(json.loads, kept.read("f"))
    assert head["parent"] == {"sessionId": "s", "entryId": str(newest)}


def test_forks_are_forked(store: Store | None) -> None:
    log = ConversationLog("0", store=store)
    said(log, "a", "b", "c")
    for number in range(1, 30):
        at = log.entries[-2].id
        log = log.fork(at=at, session_id=str(number))
        said(log, f"{number}.1", f"{number}.2")
    expected = ["a", "b", *(f"{number}.1" for number in range(1, 29)), "29.1", "29.2"]
    assert texts_of(again(log, store)) == expected
    # A place before the fork's own entries belongs to a parent of its parent.
    early = log.fork(at=log.entries[0].id)
    assert texts_of(again(early, store)) == ["a"]
    assert early.parent == LogParent("29", log.entries[0].id)


def test_a_call_that_is_open_there_is_open_in_the_fork(store: Store | None) -> None:
    log = ConversationLog("s", "r", store=store)
    call = ToolCallPart(tool_call_id="a", tool_name="f", raw_args_text="{}")
    answer = log.append_message(Message.assistant(call))
    log.append_message(Message.tool_result("a", "done"))
    fork = log.fork(at=answer.id)
    assert (log.open_calls, fork.open_calls) == ([], ["a"])
    fork.append_message(Message.tool_result("a", "in the fork"))
    assert again(fork, store).open_calls == []


def test_a_place_must_be_in_the_log(store: Store | None) -> None:
    log = ConversationLog("s", store=store)
    with pytest.raises(ValueError, match=r"the log has no entry$"):
        log.fork()
    said(log, "one")
    with pytest.raises(ValueError, match="the log has no entry "):
        log.fork(at=uuid4())


def test_a_fork_does_not_take_another_session(kept: MemoryLogStore | SQLiteStore) -> None:
    log = ConversationLog("s", store=kept)
    said(log, "one")
    for taken in ("s", log.fork().session_id):
        with pytest.raises(StoreConflictError):
            log.fork(session_id=taken)


def test_a_stale_log_can_be_forked(kept: MemoryLogStore | SQLiteStore) -> None:
    log, other = ConversationLog("s", store=kept), None
    said(log, "one")
    other = ConversationLog("s", store=kept)
    said(other, "two")
    with pytest.raises(StoreConflictError):
        said(log, "late")
    fork = log.fork()
    said(fork, "beside")
    assert texts_of(again(fork, kept)) == ["one", "beside"]


def test_a_fork_without_its_parent_is_an_error(kept: MemoryLogStore | SQLiteStore) -> None:
    log = ConversationLog("s", store=kept)
    said(log, "one")
    said(log.fork(session_id="f"), "two")
    kept.delete("s")
    match = "session 'f', position 0: the store does not have its parent 's'"
    with pytest.raises(ValueError, match=match):
        ConversationLog("f", store=kept)
    said(ConversationLog("s", store=kept), "another")
    with pytest.raises(ValueError, match="its parent 's' has no entry"):
        ConversationLog("f", store=kept)


def test_parents_in_a_circle_are_an_error(kept: MemoryLogStore | SQLiteStore) -> None:
    for session_id, parent in (("a", "b"), ("b", "c"), ("c", "b"), ("d", "d")):
        head = {
            "version": 1,
            "sessionId": session_id,
            "parent": {"sessionId": parent, "entryId": str(uuid4())},
        }
        kept.append(session_id, 0, json.dumps(head))
    for session_id in "abcd":
        with pytest.raises(ValueError, match="its parents are a circle"):
            ConversationLog(session_id, store=kept)


def test_a_file_cannot_be_forked(tmp_path: Path) -> None:
    with LogFile(tmp_path / "log.jsonl") as log:
        said(log, "one")
        with pytest.raises(MisuseError, match="SQLiteStore"):
            log.fork()


def test_a_file_that_names_a_parent_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    parent = {"sessionId": "s", "entryId": str(uuid4())}
    path.write_text(json.dumps({"version": 1, "sessionId": "f", "parent": parent}) + "\n")
    with pytest.raises(ValueError, match="line 1: the store does not have its parent 's'"):
        LogFile(path)


@pytest.mark.parametrize("parent", [1, "s", {}, {"sessionId": "s", "entryId": "no"}])
def test_a_wrong_parent_is_an_error(parent: object) -> None:
    with pytest.raises(ValueError, match="parent must have"):
        ConversationLog.from_dict({**ConversationLog().to_dict(), "parent": parent})
