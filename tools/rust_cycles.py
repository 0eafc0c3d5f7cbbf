"""Find import cycles between the modules of each Rust crate.

In: the source files of a crate.
Out: one line for each cycle, with its path; exit code 1 if there is a cycle.

Laws:
- A file uses another file if it names an item of that file's module in a `use` declaration or in
  an inline path.  Such a path begins with `crate`, `super`, `self` or a child module.
- `mod child;` alone is not a use.
- A `pub use` declaration is not a use either.  A path through it counts as a use of the file that
  declares the item, so a parent that only declares and re-exports its children has no edge.  A
  parent with items of its own has edges like any other file, in both directions.
- The graph is checked twice: with files as nodes, and with top-level modules as nodes.  The crate
  root is a node of the first graph only.
- Comments, literals and visibilities such as `pub(in crate::a)` are ignored.

    python tools/rust_cycles.py [SOURCE_DIRECTORY ...]
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parent.parent
CRATES: Final = ("rust/core/src", "rust/grammar/src", "rust/bindings/src")

Module: TypeAlias = tuple[str, ...]
Graph: TypeAlias = dict[str, set[str]]
# The absolute path behind each name that a module re-exports; `*` for a glob.
Exports: TypeAlias = dict[Module, dict[str, list[Module]]]

# Comments, strings, characters, and the paths of visibilities.  A lifetime is none of these.
_IGNORED: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'|(?<=pub\()in\s[^)]*""",
    re.DOTALL,
)
_USE: Final = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
_INLINE: Final = re.compile(r"(?<![\w:])((?:[A-Za-z_]\w*\s*::\s*)+(?:[A-Za-z_]\w*)?)")
_DECLARED: Final = re.compile(r"\bmod\s+(\w+)\s*;")
_NESTED: Final = re.compile(r"\bmod\s+(\w+)\s*\{")


def without_literals(text: str) -> str:
    """Replace comments, literals and visibilities by spaces of the same length."""
    return _IGNORED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def module_of(source: Path, file: Path) -> Module:
    """Return the module path of a file; the crate root has the empty path."""
    parts = file.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts


def expanded(tree: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of a use tree, each with the name that it declares."""
    tree = tree.strip()
    opening = tree.find("{")
    if opening < 0:
        path, _, alias = (part.strip() for part in tree.partition(" as "))
        segments = [segment.strip() for segment in path.split("::")]
        own = segments[-2] if segments[-1] == "self" and len(segments) > 1 else segments[-1]
        yield path, alias or own
        return
    prefix, depth, begin = tree[:opening], 0, opening + 1
    for position in range(opening, len(tree)):
        if tree[position] == "{":
            depth += 1
        elif tree[position] == "}":
            depth -= 1
        if (tree[position] == "," and depth == 1) or depth == 0:
            if tree[begin:position].strip():
                for path, name in expanded(tree[begin:position]):
                    own = prefix.rstrip(": ").split("::")[-1] if path == "self" else name
                    yield prefix + path, own
            begin = position + 1
        if depth == 0:
            return


def nesting(text: str) -> list[tuple[int, int]]:
    """Return the extents of the inline modules of a file."""
    extents: list[tuple[int, int]] = []
    for found in _NESTED.finditer(text):
        depth = 0
        for position in range(found.end() - 1, len(text)):
            depth += {"{": 1, "}": -1}.get(text[position], 0)
            if depth == 0:
                extents.append((found.start(), position))
                break
    return extents


def inline_paths(text: str) -> Iterator[tuple[int, str]]:
    """Yield the offset and the text of each path outside of use declarations."""
    inside_use = bytearray(len(text))
    for found in _USE.finditer(text):
        inside_use[found.start() : found.end()] = b"\1" * (found.end() - found.start())
    for found in _INLINE.finditer(text):
        if not inside_use[found.start()]:
            yield found.start(), found[1]


def absolute(path: str, module: Module, children: set[str], depth: int) -> Module | None:
    """Return the path from the crate root; None for a path into another crate or a type.

    `depth` is the number of inline modules around the path.
    """
    segments = [segment.strip() for segment in path.split("::")]
    segments = [segment for segment in segments if segment]
    if not segments:
        return None
    first = segments[0]
    if first == "crate":
        return tuple(segments[1:])
    if first in {"super", "self"}:
        levels = 0
        while segments and segments[0] in {"super", "self"}:
            levels += segments.pop(0) == "super"
        levels = max(levels - depth, 0)
        return (*module[: len(module) - levels], *segments)
    if first in children:
        return (*module, *segments)
    return None


class Crate:
    """The modules of a crate, their uses and their re-exports."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.files = {module_of(source, file): file for file in sorted(source.rglob("*.rs"))}
        self.exports: Exports = {}
        self.uses: dict[Module, set[Module]] = {}
        for module, file in self.files.items():
            self._read(module, without_literals(file.read_text(encoding="utf-8")))

    def _read(self, module: Module, text: str) -> None:
        extents = nesting(text)
        children = {name for name in _DECLARED.findall(text) if (*module, name) in self.files}
        uses = self.uses.setdefault(module, set())
        exports = self.exports.setdefault(module, {})

        def target(offset: int, path: str) -> Module | None:
            depth = sum(begin <= offset <= end for begin, end in extents)
            return absolute(path, module, children, depth)

        for found in _USE.finditer(text):
            for path, name in expanded(found[2]):
                used = target(found.start(), path)
                if used is None:
                    continue
                if found[1]:
                    exports.setdefault(name, []).append(used)
                else:
                    uses.add(used)
        for offset, path in inline_paths(text):
            used = target(offset, path)
            if used is not None:
                uses.add(used)

    def declaring(self, path: Module, seen: frozenset[Module] = frozenset()) -> set[Module]:
        """Return the modules that declare the item of a path, behind all re-exports."""
        module = path
        while module not in self.files:
            module = module[:-1]
        rest = path[len(module) :]
        if not rest or path in seen:
            return {module}
        exports = self.exports[module]
        if rest[0] == "*":
            everything = [target for targets in exports.values() for target in targets]
        else:
            everything = exports.get(rest[0], [])
        found: set[Module] = set()
        for target in everything:
            found |= self.declaring((*target, *rest[1:]), seen | {path})
        return found or {module}

    def graph(self) -> Graph:
        """Return the files that each file uses, named relative to the source directory."""
        names = {
            module: file.relative_to(self.source).as_posix() for module, file in self.files.items()
        }
        graph: Graph = {}
        for module, uses in self.uses.items():
            used = {declaring for path in uses for declaring in self.declaring(path)}
            graph[names[module]] = {names[other] for other in used - {module}}
        return graph


def top_level(graph: Mapping[str, set[str]]) -> Graph:
    """Return the same graph with the files of a top-level module as one node, without the root."""

    def top(file: str) -> str:
        return file.split("/", maxsplit=1)[0].removesuffix(".rs")

    roots = {"lib", "main"}
    merged: Graph = {}
    for file, used in graph.items():
        node = merged.setdefault(top(file), set())
        node.update(top(other) for other in used)
    return {name: used - {name} - roots for name, used in merged.items() if name not in roots}


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return a shortest cycle through each node that has one, each cycle once.

    The first node of a cycle is repeated at its end.
    """
    found: dict[frozenset[str], list[str]] = {}
    for start in sorted(graph):
        before: dict[str, str] = {}
        queue = [start]
        for node in queue:
            for other in sorted(graph.get(node, ())):
                if other not in before:
                    before[other] = node
                    queue.append(other)
        if start in before:
            path = [start]
            while path[-1] != start or len(path) == 1:
                path.append(before[path[-1]])
            found.setdefault(frozenset(path), path[::-1])
    return list(found.values())


def findings(source: Path) -> list[str]:
    """Return a line for each cycle of a crate."""
    graph = Crate(source).graph()
    lines = [f"files: {' -> '.join(cycle)}" for cycle in cycles(graph)]
    lines += [f"modules: {' -> '.join(cycle)}" for cycle in cycles(top_level(graph))]
    return lines


def main(arguments: list[str]) -> int:
    """Check each crate and print its cycles."""
    failed = False
    for source in [Path(argument) for argument in arguments] or [ROOT / path for path in CRATES]:
        if not any(source.rglob("*.rs")):
            print(f"{source}: no Rust file")
            failed = True
        for line in findings(source):
            print(f"{source}: import cycle of {line}")
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
