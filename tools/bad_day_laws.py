"""Laws of the bad day: what may become of one call.

In: a `Call` that has ended, and what its upstream, the logs and the tools have seen of it.  Out:
nothing, or `Broken` with the law, the way, the order and the seed.

Laws:
- a call that meets no fault has its whole answer, whatever `on_message` and the writing of the
  store do. The one exception is an error while descriptors are lacking;
- a call that a guard or the reading of the store refuses never reaches the upstream;
- the upstream reads a marker as often as the client has asked for it, and once more only for each
  line of the log about a request that was sent once more;
- of those requests at most as many are answered as the client has asked for, and one that is lost
  on a new connection is not sent again;
- no call of a tool has run twice.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from bad_day_orders import Order
from bad_day_server import Reads
from soak_processes import Broken, Period

WHOLE: Final = "whole"
ERROR: Final = "error"
LEFT: Final = "left"

_HARMLESS: Final = {"none", "close", "drop"}
"""Faults that cost a client nothing."""

AFTER_SECONDS: Final = 2.0
"""How long what excuses an error goes on after its end: asyncio accepts again after a second."""


@dataclass
class Call:
    """One call of a client.

    Attributes:
        order: what it asks for.
        way: how it goes to the upstream.
        seed: the seed of its draws.
        began: when it began, in seconds of `time.monotonic()`, as `ended`.
        leaves: seconds after which the client leaves; None if it does not.
        markers: the markers of its conversation, its own last.
        is_refused: whether it continues a response that its client may not continue.
        asked: requests of the client; the retries of an agent are some.
        outcome: how it ended.
        why: the message of its error.
        ran: how often each call of a tool ran.
        succeeded: results of tools that are no failure.
    """

    order: Order
    way: str
    seed: str
    began: float
    leaves: float | None
    markers: list[str]
    is_refused: bool | None = False
    asked: int = 1
    ended: float = 0.0
    outcome: str = ""
    why: str = ""
    ran: Counter[str] = field(default_factory=Counter[str])
    succeeded: int = 0

    @property
    def through_gateway(self) -> bool:
        """Whether the call goes through the gateway."""
        return not self.way.startswith("direct")

    @property
    def is_stopped(self) -> bool:
        """Whether it is refused before the upstream is called."""
        trouble = self.order.trouble
        reads_store = len(self.markers) > 1 and trouble.startswith("get-")
        return self.is_refused is True or reads_store or trouble.startswith("on_request-")

    def ends(self) -> set[str]:
        """Return how it may end where descriptors are not lacking."""
        trouble, fault = self.order.trouble, self.order.fault
        guarded = self.way.startswith("guarded") and trouble.startswith("on_delta-")
        found = {LEFT} if self.leaves is not None else set[str]()
        if self.is_stopped or guarded or fault not in _HARMLESS:
            return found | {ERROR}
        # A response may be unknown because its store was not read when it was to be kept.
        return found | ({WHOLE} if self.is_refused is False else {WHOLE, ERROR})

    def fail(self, law: str) -> Broken:
        """Return the error of a law that was broken."""
        order = self.order
        what = f"fault {order.fault}, trouble {order.trouble}, {order.marker}, seed {self.seed}"
        return Broken(f"{self.way}, {what}: {law}")


def judge(
    call: Call, reads: Reads, resends: int, lacks: Iterable[Period], stalls: Iterable[Period]
) -> str:
    """Check the laws of a call that has ended; return why an error is excused, "" if none is.

    Args:
        call: the call.
        reads: what the upstream has read of it.
        resends: lines of logs about it.
        lacks: when descriptors were lacking in the gateway.
        stalls: when an event loop stood still.

    Raises:
        Broken: a law is broken.
    """
    _count(call, reads, resends)
    if call.outcome in call.ends():
        return ""
    if call.outcome == ERROR:
        if reads.lost_new:
            return "new connection"  # one that is lost is not tried again
        if call.through_gateway and _is_within(call, lacks):
            return "descriptors"
        if (reads.lost_kept or not reads.read) and _is_within(call, stalls):
            return "stall"  # a connection that is lost after a second is not tried again
    expected = " or ".join(sorted(call.ends()))
    raise call.fail(
        f"it ended as {call.outcome} ({call.why}), not as {expected}; {reads}, {resends} resends"
    )


def _count(call: Call, reads: Reads, resends: int) -> None:
    """Check how often the upstream was called and tools ran."""
    lost = reads.lost_new + reads.lost_kept
    if reads.read > call.asked + resends:
        text = f"{call.asked} requests of the client and {resends} logged resends"
        raise call.fail(f"the upstream has read {reads.read} requests, of {text}")
    if reads.read - lost > call.asked:
        raise call.fail(f"{reads.read - lost} answers to {call.asked} requests of the client")
    if reads.lost_new and call.asked == 1 and reads.read > 1:
        raise call.fail("a request that was lost on a new connection was sent again")
    if reads.read and call.is_stopped:
        raise call.fail("the upstream was called although the request is refused")
    if call.outcome == WHOLE and not reads.read:
        raise call.fail("an answer without a call of the upstream")
    if any(count > 1 for count in call.ran.values()):
        raise call.fail(f"a call of a tool ran twice: {call.ran}")
    if call.succeeded > len(call.ran):
        raise call.fail(f"{call.succeeded} results of {len(call.ran)} calls of tools")


def _is_within(call: Call, periods: Iterable[Period]) -> bool:
    return any(
        call.ended >= began and (ended is None or call.began <= ended + AFTER_SECONDS)
        for began, ended in periods
    )
