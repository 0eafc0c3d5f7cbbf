"""Exception of a failed model call, with advice for the reader.

In: the fields of a failure, from a fold or from `ErrorMapper` (`mapper.py`).  Out:
`ModelError`.

All exceptions of deltafold, of which `contract/` has the others:

    DeltafoldError(Exception)
      ModelError                       the provider failed, or the connection to it
      OutputError(ValueError)          an answer is not the output that was asked for
      ContractError(ValueError)        a delta breaks the contract; .seq .field
      MisuseError(RuntimeError)        a call is not allowed in this state, thread or callback
      StoreConflictError(RuntimeError) a conversation was continued elsewhere; .session_id .position
      InternalError(RuntimeError)      a defect of deltafold; the object can no longer be used
      UnknownDialectError(ValueError)  no dialect has this name

Laws: each exception is a subclass of the built-in exception that a user already catches. Each one
survives pickling. `retryable` describes the failure; it does not consider text that was emitted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from deltafold.contract.exceptions import DeltafoldError
from deltafold.contract.foreign_text import printable
from deltafold.contract.kinds import ErrorCode
from deltafold.errors.causes import DNS_FAILURE, NO_TLS, REFUSED, UNTRUSTED
from deltafold.errors.mapper import RETRYABLE, ErrorFields
from deltafold.message import data_types
from deltafold.message.shown import Shown

if TYPE_CHECKING:
    from deltafold.errors.sdk_exceptions import SdkName
    from deltafold.message.card import Card

_ADVICE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.AUTHENTICATION: "check the API key and the account it belongs to",
    ErrorCode.PERMISSION: "this key may not use this model or feature; choose another key or model",
    ErrorCode.NOT_FOUND: "check the model name and the base URL",
    ErrorCode.INVALID_REQUEST: "the request must change before it is sent again",
    ErrorCode.REPLAY_REFUSED: "send the history without its reasoning, as repair='auto' does",
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: "shorten the conversation, or choose a larger window",
    ErrorCode.RATE_LIMITED: "wait, then send the request again",
    ErrorCode.QUOTA_EXCEEDED: "raise the limit or add credit; waiting does not help",
    ErrorCode.OVERLOADED: "the provider is busy; wait, then send the request again",
    ErrorCode.SERVER_ERROR: "the failure is the provider's; send the request again later",
    ErrorCode.TIMEOUT: "send the request again, or allow more time",
    ErrorCode.CONNECTION_LOST: "send the request again; what arrived is in partial_message",
    ErrorCode.CONTENT_BLOCKED: "the provider refuses this content; it must change",
    ErrorCode.PROTOCOL_ERROR: "check the dialect and the base URL",
    ErrorCode.CANCELLED: "the caller stopped it; what arrived is in partial_message",
}

_ADVICE_OF_NO_CONNECTION: Final[Mapping[str, str]] = {
    DNS_FAILURE: "the host name does not resolve; check the base URL and the network's DNS",
    REFUSED: "nothing listens at this address; check the base URL, the port and the server",
    NO_TLS: "this server speaks no TLS at this port; write http:// or another port",
    UNTRUSTED: "the server's certificate is not trusted; check the base URL and SSL_CERT_FILE",
}
"""Advice by `provider_code`, for a connection that was not made."""

_MAX_MESSAGE_CHARACTERS: Final = 500
"""Of a provider's message in `str(ModelError)`: one readable line, even if a proxy sent a page."""

_MAX_CODE_CHARACTERS: Final = 100
"""Limit of a provider's code in `str(ModelError)`."""


class ModelError(Shown, DeltafoldError):
    """A failed model call: the provider, the connection or a cancellation by the caller ended it.

    `str()` is one line with the failure and the next step. `retry_after` is in seconds.
    `partial_message` holds everything that was received before the failure. `body` is the beginning
    of the response's body if the failure was a response, and the JSON of the error if it was an
    event of a stream (at most 65,536 characters). `excerpt` has
    the last events of a stream before the failure, with the offset marked; tracebacks show it in a
    terminal, in IPython and in notebooks. Elsewhere it is None, because logs keep tracebacks.
    `hint` is a further step that depends on the model or on the server, None without one.

    >>> try:
    ...     deltafold.fold(body[:500], "openai-chat")
    ... except ModelError as error:
    ...     error.code.value, error.retryable
    ('connection_lost', True)
    """

    def __init__(
        self,
        *,
        code: ErrorCode,
        message: str,
        retryable: bool,
        retry_after: float | None = None,
        status: int | None = None,
        provider_code: str | None = None,
        http_request_id: str | None = None,
        warnings: Iterable[Mapping[str, object]] = (),
        partial_message: "data_types.Message | None" = None,
        body: str | None = None,
    ) -> None:
        """Keep the fields; `message` is the provider's own text."""
        super().__init__(message)
        self.code: ErrorCode = ErrorCode(code)
        self.message: str = message
        self.retryable: bool = retryable
        self.retry_after: float | None = retry_after
        self.status: int | None = status
        self.provider_code: str | None = provider_code
        self.http_request_id: str | None = http_request_id
        self.warnings: list[dict[str, object]] = [dict(warning) for warning in warnings]
        self.partial_message: data_types.Message | None = partial_message
        self.body: str | None = body
        self.excerpt: str | None = None
        self.hint: str | None = None

    @classmethod
    def from_fields(
        cls, fields: ErrorFields, *, partial_message: "data_types.Message | None" = None
    ) -> "ModelError":
        """Make the error from the fields of an `ErrorMapper`."""
        return cls(
            code=fields.code,
            message=fields.message,
            retryable=fields.retryable,
            retry_after=fields.retry_after,
            status=fields.status,
            provider_code=fields.provider_code,
            http_request_id=fields.http_request_id,
            partial_message=partial_message,
            body=fields.body,
        )

    def __repr__(self) -> str:
        """Return the code, the message and the status, as a list of failures shows them."""
        status = "" if self.status is None else f", status={self.status}"
        return f"{type(self).__name__}(code='{self.code}', message={self._line()!r}{status})"

    def _line(self) -> str:
        """Return the message as one line of bounded length."""
        line = " ".join(self.message.split())
        if len(line) <= _MAX_MESSAGE_CHARACTERS:
            return line
        return f"{line[:_MAX_MESSAGE_CHARACTERS]}…"

    def __str__(self) -> str:
        """Return one line with the failure and the next step."""
        message = self._line()
        facts = ", ".join(self._facts())
        context = f" ({facts})" if facts else ""
        said = f"{self.code}: {message or 'no message'}{context}; {_next_step(self)}"
        return printable(said)

    def _facts(self) -> Iterator[str]:
        """Yield what is known of the response."""
        if self.status is not None:
            yield f"HTTP {self.status}"
        if self.provider_code is not None and self.provider_code != self.code:
            yield self.provider_code[:_MAX_CODE_CHARACTERS]
        if self.http_request_id is not None:
            yield f"request {self.http_request_id}"
        if self.retry_after is not None:
            yield f"retry after {self.retry_after:g} s"

    def _card(self) -> "Card":
        """Return what to read first: the failure, what to do, and what was received before."""
        from deltafold.message.card import Block, Card  # noqa: PLC0415 - only to be shown
        from deltafold.message.cards import message_card, nested  # noqa: PLC0415 - it loads pydantic

        blocks: list[Block | Card] = [
            Block(kind="error", text=self.message or "no message"),
            Block(kind="other", label="what to do", text=_next_step(self)),
        ]
        if self.excerpt is not None:
            blocks.append(Block(kind="other", label="events", text=self.excerpt, is_code=True))
        if self.body:
            body = Block(kind="other", label="body", text=self.body, is_code=True, folds=True)
            blocks.append(body)
        if self.partial_message is not None:
            blocks.append(nested("received before", message_card(self.partial_message)))
        facts = ["may be sent again" if self.retryable else "not to be sent again as it is"]
        facts += [*self._facts(), *(f"warning {one.get('code')}" for one in self.warnings)]
        title = f"{type(self).__name__} {self.code}"
        return Card(title=title, is_error=True, facts=facts, blocks=blocks)

    @property
    def custom_id(self) -> str | None:
        """Id of the request in the batch whose result line held this failure, None without one."""
        partial = self.partial_message
        return None if partial is None else partial.meta.custom_id

    def as_sdk(self, package: "SdkName") -> Exception:
        """Return the failure as the exception that an SDK raises for it, for code that retries.

        That is the cause of this error where it is an exception of the SDK. Else it is made: an
        `APITimeoutError`, an `APIConnectionError`, or the class of the status. An error that came
        within a stream has the class and the status that the provider documents for its kind.

        >>> try:
        ...     answer = model.send_message_sync("Hello")
        ... except ModelError as error:
        ...     raise error.as_sdk("openai") from error

        Args:
            package: "openai" or "anthropic".

        Raises:
            MisuseError: the SDK is not installed.
        """
        from deltafold.errors.sdk_exceptions import sdk_exception, sdk_of  # noqa: PLC0415 - rare

        cause = self.__cause__
        if isinstance(cause, Exception) and sdk_of(cause) == package:
            return cause
        return sdk_exception(self, package)

    def __reduce__(
        self,
    ) -> "tuple[Callable[..., ModelError], tuple[type[ModelError], dict[str, object]]]":
        """Pickle by attributes: Exception by itself forgets keyword-only arguments."""
        return _restore_model_error, (type(self), dict(self.__dict__))


def _next_step(error: ModelError) -> str:
    """Return the next step after a failure."""
    advice = _ADVICE[error.code]
    if error.code is ErrorCode.CONNECTION_LOST:
        advice = _ADVICE_OF_NO_CONNECTION.get(error.provider_code or "", advice)
    return advice if error.hint is None else f"{advice}; {error.hint}"


OutputDefect: TypeAlias = Literal["refused", "cut", "tools_called", "empty", "no_json", "invalid"]


class OutputError(DeltafoldError, ValueError):
    """An answer that is not the output that was asked for.

    >>> try:
    ...     recipe = await stream.final_output()
    ... except OutputError as error:
    ...     again = await model.send_message(
    ...         [question, error.message, error.reason], output=Recipe
    ...     )

    Attributes:
        defect: the kind of the defect: `refused` by the model or a filter, `cut` before its end,
            `tools_called` instead, `empty`, `no_json`, or JSON that is `invalid`.
        reason: the defect and its place, in words that can be sent to the model.
        text: the text that should be the output.
        message: the whole answer.
    """

    def __init__(
        self, *, defect: OutputDefect, reason: str, text: str, message: "data_types.Message"
    ) -> None:
        """Keep the fields."""
        super().__init__(reason)
        self.defect: OutputDefect = defect
        self.reason: str = reason
        self.text: str = text
        self.message: data_types.Message = message

    def __reduce__(
        self,
    ) -> "tuple[Callable[..., OutputError], tuple[OutputDefect, str, str, data_types.Message]]":
        """Pickle by attributes: Exception by itself forgets keyword-only arguments."""
        return _restore_output_error, (self.defect, self.reason, self.text, self.message)


def _restore_output_error(
    defect: OutputDefect, reason: str, text: str, message: "data_types.Message"
) -> OutputError:
    return OutputError(defect=defect, reason=reason, text=text, message=message)


def _restore_model_error(cls: type[ModelError], state: dict[str, object]) -> ModelError:
    error = cls.__new__(cls, state["message"])
    error.__dict__.update(state)
    return error


def model_error_from_fold(
    *,
    code: str,
    message: str | None,
    retryable: bool | None,
    retry_after: float | None = None,
    status: int | None = None,
    provider_code: str | None = None,
    http_request_id: str | None = None,
    body: str | None = None,
    warnings: Iterable[Mapping[str, object]] | None = None,
    partial_message: "data_types.Message | None" = None,
) -> ModelError:
    """Make the error of an assembler in state `error`, from the members of its error delta.

    A message that was not given is empty, `retryable` that was not given follows `RETRYABLE`.

    Raises:
        ValueError: `code` is not in the closed list.
    """
    error_code = ErrorCode(code)
    return ModelError(
        code=error_code,
        message=message or "",
        retryable=RETRYABLE[error_code] if retryable is None else retryable,
        retry_after=retry_after,
        status=status,
        provider_code=provider_code,
        http_request_id=http_request_id,
        warnings=warnings or (),
        partial_message=partial_message,
        body=body,
    )
