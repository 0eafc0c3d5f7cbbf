"""Lines of models: the family, the line and the version in a canonical name.

In: a name of `canonical_model`.  Out: its place among the releases of its vendor.

Laws: a line is a family and a size, such as `gpt-sol`, `claude-opus` and `gemini-flash-lite`. The
members of a line are ordered by version. A name that no pattern matches as a whole has no line.
Source: the names in the literals of the SDKs and in the lists of models (read 2026-11).
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_SIZE: Final = r"(?:-(?P<size>[a-z]+(?:-[a-z]+)*?))?"
_MINOR: Final = r"(?:[.-](?P<minor>\d{1,2}))?"

_PATTERNS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (family, re.compile(pattern))
    for family, pattern in (
        ("claude", rf"claude{_SIZE}-(?P<major>\d{{1,2}}){_MINOR}"),
        ("gpt", rf"gpt-(?P<major>\d{{1,2}})(?:\.(?P<minor>\d{{1,2}}))?{_SIZE}"),
        ("o", rf"o(?P<major>\d){_SIZE}"),
        ("gemini", rf"gemini-(?P<major>\d{{1,2}}){_MINOR}{_SIZE}(?:-preview)?"),
        ("grok", rf"grok-(?P<major>\d{{1,2}}){_MINOR}{_SIZE}"),
        ("mistral", rf"mistral{_SIZE}-(?P<major>\d){_MINOR}"),
        ("deepseek", rf"deepseek-v(?P<major>\d{{1,2}}){_MINOR}{_SIZE}"),
        ("kimi", rf"kimi-k(?P<major>\d{{1,2}}){_MINOR}{_SIZE}"),
        ("glm", rf"(?:zai-)?glm-(?P<major>\d{{1,2}}){_MINOR}{_SIZE}"),
        ("qwen", rf"qwen(?P<major>\d{{1,2}}){_MINOR}{_SIZE}"),
        ("command", rf"command{_SIZE}-(?P<major>\d{{1,2}}){_MINOR}"),
        ("nova", rf"nova-(?P<major>\d){_SIZE}"),
    )
)

SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    "claude": ("haiku", "sonnet", "mythos", "fable", "opus"),
    "gpt": ("luna", "terra", "sol", "astra"),
    "gemini": ("flash-lite", "flash", "pro", "neon", "hydrogen", "carbon", "argon"),
    "grok": (),
}
"""Families whose new sizes are taken as their newest model, with the known sizes.

Of several newest models the one with the last size in the list counts: the model that refuses most.
A size without a place in the list comes before all others.
"""

_OTHER_KINDS: Final = re.compile(
    r"audio|codex|computer|cyber|embedding|image|instruct|live|moderation|native|nano-banana|omni"
    r"|realtime|robotics|search|speech|transcribe|translate|tts|video|vision|voice|whisper"
)
"""Words of a size that name another kind of model, or a model for one task."""


class ModelLine(NamedTuple):
    """Place of a model among the releases of its vendor.

    Attributes:
        family: the family, such as `gpt`.
        size: the rest of the line's name, "" for the model without one.
        version: the version, (0, 0) if the name has none.
    """

    family: str
    size: str
    version: tuple[int, int]

    @property
    def line(self) -> str:
        """The name of the line, such as `gpt-sol`."""
        return f"{self.family}-{self.size}" if self.size else self.family

    @property
    def is_for_any_task(self) -> bool:
        """True unless the size names another kind of model."""
        return _OTHER_KINDS.search(self.size) is None

    @property
    def order(self) -> tuple[tuple[int, int], int]:
        """Key that sorts the models of a family, the newest last."""
        sizes = SIZES.get(self.family, ())
        return self.version, sizes.index(self.size) if self.size in sizes else -1


def line_of(model: str) -> ModelLine | None:
    """Return the place of a model, None for a name that no pattern matches.

    >>> line_of("gpt-6.1-sol")
    ModelLine(family='gpt', size='sol', version=(6, 1))
    """
    for family, pattern in _PATTERNS:
        found = pattern.fullmatch(model)
        if found is not None:
            named = found.groupdict()
            minor = named.get("minor") or "0"
            if family == "grok":  # Grok 4.20 came before 4.3: the number is a decimal fraction.
                minor = minor.rstrip("0") or "0"
            return ModelLine(family, named["size"] or "", (int(named["major"]), int(minor)))
    return None
