"""The check of a store passes for the stores of the package, and names the fault of a wrong one."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from deltafold.conversation import MemoryLogStore, SQLiteStore, Store, StoreConflictError
from deltafold.testing import check_store


class _Losing(MemoryLogStore):
    def read(self, session_id: str) -> list[str]:
        return super().read(session_id)[:-1]


class _Overwriting:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], str] = {}

    def read(self, session_id: str) -> list[str]:
        own = {position: data for (one, position), data in self.rows.items() if one == session_id}
        return [own[position] for position in sorted(own)]

    def append(self, session_id: str, position: int, data: str) -> None:
        self.rows[session_id, position] = data


class _Appending(_Overwriting):
    """It ignores the position."""

    def append(self, session_id: str, position: int, data: str) -> None:  # noqa: ARG002
        super().append(session_id, len(self.rows), data)


class _ByText(_Overwriting):
    """It sorts positions as texts."""

    def read(self, session_id: str) -> list[str]:
        own = {str(place): data for (one, place), data in self.rows.items() if one == session_id}
        return [own[place] for place in sorted(own)]

    def append(self, session_id: str, position: int, data: str) -> None:
        if (session_id, position) in self.rows:
            raise StoreConflictError(session_id, position)
        super().append(session_id, position, data)


class _Reversing(MemoryLogStore):
    def read(self, session_id: str) -> list[str]:
        return super().read(session_id)[::-1]


class _Mixing(MemoryLogStore):
    """It does not distinguish the cases of ids."""

    def read(self, session_id: str) -> list[str]:
        return super().read(session_id.lower())

    def append(self, session_id: str, position: int, data: str) -> None:
        super().append(session_id.lower(), position, data)


class _OneForAll(MemoryLogStore):
    def read(self, session_id: str) -> list[str]:  # noqa: ARG002
        return super().read("")

    def append(self, session_id: str, position: int, data: str) -> None:  # noqa: ARG002
        super().append("", position, data)


class _Once(MemoryLogStore):
    """It forgets a text that it has already."""

    def append(self, session_id: str, position: int, data: str) -> None:
        if data not in self.read(session_id):
            super().append(session_id, position, data)


class _Racing(MemoryLogStore):
    """It looks whether a position is free, and takes it later."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[tuple[str, int], str] = {}
        self.both = threading.Barrier(2)

    def append(self, session_id: str, position: int, data: str) -> None:
        if (session_id, position) in self.rows:
            raise StoreConflictError(session_id, position)
        if threading.current_thread() is not threading.main_thread():
            self.both.wait(10)
        self.rows[session_id, position] = data

    def read(self, session_id: str) -> list[str]:
        own = {position: data for (one, position), data in self.rows.items() if one == session_id}
        return [own[position] for position in sorted(own)]


class _OtherError(MemoryLogStore):
    def append(self, session_id: str, position: int, data: str) -> None:
        try:
            super().append(session_id, position, data)
        except StoreConflictError as error:
            raise KeyError(position) from error


class _Counting:
    """A handle on shared data that counts the texts by itself."""

    shared = MemoryLogStore()

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def read(self, session_id: str) -> list[str]:
        return self.shared.read(session_id)

    def append(self, session_id: str, position: int, data: str) -> None:
        if position < self.counts.get(session_id, 0):
            raise StoreConflictError(session_id, position)
        self.shared.append(session_id, len(self.shared.read(session_id)), data)
        self.counts[session_id] = position + 1


def test_the_stores_of_the_package_pass(tmp_path: Path) -> None:
    check_store(MemoryLogStore)
    with SQLiteStore(tmp_path / "one.db") as store:
        check_store(lambda: store)
        check_store(lambda: store)
    opened: list[SQLiteStore] = []

    def open_again() -> SQLiteStore:
        opened.append(SQLiteStore(tmp_path / "two.db"))
        return opened[-1]

    check_store(open_again)
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (_Losing, "the newest text is lost"),
        (_Overwriting, "the taken position 0 raised no StoreConflictError"),
        (_Appending, "the taken position 0 raised no StoreConflictError"),
        (_ByText, "the texts are in another order"),
        (_Reversing, "the texts are in another order"),
        (_Mixing, "append to the free position 0 raised StoreConflictError"),
        (_OneForAll, "append to the free position 0 raised StoreConflictError"),
        (_Once, "the newest text is lost"),
        (_Racing, "a taken position is taken again"),
        (_OtherError, "append to a taken position raised KeyError"),
        (_Counting, "the taken position 2 raised no StoreConflictError"),
    ],
)
def test_a_wrong_store_fails_with_its_fault(make: Callable[[], Store], fault: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_store(make)
    assert fault in str(caught.value)
