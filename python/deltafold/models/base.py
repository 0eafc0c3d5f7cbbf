"""Model: a provider's client behind one interface, for any number of streams at once.

In: messages, tools, settings.  Out: `AsyncDeltaStream` or `DeltaStream`.

Laws: making a Model touches no network; a stream keeps the configuration that it began with;
settings of the call beat those of the config, which beat the vendor's; what a caller got wrong
raises at the call, what the provider or the network got wrong ends the stream.  Clients that are
made here do not retry: that is the caller's choice.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import environ
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar, cast

from deltafold.errors import ErrorMapper, MisuseError
from deltafold.messages import Message, TextPart
from deltafold.models.config import (
    CacheConfig,
    Capability,
    ModelConfig,
    ModelInfo,
    RequestMetadata,
    ToolChoice,
    ToolSpec,
)
from deltafold.models.transport import AsyncSource, Source
from deltafold.models.vendors import VENDORS, Vendor
from deltafold.stream import AsyncDeltaStream, DeltaStream

ConfigT = TypeVar("ConfigT", bound=ModelConfig)

Messages: TypeAlias = str | Sequence[Message | Mapping[str, object]]
Tools: TypeAlias = Sequence[ToolSpec | Mapping[str, object]]
SystemContent: TypeAlias = Sequence[str | TextPart | Mapping[str, object]]
ToolChoiceLike: TypeAlias = ToolChoice | Literal["auto", "required", "none"]
ClientKind: TypeAlias = Literal["synchronous", "asynchronous"]

# The base classes that both SDKs' clients of each kind have, by name: asking them needs no import.
_CLIENT_BASES: Mapping[str, ClientKind] = {
    "SyncAPIClient": "synchronous",
    "AsyncAPIClient": "asynchronous",
}


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """What goes out: the body and what surrounds it."""

    body: Mapping[str, object]
    headers: Mapping[str, str]
    query: Mapping[str, object]

    def extra_body(self, *named: str) -> dict[str, object]:
        """Return the body without the members that the SDK wants as arguments of their own."""
        return {name: value for name, value in self.body.items() if name not in named}


class Model(ABC, Generic[ConfigT]):
    """One model of one provider.

    >>> model = AnthropicModel({"model_id": "claude-demo"})
    >>> message = model.stream_sync("Hello").final_message()

    Args:
        config: the model id and settings; a mapping is checked as the adapter's config class would
            be.
        client: the SDK's client to call through, of either kind; None makes one when it is first
            needed.
        cache_config: beats the config's own.
        error_mapper: names the failures of the SDK and the network; None is the default table.
        vendor: the row of `vendors.py` that says where to call; of no effect on a client that is
            given.

    Raises:
        ValueError: a setting is wrong or unknown; the error names it and the nearest known one.
        MisuseError: the client belongs to another SDK, or the vendor speaks another dialect.
    """

    dialect: ClassVar[str]
    sdk: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]

    def __init__(
        self,
        config: ModelConfig | Mapping[str, object],
        *,
        client: object | None = None,
        cache_config: CacheConfig | None = None,
        error_mapper: ErrorMapper | None = None,
        vendor: str | None = None,
    ) -> None:
        self._vendor = self._find_vendor(vendor)
        given = config.fields_set() if isinstance(config, ModelConfig) else dict(config)
        if cache_config is not None:
            given["cache_config"] = cache_config
        self._config = self._check_config({**self._vendor.defaults, **given})
        self._client = client
        self._client_kind = None if client is None else self._kind_of(client)
        self._error_mapper = error_mapper
        self._own_clients: dict[ClientKind, tuple[object, object]] = {}

    @abstractmethod
    def _check_config(self, fields: Mapping[str, object]) -> ConfigT:
        """Make this adapter's configuration of fields, or raise ValueError."""

    @abstractmethod
    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], config: ConfigT
    ) -> dict[str, object]:
        """Render the request body."""

    @abstractmethod
    def _open(self, client: object, request: PreparedRequest) -> Source:
        """Send the request through a synchronous client and return the unread response."""

    @abstractmethod
    async def _open_async(self, client: object, request: PreparedRequest) -> AsyncSource:
        """Send the request through an asynchronous client and return the unread response."""

    @abstractmethod
    def _make_client(self, kind: ClientKind, arguments: Mapping[str, object]) -> object:
        """Make a client of the SDK."""

    def update_config(self, **changes: object) -> None:
        """Change settings for the streams to come; those in flight keep theirs.

        Raises:
            ValueError: a setting is wrong or unknown.
        """
        self._config = self._changed(changes)

    def get_config(self) -> ConfigT:
        """Return the settings in force; they cannot be changed through it."""
        return self._config

    def model_info(self) -> ModelInfo:
        """Return what is known of the model without asking its provider."""
        return ModelInfo(
            provider_id=self._vendor.name,
            specification=self.dialect,
            model_id=self._config.model_id,
            capabilities=self.capabilities,
        )

    def supports(self, capability: Capability | str) -> bool:
        """Whether this adapter can use the capability; the model behind it may know less.

        Raises:
            ValueError: there is no such capability.
        """
        return Capability(capability) in self.capabilities

    def stream(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        tool_choice: ToolChoiceLike | None = None,
        system_prompt_content: SystemContent | None = None,
        invocation_state: Mapping[str, object] | None = None,  # noqa: ARG002 - never on the wire
        request_metadata: RequestMetadata | Mapping[str, object] | None = None,
        **params: object,
    ) -> AsyncDeltaStream:
        """Ask the model, asynchronously.  The request goes out when the stream is first read.

        Args:
            messages: the conversation: messages, their wire form, or one string from the user.
            tool_specs: the tools that the model may call.
            system_prompt: precedes the system messages.
            tool_choice: beats the config's.
            system_prompt_content: the system prompt in parts; beats `system_prompt`.
            invocation_state: the caller's own objects; they never go on the wire.
            request_metadata: its `run_id` becomes the deltas' run id.
            params: settings for this call alone.

        Raises:
            ValueError: a message, tool or setting is wrong; the error names it.
            MisuseError: the client is synchronous, or the SDK is not installed.
        """
        config = self._changed(params, tool_choice)
        conversation = _conversation(messages, system_prompt, system_prompt_content)
        request = self._prepare(conversation, tool_specs, config)
        client = self._client_of("asynchronous")

        async def open_source() -> AsyncSource:
            return await self._open_async(client, request)

        return AsyncDeltaStream(
            open_source,
            self.dialect,
            error_mapper=self._error_mapper,
            run_id=_run_id(request_metadata),
            model_id=config.model_id,
        )

    def stream_sync(
        self,
        messages: Messages,
        tool_specs: Tools | None = None,
        system_prompt: str | None = None,
        *,
        tool_choice: ToolChoiceLike | None = None,
        system_prompt_content: SystemContent | None = None,
        invocation_state: Mapping[str, object] | None = None,  # noqa: ARG002 - never on the wire
        request_metadata: RequestMetadata | Mapping[str, object] | None = None,
        **params: object,
    ) -> DeltaStream:
        """Ask the model and wait for it; arguments and errors are those of `stream`."""
        config = self._changed(params, tool_choice)
        conversation = _conversation(messages, system_prompt, system_prompt_content)
        request = self._prepare(conversation, tool_specs, config)
        client = self._client_of("synchronous")

        def open_source() -> Source:
            return self._open(client, request)

        return DeltaStream(
            open_source,
            self.dialect,
            error_mapper=self._error_mapper,
            run_id=_run_id(request_metadata),
            model_id=config.model_id,
        )

    def close(self) -> None:
        """Close the synchronous client if this Model made it."""
        made = self._own_clients.pop("synchronous", None)
        if made is not None:
            made[0].close()  # type: ignore[attr-defined]  # both SDKs' clients have it

    async def aclose(self) -> None:
        """Close the asynchronous client if this Model made it."""
        made = self._own_clients.pop("asynchronous", None)
        if made is not None:
            await made[0].close()  # type: ignore[attr-defined]  # both SDKs' clients have it

    def _find_vendor(self, name: str | None) -> Vendor:
        vendor = VENDORS.get(name or self.sdk)
        if vendor is None:
            known = ", ".join(sorted(VENDORS))
            raise MisuseError(f"vendor: {name!r} is not known; there are {known}")
        if self.dialect not in vendor.addresses:
            raise MisuseError(
                f"vendor: {name} speaks {' and '.join(vendor.addresses)}, "
                f"{type(self).__name__} speaks {self.dialect}"
            )
        return vendor

    def _changed(
        self, changes: Mapping[str, object], tool_choice: ToolChoiceLike | None = None
    ) -> ConfigT:
        if not changes and tool_choice is None:
            return self._config
        fields = {**self._config.fields_set(), **changes}
        if tool_choice is not None:
            fields["tool_choice"] = tool_choice
        return self._check_config(fields)

    def _prepare(
        self, messages: Sequence[Message], tools: Tools | None, config: ConfigT
    ) -> PreparedRequest:
        specs = [
            tool if isinstance(tool, ToolSpec) else ToolSpec.model_validate(tool)
            for tool in tools or ()
        ]
        body = self._body(messages, specs, config)
        return PreparedRequest(body, config.extra_headers, config.extra_query)

    def _kind_of(self, client: object) -> ClientKind:
        bases = type(client).__mro__
        kinds: list[ClientKind] = [
            _CLIENT_BASES[base.__name__] for base in bases if base.__name__ in _CLIENT_BASES
        ]
        if not kinds or not any(base.__module__.split(".")[0] == self.sdk for base in bases):
            raise MisuseError(
                f"client: {type(self).__name__} calls through a client of the {self.sdk} SDK, "
                f"not a {type(client).__module__}.{type(client).__qualname__}"
            )
        return kinds[0]

    def _client_of(self, kind: ClientKind) -> object:
        if self._client is None:
            return self._own_client(kind)
        if self._client_kind != kind:
            call = "stream_sync()" if kind == "synchronous" else "stream()"
            raise MisuseError(
                f"{call} needs a {kind} client, and this Model has the {self._client_kind} "
                f"{type(self._client).__name__}: give it the other kind, or call the other method"
            )
        return self._client

    def _own_client(self, kind: ClientKind) -> object:
        # The connections of an asynchronous client belong to the event loop that opened them.
        loop = _running_loop() if kind == "asynchronous" else None
        made = self._own_clients.get(kind)
        if made is None or made[1] is not loop:
            made = (self._make_client(kind, self._client_arguments()), loop)
            self._own_clients[kind] = made
        return made[0]

    def _client_arguments(self) -> dict[str, object]:
        arguments: dict[str, object] = {"max_retries": 0}
        vendor = self._vendor
        base_url = vendor.addresses[self.dialect]
        if base_url is not None:
            if "{" in base_url:
                raise MisuseError(f"{vendor.name} is at {base_url}: pass a client that knows where")
            arguments["base_url"] = base_url
            # The SDK insists on a key even where the server wants none.
            key = environ.get(vendor.key_variable) if vendor.key_variable else "unused"
            if not key:
                raise MisuseError(
                    f"{vendor.name} needs a key: set {vendor.key_variable} or pass a client"
                )
            arguments["api_key"] = key
        return arguments

    def _sdk_class(self, name: str) -> type[object]:
        try:
            module = import_module(self.sdk)
        except ModuleNotFoundError as missing:
            raise MisuseError(
                f"{type(self).__name__} calls through the {self.sdk} SDK, which is not installed: "
                f"pip install 'deltafold[{self.sdk}]'"
            ) from missing
        return cast("type[object]", getattr(module, name))


def _running_loop() -> object:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # another event loop than asyncio's, or none
        return None


def _conversation(
    messages: Messages, system_prompt: str | None, system_content: SystemContent | None
) -> list[Message]:
    if isinstance(messages, str):
        conversation = [Message.user(messages)]
    else:
        conversation = [
            message if isinstance(message, Message) else Message.from_dict(dict(message))
            for message in messages
        ]
    if system_content is not None:
        parts = [
            part if isinstance(part, str | TextPart) else TextPart.model_validate(part)
            for part in system_content
        ]
        return [Message.system(*parts), *conversation]
    if system_prompt is not None:
        return [Message.system(system_prompt), *conversation]
    return conversation


def _run_id(metadata: RequestMetadata | Mapping[str, object] | None) -> str | None:
    if metadata is None:
        return None
    if not isinstance(metadata, RequestMetadata):
        metadata = RequestMetadata.model_validate(metadata)
    return metadata.run_id
