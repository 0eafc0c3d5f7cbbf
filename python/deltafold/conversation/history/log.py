"""Log: the entries of one conversation, in the order in which they happened.

In: entries and messages.  Out: the same entries with run id and timestamp; their JSON, also row by
row in a store.

Laws: the log is append-only. The id of a call is new in its run. A result answers a call of the
log, and each call gets one final result. A refused entry changes nothing. An entry is in the log if
the store has taken it. A log equals the log that is read from its JSON, or from its store. Any
thread may append.
Source: docs/blueprint.md#session, docs/blueprint.md#invariants, docs/blueprint.md#message-schema.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from threading import RLock
from typing import Any, Final, Self, TypeVar, cast
from uuid import UUID, uuid4

from deltafold.contract.kinds import json_object
from deltafold.contract.log import LOGGER
from deltafold.contract.stores import Store, StoreConflictError
from deltafold.conversation.history.agreement import agrees
from deltafold.conversation.history.call_table import CallTable, SessionError
from deltafold.conversation.history.entries import (
    CompactionEntry,
    HistoryEntry,
    InstructionEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ToolResultsEntry,
    WidgetEntry,
)
from deltafold.conversation.history.frozen import frozen_json, kept_message, thawed
from deltafold.conversation.history.rows import (
    LOG_VERSION,
    LogParent,
    Row,
    head_of,
    json_text,
    parent_of,
    place_in_store,
    rows_of,
)
from deltafold.conversation.history.wire import entry_from_dict
from deltafold.message.messages import Message, Role

_APPENDED: Final = "session %s: appended %s %s"

EntryT = TypeVar("EntryT", bound=HistoryEntry)
Clock = Callable[[], datetime]
"""Type of a clock: returns the current time with its time zone.

>>> from datetime import UTC, datetime
>>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
>>> log = ConversationLog(clock=lambda: noon)
>>> log.append_message(Message.user("Hello")).timestamp == noon
True
"""


def _now() -> datetime:
    return datetime.now(UTC)


class ConversationLog:
    """All entries of a conversation.

    >>> log = ConversationLog()
    >>> entry = log.append_message(Message.user("Hello"))
    >>> log = ConversationLog.from_json(log.to_json())

    With a store, the log continues the session of this id, or begins it: every append, by whichever
    class, goes through the store before the entry is in the log. The first append also writes the
    head, so that a conversation without entries leaves nothing in the store.

    >>> log = ConversationLog("trip", store=MemoryLogStore())

    Args:
        session_id: id of the conversation; None makes one.
        run_id: the current run, to which appended entries without a run id belong. With a store,
            None continues the run of the newest entry.
        metadata: metadata of the caller, values of JSON. A session of the store keeps its own.
        store: keeps the log; None keeps it in memory.
        clock: returns aware datetimes; None is the system's clock.

    Raises:
        ValueError: a row of the session is damaged or violates the rules of a log, or the session
            is a fork whose parent the store does not have; the error names the row.
        TypeError: the store has no `read` and `append`.
    """

    def __init__(
        self,
        session_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, object] | None = None,
        *,
        store: Store | None = None,
        clock: Clock | None = None,
    ) -> None:
        if store is not None and not isinstance(store, Store):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller without a checker
            raise TypeError(f"store must have read and append, not be a {type(store).__name__}")
        self.run_id = run_id
        self._session_id = session_id or str(uuid4())
        self._metadata = cast("Mapping[str, object]", frozen_json(metadata or {}, "metadata"))
        self._clock = clock or _now
        self._lock = RLock()
        self._entries: list[HistoryEntry] = []
        self._ids: set[UUID] = set()
        self._calls = CallTable()
        self._live_widgets: set[str] = set()
        self._change: WidgetEntry | None = None
        self._parent: LogParent | None = None
        self._shared = 0
        self._has_head = False
        self._conflict: StoreConflictError | None = None
        # While the rows of the store are read, nothing is written to it.
        self._store: Store | None = None
        if store is not None:
            self._continue(store)
            if run_id is not None:
                self.run_id = run_id
            self._store = store

    def __getstate__(self) -> dict[str, object]:
        """Return the state for a copy or a pickle, which has a lock of its own."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._lock = RLock()

    @property
    def session_id(self) -> str:
        """Id of the conversation."""
        return self._session_id

    @property
    def metadata(self) -> Mapping[str, object]:
        """Metadata of the caller, which cannot be changed."""
        return self._metadata

    @property
    def parent(self) -> LogParent | None:
        """The session and the entry at which this log was forked; None if it is no fork."""
        return self._parent

    @property
    def identity(self) -> Hashable:
        """The conversation behind this object: equal for two logs of one session of one store.

        A log without a store is a conversation of its own.
        """
        if self._store is None:
            return self
        try:
            hash(self._store)
        except TypeError:  # a dataclass, say
            return id(self._store), self._session_id
        return self._store, self._session_id

    @property
    def entries(self) -> Sequence[HistoryEntry]:
        """All entries, oldest first."""
        return tuple(self._entries)

    def newest_first(self) -> Iterator[HistoryEntry]:
        """Iterate over the entries from the newest to the oldest."""
        return reversed(self._entries)

    @property
    def open_calls(self) -> list[str]:
        """The ids of calls that have no result yet, in order."""
        return self._calls.open

    def has_call(self, call_id: str) -> bool:
        """Return whether the current run has a call with this id."""
        return self._calls.has(self.run_id, call_id)

    def append(self, entry: EntryT) -> EntryT:
        """Append an entry, and return it with its run id and timestamp.

        An entry whose id is in the log already is stored under a new id.

        Raises:
            SessionError: the entry repeats the id of a call, answers a call that does not exist, or
                answers a call again; or it is the change of a widget of a state, past the widget.
            StoreConflictError: the session was continued elsewhere. The log refuses all further
                entries; open the session again.
            OSError: the log has a file, and the entry cannot be written; the log is unchanged. So
                it is with any other exception of a store.
        """
        with self._lock:
            return self._append(entry)

    def _append(self, entry: EntryT) -> EntryT:
        if isinstance(entry, WidgetEntry) and self._is_foreign(entry):
            raise SessionError(
                f"widget: an entry of the widget {entry.widget!r} does not change the widget: call "
                "its tool or its method, whose change is an entry, or load() the JSON of a log"
            )
        if not isinstance(entry, HistoryEntry):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller without a checker
            raise TypeError(f"entry must be a HistoryEntry, not {type(entry).__name__}")
        run_id = entry.run_id or self.run_id
        message = kept_message(entry)
        if run_id is None and message is not None:
            run_id = message.run_id
        changes: dict[str, Any] = {"timestamp": self._clock().astimezone(UTC), "run_id": run_id}
        if message is not None and not agrees(entry):
            # The contents were replaced, and nothing shall be left of those before.
            changes["message"] = None
        elif message is not None and message.run_id != run_id:
            changes["message"] = message.model_copy(update={"run_id": run_id})
        if entry.id in self._ids:
            changes["id"] = uuid4()
        if isinstance(entry, ToolResultsEntry):
            changes["results"] = self._calls.named(entry.results, run_id)
        # The fields are right: `replace` would check and copy all of them again.
        stamped = copy(entry)
        vars(stamped).update(changes)
        self._add(stamped)
        LOGGER.debug(_APPENDED, self._session_id, stamped.kind, stamped.id)
        return stamped

    def keep_for_widgets(self, names: Iterable[str]) -> None:
        """Let `append_change` alone append entries of widgets with these names."""
        self._live_widgets.update(names)

    def append_change(self, entry: WidgetEntry) -> WidgetEntry:
        """Append the change that a widget of a state makes; otherwise as `append`."""
        with self._lock:
            self._change = entry
            try:
                return self.append(entry)
            finally:
                self._change = None

    def _is_foreign(self, entry: WidgetEntry) -> bool:
        return entry.widget in self._live_widgets and entry is not self._change

    def append_message(self, message: Message, **metadata: object) -> HistoryEntry:
        """Append the entry of a message, in the run of the message if it has one.

        Every message is accepted that fits its place, also an answer without text.

        Raises:
            SessionError: as for `append`.
        """
        entry: HistoryEntry
        match message.role:
            case Role.SYSTEM:
                entry = InstructionEntry.of_message(message, metadata)
            case Role.USER:
                entry = ModelInputEntry.of_message(message, metadata)
            case Role.ASSISTANT:
                entry = ModelOutputEntry.of_message(message, metadata=metadata)
            case Role.TOOL:
                entry = ToolResultsEntry.of_message(message, metadata=metadata)
        if message.run_id:  # the entry is new, and nobody else has it yet
            object.__setattr__(entry, "run_id", message.run_id)
        return self.append(entry)

    def fork(self, at: UUID | None = None, *, session_id: str | None = None) -> "ConversationLog":
        """Begin another conversation that shares the entries up to one, and that entry.

        Both are continued independently. Nothing is copied: a fork in a store has a head that names
        this session and the entry, and the entries before it are read from here. Calls that are
        open there are open in the fork.

        >>> log = ConversationLog()
        >>> first = log.append_message(Message.user("Hello"))
        >>> second = log.append_message(Message.user("When is high tide?"))
        >>> len(log.fork(at=first.id).entries)
        1

        Args:
            at: id of the last shared entry; None is the newest.
            session_id: id of the fork; None makes one.

        Raises:
            ValueError: the log has no such entry.
            StoreConflictError: the store has a session of this id.
        """
        newest = self._entries[-1].id if self._entries else None
        place = at or newest
        if place is None or place not in self._ids:
            raise ValueError("the log has no entry" + ("" if at is None else f" {at}"))
        fork = ConversationLog(session_id, metadata=self._metadata, clock=self._clock)
        for entry in self._entries:
            fork._add(entry)
            if entry.id == place:
                break
        fork.run_id = fork._entries[-1].run_id or self.run_id
        fork._parent = LogParent(self._session_id, place)
        fork._shared = len(fork._entries)
        fork._store = self._store
        fork._write_head()
        return fork

    def to_dict(self) -> dict[str, object]:
        """Return the wire form. That of a fork has all entries, and names the parent."""
        return {**self.head(), "entries": [entry.to_dict() for entry in self._entries]}

    @classmethod
    def from_dict(cls, data: Mapping[str, object], *, clock: Clock | None = None) -> Self:
        """Make the log of its wire form, and check it.

        Raises:
            ValueError: the version is not known, or an entry is wrong or violates the rules of the
                log; the error names the entry.
        """
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - parsed JSON
            raise ValueError("the JSON of a log must be an object")  # noqa: TRY004 - of the JSON
        entries = data.get("entries")
        if not isinstance(entries, list):
            raise ValueError("entries must be a list")  # noqa: TRY004 - of the JSON
        log = cls(*head_of(data), clock=clock)
        log._parent = parent_of(data)
        log.load(cast("list[object]", entries))
        return log

    def load(self, entries: Iterable[object]) -> None:
        """Append entries in their wire form, with their own ids, runs and timestamps.

        Raises:
            ValueError: an entry is wrong or violates the rules of the log; the error names it. The
                entries before it are appended.
        """
        for place, data in enumerate(entries):
            try:
                self._add(entry_from_dict(json_object(data) or {}))
            except SessionError as error:
                raise SessionError(
                    f"entries[{place}]: {error}", tool_call_id=error.tool_call_id
                ) from error
            except ValueError as error:
                raise ValueError(f"entries[{place}].{error}") from error

    def to_json(self) -> str:
        """Return the wire form as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, data: str | bytes, *, clock: Clock | None = None) -> Self:
        """Make the log of JSON text; otherwise as `from_dict`."""
        return cls.from_dict(cast("dict[str, object]", json.loads(data)), clock=clock)

    def head(self) -> dict[str, object]:
        """Return the wire form without the entries."""
        return {
            "version": LOG_VERSION,
            "sessionId": self._session_id,
            "runId": self.run_id,
            "metadata": thawed(self._metadata),
            **({} if self._parent is None else {"parent": self._parent.to_dict()}),
        }

    def _add(self, entry: HistoryEntry) -> None:
        """Check an entry, add it, and write it; what raises on the way leaves no trace."""
        if entry.id in self._ids:
            raise SessionError(f"id: the log has an entry {entry.id} already")
        if isinstance(entry, CompactionEntry):
            self._check_covers(entry)
        changed = self._calls.changes(entry)
        undo = self._calls.undo_of(changed)
        count = len(self._entries)
        try:
            self._calls.change(entry, changed)
            self._ids.add(entry.id)
            self._entries.append(entry)
            self._write_entry(entry)
        except BaseException:
            undo()
            self._ids.discard(entry.id)
            del self._entries[count:]
            self._take_back(entry)
            raise

    def _check_covers(self, entry: CompactionEntry) -> None:
        unknown = [str(one) for one in entry.covers if one not in self._ids]
        if unknown or not entry.covers:
            listed = ", ".join(unknown) or "none are given"
            raise SessionError(f"covers: must be ids of earlier entries of the log: {listed}")

    def _continue(self, store: Store) -> None:
        """Read the session of the store, if it has one."""
        head, shared, own = rows_of(store, self._session_id, self._place)
        if head is None:
            return
        _, self.run_id, metadata = head_of(head)
        try:
            self._metadata = cast("Mapping[str, object]", frozen_json(metadata or {}, "metadata"))
        except ValueError as error:
            raise ValueError(f"{self._place(self._session_id, 0)}: {error}") from error
        self._parent = parent_of(head)
        self._has_head = True
        self._load_rows(shared)
        self._shared = len(self._entries)
        self._load_rows(own)
        newest = next(self.newest_first(), None)
        if newest is not None and newest.run_id is not None:
            self.run_id = newest.run_id

    def _load_rows(self, rows: Iterable[Row]) -> None:
        for row in rows:
            try:
                self._add(entry_from_dict(row.data))
            except ValueError as error:
                raise ValueError(f"{row.place}: {error}") from error

    def _place(self, session_id: str, position: int) -> str:
        """Name a row in errors."""
        return place_in_store(session_id, position)

    def _write_entry(self, entry: HistoryEntry) -> None:
        """Write an entry; a log in memory has nothing to write to."""
        if self._store is not None:
            self._write_head()
            # The head has the first position, and the entries of the parents have none.
            self._write_row(self._store, len(self._entries) - self._shared, entry.to_dict())

    def _write_head(self) -> None:
        if self._store is not None and not self._has_head:
            self._write_row(self._store, 0, self.head())
            self._has_head = True

    def _write_row(self, store: Store, position: int, row: Mapping[str, object]) -> None:
        if self._conflict is not None:
            raise StoreConflictError(self._conflict.session_id, self._conflict.position)
        try:
            store.append(self._session_id, position, json_text(row))
        except StoreConflictError as conflict:
            self._conflict = conflict
            raise

    def _take_back(self, entry: HistoryEntry) -> None:
        """Remove the row of an entry that was not added.

        A store cannot. If it has taken the row before it raised, the next append is a conflict.
        """
