"""deltafold: any LLM provider's byte stream becomes one delta contract, and folds into one message.

>>> import deltafold
>>> message = deltafold.fold(body, "anthropic-messages")
>>> print(message.text, message.meta.usage)

Importing this package imports the extension alone. Each other name is imported on first use.
"""

from importlib import import_module

from deltafold._core import (
    ChoicesDecoder,
    ChoicesEncoder,
    Decoder,
    DeltaBatch,
    Encoder,
    Fold,
    JsonDefect,
    Limits,
    Logprobs,
    MessageAssembler,
    MessageDelta,
    PartialJson,
    ToolCallBuffer,
    Transcoder,
    __version__,
    dialect_names,
    markup_names,
    target_names,
)
from deltafold.lazy_names import names_on_first_use

TYPE_CHECKING = False  # type checkers take it as true; importing `typing` costs more than Fold
if TYPE_CHECKING:
    import deltafold.models.adapters as _adapters
    from deltafold import otel, testing
    from deltafold.bodies import Detection, decode_response, detect
    from deltafold.choices import afold_choices, fold_choices
    from deltafold.contract import CONTRACT_VERSION, DeltaKind, ErrorCode, FinishReason
    from deltafold.conversation.agent import Agent
    from deltafold.conversation.tools import Tool
    from deltafold.dialects import migrate_config, parse_request
    from deltafold.dialects.migration import Migrated
    from deltafold.dialects.reader import ParsedRequest
    from deltafold.dialects.rendered import NoteCode, Rendered
    from deltafold.encoding import (
        EncodedBody,
        atranscode_chunks,
        encode_choices,
        encode_error,
        encode_message,
        message_deltas,
        transcode,
        transcode_chunks,
        transcode_response,
    )
    from deltafold.error_mapping import ErrorMapper
    from deltafold.errors import ModelError, OutputError
    from deltafold.events import StreamEvent, StreamEventKind
    from deltafold.exceptions import (
        ContractError,
        DeltafoldError,
        InternalError,
        MisuseError,
        UnknownDialectError,
    )
    from deltafold.folds import afold, fold, fold_many
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
    from deltafold.models import (
        VENDORS,
        CacheConfig,
        Capability,
        Hooks,
        LocalConfig,
        LocalModel,
        Model,
        ModelConfig,
        ModelInfo,
        RateLimit,
        RequestContext,
        RequestMetadata,
        ResponseInfo,
        Timeouts,
        ToolChoice,
        ToolSpec,
        Vendor,
        load_model,
    )
    from deltafold.models.adapters import *  # noqa: F403 - the names are there
    from deltafold.output_schema import OutputSchema
    from deltafold.output_streams import AsyncOutputStream, OutputStream
    from deltafold.outputs import Answer, Output
    from deltafold.streams import AsyncDeltaStream, DeltaStream, astream, stream
    from deltafold.timing import Gaps, Timing
    from deltafold.usage import Usage

    __all__: list[str] = [
        "CONTRACT_VERSION",
        "VENDORS",
        "Agent",
        "Answer",
        "AsyncDeltaStream",
        "AsyncOutputStream",
        "CacheConfig",
        "Capability",
        "ChoicesDecoder",
        "ChoicesEncoder",
        "ContractError",
        "Decoder",
        "DeltaBatch",
        "DeltaKind",
        "DeltaStream",
        "DeltafoldError",
        "Detection",
        "EncodedBody",
        "Encoder",
        "ErrorCode",
        "ErrorMapper",
        "FileRefPart",
        "FinishReason",
        "Fold",
        "Gaps",
        "Hooks",
        "ImagePart",
        "InternalError",
        "JsonDefect",
        "Limits",
        "LocalConfig",
        "LocalModel",
        "Logprobs",
        "Message",
        "MessageAssembler",
        "MessageDelta",
        "MessagePart",
        "Meta",
        "Migrated",
        "MisuseError",
        "Model",
        "ModelConfig",
        "ModelError",
        "ModelInfo",
        "NoteCode",
        "Output",
        "OutputError",
        "OutputSchema",
        "OutputStream",
        "ParsedRequest",
        "PartialJson",
        "ProviderPart",
        "RateLimit",
        "Rendered",
        "RequestContext",
        "RequestMetadata",
        "ResponseInfo",
        "Role",
        "StreamEvent",
        "StreamEventKind",
        "TextPart",
        "ThinkingPart",
        "Timeouts",
        "Timing",
        "Tool",
        "ToolCallBuffer",
        "ToolCallPart",
        "ToolChoice",
        "ToolResultPart",
        "ToolSpec",
        "Transcoder",
        "UnknownDialectError",
        "Usage",
        "Vendor",
        "__version__",
        "afold",
        "afold_choices",
        "astream",
        "atranscode_chunks",
        "decode_response",
        "detect",
        "dialect_names",
        "encode_choices",
        "encode_error",
        "encode_message",
        "fold",
        "fold_choices",
        "fold_many",
        "load_model",
        "markup_names",
        "message_deltas",
        "migrate_config",
        "otel",
        "parse_request",
        "stream",
        "target_names",
        "testing",
        "transcode",
        "transcode_chunks",
        "transcode_response",
    ]
    __all__ += _adapters.__all__  # type: ignore[has-type]  # mypy, of an import below this file

_NAMES = {
    "deltafold": ("otel", "testing"),
    "deltafold._core": (
        "ChoicesDecoder",
        "ChoicesEncoder",
        "Decoder",
        "DeltaBatch",
        "Encoder",
        "Fold",
        "JsonDefect",
        "Limits",
        "Logprobs",
        "MessageAssembler",
        "MessageDelta",
        "PartialJson",
        "ToolCallBuffer",
        "Transcoder",
        "__version__",
        "dialect_names",
        "markup_names",
        "target_names",
    ),
    "deltafold.bodies": ("Detection", "decode_response", "detect"),
    "deltafold.choices": ("afold_choices", "fold_choices"),
    "deltafold.contract": ("CONTRACT_VERSION", "DeltaKind", "ErrorCode", "FinishReason"),
    "deltafold.conversation.agent": ("Agent",),
    "deltafold.conversation.tools": ("Tool",),
    "deltafold.dialects": ("migrate_config", "parse_request"),
    "deltafold.dialects.migration": ("Migrated",),
    "deltafold.dialects.reader": ("ParsedRequest",),
    "deltafold.dialects.rendered": ("NoteCode", "Rendered"),
    "deltafold.encoding": (
        "EncodedBody",
        "atranscode_chunks",
        "encode_choices",
        "encode_error",
        "encode_message",
        "message_deltas",
        "transcode",
        "transcode_chunks",
        "transcode_response",
    ),
    "deltafold.error_mapping": ("ErrorMapper",),
    "deltafold.errors": ("ModelError", "OutputError"),
    "deltafold.events": ("StreamEvent", "StreamEventKind"),
    "deltafold.exceptions": (
        "ContractError",
        "DeltafoldError",
        "InternalError",
        "MisuseError",
        "UnknownDialectError",
    ),
    "deltafold.folds": ("afold", "fold", "fold_many"),
    "deltafold.messages": (
        "FileRefPart",
        "ImagePart",
        "Message",
        "MessagePart",
        "Meta",
        "ProviderPart",
        "Role",
        "TextPart",
        "ThinkingPart",
        "ToolCallPart",
        "ToolResultPart",
    ),
    "deltafold.models": (
        "VENDORS",
        "CacheConfig",
        "Capability",
        "Hooks",
        "LocalConfig",
        "LocalModel",
        "Model",
        "ModelConfig",
        "ModelInfo",
        "RateLimit",
        "RequestContext",
        "RequestMetadata",
        "ResponseInfo",
        "Timeouts",
        "ToolChoice",
        "ToolSpec",
        "Vendor",
        "load_model",
    ),
    "deltafold.output_schema": ("OutputSchema",),
    "deltafold.output_streams": ("AsyncOutputStream", "OutputStream"),
    "deltafold.outputs": ("Answer", "Output"),
    "deltafold.streams": ("AsyncDeltaStream", "DeltaStream", "astream", "stream"),
    "deltafold.timing": ("Gaps", "Timing"),
    "deltafold.usage": ("Usage",),
}
"""Public names without those of the adapters, by module."""

_SUBMODULES = (
    "arguments",
    "bodies",
    "compat",
    "contract",
    "conversation",
    "cost",
    "dialects",
    "encoding",
    "error_causes",
    "error_mapping",
    "errors",
    "events",
    "exceptions",
    "folds",
    "foreign_text",
    "integrations",
    "messages",
    "models",
    "otel",
    "output_schema",
    "output_streams",
    "outputs",
    "parts",
    "stream_core",
    "streams",
    "testing",
    "timing",
    "transports",
)
"""Modules that `import deltafold` alone gives access to."""

_named = names_on_first_use(__name__, _NAMES, _SUBMODULES)


def _all() -> list[str]:
    listed = [name for names in _NAMES.values() for name in names]
    return sorted({*listed, *import_module("deltafold.models").__all__})


def __getattr__(name: str) -> object:
    # The registry of dialects derives the names of the adapters, so that no table here has them.
    if name == "__all__":
        return _all()
    if name.endswith(("Config", "Model")):
        models = import_module("deltafold.models")
        if name in models.__all__:
            value: object = getattr(models, name)
            globals()[name] = value
            return value
    return _named(name)


def __dir__() -> list[str]:
    # Names of this file are no help to somebody who looks for the public ones.
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *_SUBMODULES, *_all()})
