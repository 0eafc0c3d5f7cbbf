"""Hooks of the gateway, and the options of an answer that they are part of.

In: callables of the host.  Out: their types, how they are awaited, and `AnswerOptions`.

Law: a hook that guards fails closed. An exception other than `ModelError` and a value of the wrong
type become an error of the gateway in the client's own form, without the reason.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.requests import Request

from deltafold.contract.kinds import DeltaKind, ErrorCode
from deltafold.contract.log import LOGGER
from deltafold.errors.model_error import ModelError
from deltafold.gateway.client_requests import ClientRequest
from deltafold.gateway.protocols import OnCut
from deltafold.gateway.refusals import refusal
from deltafold.message.messages import Message

OnConnect: TypeAlias = Callable[[Request], Awaitable[str | None]]
"""Authenticates a request by its head, before its body is read; refuses by raising a `ModelError`.

It returns the name of the owner of what the request stores; None takes a digest of its key.
"""

OnRequest: TypeAlias = Callable[[Request, ClientRequest], Awaitable[ClientRequest | None]]
"""Authenticates, refuses (by raising a `ModelError`), or replaces a request.

Lists of models have none: there it is given a request without a model, and nothing is replaced.
"""

OnMessage: TypeAlias = Callable[[ClientRequest, Message, ModelError | None], Awaitable[None]]
"""Is told the message of each call, whole or partial, and the error that ended it."""

OnDelta: TypeAlias = Callable[[ClientRequest, DeltaKind, str], Awaitable[str]]
"""Returns the text that replaces a text, or raises a `ModelError`, which ends the answer.

It is given the kind (text, thinking or arguments of a call) and the text of one part that the
client does not have yet: what was held back, and what has arrived.
"""


async def guarded(
    name: str,
    kind: Any,  # noqa: ANN401 - a class, or a union of classes
    hook: Callable[..., Awaitable[object]],
    *given: object,
) -> Any:  # noqa: ANN401 - of `kind`
    """Return what a hook that guards returns.

    Args:
        name: the name of the hook.
        kind: the type of a right value.
        hook: the hook.
        given: its arguments.

    Raises:
        ModelError: what the hook raised; or, with the status 500, that it raised anything else or
            returned a value of another type, which the log has.
    """
    task = asyncio.current_task()
    cancels = 0 if task is None else task.cancelling()
    problem: BaseException | None = None
    try:
        value = await hook(*given)
        if isinstance(value, kind):
            return value
        found = f"returned a {type(value).__name__}"
    except ModelError:
        raise
    except asyncio.CancelledError as error:
        if task is not None and task.cancelling() > cancels:
            raise
        problem, found = error, "cancelled itself"
    except Exception as error:  # noqa: BLE001 - the code of the host
        problem, found = error, f"raised {type(error).__name__}"
    LOGGER.error("the hook %s %s: nothing passes", name, found, exc_info=problem)
    raise refusal(f"the hook {name} of the gateway failed", ErrorCode.SERVER_ERROR, 500)


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Options for writing an answer.

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
        on_cut: what a streaming client sees of an upstream that was lost after the first byte; None
            takes the way of the client's protocol.
    """

    keep_alive: float | None = 15.0
    on_message: OnMessage | None = None
    on_delta: OnDelta | None = None
    hold_back: int = 0
    passthrough: bool = True
    continue_answers: bool = False
    on_cut: OnCut | None = None
