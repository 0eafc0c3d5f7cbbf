"""Every answer of one call: each is known when it ends, while the others go on.

In: a response that is opened once.  Out: the number of an answer, its message and its error.

Laws: those of `streams/choices.py`. An error shows no secret of the call. The connection is closed
whichever way the reading ends.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from deltafold.contract.names import ProtocolName
from deltafold.errors.mapper import ErrorMapper
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message
from deltafold.streams.choices import ChoiceMessages
from deltafold.streams.mistakes import CallerError
from deltafold.streams.options import ChoicesOptions
from deltafold.transports.secrets import Redactor
from deltafold.transports.sources import AsyncSource

OpenAsync: TypeAlias = Callable[[], Awaitable[AsyncSource]]
"""Sends a request and returns the unread response."""


@dataclass(frozen=True, slots=True)
class EndedChoice:
    """An answer that has ended.

    Attributes:
        choice: the number of the answer in its response.
        message: the message; after a failure, the parts that came.
        error: the failure.
    """

    choice: int
    message: Message
    error: ModelError | None


async def every_choice(
    open_source: OpenAsync,
    dialect: ProtocolName,
    options: ChoicesOptions,
    mapper: ErrorMapper | None,
    redactor: Callable[[], Redactor],
) -> AsyncGenerator[EndedChoice]:
    """Yield each answer when it ends; a failure of the connection ends all of them.

    A body without an answer gives answer 0 with its error.
    """
    messages = ChoiceMessages(dialect, options, mapper)

    def ended(choices: list[int]) -> list[EndedChoice]:
        found = ((choice, messages.folded[choice]) for choice in choices)
        return [
            EndedChoice(choice, folded.snapshot(), _without_secrets(folded.get_error(), redactor))
            for choice, folded in found
        ]

    try:
        source = await open_source()
    except CallerError as wrong:
        raise wrong.__cause__ or wrong from None
    except Exception as failure:  # noqa: BLE001 - of any client
        for one in ended(messages.fail(failure)):
            yield one
        return
    try:
        messages.decoder.set_response(source.status, source.headers)
        chunks = aiter(source.chunks)
        while not messages.decoder.finished:
            try:
                chunk = await anext(chunks, None)
            except Exception as failure:  # noqa: BLE001 - of any client
                come = messages.fail(failure)
            else:
                come = messages.close() if chunk is None else messages.feed(chunk)
            for one in ended(come):
                yield one
        for one in ended(messages.close()):
            yield one
    finally:
        await source.close()


def _without_secrets(
    error: ModelError | None, redactor: Callable[[], Redactor]
) -> ModelError | None:
    if error is not None:
        hidden = redactor()
        error.message = hidden.text(error.message)
        error.args = (error.message,)
        if error.provider_code is not None:
            error.provider_code = hidden.text(error.provider_code)
    return error
