"""Aliases of names and ids that violate a provider's rules.

In: the names of tools and the ids of calls of a conversation.  Out: names and ids that the provider
accepts.

Laws: a valid name is unchanged. The same name has the same alias in every request. Two names never
share an alias. Each alias can be mapped back.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Final, Self

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGEST_CHARACTERS: Final = 8


class Aliases:
    """Aliases of one request.

    >>> names = Aliases.of_names("[a-zA-Z0-9_-]{1,64}", 64)
    >>> names.of("weather"), names.of("my weather")
    ('weather', 'my_weather_19863eb4')
    >>> names.changed
    {'my_weather_19863eb4': 'my weather'}
    """

    def __init__(self, pattern: str, stand_in: Callable[[str, str], str]) -> None:
        """`stand_in` makes one of a name and a digest of it."""
        self._pattern = pattern
        self._stand_in = stand_in
        self._known: dict[str, str] = {}
        self.changed: dict[str, str] = {}

    @classmethod
    def none(cls) -> Self:
        """Return aliases that change nothing."""
        return cls(r"(?s).*", lambda name, _digest: name)

    @classmethod
    def of_names(cls, pattern: str, longest: int) -> Self:
        """Return aliases of the valid characters of a name and a digest of the whole name."""

        def stand_in(name: str, digest: str) -> str:
            kept = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[: longest - _DIGEST_CHARACTERS - 1]
            kept = kept if kept[:1].isalpha() else f"t{kept}"[: longest - _DIGEST_CHARACTERS - 1]
            return f"{kept}_{digest[:_DIGEST_CHARACTERS]}"

        return cls(pattern, stand_in)

    @classmethod
    def of_ids(cls, pattern: str) -> Self:
        """Make ids of another provider's form anew."""
        return cls(pattern, lambda _name, digest: f"call_{digest[:24]}")

    @classmethod
    def of_short_ids(cls, length: int) -> Self:
        """Make ids of exactly so many letters and digits."""

        def stand_in(_name: str, digest: str) -> str:
            number = int(digest, 16)
            digits: list[str] = []
            for _ in range(length):
                number, digit = divmod(number, len(_DIGITS))
                digits.append(_DIGITS[digit])
            return "".join(digits)

        return cls(rf"[a-zA-Z0-9]{{{length}}}", stand_in)

    def keeps(self, names: Iterable[str]) -> bool:
        """Return whether all names or ids are sent as they are."""
        matches = re.compile(self._pattern).fullmatch
        return all(map(matches, names))

    def of(self, name: str) -> str:
        """Return the name or id to send."""
        known = self._known.get(name)
        if known is not None:
            return known
        alias = name
        if not re.fullmatch(self._pattern, name):
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
            alias = self._stand_in(name, digest)
            self.changed[alias] = name
        self._known[name] = alias
        return alias
