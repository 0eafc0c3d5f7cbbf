"""Clients of this machine.

In: a request.  Out: whether it comes from this machine, and was sent to it by its own name.
"""

import ipaddress

from starlette.requests import Request


def is_local(request: Request) -> bool:
    """Return whether the client of a request is on this machine."""
    host = None if request.client is None else request.client.host
    if host is None:
        return True  # a socket of this machine
    return host == "testclient" or is_name_of_this_machine(host)


def is_name_of_this_machine(host: str | None) -> bool:
    """Return whether a host is `localhost` or a loopback address.

    >>> is_name_of_this_machine("127.0.0.1"), is_name_of_this_machine("example.org")
    (True, False)
    """
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
