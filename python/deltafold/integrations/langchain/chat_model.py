"""The chat model of langchain-core over a deltafold model.

In: the framework's messages, tools and settings.  Out: messages, chunks and content-block events.

Laws: a setting of the call replaces the same setting of this object, which replaces that of the
deltafold model. A request that fails before anything was received is sent again, up to
`max_retries` times, after the seconds that the provider names. Leaving a stream closes its
connection.
"""

import itertools
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Self, TypeAlias

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.utils import LC_ID_PREFIX
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr, model_validator

from deltafold._core import DeltaBatch
from deltafold.contract.kinds import json_object
from deltafold.dialects.model_fit import may_force_tool
from deltafold.integrations.langchain.answers import Chunks, Event, Events, message_of
from deltafold.integrations.langchain.failures import exception_of
from deltafold.integrations.langchain.history import conversation_of
from deltafold.integrations.langchain.retries import (
    async_attempts,
    attempts,
    framework_errors,
)
from deltafold.integrations.langchain.structured import Method, structured
from deltafold.integrations.langchain.tools import bound_tools, choice_of, specs_of
from deltafold.message.messages import Message
from deltafold.models.base import Model
from deltafold.models.loader import load_model, specification_for
from deltafold.models.vendors import VENDORS
from deltafold.streams.delta_streams import AsyncDeltaStream, DeltaStream
from deltafold.streams.encoded import message_deltas
from deltafold.transports.timeouts import Timeouts

_Opened: TypeAlias = tuple[DeltaStream, Iterator[DeltaBatch], list[DeltaBatch]]
_AsyncOpened: TypeAlias = tuple[AsyncDeltaStream, AsyncIterator[DeltaBatch], list[DeltaBatch]]

_OF_FRAMEWORK = frozenset(
    {"stream", "stream_usage", "ls_structured_output_format", "structured_output_format"}
)
"""Arguments of a call that the framework adds for itself."""


class ChatDeltafold(BaseChatModel):
    """A chat model of LangChain that any `deltafold.Model` answers.

    >>> client = deltafold.OpenAIChatModel({"model_id": "gpt-5.2"})
    >>> ChatDeltafold(client=client).invoke("Hello")
    >>> ChatDeltafold(model="google/gemini-3.8-flash", temperature=0).invoke("Hello")

    Attributes:
        client: the model of deltafold, or its name, which is the same as `model`; made from `model`
            if it is not given.
        model: the vendor, a slash and the vendor's name of the model.
        temperature: the randomness.
        max_tokens: the limit of the tokens of an answer.
        top_p: the probability mass of the sampled tokens.
        stop: texts that end an answer.
        timeout: seconds to wait for the first byte and between two reads; for `model` only.
        max_retries: how often a failed request is sent again.
        api_key: the key; for `model` only. None is the environment variable of the vendor.
        base_url: the address; for `model` only.
        streaming: whether `invoke` streams the answer from the provider.
        params: further fields of the configuration of the deltafold model.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", populate_by_name=True)

    client: Any = Field(default=None, exclude=True, repr=False)
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop: list[str] | None = Field(default=None, alias="stop_sequences")
    timeout: float | None = None
    max_retries: int = 2
    api_key: SecretStr | None = Field(default=None, exclude=True, repr=False)
    base_url: str | None = None
    streaming: bool = False
    params: dict[str, Any] = Field(default_factory=dict[str, Any])

    _client: Model[Any] = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _take_name(cls, given: Any) -> Any:
        """Take the name of a model as `client`, which is that of `model`."""
        values = json_object(given)
        if values is None or not isinstance(values.get("client"), str):
            return given
        if values.get("model") is not None:
            raise ValueError("client and model both name a model: pass one of them")
        others = {name: value for name, value in values.items() if name != "client"}
        return {**others, "model": values["client"]}

    @model_validator(mode="after")
    def _make_client(self) -> Self:
        if self.client is not None:
            given: object = self.client
            if not isinstance(given, Model):
                raise TypeError(
                    f"client must be a deltafold.Model or the name of one, not {given!r}"
                )
            for name in ("model", "timeout", "api_key", "base_url"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name}: set it on the deltafold model that is the client")
            self._client = self.client
            return self
        if self.model is None:
            raise ValueError('pass client=, a deltafold model, or model="vendor/name"')
        limits = None
        if self.timeout is not None:
            limits = Timeouts(first_byte=self.timeout, idle=self.timeout)
        key = None if self.api_key is None else self.api_key.get_secret_value()
        self._client = load_model(
            self.model,
            specification=specification_for(self.model, self.params),
            api_key=key,
            base_url=self.base_url,
            timeouts=limits,
        )
        return self

    @property
    def _llm_type(self) -> str:
        return "deltafold"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        settings = self._settings({}, None)
        client = self._client
        return {
            "provider": client.provider_id,
            "specification": client.specification,
            "model": client.model_id,
            **settings,
        }

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        settings = self._settings(kwargs, stop)
        params = LangSmithParams(
            ls_provider=self._client.provider_id,
            ls_model_name=settings.get("model_id", self._client.model_id),
            ls_model_type="chat",
        )
        if "temperature" in settings:
            params["ls_temperature"] = settings["temperature"]
        if "max_tokens" in settings:
            params["ls_max_tokens"] = settings["max_tokens"]
        if settings.get("stop_sequences"):
            params["ls_stop"] = list(settings["stop_sequences"])
        return params

    def _settings(self, given: Mapping[str, Any], stop: Sequence[str] | None) -> dict[str, Any]:
        """Return the fields of the configuration that a call changes."""
        own = {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "top_p": self.top_p,
            "stop_sequences": self.stop or None,
        }
        settings: dict[str, Any] = {name: one for name, one in own.items() if one is not None}
        settings |= self.params
        settings |= {
            name: value
            for name, value in given.items()
            if name not in {"tools", "tool_choice", "model", *_OF_FRAMEWORK}
        }
        if isinstance(name := given.get("model"), str):
            settings["model_id"] = name.rpartition("/")[2] if self.client is None else name
        if stop:
            settings["stop_sequences"] = list(stop)
        return settings

    def _arguments(
        self, messages: list[BaseMessage], stop: list[str] | None, given: Mapping[str, Any]
    ) -> tuple[list[Message], dict[str, Any]]:
        """Return the conversation of a call, and the arguments of the deltafold model."""
        settings = self._settings(given, stop)
        tools, of_provider = specs_of(given.get("tools") or ())
        if of_provider:
            known = self._client.get_config().provider_tools
            settings["provider_tools"] = [*known, *of_provider]
        choice = choice_of(given.get("tool_choice"))
        conversation = conversation_of(messages, self._client.dialect)
        options = {"tool_specs": tools, "tool_choice": choice, "repair": "auto"}
        return conversation, {**options, **settings}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        conversation, options = self._arguments(messages, stop, kwargs)

        def sent() -> Message:
            with framework_errors():
                return self._client.send_message_sync(
                    conversation, stream=self.streaming, output=None, **options
                )

        return _result(attempts(self.max_retries)(sent))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        conversation, options = self._arguments(messages, stop, kwargs)

        async def sent() -> Message:
            with framework_errors():
                return await self._client.send_message(
                    conversation, stream=self.streaming, output=None, **options
                )

        return _result(await async_attempts(self.max_retries)(sent))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        chunks, events = Chunks(), Events()
        stream, read, first = self._opened(messages, stop, kwargs)
        with stream:
            for batch in itertools.chain(first, read):
                yield from chunks.of(events.feed(batch))
            yield from chunks.of(events.end(_message(stream)))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        chunks, events = Chunks(), Events()
        stream, read, first = await self._aopened(messages, stop, kwargs)
        async with stream:
            for batch in first:
                for chunk in chunks.of(events.feed(batch)):
                    yield chunk
            async for batch in read:
                for chunk in chunks.of(events.feed(batch)):
                    yield chunk
            for chunk in chunks.of(events.end(_message(stream))):
                yield chunk

    def _stream_chat_model_events(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[Event]:
        """Yield the content-block events of an answer; the framework's native hook."""
        events = Events(_message_id(run_manager))
        stream, read, first = self._opened(messages, stop, kwargs)
        with stream:
            for batch in itertools.chain(first, read):
                yield from events.feed(batch)
            yield from events.end(_message(stream))

    async def _astream_chat_model_events(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Event]:
        """Yield the content-block events of an answer; the framework's native hook."""
        events = Events(_message_id(run_manager))
        stream, read, first = await self._aopened(messages, stop, kwargs)
        async with stream:
            for batch in first:
                for event in events.feed(batch):
                    yield event
            async for batch in read:
                for event in events.feed(batch):
                    yield event
            for event in events.end(_message(stream)):
                yield event

    def _opened(
        self, messages: list[BaseMessage], stop: list[str] | None, given: Mapping[str, Any]
    ) -> _Opened:
        """Return a stream that has begun, its further batches, and the first ones.

        Raises:
            ModelError: the request failed.
        """
        conversation, options = self._arguments(messages, stop, given)

        def opened() -> _Opened:
            stream = self._client.stream_sync(conversation, output=None, **options)
            read, first = stream.batches(), list[DeltaBatch]()
            for batch in read:
                first.append(batch)
                if _has_begun(stream):
                    break
            _refuse_failed_request(stream)
            return stream, read, first

        found: _Opened = attempts(self.max_retries)(opened)
        return found

    async def _aopened(
        self, messages: list[BaseMessage], stop: list[str] | None, given: Mapping[str, Any]
    ) -> _AsyncOpened:
        """Return a stream that has begun; results and errors are those of `_opened`."""
        conversation, options = self._arguments(messages, stop, given)

        async def opened() -> _AsyncOpened:
            stream = self._client.stream(conversation, output=None, **options)
            read, first = stream.batches(), list[DeltaBatch]()
            async for batch in read:
                first.append(batch)
                if _has_begun(stream):
                    break
            _refuse_failed_request(stream)
            return stream, read, first

        found: _AsyncOpened = await async_attempts(self.max_retries)(opened)
        return found

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: Any = None,
        strict: bool | None = None,
        parallel_tool_calls: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools to the model.

        Args:
            tools: functions, pydantic classes, tools of LangChain, schemas, and tools of the
                provider in the form of its API.
            tool_choice: "auto", "none", "any", the name of a tool, or a choice in the form of an
                API.
            strict: whether the provider must hold the arguments to the schemas.
            parallel_tool_calls: False allows one call at a time.
            kwargs: settings of the calls.
        """
        if parallel_tool_calls is not None:
            kwargs["parallel_tool_calls"] = parallel_tool_calls
        choice = choice_of(tool_choice)
        if choice is not None:
            kwargs["tool_choice"] = choice
        return self.bind(tools=bound_tools(tools, strict=strict), **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type,
        *,
        include_raw: bool = False,
        method: Method | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """Return a runnable whose result is an object of a schema.

        Args:
            schema: a pydantic class, a TypedDict, a JSON Schema, or a tool in OpenAI's form.
            include_raw: whether the result is `{raw, parsed, parsing_error}`.
            method: "json_schema" (the mechanism of the API), "function_calling" or "json_mode";
                None is the mechanism of the API where the model has one.
            strict: whether the provider must hold the answer to the schema.
            kwargs: settings of the calls.

        Raises:
            ValueError: `strict` is set for "json_mode", which has no schema.
        """
        return structured(
            self,
            self._client,
            schema,
            can_force=may_force_tool(
                self._client.get_config(),
                self._client.dialect,
                VENDORS[self._client.provider_id].names,
            ),
            include_raw=include_raw,
            method=method,
            strict=strict,
            **kwargs,
        )


def _result(message: Message) -> ChatResult:
    events = Events()
    told = [event for delta in message_deltas(message) for event in events.feed(delta)]
    answer = message_of([*told, *events.end(message)])
    return ChatResult(generations=[ChatGeneration(message=answer)])


def _message_id(
    run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
) -> str:
    """Return the id that the framework gives the message of a run, "" without a run."""
    return "" if run_manager is None else f"{LC_ID_PREFIX}-{run_manager.run_id}"


def _has_begun(stream: DeltaStream | AsyncDeltaStream) -> bool:
    """Return whether the response was accepted: its stream has started, or it is over."""
    return stream.status != "idle"


def _refuse_failed_request(stream: DeltaStream | AsyncDeltaStream) -> None:
    """Raise the failure of a stream that brought no part.

    Raises:
        ModelError: the request failed.
    """
    error = stream.error
    if error is not None and not (error.partial_message and error.partial_message.parts):
        raise exception_of(error) from error


def _message(stream: DeltaStream | AsyncDeltaStream) -> Message:
    """Return the message of a stream that is over.

    Raises:
        ModelError: the stream failed, or it was cut.
    """
    if (error := stream.error) is not None:
        raise exception_of(error) from error
    return stream.message
