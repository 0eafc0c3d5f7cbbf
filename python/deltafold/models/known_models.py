"""Known models: what the models of Anthropic, OpenAI and Google can do, by their names.

In: the name of a model, also with the prefix or suffix of another vendor.  Out: its capabilities
and the maximum number of output tokens, or None if the name is not in the table.

Law: a name that is not in the table is unknown, and nothing is concluded from similar names.
Source: the lists of models of the three providers (read 2026-11).
"""

import re
from dataclasses import dataclass
from typing import Final

from deltafold.dialects.capability import Capability
from deltafold.dialects.model_names import hyphenated

_ALL: Final = frozenset(Capability)
_NO_THINKING: Final = _ALL - {Capability.THINKING}


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A family of models.

    Attributes:
        capabilities: the capabilities of the models.
        max_output_tokens: the maximum of output tokens, None if it is not known.
    """

    capabilities: frozenset[Capability]
    max_output_tokens: int | None = None


# A name may follow the place of a vendor, of Bedrock (`us.anthropic.`), of Google (`models/`), and
# of a fine-tune (`ft:`). A date, a version of Bedrock or Vertex, a tag or `-latest` may follow it.
_BEFORE: Final = r"(?:.*/|ft:|(?:[a-z-]+\.)?anthropic\.)?"
_AFTER: Final = (
    r"(?:-latest|-preview(?:-\d{2}-\d{2,4})?|-\d{8}|-\d{4}-\d{2}-\d{2}|-00[1-9])?"
    r"(?:-v\d+(?::\d+)?)?(?:@[a-z0-9]+)?(?::[a-z0-9:_-]*)?"
)

_FAMILIES: Final[tuple[tuple[re.Pattern[str], KnownModel], ...]] = tuple(
    (re.compile(f"{_BEFORE}{pattern}{_AFTER}"), known)
    for pattern, known in (
        (r"claude-3-(?:opus|sonnet|haiku)", KnownModel(_NO_THINKING, 4_096)),
        (r"claude-3-5-(?:sonnet|haiku)", KnownModel(_NO_THINKING, 8_192)),
        (r"claude-3-7-sonnet", KnownModel(_ALL, 64_000)),
        (r"claude-opus-4(?:-1)?", KnownModel(_ALL, 32_000)),
        (r"claude-(?:opus-4-5|sonnet-4(?:-[56])?|haiku-4-5)", KnownModel(_ALL, 64_000)),
        (r"claude-opus-4-6", KnownModel(_ALL, 128_000)),
        (
            r"gpt-3\.5-turbo(?:-0125|-1106)?",
            KnownModel(_NO_THINKING - {Capability.IMAGES}, 4_096),
        ),
        (r"gpt-4-turbo(?:-2024-04-09)?", KnownModel(_NO_THINKING, 4_096)),
        (r"gpt-4o-2024-05-13", KnownModel(_NO_THINKING, 4_096)),
        (r"gpt-4o(?:-mini)?", KnownModel(_NO_THINKING, 16_384)),
        (r"gpt-4\.1(?:-mini|-nano)?", KnownModel(_NO_THINKING, 32_768)),
        (r"gpt-5-pro", KnownModel(_ALL, 272_000)),
        (
            r"gpt-5(?:\.[1-4])?(?:-mini|-nano|-pro|-codex(?:-max|-mini)?)?",
            KnownModel(_ALL, 128_000),
        ),
        (
            r"o3-mini",
            KnownModel(_ALL - {Capability.IMAGES, Capability.PARALLEL_TOOL_CALLS}, 100_000),
        ),
        (
            r"(?:o1|o3|o3-pro|o4-mini)",
            KnownModel(_ALL - {Capability.PARALLEL_TOOL_CALLS}, 100_000),
        ),
        (r"gemini-2\.0-flash(?:-lite)?", KnownModel(_NO_THINKING, 8_192)),
        (r"gemini-(?:2\.5|3|3\.1)-(?:pro|flash|flash-lite)", KnownModel(_ALL, 65_536)),
    )
)
_NO_PREVIEWS: Final = re.compile(r"(?:gpt|o\d).*-preview")


def known_model(model_id: str) -> KnownModel | None:
    """Return the abilities of a model, None if its name is not in the table.

    >>> known_model("us.anthropic.claude-sonnet-4-5-20250929-v1:0").max_output_tokens
    64000
    """
    name = hyphenated(model_id.lower())
    if _NO_PREVIEWS.search(name) is not None:  # previews of OpenAI can do less
        return None
    return next((known for pattern, known in _FAMILIES if pattern.fullmatch(name)), None)
