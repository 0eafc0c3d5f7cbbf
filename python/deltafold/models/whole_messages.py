"""Whole messages and events, on top of a Model's streams.

In: the arguments of `Model.stream`.  Out: a `Message` with its cost and duration, or a stream of
`StreamEvent`s.

Laws: each call goes through the stream. A message that represents a failure is marked as such and
keeps the received parts.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, Unpack, overload

from deltafold.contract.exceptions import MisuseError
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message, Role, TextPart
from deltafold.models.call_inputs import ERROR_TEXT, CallArguments, Messages, Tools
from deltafold.models.prepared import Prepared
from deltafold.streams.delta_streams import AsyncDeltaStream, DeltaStream
from deltafold.streams.events import StreamEvent
from deltafold.streams.outputs import Answer, Output, P, T
from deltafold.streams.readers import AsyncTee, Tee
from deltafold.transports.http import ClientKind

if TYPE_CHECKING:
    from deltafold.models.setting_types import OutputOptions, StreamOptions

OnError: TypeAlias = Literal["raise", "message"]

_Rest: TypeAlias = "OutputOptions"
_Tools: TypeAlias = Tools | None
_Schema: TypeAlias = Mapping[str, object]
# Short names for the overloads. The first one lists the arguments.


class Messaging(ABC):
    """Methods of a Model that return messages and events."""

    @abstractmethod
    def _prepare(self, kind: ClientKind, arguments: CallArguments) -> Prepared: ...

    @abstractmethod
    def _begin_sync(self, prepared: Prepared, tee: Tee | None) -> DeltaStream: ...

    @abstractmethod
    def _begin_async(self, prepared: Prepared, tee: AsyncTee | None) -> AsyncDeltaStream: ...

    @overload
    async def send_message(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        stream: bool = True,
        on_error: OnError = "raise",
        output: None = None,
        **options: Unpack["StreamOptions"],
    ) -> Message: ...
    @overload
    async def send_message(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: Output[T, P],
        **rest: Unpack[_Rest],
    ) -> Answer[T]: ...
    @overload
    async def send_message(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: type[T],
        **rest: Unpack[_Rest],
    ) -> Answer[T]: ...
    @overload
    async def send_message(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: _Schema,
        **rest: Unpack[_Rest],
    ) -> Answer[object]: ...
    async def send_message(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        stream: bool = True,
        on_error: OnError = "raise",
        output: object = None,
        **options: Any,
    ) -> Message | Answer[Any]:
        """Send a request and return the whole answer.

        `meta` has the id of the response, the cost (`cost_usd`, `cost_source`) if it is known, and
        the duration (`duration_ms`, in milliseconds).

        >>> message = await model.send_message("Hello", stream=False)

        Args:
            messages: as for `stream`, like `tool_specs` and `system_prompt`.
            tool_specs: the tools that the model may call.
            system_prompt: precedes the system messages.
            stream: whether the provider streams the answer. The caller gets it as a whole in both
                cases, but a long answer that is not streamed may exceed a timeout.
            on_error: "raise" raises `ModelError`; "message" returns a message of the assistant with
                the received parts and the error, marked by `meta.is_api_error_message`.
            output: the type of the answer; the result is then an `Answer`.
            options: the other arguments of `stream`.

        Raises:
            ModelError: the answer failed; `partial_message` has the parts received before.
            OutputError: the answer is not the output.
        """
        _check(on_error, output)
        tee = options.pop("tee", None)
        options["output"] = output
        arguments = CallArguments.of(messages, tool_specs, system_prompt, options, streamed=stream)
        prepared = self._prepare("asynchronous", arguments)
        async with self._begin_async(prepared, tee) as opened:
            try:
                message = await opened.final_message()
            except ModelError as error:
                return _message_of(error, on_error)
        return _answer(prepared, message)

    @overload
    def send_message_sync(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        stream: bool = True,
        on_error: OnError = "raise",
        output: None = None,
        **options: Unpack["StreamOptions"],
    ) -> Message: ...
    @overload
    def send_message_sync(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: Output[T, P],
        **rest: Unpack[_Rest],
    ) -> Answer[T]: ...
    @overload
    def send_message_sync(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: type[T],
        **rest: Unpack[_Rest],
    ) -> Answer[T]: ...
    @overload
    def send_message_sync(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: _Schema,
        **rest: Unpack[_Rest],
    ) -> Answer[object]: ...
    def send_message_sync(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        stream: bool = True,
        on_error: OnError = "raise",
        output: object = None,
        **options: Any,
    ) -> Message | Answer[Any]:
        """Send a request and wait for the whole answer; otherwise as `send_message`."""
        _check(on_error, output)
        tee = options.pop("tee", None)
        options["output"] = output
        arguments = CallArguments.of(messages, tool_specs, system_prompt, options, streamed=stream)
        prepared = self._prepare("synchronous", arguments)
        with self._begin_sync(prepared, tee) as opened:
            try:
                message = opened.final_message()
            except ModelError as error:
                return _message_of(error, on_error)
        return _answer(prepared, message)

    def stream_message(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        **options: Unpack["StreamOptions"],
    ) -> "AsyncEventStream":
        """Start a call whose answer is a stream of events: parts that start, grow and stop.

        >>> async with model.stream_message("Hello") as events:
        ...     async for event in events:
        ...         if event.kind == "part_delta":
        ...             print(event.text)
        """
        tee = options.pop("tee", None)
        arguments = CallArguments.of(messages, tool_specs, system_prompt, options)
        prepared = self._prepare("asynchronous", arguments)
        return AsyncEventStream(self._begin_async(prepared, tee))

    def stream_message_sync(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        **options: Unpack["StreamOptions"],
    ) -> "EventStream":
        """Start a call and wait for its events; otherwise as `stream_message`."""
        tee = options.pop("tee", None)
        arguments = CallArguments.of(messages, tool_specs, system_prompt, options)
        prepared = self._prepare("synchronous", arguments)
        return EventStream(self._begin_sync(prepared, tee))


class EventStream:
    """The events of a `DeltaStream`, which stays readable as `stream`."""

    def __init__(self, stream: DeltaStream) -> None:
        self.stream = stream
        self._events = stream.events()

    def __iter__(self) -> Iterator[StreamEvent]:
        return self._events

    def final_message(self) -> Message:
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error.
        """
        return self.stream.final_message()

    def close(self) -> None:
        """Close the connection and keep the received parts."""
        self.stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncEventStream:
    """The events of an `AsyncDeltaStream`, which stays readable as `stream`."""

    def __init__(self, stream: AsyncDeltaStream) -> None:
        self.stream = stream
        self._events = stream.events()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    def __anext__(self) -> Awaitable[StreamEvent]:
        return anext(self._events)

    async def final_message(self) -> Message:
        """Read to the end and return the message.

        Raises:
            ModelError: the stream ended in an error.
        """
        return await self.stream.final_message()

    async def aclose(self) -> None:
        """Close the connection and keep the received parts."""
        await self.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def _check(on_error: object, output: object) -> None:
    if on_error not in {"raise", "message"}:
        raise MisuseError(f'on_error must be "raise" or "message", not {on_error!r}')
    if on_error == "message" and output is not None:
        raise MisuseError('on_error="message" has no output: leave out on_error, or output')


def _answer(prepared: Prepared, message: Message) -> Message | Answer[Any]:
    """Return a message, with its output if one was asked for."""
    if prepared.written.expected is None:
        return message
    return Answer(prepared.written.expected.output.of_message(message), message)


def _message_of(error: ModelError, on_error: OnError) -> Message:
    """Return the message of a failed call: the parts received, then the text of the error.

    Raises:
        ModelError: `on_error` is "raise".
    """
    if on_error == "raise":
        raise error
    message = error.partial_message or Message(role=Role.ASSISTANT, parts=[])
    text = str(error)
    message.parts = [*message.parts, TextPart(text=text)]
    message.meta.is_api_error_message = True
    setattr(message.meta, ERROR_TEXT, text)
    return message
