"""Ways of the bad day: Models, agents, and clients of the gateway that share no code with it.

In: a `Call`.  Out: how it ended; the call has the reason.

Laws: a whole answer has exactly the text that its upstream has for its markers, and no byte of an
answer has a marker of another one.
"""

import asyncio
import contextlib
import random
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from bad_day_answers import PATHS, Answer, read_answer, request_body
from bad_day_laws import ERROR, LEFT, WHOLE, Call
from bad_day_orders import markers_of
from deltafold import Agent, AnthropicModel, Model, ModelError, OpenAIChatModel, Tool
from deltafold.conversation import RunStatus
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.transports.timeouts import Timeouts
from soak_processes import Broken
from soak_server import TEXT

IDLE_SECONDS: Final = 8.0
END_SECONDS: Final = 120.0
"""The longest call: one that takes longer is lost."""

HALF_SECONDS: Final = 60.0
"""The longest half request: a head has 15 seconds and a body 30, and descriptors may be lacking."""

TOOL_MILLISECONDS: Final = 500
HANG_SECONDS: Final = 20.0
"""How long a tool hangs, whose limit is shorter."""

OWNERS: Final = 10

MARKER: Final[ContextVar[str]] = ContextVar("marker", default="")
"""The marker of the call, for lines of the log."""

MODELS: Final = ("direct, Chat", "direct, Messages")
AGENTS: Final = ("direct, agent over Chat", "plain, agent over Messages to Chat")
PAIRS: Final = tuple(
    f"{mount}, {protocol} to {model}, {form}"
    for mount in ("plain", "guarded")
    for protocol, model in (
        ("chat", "messages"),
        ("messages", "chat"),
        ("responses", "chat"),
        ("responses", "responses"),
        ("chat", "chat"),
        ("messages", "messages"),
    )
    for form in ("streamed", "whole")
)


@dataclass
class Ways:
    """The clients of one run."""

    models: dict[str, Model[Any]]
    session: aiohttp.ClientSession
    gateway: str

    def __post_init__(self) -> None:
        self.hanging = threading.Event()
        self._ran: dict[str, Counter[str]] = {}
        self._lock = threading.Lock()

    async def run(self, call: Call, owner: int, previous: str = "") -> Answer | None:
        """Make a call, and note how it ended; return the answer of the gateway, None without one.

        Raises:
            Broken: an answer breaks a law.
        """
        MARKER.set(call.order.marker)
        if call.way in MODELS:
            making: Coroutine[Any, Any, Answer] = self._by_model(call)
        elif call.way in AGENTS:
            making = self._by_agent(call)
        else:
            making = self._by_client(call, owner, previous)
        leaving = asyncio.timeout(call.leaves or END_SECONDS)
        try:
            async with leaving:
                answer = await making
        except TimeoutError as error:
            if not leaving.expired():
                raise
            if call.leaves is None:
                raise call.fail(f"no end within {END_SECONDS:g} s") from error
            call.outcome = LEFT
            return None
        if leaving.expired():  # the end of the call took its cancellation for an error
            call.outcome = LEFT
            return None
        if answer.error is None:
            expected = "".join(f"{marker} " for marker in call.markers) + TEXT
            if answer.text != expected:
                raise call.fail(f"whole, with the text {answer.text!r}")
        call.outcome, call.why = (WHOLE, "") if answer.error is None else (ERROR, answer.error)
        return answer

    async def _by_model(self, call: Call) -> Answer:
        try:
            async with self.models[call.way].stream(call.order.text) as stream:
                message = await stream.final_message()
        except ModelError as error:
            partial = error.partial_message
            self._check(call, "" if partial is None else partial.to_json())
            return Answer("", repr(error))
        return Answer(message.text)

    async def _by_agent(self, call: Call) -> Answer:
        loop = {"max_retries": 1, "retry_seconds": 0.05, "on_error": "return"}
        tool = Tool.from_function(self._work, name="work", timeout_ms=TOOL_MILLISECONDS)
        agent: Agent[Any] = Agent({"loop": loop}, [tool], model=self.models[call.way])
        call.asked = 0
        answer = Answer("", "the run has not ended")
        async with contextlib.aclosing(agent.stream(call.order.text)) as events:
            async for event in events:
                call.asked += event.kind in {"turn", "retry"}
                if event.result is not None:
                    call.succeeded += event.result.status is ToolExecutionStatus.SUCCESS
                if event.run is not None:
                    is_whole = event.run.status is RunStatus.COMPLETED
                    answer = Answer(event.run.text, None if is_whole else repr(event.run.error))
        return answer

    def ran(self, marker: str) -> Counter[str]:
        """Return how often each call of a tool ran, and forget it."""
        with self._lock:
            return self._ran.pop(marker, Counter())

    def _work(self, marker: str, call: str, *, hangs: bool) -> str:
        """Work for a call."""
        with self._lock:
            self._ran.setdefault(marker, Counter())[call] += 1
        if hangs:
            self.hanging.wait(HANG_SECONDS)
        return f"done {call}"

    async def _by_client(self, call: Call, owner: int, previous: str) -> Answer:
        mount, pair, form = call.way.split(", ")
        protocol, model = pair.split(" to ")
        body = request_body(
            protocol, model, call.order.text, streams=form == "streamed", previous=previous
        )
        headers = {"authorization": f"Bearer key-{owner}"}
        url = f"{self.gateway}/{mount}{PATHS[protocol]}"
        data = bytearray()
        try:
            async with self.session.post(url, json=body, headers=headers) as response:
                async for chunk in response.content.iter_any():
                    data += chunk
        except aiohttp.ClientError as error:
            shown = data[-600:].decode("utf-8", "replace")
            raise call.fail(f"the answer is no HTTP: {error!r} after {shown}") from error
        finally:
            self._check(call, data.decode("latin-1"))
        try:
            return read_answer(protocol, response.status, response.content_type, bytes(data))
        except Broken as broken:
            raise call.fail(str(broken)) from broken

    def _check(self, call: Call, text: str) -> None:
        foreign = set(markers_of(text)) - set(call.markers)
        if foreign:
            raise call.fail(f"the answer has the markers {foreign} of others")


@contextlib.asynccontextmanager
async def ways(upstream: int, gateway: int) -> AsyncGenerator[Ways]:
    """Make the clients, and close them."""
    direct, through = f"http://127.0.0.1:{upstream}", f"http://127.0.0.1:{gateway}"
    options: Any = {
        "api_key": "key",
        "timeouts": Timeouts(connect=60, first_byte=60, idle=IDLE_SECONDS * 2),
    }
    quick: Any = options | {"timeouts": Timeouts(connect=60, first_byte=60, idle=IDLE_SECONDS)}
    chat, messages = {"model_id": "m"}, {"model_id": "m", "max_tokens": 99}
    made: dict[str, Model[Any]] = {
        MODELS[0]: OpenAIChatModel(chat, base_url=f"{direct}/v1", transport="aiohttp", **quick),
        MODELS[1]: AnthropicModel(messages, base_url=direct, transport="httpx2", **quick),
        AGENTS[0]: OpenAIChatModel(chat, base_url=f"{direct}/v1", transport="aiohttp", **quick),
        AGENTS[1]: AnthropicModel(
            {"model_id": "chat", "max_tokens": 99},
            base_url=f"{through}/plain",
            transport="aiohttp",
            **options,
        ),
    }
    limits = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=0)
    async with contextlib.AsyncExitStack() as stack:
        for model in made.values():
            await stack.enter_async_context(model)
        session = aiohttp.ClientSession(connector=connector, timeout=limits)
        yield Ways(made, await stack.enter_async_context(session), through)


async def half_requests(port: int, chance: random.Random, ended: Counter[str]) -> None:
    """Send half of a head or of a body, and wait until the gateway closes; again and again.

    Args:
        port: the port of the gateway.
        chance: draws the halves.
        ended: how the connections ended.
    """
    body = b'{"model":"chat","messages":[{"role":"user","content":"half"}]}'
    head = b"POST /plain/v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    head += b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    while True:
        kind = chance.choice(["half a head", "half a body"])
        whole, least = (head[:-2], 1) if kind == "half a head" else (head + body, len(head) + 1)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(whole[: chance.randrange(least, len(whole))])
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(HALF_SECONDS):
                    await reader.read()
            ended[kind] += 1
        except TimeoutError as error:
            raise Broken(f"{kind} was not closed within {HALF_SECONDS:g} s") from error
        finally:
            writer.close()
