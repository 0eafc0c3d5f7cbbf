"""Two-way tables between the settings of a dialect and the members of its request body.

In: one table per dialect, in its `settings.py`.  Out: body members for the renderer, settings for
the parser, and the value of a setting in a finished body for telemetry.

Laws: a table has one row for each field of the dialect's configuration class, and no other row; no
two copied settings have the same member; a row without a member states the reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias, cast

from deltafold.contract import json_object
from deltafold.dialects.settings import ModelConfig, Object

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


@dataclass(frozen=True, slots=True)
class Setting:
    """Counterpart of one setting in the request body.

    Attributes:
        paths: members that can hold the setting. A copied setting has exactly one.
        reason: explanation of a setting that is only written, or that has no member.
    """

    form: Form
    paths: tuple[Path, ...] = ()
    reason: str = ""

    @property
    def path(self) -> Path:
        """Path of the member that is written first."""
        return self.paths[0]


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


COMMON: Final[SettingTable] = {
    "model_id": converted("model"),
    "cache_config": no_member("the provider caches by itself, or not at all"),
    "provider_tools": converted("tools"),
    "provider_tool_positions": converted("tools"),
    "extra_body": no_member("its members are merged into the body"),
    "extra_headers": no_member("part of the HTTP request"),
    "extra_query": no_member("part of the HTTP request"),
}
"""Rows that most dialects share. The row of a dialect replaces the row of the same name."""


def write_settings(table: SettingTable, config: ModelConfig) -> Object:
    """Return the body members of all copied settings that are set."""
    body: Object = {}
    # Most settings are None. The dictionary has the fields in their order, as the table has.
    for name, value in vars(config).items():
        setting = None if value is None else table.get(name)
        if setting is None or setting.form is not Form.COPIED:
            continue
        members = body
        for outer in setting.path[:-1]:
            members = cast("Object", members.setdefault(outer, {}))
        members[setting.path[-1]] = as_list(value)
    return body


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
