"""Recorded requests: parsing, rendering and checking of bodies that a provider accepted or refused.

In: the requests of the corpus, with the status and the error of the provider.  Out: in the dialect
of a body, a comparison in the normal form that docs/requests.md states (normal_form.py); in every
other dialect, a comparison of the content (content_walker.py, content_losses.py) and the verdict of
the official client's types; the codes of `check`.
"""

import gzip
import json
from functools import cache
from typing import Any, Final

import pytest

from any_name import AnyName
from content_losses import faults
from content_walker import Walk
from corpus import CORPUS, needs_corpus
from deltafold import ParsedRequest, parse_request
from deltafold.conversation import ProblemCode, check
from deltafold.dialects import DIALECTS, dialect_of
from normal_form import normal
from samples import sampled

pytestmark = needs_corpus

EQUAL_SHARE: Final = 0.995
"""Share of all accepted requests that are equal in the normal form after parsing and rendering."""

ALARM_SHARE: Final = 0.002

REFUSALS_OF_MEDIA: Final = {
    "Content blocks are expected": 4,
    "Invalid file data": 2,
    "file type you uploaded": 2,
    "s3Uri field": 1,
    "video content block": 5,
}
"""Words of errors that refuse a medium, with the number of recorded requests that got them."""


@cache
def recorded() -> list[dict[str, Any]]:
    with gzip.open(CORPUS / "requests.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


@cache
def accepted(dialect: str) -> list[dict[str, Any]]:
    return [row for row in recorded() if row["dialect"] == dialect and row["status"] // 100 == 2]


def parsed(row: dict[str, Any]) -> ParsedRequest:
    return parse_request(row["body"], row["dialect"], model_id=row["model"] or "m")


@cache
def differences(dialect: str) -> dict[str, bool]:
    """Return the ids of requests that rendering changes, each with True if it left a note."""
    found: dict[str, bool] = {}
    for row in accepted(dialect):
        request = parsed(row)
        config = dialect_of(dialect).config_class.model_validate(
            {"model_id": row["model"] or "m", **request.config}
        )
        rendered = dialect_of(dialect).render(
            request.messages, request.tools, config, stream=bool(request.stream)
        )
        given, again = (json.loads(json.dumps(body)) for body in (row["body"], rendered.body))
        if normal(dialect, given) != normal(dialect, again):
            found[row["id"]] = bool(rendered.notes)
    return found


every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@every_dialect
def test_an_accepted_request_renders_to_itself_or_notes_the_difference(dialect: str) -> None:
    different = differences(dialect)
    assert all(different.values()), different
    assert len(different) <= max(1, len(accepted(dialect)) * (1 - EQUAL_SHARE) * 2)


def test_nearly_all_accepted_requests_render_to_themselves() -> None:
    different = {dialect: differences(dialect) for dialect in DIALECTS}
    total = sum(len(accepted(dialect)) for dialect in DIALECTS)
    assert total > 2700
    assert sum(map(len, different.values())) <= total * (1 - EQUAL_SHARE), different


@every_dialect
def test_an_accepted_history_has_no_problems(dialect: AnyName) -> None:
    rows = accepted(dialect)
    alarms = {
        row["id"]: report.codes
        for row in rows
        if not (
            report := check(parsed(row).messages, dialect, model_id=row["model"] or "m")
        ).is_clean
    }
    assert len(alarms) <= len(rows) * ALARM_SHARE, alarms


@pytest.mark.parametrize("words", REFUSALS_OF_MEDIA)
def test_a_refused_medium_is_found(words: str) -> None:
    rows = [row for row in recorded() if words in row.get("error", "")]
    assert len(rows) == REFUSALS_OF_MEDIA[words]
    for row in rows:
        assert row["status"] == 400
        report = check(parsed(row).messages, row["dialect"], model_id=row["model"])
        assert ProblemCode.REFUSED_MEDIUM in report.codes, row["id"]


@sampled(10)
@every_dialect
def test_an_accepted_request_keeps_its_content_in_every_other_dialect(
    dialect: str, every: int
) -> None:
    failures: dict[tuple[str, str], object] = {}
    for row in accepted(dialect)[::every]:
        request, source = parsed(row), Walk(dialect, row["body"])
        for target in DIALECTS:
            if target == dialect:
                continue
            found = faults(request, source, target)
            if found:
                failures[row["id"], target] = found
    assert not failures
