"""Entries of their JSON form, which `HistoryEntry.to_dict` writes.

In: objects of JSON with camelCase names.  Out: entries.

Law: an entry equals the entry that is read from its JSON.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from deltafold.conversation.history.entries import (
    CompactionEntry,
    HistoryEntry,
    InstructionEntry,
    ModelInputEntry,
    ModelOutputEntry,
    ResetEntry,
    StoredEntry,
    ToolResultsEntry,
    WidgetEntry,
)
from deltafold.conversation.history.fields import adapter_of
from deltafold.conversation.history.kinds import HistoryEntryKind
from deltafold.conversation.history.run_entries import CallEntry, PartialEntry, SentEntry
from deltafold.message.messages import Message

CLASSES: Final[Mapping[HistoryEntryKind, type[HistoryEntry]]] = {
    cls.kind: cls
    for cls in (
        ModelInputEntry,
        ModelOutputEntry,
        ToolResultsEntry,
        WidgetEntry,
        InstructionEntry,
        CompactionEntry,
        CallEntry,
        PartialEntry,
        SentEntry,
        ResetEntry,
        StoredEntry,
    )
}


def entry_from_dict(data: Mapping[str, object]) -> HistoryEntry:
    """Make an entry of its wire form.

    Raises:
        ValueError: the kind is not known, or a member is wrong; the error names the member.
    """
    members = dict(data)
    kind = members.pop("kind", None)
    if not isinstance(kind, str) or kind not in set(HistoryEntryKind):
        known = ", ".join(HistoryEntryKind)
        raise ValueError(f"kind: there are the entries {known}, not {kind!r}")
    cls = CLASSES[HistoryEntryKind(kind)]
    names: object = members.pop("toolNames", {})
    if not isinstance(names, Mapping):
        raise ValueError("toolNames: Input should be an object")  # noqa: TRY004 - of the JSON
    try:
        if isinstance(members.get("message"), dict):
            message = Message.from_dict(cast("dict[str, object]", members["message"]))
            members["message"] = message
            for name, value in _fields_of(cls, message, cast("object", names)).items():
                members.setdefault(to_camel(name), value)
        entry: HistoryEntry = adapter_of(cls).validate_python(members)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "entry"
        raise ValueError(f"{place}: {first['msg']}") from error
    return entry


def _fields_of(cls: type[HistoryEntry], message: Message, names: object) -> dict[str, Any]:
    if issubclass(cls, ToolResultsEntry):
        return cls.fields_of(message, cast("Mapping[str, str]", names))
    if issubclass(cls, ModelInputEntry | ModelOutputEntry | InstructionEntry):
        return cls.fields_of(message)
    return {}
