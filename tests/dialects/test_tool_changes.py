"""Tools that the messages of a Claude request remove, add again and define anew.

In: a request with `tool_addition` and `tool_removal` blocks.  Out: requests in other dialects.

Laws: what is offered after the last change is declared elsewhere, no other tool, and each once. Its
own dialect gets the list and the changes as they were.
Source: Anthropic's page "Mid-conversation system messages and tool changes"; the types of anthropic
2.12 (read 2026-11).
"""

import json
from typing import Any, TypeAlias

import pytest

from conversations import DIALECTS
from deltafold import parse_request
from found_tools import DIVE, ON, SAID, added, assert_as_it_was, claude, rendered, to_claude

Change: TypeAlias = tuple[str, dict[str, Any]]

LOOK_REFERENCE = {"type": "tool_reference", "name": "look"}
DIVE_REFERENCE = {"type": "tool_reference", "name": "dive"}
DIVES = {"type": "tool_definition", "definition": DIVE}
NEW_DIVE: dict[str, Any] = {**DIVE, "description": "Dives deeper."}
NEW_LOOK: dict[str, Any] = {**DIVE, "name": "look", "description": "Looks again."}


def changed(*changes: Change) -> dict[str, Any]:
    """Return a request whose messages change the tools, one message after the other."""
    return claude(*(one for kind, tool in changes for one in (added(tool, kind), SAID, ON)))


def compacted(*changes: Change) -> dict[str, Any]:
    """Return a request whose messages with these changes were compacted."""
    said = {"type": "compaction", "content": "We dived."}
    blocks = [{"type": kind, "tool": tool} for kind, tool in changes]
    return claude({"role": "assistant", "content": [{**said, "tool_changes": blocks}]}, ON)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "defined and removed": (
        changed(("tool_addition", DIVES), ("tool_removal", DIVE_REFERENCE)),
        {"look": "Dives."},
    ),
    "removed and added": (
        changed(
            ("tool_addition", DIVES),
            ("tool_removal", DIVE_REFERENCE),
            ("tool_addition", DIVE_REFERENCE),
        ),
        {"look": "Dives.", "dive": "Dives."},
    ),
    "one of the list removed and added": (
        changed(("tool_removal", LOOK_REFERENCE), ("tool_addition", LOOK_REFERENCE)),
        {"look": "Dives."},
    ),
    "defined again": (
        changed(
            ("tool_addition", DIVES),
            ("tool_addition", {"type": "tool_definition", "definition": NEW_DIVE}),
        ),
        {"look": "Dives.", "dive": "Dives deeper."},
    ),
    "one of the list defined again": (
        changed(("tool_addition", {"type": "tool_definition", "definition": NEW_LOOK})),
        {"look": "Looks again."},
    ),
    "one of the list defined again and removed": (
        changed(
            ("tool_addition", {"type": "tool_definition", "definition": NEW_LOOK}),
            ("tool_removal", LOOK_REFERENCE),
        ),
        {},
    ),
    "removed and defined again": (
        changed(
            ("tool_removal", LOOK_REFERENCE),
            ("tool_addition", {"type": "tool_definition", "definition": NEW_LOOK}),
        ),
        {"look": "Looks again."},
    ),
    "a server's tool removed": (
        changed(("tool_removal", {"type": "mcp_tool_reference", "name": "look"})),
        {"look": "Dives."},
    ),
    "odd": (
        changed(("tool_removal", {"type": "tool_reference", "name": ["look"]})),
        {"look": "Dives."},
    ),
    "compacted": (
        compacted(("tool_removal", LOOK_REFERENCE), ("tool_addition", DIVES)),
        {"dive": "Dives."},
    ),
}


@pytest.mark.parametrize("target", ["openai-chat", "bedrock-converse", "claude-haiku-4-5"])
@pytest.mark.parametrize("name", CHANGES)
def test_the_tools_after_the_last_change_are_declared(name: str, target: str) -> None:
    request, tools = CHANGES[name]
    parsed = parse_request(request, "anthropic-messages")
    body = rendered(parsed, target) if target in DIALECTS else to_claude(parsed, target)
    given = body.get("tools") or body.get("toolConfig", {}).get("tools", [])
    functions = [tool.get("function") or tool.get("toolSpec") or tool for tool in given]
    found = {one["name"]: one["description"] for one in functions if "description" in one}
    assert found == tools
    assert "deltafold_" not in json.dumps(body)


@pytest.mark.parametrize("name", CHANGES)
def test_its_own_dialect_gets_the_changes_and_the_list_as_they_were(name: str) -> None:
    request, _ = CHANGES[name]
    assert_as_it_was(request)


def test_a_choice_of_a_removed_tool_is_left_out_with_the_last_tool() -> None:
    request, _ = CHANGES["one of the list defined again and removed"]
    parsed = parse_request({**request, "tool_choice": {"type": "any"}}, "anthropic-messages")
    assert not {"tools", "tool_choice"} & rendered(parsed, "openai-chat").keys()
