"""The adapter of openai-chat, through the openai SDK.

In: a rendered body.  Out: the SDK's raw streaming response as a source.  The SDK keeps
authentication, proxies and Azure's form of the endpoint; deltafold reads the bytes.  Every vendor
that copies the API is a row of vendors.py.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from deltafold.dialects import openai_chat
from deltafold.messages import Message
from deltafold.models.base import ClientKind, Model, PreparedRequest
from deltafold.models.config import Capability, OpenAIChatConfig, ToolSpec
from deltafold.models.transport import AsyncSource, Source, async_source_of, source_of

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from openai import AsyncOpenAI, OpenAI

# What the SDK wants as arguments; all else travels in extra_body, whatever this version of the SDK
# knows of.
_NAMED = ("model", "messages", "stream")


class OpenAIChatModel(Model[OpenAIChatConfig]):
    """A model behind OpenAI's Chat Completions API, or a vendor's copy of it."""

    dialect: ClassVar[str] = openai_chat.DIALECT
    sdk: ClassVar[str] = "openai"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def _check_config(self, fields: Mapping[str, object]) -> OpenAIChatConfig:
        return OpenAIChatConfig.model_validate(fields)

    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], config: OpenAIChatConfig
    ) -> dict[str, object]:
        return openai_chat.request_body(messages, tools, config)

    def _open(self, client: object, request: PreparedRequest) -> Source:
        completions = cast("OpenAI", client).chat.completions
        opening = cast(
            "AbstractContextManager[object]",
            completions.with_streaming_response.create(**_arguments(request)),
        )
        return source_of(opening.__enter__())

    async def _open_async(self, client: object, request: PreparedRequest) -> AsyncSource:
        completions = cast("AsyncOpenAI", client).chat.completions
        opening = cast(
            "AbstractAsyncContextManager[object]",
            completions.with_streaming_response.create(**_arguments(request)),
        )
        return async_source_of(await opening.__aenter__())

    def _make_client(self, kind: ClientKind, arguments: Mapping[str, object]) -> object:
        name = "OpenAI" if kind == "synchronous" else "AsyncOpenAI"
        return self._sdk_class(name)(**arguments)


def _arguments(request: PreparedRequest) -> dict[str, Any]:
    return {
        "model": request.body["model"],
        "messages": request.body["messages"],
        "stream": True,
        "extra_body": request.extra_body(*_NAMED),
        "extra_headers": dict(request.headers),
        "extra_query": dict(request.query),
    }
