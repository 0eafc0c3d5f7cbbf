"""Transports: HTTP clients and SDKs on one side, unread bodies of responses on the other.

Law: a transport knows bytes and headers, no messages.
"""

from deltafold.contract.lazy_names import names_on_first_use

__getattr__ = names_on_first_use(
    __name__,
    {},
    (
        "deadlines",
        "drain",
        "encodings",
        "response_info",
        "responses",
        "secrets",
        "sources",
        "unready",
    ),
)
