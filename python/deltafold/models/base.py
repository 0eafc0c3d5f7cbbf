"""Model: a provider behind one interface, for any number of streams at once.

In: messages, tools, settings.  Out: `AsyncDeltaStream` or `DeltaStream`, or the message.

Laws: making a Model uses no network. A stream keeps the configuration that it began with. Settings
of the call replace settings of the configuration, which replace the defaults of the vendor. A
mistake of the caller raises at the call; a failure of the provider or the network ends the stream.
Clients that are made here do not retry, because retries are the caller's decision. A request that
no server can have read is no retry (`transports/http.py`).
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from copy import copy, deepcopy
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar, cast

from deltafold._core import Decoder
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import MarkupName, RequestProtocol
from deltafold.dialects import Dialect
from deltafold.dialects.capability import Capability
from deltafold.dialects.model_table import find_model
from deltafold.dialects.repairs.pieces import is_plain
from deltafold.dialects.settings import CacheConfig, ModelConfig
from deltafold.errors.mapper import ErrorMapper
from deltafold.errors.model_error import ModelError
from deltafold.message.messages import Message, Role
from deltafold.models import continuation
from deltafold.models.call_inputs import (
    NO_METADATA,
    REPAIRS,
    CallArguments,
    Metadata,
    Telemetry,
    ToolChoiceLike,
    conversation_of,
    examined,
    may_repeat,
    metadata_of,
    schemas_of,
    tools_of,
)
from deltafold.models.clients import Clients
from deltafold.models.defaults import fields_for, fields_of, vendor_speaking
from deltafold.models.every_choice import EndedChoice, every_choice
from deltafold.models.fallback import Fallback, Further, On, moves_by
from deltafold.models.hooks import Hooks
from deltafold.models.info import ModelInfo, info_of
from deltafold.models.json_body import encoded, refuse_no_json
from deltafold.models.model_streams import Streaming
from deltafold.models.observer import CURRENT
from deltafold.models.prepared import Prepared, WrittenCall, asks_for_logprobs, renamed
from deltafold.streams.delta_streams import AsyncDeltaStream, DeltaStream
from deltafold.streams.output_streams import AsyncOutputStream, OutputStream
from deltafold.streams.outputs import Output
from deltafold.streams.readers import AsyncTee, Tee
from deltafold.transports.http import ClientKind
from deltafold.transports.packages import MAX_CONNECTIONS
from deltafold.transports.requests import PreparedRequest
from deltafold.transports.sdks import Sdk
from deltafold.transports.timeouts import Timeouts

if TYPE_CHECKING:
    from deltafold.models.output_request import OutputRequest
    from deltafold.streams.options import ChoicesOptions, DecoderOptions

_IMMUTABLE: Final = (str, int, float, NoneType)
"""Types of most settings, which need no copy."""

ConfigT = TypeVar("ConfigT", bound=ModelConfig)


class Model(Streaming, Generic[ConfigT]):
    """One model of one provider.

    >>> model = AnthropicModel({"model_id": "claude-demo"})
    >>> message = model.stream_sync("Hello").final_message()

    Args:
        config: the model id and settings; a mapping is checked as the adapter's config class would
            be.
        client: what to call through: a client of the provider's SDK where that gives bytes, an
            httpx, httpx2 or aiohttp client, or a transport of `deltafold.testing`; None makes one
            when it is first needed.
        cache_config: beats the config's own.
        error_mapper: names the failures of the provider and the network; None is the default table.
        vendor: the row of `vendors.py` that says where to call; None is the protocol's author.
        base_url: beats the vendor's address.
        api_key: beats the environment variable that the vendor's row names.
        transport: what to make where no client is given: "httpx2", "httpx", "aiohttp" (the
            fastest), or "sdk" for the provider's own.
        timeouts: how long to wait, in seconds; a client of an SDK that is given keeps its own.
        resend_lost: whether a request is sent once more, over a new connection, where a used one
            closed within a second and before a byte of the answer, as the connections of servers do
            that close them after an answer. Clients of SDKs decide by themselves.
        max_connections: how many connections a client that is made here may have. A further request
            waits for one, as long as `timeouts.pool` says.
        hooks: what to call before each request and after its headers.
        markup: how the model writes reasoning and tool calls in plain text, one of
            `deltafold.markup_names()`.
        starts_in_thinking: whether the prompt opens the thinking, so that the text begins inside.
        ends_without_reason: whether the service sends no finish reason, so that an end mark or a
            body that was closed ends a whole answer; None is what the vendor's row says.
        telemetry: is told of each call; None is what `deltafold.otel.instrument()` has set.

    Raises:
        ValueError: a setting is wrong or unknown; the error names it and the nearest known one.
        UnknownDialectError: there is no such markup.
        MisuseError: the client belongs to another SDK, the vendor speaks another dialect, or
            `max_connections` is less than 1.
    """

    row: ClassVar[Dialect]
    sdk: ClassVar[Sdk | None] = None
    # Most Models have no others to call after a failure.
    _further: "tuple[Model[Any], ...]" = ()
    _on: On | None = None
    _fallback: Fallback | None = None

    def __init__(
        self,
        config: ModelConfig | Mapping[str, object],
        *,
        client: object | None = None,
        cache_config: CacheConfig | None = None,
        error_mapper: ErrorMapper | None = None,
        vendor: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        transport: str = "httpx2",
        timeouts: Timeouts | None = None,
        resend_lost: bool = True,
        max_connections: int = MAX_CONNECTIONS,
        hooks: Hooks | None = None,
        markup: MarkupName | None = None,
        starts_in_thinking: bool = False,
        ends_without_reason: bool | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.dialect: RequestProtocol = self.row.name
        self._config_class = self.row.config_class
        self._vendor = vendor_speaking(vendor or self.row.author, self.dialect)
        # Path of the endpoint below the vendor's address, "" if it depends on the model.
        self._fixed_path = self._vendor.paths.get(self.dialect) or self.row.path
        given = fields_of(config)
        if cache_config is not None:
            given["cache_config"] = cache_config
        defaults = fields_for(self._vendor, self._config_class)
        self._config = self._check_config({**defaults, **given})
        if error_mapper is not None and not isinstance(error_mapper, ErrorMapper):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"error_mapper must be an ErrorMapper, not {error_mapper!r}")
        self._error_mapper = error_mapper
        if max_connections < 1:
            raise MisuseError(f"max_connections must be at least 1 (got {max_connections})")
        self._clients = Clients(
            self._vendor,
            self.dialect,
            type(self).__name__,
            self.sdk,
            self._key_headers,
            token_headers=self.row.token_headers,
            own=self.row.author == self._vendor.name,
            client=client,
            base_url=base_url,
            api_key=api_key,
            transport=transport,
            timeouts=timeouts or Timeouts(),
            resend_lost=resend_lost,
            max_connections=max_connections,
        )
        self._hooks = hooks or Hooks()
        self._telemetry = telemetry
        self._decoding: DecoderOptions = {}
        if markup is not None or starts_in_thinking:
            self._decoding = {"markup": markup, "starts_in_thinking": starts_in_thinking}
        if self._vendor.ends_without_reason if ends_without_reason is None else ends_without_reason:
            self._decoding["ends_without_reason"] = True
        self._specification = f"{self.dialect}+{markup}" if markup else self.dialect
        Decoder(self.dialect, **self._decoding)

    def _check_config(self, fields: Mapping[str, object]) -> ConfigT:
        return cast("ConfigT", self._config_class.model_validate(fields))

    def _path(self, config: ConfigT, *, stream: bool) -> str:
        """Return the path of an endpoint that depends on the model, below the vendor's address."""
        return self.row.request_path(config, stream=stream)

    def _key_headers(self, key: str) -> Mapping[str, str]:
        """Return the headers that carry a key."""
        return self.row.key_headers(key)

    def update_config(self, **changes: object) -> None:
        """Change settings for the streams to come; those in flight keep theirs.

        Raises:
            ValueError: a setting is wrong or unknown.
        """
        self._config = self._changed(changes)

    def get_config(self) -> ConfigT:
        """Return a copy of the settings in force."""
        config = self._config.model_copy()
        # A deep copy of the whole would cost a gateway a twentieth of a short call.
        members = vars(config)
        for name, value in members.items():
            if not isinstance(value, _IMMUTABLE):
                members[name] = deepcopy(value)
        return config

    def __copy__(self) -> Self:
        """Return a Model with the same settings, which makes its own clients.

        Both share all other objects: a client that was given, hooks, telemetry, the error mapper, a
        local pipeline. A subclass with state that changes overrides this method.
        """
        other = self._falling_back_to(map(copy, self._further), self._on)
        other._clients = self._clients.copied(other._key_headers)  # noqa: SLF001 - of this class
        return other

    def __deepcopy__(self, _: object) -> Self:
        # A client has locks and connections, and a hook writes to objects of the caller, which a
        # deep copy would replace.
        return copy(self)

    def __repr__(self) -> str:
        """Name the class, the model, the vendor and the protocol, and no setting."""
        kind, vendor = type(self).__name__, self._vendor.name
        return f"<{kind} {self._config.model_id} of {vendor}, {self._specification}>"

    @property
    def provider_id(self) -> str:
        """Name of the vendor."""
        return self._vendor.name

    @property
    def specification(self) -> str:
        """The dialect, with a plus and the markup if there is one."""
        return self._specification

    @property
    def model_id(self) -> str:
        """The provider's name of the model."""
        return self._config.model_id

    def model_info(self) -> ModelInfo:
        """Return the known facts about the model without a request to its provider.

        Its window and prices are those of the installed genai-prices (extra `prices`). The other
        facts, and the window without that extra, are those of the table of models; a name that is
        newer than the table has those of the model that `known_as` names.
        """
        return info_of(self.row, self._vendor.name, self._specification, self._config)

    def supports(self, capability: Capability | str) -> bool | None:
        """Return whether the model has a capability.

        >>> model.supports("images")
        True

        Returns:
            False if requests of this protocol cannot ask for it, or if the model is known not to
            have it; None if the model is not known.

        Raises:
            ValueError: the capability is not known.
        """
        asked = Capability(capability)
        if asked not in self.row.capabilities:
            return False
        known = find_model(self._config.known_as or self._config.model_id)
        return None if known is None else known.facts.has(asked)

    def can_continue(self, message: Message) -> bool:
        """Return whether `continue_from` of `stream` takes an answer that broke off.

        Mistral and DeepSeek continue text, and so do the Claude models before 4.6 without
        reasoning. No provider continues a call.

        >>> if error.partial_message and model.can_continue(error.partial_message):
        ...     stream = model.stream(messages, continue_from=error.partial_message)
        """
        return self._continuable(self._config).obstacle(message) is None

    def _continuable(self, config: ConfigT) -> continuation.Continuable:
        return continuation.Continuable(
            self.dialect, config, self._segment, through_sdk=self._clients.through_sdk
        )

    @property
    def _segment(self) -> str:
        """Segment of the vendor's address for continued answers in this dialect."""
        is_chat = self.dialect == self._vendor.dialect
        return self._vendor.continuing_segment if is_chat else ""

    def with_fallback(self, *models: "Model[Any]", on: On | None = None) -> Self:
        """Return this Model with others that are called, one after the other, when it fails.

        An overload, an error of the server, a lost connection, a timeout, a rate limit, a spent
        quota, an unknown model and a context that is too long for this one move a call on. After
        the first part of an answer, only a Model that continues it is called (`can_continue`). The
        message has a warning with the code "fallback" for each failure, and so has the error of the
        last Model. An `Agent` retries at each Model before it calls the next one.

        The result has the settings that this Model has now, and shares its clients: closing it
        closes those of all Models. `stream_request` and `stream_choices` call this Model alone.

        >>> model = deltafold.load_model("openai/gpt-5.6-terra").with_fallback(
        ...     deltafold.load_model("anthropic/claude-sonnet-5-5")
        ... )

        Args:
            models: the Models to call next, in their order.
            on: the codes of the failures that move a call on, in place of those above, or a
                function that decides. A cancellation never does.

        Raises:
            MisuseError: there is no further Model.
            ValueError: `on` has a name that is no `ErrorCode`.
        """
        if not models:
            raise MisuseError("with_fallback: name at least one further Model")
        further = [*self._further, *(one for model in models for one in model.chain)]
        return self._falling_back_to(further, self._on if on is None else on)

    @property
    def chain(self) -> "tuple[Model[Any], ...]":
        """This Model and those of `with_fallback`, in their order, each without a fallback."""
        if not self._further:
            return (self,)
        return (self._falling_back_to((), None), *self._further)

    def moves_on(self, error: ModelError) -> bool:
        """Return whether a failure of this Model lets the next one of `chain` answer."""
        return self._fallback is not None and self._fallback.moves(error)

    def _falling_back_to(self, models: "Iterable[Model[Any]]", on: On | None) -> Self:
        other = object.__new__(type(self))
        further = tuple(models)
        prepared = tuple(Further(model, model._prepare) for model in further)  # noqa: SLF001 - of this class
        fallback = Fallback(prepared, moves_by(on)) if further else None
        vars(other).update(vars(self), _further=further, _on=on, _fallback=fallback)
        return other

    def allow_connections(self, number: int) -> None:
        """Let this Model have so many requests in flight at least; `rollouts.collect` calls it.

        `max_connections` never falls. A client that was made with fewer connections is replaced for
        later calls, and closed with the Model. A client of the caller stays as it is; the log has a
        warning if it is known to have fewer connections.

        >>> model.allow_connections(5_000)
        """
        self._clients.allow_connections(number)
        for model in self._further:
            model.allow_connections(number)

    def close(self) -> None:
        """Close the synchronous client if this Model made it, and those of its further Models."""
        self._clients.close()
        for model in self._further:
            model.close()

    async def aclose(self) -> None:
        """Close the asynchronous client if this Model made it, and those of its further Models."""
        await self._clients.aclose()
        for model in self._further:
            await model.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def _prepare(self, kind: ClientKind, arguments: CallArguments) -> Prepared:
        written = None
        if may_repeat(arguments.messages):  # others do without the module
            from deltafold.models.outlined import written_alike  # noqa: PLC0415 - as said

            written = written_alike(arguments, self._config, self.row, self._written)
        written = written or self._written(arguments)
        prepared = self._prepared(
            kind, written, arguments.invocation_state, arguments.request_metadata
        )
        if self._fallback is not None:
            prepared.following = self._fallback.course(kind, arguments, self, prepared)
        return prepared

    def _written(self, asked: CallArguments) -> WrittenCall:
        """Render a call, with the settings of the call."""
        conversation = conversation_of(
            asked.messages, asked.system_prompt, asked.system_prompt_content
        )
        config, tool_specs, continued = self._config, asked.tool_specs, asked.continue_from
        if asked.params or asked.tool_choice is not None:
            config = self._changed(asked.params, asked.tool_choice)
        expected = None
        if asked.output is not None:
            wanted = self._ask_for(asked.output, config, continued, has_tools=bool(tool_specs))
            expected = wanted.expected
            if wanted.tool is not None:
                tool_specs = [*(tool_specs or ()), wanted.tool]
            config = self._changed(
                {**asked.params, **wanted.settings}, asked.tool_choice or wanted.tool_choice
            )
        tools = tools_of(tool_specs) if tool_specs else []
        if continued is not None:
            conversation.append(self._continuable(config).checked(continued))
        report = None
        is_ended = bool(conversation) and conversation[-1].role is Role.ASSISTANT
        if is_ended or not is_plain(conversation) or asked.repair not in REPAIRS:
            conversation, report = examined(
                conversation, self.dialect, config, repair=asked.repair, strict=asked.strict
            )
        sources: dict[str, object] = {"extra_body": dict(config.extra_body)}
        if tools:
            sources |= schemas_of(tools)
        try:
            rendered = self.row.render(
                conversation, tools, config, stream=asked.streamed, vendors=self._vendor.names
            )
        except RecursionError:
            for name, source in sources.items():
                refuse_no_json(source, name)
            raise
        notes = (*asked.notes, *rendered.notes)
        is_clean = report is None or not report.problems
        if report is not None and not is_clean:
            notes = (*report.to_warnings(), *notes)
        return WrittenCall(
            config,
            rendered.body,
            sources,
            asked.streamed,
            messages=conversation,
            tools=tools,
            notes=notes,
            tool_names=rendered.tool_names,
            continued=continued,
            expected=expected,
            repairs=asked.repair == "auto",
            is_typical=is_clean and not rendered.depends_on_turns and not rendered.call_ids,
        )

    def _ask_for(
        self, output: object, config: ConfigT, continued: Message | None, *, has_tools: bool
    ) -> "OutputRequest[Any, Any]":
        if continued is not None:
            raise MisuseError(
                "continue_from has no output: pass the message to Output(...).of_message()"
            )
        from deltafold.models.output_request import output_request  # noqa: PLC0415 - few calls

        return output_request(
            Output.of(output), self.row.name, self._vendor.name, config, has_tools=has_tools
        )

    def _prepare_body(
        self,
        kind: ClientKind,
        body: Mapping[str, object],
        invocation_state: Mapping[str, object] | None,
        request_metadata: Metadata | None,
    ) -> Prepared:
        config = self._config
        named = body.get("model")
        if isinstance(named, str):
            config = self._changed({"model_id": named})
        written = WrittenCall(
            config, body, {"body": dict(body)}, streamed=body.get("stream") is not False
        )
        return self._prepared(kind, written, invocation_state, request_metadata)

    def _prepared(
        self,
        kind: ClientKind,
        written: WrittenCall,
        invocation_state: Mapping[str, object] | None,
        request_metadata: Metadata | None,
    ) -> Prepared:
        config = cast("ConfigT", written.config)
        body, tool_names = written.body, written.tool_names
        caller = self._clients.caller(kind)
        if caller.sdk is not None and self.dialect in self._vendor.paths:
            own = self._vendor.paths[self.dialect]
            raise MisuseError(
                f"client: {self._vendor.name} answers at {own}, a path that no SDK calls; leave "
                "the client out, or give a client of an HTTP library"
            )
        if written.continued is not None and self._segment:
            caller = caller.at_segment(self._segment)
            body = continuation.with_prefix(body)
        metadata = NO_METADATA if request_metadata is None else metadata_of(request_metadata)
        model_id = config.model_id
        request = PreparedRequest(
            self._fixed_path or self._path(config, stream=written.streamed),
            body,
            config.extra_headers,
            config.extra_query,
            written.streamed,
            written.content or encoded(body, written.sources, opaque=caller.sdk is not None),
        )
        options: DecoderOptions = {"model_id": model_id, **self._decoding}
        if metadata.run_id is not None:
            options["run_id"] = metadata.run_id
        if asks_for_logprobs(body):
            options["logprobs"] = True
        if tool_names:
            options["tool_names"] = tool_names
        if getattr(config, "joined_choices", False) and body.get("n") in {None, 1}:
            options["choice"] = "joined"
        if options.get("markup") is not None:
            options["tools"] = renamed(written.tools, tool_names or {}) or None
        return Prepared(
            self._vendor.name,
            model_id,
            self._hooks.after_headers,
            invocation_state or {},
            written.notes,
            written,
            caller,
            request,
            row=self.row,
            specification=self._specification,
            metadata=metadata,
            options=options,
            before_request=self._hooks.before_request,
            telemetry=self._telemetry or CURRENT.telemetry,
            error_mapper=self._error_mapper,
        )

    def _begin_choices(self, prepared: Prepared) -> AsyncGenerator[EndedChoice]:
        options: DecoderOptions = {**prepared.options, "logprobs": True}
        options.pop("choice", None)
        return every_choice(
            prepared.open_async,
            prepared.caller.dialect,
            cast("ChoicesOptions", options),
            self._error_mapper,
            prepared.redactor,
        )

    def _begin_sync(self, prepared: Prepared, tee: Tee | None) -> DeltaStream:
        expected, following = prepared.written.expected, prepared.following
        make: Callable[..., DeltaStream] = (
            DeltaStream if expected is None else partial(OutputStream[Any, Any], expected)
        )
        if following is not None:
            from deltafold.models.falling_streams import falling  # noqa: PLC0415 - few Models

            make = falling(following, expected)
        return make(
            prepared.open,
            prepared.caller.dialect,
            error_mapper=self._error_mapper,
            tee=tee,
            call=prepared,
            **prepared.options,
        )

    def _begin_async(self, prepared: Prepared, tee: AsyncTee | None) -> AsyncDeltaStream:
        expected, following = prepared.written.expected, prepared.following
        make: Callable[..., AsyncDeltaStream] = (
            AsyncDeltaStream if expected is None else partial(AsyncOutputStream[Any, Any], expected)
        )
        if following is not None:
            from deltafold.models.falling_streams import falling_async  # noqa: PLC0415 - as above

            make = falling_async(following, expected)
        return make(
            prepared.open_async,
            prepared.caller.dialect,
            error_mapper=self._error_mapper,
            tee=tee,
            call=prepared,
            **prepared.options,
        )

    def _changed(
        self, changes: Mapping[str, object], tool_choice: ToolChoiceLike | None = None
    ) -> ConfigT:
        if not changes and tool_choice is None:
            return self._config
        fields = {**self._config.fields_set(), **changes}
        if tool_choice is not None:
            fields["tool_choice"] = tool_choice
        return self._check_config(fields)
