"""The public names of the package, and their docstrings."""

import ast
import importlib
import inspect
from itertools import pairwise
from typing import Final

import deltafold
from corpus import ROOT

MODULES: Final = (
    "deltafold",
    "deltafold.arrow",
    "deltafold.blocks",
    "deltafold.compat",
    "deltafold.compat.anthropic",
    "deltafold.compat.openai",
    "deltafold.conversation",
    "deltafold.conversation.mcp",
    "deltafold.gateway",
    "deltafold.rollouts",
    "deltafold.testing",
)
"""Modules whose public names have an entry; `FRAMEWORKS` are read without importing them."""


def public() -> dict[str, object]:
    """Return every public name with its object, once for each object with a name in two modules."""
    found: dict[str, object] = {}
    top = {name: getattr(deltafold, name) for name in deltafold.__all__}
    for module in MODULES:
        imported = importlib.import_module(module)
        for name in imported.__all__:
            value = getattr(imported, name)
            is_elsewhere = module != "deltafold" and top.get(name) is value
            if not is_elsewhere and not inspect.ismodule(value):
                found[f"{module}.{name}"] = value
    return found


PUBLIC: Final = public()


def docstrings_of_constants() -> dict[str, str]:
    """Return the strings below the assignments of the package's modules, by the assigned name."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "python/deltafold").rglob("*.py*")):
        if path.suffix not in {".py", ".pyi"}:
            continue
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for assigned, text in pairwise(body):
            match assigned, text:
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(docstring))),
                ):
                    found[name] = inspect.cleandoc(docstring)
                case _:
                    pass
    return found


CONSTANTS: Final = docstrings_of_constants()


def docstring_of(name: str) -> str:
    """Return the docstring of a public name: of the object itself, not of its class."""
    value = PUBLIC[name]
    if inspect.isclass(value) or inspect.isroutine(value):
        return inspect.getdoc(value) or ""
    return CONSTANTS.get(name.rpartition(".")[2], "")


def has_example(name: str) -> bool:
    return ">>> " in docstring_of(name)
