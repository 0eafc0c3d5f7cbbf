"""Every member that the pinned SDKs know is kept, named by a warning, or a row of a table.

The check itself is `tools/markers.py`; the other tests change one thing each, and it must fail.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from openai.types.chat import ChatCompletionChunk, ChatCompletionTokenLogprob
from openai.types.chat.chat_completion_chunk import Choice, ChoiceLogprobs

import markers_types
from markers import check, installed_roots
from markers_accepted import ACCEPTED, Row
from markers_judge import LOST, WRONG_PLACE, Judge, Result
from markers_losses import LOSSES
from markers_runs import lawful_events, of_stream
from markers_sdks import Root
from markers_values import Values

CHAT: Final = Root("openai", "openai-chat", "stream", "openai.types.chat", "ChatCompletionChunk")
SMALL: Final = [CHAT, CHAT._replace(form="answer", name="ChatCompletion")]
ROWS: Final = (*ACCEPTED, *LOSSES)


class PlantedToken(ChatCompletionTokenLogprob):
    """A token with a member of no SDK."""

    planted: str


class PlantedLogprobs(ChoiceLogprobs):
    """Log probabilities of such tokens."""

    content: list[PlantedToken]  # type: ignore[assignment] # the planted class


class PlantedChoice(Choice):
    """A choice with them."""

    logprobs: PlantedLogprobs | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class PlantedChunk(ChatCompletionChunk):
    """A chunk with such a choice."""

    choices: list[PlantedChoice]  # type: ignore[assignment] # the planted class


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    done = check(SMALL, ROWS)
    return [row for row in ROWS if row in done.settled.accepted or row in done.settled.losses]


def test_every_member_of_the_pinned_sdks_is_kept_or_has_a_row() -> None:
    done = check(installed_roots(), ROWS)
    assert done.problems == []
    assert sum(run.events for run in done.runs) > 50_000
    assert sum(len(run.paths) for run in done.runs) > 20_000


def test_a_difference_without_a_row_fails(rows: list[Row]) -> None:
    assert rows
    for row in rows:
        done = check(SMALL, [each for each in rows if each is not row])
        assert {found.kind for found in done.settled.new} <= set(row.kinds)
        assert len(done.problems) == len(done.settled.new) > 0


def test_a_row_that_accepts_nothing_fails(rows: list[Row]) -> None:
    stale = Row("openai-chat", r"chunk:no_such_member", "stale")
    assert check(SMALL, rows).problems == []
    assert check(SMALL, [*rows, stale]).problems == ["stale row: openai-chat chunk:no_such_member"]


def test_a_member_planted_into_a_class_of_an_sdk_fails(rows: list[Row]) -> None:
    planted = CHAT._replace(module=__name__, name=PlantedChunk.__name__)
    new = check([planted, *SMALL[1:]], rows).settled.new
    assert [(found.kind, found.path) for found in new] == [
        (LOST, "chunk:choices[].logprobs.content[].planted")
    ]


def test_an_alternative_that_the_walk_leaves_out_fails(
    rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = markers_types.alternatives_of

    def all_but_the_last(hint: object) -> Iterator[object]:
        found = [*every(hint)]
        yield from found[:-1] if len(found) > 1 else found

    monkeypatch.setattr(markers_types, "alternatives_of", all_but_the_last)
    left_out = check(SMALL, rows).left_out
    assert any("ChatCompletionMessage: " in name for name in left_out), left_out


def moved(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a message whose text is its thinking."""
    for part in value["parts"]:
        if part["kind"] == "text":
            part["kind"] = "thinking"
    return value


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_marker_in_a_wrong_place_fails(is_moved: bool) -> None:
    judge = Judge(CHAT.sdk, CHAT.protocol)
    for event, made in lawful_events(CHAT, Values()):
        result = of_stream(CHAT.protocol, made.value)
        if is_moved:
            result = Result(moved(result.value), result.warnings)
        judge.judge(event, made.sent(), result)
    wrong = {found.path for found in judge.findings if found.kind == WRONG_PLACE}
    texts = {"chunk:choices[].delta.content", "chunk:choices[].delta.refusal"}
    assert texts <= wrong if is_moved else not wrong


def test_a_member_that_is_not_read_is_lost_and_a_warning_names_it() -> None:
    path = "chunk:service_tier=?"
    events = lawful_events(CHAT, Values())
    event, made = next(each for each in events if path in each[1].markers.values())
    kept = of_stream(CHAT.protocol, made.value).value
    del kept["meta"]["details"]["service_tier"]
    warning = {"code": "unread_member", "message": 'the member "service_tier" was not kept'}
    for warnings, kind in (((), LOST), ((warning,), "lost with a warning")):
        judge = Judge(CHAT.sdk, CHAT.protocol)
        judge.judge(event, made.sent(), Result(kept, warnings))
        assert (path, kind) in {(each.path, each.kind) for each in judge.findings}
