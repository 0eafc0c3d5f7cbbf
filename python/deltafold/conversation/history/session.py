"""Session: a conversation as messages.

In: messages, in order.  Out: the same messages, each checked against the messages before it.

Law: a session is a view of a log, which has all data and checks them.
Source: docs/blueprint.md#session.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from deltafold.contract.names import RequestProtocol
from deltafold.conversation.history.call_table import SessionError
from deltafold.conversation.history.entries import HistoryEntry, StoredEntry
from deltafold.conversation.history.log import Clock, ConversationLog
from deltafold.conversation.history.projection import recorded_messages
from deltafold.dialects.repairs.problems import Report
from deltafold.dialects.repairs.repair import RepairPolicy, repair
from deltafold.message.messages import Message


class Session:
    """Messages in their original order, and the entries of the log.

    >>> session = Session()
    >>> session.append(Message.user("Hello"))
    >>> session = Session.from_json(session.to_json())

    Args:
        session_id: id of the session; None makes one.
        run_id: the current run; messages without a run id belong to it.
        messages: the existing messages.
        entries: records of the caller, such as marks of a storage layer.
        metadata: metadata of the caller.
        log: the log to show, which has the id, the run and the metadata; None makes one.

    Raises:
        SessionError: a message violates the rules of the session.
    """

    def __init__(
        self,
        session_id: str | None = None,
        run_id: str | None = None,
        messages: Iterable[Message] = (),
        entries: Iterable[Mapping[str, object]] = (),
        metadata: Mapping[str, object] | None = None,
        *,
        log: ConversationLog | None = None,
    ) -> None:
        self.log = ConversationLog(session_id, run_id, metadata) if log is None else log
        for entry in entries:
            self.append_entry(entry)
        self.extend(messages)

    @property
    def session_id(self) -> str:
        """Id of the session."""
        return self.log.session_id

    @property
    def run_id(self) -> str | None:
        """The current run; a new run begins when it is set."""
        return self.log.run_id

    @run_id.setter
    def run_id(self, run_id: str | None) -> None:
        self.log.run_id = run_id

    @property
    def metadata(self) -> Mapping[str, object]:
        """Metadata of the caller, which cannot be changed."""
        return self.log.metadata

    @property
    def messages(self) -> Sequence[Message]:
        """Copies of all messages, oldest first, with the ids of their runs."""
        return tuple(recorded_messages(self.log.entries))

    @property
    def entries(self) -> Sequence[HistoryEntry]:
        """All entries of the log, oldest first."""
        return self.log.entries

    @property
    def open_calls(self) -> list[str]:
        """The ids of calls that have no result yet, in order."""
        return self.log.open_calls

    def append(self, message: Message) -> None:
        """Append a copy of a message; later changes to the caller's message have no effect.

        Raises:
            SessionError: the message repeats the id of a call, answers a call that does not exist,
                or answers a call again.
        """
        self.log.append_message(message)

    def extend(self, messages: Iterable[Message]) -> None:
        """Append messages, up to the first that does not fit.

        Raises:
            SessionError: as for `append`; it names the place.
        """
        for place, message in enumerate(messages):
            try:
                self.append(message)
            except SessionError as error:
                raise SessionError(
                    f"messages[{place}]: {error}", tool_call_id=error.tool_call_id
                ) from error

    def append_entry(self, entry: Mapping[str, object]) -> None:
        """Append a record of the caller, which no model is shown."""
        self.log.append(StoredEntry(data=entry))

    def messages_for(
        self,
        dialect: RequestProtocol,
        *,
        model_id: str | None = None,
        policy: RepairPolicy | None = None,
    ) -> tuple[list[Message], Report]:
        """Return the messages in a form that a provider accepts, and a report of the repairs.

        A call without a result gets a result that states this. The session is unchanged.

        >>> messages, report = session.messages_for("openai-chat")
        """
        return repair(self.messages, dialect, policy, model_id=model_id)

    def to_dict(self) -> dict[str, object]:
        """Return the wire form of the log."""
        return self.log.to_dict()

    @classmethod
    def from_dict(cls, data: Mapping[str, object], *, clock: Clock | None = None) -> Self:
        """Make the session of the wire form of a log, and check it.

        Raises:
            ValueError: an entry is wrong, or does not follow from those before.
        """
        return cls(log=ConversationLog.from_dict(data, clock=clock))

    def to_json(self) -> str:
        """Return the wire form of the log as JSON text."""
        return self.log.to_json()

    @classmethod
    def from_json(cls, data: str | bytes, *, clock: Clock | None = None) -> Self:
        """Make the session of JSON text; otherwise as `from_dict`."""
        return cls(log=ConversationLog.from_json(data, clock=clock))
