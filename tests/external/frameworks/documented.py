"""The examples of docs/frameworks.md, for the tests of the adapters.

In: the name of a framework, which a block of code has in its first line.  Out: the blocks run, in
their order and in one namespace.
"""

import re
from pathlib import Path
from typing import Any, Final

TEXT: Final = (Path(__file__).parents[3] / "docs" / "frameworks.md").read_text("utf-8")


def run_examples(framework: str) -> dict[str, Any]:
    """Run the examples of a framework, and return the names that they define."""
    blocks = re.findall(rf"```python {framework}\n(.*?)```", TEXT, re.DOTALL)
    if not blocks:
        raise AssertionError(f"docs/frameworks.md has no example of {framework}")
    found: dict[str, Any] = {}
    for code in blocks:
        exec(compile(code, "frameworks.md", "exec"), found)  # noqa: S102 - our own documentation
    return found
