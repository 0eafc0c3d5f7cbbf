"""Texts of failures for the clients of a gateway: they name no host and no port of an upstream.

In: a failure.  Out: its message, or a text in place of the message of an HTTP client.

Laws: a message that a provider, a hook or a limit of deltafold wrote is kept. A message that an
exception of an HTTP client or an SDK brought may name an address, in a form that depends on the
client, so that none of its words are shown. The log and the `ModelError` of a caller keep it.
"""

from collections.abc import Mapping
from typing import Final

from deltafold.contract.kinds import ErrorCode
from deltafold.errors.causes import DNS_FAILURE, REFUSED, UNTRUSTED
from deltafold.errors.mapper import ErrorFields
from deltafold.errors.model_error import ModelError

_OF_NO_CONNECTION: Final[Mapping[str, str]] = {
    DNS_FAILURE: "the name of the model's server does not resolve",
    REFUSED: "the model's server refuses connections",
    UNTRUSTED: "the certificate of the model's server is not trusted",
}
_OF_CODE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.CONNECTION_LOST: "the connection to the model's server was lost",
    ErrorCode.TIMEOUT: "the model's server did not answer in time",
    ErrorCode.PROTOCOL_ERROR: "the answer of the model's server cannot be read",
}
_OF_ANY: Final = "the model's server could not be called"


def public_message(error: ModelError) -> str:
    """Return the message of an error without the address of an upstream."""
    return _shown(error.__cause__, error.code, error.status, error.provider_code, error.message)


def public_message_of(fields: ErrorFields, failure: BaseException) -> str:
    """Return the message of the fields that an exception was mapped to, without an address."""
    return _shown(failure, fields.code, fields.status, fields.provider_code, fields.message)


def _shown(
    cause: BaseException | None,
    code: ErrorCode,
    status: int | None,
    provider_code: str | None,
    message: str,
) -> str:
    # An error without a cause came in the stream; one with a status is the provider's response.
    if cause is None or status is not None:
        return message
    reason = _OF_NO_CONNECTION.get(provider_code or "")
    if reason is not None:
        return reason
    # A mapped exception gives its name to the code. An error of a hook has another one, or none.
    is_limit = type(cause) is TimeoutError and cause.errno is None
    if is_limit or provider_code != type(cause).__name__:
        return message
    return _OF_CODE.get(code, _OF_ANY)
