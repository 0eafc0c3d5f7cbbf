"""Types of the official SDKs that are walked, with the protocol of each.

In: the installed packages.  Out: `Root`: the type of a stream's events, of a whole answer or of a
request.

Law: a package that is not installed is left out, and the report names it.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from markers_types import Choice, Member, Record, Shape, shape_of, shape_of_botocore

Form: TypeAlias = Literal["stream", "answer", "request"]


class Root(NamedTuple):
    """A type of an SDK.

    Attributes:
        sdk: the package.
        protocol: the dialect of its values.
        form: whether it is an event of a stream, a whole answer or a request.
        module: the module of the type; for botocore the operation.
        name: the name of the type.
    """

    sdk: str
    protocol: str
    form: Form
    module: str
    name: str

    @property
    def hint(self) -> Any:  # noqa: ANN401 - a type, or a shape of botocore
        """The type."""
        if self.sdk == "botocore":
            return _botocore(self.module, self.name)
        return getattr(import_module(self.module), self.name)

    @property
    def shape(self) -> Shape:
        """The shape of the type."""
        return (shape_of_botocore if self.sdk == "botocore" else shape_of)(self.hint)

    def events(self) -> Iterator[tuple[str, Shape]]:
        """Yield the name and the shape of each event."""
        shape = self.shape
        if self.form != "stream":
            yield self.form, shape
        elif self.sdk == "botocore":
            yield from _events_of(shape)
        elif isinstance(shape, Choice):
            events = (each for each in shape.alternatives if isinstance(each, Record))
            yield from ((event.tag, event) for event in events)
        else:
            yield "chunk", shape


def _events_of(shape: Shape) -> Iterator[tuple[str, Record]]:
    """Yield the events of an event stream of botocore: objects with one member, their name."""
    if isinstance(shape, Record):
        for name, member in shape.members.items():
            members = {name: Member(member.shape, is_required=True)}
            yield name, Record((shape.name, name), shape.name, _read_of(members))


def _read_of(members: Mapping[str, Member]) -> Callable[[], Mapping[str, Member]]:
    return lambda: members


def _botocore(operation: str, name: str) -> Any:  # noqa: ANN401 - botocore is untyped
    loader: Any = import_module("botocore.loaders").Loader()
    model: Any = import_module("botocore.model")
    service = model.ServiceModel(loader.load_service_model("bedrock-runtime", "service-2"))
    shape = service.operation_model(operation).output_shape
    return shape.members[name] if name else shape


_CHAT: Final = "openai-chat"
_RESPONSES: Final = "openai-responses"
_MESSAGES: Final = "anthropic-messages"
_INTERACTIONS: Final = "google.genai._gaos.types.interactions"
ROOTS: Final = (
    Root("openai", _CHAT, "stream", "openai.types.chat", "ChatCompletionChunk"),
    Root("openai", _CHAT, "answer", "openai.types.chat", "ChatCompletion"),
    Root("openai", _CHAT, "request", "openai.types.chat.completion_create_params",
         "CompletionCreateParamsStreaming"),
    Root("openai", _RESPONSES, "stream", "openai.types.responses", "ResponseStreamEvent"),
    Root("openai", _RESPONSES, "answer", "openai.types.responses", "Response"),
    Root("openai", _RESPONSES, "request", "openai.types.responses.response_create_params",
         "ResponseCreateParamsStreaming"),
    Root("anthropic", _MESSAGES, "stream", "anthropic.types.beta", "BetaRawMessageStreamEvent"),
    Root("anthropic", _MESSAGES, "stream", "anthropic.types", "RawMessageStreamEvent"),
    Root("anthropic", _MESSAGES, "answer", "anthropic.types.beta", "BetaMessage"),
    Root("anthropic", _MESSAGES, "answer", "anthropic.types", "Message"),
    Root("anthropic", _MESSAGES, "request", "anthropic.types.message_create_params",
         "MessageCreateParamsStreaming"),
    Root("anthropic", _MESSAGES, "request", "anthropic.types.beta.message_create_params",
         "MessageCreateParamsStreaming"),
    Root("google-genai", "gemini", "stream", "google.genai.types", "GenerateContentResponse"),
    Root("google-genai", "gemini", "answer", "google.genai.types", "GenerateContentResponse"),
    Root("google-genai", "gemini-interactions", "stream", _INTERACTIONS, "InteractionSSEEvent"),
    Root("google-genai", "gemini-interactions", "answer", _INTERACTIONS, "Interaction"),
    Root("mistralai", "mistral", "stream", "mistralai.client.models", "CompletionChunk"),
    Root("mistralai", "mistral", "answer", "mistralai.client.models", "ChatCompletionResponse"),
    Root("cohere", "cohere-chat", "stream", "cohere", "V2ChatStreamResponse"),
    Root("cohere", "cohere-chat", "answer", "cohere", "V2ChatResponse"),
    Root("botocore", "bedrock-converse", "stream", "ConverseStream", "stream"),
    Root("botocore", "bedrock-converse", "answer", "Converse", ""),
    Root("groq", _CHAT, "stream", "groq.types.chat", "ChatCompletionChunk"),
    Root("groq", _CHAT, "answer", "groq.types.chat", "ChatCompletion"),
    Root("openrouter", _CHAT, "stream", "openrouter.components", "ChatStreamChunk"),
    Root("openrouter", _CHAT, "answer", "openrouter.components", "ChatResult"),
    Root("openrouter", _RESPONSES, "stream", "openrouter.components", "StreamEvents"),
    Root("openrouter", _RESPONSES, "answer", "openrouter.components", "OpenResponsesResult"),
    Root("together", _CHAT, "stream", "together.types.chat", "ChatCompletionChunk"),
    Root("together", _CHAT, "answer", "together.types.chat", "ChatCompletion"),
)  # fmt: skip
PACKAGES: Final = tuple(dict.fromkeys(root.sdk for root in ROOTS))
"""Packages whose types are walked."""


def installed() -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
