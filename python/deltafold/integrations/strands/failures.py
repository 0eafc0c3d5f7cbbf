"""Failures of a call as exceptions of strands.

In: `ModelError`.  Out: the same error; it is also an exception of the framework for a full context
window and for throttling.

Law: the framework's retry strategy sends a throttled request again, and its conversation managers
shorten a conversation that is too long. All other failures end the agent's run.
"""

from strands.types.exceptions import ContextWindowOverflowException, ModelThrottledException

from deltafold.contract.kinds import ErrorCode
from deltafold.errors.model_error import ModelError
from deltafold.integrations.failed import as_class


class DeltafoldThrottledError(ModelError, ModelThrottledException):
    """The limit of requests is reached, or the provider is overloaded."""


class DeltafoldOverflowError(ModelError, ContextWindowOverflowException):
    """The conversation is longer than the context window of the model."""


def exception_of(error: ModelError) -> ModelError:
    """Return a failure as the exception of strands, or unchanged if strands has none."""
    match error.code:
        case ErrorCode.RATE_LIMITED | ErrorCode.OVERLOADED:
            return as_class(error, DeltafoldThrottledError)
        case ErrorCode.CONTEXT_LENGTH_EXCEEDED:
            return as_class(error, DeltafoldOverflowError)
        case _:
            return error
