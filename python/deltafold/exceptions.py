"""Exceptions that carry no message of a model: the root of all, and those for defects and misuse.

`errors.py` has the tree of all exceptions.

Law: this module imports nothing, so that the data types of the contract can raise these.
"""


class DeltafoldError(Exception):
    """The root of every exception that deltafold raises."""


class ContractError(DeltafoldError, ValueError):
    """A delta breaks the contract: the wrong shape, or the wrong place in its stream.

    `seq` is the delta's number and `field` the wire name of the member at fault, each where known.
    """

    def __init__(self, message: str, *, seq: int | None = None, field: str | None = None) -> None:
        """Keep the place of the fault beside its description."""
        super().__init__(message)
        self.seq: int | None = seq
        self.field: str | None = field


class MisuseError(DeltafoldError, RuntimeError):
    """The call is not allowed in this state of the object, in this thread or in this callback."""


class InternalError(DeltafoldError, RuntimeError):
    """A defect of deltafold itself; please report it. The object that raised it is unusable."""


class UnknownDialectError(DeltafoldError, ValueError):
    """No dialect has the name that was given."""
