"""Values that are kept as long as the object that they were made of.

In: an object, a value.  Out: the value, for that object alone.

Laws: an object is found by its identity, and not by equality. The table does not keep it alive.
Beyond the bound, the oldest value is removed. The table is safe for threads.
"""

import weakref
from collections.abc import Callable
from threading import RLock
from typing import Generic, TypeVar

V = TypeVar("V")


class Living(Generic[V]):
    """Values by the objects that they were made of.

    >>> lengths = Living[int]()
    >>> lengths.keep(message, 12)
    >>> lengths.find(message), lengths.find(message.model_copy())
    (12, None)

    Args:
        most_bytes: bytes that are kept, as `keep` is told; None is any number.

    Attributes:
        size: bytes that are kept, as `keep` was told.
    """

    def __init__(self, most_bytes: int | None = None) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[int, tuple[weakref.ref[object], V, int]] = {}
        # An object may be freed, and its callback run, while the same thread holds the lock.
        self._lock = RLock()
        self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, one: object) -> V | None:
        """Return the value of an object, None if there is none."""
        kept = self._kept.get(id(one))
        return None if kept is None or kept[0]() is not one else kept[1]

    def keep(self, one: object, value: V, size: int = 0) -> None:
        """Keep a value of so many bytes for an object, which must take weak references.

        Raises:
            TypeError: the object takes none.
        """
        number = id(one)
        kept = (weakref.ref(one, self._forget(number)), value, size)
        with self._lock:
            self._drop(number)
            self._kept[number] = kept
            self.size += size
            while self._most_bytes is not None and self.size > self._most_bytes:
                self._drop(next(iter(self._kept)))

    def drop(self, one: object) -> None:
        """Keep nothing of an object any more."""
        with self._lock:
            if self.find(one) is not None:
                self._drop(id(one))

    def _drop(self, number: int) -> None:
        gone = self._kept.pop(number, None)
        self.size -= 0 if gone is None else gone[2]

    def _forget(self, number: int) -> Callable[[object], None]:
        # The table itself may end before the object does.
        table = weakref.ref(self)

        def forget(reference: object) -> None:
            own = table()
            if own is None:
                return
            with own._lock:  # noqa: SLF001 - of this class
                # Another object may have the place of the first one by now.
                found = own._kept.get(number)  # noqa: SLF001
                if found is not None and found[0] is reference:
                    own._drop(number)  # noqa: SLF001

        return forget
