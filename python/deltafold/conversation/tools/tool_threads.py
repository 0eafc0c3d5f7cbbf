"""Threads of synchronous tools: a call that hangs holds its own thread, and nothing else.

In: a synchronous function and its arguments.  Out: what it returned or raised, in the event loop.

Laws: the threads are daemons, so that neither a run nor the process waits for one that hangs, and
the default executor of the event loop, which resolves names, has none of them. The function sees
the context variables of its caller. A generator is stepped in the thread of its call; when the call
has been given up it is closed at its next value, and reports nothing more.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from functools import partial
from threading import Thread
from typing import Final, TypeAlias, cast

MAX_HUNG_TOOLS: Final = 64
"""Threads of a process that may run on after their calls were given up, by default."""

_END: Final = object()
_Steps: TypeAlias = Generator[object, None, object]
_given_up: Final[set[Thread]] = set()
"""Threads whose call was cancelled or exceeded its time limit."""


def hung_threads() -> int:
    """Return how many threads of this process still run although their call was given up."""
    _given_up.difference_update([thread for thread in _given_up if not thread.is_alive()])
    return len(_given_up)


async def call_in_thread(
    function: Callable[..., object],
    arguments: Mapping[str, object],
    on_progress: Callable[[object], None],
) -> object:
    """Call a function in a thread of its own.

    Args:
        function: a synchronous function. Of a generator that it returns, the value is the return
            value, or the last value if that is None.
        arguments: its arguments by name.
        on_progress: receives each value of a generator before the last one, in the event loop.

    Raises:
        BaseException: what the function raised. A StopIteration is a RuntimeError, because no
            coroutine can raise it.
    """
    call = _Call(on_progress)
    context = contextvars.copy_context()
    run = partial(context.run, call.run, function, arguments)
    thread = Thread(target=run, name="deltafold tool", daemon=True)
    thread.start()
    try:
        value, error = await call.ended
    except BaseException:
        _given_up.add(thread)
        raise
    if error is None:
        return value
    try:
        raise error
    finally:
        del error  # its traceback holds this frame


class _Call:
    """One call, between the event loop that awaits it and its thread.

    Attributes:
        ended: the value of the function, and what it raised; cancelled when the call is given up.
    """

    def __init__(self, on_progress: Callable[[object], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_progress = on_progress
        self.ended: asyncio.Future[tuple[object, BaseException | None]]
        self.ended = self._loop.create_future()

    def run(self, function: Callable[..., object], arguments: Mapping[str, object]) -> None:
        """Call the function; in the thread."""
        value: object = None
        error: BaseException | None = None
        try:
            value = function(**arguments)
            if inspect.isgenerator(value):
                value = self._returned_by(cast("_Steps", value))
        except BaseException as raised:  # noqa: BLE001 - is raised where the call is awaited
            error = raised
        self._tell(self._settle, value, error)

    def _returned_by(self, values: "_Steps") -> object:
        last: object = _END
        with closing(values):
            while not self.ended.done():
                returned: object = _END
                value: object = None
                try:
                    value = next(values)
                except StopIteration as stop:
                    returned = stop.value
                if returned is None:
                    return None if last is _END else last
                if last is not _END:
                    self._tell(self._report, last)
                if returned is not _END:
                    return returned
                last = value
        return None

    def _tell(self, function: Callable[..., None], *given: object) -> None:
        with suppress(RuntimeError):  # the event loop was closed: nobody awaits the call
            self._loop.call_soon_threadsafe(function, *given)

    def _settle(self, value: object, error: BaseException | None) -> None:
        if not self.ended.done():
            self.ended.set_result((value, error))

    def _report(self, value: object) -> None:
        if not self.ended.done():
            self._on_progress(value)
