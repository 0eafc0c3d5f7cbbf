"""What pydantic found wrong, in one line, as a person reads it."""

from pydantic import ValidationError


def validation_text(error: ValidationError) -> str:
    """Return the place and the description of each mistake, without pydantic's own words.

    >>> from pydantic import TypeAdapter
    >>> try:
    ...     TypeAdapter(dict[str, int]).validate_python({"a": "b"})
    ... except ValidationError as error:
    ...     validation_text(error)
    'a: Input should be a valid integer, unable to parse string as an integer'
    """
    return "; ".join(
        ": ".join((*map(str, mistake["loc"]), mistake["msg"])) for mistake in error.errors()
    )
