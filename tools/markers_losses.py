"""Members that the library loses without a warning: true losses, which wait to be kept.

Law: a row goes when its members are kept; the check names it as stale then.
"""

from collections.abc import Sequence
from typing import Final

from markers_accepted import Row
from markers_judge import LOST, REFUSED

_NOT_READ: Final = "not read"
_OF_ANOTHER: Final = "the number of a token that was not chosen"


def _loss(
    protocol: str,
    path: str,
    reason: str = _NOT_READ,
    *,
    sdk: str = ".*",
    kinds: Sequence[str] = (LOST,),
) -> Row:
    return Row(protocol, path, reason, sdk=sdk, kinds=kinds, is_loss=True)


LOSSES: Final = (
    _loss("anthropic-messages", r"request:messages\[\]<system>\.(clear_at|output_config).*"),
    _loss("gemini", r"\w+:candidates\[\]\.logprobsResult\.topCandidates.*tokenId", _OF_ANOTHER),
    _loss("mistral", r"\w+:choices\[\]\.logprobs.*top_logprobs\[\]\.token_id", _OF_ANOTHER),
    _loss("openai-responses", r"request:input\[\]<message (EasyInputMessageParam|Message)>\.role"),
    _loss("openai-responses", r"request:input\[\]<message ResponseOutputMessageParam>\.id"),
    _loss(
        "openai-responses",
        r"request:",
        "a reference to an item, which needs no type, is refused without it",
        kinds=(REFUSED,),
    ),
    _loss("openai-chat", r"answer:choices\[\]\.message\.name", sdk="openrouter"),
    _loss("openai-chat", r"\w+:choices\[\]\.logprobs.*", "a form of its own", sdk="together"),
)
"""Losses that are known."""
