"""deltafold: any LLM provider's byte stream becomes one delta contract, and folds into one message.

>>> import deltafold
>>> message = deltafold.fold(body, "anthropic-messages")
>>> print(message.text, message.meta.usage)

Models load on first use: importing this package imports no SDK and no HTTP client.
"""

from typing import TYPE_CHECKING

from deltafold import models as _models
from deltafold._core import (
    Decoder,
    DeltaBatch,
    JsonDefect,
    Limits,
    Logprobs,
    MessageAssembler,
    MessageDelta,
    PartialJson,
    ToolCallBuffer,
    __version__,
    dialect_names,
    markup_names,
)
from deltafold.bodies import Detection, decode_response, detect
from deltafold.contract import CONTRACT_VERSION, DeltaKind, ErrorCode, FinishReason, Usage
from deltafold.errors import (
    ContractError,
    DeltafoldError,
    ErrorMapper,
    InternalError,
    MisuseError,
    ModelError,
    UnknownDialectError,
)
from deltafold.messages import (
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    Meta,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.stream import (
    AsyncDeltaStream,
    DeltaStream,
    Fold,
    afold,
    astream,
    fold,
    fold_many,
    stream,
)

if TYPE_CHECKING:
    from deltafold.models import (
        AnthropicConfig,
        AnthropicModel,
        BedrockConverseConfig,
        CacheConfig,
        Capability,
        CohereChatConfig,
        GeminiConfig,
        LocalConfig,
        MistralConfig,
        Model,
        ModelConfig,
        ModelInfo,
        OllamaConfig,
        OpenAIChatConfig,
        OpenAIChatModel,
        OpenAIResponsesConfig,
        RequestMetadata,
        ToolChoice,
        ToolSpec,
    )

__all__ = [
    "CONTRACT_VERSION",
    "AnthropicConfig",
    "AnthropicModel",
    "AsyncDeltaStream",
    "BedrockConverseConfig",
    "CacheConfig",
    "Capability",
    "CohereChatConfig",
    "ContractError",
    "Decoder",
    "DeltaBatch",
    "DeltaKind",
    "DeltaStream",
    "DeltafoldError",
    "Detection",
    "ErrorCode",
    "ErrorMapper",
    "FileRefPart",
    "FinishReason",
    "Fold",
    "GeminiConfig",
    "ImagePart",
    "InternalError",
    "JsonDefect",
    "Limits",
    "LocalConfig",
    "Logprobs",
    "Message",
    "MessageAssembler",
    "MessageDelta",
    "MessagePart",
    "Meta",
    "MistralConfig",
    "MisuseError",
    "Model",
    "ModelConfig",
    "ModelError",
    "ModelInfo",
    "OllamaConfig",
    "OpenAIChatConfig",
    "OpenAIChatModel",
    "OpenAIResponsesConfig",
    "PartialJson",
    "ProviderPart",
    "RequestMetadata",
    "Role",
    "TextPart",
    "ThinkingPart",
    "ToolCallBuffer",
    "ToolCallPart",
    "ToolChoice",
    "ToolResultPart",
    "ToolSpec",
    "UnknownDialectError",
    "Usage",
    "__version__",
    "afold",
    "astream",
    "decode_response",
    "detect",
    "dialect_names",
    "fold",
    "fold_many",
    "markup_names",
    "stream",
]


def __getattr__(name: str) -> object:
    if name in __all__ and name in _models.__all__:
        value: object = getattr(_models, name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
