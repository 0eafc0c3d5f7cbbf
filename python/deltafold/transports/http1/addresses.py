"""Connection to the first of a host's addresses that answers.

In: a host and a port.  Out: a connected socket.

Laws: address families alternate. Each address gets a short time alone before the next one is tried
in parallel. If several answer, one is used and the others are closed. Cancellation leaves no open
socket; asyncio's own race loses a socket that connects at the moment of a cancellation.

Source: RFC 8305, sections 4 and 5 (Happy Eyeballs).
"""

import asyncio
import ipaddress
import socket
from itertools import chain, zip_longest
from typing import Final, TypeAlias, cast

_NEXT_ADDRESS_SECONDS: Final = 0.25

Address: TypeAlias = tuple[
    socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int]
]


async def socket_to(host: str, port: int) -> socket.socket:
    """Return a connected socket that does not block.

    Raises:
        OSError: no address of the host answers, or it has none.
    """
    loop = asyncio.get_running_loop()
    if _is_address(host):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    else:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = by_turns(cast("list[Address]", found))
    if len(addresses) == 1:
        return await _connected(addresses[0])
    return await _first(addresses)


def by_turns(addresses: list[Address]) -> list[Address]:
    """Return the addresses so that their families take turns, the first one's first."""
    first = [one for one in addresses if one[0] == addresses[0][0]]
    others = [one for one in addresses if one[0] != addresses[0][0]]
    pairs = zip_longest(first, others)
    return [one for one in chain.from_iterable(pairs) if one is not None]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _connected(address: Address) -> socket.socket:
    family, kind, protocol, _, place = address
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)  # noqa: FBT003 - the standard library's signature
        await asyncio.get_running_loop().sock_connect(made, place)
    except BaseException:
        made.close()
        raise
    return made


async def _first(addresses: list[Address]) -> socket.socket:
    waiting = addresses[::-1]
    tasks: list[asyncio.Task[socket.socket]] = []
    failures: list[BaseException] = []
    pending: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or pending:
            if waiting:
                tasks.append(asyncio.create_task(_connected(waiting.pop())))
                pending.add(tasks[-1])
            done, pending = await asyncio.wait(
                pending,
                timeout=_NEXT_ADDRESS_SECONDS if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                failure = task.exception()
                if failure is None:
                    tasks.remove(task)
                    return task.result()
                failures.append(failure)
    finally:
        for task in tasks:
            task.cancel()
            task.add_done_callback(_close)
    raise OSError("; ".join(str(failure) for failure in failures)) from failures[0]


def _close(task: "asyncio.Task[socket.socket]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()
