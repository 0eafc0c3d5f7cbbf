"""The server of a gateway: uvicorn with the settings that long streams need.

In: an ASGI application.  Out: a `uvicorn.Server`, which has not begun.

Laws: after the first signal, answers have so many seconds to end; then each is ended as one whose
upstream was lost. A second signal of either kind ends the process at once. The loggers of uvicorn
show no secret of a query, because clients of Gemini may send their key as `?key=`, and one line for
each record.
"""

import logging
import socket
from contextlib import suppress
from types import FrameType
from typing import Any, Final, cast

import uvicorn

from deltafold.contract.foreign_text import printable
from deltafold.gateway.slow_connections import BODY_SECONDS, HEAD_SECONDS, bounded_protocol
from deltafold.transports.secrets import shown_target

KEEP_ALIVE_SECONDS: Final = 75
"""How long an idle connection stays open.

Clients reuse a connection for a while: httpx, and with it the SDKs of OpenAI and Anthropic, for 5
seconds, aiohttp for 15. A server that closes it first closes some in the moment in which they are
used again, and the client reports a lost connection. uvicorn waits 5 seconds by default.
"""

DRAIN_SECONDS: Final = 30
"""How long answers may go on after the first signal."""

UNSENT_BYTES: Final = 128 * 1024
"""What the kernel keeps of an answer that the network does not take yet.

By itself Linux takes up to 4 MiB for a client that hardly reads. The gateway has read, decoded and
folded all of that, although the client may never see it.
"""


ACCEPTED_AT_ONCE: Final = 1
"""Connections that asyncio accepts in one turn of the event loop.

It takes the length of the kernel's queue for this number, and tries as often in a turn when the
process may open no more files. Each try writes an error with a traceback, and is made again after a
second: with uvicorn's 2,048, 30,000 lines in four seconds.
"""


_LOGGERS: Final = ("uvicorn.access", "uvicorn.error", "uvicorn.asgi")
"""Loggers with targets of requests: HTTP, WebSockets, and scopes at the level trace."""

_QUERY: Final = "query_string"


class _WithoutSecrets(logging.Filter):
    """Filter of a logger that masks the secrets of queries in the arguments of its records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the arguments of a record, whose number and order a formatter may know."""
        if isinstance(record.args, tuple):
            record.args = tuple(map(_shown, record.args))
        return True


def _shown(argument: object) -> object:
    if isinstance(argument, str):
        return printable(shown_target(argument))
    if not isinstance(argument, dict):
        return argument
    scope = cast("dict[str, object]", argument)
    query = scope.get(_QUERY)
    if not isinstance(query, bytes):
        return scope
    return {**scope, _QUERY: shown_target(f"?{query.decode('latin-1')}")[1:]}


_WITHOUT_SECRETS: Final = _WithoutSecrets()


class Server(uvicorn.Server):
    """A server of uvicorn whose kernel takes little more of an answer than the network does."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the answers at the first signal, and at once at the second one of either kind."""
        is_second = self.should_exit
        super().handle_exit(sig, frame)
        self.force_exit = self.force_exit or is_second

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        waiting, self.config.backlog = self.config.backlog, ACCEPTED_AT_ONCE
        try:
            await super().startup(sockets)
        finally:
            self.config.backlog = waiting
        for server in self.servers:
            for listening in server.sockets:
                with listening.dup() as same:
                    same.listen(waiting)
        option: int | None = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # Windows has none
        if option is None:
            return
        for server in self.servers:
            for listening in server.sockets:
                # Connections inherit the options of the socket that accepts them. Sockets of files
                # and some sandboxes have no such option, and answer without it.
                with suppress(OSError):
                    listening.setsockopt(socket.IPPROTO_TCP, option, UNSENT_BYTES)


def make_server(
    app: Any,  # noqa: ANN401 - an ASGI application
    *,
    head_seconds: float = HEAD_SECONDS,
    body_seconds: float = BODY_SECONDS,
    **settings: Any,  # noqa: ANN401 - those of uvicorn
) -> Server:
    """Make the server of a gateway.

    Args:
        app: the ASGI application.
        head_seconds: the longest time from the first byte of a request to the end of its head.
        body_seconds: the longest wait for more of a body.
        settings: the settings of `uvicorn.Config`. `timeout_keep_alive` (75 seconds) also bounds a
            new connection without a byte; `timeout_graceful_shutdown` (30 seconds) is the time that
            answers have after the first signal.

    Example:
        >>> make_server(create_app({"m": model}), host="127.0.0.1", port=4000).run()
    """
    settings.setdefault("timeout_keep_alive", KEEP_ALIVE_SECONDS)
    settings.setdefault("timeout_graceful_shutdown", DRAIN_SECONDS)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_WITHOUT_SECRETS)
    config = uvicorn.Config(app, **settings)
    config.load()
    limits = (config.timeout_keep_alive, head_seconds, body_seconds)
    protocol: Any = config.http_protocol_class
    config.http_protocol_class = bounded_protocol(protocol, limits)
    return Server(config)
