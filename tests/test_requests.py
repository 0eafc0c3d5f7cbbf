"""Every conversation of the table, in every dialect: the request is the golden one.

The official client's own types accept it, and rendering changes nothing that it was given.
"""

import json

import pytest

from conversations import CASES, DIALECTS, Case, golden_of
from sdk_types import check

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@every_dialect
@every_case
def test_a_conversation_gives_its_golden_request(case: Case, dialect: str) -> None:
    golden = json.loads(case.golden(dialect).read_text(encoding="utf-8"))
    assert golden_of(case, dialect) == golden


@every_dialect
@every_case
def test_the_official_client_accepts_the_body(case: Case, dialect: str) -> None:
    check(dialect, json.loads(case.golden(dialect).read_text(encoding="utf-8"))["body"])


@every_dialect
@every_case
def test_rendering_changes_nothing_that_it_was_given(case: Case, dialect: str) -> None:
    messages, config = case.messages(dialect), case.config(dialect)
    before = [message.to_json() for message in messages], config.model_dump_json()
    case.render(dialect)
    assert ([message.to_json() for message in messages], config.model_dump_json()) == before
