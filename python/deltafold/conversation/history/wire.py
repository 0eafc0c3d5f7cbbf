"""The JSON form of entries.

In: entries.  Out: objects of JSON with camelCase names, and the entries again.

Laws: an entry equals the entry that is read from its JSON. Members that the message of an entry
determines are not written a second time.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, cast

from pydantic import TypeAdapter, ValidationError
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
from deltafold.conversation.history.frozen import kept_message
from deltafold.conversation.history.kinds import HistoryEntryKind
from deltafold.conversation.history.run_entries import CallEntry, PartialEntry
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
        ResetEntry,
        StoredEntry,
    )
}


def entry_to_dict(entry: HistoryEntry) -> dict[str, object]:
    """Return the wire form of an entry."""
    determined = _determined(entry)
    adapter = _adapter(type(entry))
    wire = adapter.dump_python(
        entry, mode="json", by_alias=True, exclude_none=True, exclude=set(determined)
    )
    for name in ("metadata", "approvals"):
        if not wire.get(name, True):
            del wire[name]
    names = _tool_names(entry) if "results" in determined else {}
    return {"kind": entry.kind.value, **wire, **({"toolNames": names} if names else {})}


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
        entry: HistoryEntry = _adapter(cls).validate_python(members)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "entry"
        raise ValueError(f"{place}: {first['msg']}") from error
    return entry


@cache
def _adapter(cls: type[HistoryEntry]) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def _determined(entry: HistoryEntry) -> dict[str, object]:
    """Return the fields of an entry that its message determines."""
    message = kept_message(entry)
    if message is None:
        return {}
    fields = _fields_of(type(entry), message, _tool_names(entry))
    return {name: value for name, value in fields.items() if getattr(entry, name) == value}


def _fields_of(cls: type[HistoryEntry], message: Message, names: object) -> dict[str, Any]:
    if issubclass(cls, ToolResultsEntry):
        return cls.fields_of(message, cast("Mapping[str, str]", names))
    if issubclass(cls, ModelInputEntry | ModelOutputEntry | InstructionEntry):
        return cls.fields_of(message)
    return {}


def _tool_names(entry: HistoryEntry) -> dict[str, str]:
    results = entry.results if isinstance(entry, ToolResultsEntry) else ()
    return {result.tool_call_id: result.tool_name for result in results if result.tool_name}
