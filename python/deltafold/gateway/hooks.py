"""Hooks of the gateway, and the options of an answer that they are part of.

In: callables of the host.  Out: their types, and `AnswerOptions`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from starlette.requests import Request

from deltafold.contract.kinds import DeltaKind
from deltafold.errors.model_error import ModelError
from deltafold.gateway.client_requests import ClientRequest
from deltafold.message.messages import Message

OnRequest: TypeAlias = Callable[[Request, ClientRequest], Awaitable[ClientRequest | None]]
"""Authenticates, refuses (by raising a `ModelError`), or replaces a request."""

OnMessage: TypeAlias = Callable[[ClientRequest, Message, ModelError | None], Awaitable[None]]
"""Is told the message of each call, whole or partial, and the error that ended it."""

OnDelta: TypeAlias = Callable[[ClientRequest, DeltaKind, str], Awaitable[str]]
"""Returns the text that replaces a text, or raises a `ModelError`, which ends the answer.

It is given the kind (text, thinking or arguments of a call) and the text of one part that the
client does not have yet: what was held back, and what has arrived.
"""


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How an answer is written.

    >>> from deltafold.gateway import AnswerOptions
    >>> AnswerOptions(keep_alive=5.0).passthrough
    True

    Attributes:
        keep_alive: seconds of silence after which a streaming client is told that the connection
            lives; None never tells it.
        on_message: is told the message when the call has ended.
        on_delta: sees and replaces text before the client does.
        hold_back: how many characters of a part wait for the text after them, so that `on_delta`
            sees a pattern of up to one character more in one piece.
        passthrough: hand on the upstream's own bytes where it speaks the client's protocol.
        continue_answers: let the next upstream continue an answer that broke off after its first
            byte.
    """

    keep_alive: float | None = 15.0
    on_message: OnMessage | None = None
    on_delta: OnDelta | None = None
    hold_back: int = 0
    passthrough: bool = True
    continue_answers: bool = False
