"""A client of HTTP/1.1 for asyncio: the C parser httptools over asyncio's own sockets and TLS."""

from deltafold.transports.http1.client import Http1Client

__all__ = ["Http1Client"]
