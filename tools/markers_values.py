"""Values of a shape, with a marker in each member.

In: a shape.  Out: values that together hold each alternative of each union, each word of each list
and both booleans, one change at a time, and the places of their markers.

Laws: a value has the members that its type requires, beside the one that is looked at; the first
value of each record has all of its members. A marker occurs once in a value. The same value gets
the same markers.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, cast

from markers_types import Choice, Many, Mapped, Plain, Record, Shape, Words

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class Leaf(NamedTuple):
    """A place of a value where a marker comes.

    Attributes:
        path: path of the member from the event.
        kind: kind of the plain value, or `word` or `boolean` with a `value` to compare by.
        value: the word or the boolean.
        is_varied: whether the value differs from others in this word or boolean alone.
    """

    path: str
    kind: str
    value: str | int | bool | None = None
    is_varied: bool = False


Value: TypeAlias = "dict[str, Value] | list[Value] | str | int | bool | Leaf | None"


class Place(NamedTuple):
    """A member of a type, where a union or a literal is written."""

    record: str
    member: str


_USUAL: Final = "completed"
"""Word that a value has where its list has it: other states of an item leave members out."""
UNKNOWN: Final = "=?"
"""End of the path of a word that the SDK does not list."""


@dataclass
class Values:
    """Makes the values of shapes, and records which alternatives they hold."""

    made: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])

    def of(self, shape: Shape, path: str, place: Place) -> Iterator[Value]:
        """Yield the values of an event or of a whole answer."""
        yield from self._varied(shape, path, place, ())

    def _leaf(self, shape: Plain | Words, path: str, place: Place) -> Value:
        if isinstance(shape, Plain):
            self._saw(place, shape.kind)
            if shape.kind == "boolean":
                return Leaf(path, "boolean", value=True)
            return (
                {"any": Leaf(f"{path}.any", "string")}
                if shape.kind == "any"
                else Leaf(path, shape.kind)
            )
        word = _USUAL if _USUAL in shape.values else shape.values[0]
        self._saw(place, repr(word))
        return word if len(shape.values) == 1 else Leaf(path, "word", word)

    def _saw(self, place: Place, leaf: str) -> None:
        self.made.add((place.record, place.member, leaf))

    def _least(self, shape: Shape, path: str, place: Place, above: tuple[object, ...]) -> Value:
        """Return a value with the required members alone."""
        if isinstance(shape, Plain | Words):
            return self._leaf(shape, path, place)
        if isinstance(shape, Many):
            if _is_above(shape.item, above):
                return []
            return [self._least(shape.item, f"{path}[]", place, above)]
        if isinstance(shape, Mapped):
            return {"key": self._least(shape.value, f"{path}.key", place, above)}
        if isinstance(shape, Choice):
            finite = [each for each in shape.alternatives if not _is_above(each, above)]
            alternative = [*finite, *shape.alternatives][0]
            return self._least(alternative, _tagged(shape, alternative, path), place, above)
        self._saw(place, shape.full_name)
        return {
            name: None
            if member.is_nullable
            else self._least(
                member.shape, _joined(path, name), Place(shape.full_name, name), (*above, shape.key)
            )
            for name, member in shape.members.items()
            if member.is_required
        }

    def _full(self, shape: Shape, path: str, place: Place, above: tuple[object, ...]) -> Value:
        """Return a value with all members, where the type is not inside itself."""
        if isinstance(shape, Many):
            return [self._full(shape.item, f"{path}[]", place, above)]
        if isinstance(shape, Mapped):
            return {"key": self._full(shape.value, f"{path}.key", place, above)}
        if isinstance(shape, Choice):
            alternative = shape.alternatives[0]
            return self._full(alternative, _tagged(shape, alternative, path), place, above)
        if not isinstance(shape, Record) or shape.key in above:
            return self._least(shape, path, place, above)
        self._saw(place, shape.full_name)
        return {
            name: self._full(
                member.shape, _joined(path, name), Place(shape.full_name, name), (*above, shape.key)
            )
            for name, member in shape.members.items()
        }

    def _varied(
        self, shape: Shape, path: str, place: Place, above: tuple[object, ...]
    ) -> Iterator[Value]:
        """Yield all values, one difference each."""
        if isinstance(shape, Plain | Words):
            yield from self._varied_leaf(shape, path, place)
        elif isinstance(shape, Many):
            for value in self._varied(shape.item, f"{path}[]", place, above):
                yield [value]
        elif isinstance(shape, Mapped):
            for value in self._varied(shape.value, f"{path}.key", place, above):
                yield {"key": value}
        elif isinstance(shape, Choice):
            for each in shape.alternatives:
                yield from self._varied(each, _tagged(shape, each, path), place, above)
        elif shape.key in above:
            yield self._least(shape, path, place, above)
        else:
            yield from self._varied_record(shape, path, place, above)

    def _varied_leaf(self, shape: Plain | Words, path: str, place: Place) -> Iterator[Value]:
        if isinstance(shape, Words) and len(shape.values) > 1:
            for word in shape.values:
                self._saw(place, repr(word))
                yield Leaf(path, "word", word, is_varied=True)
            if isinstance(shape.values[0], str):
                yield Leaf(path + UNKNOWN, "string")
        elif shape == Plain("boolean"):
            self._saw(place, "boolean")
            yield from (Leaf(path, "boolean", value, is_varied=True) for value in (True, False))
        else:
            yield self._leaf(shape, path, place)

    def _varied_record(
        self, shape: Record, path: str, place: Place, above: tuple[object, ...]
    ) -> Iterator[Value]:
        yield self._full(shape, path, place, above)
        least = cast("dict[str, Value]", self._least(shape, path, place, above))
        for name, member in shape.members.items():
            inner = Place(shape.full_name, name)
            for value in self._varied(
                member.shape, _joined(path, name), inner, (*above, shape.key)
            ):
                yield {**least, name: value}


def _is_above(shape: Shape, above: tuple[object, ...]) -> bool:
    """Return whether a shape is one of the records that hold it, in all of its alternatives."""
    if isinstance(shape, Choice):
        return all(_is_above(alternative, above) for alternative in shape.alternatives)
    return isinstance(shape, Record) and shape.key in above


def _joined(path: str, name: str) -> str:
    return f"{path}{name}" if path.endswith(":") else f"{path}.{name}"


def _tagged(choice: Choice, alternative: Shape, path: str) -> str:
    """Return the path with the word, or the name, that tells an alternative from the others."""
    if not isinstance(alternative, Record) or isinstance(alternative.key, tuple):
        return path
    tags = [shape.tag for shape in choice.alternatives if isinstance(shape, Record)]
    if tags == [alternative.tag]:
        return path
    tag = alternative.tag
    return f"{path}<{tag}>" if tags.count(tag) == 1 else f"{path}<{tag} {alternative.name}>"


class Marked(NamedTuple):
    """A value with its markers.

    Attributes:
        value: the JSON.
        markers: the path of each marker, by the text of the marker.
        words: the path and the value of the word or boolean that is varied.
    """

    value: Json
    markers: Mapping[str, str]
    words: Mapping[str, str | int | bool | None]

    def sent(self) -> "Marked":
        """Return the value with the markers that it still has, after a change of its members."""
        there = set(FOUND.findall(json.dumps(self.value)))
        markers = {marker: path for marker, path in self.markers.items() if marker in there}
        return self._replace(markers=markers)


Write: TypeAlias = "Json | Callable[[Json], Json]"
"""Value of a member that the protocol decides, or a function that writes a text around a marker."""


def marked(value: Value, decided: Callable[[str], Write]) -> Marked:
    """Put markers into a value.

    Args:
        value: the value.
        decided: what the protocol decides about a member, by its path.
    """
    markers: dict[str, str] = {}
    words: dict[str, str | int | bool | None] = {}

    def written(value: Value) -> Json:
        if isinstance(value, Leaf):
            return of_leaf(value)
        if isinstance(value, dict):
            return {name: written(member) for name, member in value.items()}
        if isinstance(value, list):
            return [written(item) for item in value]
        return value

    def of_leaf(leaf: Leaf) -> Json:
        write = decided(leaf.path)
        if not callable(write):
            return write
        if leaf.kind in {"word", "boolean"}:
            if leaf.is_varied:
                words[leaf.path] = leaf.value
            return leaf.value
        marker = _MARKERS[leaf.kind](len(markers) + 1)
        markers[str(marker)] = leaf.path
        return write(marker)

    return Marked(written(value), markers, words)


_MARKERS: Final[Mapping[str, Callable[[int], str | int]]] = {
    "string": lambda number: f"mk{number:05}k",
    "base64": lambda number: f"mk{number:05}k",
    "integer": lambda number: 7_100_000 + 7 * number,
    "number": lambda number: 7_200_000 + 7 * number,
    "time": lambda number: (
        f"2031-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    ),
}
"""Writers of the marker of a number. Eight letters and digits are valid base64 too.

A number that may have a fraction has none, as counts of some SDKs are such numbers. No number is
the sum of others, or one more.
"""

FOUND: Final = re.compile(r"mk\d{5}k|(?<!\d)7[12]\d{5}(?!\d)|2031-01-01T\d\d:\d\d:\d\dZ")
"""Any marker in a text."""
