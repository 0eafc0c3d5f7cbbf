"""The orders of the bad day: what a request asks of its upstream and of the gateway's host.

In: the text of a prompt.  Out: an `Order`, and the markers in a text.

Laws: each request has a marker of its own. The last order of a conversation is that of its request.
"""

import re
from dataclasses import dataclass
from typing import Final

FAULTS: Final = ("cut", "reset", "garbage", "error", "stall", "429", "500", "close", "drop")
"""Faults of the upstream: those of the soak, and two of kept connections.

`close` closes the connection after a whole answer, although it was announced to stay. `drop` reads
the first request of a marker and closes the connection without a byte.
"""

TROUBLES: Final = (
    "on_request-raises",
    "on_request-hangs",
    "on_delta-raises",
    "on_delta-hangs",
    "on_message-raises",
    "on_message-hangs",
    "put-raises",
    "put-hangs",
    "get-raises",
    "get-hangs",
)
"""What hooks and the store of the gateway do."""

TOOL_HANGS: Final = "tool-hangs"
"""Trouble of an agent: the first of its two calls hangs."""

_ORDER: Final = re.compile(r"marker=(mark-[0-9a-f]{16}) fault=(\w+) trouble=([\w-]+)")
_MARKER: Final = re.compile(r"mark-[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Order:
    """What one request asks for."""

    marker: str
    fault: str
    trouble: str

    @property
    def text(self) -> str:
        """The prompt."""
        return f"marker={self.marker} fault={self.fault} trouble={self.trouble}"


def last_order(text: str) -> Order | None:
    """Return the last order of a text, None without one."""
    found = _ORDER.findall(text)
    return Order(*found[-1]) if found else None


def markers_of(text: str) -> list[str]:
    """Return the markers in a text, each once, in their order."""
    return list(dict.fromkeys(_MARKER.findall(text)))
