"""Closed lists of the delta contract, and readers of JSON values.

In: nothing.  Out: the names that all stages of the package and the extension share.

Laws: the wire uses camelCase, Python uses snake_case. A closed list grows only with
`CONTRACT_VERSION`. Nothing of pydantic is imported, so that a stream without a message needs none.
Source: `contract.schema.json` at the root of the project is the same contract in JSON Schema.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, TypedDict, cast

CONTRACT_VERSION: Final = "1.6"
"""Version of the delta contract.

1.1 added the delta kind `part` and the part kind `provider` to the nine kinds of 1.0. 1.2 added the
delta kind `part_end`. 1.3 added the error code `replay_refused`. 1.4 added the bytes of tokens to
log probabilities. 1.5 added the delta kind `audio`, and `partIndex` to `tool_call_args` and
`tool_call_end`. 1.6 added `details` to `error`.

>>> deltafold.CONTRACT_VERSION
'1.6'
"""


class DeltaKind(StrEnum):
    """Kind of a `MessageDelta`.

    >>> [delta.text for delta in deltas if delta.kind == DeltaKind.TEXT]
    """

    START = "start"
    TEXT = "text"
    THINKING = "thinking"
    TOOL_CALL_START = "tool_call_start"
    TOOL_CALL_ARGS = "tool_call_args"
    TOOL_CALL_END = "tool_call_end"
    USAGE = "usage"
    DONE = "done"
    ERROR = "error"
    PART = "part"
    PART_END = "part_end"
    AUDIO = "audio"


class FinishReason(StrEnum):
    """Why a message ended, whatever word its provider used for it.

    >>> message.meta.finish_reason == FinishReason.TOOL_CALLS
    True
    """

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    PAUSE = "pause"
    ERROR = "error"
    OTHER = "other"


class ErrorCode(StrEnum):
    """Error code of a failed request or stream, independent of the provider's code.

    >>> ErrorCode("rate_limited") is ErrorCode.RATE_LIMITED
    True
    """

    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    INVALID_REQUEST = "invalid_request"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    REPLAY_REFUSED = "replay_refused"
    RATE_LIMITED = "rate_limited"
    QUOTA_EXCEEDED = "quota_exceeded"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"
    CONTENT_BLOCKED = "content_blocked"
    PROTOCOL_ERROR = "protocol_error"
    CANCELLED = "cancelled"


def json_object(value: object) -> Mapping[str, object] | None:
    """Return the value if it is a JSON object, else None."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def json_array(value: object) -> list[object]:
    """Return the value if it is a JSON array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


class EncoderTool(TypedDict, total=False):
    """A tool as the client declared it; see `Encoder`."""

    kind: Literal["function", "custom", "tool_search"]
    namespace: str | None
    name: str
