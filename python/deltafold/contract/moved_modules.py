"""Modules that moved: programs import some by the place that they had before the rooms were made.

In: the old name of a module.  Out: the module itself, the same object under both names.

Law: a name is here only if a program outside of the package imports it. The module is loaded when
the old name is imported, not before.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

_MOVED: Final[Mapping[str, str]] = {
    "deltafold.conversation.run_entries": "deltafold.conversation.history.run_entries",
    "deltafold.cost": "deltafold.message.cost",
    "deltafold.exceptions": "deltafold.contract.exceptions",
}


class _Moved(MetaPathFinder, Loader):
    """Finds a module by its old name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of an old name."""
        del path, target
        return ModuleSpec(fullname, self) if fullname in _MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module at its new place."""
        module = import_module(_MOVED[spec.name])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it was executed under its new name."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


def find_moved_modules() -> None:
    """Let `import` find the old names, after all places where modules are looked for."""
    sys.meta_path.append(_Moved())
