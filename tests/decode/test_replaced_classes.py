"""Replaced classes of the Python half raise an exception and never crash the process.

Each case runs in a process of its own, since the extension looks a class up once.
"""

import subprocess
import sys
from typing import Final

import pytest

PROGRAM: Final = """
import collections, itertools, sys, threading, types, uuid
import pydantic
import deltafold
import deltafold.contract.kinds, deltafold.contract.usage
import deltafold.message.messages, deltafold.message.parts

class Plain:
    pass

class Layout(int):
    pass

class Whole(pydantic.BaseModel):
    pass

class Own(deltafold.Message):
    pass

class Blueprint:
    def __init__(self, cls, fields):
        self.cls, self.fields = cls, fields

module, name = sys.argv[1].rsplit(".", 1)
setattr(sys.modules[module], name, eval(sys.argv[2]))

body = b'data: {"choices":[{"delta":{"reasoning_content":"H","content":"Hi","tool_calls":[{'
body += b'"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],'
body += b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\\n\\n'
body += b'data: [DONE]\\n\\n'
for _ in range(3):
    try:
        message = deltafold.fold(body, "openai-chat")
        repr(message), message.parts, message.meta, message.id
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("made", type(message).__name__)
"""

BLUEPRINTS: Final = [
    "deltafold.contract.usage.USAGE_BLUEPRINT",
    "deltafold.message.messages.META_BLUEPRINT",
    "deltafold.message.messages.MESSAGE_BLUEPRINT",
    "deltafold.message.parts.TEXT_BLUEPRINT",
    "deltafold.message.parts.THINKING_BLUEPRINT",
    "deltafold.message.parts.TOOL_CALL_BLUEPRINT",
]
# Classes with a memory layout of their own, and objects that are not models.
REPLACED: Final = {
    "int": "a class of CPython's own",
    "dict": "another",
    "type": "a metaclass",
    "types.FunctionType": "a class that is never empty",
    "memoryview": "a view of nothing",
    "collections.deque": "a container that is made first",
    "itertools.chain": "an iterator that is made first",
    "type(threading.Lock())": "a lock that does not exist",
    "Layout": "a subclass of one of these",
    "object": "no attributes at all",
    "Plain": "no model",
    "5": "no class",
}


def outcome(place: str, replacement: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, place, replacement],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr  # a signal is negative
    return done.stdout.splitlines()


@pytest.mark.parametrize("place", BLUEPRINTS)
def test_a_blueprint_of_another_class_is_refused(place: str) -> None:
    replacement = "Blueprint(int, {})"
    assert all("TypeError" in line for line in outcome(place, replacement))


@pytest.mark.parametrize("replaced", REPLACED)
def test_a_class_that_lays_out_its_own_instances_is_refused(replaced: str) -> None:
    lines = outcome(BLUEPRINTS[0], f"Blueprint({replaced}, {{}})")
    assert len(lines) == 3
    assert all(line.startswith("TypeError") for line in lines)


@pytest.mark.parametrize(
    "blueprint",
    [
        "None",
        "Blueprint(Whole, [])",
        "Blueprint(Whole, 5)",
        "Blueprint(Whole, None)",
        "Blueprint(None, {})",
        "Blueprint([], {})",
    ],
)
def test_a_blueprint_of_wrong_members_is_refused(blueprint: str) -> None:
    lines = outcome(BLUEPRINTS[1], blueprint)
    assert all(line.startswith(("TypeError", "AttributeError")) for line in lines)


@pytest.mark.parametrize("replaced", ["int", "dict", "object", "Plain", "5", "pydantic.BaseModel"])
def test_another_class_in_place_of_the_id_is_no_crash(replaced: str) -> None:
    assert len(outcome("uuid.UUID", replaced)) == 3


def test_a_model_of_the_callers_own_is_made() -> None:
    lines = outcome(
        BLUEPRINTS[2], "Blueprint(Own, {**deltafold.message.messages.MESSAGE_BLUEPRINT.fields})"
    )
    assert lines == ["made Own"] * 3


def test_a_model_without_lazy_fields_has_none() -> None:
    lines = outcome(BLUEPRINTS[2], "Blueprint(Whole, {'role': 1})")
    assert all(line.startswith("AttributeError") for line in lines)
