"""The server of a gateway: uvicorn with the settings that long streams need.

In: an ASGI application.  Out: a `uvicorn.Server`, which has not begun.

Law: the loggers of uvicorn show no secret of a query, because clients of Gemini may send their key
as `?key=`, and one line for each record.
"""

import logging
import socket
from contextlib import suppress
from typing import Any, Final, cast

import uvicorn

from deltafold.contract.foreign_text import printable
from deltafold.transports.secrets import shown_target

KEEP_ALIVE_SECONDS: Final = 75
"""How long an idle connection stays open.

Clients reuse a connection for a while: httpx, and with it the SDKs of OpenAI and Anthropic, for 5
seconds, aiohttp for 15. A server that closes it first closes some in the moment in which they are
used again, and the client reports a lost connection. uvicorn waits 5 seconds by default.
"""

UNSENT_BYTES: Final = 128 * 1024
"""What the kernel keeps of an answer that the network does not take yet.

By itself Linux takes up to 4 MiB for a client that hardly reads. The gateway has read, decoded and
folded all of that, although the client may never see it.
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        option: int | None = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # Windows has none
        if option is None:
            return
        for server in self.servers:
            for listening in server.sockets:
                # Connections inherit the options of the socket that accepts them. Sockets of files
                # and some sandboxes have no such option, and answer without it.
                with suppress(OSError):
                    listening.setsockopt(socket.IPPROTO_TCP, option, UNSENT_BYTES)


def make_server(app: Any, **settings: Any) -> Server:  # noqa: ANN401 - those of uvicorn
    """Make the server of a gateway.

    Args:
        app: the ASGI application.
        settings: the settings of `uvicorn.Config`.

    Example:
        >>> make_server(create_app({"m": model}), host="127.0.0.1", port=4000).run()
    """
    settings.setdefault("timeout_keep_alive", KEEP_ALIVE_SECONDS)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_WITHOUT_SECRETS)
    return Server(uvicorn.Config(app, **settings))
