"""A stream that is left: its connection is closed, and nothing waits for the garbage collector."""

import gc
import sys
import warnings
import weakref
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

import anyio
import anyio.lowlevel
import httpx
import httpx2
import pytest

from deltafold import AnthropicModel, AsyncDeltaStream, DeltaStream, ErrorCode
from deltafold.testing import Recording, ReplayServer
from deltafold.transports.timeouts import Timeouts
from replay_servers import wait_until_closed
from stalled_answers import HALF, SILENT, UNLIMITED, every_client, model_of
from wires import ANTHROPIC

WHOLE: Final = Recording.of_events(ANTHROPIC)
EMPTY: Final = HALF.stopping("stall", 0)
LIMITED: Final = Timeouts(connect=None, first_byte=None, idle=0.1)

Form: TypeAlias = Callable[[Any], Any]

FORMS: Final[dict[str, Form]] = {
    "deltas": lambda stream: stream,
    "batches": lambda stream: stream.batches(),
    "text": lambda stream: stream.text(),
}


class OwnError(Exception):
    """Exception of the caller."""


@contextmanager
def nothing_left() -> Generator[list[str]]:
    """Fail if a generator or an exception is left to the collector; yield what warnings say."""
    left: list[object] = []
    said: list[str] = []
    hooks, unraisable = sys.get_asyncgen_hooks(), sys.unraisablehook

    def finalizer(generator: Any) -> None:  # noqa: ANN401 - what Python passes
        left.append(generator.__qualname__)
        if hooks.finalizer is not None:
            hooks.finalizer(generator)

    def raised(about: Any) -> None:  # noqa: ANN401 - what Python passes
        if isinstance(about.exc_value, ResourceWarning):
            said.append(str(about.exc_value))
        else:
            left.append(about.exc_value)

    gc.collect()
    gc.disable()
    sys.set_asyncgen_hooks(finalizer=finalizer)
    sys.unraisablehook = raised
    try:
        with warnings.catch_warnings(action="error"):
            yield said
    finally:
        sys.unraisablehook = unraisable
        sys.set_asyncgen_hooks(*hooks)
        gc.enable()
    assert left == []


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer({"*": HALF}) as replay:
        yield replay
        wait_until_closed(replay)


async def break_off(stream: AsyncDeltaStream, form: Form) -> None:
    async with stream:
        async for _ in form(stream):
            break


async def fail(stream: AsyncDeltaStream, form: Form) -> None:
    with suppress(OwnError):
        async with stream:
            async for _ in form(stream):
                raise OwnError


async def cancel(stream: AsyncDeltaStream, form: Form) -> None:
    with anyio.move_on_after(0.1):
        async with stream:
            async for _ in form(stream):
                pass


async def finish(stream: AsyncDeltaStream, _: Form) -> None:
    async with stream:
        await stream.final_message()


WAYS: Final[dict[str, tuple[Recording, Callable[[AsyncDeltaStream, Form], Awaitable[None]]]]] = {
    "break": (HALF, break_off),
    "exception of the caller": (HALF, fail),
    "cancelled before the headers": (SILENT, cancel),
    "cancelled before the first byte": (EMPTY, cancel),
    "cancelled between two reads": (HALF, cancel),
    "read to its end": (WHOLE, finish),
}


async def left_in(
    server: ReplayServer,
    package: str,
    leave: Callable[[AsyncDeltaStream], Awaitable[None]],
    timeouts: Timeouts = UNLIMITED,
) -> tuple[list[str], bool]:
    """Leave a stream; return the warnings, and whether its reader is gone without a collection."""
    async with model_of(package, server.url, timeouts) as model:
        with nothing_left() as said:
            stream = model.stream("Hello")
            core = weakref.ref(getattr(stream, "_core"))  # noqa: B009 - private
            await leave(stream)
            del stream
            await anyio.lowlevel.checkpoint()  # a task that was cancelled lets go of its frames
        return said, core() is None


@pytest.mark.one_in(7)
@every_client
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_is_left_leaves_nothing(
    package: str, loop: str, way: str, form: str, server: ReplayServer
) -> None:
    recording, leave = WAYS[way]
    server.recordings = {"*": recording}

    async def main() -> None:
        outcome = await left_in(server, package, lambda stream: leave(stream, FORMS[form]))
        assert outcome == ([], True)

    anyio.run(main, backend=loop)


@every_client
def test_a_limit_leaves_nothing(package: str, loop: str, server: ReplayServer) -> None:
    codes: list[ErrorCode | None] = []

    async def read(stream: AsyncDeltaStream) -> None:
        async with stream:
            codes.extend([delta.error_code async for delta in stream if delta.error_code])

    async def main() -> None:
        assert await left_in(server, package, read, timeouts=LIMITED) == ([], True)

    anyio.run(main, backend=loop)
    assert codes == [ErrorCode.TIMEOUT]


@every_client
def test_a_stream_that_is_dropped_warns(package: str, loop: str, server: ReplayServer) -> None:
    async def main() -> None:
        async with model_of(package, server.url) as model:
            stream = model.stream("Hello")
            await anext(stream)
            del stream
            gc.collect()
            await anyio.sleep(0.05)

    # Nothing can be awaited for a stream that is gone: the generators of its client are left.
    with warnings.catch_warnings(record=True, action="always") as said:
        anyio.run(main, backend=loop)
    ours = [one for one in said if "abandoned <AsyncDeltaStream" in str(one.message)]
    assert [one.category for one in ours] == [ResourceWarning]


# The same for a stream that is read by waiting.


def break_off_sync(stream: DeltaStream, form: Form) -> None:
    with stream:
        for _ in form(stream):
            break


def fail_sync(stream: DeltaStream, form: Form) -> None:
    with suppress(OwnError), stream:
        for _ in form(stream):
            raise OwnError


def drop_sync(stream: DeltaStream, form: Form) -> None:
    next(iter(form(stream)))


WAITING: Final = {"break": break_off_sync, "exception": fail_sync, "dropped": drop_sync}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("package", ["httpx", "httpx2"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAITING)
def test_a_synchronous_stream_that_is_left_leaves_nothing(
    package: str, way: str, form: str, server: ReplayServer
) -> None:
    make: Any = {"httpx": httpx.Client, "httpx2": httpx2.Client}[package]
    with make() as client:
        model = AnthropicModel(
            {"model_id": "m"}, client=client, base_url=server.url, api_key="key", timeouts=UNLIMITED
        )
        with nothing_left() as said:
            stream = model.stream_sync("Hello")
            core = weakref.ref(getattr(stream, "_core"))  # noqa: B009 - private
            WAITING[way](stream, FORMS[form])
            del stream
        assert core() is None
        if way == "dropped":
            assert [text.partition(" ")[0] for text in said] == ["abandoned"]
            wait_until_closed(server)  # dropping closes what can be closed without waiting
        else:
            assert said == []
