"""Every kind of content of every protocol, at home and in every other dialect.

In: the smallest body that holds a content (wire_contents.py).  Out: the content is in the rendered
body or in a note, and the official client's types accept the body.
"""

import copy
import json
from random import Random
from typing import Any

import pytest

from content_losses import faults, silent_losses
from content_walker import Walk
from conversations import MODELS
from deltafold import Rendered, parse_request
from deltafold.dialects import DIALECTS, dialect_of
from normal_form import normal
from wire_contents import Row, rows

ROWS = list(rows())

LISTS = {"gemini": "contents", "openai-responses": "input"}

every_row = pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.dialect}-{row.place}-{row.kind}"
)


@every_row
def test_a_content_is_sent_or_noted_in_every_other_dialect(row: Row) -> None:
    request, source = parse_request(row.body, row.dialect), Walk(row.dialect, row.body)
    others = [name for name in DIALECTS if name != row.dialect]
    found = {target: faults(request, source, target) for target in others}
    assert not any(found.values()), found


@every_row
def test_a_content_is_an_empty_message_in_no_other_dialect(row: Row) -> None:
    request = parse_request(row.body, row.dialect)
    for target in DIALECTS:
        if target == row.dialect or row.kind == "empty":
            continue
        config = dialect_of(target).config_class.model_validate({"model_id": MODELS[target]})
        body: Any = dialect_of(target).render(request.messages, request.tools, config).body
        for message in body[LISTS.get(target, "messages")]:
            if message.get("role") in {"user", "system", "developer"}:
                assert message.get("content") or message.get("parts") or message.get("images")


@every_row
def test_a_content_is_sent_home_as_it_was(row: Row) -> None:
    request = parse_request(row.body, row.dialect, model_id="m")
    home = dialect_of(row.dialect)
    config = home.config_class.model_validate({"model_id": "m", **request.config})
    rendered = home.render(request.messages, request.tools, config, stream=bool(request.stream))
    given, again = (json.loads(json.dumps(body)) for body in (row.body, rendered.body))
    assert normal(row.dialect, again) == normal(row.dialect, given) or rendered.notes


@every_row
def test_the_comparison_sees_each_content_that_is_missing(row: Row) -> None:
    source = Walk(row.dialect, row.body)
    assert not silent_losses(source, Walk(row.dialect, row.body), Rendered({}))
    for position in range(len(source.contents)):
        damaged = Walk(row.dialect, row.body)
        del damaged.contents[position]
        if not is_blank(source.contents[position]):
            assert silent_losses(source, damaged, Rendered({})), source.contents[position]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_contents_in_one_conversation_are_sent_or_noted_together(dialect: str, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a reproducible choice
    name = LISTS.get(dialect, "messages")
    chosen = random.sample([row.body for row in ROWS if row.dialect == dialect], 6)
    spoken = [message for body in chosen for message in body[name]]
    whole: dict[str, Any] = {}
    for body in chosen:
        whole |= body
    whole[name] = copy.deepcopy(spoken)
    request, source = parse_request(whole, dialect), Walk(dialect, whole)
    others = [other for other in DIALECTS if other != dialect]
    found = {target: faults(request, source, target) for target in others}
    assert not any(found.values()), (json.dumps(whole), found)


def is_blank(content: Any) -> bool:  # noqa: ANN401 - any content
    return getattr(content, "text", "said") == ""
