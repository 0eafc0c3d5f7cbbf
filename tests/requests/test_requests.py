"""Every conversation of the table, in every dialect: the request is the golden one.

The official client's own types accept it, and rendering changes nothing that it was given.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from any_name import AnyName
from conversations import CASES, DIALECTS, MODELS, Case
from deltafold import ImagePart, Message, MisuseError, NoteCode, parse_request
from deltafold.dialects import dialect_of
from foreign_bodies import FOREIGN, GOLDEN
from goldens import FOREIGN_MODEL, again, golden_of, golden_of_foreign, path_of, written
from normal_form import normal
from sdk_types import check

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@every_dialect
@every_case
def test_a_conversation_gives_its_golden_request(case: Case, dialect: str) -> None:
    golden = json.loads(path_of(case, dialect).read_text(encoding="utf-8"))
    assert golden_of(case, dialect) == golden


@every_dialect
@every_case
def test_the_official_client_accepts_the_body(case: Case, dialect: str) -> None:
    check(dialect, json.loads(path_of(case, dialect).read_text(encoding="utf-8"))["body"])


@every_dialect
@every_case
def test_rendering_changes_nothing_that_it_was_given(case: Case, dialect: str) -> None:
    messages, config = case.messages(dialect), case.config(dialect)
    before = [message.to_json() for message in messages], config.model_dump_json()
    case.render(dialect)
    assert ([message.to_json() for message in messages], config.model_dump_json()) == before


@every_dialect
@every_case
def test_a_body_that_was_read_renders_to_itself(case: Case, dialect: AnyName) -> None:
    golden = json.loads(path_of(case, dialect).read_text(encoding="utf-8"))
    parsed = parse_request(golden["body"], dialect, model_id=MODELS[dialect])
    assert written(parsed) == golden["parsed"]
    assert again(parsed, dialect).body == golden["body"]
    assert not parsed.notes


def test_the_tables_are_large_enough_and_hold_nothing_else() -> None:
    assert len(CASES) >= 25
    assert set(FOREIGN) == set(DIALECTS)
    assert all(len(bodies) >= 10 for bodies in FOREIGN.values())
    names = {f"{case.name}.json" for case in CASES}
    for dialect in DIALECTS:
        assert {path.name for path in (GOLDEN / dialect).glob("*.json")} == names


def test_every_note_is_made_somewhere_in_the_table() -> None:
    goldens = [json.loads(path.read_text(encoding="utf-8")) for path in GOLDEN.glob("*/**/*.json")]
    notes = [note for golden in goldens for note in golden.get("notes", [])]
    notes += [note for golden in goldens for note in golden["parsed"].get("notes", [])]
    assert {note["code"] for note in notes} == set(NoteCode)


@every_dialect
def test_an_image_of_20_megabytes_goes_whole(dialect: AnyName) -> None:
    data = "iVBORw0KGgo=" * (20_000_000 // 12)
    messages = [Message.user("See", ImagePart(mime_type="image/png", data=data))]
    config = dialect_of(dialect).config_class.model_validate({"model_id": "m"})
    rendered = dialect_of(dialect).render(messages, [], config)
    assert any(data in text for text in strings(rendered.body))
    parsed = parse_request(rendered.body, dialect, model_id="m")
    assert parsed.messages[0].parts[1] == messages[0].parts[1]


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in cast("dict[str, object]", value).values():
            yield from strings(member)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from strings(item)


FOREIGN_BODIES = [(dialect, name) for dialect, bodies in FOREIGN.items() for name in bodies]


@pytest.mark.parametrize(("dialect", "name"), FOREIGN_BODIES)
def test_a_foreign_body_is_read_and_renders_to_what_renders_to_itself(
    dialect: AnyName, name: str
) -> None:
    body = FOREIGN[dialect][name]
    path = GOLDEN / dialect / "foreign" / f"{name}.json"
    golden = json.loads(path.read_text(encoding="utf-8"))
    assert golden_of_foreign(body, dialect) == golden
    settled = golden.get("again", body)
    parsed = parse_request(settled, dialect, model_id=FOREIGN_MODEL)
    assert again(parsed, dialect).body == settled


@pytest.mark.parametrize(("dialect", "name"), FOREIGN_BODIES)
def test_a_foreign_body_is_the_same_in_the_normal_form_or_the_difference_is_noted(
    dialect: str, name: str
) -> None:
    golden = golden_of_foreign(FOREIGN[dialect][name], dialect)
    # The goldens are rendered as streams.
    bodies = (
        {**body, "stream": True} for body in (golden["body"], golden.get("again", golden["body"]))
    )
    given, again = (normal(dialect, json.loads(json.dumps(body))) for body in bodies)
    assert given == again or golden.get("notes")


@pytest.mark.parametrize(("dialect", "name"), FOREIGN_BODIES)
def test_what_a_foreign_body_says_is_said_again_or_noted(dialect: str, name: str) -> None:
    golden = golden_of_foreign(FOREIGN[dialect][name], dialect)
    missing = said(golden["body"]) - said(golden.get("again", golden["body"]))
    codes = {note["code"] for note in golden.get("notes", [])}
    assert not missing or codes == {"thinking_dropped"}


def said(value: object) -> set[str]:
    """Return the text of every message in a body."""
    found: set[str] = set()
    if isinstance(value, list):
        for item in cast("list[object]", value):
            found |= said(item)
    elif isinstance(value, dict):
        for name, member in cast("dict[str, object]", value).items():
            if isinstance(member, str) and member and name in SPOKEN:
                found.add(member)
            found |= said(member)
    return found


SPOKEN = {"text", "content", "thinking", "refusal", "output"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"messages": {}, "contents": {}, "input": {}}, "a list was expected, not dict"),
        ({"messages": [1], "contents": [1], "input": [1]}, "an object was expected, not int"),
        ({"tools": 1, "toolConfig": 1}, "expected, not int"),
        ({"model": 1, "system": [1], "systemInstruction": 1}, "expected, not int"),
    ],
)
def test_a_member_of_the_wrong_type_is_an_error_that_names_it(
    dialect: AnyName, change: dict[str, object], named: str
) -> None:
    if dialect in {"bedrock-converse", "anthropic-messages"} and "functionDeclarations" in str(
        change
    ):
        change = {"toolConfig": {"tools": 1}, "tools": 1}
    with pytest.raises(ValueError, match=named):
        parse_request(change, dialect)


def test_a_dialect_that_has_no_requests_is_an_error() -> None:
    with pytest.raises(MisuseError, match="no request is rendered in 'gemini-interactions'"):
        parse_request({}, cast("Any", "gemini-interactions"))
