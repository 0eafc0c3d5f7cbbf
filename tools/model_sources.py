"""Sources of the table of models: names and claims in the installed packages.

In: the packages of `requirements/modeltable.in`.  Out: the names in the literals of the SDKs and in
litellm's list, and the claims of each package about them.

Laws: a package is read as it was installed, without a request. A value that a package gives to
every unknown name is a default of that package and makes no claim.
Sources: the modules that each function names.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib import import_module
from importlib.metadata import distribution, version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple, cast, get_args

from deltafold.dialects.model_names import canonical_model
from model_claims import Value

PACKAGES: Final = (
    "anthropic",
    "genai-prices",
    "google-genai",
    "groq",
    "litellm",
    "openai",
    "pydantic-ai-slim",
    "xai-sdk",
)

SDKS: Final = ("openai", "anthropic", "google-genai", "groq", "xai-sdk")


class Name(NamedTuple):
    """A name as a source writes it.

    Attributes:
        written: the name.
        source: the package.
        kind: the kind of the literal that has it, None if the literal mixes kinds.
        host: the vendor in litellm's list, "" for a literal of an SDK.
        is_of_chat: whether the literal is that of OpenAI's Chat Completions.
    """

    written: str
    source: str
    kind: str | None = None
    host: str = ""
    is_of_chat: bool = False

    @property
    def key(self) -> str:
        """The canonical name, with `@` before a snapshot."""
        model, snapshot = canonical_model(self.written)
        return f"{model}@{snapshot}" if snapshot else model


_LITERALS: Final = (
    ("openai", "openai.types.shared.chat_model", "ChatModel", "chat"),
    ("openai", "openai.types.shared.responses_model", "ResponsesModel", "chat"),
    ("openai", "openai.types.image_model", "ImageModel", "image"),
    ("openai", "openai.types.audio_model", "AudioModel", "transcription"),
    ("openai", "openai.types.embedding_model", "EmbeddingModel", "embedding"),
    ("openai", "openai.types.moderation_model", "ModerationModel", "moderation"),
    ("openai", "openai.types.video_model", "VideoModel", "video"),
    ("anthropic", "anthropic.types.model", "Model", "chat"),
    ("google-genai", "google.genai._gaos.types.interactions.model", "Model", None),
    ("xai-sdk", "xai_sdk.types.model", "ChatModel", "chat"),
    ("xai-sdk", "xai_sdk.types.model", "ImageGenerationModel", "image"),
    ("xai-sdk", "xai_sdk.types.model", "VideoGenerationModel", "video"),
)
_MEMBERS: Final = (
    ("openai", "openai.types.realtime.realtime_session_create_request",
     "RealtimeSessionCreateRequest", "realtime"),
    ("openai", "openai.types.audio.speech_create_params", "SpeechCreateParams", "speech"),
    ("groq", "groq.types.chat.completion_create_params", "CompletionCreateParams", "chat"),
    ("groq", "groq.types.audio.speech_create_params", "SpeechCreateParams", "speech"),
    ("groq", "groq.types.audio.transcription_create_params", "TranscriptionCreateParams",
     "transcription"),
)  # fmt: skip
"""Literals of a member `model`."""


def literal_names() -> Iterator[Name]:
    """Yield the names in the literals of the SDKs."""
    for package, module, name, kind in _LITERALS:
        for written in _strings(getattr(import_module(module), name)):
            yield Name(written, package, kind, is_of_chat=name == "ChatModel")
    for package, module, name, kind in _MEMBERS:
        holder = getattr(import_module(module), name)
        hint = _member_type(holder, import_module(module))
        for written in _strings(hint):
            yield Name(written, package, kind)


def _member_type(holder: Any, module: object) -> object:  # noqa: ANN401 - a class of an SDK
    hint = holder.__annotations__["model"]
    text = getattr(hint, "__forward_arg__", hint)
    return eval(text, vars(module)) if isinstance(text, str) else hint  # noqa: S307 - an annotation


def _strings(hint: object) -> Iterator[str]:
    for part in get_args(hint):
        if isinstance(part, str):
            yield part
        else:
            yield from _strings(part)


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
    # An import of litellm would ask for a newer list.
    path = distribution("litellm").locate_file(_LITELLM_LIST)
    rows = cast("dict[str, dict[str, Any]]", json.loads(Path(str(path)).read_bytes()))
    for written, row in rows.items():
        host = _LISTED.get(row.get("litellm_provider", ""))
        kind = _KINDS.get(row.get("mode", ""))
        is_ours = kind == "chat" or (kind is not None and host not in _OTHER_HOSTS)
        if host is not None and is_ours and _PRICE_ROW.match(written) is None:
            yield Name(written, "litellm", kind, host), row


def litellm_claims(name: Name, row: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Yield the facts in a row of litellm's list.

    A switch that a row leaves out says nothing: most rows list only what a model has.
    """
    if name.kind is not None:
        yield "kind", name.kind
    for member, fact in _SWITCHES.items():
        if isinstance(row.get(member), bool):
            yield fact, row[member]
    modalities = row.get("supported_modalities")
    for word, fact in _MODALITIES.items():
        if modalities and word not in modalities and not row.get(f"supports_{fact}_input"):
            yield fact, False
    yield from _litellm_limits(row)
    yield from _litellm_thinking(name, row)
    if name.host == "openai":
        listed = row.get("supported_endpoints")
        taken = tuple(_ENDPOINTS[path] for path in listed or () if path in _ENDPOINTS)
        if taken:
            yield "endpoints", tuple(sorted(taken))
        elif row.get("mode") == "responses":
            yield "endpoints", ("openai-responses",)
    if name.host != "bedrock":
        if row.get("deprecation_date"):
            yield "retired", row["deprecation_date"]
        if row.get("successor_model"):
            yield "successor", row["successor_model"].rpartition("/")[2]
    if name.host not in {"anthropic", "bedrock"} and row.get("supports_response_schema"):
        yield "output_format", True
    if row.get("supports_forced_tool_use") is False:
        yield "forced_tools", "never"


_INPUT_LIMITS: Final = frozenset({272_000, 922_000})
"""Limits of the input alone: OpenAI's windows of 400,000 and 1,050,000 less 128,000 of output."""


def _litellm_limits(row: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    most, output = row.get("max_input_tokens"), row.get("max_output_tokens")
    if isinstance(most, int):
        yield "context_window", most + (128_000 if most in _INPUT_LIMITS else 0)
    # Some rows repeat the window where the vendor states no limit of the output.
    if isinstance(output, int) and output != most:
        yield "max_output_tokens", output


_LEVELS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _litellm_thinking(name: Name, row: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    levels = row.get("reasoning_effort_levels")
    # Bedrock's levels are those of its own API.
    for level in _LEVELS if name.host != "bedrock" else ():
        flag = row.get(f"supports_{level}_reasoning_effort")
        if levels is not None:
            yield f"effort.{level}", level in levels
        elif isinstance(flag, bool):
            yield f"effort.{level}", flag
    if row.get("default_reasoning_effort"):
        yield "default_effort", row["default_reasoning_effort"]
        yield "thinking", "optional" if row["default_reasoning_effort"] == "none" else "default"
    if row.get("thinking_always_on"):
        yield "thinking", "always"
    elif row.get("thinking_on_by_default"):
        yield "thinking", "default"
    elif name.host == "anthropic" and row.get("supports_reasoning"):
        yield "thinking", "optional"
    if row.get("supports_adaptive_thinking"):
        both = ("adaptive", "budget") if row.get("supports_legacy_thinking") else ("adaptive",)
        yield "thinking_forms", both
    if row.get("supports_sampling_params") is False:
        for setting in ("temperature", "top_k", "top_p"):
            yield f"sampling.{setting}", "never"


class Profile(NamedTuple):
    """A profile function of pydantic-ai.

    Attributes:
        vendor: vendor of the models.
        module: module of the provider.
        provider: class of the provider.
        names: pattern of the names that the authors describe.
        prefix: prefix of these names at the provider.
    """

    vendor: str
    module: str
    provider: str
    names: str
    prefix: str = ""


PROFILES: Final = (
    Profile("openai", "openai", "OpenAIProvider", r"(?:gpt|chatgpt|o\d|codex|computer)-?.*"),
    Profile("anthropic", "anthropic", "AnthropicProvider", r"claude-.*"),
    Profile("google", "google", "GoogleProvider", r"(?:gemini-\d|gemma).*"),
    Profile("xai", "xai", "XaiProvider", r"grok-.*"),
    Profile("gpt-oss", "groq", "GroqProvider", r"gpt-oss-.*", "openai/"),
    Profile("mistral", "mistral", "MistralProvider", r"mistral-.*|magistral-.*"),
    Profile("deepseek", "deepseek", "DeepSeekProvider", r"deepseek-(?:v4|flash|reasoner|chat).*"),
    Profile("moonshot", "moonshotai", "MoonshotAIProvider", r"(?:kimi|moonshot)-.*"),
    Profile("zai", "zai", "ZaiProvider", r"glm-\d(?:\.\d)?(?:v.*|-[a-z].*)?"),
    Profile("qwen", "alibaba", "AlibabaProvider", r"qwen.*"),
    Profile("cohere", "cohere", "CohereProvider", r"command-a-reasoning.*"),
)


def profile_of(profile: Profile, written: str) -> Mapping[str, Any]:
    """Return the profile of a model at its vendor."""
    module = import_module(f"pydantic_ai.providers.{profile.module}")
    return cast("Mapping[str, Any]", getattr(module, profile.provider).model_profile(written) or {})


def sdk_retirements() -> Iterator[tuple[str, str, str]]:
    """Yield name, SDK and date of the models that an SDK calls deprecated."""
    messages = import_module("anthropic.resources.messages.messages")
    for written, date in messages.DEPRECATED_MODELS.items():
        plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)", "", date)
        day = datetime.strptime(plain, "%B %d, %Y")  # noqa: DTZ007 - a date without a time
        yield written, "anthropic", day.date().isoformat()
    for module in ("chat_model", "responses_model"):
        path = files("openai.types.shared") / f"{module}.py"
        yield from ((name, "openai", date) for name, date in shutdowns(path.read_text("utf-8")))


def shutdowns(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and date of each model in the section "Deprecated values" of a module."""
    section = " ".join(text.partition("Deprecated values:")[2].split())
    for entry in section.split(' - "'):
        found = re.search(r'":.*?shut ?down date: (\d{4}-\d{2}-\d{2})', entry)
        if found is not None:
            quoted = entry[: found.start() + 1]
            for name in re.findall(r'([^", ]+)"', quoted):
                yield name, found[1]


def unstreamed_limits() -> Iterator[tuple[str, int]]:
    """Yield name and limit of the models whose unstreamed answers the anthropic SDK limits."""
    limits = import_module("anthropic._constants").MODEL_NONSTREAMING_TOKENS
    yield from cast("dict[str, int]", limits).items()


_PRICED: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "aws": "bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "google": "google",
    "groq": "groq",
    "mistral": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "x-ai": "xai",
    "zai": "zai",
}


def priced_windows() -> Iterator[tuple[Name, int]]:
    """Yield the context windows of genai-prices."""
    for provider in import_module("genai_prices.data").providers:
        host = _PRICED.get(provider.id)
        for model in provider.models if host is not None else ():
            if model.context_window:
                yield Name(model.id, "genai-prices", None, host or ""), model.context_window


def versions() -> dict[str, str]:
    """Return the versions of the sources."""
    return {package: version(package) for package in PACKAGES}
