"""Values of objects that live: what was made of one is kept as long as it is.

In: an object, a value.  Out: the value, for that object alone.

Laws: an object is found by its identity, whatever it is equal to, and is not kept alive. Any number
of threads may use one table.
"""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class Living(Generic[V]):
    """Values by the objects that they were made of.

    >>> lengths = Living[int]()
    >>> lengths.keep(message, 12)
    >>> lengths.find(message), lengths.find(message.model_copy())
    (12, None)
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[object], V]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, one: object) -> V | None:
        """Return the value of an object, None if there is none."""
        kept = self._kept.get(id(one))
        return None if kept is None or kept[0]() is not one else kept[1]

    def keep(self, one: object, value: V) -> None:
        """Keep the value of an object, which must take weak references.

        Raises:
            TypeError: the object takes none.
        """
        number = id(one)
        self._kept[number] = (weakref.ref(one, self._forget(number)), value)

    def drop(self, one: object) -> None:
        """Keep nothing of an object any more."""
        if self.find(one) is not None:
            self._kept.pop(id(one), None)

    def _forget(self, number: int) -> Callable[[object], None]:
        kept = self._kept

        def forget(reference: object) -> None:
            # Another object may have the place of the first one by now.
            found = kept.get(number)
            if found is not None and found[0] is reference:
                kept.pop(number, None)

        return forget
