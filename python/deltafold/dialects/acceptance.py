"""Content that some models accept or refuse, unlike other models of the same dialect.

Law: each row has its source. A request that a provider accepted is never called a mistake.
"""

import re
from collections.abc import Callable, Mapping
from mimetypes import guess_type
from typing import Final

from deltafold.dialects.media import Source
from deltafold.dialects.model_table import facts_of, find_model

_ASSISTANT_FIRST: Final[Mapping[str, re.Pattern[str]]] = {
    # A recording of Claude Sonnet 4.5 in 2026. Converse refuses it for models of other vendors: "A
    # conversation must start with a user message".
    "bedrock-converse": re.compile(r"anthropic\.claude-[a-z]+-\d"),
    # Recordings of Claude Haiku 4.5, Sonnet 4.5 and 4.6, and Opus 4.8 in 2026.
    "anthropic-messages": re.compile(r"claude-[a-z]+-(?:4-[5-9]|[5-9]|\d\d)(?!\d)"),
}

_OF_DEEPSEEK: Final = re.compile(r"deepseek-", re.IGNORECASE)
"""Models at DeepSeek's own API; other hosts write `deepseek-ai/` or `deepseek/` before the name."""

_DEEPSEEK_READS_TEXT: Final = re.compile(r"deepseek-(?!.*(?:vision|vl|ocr))", re.IGNORECASE)

_OF_OPENAI: Final = re.compile(r"(gpt-(?!oss)|chatgpt-|o\d)")

_NO_AUDIO: Final = re.compile(r"gpt-5(?!.*audio)")
_CLAUDE_AT_BEDROCK: Final = re.compile(r"(.*\.)?anthropic\.claude-")

_SYSTEM_FIRST: Final = re.compile(r"(?:.*/)?(?:qwen|qwq)", re.IGNORECASE)
"""Models whose chat template refuses a system message behind the first message: "System message
must be at the beginning." (the templates of Qwen 3.5 on vLLM and llama.cpp, read 2026-11)."""

OF_CLAUDE: Final = frozenset({"anthropic-messages", "bedrock-converse"})
"""Dialects whose answers may be a Claude model's."""

CALLS_NEED_NO_RESULT: Final = frozenset({"gemini"})
"""Dialects that accept a text of the user directly after calls, in place of their results.

Source: recordings of Gemini 2.0 and 2.5. A turn with fewer results than calls is refused.
"""

BLANK_TEXT_PARTS_THINKING: Final = frozenset({"anthropic-messages"})
"""Dialects that keep a blank text between two blocks of thinking.

The API refuses a blank text ("text content blocks must contain non-whitespace text"), and it
refuses thinking whose place in the answer has changed. Anthropic's page "Preserved thinking" asks
for the blocks of an answer as they were received (read 2026-11).
"""

CALL_IDS_RETURN: Final = frozenset({"anthropic-messages"})
"""Dialects that accept the id of an answered call for a new call (recordings of 2026)."""


def assistant_may_begin(dialect: str, model_id: str | None) -> bool:
    """Return whether the model is known to accept a history that the assistant begins."""
    pattern = _ASSISTANT_FIRST.get(dialect)
    return pattern is not None and pattern.search(model_id or "") is not None


def user_must_end(dialect: str, model_id: str | None) -> bool:
    """Return whether the model is known to refuse a history whose last message is the assistant's.

    Anthropic: "This model does not support assistant message prefill. The conversation must end
    with a user message" (a recording of Claude Sonnet 5 in 2026; the table of models). A newer
    version is as the last one that the table knows; of any other name nothing is known.
    """
    if dialect not in OF_CLAUDE or model_id is None:
        return False
    known, own = find_model(model_id), facts_of(model_id)
    if known is None or (known.is_stand_in and (own is None or own.line is None)):
        return False
    return known.facts.prefill is False


def calls_end_at_text(dialect: str, model_id: str | None) -> bool:
    """Return whether calls need their results before the next text of the same answer.

    DeepSeek makes messages of Chat of the items of Responses, and a text begins the next one: "No
    tool output found for tool call" (a recording of 2026).
    """
    return dialect == "openai-responses" and _is(_OF_DEEPSEEK, model_id)


def nobody_must_speak(dialect: str, model_id: str | None, *, has_system: bool) -> bool:
    """Return whether a history may be without a message of the user or the assistant.

    A request of Responses may have a stored prompt or an earlier response instead. Chat of OpenAI
    takes a system message alone; a chat template of another server may not. Source: recordings.
    """
    if dialect == "openai-responses":
        return True
    return dialect == "openai-chat" and has_system and _is(_OF_OPENAI, model_id)


def arguments_may_be_any_text(dialect: str, model_id: str | None) -> bool:
    """Return whether the model is known to accept arguments of a call that are not an object.

    OpenAI documents the arguments as a string that may be no valid JSON. Servers that fill a chat
    template with them refuse all but objects (vLLM, SGLang, llama.cpp).
    """
    return dialect in {"openai-chat", "openai-responses"} and _is(_OF_OPENAI, model_id)


def is_routed_elsewhere(model_id: str) -> bool:
    """Return whether a router of Chat takes a model to another vendor than OpenAI.

    The limit of 40 characters of a call id is OpenAI's. Source: recordings of OpenRouter in 2026,
    which took ids of 46 characters for models of DeepSeek and Qwen.
    """
    vendor, has_vendor, _ = model_id.partition("/")
    return bool(has_vendor) and vendor not in {"openai", "azure"}


def answer_needs_its_id(dialect: str, model_id: str | None) -> bool:
    """Return whether reasoning with an id is refused before an answer that lost its id.

    Source: OpenAI's error "Item 'rs_…' of type 'reasoning' was provided without its required
    following item". Recordings show that calls need no id, that answers need none after reasoning
    without an id, and that DeepSeek does not need it.
    """
    return dialect == "openai-responses" and _is(_OF_OPENAI, model_id)


def binds_reasoning(dialect: str, model_id: str) -> bool:
    """Return whether reasoning of a model is refused when what was said before it has changed.

    A Claude model that the table of models does not describe is taken as a newer one. Sources:
    Anthropic's pages "Preserved thinking" and "Troubleshooting thinking" (read 2026-11); the table.
    """
    if dialect not in OF_CLAUDE or "claude" not in model_id:
        return False
    known = find_model(model_id)
    return known is None or known.facts.binds_thinking is not False


def takes_late_system(model_id: str, *, was_given: bool) -> bool:
    """Return whether a model of the Messages API acts on a system message between the turns.

    Earlier Claude models refuse the role ("role 'system' is not supported on this model"). Sonnet 5
    answers 200 and ignores the message, so that it counts as not taking it. Source: Anthropic's
    page on mid-conversation system messages (read 2026-11); the table of models.

    Args:
        model_id: the model, by the name that the table knows it by.
        was_given: whether the client of this dialect wrote the message there; models of other
            vendors get such a message where it stood.
    """
    if "claude" not in model_id:
        return was_given
    known = find_model(model_id)
    return known is not None and known.facts.late_system is True


def system_must_be_first(model_id: str) -> bool:
    """Return whether the chat template of a model is known to refuse later system messages."""
    return _is(_SYSTEM_FIRST, model_id)


def refused_medium(dialect: str, model_id: str | None, source: Source) -> str | None:
    """Return the kind of a medium that the model is known to refuse, None for any other."""
    for of_dialect, pattern, kind, is_of_kind in _REFUSED_MEDIA:
        if dialect == of_dialect and is_of_kind(source) and _is(pattern, model_id):
            return kind
    known = find_model(model_id) if model_id else None
    if known is None:
        return None
    read = (("an image", _is_image, known.facts.images), ("audio", _is_audio, known.facts.audio))
    return next((kind for kind, is_kind, fact in read if fact is False and is_kind(source)), None)


def _is_image(source: Source) -> bool:
    return _mime_type(source).startswith("image/")


def _is_file(source: Source) -> bool:
    """Return whether a file goes out as one; that of a text is written as a text."""
    kinds = ("image/", "audio/", "video/", "text/")
    return not _mime_type(source).startswith(kinds)


def _is_audio(source: Source) -> bool:
    return _mime_type(source).startswith("audio/")


def _is_video(source: Source) -> bool:
    return _mime_type(source).startswith("video/")


def _is_image_in_s3(source: Source) -> bool:
    return source.is_image and source.value.startswith("s3://")


def _mime_type(source: Source) -> str:
    guessed = guess_type(source.value)[0] if source.kind in {"url", "uri"} else None
    return source.mime_type or guessed or ""


_REFUSED_MEDIA: Final[tuple[tuple[str, re.Pattern[str], str, Callable[[Source], bool]], ...]] = (
    # Recordings of GPT-5 mini: "Content blocks are expected to be either text or image_url type",
    # "The file type you uploaded is not supported. Please try again with a pdf".
    ("openai-chat", _NO_AUDIO, "audio", _is_audio),
    ("openai-responses", _NO_AUDIO, "audio", _is_audio),
    # Recordings of DeepSeek V4: "unknown variant `image_url`, expected `text`", and the same words
    # for `input_audio`, `video_url` and `file`.
    *(
        (of_dialect, _DEEPSEEK_READS_TEXT, kind, is_of_kind)
        for of_dialect in ("openai-chat", "openai-responses")
        for kind, is_of_kind in (
            ("an image", _is_image),
            ("audio", _is_audio),
            ("a video", _is_video),
            ("a file", _is_file),
        )
    ),
    # Recordings of Claude Sonnet 4.5: "This model doesn't support the video content block", "This
    # model doesn't support the s3Uri field" for an image; a document in S3 was accepted.
    ("bedrock-converse", _CLAUDE_AT_BEDROCK, "a video", _is_video),
    ("bedrock-converse", _CLAUDE_AT_BEDROCK, "an image in S3", _is_image_in_s3),
)


def _is(pattern: re.Pattern[str], model_id: str | None) -> bool:
    return pattern.match(model_id or "") is not None
