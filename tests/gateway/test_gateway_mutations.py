"""Requests of clients, mutated: a mistake is 400 in the client's form, before any upstream call."""

import pytest

from corpus import needs_corpus
from mutated_requests import mutated_requests


@needs_corpus
@pytest.mark.parametrize(
    "count", [300, pytest.param(20_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_mutated_request_is_answered_or_refused_in_the_clients_form(count: int) -> None:
    found = mutated_requests(seed=7, first=0, count=count)
    assert not found.wrong, "\n".join(found.wrong[:20])
    assert found.counts["200"] > count // 20
    assert found.counts["400"] > count // 20
