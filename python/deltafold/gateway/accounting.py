"""Accounting: what is done with an answer beside giving it to the client.

In: the message of a call.  Out: a kept conversation, and a hook that was told.

Laws: nothing here destroys an answer. A store or a hook that raises, or needs too long, costs the
client nothing: the failure is logged and counted, and what needs too long goes on behind the
answer. A conversation is kept by its owner; the id that an upstream gives twice for different
conversations continues neither. A store that cannot be read is an error before the upstream is
called.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from deltafold.contract.kinds import ErrorCode
from deltafold.contract.log import LOGGER
from deltafold.errors.model_error import ModelError
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.hooks import OnMessage
from deltafold.gateway.refusals import refusal
from deltafold.gateway.response_store import ResponseStore
from deltafold.message.messages import Message

ACCOUNTING_SECONDS: Final = 5.0
"""How long an answer waits for its store and its hook, by default."""

_LONGEST: Final = 60.0
"""Seconds after which a store or a hook is cancelled that went on behind its answer."""


class Accounting:
    """The store and the hook of one application.

    Args:
        store: keeps conversations.
        on_message: is told each message.
        seconds: how long an answer waits for both.

    Attributes:
        failures: how many calls of the store and of the hook have failed.
    """

    def __init__(self, store: ResponseStore, on_message: OnMessage | None, seconds: float) -> None:
        self.failures = 0
        self._store = store
        self._on_message = on_message
        self._seconds = seconds
        self._running: set[asyncio.Task[None]] = set()

    async def continued(self, asked: ClientRequest) -> ClientRequest:
        """Return a request with the conversation that it continues.

        Raises:
            ModelError: the conversation is not kept (404), or the store fails (503).
        """
        if asked.previous is None:
            return asked
        try:
            async with asyncio.timeout(self._seconds):
                known = await self._store.get(asked.previous, asked.owner)
        except Exception as error:
            self._count("the store of responses cannot be read", error)
            message = "previous_response_id: the store of responses does not answer"
            raise refusal(message, ErrorCode.OVERLOADED, 503) from error
        if not known:
            message = f"previous_response_id: the response {asked.previous!r} is not kept here"
            raise refusal(message, ErrorCode.NOT_FOUND, 404)
        return asked.after(tuple(known))

    async def ended(self, asked: ClientRequest, message: Message, error: ModelError | None) -> None:
        """Keep the conversation, and tell the hook, for at most so many seconds."""
        response_id = asked.options.get("response_id") or message.meta.response_id
        tasks: list[asyncio.Task[None]] = []
        if asked.stores and error is None and response_id:
            tasks.append(self._begun("the store", self._keep, response_id, asked, message))
        if self._on_message is not None:
            tasks.append(self._begun("on_message", self._on_message, asked, message, error))
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._seconds)
        if late:
            text = "%d of the store and the hook of an answer took more than %g s; they go on"
            LOGGER.error(text, len(late), self._seconds)

    async def aclose(self) -> None:
        """Let what goes on behind the answers end, for at most so many seconds."""
        running = list(self._running)
        if running:
            await asyncio.wait(running, timeout=self._seconds)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _keep(self, response_id: str, asked: ClientRequest, message: Message) -> None:
        conversation: Sequence[Message] = (*asked.messages, message)
        if "response_id" not in asked.options:  # the upstream's
            known = await self._store.get(response_id, asked.owner)
            if known is not None and _contents(known) != _contents(conversation):
                conversation = ()
        await self._store.put(response_id, conversation, asked.owner)

    def _begun(
        self, what: str, function: Callable[..., Awaitable[None]], *given: object
    ) -> asyncio.Task[None]:
        task = asyncio.create_task(self._guarded(what, function, *given))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _guarded(
        self, what: str, function: Callable[..., Awaitable[None]], *given: object
    ) -> None:
        try:
            async with asyncio.timeout(_LONGEST):
                await function(*given)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the caller's code
            self._count(f"{what} failed after an answer, which the client has", error)

    def _count(self, what: str, error: BaseException) -> None:
        self.failures += 1
        LOGGER.error("%s (failure %d of the store and hook)", what, self.failures, exc_info=error)


def _contents(messages: Sequence[Message]) -> list[object]:
    return [(message.role, message.parts) for message in messages]
