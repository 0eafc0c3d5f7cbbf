"""Places of a message where only certain members may come, and where these must come.

In: a protocol, the path of a member and the places where its marker is.  Out: what is wrong with
them.

Laws: what a reader sees, what a tool gets and what is counted comes from the members of this table
alone. A member of the table that is kept is in its place.
Source: docs/protocols/<protocol>.md.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

TEXT: Final = r"parts\[text\]\.payload\.text"
THINKING: Final = r"parts\[thinking\]\.payload\.text"
ARGUMENTS: Final = r"parts\[tool_call\]\.payload\.(arguments.*|rawArgsText)"
NAME: Final = r"parts\[tool_call\]\.payload\.toolName"
CALL_ID: Final = r"parts\[tool_call\]\.payload\.toolCallId"
USAGE: Final = r"meta\.usage\.(?!details|cost)\w+"
FAILURE: Final = r"error\.message"

_CHAT_MESSAGE: Final = r"\w+:choices\[\]\.(delta|message)\."
_CHAT: Final[Mapping[str, str]] = {
    TEXT: _CHAT_MESSAGE + r"(content|content\[\]<text>\.text|refusal|audio\.transcript)",
    THINKING: _CHAT_MESSAGE
    + r"(reasoning(_content)?|content\[\]<thinking>\.thinking\[\]<text>\.text|"
    r"reasoning_details\[\]<reasoning\.(text|summary)>\.(text|summary))",
    ARGUMENTS: _CHAT_MESSAGE
    + r"(function_call|tool_calls\[\](<\w+>)?\.(function|custom))\.(arguments|input)(\.key\.any)?",
    NAME: _CHAT_MESSAGE + r"(function_call|tool_calls\[\](<\w+>)?\.(function|custom))\.name",
    CALL_ID: _CHAT_MESSAGE + r"tool_calls\[\](<\w+>)?\.id",
    USAGE: r"\w+:(x_groq\.)?usage\..*",
    FAILURE: r"\w+:(choices\[\]\.)?error\.message",
}
_ITEM: Final = r"(answer:|response\.(completed|failed|incomplete):response\.)output\[\]|"
_ITEM_OF: Final = rf"({_ITEM}response\.output_item\.(added|done):item)"
_BLOCK: Final = (
    r"(answer:content\[\]|message_start:message\.content\[\]|content_block_start:content_block)"
)
_STEP: Final = r"(answer:steps\[\]|step\.start:step)"
_CALL: Final = r"(answer:|tool-call-\w+:delta\.)message\.tool_calls(\[\])?"
_PLACES: Final[Mapping[str, Mapping[str, str]]] = {
    "openai-chat": _CHAT,
    "mistral": _CHAT,
    "openai-responses": {
        TEXT: rf"{_ITEM_OF}<message>\.content\[\]<(output_text>\.text|refusal>\.refusal)|"
        r"response\.content_part\.(added|done):part<(output_text>\.text|refusal>\.refusal)|"
        r"response\.(output_text|refusal|audio\.transcript)\.(delta|done):(delta|text|refusal)",
        THINKING: rf"{_ITEM_OF}<reasoning>\.(summary|content)\[\]\.text|"
        r"response\.content_part\.(added|done):part<reasoning_text>\.text|"
        r"response\.reasoning_summary_part\.(added|done):part\.text|"
        r"response\.reasoning(_summary)?_text\.(delta|done):(delta|text)",
        ARGUMENTS: rf"{_ITEM_OF}<(function|custom_tool)_call>\.(arguments|input)|"
        r"response\.(function_call_arguments|custom_tool_call_input)\.\w+:(delta|arguments|input)",
        NAME: rf"{_ITEM_OF}<(function|custom_tool)_call>\.(name|namespace)|"
        r"response\.function_call_arguments\.done:name",
        CALL_ID: rf"{_ITEM_OF}<(function|custom_tool)_call>\.call_id",
        USAGE: r"(answer:|response\.\w+:response\.)usage\..*",
        FAILURE: r"error:message|(answer:|response\.failed:response\.)error\.message",
    },
    "anthropic-messages": {
        TEXT: rf"{_BLOCK}<text>\.text|"
        r"content_block_delta:delta<text_delta>\.text",
        THINKING: rf"{_BLOCK}<thinking>\.thinking|"
        r"content_block_delta:delta<thinking_delta>\.thinking",
        ARGUMENTS: rf"{_BLOCK}<tool_use>\.input\..*|"
        r"content_block_delta:delta<input_json_delta>\.partial_json",
        NAME: rf"{_BLOCK}<tool_use>\.name",
        CALL_ID: rf"{_BLOCK}<tool_use>\.id",
        USAGE: r"(answer:|message_start:message\.|message_delta:)usage\..*",
    },
    "gemini": {
        TEXT: r"\w+:candidates\[\]\.content\.parts\[\]\.text",
        THINKING: r"\w+:candidates\[\]\.content\.parts\[\]\.text",
        ARGUMENTS: r"\w+:candidates\[\]\.content\.parts\[\]\.functionCall\.(args|partialArgs).*",
        NAME: r"\w+:candidates\[\]\.content\.parts\[\]\.functionCall\.name",
        CALL_ID: r"\w+:candidates\[\]\.content\.parts\[\]\.functionCall\.id",
        USAGE: r"\w+:usageMetadata\..*",
        FAILURE: r"\w+:promptFeedback\.blockReason(Message|=\?)",
    },
    "gemini-interactions": {
        TEXT: rf"{_STEP}<model_output>\.content\[\]<text>\.text|"
        r"step\.delta:delta<text>\.text",
        THINKING: rf"{_STEP}<thought>\.summary\[\]<text>\.text|"
        r"step\.delta:delta<thought_summary>\.content<text>\.text",
        ARGUMENTS: rf"{_STEP}<function_call>\.arguments\..*|"
        r"step\.delta:delta<arguments_delta>\.arguments",
        NAME: rf"{_STEP}<function_call>\.name",
        CALL_ID: rf"{_STEP}<function_call>\.id",
        USAGE: r"[\w.]+:(\w+\.)?(\w*_)?usage\..*",
        FAILURE: r"error:error\.message|"
        rf"{_STEP}<model_output>\.error\.message",
    },
    "cohere-chat": {
        TEXT: r"answer:message\.content\[\]<text>\.text|"
        r"content-(start|delta):delta\.message\.content\.text",
        THINKING: r"answer:message\.(content\[\]<thinking>\.thinking|tool_plan)|"
        r"content-(start|delta):delta\.message\.content\.thinking|"
        r"tool-plan-delta:delta\.message\.tool_plan",
        ARGUMENTS: rf"{_CALL}\.function\.arguments",
        NAME: rf"{_CALL}\.function\.name",
        CALL_ID: rf"{_CALL}\.id",
        USAGE: r"(answer:|message-end:delta\.)usage\..*",
        FAILURE: r"message-end:delta\.error",
    },
    "bedrock-converse": {
        TEXT: r"answer:output\.message\.content\[\]\.(text|citationsContent\.content\[\]\.text)|"
        r"contentBlockDelta:contentBlockDelta\.delta\.text",
        THINKING: r"answer:output\.message\.content\[\]\.reasoningContent\.reasoningText\.text|"
        r"contentBlockDelta:contentBlockDelta\.delta\.reasoningContent\.text",
        ARGUMENTS: r"answer:output\.message\.content\[\]\.toolUse\.input\..*|"
        r"contentBlockDelta:contentBlockDelta\.delta\.toolUse\.input",
        NAME: r"(answer:output\.message\.content\[\]|contentBlockStart:contentBlockStart\.start)"
        r"\.toolUse\.name",
        CALL_ID: r"(answer:output\.message\.content\[\]|contentBlockStart:contentBlockStart\.start)"
        r"\.toolUse\.toolUseId",
        USAGE: r"(answer:|metadata:metadata\.)usage\..*",
        FAILURE: r"\w+Exception:\w+\.message",
    },
}
"""Members that may come into a place, by protocol."""
_MUST: Final = (TEXT, THINKING, ARGUMENTS, NAME, CALL_ID)
"""Places to which their members must come. A count may be corrected, and is then in the record."""


@cache
def _allowed(protocol: str, path: str) -> tuple[str, ...]:
    rows = _PLACES.get(protocol, {})
    return tuple(place for place, members in rows.items() if re.fullmatch(members, path))


@cache
def _governed(place: str) -> str | None:
    governed = (TEXT, THINKING, ARGUMENTS, NAME, CALL_ID, USAGE, FAILURE)
    return next((pattern for pattern in governed if re.fullmatch(pattern, place)), None)


def wrong_place(protocol: str, path: str, where: Iterable[str]) -> str:
    """Return the place where a member must not be, or lacks; empty if all is well."""
    if path.startswith("request:"):
        return ""
    allowed = _allowed(protocol, path)
    there = {pattern: place for place in where if (pattern := _governed(place)) is not None}
    for pattern, place in there.items():
        if pattern not in allowed:
            return f"found in {place}"
    wanted = [place for place in allowed if place in _MUST]
    if wanted and not any(place in there for place in wanted):
        return f"not found in {wanted[0]}"
    return ""
