"""Judgement of what became of the markers of one event, request or answer.

In: a value with markers, and what the library made of it, as JSON with its warnings.  Out: the
findings: members that are lost, with or without a warning, or in a wrong place, unknown events.

Laws: a marker is kept where it is anywhere in the result. A word or a boolean is kept where the
results of two values differ. Every finding has the path of its member.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from markers_places import wrong_place
from markers_values import FOUND, UNKNOWN, Marked

LOST: Final = "lost without a warning"
WARNED: Final = "lost with a warning"
UNKNOWN_EVENT: Final = "unknown event"
WRONG_PLACE: Final = "wrong place"
REFUSED: Final = "refused"
NOT_SENT: Final = "not sent"
"""A member that no lawful event held."""
KINDS: Final = (LOST, UNKNOWN_EVENT, WRONG_PLACE, REFUSED, NOT_SENT)
"""Kinds of findings that must be accepted. A warning that names a member is enough by itself."""


class Finding(NamedTuple):
    """A member that is not where it belongs.

    Attributes:
        sdk: package of the type.
        protocol: dialect of the event.
        kind: one of `KINDS`.
        path: path of the member from the event, with the event before the colon.
        seen: the place in the result, the warning or the error.
    """

    sdk: str
    protocol: str
    kind: str
    path: str
    seen: str = ""


class Result(NamedTuple):
    """The result of an event: its JSON, its warnings, and what it was refused for."""

    value: Any
    warnings: Sequence[Mapping[str, Any]] = ()
    refused: str = ""


_MADE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""An id that the library makes where the provider sends none."""
_VOLATILE: Final = ("id", "runId", "timestamp")


def result_of(message: Any) -> Result:  # noqa: ANN401 - a Message or the partial message of an error
    """Return the result of a folded message."""
    value = message.to_dict()
    for name in _VOLATILE:
        value.pop(name, None)
    warnings = value.get("meta", {}).pop("warnings", None) or ()
    return Result(value, warnings)


def places(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield place and text of each string, number and name of a JSON value."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        for name, member in members.items():
            if FOUND.search(name):
                yield f"{place}.key", name
            yield from places(member, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            kind = _kind(item) if place == "parts" else ""
            yield from places(item, f"{place}[{kind}]")
    elif value is not None and not isinstance(value, bool):
        yield place, str(value)


def _kind(item: object) -> str:
    return str(cast("dict[str, object]", item).get("kind")) if isinstance(item, dict) else ""


@dataclass
class Judge:
    """Judges the events of one SDK and one protocol.

    Attributes:
        sdk: package of the types.
        protocol: dialect of the events.
        kept: number of the markers, words and booleans that were kept.
        generic: paths of members that are kept in places without a meaning for the library.
        findings: members that are not where they belong.
        seen: paths of the members that the events had.
    """

    sdk: str
    protocol: str
    kept: int = 0
    generic: set[str] = field(default_factory=set[str])
    findings: set[Finding] = field(default_factory=set[Finding])
    seen: set[str] = field(default_factory=set[str])
    _compared: dict[str, dict[object, str]] = field(
        default_factory=lambda: defaultdict[str, dict[object, str]](dict)
    )

    _named: dict[str, str] = field(default_factory=dict[str, str])

    def judge(self, event: str, marked: Marked, result: Result) -> None:
        """Add what became of one event."""
        if result.refused:
            unlisted = [path for path in marked.markers.values() if path.endswith(UNKNOWN)]
            self.seen.update(unlisted)
            for path in unlisted or [f"{event}:"]:
                self._found(REFUSED, path, result.refused)
            return
        where: dict[str, list[str]] = defaultdict(list)
        for place, text in places(result.value):
            for marker in FOUND.findall(text):
                where[marker].append(place)
        # The warning of an unknown event has its first bytes.
        known = [each for each in result.warnings if each.get("code") != "unknown_event"]
        said = json.dumps(known)
        for marker, path in marked.markers.items():
            self.seen.add(path)
            self._judge_marker(path, where.get(marker), marker in said, result.warnings)
        for warning in result.warnings:
            if warning.get("code") == "unknown_event":
                self._found(UNKNOWN_EVENT, f"{event}:", str(warning.get("message")))
        for path, value in marked.words.items():
            self.seen.add(path)
            self._compared[path][value] = _MADE.sub("", json.dumps([result.value, said]))
            self._named[path] = naming(path, result.warnings)

    def _judge_marker(
        self,
        path: str,
        where: list[str] | None,
        is_said: bool,
        warnings: Sequence[Mapping[str, Any]],
    ) -> None:
        if where is None:
            if is_said:
                self.kept += 1
                return
            warning = naming(path, warnings)
            self._found(WARNED if warning else LOST, path, warning)
            return
        self.kept += 1
        if all(_is_generic(place) for place in where):
            self.generic.add(path)
        wrong = wrong_place(self.protocol, path, where)
        if wrong:
            self._found(WRONG_PLACE, path, wrong)

    def finish(self, declared: Iterable[str]) -> None:
        """Compare the words and booleans of each member, and name members that were not sent."""
        for path in {*declared} - self.seen:
            self._found(NOT_SENT, path)
        for path, results in self._compared.items():
            by_result: dict[str, list[object]] = defaultdict(list)
            for value, result in results.items():
                by_result[result].append(value)
            if len(by_result) == 1 and len(results) > 1:
                named = self._named[path]
                self._found(WARNED if named else LOST, path, named or "one result for all values")
                continue
            for values in by_result.values():
                if len(values) > 1:
                    for value in values:
                        self._found(LOST, f"{path}={value}", f"the same result as {values}")
                else:
                    self.kept += 1

    def _found(self, kind: str, path: str, seen: str = "") -> None:
        self.findings.add(Finding(self.sdk, self.protocol, kind, path, seen))


def _is_generic(place: str) -> bool:
    """Return whether a place has no meaning for the library: a part or a detail of the provider."""
    return place.startswith(("parts[provider]", "meta.details"))


_NAMED_BY_CODE: Final[Mapping[str, str]] = {
    "annotations_dropped": "annotations",
    "thinking_dropped": "reasoning",
    "part_replaced": "image",
}
"""Members, and alternatives of a union, that a note names by its code."""
_NAMING: Final = frozenset(
    (
        "unread_member",
        "unread_logprobs",
        "setting_dropped",
        "setting_changed",
    )
)
"""Codes of the warnings and notes that name a member which is not kept."""


def naming(path: str, warnings: Sequence[Mapping[str, Any]]) -> str:
    """Return the warning that names a member, or a member that holds it; empty without one."""
    members = set(re.split(r"[.:\[\]<>=?]+", path.partition(":")[2]))
    for warning in warnings:
        code, message = str(warning.get("code")), str(warning.get("message"))
        if code in _NAMING:
            named = {each.rpartition(".")[2] for each in re.findall(r"[\w.]+", message)}
            if members & named:
                return message
        if _NAMED_BY_CODE.get(code) in members:
            return message
    return ""
