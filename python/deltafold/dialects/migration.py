"""Migration of settings: the settings of one dialect become the settings of another.

In: a configuration and the tables of two dialects.  Out: a configuration of the target, and notes.

Laws: the settings of the source become portable settings, and these become settings of the target;
both steps read the rows of the tables. Every setting arrives, is noted, or only selects the form of
a body of its dialect. The configuration of the target is valid.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from pydantic import ValidationError

from deltafold.contract.kinds import json_object
from deltafold.dialects.model_fit import (
    CHAT,
    CLAUDE_DIALECTS,
    TOOLS_BESIDE_NONE,
    model_to_fit,
    taken_values,
)
from deltafold.dialects.model_table import KnownModel
from deltafold.dialects.portable import PORTABLE
from deltafold.dialects.reasoning import BUDGET, DYNAMIC, EFFORT, SUMMARY, is_thinking_off
from deltafold.dialects.rendered import NoteCode
from deltafold.dialects.settings import ModelConfig, Object
from deltafold.dialects.settings_table import (
    Conversion,
    Counterpart,
    Form,
    Path,
    Setting,
    SettingTable,
)

_NAME: Final = {"model_id"}
_SWITCHES: Final = frozenset({"thinking", "reasoning_effort"})
"""Settings that express nothing but the amount of thinking."""
_FORMS: Final = frozenset({"thinking", "output_config", "additional_model_request_fields"})
"""Settings of Claude models that have the amount of thinking."""
_AMOUNT: Final = frozenset({EFFORT, BUDGET, SUMMARY})
LOWERED: Final = ("reasoning_effort", "output_schema")
"""Settings of `ModelConfig` that most APIs have in a member of another name."""


class Migrated(NamedTuple):
    """Settings of another dialect.

    >>> body = {"model": "gpt-5.6-terra", "messages": [], "seed": 7}
    >>> parsed = parse_request(body, "openai-chat")
    >>> config, notes = migrate_config(parsed, "anthropic-messages", model_id="claude")
    >>> notes[0]["code"]
    'setting_dropped'

    Attributes:
        config: the configuration of the target.
        notes: settings that are dropped or changed, as `{code, message}`; the codes are
            `setting_dropped` and `setting_changed`.
    """

    config: ModelConfig
    notes: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two dialects of a migration."""

    name: str
    config_class: type[ModelConfig]
    table: SettingTable


def migrate(
    config: ModelConfig, source: Side, target: Side, model_id: str, known: KnownModel | None
) -> Migrated:
    """Return the settings of a configuration as a configuration of another dialect.

    Args:
        config: the configuration.
        source: its dialect.
        target: the dialect of the new configuration.
        model_id: the model of the new configuration.
        known: the facts that the settings are fitted to, None for no model that is known.
    """
    conversion = Conversion(target.name, model_id, known)
    values = taken_values(_read(config, source, conversion), conversion)
    fields = _written(values, values.keys(), target, conversion, given={})
    return Migrated(_valid(target, fields, conversion), _notes(source.name, conversion))


def lowered(config: ModelConfig, side: Side, vendors: Collection[str] = ()) -> Migrated:
    """Return a configuration with the portable settings in the members of the API.

    A setting of the API's own takes precedence over a portable setting for the same.

    Args:
        config: the configuration.
        side: its dialect.
        vendors: names of the vendor that is called.
    """
    names = {
        name: None
        for name in LOWERED
        if getattr(config, name) is not None and side.table[name].form is not Form.COPIED
    }
    if not names:
        return Migrated(config)
    conversion = Conversion(side.name, config.model_id, model_to_fit(config, side.name, vendors))
    quiet = Conversion(side.name, config.model_id)
    own = config.model_copy(update=dict.fromkeys(names))
    values = _read(own, side, quiet)
    for name in tuple(names):
        rival = _rival(name, values)
        if rival is not None:
            conversion.drop(name, f"{quiet.names[rival]} is set")
            del names[name]
        else:
            values[name] = getattr(config, name)
    fields = _written(values, names.keys(), side, conversion, given=vars(own))
    return Migrated(own.model_copy(update=fields), _notes(side.name, conversion))


def fitted(
    config: ModelConfig, side: Side, vendors: Collection[str] = (), *, has_tools: bool = False
) -> Migrated:
    """Return a configuration without settings that its model is known to refuse.

    Only what the facts about the model change is written anew: all else stays as it was written.

    Args:
        config: the configuration.
        side: its dialect.
        vendors: names of the vendor that is called.
        has_tools: whether the request offers tools.
    """
    is_bare = config.model_fields_set == _NAME
    has_tools = has_tools and side.name == CHAT
    known = None if is_bare and not has_tools else model_to_fit(config, side.name, vendors)
    if known is None or (is_bare and known.facts.chat_tools not in TOOLS_BESIDE_NONE):
        return Migrated(config)
    plain = Conversion(side.name, config.model_id)
    values = _read(config, side, plain)
    conversion = Conversion(side.name, config.model_id, known, plain.names, has_tools)
    taken = taken_values(values, conversion)
    if taken == values and EFFORT not in values and BUDGET not in values:
        return Migrated(config)  # the usual case
    plain.losses.clear()
    before = _written(values, values.keys(), side, plain, given={})
    after = _written(taken, taken.keys(), side, conversion, given={})
    is_off = is_thinking_off(values) and side.name in {CHAT, *CLAUDE_DIALECTS}
    changed = {
        field: _without(getattr(config, field), before.get(field), after.get(field))
        for field, row in side.table.items()
        if before.get(field) != after.get(field)
        or (field in config.model_fields_set and _is_removed(field, row, values, taken))
        # Each model has its own word for thinking that is off.
        or (is_off and field in _SWITCHES and getattr(config, field) != after.get(field))
    }
    fields: dict[str, Any] = {"model_id": config.model_id, **after}
    fitted_config = side.config_class.model_construct(**fields)
    if _amount(values) != _amount(_read(fitted_config, side, Conversion(side.name, ""))):
        changed |= _thinking_as(after, config, side, values)
    amount = {conversion.label(name) for name in _AMOUNT if not changed.keys().isdisjoint(_FORMS)}
    losses = [loss for loss in conversion.losses if loss not in plain.losses or loss.name in amount]
    if not changed and not losses:
        return Migrated(config)
    conversion.losses[:] = losses
    return Migrated(config.model_copy(update=changed), _notes(side.name, conversion))


def _thinking_as(
    after: Object, config: ModelConfig, side: Side, values: Mapping[str, Any]
) -> Object:
    """Return the settings that ask for thinking in another form than the fitted ones.

    Claude Code writes the forms of the newest models, and older programs those of older models.
    """
    changed: Object = {}
    places = [
        (field, part.member)
        for field, row in side.table.items()
        for part in counterparts_of(field, row)
        if field not in LOWERED
        and {*part.names} <= _AMOUNT
        and not values.keys().isdisjoint(part.names)
    ]
    given = {place: _member(getattr(config, place[0]), place[1]) for place in places}
    new = {place: _member(after.get(place[0]), place[1]) for place in places}
    differing = [place for place in places if not _has_all(given[place], new[place])]
    # An effort alone asks for no thinking: what is not set is added beside another form alone.
    if all(given[place] is None for place in differing):
        return changed
    for field, path in differing:
        value = changed.get(field, getattr(config, field))
        rest = _without_member(value, path) if path else None
        found = new[field, path]
        changed[field] = rest if found is None else _with_member(rest, path, found)
    return changed


def _amount(values: Mapping[str, Any]) -> Object:
    """Return the amount of thinking; what is left to the model is none."""
    asked = {name: values[name] for name in (EFFORT, BUDGET) if values.get(name) is not None}
    return {name: value for name, value in asked.items() if value != DYNAMIC}


def _has_all(given: object, new: object) -> bool:
    """Return whether a setting has the members of the fitted one; it may have more."""
    own, wanted = json_object(given), json_object(new)
    if own is None or wanted is None:
        return given == new
    return all(own.get(name) == value for name, value in wanted.items())


def _is_removed(
    field: str, row: Setting, values: Mapping[str, Any], taken: Mapping[str, Any]
) -> bool:
    """Return whether all portable settings that a setting expresses are taken out."""
    names = {name for part in counterparts_of(field, row) for name in part.names} & values.keys()
    return bool(names) and names.isdisjoint(taken)


def _without(given: object, before: object, after: object) -> object:
    """Return what a setting becomes; words that no portable setting expresses stay in a list."""
    if not isinstance(given, tuple) or not isinstance(before, tuple):
        return after
    words, fitted_words = cast("tuple[object, ...]", given), cast("tuple[object, ...]", after or ())
    return (*(word for word in words if word not in before), *fitted_words) or None


def _rival(name: str, values: Mapping[str, Any]) -> str | None:
    """Return the portable setting that the API's own settings hold in place of another."""
    has_budget = name == EFFORT and values.get(BUDGET, DYNAMIC) >= 0
    return name if name in values else BUDGET if has_budget else None


def counterparts_of(field: str, row: Setting) -> tuple[Counterpart, ...]:
    """Return the counterparts of a row, with the names that they leave out."""
    return tuple(
        part if part.names else Counterpart((field,), part.member, part.read, part.write)
        for part in row.counterparts
    )


def _read(config: ModelConfig, source: Side, conversion: Conversion) -> dict[str, Any]:
    """Return the portable settings of a configuration; note settings without a counterpart."""
    values: dict[str, Any] = {}
    for field, row in source.table.items():
        value: object = getattr(config, field)
        if field not in config.model_fields_set or value is None or value in ((), {}):
            continue
        if not row.counterparts:
            if not row.is_form:
                conversion.drop(_with_members(field, value), row.own)
            continue
        for name, found in _found(field, row, value, conversion).items():
            # An earlier row of the table is the more exact one.
            values.setdefault(name, found)
    return values


def _with_members(field: str, value: object) -> str:
    members = json_object(value)
    return field if members is None else f"{field} ({', '.join(members)})"


def _found(field: str, row: Setting, value: object, conversion: Conversion) -> Object:
    """Return the portable settings in one setting; note the members that no row reads."""
    found: Object = {}
    rest: object = value
    for part in counterparts_of(field, row):
        inner = _member(value, part.member)
        if inner is None:
            continue
        rest = _without_member(rest, part.member)
        # Losses while reading have the name of the setting too.
        added = [name for name in part.names if name not in conversion.names]
        place = ".".join((field, *part.member))
        conversion.names |= dict.fromkeys(added, place)
        read = _portable(part, inner, place, conversion)
        for name in added:
            if name not in read:
                del conversion.names[name]
        found |= read
    for name in _leaves(rest) if row.counterparts[0].member else ():
        conversion.drop(f"{field}.{name}", "a member of this API")
    return found


def _portable(part: Counterpart, value: object, place: str, conversion: Conversion) -> Object:
    """Return the portable settings in a member.

    Raises:
        ValueError: the member, or one inside of it, has another type than that of the API.
    """
    try:
        read = {part.names[0]: value} if part.read is None else part.read(value, conversion)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"{place}: {type(value).__name__} is no type of it") from error
    budget = read.get(BUDGET)
    if budget is not None and not isinstance(budget, int | float):
        raise ValueError(f"{place}: a number of tokens was expected, not {type(budget).__name__}")
    return dict(read)


def _member(value: object, path: Path) -> object:
    for name in path:
        value = (json_object(value) or {}).get(name)
    return value


def _without_member(value: object, path: Path) -> object:
    members = json_object(value)
    if not path or members is None:
        return value
    first, *others = path
    inner = _without_member(members.get(first), tuple(others)) if others else None
    kept = {name: item for name, item in members.items() if name != first}
    return {**kept, first: inner} if inner else kept


def _with_member(value: object, path: Path, member: object) -> object:
    """Return an object with a member, unless the member is set."""
    if not path:
        return member if value is None else value
    members = dict(json_object(value) or {})
    return {**members, path[0]: _with_member(members.get(path[0]), path[1:], member)}


def _leaves(value: object) -> tuple[str, ...]:
    return tuple(name for name, item in (json_object(value) or {}).items() if item is not None)


def _write(part: Counterpart, values: Mapping[str, Any], conversion: Conversion) -> object:
    if part.write is not None:
        return part.write(values, conversion)
    return values[next(name for name in part.names if name in values)]


def _written(
    values: Mapping[str, Any],
    names: AbstractSet[str],
    target: Side,
    conversion: Conversion,
    given: Mapping[str, object],
) -> Object:
    """Return the settings of the target that express portable settings; note those without any.

    Args:
        values: all portable settings.
        names: the portable settings to express.
        target: the dialect of the settings.
        conversion: receives the losses.
        given: settings of the target that are set; they stay.
    """
    fields: Object = {}
    arrived: set[str] = set()
    reasons: dict[str, str] = {}
    for field, row in target.table.items():
        parts = [part for part in counterparts_of(field, row) if names & set(part.names)]
        if parts and row.form is Form.NONE and not row.counterparts[0].names:
            reasons[field] = row.reason
            parts = []
        if field in LOWERED and row.form is not Form.COPIED:
            parts = []
        for part in parts:
            before = len(conversion.losses)
            value = _write(part, values, conversion)
            old = fields.get(field, given.get(field))
            new = old if value is None else _with_member(old, part.member, value)
            if value is not None and new == old != value:
                reasons |= dict.fromkeys(part.names, f"{field} is set")
                continue
            if value is not None:
                fields[field] = new
            if value is not None or len(conversion.losses) > before:
                arrived.update(part.names)
    for name in names:
        if name not in arrived and values[name] != PORTABLE[name]:
            conversion.drop(name, reasons.get(name, f"{target.name} has no {name}"))
    return fields


def _valid(target: Side, fields: Object, conversion: Conversion) -> ModelConfig:
    """Return the configuration; note settings whose value the target refuses."""
    given: Object = {"model_id": conversion.model_id, **fields}
    try:
        return target.config_class.model_validate(given)
    except ValidationError as error:
        refused = {str(problem["loc"][0]): str(problem["msg"]) for problem in error.errors()}
    for name, reason in refused.items():
        if name == "model_id":
            break
        conversion.drop(name, f"{target.name} refuses {given.pop(name)!r}: {reason}")
    return target.config_class.model_validate(given)


def _notes(source: str, conversion: Conversion) -> tuple[Object, ...]:
    prefix = "" if source == conversion.target else f"{source} to {conversion.target}: "
    return tuple(
        cast(
            "Object",
            {
                "code": (
                    NoteCode.SETTING_DROPPED if loss.is_dropped else NoteCode.SETTING_CHANGED
                ).value,
                "message": f"{prefix}{loss.name}: {loss.reason}",
            },
        )
        for loss in conversion.losses
    )
