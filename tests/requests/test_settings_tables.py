"""Settings of each dialect, walked in both directions: to a member of the body and back.

Law: the table of a dialect covers each field of its configuration class and nothing else. A setting
that is copied or converted returns with its value; a setting without a member changes no member.
"""

import json
from typing import Any, Final

import pytest

from conversations import WEATHER
from deltafold import Message, parse_request
from deltafold.contract.kinds import json_object
from deltafold.dialects import DIALECTS, LOCAL, Dialect
from deltafold.dialects.migration import counterparts_of
from deltafold.dialects.portable import PORTABLE
from deltafold.dialects.rendered import Rendered
from deltafold.dialects.settings_table import Form, SettingTable
from settings_values import beside, value_of

ROWS: Final = (*DIALECTS.values(), LOCAL)
PARSED: Final = tuple(DIALECTS.values())


def render(row: Dialect, **settings: object) -> Rendered:
    config = row.config_class.model_validate({"model_id": "the-model", **settings})
    messages = [Message.system("Be brief."), Message.user("Hello")]
    return row.render(messages, [WEATHER], config)


def found(body: object, path: tuple[str, ...]) -> object:
    for name in path:
        body = (json_object(body) or {}).get(name)
    return body


def plain(value: object) -> object:
    """Return a value with lists in place of tuples."""
    return json.loads(json.dumps(value))


CASES = [
    pytest.param(row, name, id=f"{row.folder or row.name}: {name}")
    for row in ROWS
    for name in row.settings
    if name != "model_id"
]
RETURNING = [
    pytest.param(row, name, id=f"{row.name}: {name}")
    for row in PARSED
    for name, setting in row.settings.items()
    if setting.form in {Form.COPIED, Form.CONVERTED} and name != "model_id"
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.folder or row.name)
def test_a_table_covers_every_setting_and_no_other(row: Dialect) -> None:
    assert row.settings.keys() == row.config_class.model_fields.keys()
    copied = [setting.path for setting in row.settings.values() if setting.form is Form.COPIED]
    assert len(copied) == len(set(copied))
    for name, setting in row.settings.items():
        has_member = setting.form is not Form.NONE
        assert bool(setting.paths) is has_member, name
        assert bool(setting.reason) is (setting.form in {Form.NONE, Form.WRITTEN}), name
        assert setting.form is not Form.COPIED or len(setting.paths) == 1, name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.folder or row.name)
def test_every_row_names_its_counterpart_or_the_reason_why_there_is_none(row: Dialect) -> None:
    for name, setting in row.settings.items():
        assert bool(setting.own) is not bool(setting.counterparts), name
        assert not setting.is_form or not setting.counterparts, name
        for part in counterparts_of(name, setting):
            assert part.names, name
            assert set(part.names) <= PORTABLE.keys(), name
        places = [part.member for part in setting.counterparts]
        # Either the whole setting has one counterpart, or different members have one each.
        assert len(places) == len(set(places)), name
        assert () not in places or len(places) == 1, name


@pytest.mark.parametrize(("row", "name"), CASES)
def test_a_setting_changes_its_own_member_and_no_other(row: Dialect, name: str) -> None:
    setting = row.settings[name]
    others = beside(row, name)
    without = render(row, **others).body
    body = render(row, **others, **{name: value_of(row, name)}).body
    if name == "extra_body":
        assert body != without
        return
    changed = {member for member in body | without if body.get(member) != without.get(member)}
    also = {"include"} if (row.name, name) == ("openai-responses", "reasoning") else set[str]()
    assert changed - also <= {path[0] for path in setting.paths}
    assert bool(changed) is (setting.form is not Form.NONE)
    if setting.form is Form.COPIED:
        assert plain(found(body, setting.path)) == plain(value_of(row, name))


@pytest.mark.parametrize(("row", "name"), RETURNING)
def test_a_setting_returns_from_its_member(row: Dialect, name: str) -> None:
    body = render(row, **beside(row, name), **{name: value_of(row, name)}).body
    parsed = parse_request(body, row.name, model_id="the-model")
    config: Any = row.config_class.model_validate(parsed.config)
    expected = row.config_class.model_validate({"model_id": "m", name: value_of(row, name)})
    assert getattr(config, name) == getattr(expected, name)
    assert not config.extra_body
    assert not parsed.notes


@pytest.mark.parametrize("row", PARSED, ids=lambda row: row.name)
def test_the_model_returns(row: Dialect) -> None:
    body = render(row).body
    assert ("model" in body) is bool(row.settings["model_id"].paths)
    assert parse_request(body, row.name, model_id="the-model").config["model_id"] == "the-model"


@pytest.mark.parametrize("row", PARSED, ids=lambda row: row.name)
def test_every_copied_member_is_read_alone(row: Dialect) -> None:
    """Start from the body: a member that was not rendered sets its setting and no other."""
    table: SettingTable = row.settings
    bare = parse_request({}, row.name, model_id="m").config
    for name, setting in table.items():
        if setting.form is not Form.COPIED:
            continue
        value: object = plain(value_of(row, name))
        for member in reversed(setting.path[1:]):
            value = {member: value}
        config = parse_request({setting.path[0]: value}, row.name, model_id="m").config
        assert plain(config.pop(name)) == plain(value_of(row, name))
        assert config == {key: value for key, value in bare.items() if key != name}
