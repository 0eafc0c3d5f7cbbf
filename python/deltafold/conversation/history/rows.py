"""Rows: the JSON of a log, row by row, as a file or a store keeps it.

In: the texts of a session: a head, then its entries.  Out: the parsed rows of a log, with those of
the parents that a fork shares.

Laws: each error names the session and the position of the row at fault. Parents in a circle end
with an error.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast
from uuid import UUID

from deltafold.contract.kinds import json_object
from deltafold.contract.stores import Store

LOG_VERSION: Final = 1
"""Version of the JSON of a log.

>>> import json
>>> json.loads(ConversationLog().to_json())["version"] == LOG_VERSION
True
"""


@dataclass(frozen=True, slots=True)
class LogParent:
    """The place at which a log was forked.

    >>> log = ConversationLog()
    >>> entry = log.append_message(Message.user("Hello"))
    >>> log.fork().parent == LogParent(log.session_id, entry.id)
    True

    Attributes:
        session_id: id of the parent.
        entry_id: id of the last entry that both have.
    """

    session_id: str
    entry_id: UUID

    def to_dict(self) -> dict[str, object]:
        """Return the wire form."""
        return {"sessionId": self.session_id, "entryId": str(self.entry_id)}


class Row(NamedTuple):
    """The JSON object of an entry, and its place."""

    place: str
    data: Mapping[str, object]


class Rows(NamedTuple):
    """The rows of a session.

    Attributes:
        head: the head; None if the session is unknown.
        shared: the rows of the parents, oldest first.
        own: the rows of the session itself.
    """

    head: Mapping[str, object] | None
    shared: list[Row]
    own: list[Row]


Place = Callable[[str, int], str]
"""Names a row by its session and position, in errors."""


def place_in_store(session_id: str, position: int) -> str:
    """Name a row of a store."""
    return f"session {session_id!r}, position {position}"


def json_text(row: Mapping[str, object]) -> str:
    """Return the text of a row, in one line.

    Raises:
        ValueError: a number is not finite, which JSON does not have.
    """
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parsed(text: str | bytes) -> Mapping[str, object] | None:
    """Return the object of a text, None if the text is not one."""
    try:
        value: object = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return json_object(value)


def head_of(
    data: Mapping[str, object],
) -> tuple[str, str | None, Mapping[str, object] | None]:
    """Return the session id, the run id and the metadata of the wire form of a log.

    Raises:
        ValueError: the version is not known, or a member is wrong.
    """
    if data.get("version") != LOG_VERSION or type(data["version"]) is not int:
        raise ValueError(f"version must be {LOG_VERSION}, not {data.get('version')!r}")
    session_id, run_id = data.get("sessionId"), data.get("runId")
    if not isinstance(session_id, str) or not isinstance(run_id, str | None):
        raise ValueError("sessionId must be a string, and runId a string or null")  # noqa: TRY004 - of the JSON
    metadata = data.get("metadata")
    if not isinstance(metadata, Mapping | None):
        raise ValueError("metadata must be an object")  # noqa: TRY004 - of the JSON
    return session_id, run_id, json_object(cast("object", metadata))


def parent_of(data: Mapping[str, object]) -> LogParent | None:
    """Return the parent that the wire form of a log names.

    Raises:
        ValueError: it is not an object with the ids of a session and of an entry.
    """
    value = data.get("parent")
    if value is None:
        return None
    parent = json_object(value) or {}
    session_id, entry_id = parent.get("sessionId"), parent.get("entryId")
    try:
        if isinstance(session_id, str) and isinstance(entry_id, str):
            return LogParent(session_id, UUID(entry_id))
    except ValueError:
        pass
    raise ValueError("parent must have the id of a session, and as entryId a UUID")


def rows_of(store: Store, session_id: str, place: Place = place_in_store) -> Rows:
    """Read a session, and the rows that it shares with its parents, from the store.

    Raises:
        ValueError: a row is not an object, a head is wrong, or a parent is missing.
    """
    head, own = _session(store, session_id, place)
    if head is None:
        return Rows(None, [], [])
    forks: list[tuple[str, LogParent]] = []
    ancestors: list[list[Row]] = []
    seen, child, newest = {session_id}, session_id, head
    while (parent := parent_of(newest)) is not None:
        forks.append((child, parent))
        if parent.session_id in seen:
            raise ValueError(f"{place(child, 0)}: its parents are a circle")
        seen.add(parent.session_id)
        known, rows = _session(store, parent.session_id, place)
        if known is None:
            raise ValueError(
                f"{place(child, 0)}: the store does not have its parent {parent.session_id!r}"
            )
        ancestors.append(rows)
        child, newest = parent.session_id, known
    shared: list[Row] = []
    for (child, parent), rows in zip(reversed(forks), reversed(ancestors), strict=True):
        shared += rows
        wanted = str(parent.entry_id)
        last = next((n for n, row in enumerate(shared) if row.data.get("id") == wanted), None)
        if last is None:
            raise ValueError(
                f"{place(child, 0)}: its parent {parent.session_id!r} has no entry {wanted}"
            )
        del shared[last + 1 :]
    return Rows(head, shared, own)


def _session(
    store: Store, session_id: str, place: Place
) -> tuple[Mapping[str, object] | None, list[Row]]:
    texts: Iterable[str] = store.read(session_id)
    head: Mapping[str, object] | None = None
    rows: list[Row] = []
    for position, text in enumerate(texts):
        data = parsed(text)
        where = place(session_id, position)
        if position == 0:
            head = data or {}
            try:
                named = head_of(head)[0]
                parent_of(head)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from error
            if named != session_id:
                raise ValueError(f"{where}: sessionId must be {session_id!r}, not {named!r}")
        elif data is None:
            raise ValueError(f"{where} is not a JSON object")
        else:
            rows.append(Row(where, data))
    return head, rows
