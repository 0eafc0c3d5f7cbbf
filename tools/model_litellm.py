"""Names and facts in litellm's list of models.

In: the list inside the installed wheel.  Out: its rows of the vendors that the table has, and the
facts in one row.

Laws: litellm is not imported, since an import asks for a newer list. The efforts and dates
of a row of Bedrock are those of Bedrock and make no claim about the vendor's own API.
Source: litellm/model_prices_and_context_window_backup.json.
"""

import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from model_claims import Name, Value
from model_profiles import LEVELS

Found: TypeAlias = Iterator[tuple[str, Value]]

_LITELLM_LIST: Final = "litellm/model_prices_and_context_window_backup.json"

# Providers of litellm's list: the vendors whose own models the table has, and Bedrock.
_LISTED: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "bedrock_converse": "bedrock",
    "bedrock_mantle": "bedrock",
    "cohere": "cohere",
    "cohere_chat": "cohere",
    "dashscope": "qwen",
    "deepseek": "deepseek",
    "gemini": "google",
    "groq": "groq",
    "mistral": "mistral",
    "moonshot": "moonshot",
    "openai": "openai",
    "xai": "xai",
    "zai": "zai",
}

_OTHER_HOSTS: Final = frozenset({"bedrock", "groq", "qwen"})
"""Hosts of which only the chat models have rows."""

_KINDS: Final[Mapping[str, str]] = {
    "audio_speech": "speech",
    "audio_transcription": "transcription",
    "chat": "chat",
    "completion": "completion",
    "embedding": "embedding",
    "image_edit": "image",
    "image_generation": "image",
    "moderation": "moderation",
    "ocr": "ocr",
    "realtime": "realtime",
    "rerank": "rerank",
    "responses": "chat",
    "video_generation": "video",
}

_PRICE_ROW: Final = re.compile(r"ft:|(?:openai/)?container$|\d|(?:hd|standard|low|medium|high)/")
"""Rows for the prices of a fine-tune, of a container, and of each quality and size of an image."""

_SWITCHES: Final[Mapping[str, str]] = {
    "supports_assistant_prefill": "prefill",
    "supports_audio_input": "audio",
    "supports_function_calling": "tools",
    "supports_mid_conversation_system": "late_system",
    "supports_native_structured_output": "output_format",
    "supports_parallel_function_calling": "parallel_tools",
    "supports_pdf_input": "pdf",
    "supports_vision": "images",
}

_ENDPOINTS: Final[Mapping[str, str]] = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
}

_MODALITIES: Final[Mapping[str, str]] = {"audio": "audio", "image": "images"}


def litellm_rows() -> Iterator[tuple[Name, Mapping[str, Any]]]:
    """Yield the rows of litellm's list that the table reads."""
    path = distribution("litellm").locate_file(_LITELLM_LIST)
    rows = cast("dict[str, dict[str, Any]]", json.loads(Path(str(path)).read_bytes()))
    for written, row in rows.items():
        host = _LISTED.get(row.get("litellm_provider", ""))
        kind = _KINDS.get(row.get("mode", ""))
        is_ours = kind == "chat" or (kind is not None and host not in _OTHER_HOSTS)
        if host is not None and is_ours and _PRICE_ROW.match(written) is None:
            yield Name(written, "litellm", kind, host), row


def litellm_claims(name: Name, row: Mapping[str, Any]) -> Found:
    """Yield the facts in a row of litellm's list.

    A switch that a row leaves out makes no claim: most rows list only what a model has.
    """
    if name.kind is not None:
        yield "kind", name.kind
    yield from _switches(name, row)
    yield from _limits(row)
    if name.host != "bedrock":  # its levels and dates are those of its own API
        yield from _levels(row)
        yield from _dates(row)
    yield from _thinking(name, row)
    if name.host == "openai":
        yield from _apis(row)


def _switches(name: Name, row: Mapping[str, Any]) -> Found:
    for member, fact in _SWITCHES.items():
        if isinstance(row.get(member), bool):
            yield fact, row[member]
    modalities = row.get("supported_modalities")
    for word, fact in _MODALITIES.items():
        if modalities and word not in modalities and not row.get(f"supports_{fact}_input"):
            yield fact, False
    if name.host not in {"anthropic", "bedrock"} and row.get("supports_response_schema"):
        yield "output_format", True
    if row.get("supports_forced_tool_use") is False:
        yield "forced_tools", "never"
    if row.get("supports_sampling_params") is False:
        for setting in ("temperature", "top_k", "top_p"):
            yield f"sampling.{setting}", "never"


def _apis(row: Mapping[str, Any]) -> Found:
    listed = row.get("supported_endpoints")
    taken = tuple(sorted(_ENDPOINTS[path] for path in listed or () if path in _ENDPOINTS))
    if taken:
        yield "endpoints", taken
    elif row.get("mode") == "responses":
        yield "endpoints", ("openai-responses",)


def _dates(row: Mapping[str, Any]) -> Found:
    if row.get("deprecation_date"):
        yield "retired", row["deprecation_date"]
    if row.get("successor_model"):
        yield "successor", row["successor_model"].rpartition("/")[2]


_INPUT_LIMITS: Final = frozenset({272_000, 922_000})
"""Limits of the input alone: OpenAI's windows of 400,000 and 1,050,000 less 128,000 of output."""


def _limits(row: Mapping[str, Any]) -> Found:
    most, output = row.get("max_input_tokens"), row.get("max_output_tokens")
    if isinstance(most, int):
        yield "context_window", most + (128_000 if most in _INPUT_LIMITS else 0)
    # Some rows repeat the window where the vendor states no limit of the output.
    if isinstance(output, int) and output != most:
        yield "max_output_tokens", output


def _levels(row: Mapping[str, Any]) -> Found:
    levels = row.get("reasoning_effort_levels")
    for level in LEVELS:
        flag = row.get(f"supports_{level}_reasoning_effort")
        if levels is not None:
            yield f"effort.{level}", level in levels
        elif isinstance(flag, bool):
            yield f"effort.{level}", flag
    if row.get("default_reasoning_effort"):
        yield "default_effort", row["default_reasoning_effort"]
        yield "thinking", "optional" if row["default_reasoning_effort"] == "none" else "default"


def _thinking(name: Name, row: Mapping[str, Any]) -> Found:
    if row.get("thinking_always_on"):
        yield "thinking", "always"
    elif row.get("thinking_on_by_default"):
        yield "thinking", "default"
    elif name.host == "anthropic" and row.get("supports_reasoning"):
        yield "thinking", "optional"
    if row.get("supports_adaptive_thinking"):
        both = ("adaptive", "budget") if row.get("supports_legacy_thinking") else ("adaptive",)
        yield "thinking_forms", both
