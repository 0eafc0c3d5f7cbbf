"""The import contract refuses an upward import, a cycle and a room without a floor.

The contract is that of `pyproject.toml`; the sources are a copy with one planted file. And no
function hides a module.
"""

import ast
import pkgutil
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import grimp
import pytest

import deltafold
from corpus import ROOT

LINTER = Path(sys.executable).with_name("lint-imports")


def linted(folder: Path, planted: dict[str, str]) -> tuple[int, str]:
    """Check a copy of the package with planted files; return the exit status and the report."""
    source = folder / "python" / "deltafold"
    shutil.copytree(
        ROOT / "python" / "deltafold", source, ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in planted.items():
        file = source / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    done = subprocess.run(
        [LINTER, "--no-logo", "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(source.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_imports_of_deltafold_keep_the_contract(tmp_path: Path) -> None:
    status, report = linted(tmp_path, {})
    assert status == 0, report


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        pytest.param(
            {"message/planted.py": "from deltafold.models import Model\n"},
            "deltafold.message is not allowed to import deltafold.models",
            id="upward",
        ),
        pytest.param(
            {"contract/planted.py": "def f():\n    from deltafold.errors import causes\n"},
            "deltafold.contract is not allowed to import deltafold.errors",
            id="upward, inside a function",
        ),
        pytest.param(
            {
                "contract/planted.py": "from typing import TYPE_CHECKING\n"
                "if TYPE_CHECKING:\n    from deltafold.errors import causes\n"
            },
            "deltafold.contract is not allowed to import deltafold.errors",
            id="upward, for type checkers",
        ),
        pytest.param(
            {"streams/planted.py": "import deltafold.compat\n"},
            "deltafold.streams is not allowed to import deltafold.compat",
            id="rooms of one floor",
        ),
        pytest.param(
            {"conversation/history/planted.py": "import deltafold.conversation.agent.agent\n"},
            "deltafold.conversation.history is not allowed to import deltafold.conversation.agent",
            id="upward inside the conversation",
        ),
        pytest.param(
            {"annex/__init__.py": ""},
            "deltafold.annex",
            id="a room that the contract does not place",
        ),
        pytest.param(
            {
                "message/one.py": "import deltafold.message.other\n",
                "message/other.py": "import deltafold.message.one\n",
            },
            "No cycles are allowed in deltafold.message.",
            id="a cycle inside a room",
        ),
    ],
)
def test_a_planted_import_fails(tmp_path: Path, planted: dict[str, str], found: str) -> None:
    status, report = linted(tmp_path, planted)
    assert status == 1
    assert found in " ".join(report.split())


def test_the_rooms_of_the_package_stay_few() -> None:
    graph = grimp.build_graph("deltafold", cache_dir=None)
    rooms = graph.find_children("deltafold")
    for room in rooms:
        graph.squash_module(room)
    arrows = {
        (room, other)
        for room in rooms
        for other in graph.find_modules_directly_imported_by(room) & rooms - {room}
    }
    assert len(rooms) <= 20
    assert len(arrows) <= 95


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
