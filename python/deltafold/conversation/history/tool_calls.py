"""Tool calls, their results, and the media of both, as entries keep them.

In: the parts of a message.  Out: immutable records of calls, results and attachments.

Laws: a call always keeps its raw arguments. A record survives JSON and `dataclasses.replace`.
Source: docs/blueprint.md#history-entries, docs/blueprint.md#auxiliary-types.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, ClassVar, cast

from pydantic import ConfigDict, Field

from deltafold.conversation.history.fields import WIRE, JsonMapping, KeptSections
from deltafold.conversation.history.frozen import KEPT_PART, frozen_json
from deltafold.conversation.history.kinds import ToolExecutionStatus
from deltafold.conversation.history.sections import (
    LevelOfDetailSections,
    Section,
    check_sections,
    sections_of,
)
from deltafold.dialects.replay import result_items, result_text
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    MessagePart,
    ToolCallPart,
    ToolResultPart,
)


@dataclass(frozen=True)
class ContextAttachment:
    """An image or a file of an input or a result.

    >>> attachment = ContextAttachment(
    ...     ImagePart(mime_type="image/png", url="https://example.com/tide.png"), "tide.png"
    ... )
    >>> attachment.name, attachment.part.url
    ('tide.png', 'https://example.com/tide.png')

    Attributes:
        part: the part for a message.
        name: name that the caller gave.
    """

    __pydantic_config__: ClassVar[ConfigDict] = WIRE

    part: Annotated[ImagePart | FileRefPart, Field(discriminator="kind")] = KEPT_PART
    name: str = ""

    def __post_init__(self) -> None:
        """Check the part."""
        given = cast("object", self.part)
        if not isinstance(given, ImagePart | FileRefPart):
            raise TypeError(
                f"part must be an ImagePart or a FileRefPart, not {type(given).__name__}"
            )


def attachments_of(parts: Sequence[MessagePart]) -> tuple[ContextAttachment, ...]:
    """Return the images and the files among the parts of a message."""
    media = (part for part in parts if isinstance(part, ImagePart | FileRefPart))
    return tuple(ContextAttachment(part) for part in media)


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A tool call that a model requested.

    >>> call = ToolCallRequest.of_part(message.tool_calls[0])
    >>> call.tool_name, call.arguments["port"]
    ('get_tides', 'Brest')

    Attributes:
        raw_arguments: the original text of the arguments, always kept.
        arguments: the parsed arguments, None if parsing failed.
        parse_error: the reason why the call may not run: a failure of parsing, or the end of its
            answer.
        parse_warning: deviations that parsing accepted.
    """

    __pydantic_config__: ClassVar[ConfigDict] = WIRE

    tool_name: str
    tool_call_id: str
    raw_arguments: str
    arguments: JsonMapping | None = None
    parse_error: str | None = None
    parse_warning: str | None = None

    def __post_init__(self) -> None:
        """Freeze the arguments."""
        if self.arguments is not None:
            object.__setattr__(self, "arguments", frozen_json(self.arguments, "arguments"))

    @classmethod
    def of_part(cls, call: ToolCallPart, forbidden: str | None = None) -> "ToolCallRequest":
        """Make the request from a part of a message.

        A call that may not run has a parse error: the reason of the call, or `forbidden`, the
        reason of its answer (`Message.not_runnable`).
        """
        error = call.defect if call.arguments is None or call.incomplete else forbidden
        return cls(
            call.tool_name,
            call.tool_call_id,
            call.raw_args_text,
            call.arguments,
            error,
            call.parse_warning,
        )


@dataclass(frozen=True, slots=True)
class HistoryToolCallResult:
    """Result of a call, in three levels of detail.

    >>> result = HistoryToolCallResult(
    ...     "tide",
    ...     "call_1",
    ...     ToolExecutionStatus.SUCCESS,
    ...     LevelOfDetailSections.of_text("17:42"),
    ... )
    >>> result.result.get_sections("gist")[0].value
    '17:42'

    Attributes:
        result: the text of the result.
        elapsed: duration of the call.
        attachments: images and files of the result.
    """

    __pydantic_config__: ClassVar[ConfigDict] = WIRE

    tool_name: str
    tool_call_id: str
    status: ToolExecutionStatus
    result: KeptSections
    elapsed: timedelta | None = None
    attachments: Sequence[ContextAttachment] = ()

    def __post_init__(self) -> None:
        """Check and freeze the contents."""
        check_sections(self.result, "result")
        attachments = tuple(self.attachments)
        for given in cast("tuple[object, ...]", attachments):
            if not isinstance(given, ContextAttachment):
                raise TypeError(
                    f"attachments must be ContextAttachments, not {type(given).__name__}"
                )
        object.__setattr__(self, "status", ToolExecutionStatus(self.status))
        object.__setattr__(self, "attachments", attachments)


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """Result of a call at one level of detail.

    >>> result = ToolCallResult(
    ...     "tide", "call_1", ToolExecutionStatus.SUCCESS, [("", "17:42")]
    ... )
    >>> result.result[0].value
    '17:42'

    Attributes:
        result: pairs of a heading and a text.
        elapsed: duration of the call.
        attachments: images and files of the result.
    """

    tool_name: str
    tool_call_id: str
    status: ToolExecutionStatus
    result: Sequence[Section]
    elapsed: timedelta | None = None
    attachments: Sequence[ContextAttachment] = ()

    def __post_init__(self) -> None:
        """Freeze the contents."""
        object.__setattr__(self, "result", sections_of(self.result))
        object.__setattr__(self, "attachments", tuple(self.attachments))


def status_of(part: ToolResultPart) -> ToolExecutionStatus:
    """Return the final status that a part of a message states."""
    if part.status is not None and part.status in set(ToolExecutionStatus):
        return ToolExecutionStatus(part.status)
    return ToolExecutionStatus.FAILED if part.is_error else ToolExecutionStatus.SUCCESS


def result_of(part: ToolResultPart, tool_name: str) -> HistoryToolCallResult:
    """Make the result of a call from a part of a message."""
    return HistoryToolCallResult(
        tool_name,
        part.tool_call_id,
        status_of(part),
        LevelOfDetailSections.with_gist(result_text(part)),
        attachments=attachments_of(result_items(part)),
    )
