"""Packages that are installed or not: imported when they are needed, missed by name."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from deltafold.contract.exceptions import MisuseError

try:
    import resource
except ImportError:  # Windows
    _open_files = None
else:
    _open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

EXTRAS: Final[Mapping[str, str]] = {
    "httpx": "httpx",
    "httpx2": "httpx2",
    "aiohttp": "aiohttp",
}
"""Packages of `make_http_client`, and the extra that installs each."""

_FEWEST, _MOST = 1_000, 10_000


def connections_for(files: int | None) -> int:
    """Return how many connections a client may have in a process with so many open files.

    Half of them, and 1,000 at least. None or a negative number is a process without a limit.
    """
    return _MOST if files is None or files < 0 else min(max(files // 2, _FEWEST), _MOST)


MAX_CONNECTIONS: Final = connections_for(_open_files)
MAX_IDLE_CONNECTIONS: Final = 100
"""Limits of a client that is made here: connections in all, unless the Model sets another number,
and connections without a request."""


def check_transport(name: object) -> None:
    """Check the name of a package that `make_http_client` knows.

    Raises:
        MisuseError: it is another; the error names those that there are.
    """
    if name not in EXTRAS:
        raise MisuseError(f"transport: {name!r} is not known; known: {', '.join(EXTRAS)}")


def import_package(package: str) -> Any:  # noqa: ANN401 - a module whose types are not installed everywhere
    """Import a package of `EXTRAS`.

    Raises:
        MisuseError: it is not installed; the error names the command that installs it.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as missing:
        raise MisuseError(
            f"{package} is not installed: pip install 'deltafold[{EXTRAS[package]}]'"
        ) from missing
