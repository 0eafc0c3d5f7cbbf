"""Docstrings for the reference of the site: an extension of griffe.

In: the package as griffe reads it from the sources and the stubs.  Out: the same; each object of
`deltafold._core` has the docstring of the object in the installed extension, and each example that
begins with `>>>` is a block of code.

Laws: the documentation of the compiled extension is on its objects alone, and the stub has the
types. A docstring is changed for the site only.
Source: https://mkdocstrings.github.io/griffe/guide/users/extending/
"""

import importlib
import inspect
import re
from typing import Any, Final

import griffe

_EXAMPLE: Final = re.compile(r"^( *)>>> .*(?:\n\1\S.*|\n\1 +\S.*)*", re.MULTILINE)


class ReferenceDocstrings(griffe.Extension):
    """Completes the docstrings of a package once it is read."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:  # noqa: ANN401 - as griffe calls it
        """Change the docstrings of deltafold."""
        if pkg.name != "deltafold":
            return
        _take_docstrings(pkg.members["_core"], importlib.import_module("deltafold._core"))
        _fence_examples(pkg)


def _take_docstrings(described: griffe.Object | griffe.Alias, found: object) -> None:
    """Give the members of a module or class the docstrings of the objects themselves."""
    for name, member in described.members.items():
        value = inspect.getattr_static(found, name, None)
        if member.is_alias or not _has_own_docstring(value):
            continue
        text = inspect.getdoc(value)
        if text and member.docstring is None:
            member.docstring = griffe.Docstring(text, parent=member)
        if member.is_class:
            # The site shows the parameters of `__init__` beside the name of a class.
            if "__new__" in member.members:
                member.members.setdefault("__init__", member.members["__new__"])
            _take_docstrings(member, value)


def _has_own_docstring(value: object) -> bool:
    """Return True if a docstring belongs to the object, and not to its class."""
    return (
        inspect.isclass(value)
        or inspect.isroutine(value)
        or inspect.isdatadescriptor(value)
        or isinstance(value, staticmethod | classmethod)
    )


def _fence_examples(described: griffe.Object | griffe.Alias) -> None:
    """Fence the examples in the docstrings of an object and its members."""
    if described.docstring is not None:
        described.docstring.value = fenced(described.docstring.value)
    for member in described.members.values():
        if not member.is_alias:
            _fence_examples(member)


def fenced(docstring: str) -> str:
    """Return a docstring with its examples as blocks; one without output loses its prompts."""

    def fence(found: re.Match[str]) -> str:
        indent = found[1]
        lines = [line.removeprefix(indent) for line in found[0].splitlines()]
        has_output = any(not re.match(r"(>>>|\.\.\.)( |$)", line) for line in lines)
        language = "pycon" if has_output else "python"
        code = lines if has_output else [line[4:] for line in lines]
        return "\n".join(f"{indent}{line}".rstrip() for line in (f"```{language}", *code, "```"))

    return _EXAMPLE.sub(fence, docstring)
