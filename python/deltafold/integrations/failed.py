"""A failure as an exception of a framework that is a `ModelError` too.

In: `ModelError`, and a class that inherits from it and from an exception of a framework.  Out: an
instance of the class with the fields of the error.

Law: code that catches `deltafold.ModelError` and code that catches the framework's exception both
get the error, with every field and the partial message.
"""

from typing import TypeVar

from deltafold.errors.model_error import ModelError

ErrorT = TypeVar("ErrorT", bound=ModelError)


def as_class(error: ModelError, kind: type[ErrorT]) -> ErrorT:
    """Return a failure as an instance of a class of failures."""
    return kind(
        code=error.code,
        message=error.message,
        retryable=error.retryable,
        retry_after=error.retry_after,
        status=error.status,
        provider_code=error.provider_code,
        http_request_id=error.http_request_id,
        warnings=error.warnings,
        partial_message=error.partial_message,
        body=error.body,
    )
