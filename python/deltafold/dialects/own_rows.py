"""Rows of a user for the table of models: a mapping, a TOML file or a JSON file.

In: the rows, or the path of a file that has them.  Out: the rows as a mapping.

Law: a row that cannot be read is an error that names the file, the model and the member.
"""

import json
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import json_object
from deltafold.contract.near_names import did_you_mean

if TYPE_CHECKING:
    from os import PathLike

Rows: TypeAlias = "Mapping[str, Mapping[str, object]] | str | PathLike[str]"
"""Rows by the names of models, or a TOML or JSON file of them."""

LIKE: Final = "like"
"""Member of a row that names a model of the table, whose facts hold where the row has none."""

_WORDS: Final[Mapping[str, Collection[str]]] = {
    "chat_tools": ("always", "unless_effort", "effort_none", "never"),
    "forced_tools": ("always", "unless_thinking", "never"),
    "thinking": ("never", "optional", "default", "always"),
    "thinking_off": ("disabled", "between_tools", "effort_none", "budget_zero"),
    "sampling": ("always", "never", "effort_none", "unless_thinking"),
}


def read_rows(rows: Rows) -> Mapping[str, Any]:
    """Return rows as a mapping.

    Raises:
        MisuseError: the file is no TOML or JSON, or has no rows.
        OSError: the file cannot be read.
    """
    if isinstance(rows, Mapping):
        return rows
    path = Path(rows)
    text = path.read_text("utf-8")
    try:
        found: object = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MisuseError(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise MisuseError(f"{path}: there are no rows: a name of a model has an object of facts")
    return cast("dict[str, Any]", found)


def checked_facts(
    name: str, given: object, fields: Mapping[str, Any], facts_type: type[Any]
) -> dict[str, Any]:
    """Return the facts of a row.

    Args:
        name: the model, for errors.
        given: the row.
        fields: the facts that a row may have, and what holds where it has none.
        facts_type: the class of the facts.

    Raises:
        MisuseError: a fact is unknown, or has a wrong value.
    """
    if not isinstance(given, Mapping):
        raise MisuseError(f"models: {name!r} must have an object of facts, not {given!r}")
    row = cast("Mapping[str, object]", given)
    for fact in row:
        if fact not in fields:
            near = did_you_mean(fact, fields, cutoff=0.5)
            hint = near or f"; there are {', '.join(fields)}"
            raise MisuseError(f"models: {name!r} has no fact {fact!r}{hint}")
    for fact, words in _WORDS.items():
        value = row.get(fact)
        settings = json_object(value)
        for word in (value,) if settings is None else settings.values():
            if word is not None and word not in words:
                known = ", ".join(words)
                raise MisuseError(f"models: {name!r}: {fact} must be of {known}, not {word!r}")
    try:
        TypeAdapter(facts_type).validate_python({"name": name, **fields, **row})
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise MisuseError(f"models: {name!r}: {place}: {problem['msg']}") from error
    return dict(row)
