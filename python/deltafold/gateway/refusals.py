"""Refusals: the errors of requests that the gateway does not answer.

In: what is wrong with a request, or an exception that reading it raised.  Out: a `ModelError`.

Law: a mistake of a client is an error of the client, whatever it raised here. What no reader
foresaw is logged with its traceback too, because it is also a defect of a reader.
"""

from collections.abc import Generator
from contextlib import contextmanager

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import ErrorCode
from deltafold.contract.log import LOGGER
from deltafold.errors.model_error import ModelError


def refusal(
    message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST, status: int = 400
) -> ModelError:
    """Make the error of a request that is refused, which hooks may raise.

    >>> refusal("the key is unknown", ErrorCode.AUTHENTICATION, 401).status
    401
    """
    return ModelError(code=code, message=message, retryable=False, status=status)


def failure_of(error: Exception, protocol: str) -> ModelError:
    """Return the error that a client reads; what nobody foresaw is logged, and not shown.

    Args:
        error: what was raised while a request was answered.
        protocol: the protocol of the client.
    """
    if isinstance(error, ModelError):
        return error
    LOGGER.error("a request of %s failed in the gateway", protocol, exc_info=error)
    return refusal("the gateway failed", ErrorCode.SERVER_ERROR, 500)


@contextmanager
def reading(protocol: str) -> Generator[None]:
    """Make refusals of the exceptions that reading or translating a request raises.

    Args:
        protocol: the protocol of the client.

    Raises:
        ModelError: the request cannot be read or translated, its status is 400; or the Model cannot
            be called, because its key is missing for one, its status is 500.
    """
    try:
        yield
    except ModelError:
        raise
    except MisuseError as error:
        raise refusal(str(error), ErrorCode.SERVER_ERROR, 500) from error
    except ValueError as error:
        raise refusal(str(error)) from error
    except Exception as error:
        LOGGER.warning("a request of %s cannot be read", protocol, exc_info=error)
        found = type(error).__name__
        raise refusal(f"the request cannot be read as one of {protocol}: {found}") from error
