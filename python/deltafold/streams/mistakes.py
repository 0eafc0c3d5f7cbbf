"""Mistakes of the caller, as opposed to failures of a provider or of the network.

In: an exception of a read, or the result of the caller's code.  Out: whose mistake it is.
"""

from collections.abc import Awaitable
from typing import Final

from deltafold.contract.exceptions import MisuseError, UnknownDialectError

# Exceptions of httpx and its relatives for mistakes of the caller, as opposed to network failures.
_MISUSE_NAMES = frozenset({"StreamConsumed", "StreamClosed"})
_OF_THE_CALLER: Final = (
    MisuseError,
    UnknownDialectError,
    TypeError,
    AttributeError,
    AssertionError,
)


class CallerError(Exception):
    """Carries an exception of the caller's code past the handling of transport failures."""


async def finished(result: object) -> None:
    """Await the result of the caller's code, if it is awaitable."""
    if isinstance(result, Awaitable):
        try:
            await result
        except Exception as exception:
            raise CallerError from exception


def is_misuse(exception: Exception) -> bool:
    """Return whether the caller's code is wrong, as opposed to the transport."""
    if isinstance(exception, _OF_THE_CALLER):
        return True
    return any(base.__name__ in _MISUSE_NAMES for base in type(exception).__mro__)
