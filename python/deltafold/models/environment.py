"""Environment variables that a vendor's own SDK reads: keys, addresses, headers.

In: a vendor's row.  Out: the values of its variables.

Laws: a variable applies only to the vendor whose row names it, so that a key is never sent to the
address of another vendor's variable. White space alone counts as no value. No message shows a
value.
"""

import ipaddress
from os import environ
from typing import Final
from urllib.parse import urlsplit

from deltafold.contract.exceptions import MisuseError
from deltafold.models.vendors import Vendor
from deltafold.transports.secrets import clean_headers, clean_key

_OLLAMA_PORT: Final = 11434


def key_from_environment(vendor: Vendor) -> str | None:
    """Return the key of a vendor, None where no variable holds one.

    Raises:
        MisuseError: it has a character that cannot be sent.
    """
    return _first_key((*vendor.earlier_key_variables, vendor.key_variable))


def token_from_environment(vendor: Vendor) -> str | None:
    """Return the bearer token that replaces a key, None if the variable has no value."""
    return _first_key((vendor.token_variable,))


def headers_from_environment(vendor: Vendor) -> dict[str, str]:
    """Return the headers that variables set, such as OpenAI's organization."""
    variables = vendor.header_variables.items()
    values = {name: environ[variable] for name, variable in variables if variable in environ}
    return {name: value for name, value in clean_headers(values).items() if value}


def address_from_environment(vendor: Vendor, dialect: str) -> str | None:
    """Return the base URL that a variable sets for a dialect, None where none does.

    Raises:
        MisuseError: a variable holds no address.
    """
    for variable in vendor.address_variables:
        # A missing variable is the usual case, for which `get` raises and catches two errors.
        value = environ[variable].strip() if variable in environ else ""
        if value:
            if vendor.address_is_host:
                path = urlsplit(vendor.addresses[dialect] or "").path
                return _address_of_host(value, variable) + path
            if not value.startswith(("http://", "https://")):
                raise MisuseError(f"{variable} must be an http or https URL")
            return value
    return None


def _first_key(variables: tuple[str | None, ...]) -> str | None:
    for variable in variables:
        if variable and variable in environ and (key := clean_key(environ[variable], variable)):
            return key
    return None


def _address_of_host(value: str, variable: str) -> str:
    """Read a host as Ollama does: scheme, port and host may be missing.

    Source: `_parse_host` of the ollama package 0.6.3.
    """
    scheme, mark, place = value.partition("://")
    if not mark:
        scheme, place = "http", value
    port: int | None = {"http": 80, "https": 443}.get(scheme) if mark else _OLLAMA_PORT
    try:
        parts = urlsplit(f"{scheme}://{place}")
        host, port = parts.hostname or "127.0.0.1", parts.port or port
    except ValueError:
        port, host, parts = None, "", urlsplit("")
    if port is None:
        raise MisuseError(f"{variable} must be a host, a port, or an http or https URL")
    path = parts.path.strip("/")
    return f"{scheme}://{_bracketed(host)}:{port}{'/' if path else ''}{path}"


def _bracketed(host: str) -> str:
    try:
        is_ipv6 = ipaddress.ip_address(host).version == 6  # noqa: PLR2004 - the protocol's number
    except ValueError:
        return host
    return f"[{host}]" if is_ipv6 else host
