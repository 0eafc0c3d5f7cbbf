"""Reader of hostile YAML: the value of one document, from the events of the parser.

In: the text of a file.  Out: dicts, lists, texts, bytes, numbers, booleans and None.

Laws: a tag never constructs an object; an unknown one is an error. An alias shares the value of its
anchor and is not copied. The number of values and the depth are bounded. Recursion is not used.
PyYAML is imported when a document is read.
"""

import base64
import binascii
import re
from collections.abc import Hashable, Iterator
from importlib import import_module
from typing import Final, Protocol, TypeAlias, cast

from deltafold.contract.exceptions import MisuseError

Value: TypeAlias = "dict[Hashable, Value] | list[Value] | str | bytes | int | float | bool | None"

_MAX_VALUES: Final = 1_000_000
_MAX_DEPTH: Final = 100
_CORE: Final = "tag:yaml.org,2002:"
# Ruby writes `!binary`, Python `!!binary`.
_BINARY: Final = frozenset({f"{_CORE}binary", "!binary"})
_COLLECTIONS: Final = frozenset({None, "!", f"{_CORE}map", f"{_CORE}seq"})
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "false": False, "False": False}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,4000}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class _Mark(Protocol):
    line: int


class _Event(Protocol):
    """Used part of the events of PyYAML, whose package has no types."""

    start_mark: _Mark
    anchor: str | None
    tag: str | None
    implicit: tuple[bool, bool]
    value: str


class _Yaml(Protocol):
    YAMLError: type[Exception]

    def parse(self, text: str, *, Loader: object) -> Iterator[_Event]: ...  # noqa: N803 - PyYAML's


class _Open:
    """A list or a mapping whose end was not read."""

    __slots__ = ("key", "line", "value")

    def __init__(self, value: "dict[Hashable, Value] | list[Value]", line: int) -> None:
        self.value = value
        self.line = line
        self.key: list[Value] = []

    def add(self, value: Value) -> None:
        """Add an element, or the next key or value."""
        if isinstance(self.value, list):
            self.value.append(value)
        elif not self.key:
            if isinstance(value, dict | list):
                raise _no_key(self.line)
            self.key.append(value)
        else:
            self.value[cast("Hashable", self.key.pop())] = value


def _no_key(line: int) -> ValueError:
    return ValueError(f"line {line}: a list or a mapping as a key is not supported")


def read_yaml(text: str) -> Value:
    """Return the value of the first document of a text.

    >>> read_yaml("status: {code: 200, message: OK}")
    {'status': {'code': 200, 'message': 'OK'}}

    Raises:
        MisuseError: PyYAML is not installed.
        ValueError: the text is not YAML, or it exceeds a bound; the message names the line.
    """
    try:
        yaml = cast("_Yaml", import_module("yaml"))
    except ImportError as missing:
        raise MisuseError(
            "PyYAML, which reads YAML files, is not installed: pip install 'deltafold[testing]'"
        ) from missing
    loader = getattr(yaml, "CSafeLoader", None) or vars(yaml)["SafeLoader"]
    try:
        return _value_of(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as wrong:
        raise ValueError(f"not valid YAML: {' '.join(str(wrong).split())}") from wrong


class _Composer:
    """Composes the value of a document from its events."""

    def __init__(self) -> None:
        self.top: list[Value] = []
        self._opened = [_Open(self.top, 0)]
        self._anchors: dict[str, Value] = {}

    def add(self, event: _Event, kind: str) -> None:
        """Add the next event of the document."""
        line = event.start_mark.line + 1
        if kind in {"SequenceEndEvent", "MappingEndEvent"}:
            self._opened.pop()
        elif kind == "AliasEvent":
            if event.anchor not in self._anchors:
                raise ValueError(f"line {line}: unknown alias {event.anchor!r}")
            self._opened[-1].add(self._anchors[event.anchor])
        elif kind == "ScalarEvent":
            self._begin(event, _scalar(event, line))
        elif kind in {"SequenceStartEvent", "MappingStartEvent"}:
            if event.tag not in _COLLECTIONS:
                raise ValueError(f"line {line}: the tag {event.tag!r} is not supported")
            if len(self._opened) > _MAX_DEPTH:
                raise ValueError(f"line {line}: nested deeper than {_MAX_DEPTH}")
            value: dict[Hashable, Value] | list[Value]
            value = {} if kind == "MappingStartEvent" else []
            self._begin(event, value)
            self._opened.append(_Open(value, line))

    def _begin(self, event: _Event, value: Value) -> None:
        self._opened[-1].add(value)
        if event.anchor is not None:
            self._anchors[event.anchor] = value


def _value_of(events: Iterator[_Event]) -> Value:
    composer = _Composer()
    for count, event in enumerate(events):
        if count > _MAX_VALUES:
            raise ValueError(f"more than {_MAX_VALUES} values")
        kind = type(event).__name__
        if kind == "DocumentEndEvent":
            break
        composer.add(event, kind)
    return composer.top[0] if composer.top else None


def _scalar(event: _Event, line: int) -> Value:
    text = event.value
    if event.tag in _BINARY:
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except binascii.Error as wrong:
            raise ValueError(f"line {line}: binary data that is not base64: {wrong}") from wrong
    if event.tag in {"!", f"{_CORE}str"}:
        return text
    if event.tag is not None:
        raise ValueError(f"line {line}: the tag {event.tag!r} is not supported")
    if not event.implicit[0]:  # quoted
        return text
    return _plain(text)


def _plain(text: str) -> Value:
    """Return a plain scalar by the core schema (YAML 1.2.2, section 10.3.2)."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
