"""Members and items of JSON whose form the protocol knows.

In: any JSON.  Out: its members, or its items; none where it has another form.
"""

from typing import Any, TypeAlias, cast

Event: TypeAlias = dict[str, Any]
"""An object of JSON: an event, a whole answer or a request."""


def members(value: object) -> Event:
    """Return an object; a new one in place of anything else."""
    return cast("Event", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Event]:
    """Return the objects of a list; none in place of anything else."""
    if not isinstance(value, list):
        return []
    return [cast("Event", item) for item in cast("list[object]", value) if isinstance(item, dict)]
