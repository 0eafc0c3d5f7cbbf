"""Imports where the frameworks are installed: none of them is loaded before its adapter is."""

import json
import subprocess
import sys

import pytest

FRAMEWORKS = {"agents", "anthropic", "langchain_core", "openai", "pydantic_ai"}
ADAPTERS = {
    "langchain": {"langchain_core"},
    "openai_agents": {"agents", "openai"},
    "pydantic_ai": {"pydantic_ai"},
}


def loaded(program: str) -> set[str]:
    """Return the frameworks that a program loads."""
    code = f"import json, sys\n{program}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)} & FRAMEWORKS


def test_deltafold_loads_no_framework() -> None:
    program = "from deltafold import *; import deltafold.integrations, deltafold.testing"
    assert loaded(program) == set()


@pytest.mark.parametrize("adapter", list(ADAPTERS))
def test_an_adapter_loads_its_own_framework(adapter: str) -> None:
    found = loaded(f"import deltafold.integrations.{adapter}")
    assert found >= ADAPTERS[adapter]
    others = {"agents", "langchain_core", "pydantic_ai"} - ADAPTERS[adapter]
    assert not found & others
