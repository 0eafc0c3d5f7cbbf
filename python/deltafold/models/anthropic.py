"""The adapter of anthropic-messages, through the anthropic SDK.

In: a rendered body.  Out: the SDK's raw streaming response as a source.  The SDK keeps
authentication, proxies, and the Vertex and Bedrock forms of the endpoint; deltafold reads the
bytes.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from deltafold.dialects import anthropic_messages
from deltafold.messages import Message
from deltafold.models.base import ClientKind, Model, PreparedRequest
from deltafold.models.config import AnthropicConfig, Capability, ToolSpec
from deltafold.models.transport import AsyncSource, Source, async_source_of, source_of

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from anthropic import Anthropic, AsyncAnthropic

# What the SDK wants as arguments; all else travels in extra_body, whatever this version of the SDK
# knows of.
_NAMED = ("model", "max_tokens", "messages", "stream")


class AnthropicModel(Model[AnthropicConfig]):
    """A model behind Anthropic's Messages API."""

    dialect: ClassVar[str] = anthropic_messages.DIALECT
    sdk: ClassVar[str] = "anthropic"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def _check_config(self, fields: Mapping[str, object]) -> AnthropicConfig:
        return AnthropicConfig.model_validate(fields)

    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], config: AnthropicConfig
    ) -> dict[str, object]:
        return anthropic_messages.request_body(messages, tools, config)

    def _open(self, client: object, request: PreparedRequest) -> Source:
        messages = cast("Anthropic", client).messages
        opening = cast(
            "AbstractContextManager[object]",
            messages.with_streaming_response.create(**_arguments(request)),
        )
        return source_of(opening.__enter__())

    async def _open_async(self, client: object, request: PreparedRequest) -> AsyncSource:
        messages = cast("AsyncAnthropic", client).messages
        opening = cast(
            "AbstractAsyncContextManager[object]",
            messages.with_streaming_response.create(**_arguments(request)),
        )
        return async_source_of(await opening.__aenter__())

    def _make_client(self, kind: ClientKind, arguments: Mapping[str, object]) -> object:
        name = "Anthropic" if kind == "synchronous" else "AsyncAnthropic"
        return self._sdk_class(name)(**arguments)


def _arguments(request: PreparedRequest) -> dict[str, Any]:
    return {
        "model": request.body["model"],
        "max_tokens": request.body["max_tokens"],
        "messages": request.body["messages"],
        "stream": True,
        "extra_body": request.extra_body(*_NAMED),
        "extra_headers": dict(request.headers),
        "extra_query": dict(request.query),
    }
