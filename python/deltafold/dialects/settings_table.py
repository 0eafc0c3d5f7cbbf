"""Two-way tables between the settings of a dialect and the members of its request body.

In: one table per dialect, in its `settings.py`.  Out: body members for the renderer, settings for
the parser, the value of a setting in a finished body for telemetry, and the counterpart of a
setting in other dialects for the migration.

Laws: a table has one row for each field of the dialect's configuration class, and no other row; no
two copied settings have the same member; a row without a member states the reason, and so does a
row without a counterpart in other dialects.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects.settings import ModelConfig, Object

if TYPE_CHECKING:
    from deltafold.dialects.model_table import KnownModel

Path: TypeAlias = tuple[str, ...]
"""Names of nested members, the outermost first."""


class Form(StrEnum):
    """Relation between a setting and its member.

    Attributes:
        COPIED: the member has the value of the setting, in both directions.
        CONVERTED: `render.py` and `parse.py` convert the value, in both directions.
        WRITTEN: only `render.py` converts the value; `parse.py` keeps the member in another form.
        NONE: the body has no member for the setting.
    """

    COPIED = "copied"
    CONVERTED = "converted"
    WRITTEN = "written"
    NONE = "none"


@dataclass(slots=True)
class Conversion:
    """State of one migration of settings to a dialect.

    Attributes:
        target: dialect of the new settings.
        model_id: model of the new settings.
        known: the facts that hold for this model, None if it is not known.
        names: the setting of the source that each portable setting came from, for the losses.
        has_tools: whether the request offers tools.
        losses: settings that do not arrive (`is_dropped`) or that change, each with the reason.
    """

    target: str
    model_id: str
    known: "KnownModel | None" = None
    names: dict[str, str] = field(default_factory=dict[str, str])
    has_tools: bool = False
    losses: list["Loss"] = field(default_factory=list["Loss"])

    def label(self, name: str) -> str:
        """Return the setting of the source that a portable setting comes from."""
        return self.names.get(name, name)

    def drop(self, name: str, reason: str) -> None:
        """Note a setting, or a member of a setting, that does not arrive."""
        self.losses.append(Loss(self.label(name), reason, is_dropped=True))

    def change(self, name: str, how: str) -> None:
        """Note a setting that arrives with another value or in a wider form."""
        self.losses.append(Loss(self.label(name), how, is_dropped=False))


@dataclass(frozen=True, slots=True)
class Loss:
    """One setting that a migration drops or changes."""

    name: str
    reason: str
    is_dropped: bool


Reading: TypeAlias = Callable[[Any, Conversion], Mapping[str, object]]
"""Conversion of a setting to portable settings."""

Writing: TypeAlias = Callable[[Mapping[str, Any], Conversion], object]
"""Conversion of all portable settings to the value of one setting; None leaves it out."""


@dataclass(frozen=True, slots=True)
class Counterpart:
    """Portable settings that a setting expresses, with the conversion in both directions.

    Attributes:
        names: names of the portable settings; none is the name of the configuration field.
        member: place of the value in a setting that is an object; () is the whole setting.
        read: converts the value; None takes it unchanged.
        write: returns the value; None takes the first portable setting unchanged.
    """

    names: tuple[str, ...] = ()
    member: Path = ()
    read: Reading | None = None
    write: Writing | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """Counterpart of one setting in the request body, and in other dialects.

    Attributes:
        paths: members that can hold the setting. A copied setting has exactly one.
        reason: explanation of a setting that is only written, or that has no member.
        counterparts: the portable settings that it expresses; by default the one of its name.
        own: reason why no other dialect has a counterpart.
        is_form: whether the setting only selects how a body of its dialect is written, so that
            another dialect loses nothing without it.
    """

    form: Form
    paths: tuple[Path, ...] = ()
    reason: str = ""
    counterparts: tuple[Counterpart, ...] = (Counterpart(),)
    own: str = ""
    is_form: bool = False

    @property
    def path(self) -> Path:
        """Path of the member that is written first."""
        return self.paths[0]

    def means(self, *counterparts: Counterpart) -> "Setting":
        """Return the row with other counterparts than the portable setting of its name."""
        return replace(self, counterparts=counterparts)

    def stays(self, reason: str) -> "Setting":
        """Return the row of a setting without a counterpart."""
        return replace(self, counterparts=(), own=reason)

    def shapes(self, reason: str) -> "Setting":
        """Return the row of a setting that only selects how a body is written."""
        return replace(self, counterparts=(), own=reason, is_form=True)


SettingTable: TypeAlias = Mapping[str, Setting]
"""Rows of a dialect, by the name of the configuration field."""


def copied(*path: str) -> Setting:
    """Return the row of a setting with the same value as its member."""
    return Setting(Form.COPIED, (path,))


def same(*names: str, within: Path = ()) -> dict[str, Setting]:
    """Return rows of settings that are copied to members of the same name."""
    return {name: copied(*within, name) for name in names}


def converted(*paths: str | Path) -> Setting:
    """Return the row of a setting that render and parse convert; a string is a top-level member."""
    return Setting(Form.CONVERTED, tuple((p,) if isinstance(p, str) else p for p in paths))


def written(*members: str, reason: str) -> Setting:
    """Return the row of a setting that is written to top-level members and not read back."""
    return Setting(Form.WRITTEN, tuple((member,) for member in members), reason)


def no_member(reason: str) -> Setting:
    """Return the row of a setting that the request body cannot express."""
    return Setting(Form.NONE, reason=reason)


def each_stays(reason: str, rows: SettingTable) -> dict[str, Setting]:
    """Return rows of settings without a counterpart, for the same reason."""
    return {name: row.stays(reason) for name, row in rows.items()}


AS_MEMBER: Final = "parse reads the member of the API"
MODEL_ID: Final = "the caller names the model of the target"
PROVIDER_TOOLS: Final = "tools of a provider have no form in another API"
TOOL_POSITIONS: Final = "orders the tools of the body"

COMMON: Final[SettingTable] = {
    "model_id": converted("model").shapes(MODEL_ID),
    "known_as": no_member("names the model in the table of models").shapes(MODEL_ID),
    "strict_settings": no_member("decides which settings are sent").shapes(MODEL_ID),
    "cache_config": no_member("the provider caches by itself, or not at all"),
    "provider_tools": converted("tools").stays(PROVIDER_TOOLS),
    "provider_tool_positions": converted("tools").shapes(TOOL_POSITIONS),
    "extra_body": no_member("its members are merged into the body").stays("members of another API"),
    "extra_headers": no_member("part of the HTTP request").stays("headers of another API"),
    "extra_query": no_member("part of the HTTP request").stays("query of another API"),
}
"""Rows that most dialects share. The row of a dialect replaces the row of the same name."""


def write_settings(table: SettingTable, config: ModelConfig) -> Object:
    """Return the body members of all copied settings that are set."""
    body: Object = {}
    known = _COPIED.get(type(config))
    if known is None or known.table is not table:
        known = _COPIED[type(config)] = _Copied.of(type(config), table)
    given = config.__pydantic_fields_set__
    if not known.with_default and known.names.isdisjoint(given):  # the usual case
        return body
    names = known.names.intersection(given) | known.with_default
    for name in sorted(names, key=known.places.__getitem__):
        value = getattr(config, name)
        if value is None:
            continue
        path = table[name].path
        members = body
        for outer in path[:-1]:
            members = cast("Object", members.setdefault(outer, {}))
        members[path[-1]] = as_list(value)
    return body


class _Copied(NamedTuple):
    """The copied settings of a class: their order, and those that are set without the caller."""

    table: SettingTable
    names: frozenset[str]
    places: Mapping[str, int]
    with_default: frozenset[str]

    @classmethod
    def of(cls, kind: type[ModelConfig], table: SettingTable) -> Self:
        """Return those of a class of settings and the table of its dialect."""
        copied = {name for name, setting in table.items() if setting.form is Form.COPIED}
        fields = kind.model_fields
        names = [name for name in fields if name in copied]
        places = {name: place for place, name in enumerate(names)}
        with_default = frozenset(name for name in names if fields[name].get_default() is not None)
        return cls(table, frozenset(names), places, with_default)


_COPIED: Final[dict[type[ModelConfig], _Copied]] = {}


def as_list(value: object) -> object:
    """Return JSON's form of a value: a list in place of a tuple."""
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value


def copied_members(table: SettingTable, within: Path = ()) -> Iterator[tuple[str, str]]:
    """Yield member and setting of each copied row whose member is a direct member of `within`."""
    for name, setting in table.items():
        if setting.form is Form.COPIED and setting.path[:-1] == within:
            yield setting.path[-1], name


def setting_in(table: SettingTable, name: str, body: Mapping[str, object]) -> object:
    """Return the value of a setting in a request body, None where the body does not have it."""
    for path in table[name].paths if name in table else ():
        found: object = body
        for member in path:
            found = (json_object(found) or {}).get(member)
        if found is not None:
            return found
    return None
