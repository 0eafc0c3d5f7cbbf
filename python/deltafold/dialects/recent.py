"""Values of recent requests, within a bound.

In: keys and values.  Out: the value of a key, while it is kept.

Laws: what was not used for the longest time goes first. Any number of threads may use one object.
"""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """Values by their keys.

    >>> recent = Recent[str](most=100, most_bytes=1 << 20)
    >>> recent.keep("a key", "a value", 12)
    >>> recent.find("a key"), len(recent), recent.size
    ('a value', 1, 12)

    Attributes:
        size: bytes that are kept, as `keep` was told.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._lock = Lock()
        self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: Hashable) -> V | None:
        """Return the value of a key, None if there is none any more."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Hashable, value: V, size: int) -> None:
        """Keep a value of so many bytes, its key included."""
        with self._lock:
            _, before = self._kept.pop(key, (value, 0))
            self.size += size - before
            self._kept[key] = (value, size)
            while len(self._kept) > self._most or self.size > self._most_bytes:
                _, (_, gone) = self._kept.popitem(last=False)
                self.size -= gone
