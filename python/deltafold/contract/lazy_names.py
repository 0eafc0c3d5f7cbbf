"""Names that a module imports when they are first used (PEP 562).

In: the table of a module: for each module that defines names, these names.  Out: the module's
`__getattr__`.

Laws: the object under a name is that of the defining module, and is looked up once.  Two threads
that use a name at the same moment get the same object: the import system lets one of them import,
and the other waits. If each waits for the other, one of them tries again.
"""

from importlib import import_module
from time import sleep

TYPE_CHECKING = False  # the same for type checkers, without the cost of importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_TRIES = 20
_SECONDS_BETWEEN = 0.01


def _imported(origin: str) -> object:
    """Import a module of this package.

    A thread that imports a module waits for its package while it holds the module, and one that
    imports the package does the reverse. CPython then raises in one of them, or gives it a module
    that is not finished, which lacks a name. That thread lets go of what it held and tries again.
    """
    for _ in range(_TRIES):
        try:
            return import_module(origin)
        except (ImportError, RuntimeError) as error:
            if not _is_of_another_thread(error):
                raise
        sleep(_SECONDS_BETWEEN)
    return import_module(origin)


def _is_of_another_thread(error: ImportError | RuntimeError) -> bool:
    """Return whether an import failed because another thread imports the same modules."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0] == "deltafold"
    return type(error).__name__ == "_DeadlockError"


def names_on_first_use(
    module: str, names: "Mapping[str, Sequence[str]]", submodules: "Sequence[str]" = ()
) -> "Callable[[str], object]":
    """Return the `__getattr__` of a module.

    Args:
        module: the name of the module.
        names: the names by the module that defines them.
        submodules: names of modules below this one, which are imported as attributes.
    """
    origins = {name: origin for origin, defined in names.items() for name in defined}

    def get(name: str) -> object:
        if name in submodules:
            return _imported(f"{module}.{name}")
        origin = origins.get(name)
        if origin is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value: object = getattr(_imported(origin), name)
        setattr(import_module(module), name, value)
        return value

    return get
