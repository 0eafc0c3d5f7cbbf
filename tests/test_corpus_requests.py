"""Recorded requests: what a provider accepted is read, written again, and called no mistake.

In: the requests of the corpus, with the status of the provider.  Out: at home, a comparison in the
normal form that docs/requests.md states (normal_form.py); in every other dialect, a comparison of
the content (content_walker.py, content_losses.py) and the verdict of the official client's types.
"""

import gzip
import json
from functools import cache
from typing import Any

import pytest

from content_losses import faults
from content_walker import Walk
from corpus import CORPUS, needs_corpus
from deltafold import ParsedRequest, parse_request
from deltafold.dialects import DIALECTS, dialect_of
from deltafold.history import check
from normal_form import normal

pytestmark = needs_corpus

EQUAL_SHARE = 0.995
ALARM_SHARE = 0.002


@cache
def accepted(dialect: str) -> list[dict[str, Any]]:
    with gzip.open(CORPUS / "requests.jsonl.gz") as lines:
        rows = [json.loads(line) for line in lines]
    return [row for row in rows if row["dialect"] == dialect and row["status"] // 100 == 2]


def parsed(row: dict[str, Any]) -> ParsedRequest:
    return parse_request(row["body"], row["dialect"], model_id=row["model"] or "m")


every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@every_dialect
def test_an_accepted_request_renders_to_itself_or_notes_the_difference(dialect: str) -> None:
    rows = accepted(dialect)
    different = 0
    for row in rows:
        request = parsed(row)
        config = dialect_of(dialect).config_class.model_validate(
            {"model_id": row["model"] or "m", **request.config}
        )
        rendered = dialect_of(dialect).render(
            request.messages, request.tools, config, stream=bool(request.stream)
        )
        given, again = (json.loads(json.dumps(body)) for body in (row["body"], rendered.body))
        if normal(dialect, given) != normal(dialect, again):
            different += 1
            assert rendered.notes, row["id"]
    assert different <= max(1, len(rows) * (1 - EQUAL_SHARE) * 2)


@every_dialect
def test_an_accepted_history_has_no_problems(dialect: str) -> None:
    rows = accepted(dialect)
    alarms = {
        row["id"]: report.codes
        for row in rows
        if not (
            report := check(parsed(row).messages, dialect, model_id=row["model"] or "m")
        ).is_clean
    }
    assert len(alarms) <= len(rows) * ALARM_SHARE, alarms


@every_dialect
def test_an_accepted_request_keeps_its_content_in_every_other_dialect(dialect: str) -> None:
    failures: dict[tuple[str, str], object] = {}
    for row in accepted(dialect):
        request, source = parsed(row), Walk(dialect, row["body"])
        for target in DIALECTS:
            if target == dialect:
                continue
            found = faults(request, source, target)
            if found:
                failures[row["id"], target] = found
    assert not failures
