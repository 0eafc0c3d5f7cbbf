"""Whatever JSON of the right outer shape a provider sends, every way of reading it agrees.

The mutations and the laws are those of `tools/differential_fuzz.py`, which runs them for hours.
"""

import random

import pytest

from any_name import AnyName
from deltafold import Decoder, Fold, MessageDelta
from differential_fuzz import check
from fuzz_inputs import Seed, mutate_bytes, mutate_json, options_of, pieces_of, seeds
from protocol_bodies import CHAT, DONE, chunk, event, finish
from speakers import RESPONSES, typed

SEEDS = seeds()
DIALECTS = sorted({seed.dialect for seed in SEEDS})
MUTATIONS = 60


def seeds_of(dialect: str) -> list[Seed]:
    return [seed for seed in SEEDS if seed.dialect == dialect]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_members_of_any_kind_break_no_law(dialect: str) -> None:
    chance = random.Random(dialect)  # noqa: S311 - mutations, not secrets
    for _ in range(MUTATIONS):
        body = mutate_json(chance, chance.choice(seeds_of(dialect)).wire)
        check(dialect, body, pieces_of(chance, body), options_of(chance))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_damaged_bytes_break_no_law(dialect: str) -> None:
    chance = random.Random(dialect)  # noqa: S311 - as above
    for _ in range(MUTATIONS // 3):
        body = mutate_bytes(chance, chance.choice(seeds_of(dialect)).wire)
        check(dialect, body, pieces_of(chance, body), options_of(chance))


# The smallest bodies with an element other than an object.

ELEMENTS = [1, "x", True, None, [], [1]]


def decoded(dialect: AnyName, body: bytes) -> list[MessageDelta]:
    decoder = Decoder(dialect)
    return [*decoder.feed(body), *decoder.close()]


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("member", ["content", "images"])
def test_an_element_of_a_chat_list_that_is_no_object_is_no_part(
    member: str, element: object
) -> None:
    body = chunk({member: [element]}) + finish("stop") + DONE
    check(CHAT, body, [body], {})
    fold = Fold(CHAT)
    fold.feed(body)
    fold.close()
    texts = [element] if (member, element) == ("content", "x") else []
    assert [part.kind for part in fold.snapshot().parts] == ["text"] * len(texts)
    ignored = element is not None and not texts and (member, element) != ("images", None)
    codes = [str(warning["code"]) for warning in decoded(CHAT, body)[-1].warnings]
    malformed = ["malformed_element"] if ignored or member == "images" else []
    assert codes == malformed + ([] if texts else ["empty_answer"])


@pytest.mark.parametrize("element", ELEMENTS)
def test_an_item_of_responses_that_is_no_object_is_no_part(element: object) -> None:
    end = typed("response.completed", response={"id": "r", "model": "m", "status": "completed"})
    for event_type in ("response.output_item.added", "response.output_item.done"):
        body = typed(event_type, output_index=0, item=element) + end
        check(RESPONSES, body, [body], {})
        assert [str(delta.kind) for delta in decoded(RESPONSES, body)] == ["start", "done"]
    whole = event({"object": "response", "id": "r", "status": "completed", "output": [element]})
    body = whole.removeprefix(b"data: ")
    check(RESPONSES, body, [body], {})
    assert [str(delta.kind) for delta in decoded(RESPONSES, body)] == ["start", "done"]
