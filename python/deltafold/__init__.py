"""deltafold: any LLM provider's byte stream becomes one delta contract, and folds into one message.

>>> import deltafold
>>> message = deltafold.fold(body, "anthropic-messages")
>>> print(message.text, message.meta.usage)

Importing this package imports the extension alone. Each other name is imported on first use; the
stub beside this file shows the names to type checkers and editors.
"""

from importlib import import_module

from deltafold import _core
from deltafold.contract.lazy_names import names_on_first_use
from deltafold.contract.moved_modules import find_moved_modules

_NAMES = {
    "deltafold": ("arrow", "otel", "rollouts", "testing"),
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
    "deltafold.contract.exceptions": (
        "ContractError",
        "DeltafoldError",
        "InternalError",
        "MisuseError",
        "UnknownDialectError",
    ),
    "deltafold.contract.kinds": ("CONTRACT_VERSION", "DeltaKind", "ErrorCode", "FinishReason"),
    "deltafold.contract.usage": ("Usage",),
    "deltafold.conversation.agent.agent": ("Agent",),
    "deltafold.conversation.tools.tools": ("Tool",),
    "deltafold.dialects": ("migrate_config", "parse_request"),
    "deltafold.dialects.migration": ("Migrated",),
    "deltafold.dialects.model_table": ("ModelFacts", "add_models"),
    "deltafold.dialects.reader": ("ParsedRequest",),
    "deltafold.dialects.rendered": ("NoteCode", "Rendered"),
    "deltafold.errors.mapper": ("ErrorMapper",),
    "deltafold.errors.model_error": ("ModelError", "OutputError"),
    "deltafold.message.messages": (
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
    "deltafold.message.timing": ("Gaps", "Timing"),
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
    "deltafold.models.histories": ("HistoryMembers", "render_messages"),
    "deltafold.models.translation": ("TranslatedRequest", "translate_request"),
    "deltafold.specs.output_schema": ("OutputSchema",),
    "deltafold.streams.bodies": ("Detection", "decode_response", "detect"),
    "deltafold.streams.choices": ("afold_choices", "fold_choices"),
    "deltafold.streams.delta_streams": ("AsyncDeltaStream", "DeltaStream", "astream", "stream"),
    "deltafold.streams.encoded": (
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
    "deltafold.streams.events": ("StreamEvent", "StreamEventKind"),
    "deltafold.streams.folds": ("afold", "fold", "fold_many"),
    "deltafold.streams.output_streams": ("AsyncOutputStream", "OutputStream"),
    "deltafold.streams.outputs": ("Answer", "Output"),
    "deltafold.testing.captures": ("Captured", "read_capture"),
}
"""Public names without those of the adapters, by module."""

_SUBMODULES = (
    "arrow",
    "blocks",
    "compat",
    "contract",
    "conversation",
    "dialects",
    "errors",
    "integrations",
    "message",
    "models",
    "otel",
    "rollouts",
    "specs",
    "streams",
    "testing",
    "transports",
)
"""Modules that `import deltafold` alone gives access to."""

for _name in _NAMES["deltafold._core"]:
    globals()[_name] = getattr(_core, _name)
_named = names_on_first_use(__name__, _NAMES, _SUBMODULES)
find_moved_modules()


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
