"""Places in a value of JSON: the members and items that tests change one by one.

In: a value of JSON.  Out: the paths to its members and items.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

Path: TypeAlias = tuple[Any, ...]
"""Keys and indexes from the root to a place."""


def places(value: object, path: Path = (), *, most_items: int | None = None) -> Iterator[Path]:
    """Yield every place but the root, each before those inside of it.

    Args:
        value: a value of JSON.
        path: the place of the value.
        most_items: how many items of a list are looked at; None looks at all.
    """
    if path:
        yield path
    is_list = not isinstance(value, dict)
    for key, member in members(value)[: most_items if is_list else None]:
        yield from places(member, (*path, key), most_items=most_items)


def members(value: object) -> list[tuple[Any, object]]:
    """Return the members of an object or the items of a list with their keys or indexes."""
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).items())
    if isinstance(value, list):
        return list(enumerate(cast("list[object]", value)))
    return []


def at(value: object, path: Path) -> Any:  # noqa: ANN401 - of JSON
    """Return what is at a place."""
    found: Any = value
    for step in path:
        found = found[step]
    return found
