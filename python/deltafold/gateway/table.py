"""Table of models: the names that clients write, and the Models behind them.

In: names with wildcards, and names or settings of `load_model`.  Out: Models, one for each entry,
and the name of the model to call.

Laws: an exact name goes before a pattern, and patterns are tried in their order. A name that is not
in the table is refused with the names that are.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

from pydantic import ValidationError

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import ErrorCode
from deltafold.contract.names import RequestProtocol
from deltafold.contract.validation_text import validation_text
from deltafold.dialects import DIALECTS
from deltafold.errors.model_error import ModelError
from deltafold.gateway.file_settings import FileSettings
from deltafold.gateway.refusals import refusal
from deltafold.models.base import Model
from deltafold.models.loader import load_model
from deltafold.models.vendors import VENDORS

OneEntry: TypeAlias = "Model[Any] | str | Mapping[str, object]"
"""A Model, its name, or `{model, **settings}` as `load_model` takes them."""

Entry: TypeAlias = "OneEntry | Sequence[OneEntry]"
"""One entry, or several: each is called when the one before it failed before its first byte."""

_FIXED: Final = tuple(f"{name}/" for name in DIALECTS)
"""Beginnings of names that name a protocol."""


class Upstream(NamedTuple):
    """A Model, the name of the model to call, which a pattern completes, and what to call next.

    `other` is the same model in another protocol of its vendor, None where there is one protocol:
    the request decides (`spoken.py`). `moves` decides whether a failure moves a request on; None
    is the rule of the gateway.
    """

    model: Model[Any]
    model_id: str
    fallback: "Upstream | None" = None
    other: Model[Any] | None = None
    moves: Callable[[ModelError], bool] | None = None

    def named(self, rest: str) -> "Upstream":
        """Return it with the rest of a client's name in the place of `*`."""
        fallback = None if self.fallback is None else self.fallback.named(rest)
        name = self.model_id.replace("*", rest)
        return self._replace(model_id=name, fallback=fallback)


class ModelTable:
    """Models by the names of clients.

    >>> table = ModelTable(
    ...     {"fast": "openai/gpt-5.6-terra", "claude-*": "anthropic/claude-*"}
    ... )
    >>> table.find("claude-sonnet-5-5").model_id
    'claude-sonnet-5-5'

    Args:
        entries: Models, names of `load_model`, or mappings with `model` and settings. A list of
            them is called in its order, the next one when one failed before its first byte. A name
            may have one `*`, which stands for the rest of the client's name in the other name too.
        settings: settings of every model that has none of that name, such as `transport`.

    Raises:
        MisuseError: an entry is wrong; the error names it.
    """

    def __init__(self, entries: Mapping[str, Entry], **settings: object) -> None:
        if not entries:
            raise MisuseError("models: the table is empty")
        self._rows: dict[str, Upstream] = {}
        for name, entry in entries.items():
            if name.count("*") > 1:
                raise MisuseError(f"models: {name!r} has more than one *")
            self._rows[name] = _upstreams(name, entry, settings)

    @property
    def names(self) -> list[str]:
        """The names of the table, patterns included."""
        return list(self._rows)

    @property
    def dialects(self) -> set[RequestProtocol]:
        """The dialects in which the Models are called."""
        return {model.dialect for model in self._models()}

    def find(self, name: str) -> Upstream:
        """Return the upstream of a client's name.

        Raises:
            ModelError: no entry has the name; its status is 404.
        """
        row = self._rows.get(name)
        if row is not None:
            return row
        for pattern, row in self._rows.items():
            before, star, after = pattern.partition("*")
            is_long = len(name) >= len(before) + len(after)
            if star and is_long and name.startswith(before) and name.endswith(after):
                rest = name[len(before) : len(name) - len(after)]
                return row.named(rest)
        known = ", ".join(self._rows)
        raise refusal(
            f"the model {name!r} does not exist; there are {known}", ErrorCode.NOT_FOUND, 404
        )

    async def aclose(self) -> None:
        """Close the clients of the Models."""
        for model in self._models():
            await model.aclose()

    def _models(self) -> Iterator[Model[Any]]:
        for row in self._rows.values():
            upstream: Upstream | None = row
            while upstream is not None:
                yield upstream.model
                if upstream.other is not None:
                    yield upstream.other
                upstream = upstream.fallback


def _upstreams(name: str, entry: Entry, settings: Mapping[str, object]) -> Upstream:
    entries = [entry] if isinstance(entry, str | Mapping | Model) else entry
    found: Upstream | None = None
    for one in reversed(entries):
        if isinstance(one, Model):
            found = _of_chain(one, found)
        else:
            found = _upstream(name, one, settings)._replace(fallback=found)
    if found is None:
        raise MisuseError(f"models: {name!r} names no model")
    return found


def _of_chain(model: Model[Any], following: Upstream | None) -> Upstream:
    """Return the upstreams of a Model and of those that it falls back to."""
    *before, last = model.chain
    found = Upstream(last, last.model_id, following)
    for one in reversed(before):
        found = Upstream(one, one.model_id, found, moves=model.moves_on)
    return found


def _upstream(
    name: str, entry: str | Mapping[str, object], settings: Mapping[str, object]
) -> Upstream:
    members: dict[str, Any] = {"model": entry} if isinstance(entry, str) else dict(entry)
    target = members.pop("model", None)
    if not isinstance(target, str):
        raise MisuseError(f"models: {name!r} names no model")
    try:
        given: dict[str, Any] = {**settings, **members}
        model = load_model(target, **given)
    except (ValueError, MisuseError) as error:
        wrong = validation_text(error) if isinstance(error, ValidationError) else error
        raise MisuseError(f"models: {name!r}: {wrong}") from error
    return Upstream(model, model.model_id, other=_in_other_protocol(model, target, given))


def _in_other_protocol(
    model: Model[Any], target: str, given: Mapping[str, Any]
) -> Model[Any] | None:
    """Return a model in the second protocol of its vendor, None where its protocol is fixed."""
    vendor = VENDORS[model.provider_id]
    if vendor.thinking_dialect is None or "specification" in given or target.startswith(_FIXED):
        return None
    is_usual = model.dialect == vendor.dialect
    other = vendor.thinking_dialect if is_usual else vendor.dialect
    try:
        return load_model(target, specification=other, **given)
    except ValueError:  # a setting that only one of the two has
        return None


def read_table(path: str | Path, **settings: object) -> ModelTable:
    r"""Read the table of a TOML file.

    >>> from pathlib import Path
    >>> _ = Path("gateway.toml").write_text('[models]\nfast = "openai/gpt-5.6-terra"')
    >>> read_table("gateway.toml").names
    ['fast']

        [models]
        "gpt-5" = "openai/gpt-5"
        "claude-*" = ["anthropic/claude-*", "openrouter/anthropic/claude-*"]

        [models.local]
        model = "vllm/qwen3-coder"
        base_url = "http://127.0.0.1:8000/v1"

    Args:
        path: the file.
        settings: settings of every model that has none of that name.

    Raises:
        MisuseError: the file is not TOML, or an entry is wrong.
        OSError: the file cannot be read.
    """
    try:
        given = tomllib.loads(Path(path).read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise MisuseError(f"{path}: {error}") from error
    models = given.pop("models", None)
    if not isinstance(models, dict):
        raise MisuseError(f"{path}: there is no table [models]")
    if given:
        raise MisuseError(f"{path}: unknown: {', '.join(given)}; there is the table [models]")
    entries = {
        name: _given_entry(name, entry) for name, entry in cast("dict[str, object]", models).items()
    }
    return ModelTable(entries, **settings)


def _given_entry(name: str, entry: object) -> Entry:
    """Return an entry of a file with its settings in their types.

    Raises:
        MisuseError: it has another type, or one of its settings has.
    """
    if isinstance(entry, str):
        return entry
    rows = cast("list[object]", entry) if isinstance(entry, list) else [entry]
    found: list[str | Mapping[str, object]] = []
    for row in rows:
        if isinstance(row, str):
            found.append(row)
        elif isinstance(row, dict):
            found.append(_given_settings(name, cast("dict[str, object]", row)))
        else:
            raise MisuseError(
                f"models: {name!r}: it must be a name, a table or a list, not {entry!r}"
            )
    return found


def _given_settings(name: str, row: dict[str, object]) -> dict[str, object]:
    try:
        given = FileSettings.model_validate(row)
    except ValidationError as error:
        raise MisuseError(f"models: {name!r}: {validation_text(error)}") from error
    return row | {setting: getattr(given, setting) for setting in given.model_fields_set}
