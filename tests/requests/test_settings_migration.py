"""Settings of each dialect as settings of each other one.

In: the body members that settings_cells.py states for each dialect.  Out: a comparison of the body
that the migrated settings render with these members, judged by the official clients' types too.

Law: every setting arrives, or a note names it; none is lost in silence.
"""

import gzip
import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, cast

import pytest

import sdk_types
from any_name import AnyName
from corpus import CORPUS, ROOT, needs_corpus
from deltafold import (
    AnthropicConfig,
    GeminiConfig,
    Message,
    Migrated,
    ModelConfig,
    OpenAIChatConfig,
    OpenAIResponsesConfig,
    OutputSchema,
    ParsedRequest,
    Rendered,
    ToolSpec,
    migrate_config,
    parse_request,
)
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import json_object
from deltafold.dialects import DIALECTS, LOCAL, Dialect, dialect_of
from deltafold.dialects.migration import counterparts_of
from deltafold.dialects.portable import PORTABLE
from deltafold.dialects.reasoning import claude_version
from deltafold.dialects.settings_table import Conversion, Counterpart
from settings_cells import BACK, CELLS, MODELS, NOTED, SCHEMA, converted, tables
from settings_limits import CHAT, CLAUDE, LIMITS, Limit
from settings_values import beside, value_of

TOOLS: Final = (ToolSpec(name="weather"), ToolSpec(name="time"))
PAIRS: Final = [(source, target) for source in MODELS for target in MODELS if source != target]
SOURCES: Final = [
    pytest.param(row, source, id=f"{row} of {source}")
    for row, cells in CELLS.items()
    for source, members in cells.items()
    if members is not None and (row, source) not in BACK
]


def merged(body: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    """Return a body with members, objects inside of objects too."""
    found = dict(body)
    for name, value in members.items():
        inner = found.get(name)
        if isinstance(value, dict) and isinstance(inner, dict):
            found[name] = merged(cast("dict[str, Any]", inner), cast("dict[str, Any]", value))
        else:
            found[name] = value
    return found


def has(body: Any, members: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether a body has members; each list is compared whole."""
    if isinstance(members, dict):
        wanted = cast("dict[str, Any]", members)
        return isinstance(body, dict) and all(
            name in body and has(body[name], value) for name, value in wanted.items()
        )
    if isinstance(members, list):
        items = cast("Sequence[Any]", members)
        return len(body) == len(items) and all(map(has, body, items))
    return bool(body == members)


def bare(dialect: str) -> dict[str, Any]:
    """Return a body without settings; room for thinking where the API requires a limit."""
    row = dialect_of(dialect)
    limit = {"max_tokens": 4000} if dialect == "anthropic-messages" else {}
    config = row.config_class.model_validate({"model_id": MODELS[dialect], **limit})
    body = row.render([Message.user("Hello")], TOOLS, config).body
    return cast("dict[str, Any]", json.loads(json.dumps(body)))


def read(dialect: AnyName, members: dict[str, Any]) -> ParsedRequest:
    return parse_request(merged(bare(dialect), members), dialect, model_id=MODELS[dialect])


def moved(parsed: ParsedRequest, target: AnyName) -> tuple[Rendered, list[str]]:
    """Return a request in another dialect, with the messages of all notes."""
    migrated = migrate_config(parsed, target, model_id=MODELS[target])
    rendered = dialect_of(target).render(parsed.messages, parsed.tools, migrated.config)
    sdk_types.check(target, rendered.body)
    return rendered, [str(note["message"]) for note in (*migrated.notes, *rendered.notes)]


def expected(row: str, target: str) -> dict[str, Any] | None:
    return CELLS[row][target] or converted(row, target)


@pytest.mark.parametrize(("row", "source"), SOURCES)
def test_a_setting_arrives_in_every_dialect_or_is_noted(row: str, source: str) -> None:
    members = CELLS[row][source]
    assert members is not None
    sdk_types.check(source, merged(bare(source), members))
    parsed = read(source, members)
    for target in MODELS:
        rendered, notes = moved(parsed, target)
        wanted = members if target == source else expected(row, target)
        if wanted is None:
            assert notes, target
            continue
        assert has(rendered.body, wanted), (target, rendered.body)
        is_noted = {(row, None, target), (row, source, target)} & NOTED and target != source
        assert bool(notes) is bool(is_noted), (target, notes)


@pytest.mark.parametrize(("row", "source"), SOURCES)
def test_a_setting_returns_from_every_dialect_that_has_it(row: str, source: str) -> None:
    members = CELLS[row][source]
    assert members is not None
    parsed = read(source, members)
    for target, there in CELLS[row].items():
        if there is None or (row, target) in BACK:
            continue
        rendered, _ = moved(parsed, target)
        again = parse_request(rendered.body, target, model_id=MODELS[target])
        back, _ = moved(again, source)
        assert has(back.body, members), (target, back.body)


WALKED: Final = [
    pytest.param(row, name, id=f"{row.name}: {name}")
    for row in DIALECTS.values()
    for name in row.settings
    if name != "model_id"
]


@pytest.mark.parametrize(("row", "name"), WALKED)
def test_no_setting_of_a_table_is_lost_in_silence(row: Dialect, name: str) -> None:
    setting = row.settings[name]
    fields = {"model_id": "m", **beside(row, name)}
    value = value_of(row, name)
    without = row.config_class.model_validate(fields)
    config = row.config_class.model_validate({**fields, name: value})
    for target in MODELS:
        if target == row.name:
            continue
        there = migrate_config(config, target, model_id=MODELS[target])
        before = migrate_config(without, target, model_id=MODELS[target])
        notes = [note for note in there.notes if note not in before.notes]
        arrives = there.config != before.config
        assert arrives or notes or setting.is_form or value == PORTABLE.get(name), target
        assert not (setting.is_form and (arrives or notes)), target
        assert all(name in str(note["message"]) for note in notes), (target, notes)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.members} to {limit.target}")
def test_a_setting_that_does_not_fit_is_noted(limit: Limit) -> None:
    parsed = read(limit.source, limit.members)
    model_id = limit.model_id or MODELS[limit.target]
    migrated = migrate_config(parsed, limit.target, model_id=model_id)
    rendered = dialect_of(limit.target).render(parsed.messages, parsed.tools, migrated.config)
    sdk_types.check(limit.target, rendered.body)
    notes = [str(note["message"]) for note in (*migrated.notes, *rendered.notes)]
    assert has(rendered.body, limit.sent), rendered.body
    assert not set(limit.absent) & rendered.body.keys(), rendered.body
    assert any(limit.says in note for note in notes) if limit.says else not notes, notes


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("claude-3-7-sonnet-20250219", (3, 7)),
        ("claude-3-opus-20240229", (3, 0)),
        ("claude-sonnet-4-20250514", (4, 0)),
        ("claude-sonnet-4-5-20250929", (4, 5)),
        ("us.anthropic.claude-opus-4-6-v1", (4, 6)),
        ("anthropic/claude-4.6-opus", (4, 6)),
        ("anthropic/claude-opus-4.8", (4, 8)),
        ("claude-opus-5", (5, 0)),
        ("claude-fable-5-1", (5, 1)),
        ("claude-latest", None),
        ("gpt-5", None),
    ],
)
def test_the_name_of_a_claude_model_has_its_version(
    name: str, version: tuple[int, int] | None
) -> None:
    assert claude_version(name) == version


def test_the_same_dialect_keeps_every_setting() -> None:
    parsed = read(CHAT, {"made_up": 1, "seed": 3})
    same = migrate_config(parsed, CHAT)
    assert same == Migrated(OpenAIChatConfig.model_validate(parsed.config))
    assert same.config.extra_body == {"made_up": 1}
    assert migrate_config(parsed, CHAT, model_id="other").config.model_id == "other"


def test_a_configuration_is_a_source_too() -> None:
    given = OpenAIChatConfig(model_id="gpt-5", reasoning_effort="low", max_tokens=9000)
    config, notes = migrate_config(given, "gemini", model_id="gemini-3-pro-preview")
    assert isinstance(config, GeminiConfig)
    assert (config.max_tokens, config.thinking, notes) == (9000, {"thinkingLevel": "low"}, ())


def test_a_portable_setting_of_a_configuration_migrates() -> None:
    config = AnthropicConfig(
        model_id="claude-opus-4-6",
        reasoning_effort="low",
        output_schema=OutputSchema(json_schema=SCHEMA),
    )
    there = migrate_config(config, CHAT, model_id="gpt-5").config
    assert isinstance(there, OpenAIChatConfig)
    assert there.reasoning_effort == "low"
    assert has(there.response_format, {"json_schema": {"schema": SCHEMA}})


def test_a_migration_needs_a_model_and_a_dialect() -> None:
    parsed = read(CHAT, {})
    with pytest.raises(MisuseError, match="needs model_id=, a model of the target"):
        migrate_config(parsed, CLAUDE)
    with pytest.raises(MisuseError, match="no request is rendered in 'nothing'"):
        migrate_config(parsed, cast("Any", "nothing"), model_id="m")
    with pytest.raises(MisuseError, match="ModelConfig is not the configuration of a dialect"):
        migrate_config(ModelConfig(model_id="m"), CLAUDE, model_id="m")


@pytest.mark.parametrize("dialect", MODELS)
def test_a_portable_setting_is_sent_in_the_member_of_the_api(dialect: str) -> None:
    row = dialect_of(dialect)
    settings = {"reasoning_effort": "high", "output_schema": SCHEMA}
    config = row.config_class.model_validate({"model_id": MODELS[dialect], **settings})
    rendered = row.render([Message.user("Hello")], TOOLS, config)
    sdk_types.check(dialect, rendered.body)
    for name in settings:
        assert has(rendered.body, CELLS[name][dialect])


OWN: Final = [
    (
        AnthropicConfig(model_id="claude-opus-4-6", output_config={"effort": "low"}),
        "output_config.effort",
    ),
    (
        AnthropicConfig(
            model_id="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 1024}
        ),
        "thinking",
    ),
    (OpenAIResponsesConfig(model_id="gpt-5", reasoning={"effort": "low"}), "reasoning.effort"),
    (GeminiConfig(model_id="gemini-3-pro-preview", thinking={"thinkingLevel": "low"}), "thinking"),
]


@pytest.mark.parametrize(("config", "field"), OWN, ids=[field for _, field in OWN])
def test_a_setting_of_the_api_takes_precedence_over_a_portable_one(
    config: ModelConfig, field: str
) -> None:
    row = next(row for row in DIALECTS.values() if row.config_class is type(config))
    both = config.model_copy(update={"reasoning_effort": "high"})
    without = row.render([Message.user("Hello")], [], config)
    rendered = row.render([Message.user("Hello")], [], both)
    assert rendered.body == without.body
    assert [note["message"] for note in rendered.notes] == [f"reasoning_effort: {field} is set"]


def test_an_object_of_the_api_keeps_its_other_members() -> None:
    config = AnthropicConfig(
        model_id="claude-opus-4-8",
        output_config={"task_budget": {"total": 20000, "type": "tokens"}},
        thinking={"type": "adaptive"},
        reasoning_effort="max",
    )
    body = dialect_of(CLAUDE).render([Message.user("Hello")], [], config).body
    assert body["output_config"] == {
        "task_budget": {"total": 20000, "type": "tokens"},
        "effort": "max",
    }
    assert body["thinking"] == {"type": "adaptive"}


def test_a_local_model_notes_portable_settings() -> None:
    config = LOCAL.config_class.model_validate({"model_id": "m", "reasoning_effort": "high"})
    notes = LOCAL.render([Message.user("Hello")], [], config).notes
    assert notes == (
        {
            "code": "setting_dropped",
            "message": "reasoning_effort: chat templates have no effort",
        },
    )


@cache
def recorded(dialect: AnyName) -> list[dict[str, Any]]:
    """Return the different settings of all accepted requests; a migration reads nothing else."""
    with gzip.open(CORPUS / "requests.jsonl.gz") as lines:
        rows = [json.loads(line) for line in lines]
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["dialect"] == dialect and row["status"] // 100 == 2:
            config = parse_request(row["body"], dialect, model_id="m").config
            config = {**config, "model_id": "m"}
            found.setdefault(json.dumps(config), config)
    return list(found.values())


IMPLIED_BY: Final = {
    "logprobs": ("top_logprobs",),
    "thinking": ("reasoning_effort",),
    "response_mime_type": ("response_schema", "generation_config"),
}
"""Settings that another setting of the same body implies: a number of alternatives asks for log
probabilities, an effort for thinking, and a schema for JSON."""


@needs_corpus
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_recorded_settings_arrive_or_are_noted(source: str, target: AnyName) -> None:
    """Take each different setting out of a recorded request: the settings or the notes change."""
    there, row = dialect_of(target), dialect_of(source)
    judged: set[str] = set()
    taken: set[str] = set()
    for fields in recorded(source):
        config = row.config_class.model_validate(fields)
        migrated = migrate_config(config, target, model_id=MODELS[target])
        body = there.render([Message.user("Hello")], TOOLS, migrated.config).body
        shown = json.dumps(body)
        if shown not in judged:
            sdk_types.check(target, body)
        judged.add(shown)
        for name in fields.keys() - {"model_id"}:
            key = json.dumps([name, fields[name]])
            if key in taken or says_nothing(row, name, config):
                continue
            taken.add(key)
            rest = {field: value for field, value in fields.items() if field != name}
            without = row.config_class.model_validate(rest)
            other = migrate_config(without, target, model_id=MODELS[target])
            assert other != migrated, (name, fields[name])


def says_nothing(row: Dialect, name: str, config: ModelConfig) -> bool:
    """Return whether other dialects lose nothing without a setting."""
    setting = row.settings[name]
    if setting.is_form:
        return True
    if any(getattr(config, other, None) is not None for other in IMPLIED_BY.get(name, ())):
        return True
    parts = counterparts_of(name, setting)
    return bool(parts) and is_neutral(getattr(config, name), parts)


def is_neutral(value: object, parts: Sequence[Counterpart]) -> bool:
    """Return whether a setting asks for what every API does without it."""
    conversion = Conversion("", "")
    for part in parts:
        inner = value
        for member in part.member:
            inner = (json_object(inner) or {}).get(member)
        if inner is None:
            continue
        read = {part.names[0]: inner} if part.read is None else part.read(inner, conversion)
        if any(found != PORTABLE[name] for name, found in read.items()):
            return False
    return not conversion.losses


def test_the_tables_of_the_documentation_are_those_of_the_cells() -> None:
    text = (ROOT / "docs" / "requests.md").read_text(encoding="utf-8")
    section = text.partition("## Settings into another dialect")[2].partition("\n## ")[0]
    assert tables() in section
