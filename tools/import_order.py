#!/usr/bin/env python3
"""Import check of the Python package: no cycles, and every import points to a lower layer.

In: the sources below `python/deltafold`, and the table `tool.import-order` of `pyproject.toml`.
Out: one line for each cycle or upward import, and exit status 1 if there is one.

Laws: all imports count, also those inside functions and those for type checkers alone.  Two files
form a cycle if each one reaches the other.  The same holds for the members of one package, where a
subpackage is one member.  A package's own `__init__` is above all its members.  An extension
module, which a stub stands for, imports nothing: it loads Python types when it first makes one.
"""

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final, TypeAlias, cast

ROOT: Final = Path(__file__).parents[1]

Graph: TypeAlias = dict[str, set[str]]
"""The modules that each module imports."""


def module_files(package: Path) -> dict[str, Path]:
    """Return the file of each module of a package, by the module's name."""
    files: dict[str, Path] = {}
    for file in sorted(package.rglob("*.py*")):
        if file.suffix not in {".py", ".pyi"}:
            continue
        parts = file.relative_to(package.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return files


def imports_of(file: Path, modules: Mapping[str, object]) -> set[str]:
    """Return the modules that a file imports; `from package import member` means the member."""
    found: set[str] = set()
    if file.suffix == ".pyi":
        return found
    for node in ast.walk(ast.parse(file.read_bytes(), str(file))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            inner = members & modules.keys()
            found |= inner
            if len(inner) < len(members):
                found.add(node.module)
    return found & modules.keys()


def import_graph(package: Path) -> Graph:
    """Return the imports between the modules of a package."""
    files = module_files(package)
    return {name: imports_of(file, files) - {name} for name, file in files.items()}


def member_graph(graph: Graph, package: str) -> Graph:
    """Return the imports between the members of a package, without its `__init__`."""
    depth = package.count(".") + 2
    members: Graph = {}
    for module, imported in graph.items():
        if not module.startswith(f"{package}."):
            continue
        member = _member(module, depth)
        below = {_member(name, depth) for name in imported if name.startswith(f"{package}.")}
        members.setdefault(member, set()).update(below - {member})
    return members


def _member(module: str, depth: int) -> str:
    return ".".join(module.split(".")[:depth])


def cycles_of(graph: Graph) -> Iterator[list[str]]:
    """Yield one cycle after another, with its last import removed from the graph."""
    remaining = {name: set(imported) for name, imported in graph.items()}
    while True:
        try:
            TopologicalSorter(remaining).prepare()
        except CycleError as error:
            # `graphlib` lists each module before the one that imports it.
            cycle = cast("list[str]", error.args[1])[::-1]
            yield cycle
            remaining[cycle[0]].discard(cycle[1])
        else:
            return


def upward_imports(graph: Graph, package: str, layers: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a complaint about each member that no layer has and each import that points upward."""
    level = {f"{package}.{name}": rank for rank, names in enumerate(layers) for name in names}
    for member, imported in member_graph(graph, package).items():
        if member not in level:
            yield f"{member} is in no layer of pyproject.toml"
            continue
        for other in sorted(imported):
            if other in level and level[other] > level[member]:
                yield f"{member} imports {other}, which is in a higher layer"


def complaints(package: Path, layers: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield one line for each defect of the imports of a package."""
    graph = import_graph(package)
    for cycle in cycles_of(graph):
        yield f"cycle of files: {' -> '.join(cycle)}"
    for name, file in module_files(package).items():
        if file.name == "__init__.py":
            for cycle in cycles_of(member_graph(graph, name)):
                yield f"cycle in {name}: {' -> '.join(cycle)}"
    yield from upward_imports(graph, package.name, layers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the package; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    root = cast("Path", parser.parse_args(arguments).root)
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["import-order"]
    found = list(complaints(root / cast("str", settings["package"]), settings["layers"]))
    print("\n".join(found) or f"{settings['package']}: the imports have no cycle")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
