"""Fallback: which failures let another Model answer, and the call of the next one.

In: the arguments of a call, and the stream of a Model that failed.  Out: the call of the next
Model, prepared by itself from the same arguments.

Laws: a wrong call fails at its first Model, so that the caller learns of it. After the first part
of an answer, the next Model continues it or is not called. What one provider holds, such as a
stored response, is never named to another one. Each move is a warning of the message or the error.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Protocol, TypeAlias

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.kinds import ErrorCode
from deltafold.contract.names import RequestProtocol
from deltafold.dialects import DIALECTS, migrate_config
from deltafold.dialects.settings import ModelConfig
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message, Role, TextPart
from deltafold.models.call_inputs import CallArguments
from deltafold.models.info import ModelInfo
from deltafold.models.prepared import Prepared
from deltafold.streams.core import StreamCore
from deltafold.transports.http import ClientKind

FELL_BACK: Final = "fallback"
"""Code of the warning of an answer that another Model gave, or was to give."""

MOVING: Final = frozenset(
    {
        ErrorCode.OVERLOADED,
        ErrorCode.SERVER_ERROR,
        ErrorCode.CONNECTION_LOST,
        ErrorCode.TIMEOUT,
        ErrorCode.RATE_LIMITED,
        ErrorCode.QUOTA_EXCEEDED,
        ErrorCode.NOT_FOUND,
        ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    }
)
"""Failures of one provider, or of one model, for a request that another one may answer."""

OF_THE_SETUP: Final = frozenset(
    {
        ErrorCode.AUTHENTICATION,
        ErrorCode.PERMISSION,
        ErrorCode.REPLAY_REFUSED,
        ErrorCode.PROTOCOL_ERROR,
    }
)
"""Failures by which a program is wrong, or its key or its address.

The caller of a Model should see them. The clients of a gateway can change none of these, and its
operator finds them in the log: the gateway calls its next model.
"""

FINAL: Final = frozenset(
    {ErrorCode.INVALID_REQUEST, ErrorCode.CONTENT_BLOCKED, ErrorCode.CANCELLED}
)
"""Failures that another Model would repeat, or that are the caller's wish."""

On: TypeAlias = Collection[ErrorCode] | Callable[[ModelError], bool]
"""The failures that move a call on: their codes, or a function that decides."""

_HELD: Final = ("previous_response_id", "conversation", "cached_content")
"""Settings that name messages which one provider holds; the request has the others alone."""

_OF_ONE_MODEL: Final = frozenset({"model_id", "known_as"})
_OF_ONE_PROVIDER: Final = frozenset({"extra_body", "extra_headers", "extra_query"})
_NO_REST: Final = "it cannot continue the answer"


@cache
def _some_text() -> Message:
    """Return an answer that broke off. The first message of a process takes 10 ms to make."""
    return Message(role=Role.ASSISTANT, parts=[TextPart(text="…")])


def moves_by(on: On | None) -> Callable[[ModelError], bool]:
    """Return the function that decides whether a failure moves a call on.

    Raises:
        ValueError: a name is no error code.
    """
    if callable(on):
        return on
    codes = MOVING if on is None else frozenset(map(ErrorCode, on))
    return lambda error: error.code in codes


class Candidate(Protocol):
    """What a move needs to know of a Model."""

    dialect: RequestProtocol

    @property
    def provider_id(self) -> str:
        """Name of the vendor."""
        ...

    @property
    def model_id(self) -> str:
        """The provider's name of the model."""
        ...

    def can_continue(self, message: Message) -> bool:
        """Return whether the Model continues an answer that broke off."""
        ...

    def model_info(self) -> ModelInfo:
        """Return the known facts about the model."""
        ...


@dataclass(frozen=True, slots=True)
class Further:
    """A further Model.

    Attributes:
        model: the Model, without a fallback of its own.
        prepare: prepares a call of it.
    """

    model: Candidate
    prepare: Callable[[ClientKind, CallArguments], Prepared]


@dataclass(frozen=True, slots=True)
class Fallback:
    """The further Models of a Model.

    Attributes:
        further: the Models, in their order.
        decides: whether a failure moves a call on.
    """

    further: tuple[Further, ...]
    decides: Callable[[ModelError], bool]

    def moves(self, error: ModelError) -> bool:
        """Return whether a failure moves a call on; what the caller has stopped never does."""
        return error.code is not ErrorCode.CANCELLED and self.decides(error)

    def course(
        self, kind: ClientKind, arguments: CallArguments, first: Candidate, prepared: Prepared
    ) -> "Course":
        """Return what finds the next Model for a call of the first one."""
        return Course(self, kind, arguments, first, prepared)


@dataclass(slots=True)
class Course:
    """The way of one call along the Models.

    Attributes:
        continues: whether a further Model may continue an answer that broke off.
    """

    _fallback: Fallback
    _kind: ClientKind
    _arguments: CallArguments
    _last: Candidate
    _first: Prepared
    continues: bool = field(init=False)
    _left: list[Further] = field(init=False)
    _passed: list[Mapping[str, object]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Keep the lists of the caller as they are at the call."""
        asked = self._arguments
        if isinstance(asked.messages, list):
            self._arguments = replace(asked, messages=[*asked.messages])
        self._left = [*self._fallback.further]
        self.continues = asked.output is None and any(
            one.model.can_continue(_some_text()) for one in self._left
        )

    def after(self, core: StreamCore) -> Prepared | None:
        """Prepare the call of the next Model after a failure, None if the failure is the end."""
        error = core.error() if self._left else None
        if error is None or not self._fallback.moves(error):
            return None
        begun = bool(core.assembler.snapshot().parts)
        if begun and not self.continues:
            passed_over = [_left_out(one.model, MisuseError(_NO_REST)) for one in self._left]
            self._left.clear()
            core.call.notes = [*core.call.notes, *passed_over]
            return None
        partial = core.snapshot() if begun else self._arguments.continue_from
        left_out: list[Mapping[str, object]] = []
        while self._left:
            further = self._left.pop(0)
            moved = _moved(further.model, core, error, begun=begun)
            try:
                self._check(further.model, error, partial)
                prepared = further.prepare(
                    self._kind,
                    self._arguments_for(further.model, partial, [*left_out, moved]),
                )
            except (ValueError, MisuseError) as reason:
                left_out.append(_left_out(further.model, reason))
                continue
            self._passed += [*left_out, moved]
            self._last = further.model
            prepared.options["run_id"] = core.decoder.run_id
            return prepared
        core.call.notes = [*core.call.notes, *left_out]
        return None

    def _check(self, model: Candidate, error: ModelError, partial: Message | None) -> None:
        """Raise the reason why a Model is not called.

        Raises:
            MisuseError: the Model cannot answer such a call.
        """
        held = [name for name in _HELD if getattr(self._first.written.config, name, None)]
        if held and not self._is_of_first_provider(model):
            raise MisuseError(f"{held[0]} names messages that {self._first.vendor} holds")
        if is_as_small(error, self._last, model):
            raise MisuseError("its window is no larger")
        if partial is not None and not model.can_continue(partial):
            raise MisuseError(_NO_REST)

    def _is_of_first_provider(self, model: Candidate) -> bool:
        first = self._first
        return (model.provider_id, model.dialect) == (first.vendor, first.row.name)

    def _arguments_for(
        self, model: Candidate, partial: Message | None, notes: Sequence[Mapping[str, object]]
    ) -> CallArguments:
        """Return the arguments of the call for a further Model."""
        asked = self._arguments
        params, lost = self._settings_for(model)
        made = replace(
            asked,
            params=params,
            continue_from=partial,
            notes=[*asked.notes, *self._passed, *notes, *lost],
        )
        if not self._is_of_first_provider(model):
            # The caller has written the history for the first provider.
            made.repair, made.strict = "auto", False
        return made

    def _settings_for(
        self, model: Candidate
    ) -> tuple[Mapping[str, Any], Sequence[Mapping[str, object]]]:
        """Return the settings of the call for a further Model, and those that do not arrive."""
        params = {
            name: value
            for name, value in self._arguments.params.items()
            if name not in _OF_ONE_MODEL
        }
        if not params or self._is_of_first_provider(model):
            held = {name: getattr(self._first.written.config, name, None) for name in _HELD}
            return {**{name: value for name, value in held.items() if value}, **params}, ()
        config = self._first.written.config
        if model.dialect == self._first.row.name or model.dialect not in DIALECTS:
            lost = [name for name in params if name in _OF_ONE_PROVIDER]
            kept = {name: value for name, value in params.items() if name not in lost}
            return kept, [_dropped(name, model) for name in lost]
        given = type(config).model_validate({"model_id": config.model_id, **params})
        migrated = migrate_config(given, model.dialect, model_id=model.model_id)
        fields = _without(migrated.config, _OF_ONE_MODEL)
        return fields, migrated.notes


def _without(config: ModelConfig, names: Collection[str]) -> dict[str, object]:
    return {name: value for name, value in config.fields_set().items() if name not in names}


def _dropped(name: str, model: Candidate) -> Mapping[str, object]:
    return {"code": "setting_dropped", "message": f"{name}: not meant for {model.provider_id}"}


def _left_out(model: Candidate, reason: Exception) -> Mapping[str, object]:
    return {"code": FELL_BACK, "message": f"{name_of(model)} was not called: {reason}"}


def name_of(model: Candidate) -> str:
    """Return the names of the vendor and the model."""
    return f"{model.provider_id} {model.model_id}"


def is_as_small(error: ModelError, failed: Candidate, following: Candidate) -> bool:
    """Return whether a context that is too long for a model is known to be so for another."""
    if error.code is not ErrorCode.CONTEXT_LENGTH_EXCEEDED:
        return False
    limit = failed.model_info().context_window_tokens
    window = following.model_info().context_window_tokens
    return limit is not None and window is not None and window <= limit


def moved_warning(
    failed: str, following: str, error: ModelError, request_id: str | None = None
) -> dict[str, object]:
    """Return the warning of the answer of a Model that was called after another one failed.

    Args:
        failed: names of the vendor and the model that failed.
        following: those of the next one.
        error: the failure.
        request_id: the id of the failed request, if the error does not have it.
    """
    status = "" if error.status is None else f", HTTP {error.status}"
    known = error.http_request_id or request_id
    told = "" if known is None else f", request {known}"
    return {
        "code": FELL_BACK,
        "message": f"{failed} failed ({error.code}{status}{told}); {following} was called",
    }


def _moved(
    following: Candidate, core: StreamCore, error: ModelError, *, begun: bool
) -> Mapping[str, object]:
    response = core.response
    warning = moved_warning(
        f"{core.call.vendor} {core.call.model_id}",
        name_of(following),
        error,
        None if response is None else response.request_id,
    )
    usage = core.assembler.usage
    if usage is None or begun:  # the usage of a continued answer is counted with that of its rest
        return warning
    counts = f"{usage.input_tokens or 0} input and {usage.output_tokens or 0} output tokens"
    return {**warning, "message": f"{warning['message']}; its usage ({counts}) is not counted"}
