"""The check of imports finds cycles and upward imports; no function hides a module."""

import ast
import pkgutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import deltafold
import import_order

LAZY = """TYPE_CHECKING = False
if TYPE_CHECKING:
    from pack.left.one import x
_NAMES = {"pack.left.one": ("x",)}
"""

LAYERS = '[["bottom"], ["left", "right"]]'

CLEAN = {
    "__init__": "from pack.left import one\n",
    "bottom": "",
    "left.__init__": "",
    "left.one": "from pack import bottom\n",
    "left.two": "from pack.left.one import x\nimport pack.bottom\n",
    "right": "from pack.left import two\n",
}


def write_package(root: Path, sources: dict[str, str]) -> None:
    (root / "pyproject.toml").write_text(
        f'[tool.import-order]\npackage = "pack"\nlayers = {LAYERS}\n'
    )
    for name, source in sources.items():
        file = root / "pack" / f"{name.replace('.', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)


@pytest.mark.parametrize("init", [CLEAN["__init__"], LAZY], ids=["at once", "on first use"])
def test_a_package_without_cycles_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], init: str
) -> None:
    write_package(tmp_path, {**CLEAN, "__init__": init})
    assert import_order.main(["--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "pack: the imports have no cycle\n"


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        pytest.param(
            {"left.one": "import pack.left.two\n"},
            "cycle of files: pack.left.one -> pack.left.two -> pack.left.one",
            id="two files",
        ),
        pytest.param(
            {"left.one": "def f():\n    from pack.left import two\n"},
            "cycle of files: pack.left.one -> pack.left.two -> pack.left.one",
            id="inside a function",
        ),
        pytest.param(
            {
                "left.one": "from typing import TYPE_CHECKING\n"
                "if TYPE_CHECKING:\n    from pack.left.two import x\n"
            },
            "cycle of files: pack.left.one -> pack.left.two -> pack.left.one",
            id="for type checkers",
        ),
        pytest.param(
            {"left.three": "import pack.right\n"},
            "cycle in pack: pack.left -> pack.right -> pack.left",
            id="two packages by different files",
        ),
        pytest.param(
            {"left.one": "from pack import x\n"},
            "cycle of files: pack -> pack.left.one -> pack",
            id="the package itself",
        ),
        pytest.param(
            {"__init__": LAZY, "left.one": "from pack import x\n"},
            "cycle of files: pack -> pack.left.one -> pack",
            id="the package itself, which imports its names on first use",
        ),
        pytest.param(
            {"bottom": "import pack.right\n", "right": ""},
            "pack.bottom imports pack.right, which is in a higher layer",
            id="upward",
        ),
        pytest.param({"other": ""}, "pack.other is in no layer of pyproject.toml", id="no layer"),
    ],
)
def test_a_cycle_and_an_upward_import_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str], found: str
) -> None:
    write_package(tmp_path, {**CLEAN, **changed})
    assert import_order.main(["--root", str(tmp_path)]) == 1
    assert found in capsys.readouterr().out.splitlines()


def test_the_imports_of_deltafold_have_no_cycle() -> None:
    assert import_order.main([]) == 0


def packages() -> list[str]:
    inner = pkgutil.walk_packages(deltafold.__path__, "deltafold.", onerror=lambda _: None)
    return ["deltafold", *(module.name for module in inner if module.ispkg)]


# The adapters import their frameworks, which are not installed beside the tests.
ADAPTERS = "deltafold.integrations."


@pytest.mark.parametrize("name", [name for name in packages() if name.startswith(ADAPTERS)])
def test_no_public_name_of_an_adapter_hides_a_module(name: str) -> None:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    source = ast.parse(Path(spec.origin).read_text())
    imports = [node for node in source.body if isinstance(node, ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    assert names
    modules = pkgutil.iter_modules(spec.submodule_search_locations)
    assert names.isdisjoint(module.name for module in modules)


@pytest.mark.parametrize("name", [name for name in packages() if not name.startswith(ADAPTERS)])
def test_no_public_name_hides_a_module(name: str) -> None:
    package = import_module(name)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    for public in modules & {*dir(package), *getattr(package, "__all__", ())}:
        assert isinstance(getattr(package, public), ModuleType), f"{name}.{public}"


def test_fold_and_stream_are_functions() -> None:
    assert callable(deltafold.fold)
    assert callable(deltafold.stream)
