"""Table of models: what each model takes, by its name.

In: the name of a model in any spelling of `canonical_model`.  Out: its facts, and the older model
of its line whose facts stand for a name that is newer than the table.

Laws: None means that no source establishes the fact, and nothing is concluded from it. A snapshot
has the facts of its alias unless the table lists the snapshot. A name of no known family is
unknown. The table is read when the first name is asked for.
Source: `model_table.json`, which `make bless NAME=models` writes from the packages and the rules
that `tools/model_table.py` names; it states their versions and their month.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import cache, lru_cache
from os import environ
from pathlib import Path
from typing import Any, Final, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.near_names import near_names
from deltafold.dialects.capability import Capability
from deltafold.dialects.model_lines import SIZES, ModelLine, line_of
from deltafold.dialects.model_names import ModelName, canonical_model, without_place
from deltafold.dialects.own_rows import LIKE, Rows, checked_facts, read_rows

_ADDED: Final[dict[str, "ModelFacts"]] = {}
"""Rows of the user, by their canonical names."""
_VARIABLE: Final = "DELTAFOLD_MODELS"
_PATH: Final = Path(__file__).with_name("model_table.json")
_FOR_ANY_MODEL: Final = 4096
_UNSTREAMED: Final = 21_333
"""Most tokens that the anthropic SDK 2 asks for without a stream: those of ten minutes."""
_FINE_TUNE: Final = "ft:"
_NEAR_MODEL: Final = 0.85
"""Names of models resemble each other: a version or a size is another model, no misspelling."""
_LONGEST: Final = 512
"""Most characters of a name that is looked up; no longer one is that of a model."""
_OLD_CLAUDE: Final = re.compile(r"\d|instant")
"""Names of Claude 2 and of Claude Instant, which have a version in another form."""
_BESIDE_THE_NAME: Final = ("context_window", "max_output_tokens", "retired", "successor")
_LISTS: Final = ("endpoints", "thinking_forms", "efforts_when_off")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Facts about a model. None means that no source establishes the fact.

    >>> from deltafold.dialects.model_table import facts_of
    >>> facts = facts_of("us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    >>> facts.max_output_tokens, facts.thinking, facts.forced_tools
    (64000, 'optional', 'unless_thinking')

    A condition of a setting is "always", "never", "effort_none" (only beside the effort `none`,
    written or by default) or "unless_thinking" (not while the model thinks).

    Attributes:
        name: the row's name, in the spelling of `canonical_model`, with `@` before a snapshot.
            Source: the literals of the SDKs; litellm's list.
        kind: "chat", or the other task of the model, such as "embedding". Source: the literal that
            has the name; litellm's `mode`.
        vendor: the vendor of the model itself, not of its host. Source: a rule.
        endpoints: dialects of the vendor's own API that take the model. Source: OpenAI's literals
            and litellm's `supported_endpoints`; rules for other vendors.
        tools: whether it takes function tools. Source: litellm.
        chat_tools: condition under which OpenAI's Chat Completions takes function tools: "always",
            "unless_effort" (no effort or `none`), "effort_none" (`none` must be sent), "never".
            Source: a rule; measured by litellm's authors.
        parallel_tools: whether one answer may have several calls. Source: litellm.
        forced_tools: condition of a required or named tool. Source: litellm, pydantic-ai.
        output_format: whether it can be held to a JSON schema. Source: litellm, pydantic-ai.
        strict_tools: whether a tool can be held to its schema. Source: pydantic-ai.
        efforts: efforts that each dialect takes, the lowest first. A dialect that is missing is not
            known; an empty list means that the model takes no effort. Source: pydantic-ai, litellm.
        default_effort: effort of a request without one. Source: litellm; rules.
        thinking: "never", "optional" (off unless asked for), "default" (on unless switched off) or
            "always". Source: pydantic-ai, litellm.
        thinking_off: what switches thinking off: "disabled" or "between_tools" (the type of the
            member `thinking`), "effort_none" or "budget_zero". Source: pydantic-ai; rules.
        thinking_forms: how thinking is asked for: "adaptive", "budget", "effort", "level". Source:
            pydantic-ai, litellm.
        efforts_when_off: efforts beside thinking that is switched off, where they are fewer.
            Source: pydantic-ai.
        sampling: condition of each setting of `PORTABLE` that some models refuse. Source:
            pydantic-ai, litellm; rules.
        one_sampling: whether `temperature` and `top_p` exclude each other. Source: a rule.
        prefill: whether the last message may be the assistant's. Source: litellm.
        late_system: whether it acts on a system message between the turns. Source: pydantic-ai,
            litellm.
        binds_thinking: whether it refuses its thinking when what was said before has changed.
            Source: pydantic-ai.
        images: whether it reads images. Source: litellm.
        pdf: whether it reads PDF files. Source: litellm.
        audio: whether it reads audio. Source: litellm, pydantic-ai.
        context_window: tokens of input and output together. Source: genai-prices, litellm.
        max_output_tokens: most tokens of one answer. Source: litellm, pydantic-ai.
        max_unstreamed_tokens: most tokens of an answer that is not streamed, where the SDK has a
            number for the model. Source: the anthropic SDK.
        fits_window: whether a request is refused whose input and `max_tokens` exceed the context
            window together. Source: pydantic-ai.
        retired: date on which the vendor shuts it down, "YYYY-MM-DD". Source: the SDKs; litellm.
        successor: name that replaces it. Source: litellm.
    """

    name: str
    kind: str
    vendor: str
    endpoints: tuple[str, ...] | None = None
    tools: bool | None = None
    chat_tools: str | None = None
    parallel_tools: bool | None = None
    forced_tools: str | None = None
    output_format: bool | None = None
    strict_tools: bool | None = None
    efforts: Mapping[str, tuple[str, ...]] | None = None
    default_effort: str | None = None
    thinking: str | None = None
    thinking_off: str | None = None
    thinking_forms: tuple[str, ...] | None = None
    efforts_when_off: tuple[str, ...] | None = None
    sampling: Mapping[str, str] | None = None
    one_sampling: bool | None = None
    prefill: bool | None = None
    late_system: bool | None = None
    binds_thinking: bool | None = None
    images: bool | None = None
    pdf: bool | None = None
    audio: bool | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    max_unstreamed_tokens: int | None = None
    fits_window: bool | None = None
    retired: str | None = None
    successor: str | None = None

    @property
    def line(self) -> ModelLine | None:
        """The family, the size and the version in the name, None if the name has no line."""
        return line_of(self.name.partition("@")[0])

    def has(self, capability: Capability) -> bool | None:
        """Return whether the model has a capability, None if no source says.

        Caching is one of the protocol, whatever the model.
        """
        return {
            Capability.TOOLS: self.tools,
            Capability.PARALLEL_TOOL_CALLS: self.parallel_tools,
            Capability.THINKING: None if self.thinking is None else self.thinking != "never",
            Capability.IMAGES: self.images,
            Capability.CACHING: True,
        }[capability]

    @property
    def is_established(self) -> bool:
        """True for a chat model that a source describes.

        The literals of an SDK have a new name before other sources describe the model.
        """
        return self.kind == "chat" and self.thinking is not None


@dataclass(frozen=True, slots=True)
class KnownModel:
    """The facts that hold for a model.

    >>> KnownModel(facts_of("gpt-5-mini"), "gpt-5-mini").facts.thinking
    'always'

    Attributes:
        facts: the row of the table.
        name: the name of the model in notes, with the row of another model that stands for it.
        is_stand_in: whether the row is that of another model.
    """

    facts: ModelFacts
    name: str
    is_stand_in: bool = False


def add_models(rows: Rows) -> None:
    """Add rows to the table of models, for this process; they go before those of the table.

    The environment variable `DELTAFOLD_MODELS` names a file of such rows for a program that is not
    changed. A file of the whole table, as a newer deltafold has it (`model_table.json`), adds all
    of its rows.

    >>> add_models({"our-model": {"like": "gpt-5.6-terra", "max_output_tokens": 32_000}})
    >>> deltafold.load_model("openai/our-model").model_info().max_output_tokens
    32000

    Args:
        rows: the facts of each model, by the attributes of `ModelFacts`; or a TOML or JSON file.
            `like` names a model whose facts hold where the row has none. Without it a row has
            `vendor`, and its `kind` is "chat".

    Raises:
        MisuseError: a row is wrong; the error names the model and the fact.
        OSError: the file cannot be read.
    """
    given = read_rows(rows)
    if {"models", "rows"} <= given.keys():
        found = {key: _decoded(given, key) for key in given["models"]}
    else:
        found = dict(_own_row(name, row) for name, row in given.items())
    _ADDED.update(found)
    _forget()


def remove_added_models() -> None:
    """Remove the rows that were added to the table, for tests."""
    _ADDED.clear()
    _forget()


def _forget() -> None:
    for cached in (_known, _lines):
        cached.cache_clear()


def _own_row(name: str, given: object) -> tuple[str, ModelFacts]:
    row: dict[str, Any] = dict(cast("Mapping[str, Any]", given)) if isinstance(given, dict) else {}
    like = row.pop(LIKE, None)
    base = _found(like) if isinstance(like, str) else None
    if like is not None and base is None:
        raise MisuseError(f"models: {name!r}: the table has no model {like!r}")
    place = _name(name)
    key = f"{place.model}@{place.snapshot}" if place.snapshot else place.model
    empty = ModelFacts(name=key, kind="chat", vendor="")
    fields = {fact.name: getattr(base or empty, fact.name) for fact in dataclass_fields(ModelFacts)}
    del fields["name"]
    facts = checked_facts(name, row if isinstance(given, dict) else given, fields, ModelFacts)
    if base is None and not facts.get("vendor"):
        raise MisuseError(f"models: {name!r} has neither like nor vendor")
    return key, ModelFacts(name=key, **{**fields, **_in_tuples(facts)})


def facts_of(model_id: str) -> ModelFacts | None:
    """Return the facts of a model, None if the table does not have its name.

    A fine-tune of OpenAI has the facts of the model that it was made of.

    >>> facts_of("gpt-5.2").sampling["temperature"]
    'effort_none'
    """
    _read_environment()
    return _found(model_id)


def _found(model_id: str) -> ModelFacts | None:
    name = _name(model_id)
    keys = (f"{name.model}@{name.snapshot}", name.model)
    for key in keys:
        if key in _ADDED:
            return _ADDED[key]
    models = _table()["models"]
    return next((_facts(key) for key in keys if key in models), None)


def every_model() -> Iterator[ModelFacts]:
    """Yield the facts of each model and of each listed snapshot, in the order of their names.

    >>> sum(facts.kind == "chat" for facts in every_model()) > 100
    True
    """
    _read_environment()
    yield from _ADDED.values()
    yield from (_facts(key) for key in _table()["models"] if key not in _ADDED)


def near_models(model_id: str, vendor: str | None = None) -> list[str]:
    """Return the chat models of the table whose names are near a misspelled one.

    >>> near_models("gpt-5-mni")
    ['gpt-5-mini']

    Args:
        model_id: a name that the table does not have.
        vendor: the vendor of the model itself; None is any.
    """
    names = (
        facts.name
        for facts in every_model()
        if facts.kind == "chat" and vendor in {None, facts.vendor} and "@" not in facts.name
    )
    return near_names(model_id, names, cutoff=_NEAR_MODEL) if len(model_id) <= _LONGEST else []


def newest_older(model_id: str) -> str | None:
    """Return the row of the newest older model of a name's line, None if there is none.

    The preview of a model that the table has is taken as this model. A new size of a family whose
    sizes have names is taken as the newest model of the family.

    >>> newest_older("gpt-6.4-sol"), newest_older("claude-opus-6")
    ('gpt-6.1-sol', 'claude-opus-5-5')
    """
    name = _name(model_id).model
    asked = line_of(name)
    lines = _lines()
    if asked is None:
        # The law of the Claude protocols: a name without a version is that of a newer model.
        is_newer = name.startswith("claude-") and _OLD_CLAUDE.search(name) is None
        return _newest(lines["claude"]) if is_newer else None
    family = lines.get(asked.family, {})
    line = {row: at for row, at in family.items() if at.size == asked.size}
    if line:
        is_older = {row: at for row, at in line.items() if at.version <= asked.version}
        return _newest({row: at for row, at in is_older.items() if row != name})
    newest = _newest(family) if asked.family in SIZES and asked.is_for_any_task else None
    # A size that the table does not have is a new one only if its version is not an old one.
    return newest if newest is not None and family[newest].version <= asked.version else None


def stand_in(model_id: str) -> ModelFacts | None:
    """Return the facts that stand for a name that is newer than the table, None if none do.

    They are those of `newest_older`, with the smallest numbers of its line in the same generation:
    the oldest models of a line have limits that no later one has. Efforts that are not known of it
    are those of the newest member of which they are.

    >>> stand_in("claude-haiku-9").name, stand_in("claude-haiku-9").max_output_tokens
    ('claude-haiku-5-5', 128000)
    """
    row = newest_older(model_id)
    facts = None if row is None else facts_of(row)
    place = None if facts is None else facts.line
    asked = line_of(_name(model_id).model)
    if facts is None or place is None or (asked is not None and asked.version == place.version):
        return facts  # a preview has the numbers of its model
    line = [
        cast("ModelFacts", _found(one))
        for one, at in sorted(_lines()[place.family].items(), key=lambda row: row[1].order)
        if (at.size, at.version[0]) == (place.size, place.version[0])
    ]
    described = [one for one in line if one.efforts is not None]
    return replace(
        facts,
        efforts=facts.efforts or (described[-1].efforts if described else None),
        context_window=_smallest(one.context_window for one in line),
        max_output_tokens=_smallest(one.max_output_tokens for one in line),
    )


def find_model(name: str) -> KnownModel | None:
    """Return the facts that hold for a name, or those that stand for it; None if none do.

    >>> find_model("gpt-6.4-sol").name
    'gpt-6.4-sol (taken as gpt-6.1-sol)'
    """
    return _known(name) if len(name) <= _LONGEST else None


@lru_cache(maxsize=1024)
def _known(name: str) -> KnownModel | None:
    facts = facts_of(name)
    if facts is not None and (facts.is_established or facts.kind != "chat"):
        return KnownModel(facts, name)
    older = stand_in(name)
    if older is not None:
        return KnownModel(older, f"{name} (taken as {older.name})", is_stand_in=True)
    return None if facts is None else KnownModel(facts, name)


def default_max_tokens(known: KnownModel | None, *, stream: bool) -> int:
    """Return the limit of an answer where the protocol requires one and the caller set none.

    It is the model's own limit, and for an answer that is not streamed what the anthropic SDK lets
    through. A model that refuses a request whose input and limit exceed its window together, and a
    model that is not known, gets a limit that each model of the protocol takes.
    """
    most = None if known is None else known.facts.max_output_tokens
    if known is None or most is None or known.facts.fits_window:
        return _FOR_ANY_MODEL
    return most if stream else min(most, known.facts.max_unstreamed_tokens or _UNSTREAMED)


def _smallest(numbers: Iterable[int | None]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def table_sources() -> Mapping[str, str]:
    """Return the month of the table, as `month`, and the versions of its sources."""
    return cast("Mapping[str, str]", _table()["sources"])


def _newest(members: Mapping[str, ModelLine]) -> str | None:
    return max(members, key=lambda row: members[row].order, default=None)


def _name(model_id: str) -> ModelName:
    name = without_place(model_id)
    if name.startswith(_FINE_TUNE):
        return canonical_model(name.removeprefix(_FINE_TUNE).partition(":")[0])
    return canonical_model(model_id)


@cache
def _table() -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", json.loads(_PATH.read_bytes()))


@cache
def _read_environment() -> None:
    path = environ.get(_VARIABLE, "").strip()
    if path:
        add_models(path)


@lru_cache(maxsize=1024)
def _facts(key: str) -> ModelFacts:
    return _decoded(_table(), key)


def _in_tuples(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts as the class has them: JSON and TOML have lists."""
    found = {name: tuple(facts[name]) if name in _LISTS else facts[name] for name in facts}
    efforts = cast("Mapping[str, Iterable[str]] | None", found.get("efforts"))
    if efforts is not None:
        found["efforts"] = {api: tuple(words) for api, words in efforts.items()}
    return found


def _decoded(table: Mapping[str, Any], key: str) -> ModelFacts:
    row, *own = table["models"][key]
    facts = _in_tuples({**table["rows"][row], "efforts": None})
    facts["efforts"] = table["rows"][row].get("efforts")
    if facts["efforts"] is not None:
        efforts = table["efforts"][facts["efforts"]]
        facts["efforts"] = {api: tuple(words) for api, words in efforts.items()}
    if "sampling" in facts:
        facts["sampling"] = table["sampling"][facts["sampling"]]
    beside = zip(_BESIDE_THE_NAME, own, strict=False)
    facts |= {name: value for name, value in beside if value is not None}
    return ModelFacts(name=key, **facts)


@cache
def _lines() -> Mapping[str, Mapping[str, ModelLine]]:
    """Return the established chat models of each family, by their names."""
    families: dict[str, dict[str, ModelLine]] = {}
    table = _table()
    described = [
        key
        for key, (row, *_) in table["models"].items()
        if table["rows"][row]["kind"] == "chat" and "thinking" in table["rows"][row]
    ]
    described += [key for key, facts in _ADDED.items() if facts.is_established]
    for key in described:
        place = None if "@" in key else line_of(key)
        if place is not None and place.is_for_any_task:
            families.setdefault(place.family, {})[key] = place
    return families
