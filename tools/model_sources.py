"""Sources of the table of models, in the installed packages.

In: the packages of `requirements/modeltable.in`.  Out: the names in the literals of the SDKs, the
profiles of pydantic-ai, the windows of genai-prices, and the SDKs' dates and limits.

Law: a package is read as it was installed, without a request.
Sources: the modules that each function names.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final, NamedTuple, cast, get_args

from model_claims import Name

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
        plain = re.sub(r"(?<=\d)[a-z]{2}", "", date)
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
