"""`deltafold.compat.builders`: damaged frames become the objects that the SDK makes of them."""

import json
import random
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, cast

import pytest
from anthropic.types import RawMessageStreamEvent
from anthropic.types.beta import BetaRawMessageStreamEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from deltafold._core import EventFramer
from deltafold.compat.builders import Construct, builder_of
from sdk_objects import fixtures, shape

KINDS: Final[dict[str, tuple[str, object, str]]] = {
    "chat": ("openai-chat", ChatCompletionChunk, "openai._models"),
    "responses": ("openai-responses", ResponseStreamEvent, "openai._models"),
    "messages": ("anthropic-messages", RawMessageStreamEvent, "anthropic._models"),
    "messages-beta": ("anthropic-messages", BetaRawMessageStreamEvent, "anthropic._models"),
}
VALUES: Final[list[object]] = [
    *(None, 0, 1, -3, 1.5, 2.0, True, False, 10**30),
    *("", "5", "x", "true", "assistant", "stop", "2024-01-01T00:00:00Z"),
    *([], {}, [None], [1], [{}], {"type": "text"}, {"a": 1}),
]
NAMES: Final = ("vendor", "type", "name", "schema", "async", "id")
# The SDK takes 100 µs and more for a frame.
DAMAGED_FRAMES: Final = 1500


def frames(dialect: str) -> Iterator[dict[str, object]]:
    """Yield the frames of all fixtures that are objects."""
    for _, body in fixtures(dialect):
        for _, data in EventFramer().feed(body):
            try:
                frame: object = json.loads(data)
            except ValueError:
                continue
            if isinstance(frame, dict):
                yield cast("dict[str, object]", frame)


def damaged(value: object, chance: random.Random) -> object:
    """Return a value with a member that is missing, new or of another type."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        held = dict(cast("dict[str, object]", value))
        name, how = chance.choice(list(held)), chance.random()
        if how < 0.15:
            del held[name]
        elif how < 0.25:
            held[chance.choice(NAMES)] = chance.choice(VALUES)
        else:
            held[name] = damaged(held[name], chance)
        return held
    if isinstance(value, list) and value and chance.random() < 0.9:
        items = list(cast("list[object]", value))
        index = chance.randrange(len(items))
        items[index] = damaged(items[index], chance)
        return items
    return chance.choice(VALUES)


def seen(build: Callable[[object], object], frame: object) -> object:
    try:
        return shape(build(frame))
    except Exception as raised:  # noqa: BLE001 - compared with the other's
        return type(raised)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_damaged_frame_gives_the_object_of_the_sdk(name: str) -> None:
    dialect, kind, module = KINDS[name]
    construct_type: Any = import_module(module).construct_type
    construct = Construct(construct_type)
    build, theirs = builder_of(kind, construct), construct(kind)
    chance = random.Random(name)  # noqa: S311 - the same frames in each run
    whole = list(frames(dialect))
    for _ in range(DAMAGED_FRAMES):
        frame: object = chance.choice(whole)
        for _ in range(chance.randint(1, 3)):
            frame = damaged(frame, chance)
        assert seen(build, frame) == seen(theirs, frame), frame
