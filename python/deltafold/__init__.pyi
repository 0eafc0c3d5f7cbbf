# Public names for type checkers and editors; `__init__.py` imports them on first use.
# Each import is an explicit export, because jedi shows no other import of a stub.

import deltafold.models.adapters as _adapters
from deltafold import (
    arrow as arrow,
)
from deltafold import (
    otel as otel,
)
from deltafold import (
    rollouts as rollouts,
)
from deltafold import (
    testing as testing,
)
from deltafold._core import (
    ChoicesDecoder as ChoicesDecoder,
)
from deltafold._core import (
    ChoicesEncoder as ChoicesEncoder,
)
from deltafold._core import (
    Decoder as Decoder,
)
from deltafold._core import (
    DeltaBatch as DeltaBatch,
)
from deltafold._core import (
    Encoder as Encoder,
)
from deltafold._core import (
    Fold as Fold,
)
from deltafold._core import (
    JsonDefect as JsonDefect,
)
from deltafold._core import (
    Limits as Limits,
)
from deltafold._core import (
    Logprobs as Logprobs,
)
from deltafold._core import (
    MessageAssembler as MessageAssembler,
)
from deltafold._core import (
    MessageDelta as MessageDelta,
)
from deltafold._core import (
    PartialJson as PartialJson,
)
from deltafold._core import (
    ToolCallBuffer as ToolCallBuffer,
)
from deltafold._core import (
    Transcoder as Transcoder,
)
from deltafold._core import (
    __version__ as __version__,
)
from deltafold._core import (
    dialect_names as dialect_names,
)
from deltafold._core import (
    markup_names as markup_names,
)
from deltafold._core import (
    target_names as target_names,
)
from deltafold.contract.exceptions import (
    ContractError as ContractError,
)
from deltafold.contract.exceptions import (
    DeltafoldError as DeltafoldError,
)
from deltafold.contract.exceptions import (
    InternalError as InternalError,
)
from deltafold.contract.exceptions import (
    MisuseError as MisuseError,
)
from deltafold.contract.exceptions import (
    UnknownDialectError as UnknownDialectError,
)
from deltafold.contract.kinds import (
    CONTRACT_VERSION as CONTRACT_VERSION,
)
from deltafold.contract.kinds import (
    DeltaKind as DeltaKind,
)
from deltafold.contract.kinds import (
    ErrorCode as ErrorCode,
)
from deltafold.contract.kinds import (
    FinishReason as FinishReason,
)
from deltafold.contract.usage import Usage as Usage
from deltafold.conversation.agent.agent import Agent as Agent
from deltafold.conversation.tools.tools import Tool as Tool
from deltafold.dialects import (
    migrate_config as migrate_config,
)
from deltafold.dialects import (
    parse_request as parse_request,
)
from deltafold.dialects.migration import Migrated as Migrated
from deltafold.dialects.model_table import (
    ModelFacts as ModelFacts,
)
from deltafold.dialects.model_table import (
    add_models as add_models,
)
from deltafold.dialects.reader import ParsedRequest as ParsedRequest
from deltafold.dialects.rendered import (
    NoteCode as NoteCode,
)
from deltafold.dialects.rendered import (
    Rendered as Rendered,
)
from deltafold.errors.mapper import ErrorMapper as ErrorMapper
from deltafold.errors.model_error import (
    ModelError as ModelError,
)
from deltafold.errors.model_error import (
    OutputError as OutputError,
)
from deltafold.message.messages import (
    FileRefPart as FileRefPart,
)
from deltafold.message.messages import (
    ImagePart as ImagePart,
)
from deltafold.message.messages import (
    Message as Message,
)
from deltafold.message.messages import (
    MessagePart as MessagePart,
)
from deltafold.message.messages import (
    Meta as Meta,
)
from deltafold.message.messages import (
    ProviderPart as ProviderPart,
)
from deltafold.message.messages import (
    Role as Role,
)
from deltafold.message.messages import (
    TextPart as TextPart,
)
from deltafold.message.messages import (
    ThinkingPart as ThinkingPart,
)
from deltafold.message.messages import (
    ToolCallPart as ToolCallPart,
)
from deltafold.message.messages import (
    ToolResultPart as ToolResultPart,
)
from deltafold.message.timing import (
    Gaps as Gaps,
)
from deltafold.message.timing import (
    Timing as Timing,
)
from deltafold.models import (
    VENDORS as VENDORS,
)
from deltafold.models import (
    CacheConfig as CacheConfig,
)
from deltafold.models import (
    Capability as Capability,
)
from deltafold.models import (
    Hooks as Hooks,
)
from deltafold.models import (
    LocalConfig as LocalConfig,
)
from deltafold.models import (
    LocalModel as LocalModel,
)
from deltafold.models import (
    Model as Model,
)
from deltafold.models import (
    ModelConfig as ModelConfig,
)
from deltafold.models import (
    ModelInfo as ModelInfo,
)
from deltafold.models import (
    RateLimit as RateLimit,
)
from deltafold.models import (
    RequestContext as RequestContext,
)
from deltafold.models import (
    RequestMetadata as RequestMetadata,
)
from deltafold.models import (
    ResponseInfo as ResponseInfo,
)
from deltafold.models import (
    Timeouts as Timeouts,
)
from deltafold.models import (
    ToolChoice as ToolChoice,
)
from deltafold.models import (
    ToolSpec as ToolSpec,
)
from deltafold.models import (
    Vendor as Vendor,
)
from deltafold.models import (
    load_model as load_model,
)
from deltafold.models.adapters import *  # noqa: F403 - the names are there
from deltafold.models.histories import (
    HistoryMembers as HistoryMembers,
)
from deltafold.models.histories import (
    render_messages as render_messages,
)
from deltafold.models.translation import (
    TranslatedRequest as TranslatedRequest,
)
from deltafold.models.translation import (
    translate_request as translate_request,
)
from deltafold.specs.output_schema import OutputSchema as OutputSchema
from deltafold.streams.bodies import (
    Detection as Detection,
)
from deltafold.streams.bodies import (
    decode_response as decode_response,
)
from deltafold.streams.bodies import (
    detect as detect,
)
from deltafold.streams.choices import (
    afold_choices as afold_choices,
)
from deltafold.streams.choices import (
    fold_choices as fold_choices,
)
from deltafold.streams.delta_streams import (
    AsyncDeltaStream as AsyncDeltaStream,
)
from deltafold.streams.delta_streams import (
    DeltaStream as DeltaStream,
)
from deltafold.streams.delta_streams import (
    astream as astream,
)
from deltafold.streams.delta_streams import (
    stream as stream,
)
from deltafold.streams.encoded import (
    EncodedBody as EncodedBody,
)
from deltafold.streams.encoded import (
    atranscode_chunks as atranscode_chunks,
)
from deltafold.streams.encoded import (
    encode_choices as encode_choices,
)
from deltafold.streams.encoded import (
    encode_error as encode_error,
)
from deltafold.streams.encoded import (
    encode_message as encode_message,
)
from deltafold.streams.encoded import (
    message_deltas as message_deltas,
)
from deltafold.streams.encoded import (
    transcode as transcode,
)
from deltafold.streams.encoded import (
    transcode_chunks as transcode_chunks,
)
from deltafold.streams.encoded import (
    transcode_response as transcode_response,
)
from deltafold.streams.events import (
    StreamEvent as StreamEvent,
)
from deltafold.streams.events import (
    StreamEventKind as StreamEventKind,
)
from deltafold.streams.folds import (
    afold as afold,
)
from deltafold.streams.folds import (
    fold as fold,
)
from deltafold.streams.folds import (
    fold_many as fold_many,
)
from deltafold.streams.output_streams import (
    AsyncOutputStream as AsyncOutputStream,
)
from deltafold.streams.output_streams import (
    OutputStream as OutputStream,
)
from deltafold.streams.outputs import (
    Answer as Answer,
)
from deltafold.streams.outputs import (
    Output as Output,
)
from deltafold.testing.captures import (
    Captured as Captured,
)
from deltafold.testing.captures import (
    read_capture as read_capture,
)

__all__: list[str] = [
    "CONTRACT_VERSION",
    "VENDORS",
    "Agent",
    "Answer",
    "AsyncDeltaStream",
    "AsyncOutputStream",
    "CacheConfig",
    "Capability",
    "Captured",
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
    "HistoryMembers",
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
    "ModelFacts",
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
    "TranslatedRequest",
    "UnknownDialectError",
    "Usage",
    "Vendor",
    "__version__",
    "add_models",
    "afold",
    "afold_choices",
    "arrow",
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
    "read_capture",
    "render_messages",
    "rollouts",
    "stream",
    "target_names",
    "testing",
    "transcode",
    "transcode_chunks",
    "transcode_response",
    "translate_request",
]
__all__ += _adapters.__all__
