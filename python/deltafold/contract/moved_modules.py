"""Modules that moved: programs import some by the place that they had before the rooms were made.

In: the old name of a module.  Out: the module itself, the same object under both names.

Laws: a name is here only if a program outside of the package imports it. The module is loaded when
the old name is imported, not before. This file imports nothing that takes time, because the package
imports it first.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

_MOVED = {
    "deltafold.conversation.run_entries": "deltafold.conversation.history.run_entries",
    "deltafold.cost": "deltafold.message.cost",
    "deltafold.exceptions": "deltafold.contract.exceptions",
}


class _Moved:
    """Finder and loader of modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of an old name."""
        del path, target
        # The class of loaders costs as much time to import as the whole package.
        loader: object = self
        return ModuleSpec(fullname, loader) if fullname in _MOVED else None  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - as above

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
