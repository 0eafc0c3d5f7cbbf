"""`deltafold doctor`: what is installed, which keys are found, and what would be called.

In: the environment, and optionally the name of a model.  Out: tables.

Law: no value of a key, and no user or password of a proxy, is printed. Nothing is sent.
"""

import platform
import re
import sys
from importlib import metadata
from os import environ
from typing import Any, Final

from deltafold import VENDORS, MisuseError, Model, __version__, load_model
from deltafold.cli.exits import EXIT_DONE, EXIT_USAGE, complain
from deltafold.cli.list_models import key_of
from deltafold.cli.table import print_table
from deltafold.transports.requests import HttpRequest
from deltafold.transports.secrets import shown_url
from deltafold.transports.sources import AsyncSource, Source

_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE")
_REQUIREMENT: Final = re.compile(r"""([\w.-]+)\s*([^;]*);\s*extra\s*==\s*['"]([\w-]+)['"]""")
# RFC 9110 and the vendors' documents: the values of all other headers may be shown.
_SHOWN_HEADERS: Final = frozenset({"accept", "anthropic-version", "content-type"})


def examine(model: str | None) -> int:
    """Print what deltafold finds in its environment; returns the exit code."""
    keeper = _Keeper()
    try:
        called = None if model is None else load_model(model, client=keeper)
    except (MisuseError, ValueError) as problem:
        complain(problem)
        return EXIT_USAGE
    print_table(
        ("version", ""),
        [
            ("deltafold", __version__),
            ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
            ("platform", f"{platform.system()} {platform.machine()}"),
            ("pydantic", metadata.version("pydantic")),
            ("executable", sys.executable),
        ],
    )
    print()
    print_table(("extra", "package", "installed"), _extras())
    print()
    print_table(("environment", "value"), _variables())
    if model is None or called is None:
        return EXIT_DONE
    print()
    return _show_call(model, called, keeper)


def _extras() -> list[tuple[str, str, str]]:
    """Return the packages of each extra, and their installed versions."""
    rows: list[tuple[str, str, str]] = []
    for requirement in metadata.requires("deltafold") or ():
        found = _REQUIREMENT.match(requirement)
        if found is not None:
            package, bound, extra = found.groups()
            rows.append((extra, f"{package}{bound.strip()}", _installed(package)))
    return rows or [("none", "", "")]


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "-"


def _variables() -> list[tuple[str, str]]:
    """Return the variables that deltafold or its HTTP client reads and that are set."""
    rows: dict[str, str] = {}
    for vendor in VENDORS.values():
        secret = (*vendor.earlier_key_variables, vendor.key_variable, vendor.token_variable)
        rows |= dict.fromkeys((name for name in secret if name and _is_set(name)), "set")
        addresses = (name for name in vendor.address_variables if _is_set(name))
        rows |= {name: shown_url(environ[name]) for name in addresses}
        headers = vendor.header_variables.values()
        rows |= dict.fromkeys((name for name in headers if _is_set(name)), "set")
    for name in _PROXIES:
        for spelled in (name, name.lower()):
            if _is_set(spelled):
                rows[spelled] = shown_url(environ[spelled])
    return list(rows.items()) or [("no key, address or proxy is set", "")]


def _is_set(name: str) -> bool:
    return bool(environ.get(name, "").strip())


class _NotSent(Exception):  # noqa: N818 - it is no error
    """The request is known."""


class _Keeper:
    """Transport that keeps the request and sends nothing."""

    def __init__(self) -> None:
        self.request: HttpRequest | None = None

    def open(self, request: HttpRequest) -> Source:
        self.request = request
        raise _NotSent

    async def open_async(self, request: HttpRequest) -> AsyncSource:
        self.request = request
        raise _NotSent


def _show_call(name: str, called: Model[Any], keeper: _Keeper) -> int:
    try:
        with called, called.stream_sync("Hello") as stream:
            list(stream)
    except (MisuseError, ValueError) as problem:
        complain(problem)
        return EXIT_USAGE
    if keeper.request is None:
        complain(f"{name} is not called over HTTP")
        return EXIT_USAGE
    request = keeper.request
    rows = [
        ("address", f"{request.method} {shown_url(request.full_url)}"),
        ("key", key_of(VENDORS[called.provider_id])),
    ]
    rows += [
        (f"header {header}", value if header.lower() in _SHOWN_HEADERS else "set, not shown")
        for header, value in request.headers.items()
    ]
    rows.append(("body", request.content.decode()))
    print_table((f"a call of {name}", ""), rows)
    return EXIT_DONE
