"""Packages that are installed or not: imported when they are needed, missed by name."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from deltafold.contract.exceptions import MisuseError

EXTRAS: Final[Mapping[str, str]] = {
    "httpx": "httpx",
    "httpx2": "httpx2",
    "aiohttp": "aiohttp",
}
"""Packages of `make_http_client`, and the extra that installs each."""

MAX_CONNECTIONS: Final = 1000
MAX_IDLE_CONNECTIONS: Final = 100
"""Limits of a client that is made here: connections in all, unless the Model sets another number,
and connections without a request."""


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
