"""Exceptions that carry no message of a model: the root of all, and those for defects and misuse.

`errors/model_error.py` has the tree of all exceptions.

Law: this module imports nothing, so that the data types of the contract can raise these.
"""


class DeltafoldError(Exception):
    """The root of every exception that deltafold raises.

    >>> try:
    ...     deltafold.fold(body[:500], "openai-chat")
    ... except deltafold.DeltafoldError as error:
    ...     type(error).__name__
    'ModelError'
    """


class ContractError(DeltafoldError, ValueError):
    """A delta breaks the contract: the wrong shape, or the wrong place in its stream.

    `seq` is the delta's number and `field` the wire name of the member at fault, each where known.

    >>> try:
    ...     deltafold.MessageDelta.from_dict({"kind": "text", "seq": 1})
    ... except deltafold.ContractError as error:
    ...     error.field
    'runId'
    """

    def __init__(self, message: str, *, seq: int | None = None, field: str | None = None) -> None:
        """Store the place of the fault in addition to its description."""
        super().__init__(message)
        self.seq: int | None = seq
        self.field: str | None = field


class MisuseError(DeltafoldError, RuntimeError):
    """The call is not allowed in this state of the object, in this thread or in this callback.

    >>> decoder = deltafold.Decoder("openai-chat")
    >>> deltas = decoder.close()
    >>> try:
    ...     decoder.feed(body)
    ... except deltafold.MisuseError as error:
    ...     print(error)
    feed after close(): the body has ended
    """


class InternalError(DeltafoldError, RuntimeError):
    """A defect of deltafold itself; please report it. The object that raised it is unusable.

    >>> issubclass(deltafold.InternalError, deltafold.DeltafoldError)
    True
    """


class UnknownDialectError(DeltafoldError, ValueError):
    """No dialect has the name that was given, or none was given and the body does not tell its own.

    >>> try:
    ...     deltafold.Decoder("openai-chats")
    ... except deltafold.UnknownDialectError as error:
    ...     str(error).partition(";")[0]
    'unknown dialect "openai-chats"'
    """
