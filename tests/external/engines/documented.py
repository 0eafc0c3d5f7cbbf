"""The recipes of docs/scale.md, for the tests of the engines.

In: the name of an engine, which a block of code has in its first line, and a folder with the file
`bodies.parquet`.  Out: the blocks run, in their order and in one namespace.
"""

import re
from pathlib import Path
from typing import Any, Final

TEXT: Final = (Path(__file__).parents[3] / "docs" / "scale.md").read_text("utf-8")


def recipe(engine: str) -> list[str]:
    """Return the blocks of an engine."""
    blocks = re.findall(rf"```python {engine}\n(.*?)```", TEXT, re.DOTALL)
    if not blocks:
        raise AssertionError(f"docs/scale.md has no recipe of {engine}")
    return blocks


def run(blocks: list[str], names: dict[str, Any]) -> dict[str, Any]:
    """Run blocks in a namespace, and return it."""
    for code in blocks:
        exec(compile(code, "scale.md", "exec"), names)  # noqa: S102 - our own documentation
    return names
