"""Streams of a Model: calls in the one form, and bodies in the form of the provider.

In: messages, tools and settings, or a body.  Out: `AsyncDeltaStream` or `DeltaStream`, or with a
type of the answer `AsyncOutputStream` or `OutputStream`.

Law: a mistake of the caller raises at the call, before anything is sent.
"""

from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, overload

from deltafold.message.messages import Message
from deltafold.models.call_inputs import (
    CallArguments,
    Messages,
    Metadata,
    Notes,
    Repair,
    SystemContent,
    ToolChoiceLike,
    Tools,
)
from deltafold.models.every_choice import EndedChoice
from deltafold.models.prepared import Prepared
from deltafold.models.whole_messages import Messaging
from deltafold.streams.delta_streams import AsyncDeltaStream, DeltaStream
from deltafold.streams.output_streams import AsyncOutputStream, OutputStream
from deltafold.streams.outputs import Output, P, T
from deltafold.streams.readers import AsyncTee, Tee
from deltafold.transports.http import ClientKind

if TYPE_CHECKING:
    from deltafold.models.setting_types import CallSettings, OutputOptions

_Rest: TypeAlias = "OutputOptions"
_Tools: TypeAlias = Tools | None
_Schema: TypeAlias = Mapping[str, object]
# Short names for the overloads. The first one lists the arguments.


class Streaming(Messaging):
    """Methods of a Model that return streams."""

    @abstractmethod
    def _prepare_body(
        self,
        kind: ClientKind,
        body: Mapping[str, object],
        invocation_state: Mapping[str, object] | None,
        request_metadata: Metadata | None,
    ) -> Prepared: ...

    @abstractmethod
    def _begin_choices(self, prepared: Prepared) -> AsyncGenerator[EndedChoice]: ...

    @overload
    def stream(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        tool_choice: ToolChoiceLike | None = None,
        system_prompt_content: SystemContent | None = None,
        invocation_state: Mapping[str, object] | None = None,
        request_metadata: Metadata | None = None,
        tee: AsyncTee | None = None,
        repair: Repair = "none",
        strict: bool = False,
        continue_from: Message | None = None,
        notes: Notes = (),
        output: None = None,
        **params: Unpack["CallSettings"],
    ) -> AsyncDeltaStream: ...
    @overload
    def stream(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: Output[T, P],
        **rest: Unpack[_Rest],
    ) -> AsyncOutputStream[T, P]: ...
    @overload
    def stream(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: type[T],
        **rest: Unpack[_Rest],
    ) -> AsyncOutputStream[T]: ...
    @overload
    def stream(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: _Schema,
        **rest: Unpack[_Rest],
    ) -> AsyncOutputStream[object]: ...
    def stream(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        tool_choice: ToolChoiceLike | None = None,
        system_prompt_content: SystemContent | None = None,
        invocation_state: Mapping[str, object] | None = None,
        request_metadata: Metadata | None = None,
        tee: AsyncTee | None = None,
        repair: Repair = "none",
        strict: bool = False,
        continue_from: Message | None = None,
        notes: Notes = (),
        output: object = None,
        **params: Any,
    ) -> AsyncDeltaStream:
        """Start a call, asynchronously.  The request is sent when the stream is first read.

        Args:
            messages: the conversation: one message or a list. A message is a `Message` or its wire
                form, a text of the user, the Chat form, the form of the Messages API, or a
                `UserMessage` or `AssistantMessage`. Blocks in a row are one message of the user.
            tool_specs: the tools that the model may call.
            system_prompt: precedes the system messages.
            tool_choice: replaces the choice of the configuration.
            system_prompt_content: the system prompt in parts; replaces `system_prompt`.
            invocation_state: the caller's own objects, for hooks; they are never sent.
            request_metadata: its `run_id` becomes the run id of the deltas.
            tee: receives the bytes of the response as they arrive; its result is awaited.
            repair: "auto" repairs parts of the conversation that the provider would refuse, and
                sends a request once more without its reasoning if that was refused (warning
                `replay_repaired`); "none" sends it unchanged. The problems are in the message's
                warnings in both cases.
            strict: whether a conversation that the provider would refuse raises instead.
            continue_from: an answer to the conversation that broke off, such as `partial_message`
                of a `ModelError`. The deltas are those of its rest; the message has both, and a
                warning with the code "continued". See `can_continue`.
            notes: losses before the call, such as `Migrated.notes`; they become warnings of the
                message.
            output: the type of the answer; the stream then has `partial` and `final_output`
                (`Output` has the types).
            params: settings for this call alone.

        Raises:
            ValueError: a message, tool or setting is wrong; the error names it.
            HistoryError: the conversation has problems, and `strict` is set.
            MisuseError: the client is synchronous, the package that makes a client is not
                installed, or `continue_from` cannot be continued.
        """
        arguments = CallArguments(
            messages,
            tool_specs,
            system_prompt,
            tool_choice,
            system_prompt_content,
            invocation_state,
            request_metadata,
            repair,
            strict,
            continue_from,
            notes,
            output,
            params=params,
        )
        prepared = self._prepare("asynchronous", arguments)
        return self._begin_async(prepared, tee)

    @overload
    def stream_sync(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        tool_choice: ToolChoiceLike | None = None,
        system_prompt_content: SystemContent | None = None,
        invocation_state: Mapping[str, object] | None = None,
        request_metadata: Metadata | None = None,
        tee: Tee | None = None,
        repair: Repair = "none",
        strict: bool = False,
        continue_from: Message | None = None,
        notes: Notes = (),
        output: None = None,
        **params: Unpack["CallSettings"],
    ) -> DeltaStream: ...
    @overload
    def stream_sync(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: Output[T, P],
        **rest: Unpack[_Rest],
    ) -> OutputStream[T, P]: ...
    @overload
    def stream_sync(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: type[T],
        **rest: Unpack[_Rest],
    ) -> OutputStream[T]: ...
    @overload
    def stream_sync(
        self,
        messages: Messages,
        tool_specs: _Tools = None,
        *,
        output: _Schema,
        **rest: Unpack[_Rest],
    ) -> OutputStream[object]: ...
    def stream_sync(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        tool_choice: ToolChoiceLike | None = None,
        system_prompt_content: SystemContent | None = None,
        invocation_state: Mapping[str, object] | None = None,
        request_metadata: Metadata | None = None,
        tee: Tee | None = None,
        repair: Repair = "none",
        strict: bool = False,
        continue_from: Message | None = None,
        notes: Notes = (),
        output: object = None,
        **params: Any,
    ) -> DeltaStream:
        """Start a call and wait for it; arguments and errors are those of `stream`."""
        arguments = CallArguments(
            messages,
            tool_specs,
            system_prompt,
            tool_choice,
            system_prompt_content,
            invocation_state,
            request_metadata,
            repair,
            strict,
            continue_from,
            notes,
            output,
            params=params,
        )
        prepared = self._prepare("synchronous", arguments)
        return self._begin_sync(prepared, tee)

    def stream_request(
        self,
        body: Mapping[str, object],
        *,
        invocation_state: Mapping[str, object] | None = None,
        request_metadata: Metadata | None = None,
        tee: AsyncTee | None = None,
    ) -> AsyncDeltaStream:
        """Send a body in the form of the provider's API, unchanged.

        >>> async with model.stream_request(gateway_body) as stream: ...

        Raises:
            MisuseError: the client is synchronous, or the package that makes a client is not
                installed.
        """
        prepared = self._prepare_body("asynchronous", body, invocation_state, request_metadata)
        return self._begin_async(prepared, tee)

    def stream_request_sync(
        self,
        body: Mapping[str, object],
        *,
        invocation_state: Mapping[str, object] | None = None,
        request_metadata: Metadata | None = None,
        tee: Tee | None = None,
    ) -> DeltaStream:
        """Send a body unchanged, and wait; arguments and errors are those of `stream_request`."""
        prepared = self._prepare_body("synchronous", body, invocation_state, request_metadata)
        return self._begin_sync(prepared, tee)

    def stream_choices(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        **params: Unpack["CallSettings"],
    ) -> AsyncGenerator[EndedChoice]:
        """Start a call that asks for several answers, and yield each answer when it ends.

        The answers of Chat end together, because the token counts come after all of them. Log
        probabilities and token ids are decoded if the server sends them. Neither the provider nor
        the network makes the loop raise: a failure is in `error` of each answer that it ended.
        `deltafold.rollouts.collect` calls it for many prompts. To leave the loop early, close the
        generator (`contextlib.aclosing`) before the model.

        >>> async for one in model.stream_choices("Name a tide.", candidate_count=8):
        ...     print(one.choice, one.message.text, one.error)

        Args:
            messages: the conversation, as `stream` takes it.
            tool_specs: the tools that the model may call.
            system_prompt: precedes the system messages.
            params: the other arguments of `stream` but `tee`, `output` and `continue_from`.

        Raises:
            ValueError: a message, tool or setting is wrong; the error names it.
            MisuseError: the client is synchronous, or no client is installed.
        """
        prepared = self._prepare(
            "asynchronous", CallArguments.of(messages, tool_specs, system_prompt, params)
        )
        return self._begin_choices(prepared)
