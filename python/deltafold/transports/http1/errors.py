"""Failures between this client and a server, beside those of the operating system.

`deltafold.error_mapping` reads the names: a lost connection is retryable, an answer that violates
the protocol is not.
"""


class ConnectionLostError(ConnectionError):
    """The connection was not made, or it ended before the response did."""


class ResponseError(ConnectionError):
    """The received bytes are not HTTP/1.1."""


class ProtocolViolationError(Exception):
    """The response is HTTP, but exceeds the limits of a response."""


class ProxyError(ConnectionError):
    """The proxy refused the request.

    Attributes:
        status: the status of its answer to CONNECT.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
