"""Approval: a person's decision about one call.

Laws: only a bool or an `Approval` decides. What a person changed is checked before anything runs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from deltafold.contract.foreign_text import well_formed
from deltafold.conversation.history.fields import JsonMapping
from deltafold.conversation.history.frozen import frozen_json, thawed
from deltafold.conversation.history.tool_calls import ToolCallRequest


@dataclass(frozen=True, slots=True)
class Approval:
    """A decision about one call, with its author and its reason.

    >>> Approval(True, by="ann@example.org").approved
    True
    >>> Approval(False, reason="Too expensive.").reason
    'Too expensive.'

    Attributes:
        approved: whether the call may run.
        arguments: arguments that replace those of the model, which the history keeps; the result
            says what ran.
        reason: what the model reads beside the result, None for nothing.
        by: who decided, for the log.

    Raises:
        TypeError: a field has another type.
        ValueError: a rejected call has arguments.
    """

    approved: bool
    arguments: JsonMapping | None = None
    reason: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        """Check and freeze the fields."""
        approved, arguments = cast("object", self.approved), cast("object", self.arguments)
        if type(approved) is not bool:
            raise TypeError(f"approved must be True or False, not {approved!r:.100}")
        for name in ("reason", "by"):
            text: object = getattr(self, name)
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{name} must be a text, not {type(text).__name__}")
            object.__setattr__(self, name, None if text is None else well_formed(text))
        if arguments is None:
            return
        if not isinstance(arguments, Mapping):
            raise TypeError(f"arguments must be a mapping, not {type(arguments).__name__}")
        if not self.approved:
            raise ValueError("arguments: a call that is rejected does not run with others")
        object.__setattr__(self, "arguments", frozen_json(self.arguments, "arguments"))

    def changed(self, call: ToolCallRequest) -> ToolCallRequest:
        """Return the call that runs: with the arguments of the approval, if it has some."""
        if self.arguments is None:
            return call
        text = json.dumps(thawed(self.arguments), ensure_ascii=False)
        return replace(call, raw_arguments=text, arguments=self.arguments, parse_error=None)

    def note(self) -> str | None:
        """Return what the model reads before the result of a call that ran, None for nothing."""
        said = [] if self.reason is None else [self.reason]
        if self.arguments is None:
            return f"[The call was approved: {self.reason}]" if said else None
        text = json.dumps(thawed(self.arguments), ensure_ascii=False)
        return f"[{' '.join((f'The call ran with other arguments: {text}.', *said))}]"


Approvals: TypeAlias = Mapping[str, bool | Approval]
"""Decisions by the ids of calls."""
