"""A foreign request that is damaged anywhere is read, or is a ValueError that says where."""

import copy
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_name import AnyName
from conversations import CASES, DIALECTS
from deltafold import parse_request
from foreign_bodies import FOREIGN
from goldens import again

Path = tuple[str | int, ...]

JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "text",
    [],
    [1],
    ["text"],
    [[]],
    {},
    {"type": "text"},
]


def places(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of everything inside a JSON value."""
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(cast("dict[str | int, object]", value).items())
    elif isinstance(value, list):
        items = list(enumerate(cast("list[object]", value)))
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def replaced(body: Any, path: Path, junk: Any) -> Any:  # noqa: ANN401 - any JSON
    damaged = copy.deepcopy(body)
    inside = damaged
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = junk
    return damaged


def read(body: Any, dialect: AnyName) -> None:  # noqa: ANN401 - any JSON
    """Parse a body, and render the parsed request."""
    try:
        parsed = parse_request(body, dialect, model_id="m")
    except ValueError as error:
        assert str(error)  # noqa: PT017 - whether it raises is not the question
        return
    parsed.config.setdefault("model_id", "m")
    json.dumps(again(parsed, dialect).body)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_junk_in_every_place_of_every_foreign_body(dialect: str) -> None:
    for body in FOREIGN[dialect].values():
        for path in places(body):
            for junk in JUNK:
                read(replaced(body, path, junk), dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_several_damages_to_a_golden_body(dialect: str, data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    body = json.loads(json.dumps(case.render(dialect).body))
    for _ in range(data.draw(st.integers(min_value=1, max_value=4))):
        known = list(places(body))
        path = data.draw(st.sampled_from(known))
        body = replaced(body, path, data.draw(st.sampled_from(JUNK)))
    read(body, dialect)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"text": "deep"}
    for _ in range(depth):
        value = {"inside": [value]}
    return value


ODD: list[tuple[str, dict[str, Any]]] = [
    ("openai-chat", {"messages": [{"role": "user", "content": [{"type": "odd"}]}]}),
    ("anthropic-messages", {"messages": [{"role": "user", "content": [{"type": "odd"}]}]}),
    ("gemini", {"contents": [{"role": "user", "parts": [{"odd": {}}]}]}),
]


@pytest.mark.parametrize(("dialect", "body"), ODD)
def test_a_request_that_is_nested_too_deeply_is_refused(
    dialect: AnyName, body: dict[str, Any]
) -> None:
    member = "content" if "messages" in body else "parts"
    for depth in (50, 10_000):
        deep = json.loads(json.dumps(body))
        (message,) = deep.get("messages") or deep["contents"]
        message[member][0]["odd"] = nested(depth)
        if depth == 50:
            assert parse_request(deep, dialect, model_id="m").messages
            continue
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_request(deep, dialect, model_id="m")
