"""Session: an append-only list of the messages of one or more runs.

In: messages, in order.  Out: the same messages, each checked against the messages before it.

Laws: the id of a call is new in its run. A result answers an existing call, and each call gets one
terminal result. A refused message changes nothing.
Source: the core domain model, Session and invariants; the message schema, constraints.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Self, cast
from uuid import uuid4

from deltafold.contract import json_array, json_object
from deltafold.exceptions import DeltafoldError
from deltafold.messages import Message, Role, ToolResultPart
from deltafold.repairs.problems import Report
from deltafold.repairs.repairing import RepairPolicy, repair


class SessionError(DeltafoldError, ValueError):
    """A message violates the rules of its session. The session is unchanged.

    `tool_call_id` is the id of the call at fault, None if no call is involved.
    """

    def __init__(self, message: str, *, tool_call_id: str | None = None) -> None:
        """Keep the call beside the text."""
        super().__init__(message)
        self.tool_call_id = tool_call_id


class Session:
    """Messages in the order in which they came, and entries of the storage layer beside them.

    >>> session = Session()
    >>> session.append(Message.user("Hello"))
    >>> session = Session.from_json(session.to_json())

    Args:
        session_id: None makes one.
        run_id: the run under way; messages that name no run belong to it.
        messages: what there is already.
        entries: raw entries of the storage layer, such as the summary of what was compacted.
        metadata: the caller's own.

    Raises:
        SessionError: a message does not follow from those before.
    """

    def __init__(
        self,
        session_id: str | None = None,
        run_id: str | None = None,
        messages: Iterable[Message] = (),
        entries: Iterable[Mapping[str, object]] = (),
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        self.session_id = session_id or str(uuid4())
        self.run_id = run_id
        self.metadata: dict[str, object] = dict(metadata or {})
        self._messages: list[Message] = []
        self._entries: list[dict[str, object]] = [dict(entry) for entry in entries]
        # Of each call, by its run and id, whether it has its result.
        self._calls: dict[tuple[str | None, str], bool] = {}
        self._runs_of_call: dict[str, list[str | None]] = {}
        self.extend(messages)

    @property
    def messages(self) -> Sequence[Message]:
        """All messages, oldest first."""
        return tuple(self._messages)

    @property
    def entries(self) -> Sequence[Mapping[str, object]]:
        """The entries of the storage layer."""
        return tuple(self._entries)

    @property
    def open_calls(self) -> list[str]:
        """The ids of calls that have no result yet, in order."""
        return [call_id for (_, call_id), answered in self._calls.items() if not answered]

    def append(self, message: Message) -> None:
        """Append a copy of a message; later changes to the caller's message have no effect.

        Raises:
            SessionError: the message repeats the id of a call, answers a call that does not exist,
                or answers a call again.
        """
        changed = self._changes(message)
        for run, call_id in changed.keys() - self._calls.keys():
            self._runs_of_call.setdefault(call_id, []).append(run)
        self._calls.update(changed)
        self._messages.append(message.model_copy(update={"parts": list(message.parts)}))

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
        """Append an entry of the storage layer."""
        self._entries.append(dict(entry))

    def messages_for(
        self, dialect: str, *, model_id: str | None = None, policy: RepairPolicy | None = None
    ) -> tuple[list[Message], Report]:
        """Return the messages in a form that a provider accepts, and a report of the repairs.

        A call without a result gets a result that states this. The session is unchanged.

        >>> messages, report = session.messages_for("openai-chat")
        """
        return repair(self._messages, dialect, policy, model_id=model_id)

    def to_dict(self) -> dict[str, object]:
        """Return the wire form."""
        return {
            "sessionId": self.session_id,
            "runId": self.run_id,
            "messages": [message.to_dict() for message in self._messages],
            "entries": self._entries,
            "metadata": self.metadata,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Make the session of its wire form, and check it.

        Raises:
            ValueError: a message is wrong, or does not follow from those before.
        """
        messages = [
            Message.from_dict(cast("dict[str, object]", message))
            for message in json_array(data.get("messages"))
        ]
        entries = [json_object(entry) or {} for entry in json_array(data.get("entries"))]
        return cls(
            cast("str | None", data.get("sessionId")),
            cast("str | None", data.get("runId")),
            messages,
            entries,
            json_object(data.get("metadata")),
        )

    def to_json(self) -> str:
        """Return the wire form as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, data: str | bytes) -> Self:
        """Make the session of JSON text."""
        return cls.from_dict(cast("dict[str, object]", json.loads(data)))

    def _changes(self, message: Message) -> dict[tuple[str | None, str], bool]:
        """Return the calls that a message makes and the calls that it answers."""
        run = message.run_id or self.run_id
        changed: dict[tuple[str | None, str], bool] = {}
        for call in message.tool_calls:
            key = (run, call.tool_call_id)
            if key in self._calls or key in changed:
                raise SessionError(
                    f"the call id {call.tool_call_id!r} was used before in this run",
                    tool_call_id=call.tool_call_id,
                )
            changed[key] = False
        if message.role is Role.TOOL:
            for part in message.parts:
                if isinstance(part, ToolResultPart):
                    key = self._call_of(run, part.tool_call_id)
                    if self._calls[key]:
                        raise SessionError(
                            f"the call {part.tool_call_id!r} has its result already",
                            tool_call_id=part.tool_call_id,
                        )
                    changed[key] = True
        return changed

    def _call_of(self, run: str | None, tool_call_id: str) -> tuple[str | None, str]:
        """Find the call that a result answers: in the result's run, or the only call of that id."""
        if (run, tool_call_id) in self._calls:
            return run, tool_call_id
        runs = self._runs_of_call.get(tool_call_id, [])
        if len(runs) == 1:
            return runs[0], tool_call_id
        reason = "several runs have made" if runs else "was never made"
        raise SessionError(
            f"the result answers the call {tool_call_id!r}, which {reason}",
            tool_call_id=tool_call_id,
        )
