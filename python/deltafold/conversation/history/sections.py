"""Sections: named texts in three levels of detail.

In: named pieces of text.  Out: the level that fits, or all of it as one text.

Laws: the order is kept. Nothing is changed in place. A live screen is one section of the live
level, with a reserved name.
Source: docs/blueprint.md#history-entries, docs/blueprint.md#live-screen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Self, TypeAlias, cast

from deltafold.contract.foreign_text import well_formed

LIVE_SCREEN: Final = "[LiveScreen]"
"""Key of the section that shows the state of the widgets at the time of the entry.

>>> shown = sections.with_live_section(LIVE_SCREEN, "Zoom: 4")
>>> shown.get_sections("live")[-1].key
'[LiveScreen]'
"""

MAX_GIST_CHARACTERS: Final = 200
"""Length of the gist of a text for which the caller gives no gist."""


class LevelOfDetail(StrEnum):
    """Amount of an entry that is shown.

    >>> sections.get_sections(LevelOfDetail.GIST)
    (Section(key='', value='Hello'),)
    """

    LIVE = "live"
    SUMMARY = "summary"
    GIST = "gist"


class Section(NamedTuple):
    r"""A piece of text under a heading; the key may be empty.

    >>> to_plain_text([Section("Port", "Brest"), Section("Tide", "17:42")])
    '# Port\nBrest\n\n# Tide\n17:42'
    """

    key: str
    value: str


Sections: TypeAlias = tuple[Section, ...]
Pairs: TypeAlias = Iterable[tuple[str, str]]


def check_sections(value: object, name: str) -> None:
    """Check that a value has levels of detail.

    Raises:
        TypeError: it has none.
    """
    if not isinstance(value, LevelOfDetailSections):
        raise TypeError(
            f"{name} must be LevelOfDetailSections, not {type(value).__name__}; "
            "LevelOfDetailSections.of_text makes them of a text"
        )


def sections_of(pairs: Pairs) -> Sections:
    """Make sections from pairs; a lone surrogate, which no JSON can hold, becomes U+FFFD.

    Raises:
        TypeError: an item is not a pair of strings.
    """
    made: list[Section] = []
    for place, pair in enumerate(pairs):
        given = cast("object", pair)
        match given:
            case (str(key), str(value)):
                made.append(Section(well_formed(key), well_formed(value)))
            case _:
                raise TypeError(f"sections[{place}] must be a pair of strings, not {pair!r}")
    return tuple(made)


@dataclass(frozen=True, slots=True, init=False)
class LevelOfDetailSections:
    """The same content in three levels of detail.

    >>> said = LevelOfDetailSections([("", "all of it")], [("", "most")], [("", "some")])
    >>> said.get_sections("summary")
    (Section(key='', value='most'),)

    Args:
        live: everything.
        summary: what older turns keep.
        gist: what the oldest turns keep.
    """

    live: Sections
    summary: Sections
    gist: Sections

    def __init__(self, live: Pairs, summary: Pairs, gist: Pairs) -> None:
        object.__setattr__(self, "live", sections_of(live))
        object.__setattr__(self, "summary", sections_of(summary))
        object.__setattr__(self, "gist", sections_of(gist))

    @classmethod
    def create_uniform(cls, sections: Pairs) -> Self:
        """Make all levels the same."""
        made = sections_of(sections)
        return cls(made, made, made)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Make all levels one text without a heading."""
        return cls.create_uniform([("", text)])

    @classmethod
    def with_gist(cls, text: str) -> Self:
        """Make the levels of a text: all of it, and its first characters as the gist."""
        whole = [("", text)]
        return cls(whole, whole, [("", _shortened(text))])

    def get_sections(self, detail: LevelOfDetail | str) -> Sections:
        """Return a level; one that is not known counts as live."""
        match detail:
            case LevelOfDetail.SUMMARY:
                return self.summary
            case LevelOfDetail.GIST:
                return self.gist
            case _:
                return self.live

    def with_live_section(self, key: str, value: str) -> Self:
        """Return the same with a section of the live level set.

        The first section of that key is replaced, else one is appended; the same object comes back
        where that changes nothing.
        """
        place = next((i for i, section in enumerate(self.live) if section.key == key), None)
        if place is None:
            return type(self)((*self.live, Section(key, value)), self.summary, self.gist)
        if self.live[place].value == value:
            return self
        live = (*self.live[:place], Section(key, value), *self.live[place + 1 :])
        return type(self)(live, self.summary, self.gist)

    def with_first_section(self, key: str, value: str) -> Self:
        """Return the same with another section before those of each level."""
        first = Section(key, value)
        return type(self)((first, *self.live), (first, *self.summary), (first, *self.gist))

    def to_dict(self) -> dict[str, list[list[str]]]:
        """Return the wire form: lists of pairs; a level equal to the one before it is left out."""
        levels = {"live": self.live}
        if self.summary != self.live:
            levels["summary"] = self.summary
        if self.gist != self.summary:
            levels["gist"] = self.gist
        return {name: [list(section) for section in level] for name, level in levels.items()}

    @classmethod
    def from_dict(cls, data: dict[str, list[list[str]]]) -> Self:
        """Make the sections of their wire form.

        Raises:
            ValueError: the live level is missing, or a section is not a pair of strings.
        """
        if "live" not in data:
            raise ValueError("sections must have a live level")
        live = data["live"]
        summary = data.get("summary", live)
        levels = (live, summary, data.get("gist", summary))
        try:
            return cls(*([(key, value) for key, value in level] for level in levels))
        except TypeError as error:
            raise ValueError(str(error)) from error


def without_live_screen(sections: Sequence[Section]) -> tuple[Sequence[Section], str | None]:
    """Take the live screens out.

    Returns the other sections (the same object where there was none) and the last live screen.

    >>> shown = sections.with_live_section(LIVE_SCREEN, "Zoom: 4")
    >>> without_live_screen(shown.get_sections("live"))
    ((Section(key='', value='Hello'),), 'Zoom: 4')
    """
    screens = [section.value for section in sections if section.key == LIVE_SCREEN]
    if not screens:
        return sections, None
    return tuple(section for section in sections if section.key != LIVE_SCREEN), screens[-1]


def to_plain_text(sections: Sequence[Section]) -> str:
    r"""Return sections as one text.

    One section is its text alone; several have their key as a heading, but for empty keys and the
    live screen, and a blank line between them. Lines end with "\n" alone.

    >>> to_plain_text(sections.get_sections("live"))
    'Hello'
    """
    if len(sections) == 1:
        return _lines(sections[0].value)
    return "\n\n".join(_under_heading(section) for section in sections)


def _under_heading(section: Section) -> str:
    text = _lines(section.value)
    if not section.key or section.key == LIVE_SCREEN:
        return text
    return f"# {section.key}\n{text}"


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _shortened(text: str) -> str:
    if len(text) <= MAX_GIST_CHARACTERS:
        return text
    more = len(text) - MAX_GIST_CHARACTERS
    return f"{text[:MAX_GIST_CHARACTERS]}… ({more:,} more characters)"
