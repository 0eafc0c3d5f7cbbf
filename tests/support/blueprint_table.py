"""The table of the founding documents, and the rules that its rows obey.

In: the Markdown of the table, and the sources of the tests that it names.  Out: rows, and the fault
of a row as a text, None if it has none.

Laws: a quotation has the words of a document in quotation marks, and its meaning in parentheses
where the words are Chinese. A test uses the name of its row and checks a result that it observed.
An import, an annotation, and an assertion that the name exists do not count as uses.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from corpus import ROOT

TESTS: Final = {path.name: path for path in (ROOT / "tests").rglob("test_*.py")}
"""The place of each test file, by its name: no two have the same."""
TABLE: Final = ROOT / "docs" / "blueprint.md"

_CODE = re.compile(r"`([^`]+)`")
_QUOTATION = re.compile(r'"([^"]+)"')
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_MEANING = re.compile(r"\([^()]*[A-Za-z]{2}[^()]*\)")
_SEEKERS: Final = frozenset(dir(builtins)) | {"import_module"}


class Row(NamedTuple):
    """One row of the table."""

    place: str
    asked: str
    name: str
    file: str
    test: str
    differs: str


def rows_of(markdown: str) -> list[Row]:
    """Read the rows of all tables.

    Raises:
        ValueError: a row does not have five cells, or no name and test.
    """
    rows: list[Row] = []
    for line in markdown.splitlines():
        if not line.startswith("| 00"):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        named = [_CODE.fullmatch(cell) for cell in cells[2:4]]
        if len(cells) != 5 or None in named:
            raise ValueError(f"not a row of the table: {line}")
        name, test = (match[1] for match in named if match is not None)
        file, _, function = test.partition("::")
        rows.append(Row(cells[0], cells[1], name, file, function, cells[4]))
    return rows


def fault_of_quotation(asked: str) -> str | None:
    """Return the reason why a cell does not quote a document, None if it does."""
    quotations = _QUOTATION.findall(asked)
    rest = _QUOTATION.sub("", asked).strip()
    if not asked.startswith('"') or not quotations:
        return "it does not begin with a quotation"
    if min(map(len, quotations)) < 4:
        return "a quotation has fewer than four characters"
    if _CHINESE.search(rest):
        return "Chinese words are not in quotation marks"
    chinese = [one for one in _QUOTATION.finditer(asked) if _CHINESE.search(one[1])]
    if chinese and _MEANING.search(_QUOTATION.sub("", asked[chinese[-1].end() :])) is None:
        return "the English meaning does not follow in parentheses"
    return None


def fault_of_test(name: str, test: str, source: str) -> str | None:
    """Return the reason why a test does not check a name by behaviour, None if it does.

    The use may be in a function, a class or a fixture of the same module that the test uses.
    """
    definitions = {node.name: node for node in ast.parse(source).body if isinstance(node, _DEFINED)}
    function = definitions.get(test)
    if function is None:
        return "the test does not exist"
    if not _observes(function):
        return "the test asserts nothing that it observed, and expects no error"
    used = _Uses(function).names
    helpers = [definitions[one] for one in used & definitions.keys() if one != test]
    wanted = name.rpartition(".")[2]
    if not any(wanted in names for names in (used, *(_Uses(one).names for one in helpers))):
        return f"neither the test nor its helpers use {wanted}"
    return None


_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class _Uses(ast.NodeVisitor):
    """Names and attributes that a definition uses in something that it does."""

    def __init__(self, definition: _Defined) -> None:
        self.names: set[str] = set()
        self._bound = _bound(definition)
        if isinstance(definition, ast.ClassDef):
            self.names |= {one.name for one in definition.body if isinstance(one, _DEFINED)}
        self.visit(definition)

    def visit_Name(self, node: ast.Name) -> None:
        self.names.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.names.add(node.attr)
        self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        self.names.add(node.arg)  # the name of a fixture; the annotation is no use

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_all((*node.decorator_list, node.args, *node.body))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_all((*node.decorator_list, node.args, *node.body))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not _is_bare(node.value, self._bound):
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not _is_bare(node.value, self._bound):
            self._visit_all((*node.targets, node.value))

    def visit_Expr(self, node: ast.Expr) -> None:
        if not _is_bare(node.value, self._bound):
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        if _is_observed(node.test, self._bound):
            self.visit(node.test)

    def _visit_all(self, nodes: Sequence[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)


def _observes(function: ast.AST) -> bool:
    """Return whether a test asserts an observed result, or expects an error of an action."""
    bound = _bound(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and _is_observed(node.test, bound):
            return True
        if isinstance(node, ast.With | ast.AsyncWith) and _expects(node):
            return True
    return False


def _expects(node: ast.With | ast.AsyncWith) -> bool:
    calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    raises = any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "raises" for call in calls
    )
    actions = ast.Call | ast.Assign | ast.Delete
    return raises and any(isinstance(one, actions) for line in node.body for one in ast.walk(line))


def _bound(definition: ast.AST) -> set[str]:
    """Return the names that hold something observed: parameters, and results of calls."""
    bound = {node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)}
    while True:
        found = {
            name
            for target, value in _assignments(definition)
            if _is_observed(value, bound)
            for name in _names(target)
        }
        if found <= bound:
            return bound
        bound |= found


def _assignments(definition: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    for node in ast.walk(definition):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield target, value
            case ast.NamedExpr(target=target, value=value):
                yield target, value
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                yield node.target, node.iter
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                yield target, value
            case _:
                continue


def _is_observed(value: ast.AST, bound: set[str]) -> bool:
    """Return whether an expression calls something, or has a name that holds something observed."""
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and node.id in bound:
            return True
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called not in _SEEKERS:
                return True
    return False


def _is_bare(value: ast.AST, bound: set[str]) -> bool:
    """Return whether an expression only finds names."""
    return not _is_observed(value, bound) and isinstance(value, ast.Name | ast.Attribute | ast.Call)


def _names(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
