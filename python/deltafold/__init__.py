"""deltafold: any LLM provider's byte stream becomes one delta contract, and folds into one message.

>>> import deltafold
>>> message = deltafold.fold(body, "anthropic-messages")
>>> print(message.text, message.meta.usage)

Models load on first use: importing this package imports no SDK and no HTTP client.
"""

from importlib import import_module
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
from deltafold.error_mapping import ErrorMapper
from deltafold.errors import ModelError
from deltafold.events import StreamEvent, StreamEventKind
from deltafold.exceptions import (
    ContractError,
    DeltafoldError,
    InternalError,
    MisuseError,
    UnknownDialectError,
)
from deltafold.folds import Fold, afold, fold, fold_many
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
from deltafold.streams import AsyncDeltaStream, DeltaStream, astream, stream
from deltafold.timing import Gaps, Timing

if TYPE_CHECKING:
    from deltafold import otel, testing
    from deltafold.dialects import parse_request
    from deltafold.dialects.reader import ParsedRequest
    from deltafold.dialects.rendered import NoteCode, Rendered
    from deltafold.models import *  # noqa: F403 - the names are there
    from deltafold.models.adapters import *  # noqa: F403 - the names are there

__all__ = [
    "CONTRACT_VERSION",
    "AsyncDeltaStream",
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
    "Gaps",
    "ImagePart",
    "InternalError",
    "JsonDefect",
    "Limits",
    "Logprobs",
    "Message",
    "MessageAssembler",
    "MessageDelta",
    "MessagePart",
    "Meta",
    "MisuseError",
    "ModelError",
    "NoteCode",
    "ParsedRequest",
    "PartialJson",
    "ProviderPart",
    "Rendered",
    "Role",
    "StreamEvent",
    "StreamEventKind",
    "TextPart",
    "ThinkingPart",
    "Timing",
    "ToolCallBuffer",
    "ToolCallPart",
    "ToolResultPart",
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
    "otel",
    "parse_request",
    "stream",
    "testing",
]
__all__ += _models.__all__

_SUBMODULES = ("otel", "testing")
_MODULES = {
    "NoteCode": "deltafold.dialects.rendered",
    "ParsedRequest": "deltafold.dialects.reader",
    "Rendered": "deltafold.dialects.rendered",
    "parse_request": "deltafold.dialects",
    **dict.fromkeys(_models.__all__, "deltafold.models"),
}


def __getattr__(name: str) -> object:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _MODULES:
        value: object = getattr(import_module(_MODULES[name]), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
