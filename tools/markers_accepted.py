"""Differences between what a provider may send and what the library keeps, with their reasons.

In: findings.  Out: the findings that no row accepts, and the rows that accept nothing.

Laws: a row has a reason. A row that accepts nothing is stale and must go. A row of a true loss says
so, and is counted by itself.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from markers_judge import LOST, REFUSED, UNKNOWN_EVENT, WRONG_PLACE, Finding

_ANY: Final = r".*"


class Row:
    """An accepted difference.

    Attributes:
        protocol: pattern of the protocols.
        path: pattern of the path of the member, without the value of a word.
        reason: why the member need not be kept, or what its loss means.
        kinds: kinds of the findings.
        is_loss: whether something is lost that a caller could want.
        sdk: pattern of the packages.
        seen: pattern within the place, the warning or the error.
    """

    def __init__(
        self,
        protocol: str,
        path: str,
        reason: str,
        *,
        kinds: Sequence[str] = (LOST,),
        is_loss: bool = False,
        sdk: str = _ANY,
        seen: str = "",
    ) -> None:
        self.protocol = protocol
        self.path = path
        self.reason = reason
        self.kinds = kinds
        self.is_loss = is_loss
        self.sdk = sdk
        self.seen = seen

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(re.compile, (self.sdk, self.protocol, self.path, self.seen)))

    def is_about(self, walked: Iterable[tuple[str, str]]) -> bool:
        """Return whether the row is about one of these packages and protocols."""
        sdk, protocol, _, _ = self._patterns
        return any(sdk.fullmatch(each) and protocol.fullmatch(its) for each, its in walked)

    def accepts(self, finding: Finding) -> bool:
        """Return whether the row is about this finding."""
        sdk, protocol, path, seen = self._patterns
        if finding.kind not in self.kinds or not protocol.fullmatch(finding.protocol):
            return False
        if not sdk.fullmatch(finding.sdk) or not seen.search(finding.seen):
            return False
        plain = finding.path.partition("=")[0]
        return any(path.fullmatch(each) for each in (plain, finding.path))


class Settled(NamedTuple):
    """Findings by the rows that accept them.

    Attributes:
        new: findings that no row accepts.
        accepted: number of the findings of each row that is no loss.
        losses: number of the findings of each row that is a loss.
        stale: rows that accept nothing.
    """

    new: list[Finding]
    accepted: dict[Row, int]
    losses: dict[Row, int]
    stale: list[Row]


def settle(
    findings: Iterable[Finding], rows: Sequence[Row], walked: Collection[tuple[str, str]]
) -> Settled:
    """Compare the findings with the rows; each finding belongs to the first row that accepts it.

    Args:
        findings: the findings.
        rows: the rows.
        walked: package and protocol of the types that were walked; rows of others are not stale.
    """
    counts = dict.fromkeys(rows, 0)
    new: list[Finding] = []
    for finding in sorted(findings):
        row = next((row for row in rows if row.accepts(finding)), None)
        if row is None:
            new.append(finding)
        else:
            counts[row] += 1
    stale = [row for row, count in counts.items() if not count and row.is_about(walked)]
    return Settled(
        new,
        {row: count for row, count in counts.items() if count and not row.is_loss},
        {row: count for row, count in counts.items() if count and row.is_loss},
        stale,
    )


_REQUEST_ECHO: Final = (
    "instructions|metadata|parallel_tool_calls|temperature|tool_choice|tools|top_p|background|"
    "max_output_tokens|max_tool_calls|previous_response_id|prompt|prompt_cache_key|"
    "prompt_cache_options|prompt_cache_retention|reasoning|safety_identifier|text|top_logprobs|"
    "truncation|user|image|access_programs|store|frequency_penalty|presence_penalty"
)

_ITEMS: Final = (
    r"answer:output\[\]|response\.(completed|failed|incomplete):response\.output\[\]|"
    r"response\.output_item\.(added|done):item"
)

ACCEPTED: Final = (
    Row(_ANY, r".*:obfuscation", "filling against a reader of lengths"),
    Row(
        _ANY,
        r"(chunk|answer):object|.*:(response|interaction)\.object",
        "the name of the type, the same in all answers",
    ),
    Row("openai-responses", r".*:sequence_number", "the number of the event"),
    Row("gemini-interactions", r".*:event_id", "the number of the event"),
    Row(
        _ANY,
        r".*logprobs.*\.bytes\[\]",
        "the token's text says its bytes; bytes that a text cannot say are kept",
    ),
    Row(
        "openai-chat|mistral|bedrock-converse|gemini",
        r".*[.](delta|message|messageStart|content)\.role|messageStart:messageStart\.role",
        "an answer is the assistant's",
    ),
    Row(
        "openai-responses",
        r"response\.(created|in_progress|queued):response[.<].*",
        "the terminal event repeats it",
    ),
    Row(
        "openai-responses",
        rf"(response\.\w+:response\.|answer:)({_REQUEST_ECHO})([.\[<].*)?",
        "repeats the request",
    ),
    Row(
        "openai-responses",
        r"response\.completed:response\.(error|incomplete_details)\..*",
        "an answer that completed has none",
    ),
    Row(
        "openai-responses",
        r"response\.output_text\.done:logprobs\[\]\..*",
        "repeats those of the pieces",
    ),
    Row(
        "openai-responses",
        r"response\.image_generation_call\.partial_image:.*",
        "a preview; the item has the image",
    ),
    Row(
        "anthropic-messages",
        r".*<thinking_delta>\.estimated_tokens",
        "a hint; the counts come in the usage",
    ),
    Row(
        "anthropic-messages",
        r"message_start:message\.stop_reason",
        "a message that starts has none",
    ),
    Row(
        "gemini-interactions",
        r"interaction\.created:interaction\..*",
        "the last event repeats it",
    ),
    Row(
        "gemini-interactions",
        r"interaction\.completed:interaction\.steps\[\].*",
        "repeats the steps that were streamed",
    ),
    Row(
        "gemini-interactions",
        r"answer:(agent_config|cached_content|environment|generation_config|input|response_format|"
        r"response_mime_type|response_modalities|service_tier|system_instruction|tools|"
        r"webhook_config)([.\[<].*)?",
        "repeats the request",
    ),
    Row(
        "gemini-interactions",
        r"(answer:steps\[\]|step\.start:step)<(user_input|function_result)>.*",
        "repeats the input",
    ),
    Row(
        "openai-responses",
        r"response\.incomplete:response\.error\..*|response\.failed:response\.incomplete_details\..*",
        "an answer ends for one reason",
    ),
    Row(
        "openai-responses",
        rf"({_ITEMS})<reasoning>\.content\[\]\.text",
        "beside a summary, which is the text of the part, the item's state keeps it",
        kinds=(WRONG_PLACE,),
    ),
    Row(
        "gemini-interactions",
        r"interaction\.status_update:status",
        "the last event says how the interaction ended",
    ),
    Row(
        "gemini-interactions",
        r"answer:(labels|previous_interaction_id|safety_settings)([.\[<].*)?",
        "repeats the request",
    ),
    Row(
        "gemini-interactions",
        r"interaction\.status_update:continuation_token",
        "the last event says whether the interaction goes on",
    ),
    Row(
        "openai-responses", r".*:(response\.)?output_text", "the texts once more", sdk="openrouter"
    ),
    Row(
        "openai-responses",
        r"response\.(fusion_call|debug)\b.*",
        "the warning names the event",
        sdk="openrouter",
        kinds=(LOST, UNKNOWN_EVENT),
    ),
    Row(
        "openai-chat",
        r"chunk:choices\[\]\.delta\.token_id",
        "the number of each token, which its log probabilities have",
        sdk="together",
    ),
    Row(
        "openai-responses",
        r"response\.function_call_arguments\.done:name",
        "the item has the name",
        sdk="openrouter",
    ),
    Row("cohere-chat", r"message-end:id", "the first event has named the answer"),
    Row("cohere-chat", r"debug:prompt", "repeats the request"),
    Row("mistral", r"\w+:choices\[\]\..*tool_calls\[\]\.type", "the kind of a call"),
    Row("bedrock-converse", r"contentBlockStart:.*\.start\.image\.format", "of an empty image"),
    Row(
        "openai-chat",
        r"answer:choices\[\]\.text",
        "the text of another API, of text completions",
        sdk="together",
    ),
    Row(
        ".*",
        r"request:.*",
        "a word that is not listed, where the library has a closed list: the error names it",
        kinds=(REFUSED,),
        seen="literal_error",
    ),
)
"""Differences without a loss."""
