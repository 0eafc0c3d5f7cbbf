"""Names that a module imports when they are first used (PEP 562).

In: the table of a module: for each module that defines names, these names.  Out: the module's
`__getattr__`.

Laws: the object under a name is that of the defining module, and is looked up once.  Two threads
that use a name at the same moment get the same object: the import system lets one of them import,
and the other waits.
"""

from importlib import import_module

TYPE_CHECKING = False  # the same for type checkers, without the cost of importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


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
            return import_module(f"{module}.{name}")
        origin = origins.get(name)
        if origin is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value: object = getattr(import_module(origin), name)
        setattr(import_module(module), name, value)
        return value

    return get
