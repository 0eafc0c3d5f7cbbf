"""Short `repr` of pydantic models: members that say something, and the beginning of long values.

In: a model.  Out: one line of `repr`; every member for `str` and for rich.

Law: `repr` of a model costs and shows a bounded number of characters, however long its texts are.
"""

import reprlib
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

_LONGEST_TEXT: Final = 60
_LONGEST_VALUE: Final = 240


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxdict, self.maxlist, self.maxtuple = 4, 6, 6, 6
        self.maxother = _LONGEST_VALUE

    def repr_str(self, x: str, level: int) -> str:
        """Show the beginning of a long text, and its length."""
        del level
        if len(x) <= _LONGEST_TEXT:
            return repr(x)
        return f"{x[:_LONGEST_TEXT]!r}... ({len(x):,} characters)"

    def repr_dict(self, x: "dict[object, object]", level: int) -> str:
        """Show the first members in their own order, in which a model wrote arguments."""
        if x and level <= 0:
            return f"{{{self.fillvalue}}}"
        shown = [
            f"{self.repr1(name, level - 1)}: {self.repr1(x[name], level - 1)}"
            for name in islice(x, self.maxdict)
        ]
        if len(x) > self.maxdict:
            shown.append(self.fillvalue)
        return f"{{{', '.join(shown)}}}"

    def repr_instance(self, x: object, level: int) -> str:
        """Show a model as it shows itself, and the beginning of anything else."""
        return repr(x) if isinstance(x, ShortRepr) else super().repr_instance(x, level)


_SHORT: Final = _Short()


def short(value: object) -> str:
    """Return the `repr` of a value with the beginning of each long text.

    >>> short("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'... (100 characters)"
    """
    return _SHORT.repr(value)


class ShortRepr:
    """Mixin of pydantic models: `repr` is short, and members that are not set are left out."""

    def __repr__(self) -> str:
        """Return the members that `_shown` yields, shortened."""
        members = ", ".join(f"{name}={short(value)}" for name, value in self._shown())
        return f"{type(self).__name__}({members})"

    def _shown(self) -> "Iterator[tuple[str, object]]":
        """Yield the names and values that `repr` shows."""
        for name, value in self.__repr_args__():
            yield name or "", value

    def __repr_args__(self) -> "Iterator[tuple[str | None, Any]]":
        """Yield the members whose value is not the default, for `str` and for rich."""
        fields = cast("Mapping[str, FieldInfo]", getattr(type(self), "model_fields"))  # noqa: B009 - of the pydantic model
        # Inherited, and so the first field, but the least that a reader looks for.
        for name, field in sorted(fields.items(), key=lambda item: item[0] == "provider_state"):
            value = getattr(self, name)
            if field.repr and value is not None and value not in (field.default, [], {}):
                yield name, value
        yield from (getattr(self, "__pydantic_extra__", None) or {}).items()
