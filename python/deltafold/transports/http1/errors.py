"""What goes wrong between this client and a server, beside what the operating system says.

The names are read by `deltafold.error_mapping`: a lost connection may be tried again, an answer
that breaks the rules may not.
"""


class ConnectionLostError(ConnectionError):
    """There is no connection, or it ended before the response did."""


class ResponseError(ConnectionError):
    """What came is no HTTP/1.1."""


class ProtocolViolationError(Exception):
    """What came is HTTP, and beyond what a response may be."""


class ProxyError(ConnectionError):
    """The proxy did not let the request through.

    Attributes:
        status: what it answered to CONNECT.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
