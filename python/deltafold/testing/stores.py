"""The check of a store: what every store of conversations has to keep.

In: a function that makes stores.  Out: nothing, or an AssertionError that names the fault.

Law: the check uses only new session ids, so that a store may have other sessions, and the stores of
two calls may share their data.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Final, NoReturn
from uuid import uuid4

from deltafold.contract.stores import Store, StoreConflictError

_TEXTS: Final = (
    '{"version":1,"sessionId":"s","runId":null,"metadata":{}}',
    '{"text":"b"}',
    '{"text":"a"}',
    '{"text":"a"}',  # the same text again is another entry
    '{"text":"one\\ntwo\\u0000\\ud800"}',
    '{"text":"Grüße ☃ 🌊 \u2028 \u0085 e\u0301"}',
    '{"text":"\'; --%_\\\\\\""}',
    ' {"text" : "  spaces  "} ',
    f'{{"text":"{"x" * (1 << 20)}"}}',
    '{"text":"after the long one"}',
    '{"text":"10"}',
    '{"text":"11"}',
    '{"text":"12"}',
)
"""More than ten, so that positions in the order of their text are found."""

_SUFFIXES: Final = ("a", "A", "a/b", "a_b", "%", "../a", "a.", "a ", "ä", "a\u0308", "1", "01")
"""Ends of session ids that file systems and databases may take for the same."""

_WRITERS: Final = 4
_RACES: Final = 12
_SECONDS: Final = 60.0


def check_store(make_store: Callable[[], Store]) -> None:
    """Check that a store does what `deltafold.conversation.Store` says.

    It appends, reads back, appends to positions that are taken, mixes the appends of several
    sessions, and lets threads race for a position. Stores that two calls of `make_store` return may
    share their data, as two processes do; then the conflicts between both are checked too.

    >>> from deltafold.conversation import MemoryLogStore
    >>> check_store(MemoryLogStore)

    Args:
        make_store: returns a store; it is called twice, and its caller closes the stores.

    Raises:
        AssertionError: the store has a fault; the text names it.
    """
    store = make_store()
    _check_unknown(store)
    _check_rows(store)
    _check_taken(store)
    _check_sessions(store)
    _check_races(store)
    _check_second(store, make_store())


def _check_unknown(store: Store) -> None:
    if rows := list(store.read(_new_id())):
        _fail(f"read of an unknown session returns {len(rows)} texts, not none")


def _check_rows(store: Store) -> None:
    session_id = _new_id()
    for count, text in enumerate(_TEXTS, 1):
        _append(store, session_id, count - 1, text)
        _compare(store, session_id, _TEXTS[:count], "after an append")
    _compare(store, session_id, _TEXTS, "at a second read")


def _check_taken(store: Store) -> None:
    session_id = _new_id()
    texts = [f'{{"text":"{number}"}}' for number in range(4)]
    for position, text in enumerate(texts):
        _append(store, session_id, position, text)
        for taken in range(position + 1):
            for other in ('{"text":"other"}', texts[taken]):
                _refused(store, session_id, taken, other)
                _compare(store, session_id, texts[: position + 1], "after a conflict")


def _check_sessions(store: Store) -> None:
    base = _new_id()
    session_ids = [f"{base}-{suffix}" for suffix in _SUFFIXES]
    kept: dict[str, list[str]] = {session_id: [] for session_id in session_ids}
    for position in range(3):
        for session_id, texts in kept.items():
            texts.append(f'{{"text":"{len(kept)}.{position}.{session_ids.index(session_id)}"}}')
            _append(store, session_id, position, texts[-1])
    for session_id, texts in kept.items():
        _compare(store, session_id, texts, "beside other sessions")
    # The next position of one session is free where another session has it.
    _append(store, session_ids[0], 3, '{"text":"longer"}')
    _append(store, session_ids[1], 3, '{"text":"longer too"}')
    _compare(store, session_ids[0], [*kept[session_ids[0]], '{"text":"longer"}'], "alone")


def _check_races(store: Store) -> None:
    session_id = _new_id()
    won: list[str] = []
    for position in range(_RACES):
        outcomes = _race(store, session_id, position)
        if len(outcomes) != _WRITERS:
            _fail(f"append did not return within {_SECONDS:.0f} s when threads raced")
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, StoreConflictError):
                _fail(f"append raised {_shown(outcome)} when threads raced", outcome)
        winners = [outcome for outcome in outcomes if isinstance(outcome, str)]
        if len(winners) != 1:
            _fail(
                f"of {_WRITERS} threads that raced for position {position}, {len(winners)} stored "
                "their text, not one: a taken position is taken again, or no caller gets it"
            )
        won += winners
        _compare(store, session_id, won, "after a race")


def _race(store: Store, session_id: str, position: int) -> list[BaseException | str]:
    """Append to one position in several threads; return each text that was stored, or the error."""
    outcomes: list[BaseException | str] = []
    start = threading.Barrier(_WRITERS)

    def write(number: int) -> None:
        text = f'{{"text":"{position} of {number}"}}'
        try:
            start.wait(_SECONDS)
            store.append(session_id, position, text)
        except BaseException as error:  # noqa: BLE001 - the thread that checks reports it
            outcomes.append(error)
        else:
            outcomes.append(text)

    threads = [
        threading.Thread(target=write, args=(number,), daemon=True) for number in range(_WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_SECONDS)
    return outcomes


def _check_second(store: Store, second: Store) -> None:
    session_id = _new_id()
    texts = ['{"text":"first"}', '{"text":"second"}', '{"text":"third"}']
    _append(store, session_id, 0, texts[0])
    _append(store, session_id, 1, texts[1])
    if not list(second.read(session_id)):
        return  # it has data of its own
    _compare(second, session_id, texts[:2], "that another store has written")
    _append(second, session_id, 2, texts[2])
    _refused(store, session_id, 2, texts[0])
    for one in (store, second):
        _compare(one, session_id, texts, "when two stores share the data")


def _append(store: Store, session_id: str, position: int, text: str) -> None:
    try:
        store.append(session_id, position, text)
    except StoreConflictError as error:
        _fail(f"append to the free position {position} raised {_shown(error)}", error)


def _refused(store: Store, session_id: str, position: int, text: str) -> None:
    """Check that an append to a taken position is a conflict."""
    try:
        store.append(session_id, position, text)
    except StoreConflictError:
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the wrong one
        _fail(f"append to a taken position raised {_shown(error)}, no StoreConflictError", error)
    _fail(f"append to the taken position {position} raised no StoreConflictError")


def _compare(store: Store, session_id: str, expected: Sequence[str], when: str) -> None:
    """Check the texts of a session, and name the difference."""
    found = list(store.read(session_id))
    if found == list(expected):
        return
    if found == list(expected[:-1]):
        fault = "the newest text is lost"
    elif len(found) < len(expected):
        fault = f"{len(expected) - len(found)} of {len(expected)} texts are lost"
    elif len(found) > len(expected):
        fault = f"there are {len(found)} texts, not {len(expected)}"
    elif sorted(map(str, found)) == sorted(expected):
        fault = "the texts are in another order"
    else:
        pairs = enumerate(zip(found, expected, strict=True))
        place, (got, given) = next((n, pair) for n, pair in pairs if pair[0] != pair[1])
        fault = f"the text of position {place} is {got!r:.60}, not {given!r:.60}"
    _fail(f"read of a session {when}: {fault}")


def _new_id() -> str:
    return f"check-{uuid4()}"


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _fail(fault: str, cause: BaseException | None = None) -> NoReturn:
    raise AssertionError(fault) from cause
