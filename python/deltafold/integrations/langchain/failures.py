"""Failures of a call as exceptions of langchain-core.

In: `ModelError`.  Out: the same error, which is also the exception of langchain-core for it.

Law: code that catches `deltafold.ModelError` and code that catches the framework's exception both
get the error, with every field and the partial message.
"""

from collections.abc import Mapping
from typing import Final

from langchain_core import exceptions

from deltafold.contract.kinds import ErrorCode
from deltafold.errors.model_error import ModelError
from deltafold.integrations.failed import as_class


class DeltafoldAuthenticationError(ModelError, exceptions.ModelAuthenticationError):
    """The provider does not know the key."""


class DeltafoldPermissionError(ModelError, exceptions.ModelPermissionDeniedError):
    """The key may not use the model or the feature."""


class DeltafoldInvalidRequestError(ModelError, exceptions.ModelInvalidRequestError):
    """The provider refuses the request."""


class DeltafoldNotFoundError(ModelError, exceptions.ModelNotFoundError):
    """The model does not exist."""


class DeltafoldRateLimitError(ModelError, exceptions.ModelRateLimitError):
    """The limit of requests or tokens is reached."""


class DeltafoldAPIError(ModelError, exceptions.ModelAPIError):
    """The provider failed."""


class DeltafoldConnectionError(ModelError, exceptions.ModelConnectionError):
    """The connection failed, or the stream was cut."""


class DeltafoldTimeoutError(ModelError, exceptions.ModelTimeoutError):
    """The provider did not answer in time."""


class DeltafoldContextOverflowError(ModelError, exceptions.ContextOverflowError):
    """The conversation is longer than the context of the model."""


class DeltafoldModelError(ModelError, exceptions.ModelError):
    """A failure that langchain-core has no class for."""


_CLASSES: Final[Mapping[ErrorCode, type[ModelError]]] = {
    ErrorCode.AUTHENTICATION: DeltafoldAuthenticationError,
    ErrorCode.PERMISSION: DeltafoldPermissionError,
    ErrorCode.INVALID_REQUEST: DeltafoldInvalidRequestError,
    ErrorCode.REPLAY_REFUSED: DeltafoldInvalidRequestError,
    ErrorCode.CONTENT_BLOCKED: DeltafoldInvalidRequestError,
    ErrorCode.NOT_FOUND: DeltafoldNotFoundError,
    ErrorCode.RATE_LIMITED: DeltafoldRateLimitError,
    ErrorCode.OVERLOADED: DeltafoldAPIError,
    ErrorCode.SERVER_ERROR: DeltafoldAPIError,
    ErrorCode.CONNECTION_LOST: DeltafoldConnectionError,
    ErrorCode.TIMEOUT: DeltafoldTimeoutError,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: DeltafoldContextOverflowError,
}


def exception_of(error: ModelError) -> ModelError:
    """Return a failure as the exception of langchain-core."""
    return as_class(error, _CLASSES.get(error.code, DeltafoldModelError))
