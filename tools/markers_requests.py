"""Requests with markers: parsed, and rendered again in the same dialect.

In: a dialect and the body of a request.  Out: the rendered body and the notes of both ways.

Law: a conversation around the message that is looked at is lawful: each call has a result, and
each result a call.
"""

from typing import TYPE_CHECKING, Any

from deltafold import parse_request
from deltafold.dialects import dialect_of
from markers_judge import Result

if TYPE_CHECKING:
    from any_name import AnyName


def of_request(dialect: "AnyName", body: Any) -> Result:  # noqa: ANN401 - JSON
    """Parse a request, render it again, and return what it has then."""
    try:
        parsed = parse_request(body, dialect)
        row = dialect_of(dialect)
        config = row.config_class.model_validate({"model_id": "unknown", **parsed.config})
        rendered = row.render([*parsed.messages], [*parsed.tools], config)
    except ValueError as error:
        return Result(None, refused=f"{type(error).__name__}: {error}")
    return Result(
        {"body": rendered.body, "stream": parsed.stream}, [*parsed.notes, *rendered.notes]
    )
