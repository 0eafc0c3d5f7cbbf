"""Histories that some providers and models accept although others refuse them.

Law: each row has its source. A request that a provider accepted is never called a mistake.
"""

import re
from collections.abc import Mapping
from typing import Final

_ASSISTANT_FIRST: Final[Mapping[str, re.Pattern[str]]] = {
    # A recording of Claude Sonnet 4.5 in 2026. Converse refuses it for models of other vendors: "A
    # conversation must start with a user message".
    "bedrock-converse": re.compile(r"anthropic\.claude-[a-z]+-\d"),
}

_OF_OPENAI: Final = re.compile(r"(gpt-(?!oss)|chatgpt-|o\d)")
_OF_DEEPSEEK: Final = re.compile(r"deepseek-")

CALLS_NEED_NO_RESULT: Final = frozenset({"gemini"})
"""Dialects that accept a text of the user directly after calls, in place of their results.

Source: recordings of Gemini 2.0 and 2.5. A turn with fewer results than calls is refused.
"""

CALL_IDS_RETURN: Final = frozenset({"anthropic-messages"})
"""Dialects that accept the id of an answered call for a new call (recordings of 2026)."""


def assistant_may_begin(dialect: str, model_id: str | None) -> bool:
    """Return whether the model is known to accept a history that the assistant begins."""
    pattern = _ASSISTANT_FIRST.get(dialect)
    return pattern is not None and pattern.search(model_id or "") is not None


def arguments_may_be_any_text(dialect: str, model_id: str | None) -> bool:
    """Return whether the model is known to accept arguments of a call that are not an object.

    OpenAI documents the arguments as a string that may be no valid JSON. Servers that fill a chat
    template with them refuse all but objects (vLLM, SGLang, llama.cpp).
    """
    return dialect in {"openai-chat", "openai-responses"} and _is(_OF_OPENAI, model_id)


def answer_needs_its_id(dialect: str, model_id: str | None) -> bool:
    """Return whether reasoning with an id is refused before an answer that lost its id.

    Source: OpenAI's error "Item 'rs_…' of type 'reasoning' was provided without its required
    following item". Recordings show that calls need no id, that answers need none after reasoning
    without an id, and that DeepSeek does not need it.
    """
    return dialect == "openai-responses" and _is(_OF_OPENAI, model_id)


def results_follow_each_message(dialect: str, model_id: str | None) -> bool:
    """Return whether results must follow each of neighbouring assistant messages with calls.

    Others read the neighbours as one message. Source: DeepSeek's error "An assistant message with
    'tool_calls' must be followed by tool messages responding to each 'tool_call_id'".
    """
    return dialect == "openai-chat" and _is(_OF_DEEPSEEK, model_id)


def _is(pattern: re.Pattern[str], model_id: str | None) -> bool:
    return pattern.match(model_id or "") is not None
