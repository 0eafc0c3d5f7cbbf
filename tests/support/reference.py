"""`MessageAssembler` in plain Python: the oracle of the tests.

In: `MessageDelta`s, batches of them, or their wire form.  Out: a `Message` so far, the final
`Message`, or a `ModelError`.

Laws: `start` is first and alone; exactly one `done` or `error` ends the stream; no call is open at
`done`, and `error` ends open calls as incomplete; `seq` rises strictly; all deltas are of one run;
a delta that breaks a law changes nothing. Cost is linear in the deltas: text is joined when it is
read. The extension's class of the same name does the same, faster; every test of one runs on the
other.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, Literal, cast
from uuid import UUID, uuid4

from deltafold._core import DeltaBatch, Logprobs, MessageDelta, PartialJson
from deltafold.contract.exceptions import ContractError, MisuseError
from deltafold.contract.kinds import DeltaKind, ErrorCode, FinishReason, json_array
from deltafold.contract.usage import Usage
from deltafold.errors.model_error import ModelError, model_error_from_fold
from deltafold.message.messages import (
    Message,
    MessagePart,
    message_from_fold,
    part_from_wire,
    parts_from_fold,
)

Status = Literal["idle", "started", "done", "error"]
InputFormat = Literal["json", "text"]


@dataclass(frozen=True, slots=True)
class ToolCallBuffer:
    """Received part of a tool call; `part_index` is its place in the message."""

    tool_call_id: str
    tool_name: str
    args_text: str
    part_index: int
    input_format: InputFormat
    ended: bool
    incomplete: bool


@dataclass(slots=True)
class _Text:
    """Accumulator of one text that several deltas extend."""

    pieces: list[str] = field(default_factory=list)

    def append(self, piece: str) -> None:
        self.pieces.append(piece)

    def read(self) -> str:
        joined = "".join(self.pieces)
        self.pieces = [joined]  # the next read joins this one and what came since
        return joined


@dataclass(slots=True)
class _TextPart:
    """A text or thinking part being assembled."""

    kind: Literal["text", "thinking"]
    text: _Text = field(default_factory=_Text)
    annotations: list[object] | None = None
    refusal: bool = False
    redacted: bool = False
    provider_state: dict[str, object] | None = None
    ended: bool = False

    def append(self, delta: MessageDelta) -> None:
        self.text.append(delta.text or "")
        if delta.annotations is not None:
            self.annotations = self.annotations or []
            self.annotations.extend(delta.annotations)
        self.refusal = self.refusal or delta.refusal
        self.redacted = self.redacted or delta.redacted
        if delta.provider_state is not None:
            self.provider_state = delta.provider_state

    def to_fold(self) -> dict[str, object]:
        common: dict[str, object] = {
            "kind": self.kind,
            "text": self.text.read(),
            "provider_state": self.provider_state,
        }
        if self.kind == "thinking":
            return {**common, "redacted": self.redacted}
        return {
            **common,
            "annotations": None if self.annotations is None else list(self.annotations),
            "refusal": self.refusal,
        }


@dataclass(slots=True)
class _CallPart:
    """A tool call being assembled."""

    tool_call_id: str
    tool_name: str
    part_index: int
    input_format: InputFormat
    provider_state: dict[str, object] | None
    args: _Text = field(default_factory=_Text)
    ended: bool = False
    incomplete: bool = False
    kind: Literal["tool_call"] = "tool_call"
    reader: PartialJson | None = None
    read: int = 0
    """Characters of the arguments that `reader` has."""

    def to_fold(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "tool_call_id": self.tool_call_id,
            "tool_name": self.tool_name,
            "raw_args_text": self.args.read(),
            "incomplete": self.incomplete,
            "input_format": self.input_format,
            "ended": self.ended,
            "provider_state": self.provider_state,
        }

    def to_reader(self) -> PartialJson:
        """Return the reader of this call's arguments, after feeding the text that it lacks."""
        reader = self.reader or PartialJson()
        text = self.args.read()
        piece = text[self.read :]
        if self.input_format == "text":  # shown as the object {"input": text}
            opening = "" if self.reader else '{"input": "'
            reader.feed(opening + json.dumps(piece)[1:-1] + ('"}' if self.ended else ""))
        else:
            reader.feed(piece)
            if self.ended and text:  # a call without any text is one without arguments
                reader.close()
        self.reader, self.read = reader, len(text)
        return reader

    def to_buffer(self) -> ToolCallBuffer:
        return ToolCallBuffer(
            tool_call_id=self.tool_call_id,
            tool_name=self.tool_name,
            args_text=self.args.read(),
            part_index=self.part_index,
            input_format=self.input_format,
            ended=self.ended,
            incomplete=self.incomplete,
        )


@dataclass(slots=True)
class _WholePart:
    """A part that came in one delta."""

    part: dict[str, object]
    kind: Literal["part"] = "part"

    def to_fold(self) -> dict[str, object]:
        return {"kind": self.kind, "part": self.part}


@dataclass(slots=True)
class _Fold:
    """Accumulated content of the deltas of one stream."""

    run_id: str | None
    status: Status = "idle"
    last_seq: int = 0
    message_id: UUID | None = None
    timestamp: datetime | None = None
    parts: list[_TextPart | _CallPart | _WholePart] = field(default_factory=list)
    calls: dict[str, _CallPart] = field(default_factory=dict)
    open_calls: int = 0
    usage: Usage | None = None
    model_id: str | None = None
    response_id: str | None = None
    finish_reason: FinishReason | None = None
    raw_finish_reason: str | None = None
    details: Mapping[str, object] | None = None
    warnings: list[dict[str, object]] = field(default_factory=list)
    failure: MessageDelta | None = None
    logprobs: list[Mapping[str, object]] = field(default_factory=list)


class MessageAssembler:
    """Folds the deltas of one stream into one assistant message.

    With a `run_id`, only deltas of that run are accepted; without, the first delta's run id binds
    the rest.
    """

    def __init__(self, run_id: str | None = None) -> None:
        """Begin in `idle`."""
        given = cast("object", run_id)  # not every caller runs a type checker
        if given is not None and not isinstance(given, str):
            message = f"run_id must be a str or None, not {type(given).__name__}"
            raise TypeError(message)
        self._given_run_id: Final = run_id
        self._fold: _Fold = _Fold(run_id)

    @property
    def run_id(self) -> str | None:
        """Run whose deltas are accepted, None while the deltas of any run are."""
        return self._fold.run_id

    @property
    def status(self) -> Status:
        """`idle`, `started`, `done` or `error`."""
        return self._fold.status

    @property
    def last_seq(self) -> int:
        """The `seq` of the last accepted delta, 0 before the first."""
        return self._fold.last_seq

    @property
    def parts(self) -> list[MessagePart]:
        """The parts so far, in order."""
        return parts_from_fold([part.to_fold() for part in self._fold.parts])

    @property
    def tool_calls(self) -> MappingProxyType[str, ToolCallBuffer]:
        """The tool calls so far by id, in order of their starts; a copy."""
        return MappingProxyType({name: call.to_buffer() for name, call in self._fold.calls.items()})

    def tool_args(self, tool_call_id: str, /) -> PartialJson:
        """Return the reader of a call's arguments, up to date with the received text.

        Raises:
            KeyError: no call has this id.
        """
        return self._fold.calls[tool_call_id].to_reader()

    @property
    def model_id(self) -> str | None:
        """The model that the response names, after the end the one that finished it."""
        return self._fold.model_id or None

    @property
    def usage(self) -> Usage | None:
        """The last usage record, None before the first."""
        return self._fold.usage

    @property
    def text(self) -> str:
        """All text so far, without thinking."""
        return "".join(part.text.read() for part in self._fold.parts if part.kind == "text")

    @property
    def error(self) -> ModelError | None:
        """Error of a stream in state `error`, with the partial message; otherwise None."""
        failure = self._fold.failure
        if failure is None:
            return None
        return model_error_from_fold(
            code=failure.error_code or ErrorCode.SERVER_ERROR,
            message=failure.error_message,
            retryable=failure.retryable,
            retry_after=failure.retry_after,
            status=failure.status,
            provider_code=failure.provider_code,
            http_request_id=failure.http_request_id,
            warnings=failure.warnings,
            partial_message=self.snapshot(),
        )

    def get_error(self) -> ModelError | None:
        """Return `error`."""
        return self.error

    def consume(self, delta: MessageDelta | DeltaBatch | Mapping[str, object], /) -> None:
        """Fold a delta, each delta of a batch, or a delta in its wire form.

        Raises:
            ContractError: a delta breaks the contract. Deltas of a batch before it are applied; the
                delta itself and later ones are not.
            TypeError: the argument has another type.
        """
        given = cast("object", delta)  # not every caller runs a type checker
        if isinstance(given, MessageDelta):
            self._consume_one(given)
        elif isinstance(given, DeltaBatch):
            for one in given:
                self._consume_one(one)
        elif isinstance(given, Mapping):
            self._consume_one(MessageDelta.from_dict(cast("Mapping[str, object]", given)))
        else:
            message = f"expected a MessageDelta, DeltaBatch or mapping, not {type(given).__name__}"
            raise TypeError(message)

    def snapshot(self) -> Message:
        """Return the message so far; in `idle` an empty assistant message."""
        fold = self._fold
        meta: dict[str, object] = {
            "usage": fold.usage,
            "finish_reason": fold.finish_reason,
            "raw_finish_reason": fold.raw_finish_reason,
            "details": fold.details,
            "response_id": fold.response_id,
            "model_id": fold.model_id,
            "is_api_error_message": fold.status == "error",
            "logprobs": _join_logprobs(fold.logprobs) if fold.logprobs else None,
        }
        known = {name: value for name, value in meta.items() if value is not None}
        return message_from_fold(
            message_id=fold.message_id or uuid4(),
            run_id=fold.run_id,
            timestamp=fold.timestamp or datetime.now(UTC),
            parts=[part.to_fold() for part in fold.parts],
            meta={**known, "warnings": list(fold.warnings)},
        )

    def build_final_message(self) -> Message:
        """Return the whole message.

        Raises:
            ModelError: the stream ended with an error; `partial_message` holds the parts received
                before.
            MisuseError: the stream has not ended.
        """
        error = self.error
        if error is not None:
            raise error
        if self._fold.status != "done":
            message = (
                f"the stream has not ended (status {self._fold.status!r}); "
                "use snapshot() for the message so far"
            )
            raise MisuseError(message)
        return self.snapshot()

    def reset(self) -> None:
        """Forget everything but the run id given at construction, and return to `idle`."""
        self._fold = _Fold(self._given_run_id)

    def _consume_one(self, delta: MessageDelta) -> None:
        """Check the laws of every delta, then fold it; a refused delta changes nothing."""
        fold = self._fold
        if fold.run_id is not None and delta.run_id != fold.run_id:
            raise _broken(delta, "runId", f"is of run {delta.run_id!r}, not of {fold.run_id!r}")
        if delta.seq <= fold.last_seq:
            raise _broken(delta, "seq", f"does not follow seq {fold.last_seq}")
        if fold.status in {"done", "error"}:
            raise _broken(delta, "kind", f"comes after the terminal {fold.status!r}")
        if (delta.kind == DeltaKind.START) != (fold.status == "idle"):
            place = "is not the first" if fold.status != "idle" else "comes before 'start'"
            raise _broken(delta, "kind", place)
        _FOLDS[delta.kind](fold, delta)
        fold.last_seq = delta.seq


def _broken(delta: MessageDelta, member: str, what: str) -> ContractError:
    return ContractError(f"delta {delta.seq} ({delta.kind}) {what}", seq=delta.seq, field=member)


def _fold_start(fold: _Fold, delta: MessageDelta) -> None:
    fold.status = "started"
    fold.run_id = delta.run_id
    fold.message_id = uuid4()
    fold.timestamp = delta.timestamp
    fold.model_id = delta.model_id
    fold.response_id = delta.request_id


def _fold_text(fold: _Fold, delta: MessageDelta) -> None:
    kind: Literal["text", "thinking"] = "text" if delta.kind == DeltaKind.TEXT else "thinking"
    rides = (delta.annotations, delta.logprobs, delta.provider_state)
    if not (delta.text or delta.redacted or any(rider is not None for rider in rides)):
        raise _broken(delta, "textDelta", "says nothing")
    index = delta.part_index
    if index is None:
        last = fold.parts[-1] if fold.parts else None
        grows = isinstance(last, _TextPart) and last.kind == kind
        if isinstance(last, _TextPart) and last.ended and delta.text:
            grows = False
        index = len(fold.parts) - 1 if grows else len(fold.parts)
    if index == len(fold.parts):
        part = _TextPart(kind)
        fold.parts.append(part)
    else:
        found = fold.parts[index] if index < len(fold.parts) else None
        if not isinstance(found, _TextPart) or found.kind != kind:
            raise _broken(delta, "partIndex", f"says part {index}, which is no {kind} part")
        if found.ended and delta.text:
            raise _broken(delta, "partIndex", f"says part {index}, which has ended")
        part = found
    part.append(delta)
    if delta.logprobs is not None:
        fold.logprobs.append(delta.logprobs.to_dict())


def _check_opens(fold: _Fold, delta: MessageDelta) -> None:
    if delta.part_index is not None and delta.part_index != len(fold.parts):
        raise _broken(
            delta, "partIndex", f"says part {delta.part_index}, not {len(fold.parts)}, the next one"
        )


def _fold_call_start(fold: _Fold, delta: MessageDelta) -> None:
    _check_opens(fold, delta)
    call_id = delta.tool_call_id or ""
    if call_id in fold.calls:
        raise _broken(delta, "toolCallId", f"starts the call {call_id!r} a second time")
    call = _CallPart(
        tool_call_id=call_id,
        tool_name=delta.tool_name or "",
        part_index=len(fold.parts),
        input_format=delta.input_format or "json",
        provider_state=delta.provider_state,
    )
    fold.parts.append(call)
    fold.calls[call_id] = call
    fold.open_calls += 1


def _open_call(fold: _Fold, delta: MessageDelta) -> _CallPart:
    call = fold.calls.get(delta.tool_call_id or "")
    if call is None or call.ended:
        state = "was never started" if call is None else "has ended"
        raise _broken(
            delta, "toolCallId", f"belongs to the call {delta.tool_call_id!r}, which {state}"
        )
    return call


def _fold_call_args(fold: _Fold, delta: MessageDelta) -> None:
    _open_call(fold, delta).args.append(delta.args_text or "")


def _fold_call_end(fold: _Fold, delta: MessageDelta) -> None:
    call = _open_call(fold, delta)
    call.ended = True
    call.incomplete = delta.incomplete
    if delta.provider_state is not None:
        call.provider_state = delta.provider_state
    fold.open_calls -= 1


def _fold_usage(fold: _Fold, delta: MessageDelta) -> None:
    fold.usage = delta.usage


def _fold_part(fold: _Fold, delta: MessageDelta) -> None:
    _check_opens(fold, delta)
    part = cast("dict[str, object]", delta.payload["part"])
    try:
        part_from_wire(part)  # refused here, for later it would be too late
    except ContractError as error:
        raise _broken(delta, "part", str(error)) from error
    fold.parts.append(_WholePart(part))


def _fold_part_end(fold: _Fold, delta: MessageDelta) -> None:
    index = delta.part_index or 0
    found = fold.parts[index] if index < len(fold.parts) else None
    if not isinstance(found, _TextPart):
        what = f"says part {index}, which is not a text or thinking part"
        raise _broken(delta, "partIndex", what)
    if found.ended:
        raise _broken(delta, "partIndex", f"says part {index}, which has ended")
    found.ended = True


def _fold_done(fold: _Fold, delta: MessageDelta) -> None:
    if fold.open_calls:
        still_open = next(call.tool_call_id for call in fold.calls.values() if not call.ended)
        raise _broken(delta, "kind", f"comes while the call {still_open!r} is open")
    fold.status = "done"
    fold.finish_reason = delta.finish_reason
    fold.raw_finish_reason = delta.raw_finish_reason
    fold.details = delta.details
    fold.model_id = fold.model_id if delta.model_id is None else delta.model_id
    fold.warnings = delta.warnings


def _fold_error(fold: _Fold, delta: MessageDelta) -> None:
    for call in fold.calls.values():
        if not call.ended:
            call.ended = call.incomplete = True
    fold.open_calls = 0
    fold.status = "error"
    fold.details = delta.details
    fold.warnings = delta.warnings
    fold.failure = delta


_FOLDS: Final[Mapping[DeltaKind, Callable[[_Fold, MessageDelta], None]]] = {
    DeltaKind.START: _fold_start,
    DeltaKind.TEXT: _fold_text,
    DeltaKind.THINKING: _fold_text,
    DeltaKind.TOOL_CALL_START: _fold_call_start,
    DeltaKind.TOOL_CALL_ARGS: _fold_call_args,
    DeltaKind.TOOL_CALL_END: _fold_call_end,
    DeltaKind.USAGE: _fold_usage,
    DeltaKind.PART: _fold_part,
    DeltaKind.PART_END: _fold_part_end,
    DeltaKind.DONE: _fold_done,
    DeltaKind.AUDIO: lambda _fold, _delta: None,
    DeltaKind.ERROR: _fold_error,
}


def _join_logprobs(records: list[Mapping[str, object]]) -> Logprobs:
    """Join the parallel lists of all records; one that a record lacks is filled up."""
    joined: dict[str, list[object]] = {}
    for name in ("tokens", "logprobs", "tokenIds", "bytes", "top"):
        if any(name in record for record in records):
            joined[name] = [
                value
                for record in records
                for value in json_array(
                    record.get(name, [None] * len(json_array(record.get("tokens"))))
                )
            ]
    return Logprobs.from_dict(joined)
