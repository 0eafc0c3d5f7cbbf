"""The provider of litellm over deltafold models.

In: the arguments of a `CustomLLM`.  Out: `ModelResponse`s, or chunks.

Laws: the same model serves each request of a name. Leaving a stream closes its connection.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, TypeAlias

from litellm import ModelResponse
from litellm.llms.custom_llm import CustomLLM
from litellm.types.utils import ModelResponseStream

from deltafold.errors.model_error import ModelError
from deltafold.integrations.litellm.chunks import CHAT, Chunks, response_of
from deltafold.integrations.litellm.failures import exception_of
from deltafold.integrations.litellm.requests import arguments_of, conversation_of
from deltafold.message.fallbacks import declined_calls
from deltafold.message.messages import Message
from deltafold.models.base import Model
from deltafold.models.loader import load_model, specification_beside

Prepared: TypeAlias = tuple[Model[Any], list[Message], dict[str, Any]]


class DeltafoldLLM(CustomLLM):
    """A provider of litellm whose models are those of deltafold.

    >>> litellm.custom_provider_map = [
    ...     {"provider": "deltafold", "custom_handler": DeltafoldLLM()}
    ... ]

    Args:
        models: models by the names that follow the name of the provider.
        load: makes the model of any other name, which is a vendor and a model; it gets `api_key`
            and `base_url` if the request has them.
    """

    def __init__(
        self,
        models: Mapping[str, Model[Any]] | None = None,
        *,
        load: Callable[..., Model[Any]] = load_model,
    ) -> None:
        super().__init__()
        self._load = load
        self._given = dict(models or {})
        self._models: dict[tuple[str | None, ...], Model[Any]] = {}

    def model_of(
        self,
        name: str,
        api_key: str | None,
        api_base: str | None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Model[Any]:
        """Return the model of a name; the same one each time for each protocol.

        A model that two protocols have takes Chat, in which litellm writes, where it takes the
        parameters of the request there.

        Raises:
            MisuseError: the vendor is unknown.
        """
        if name in self._given and api_key is None and api_base is None:
            return self._given[name]
        specification = None
        if self._load is load_model:
            asked = parameters or {}
            effort = asked.get("reasoning_effort")
            specification = specification_beside(
                CHAT,
                name,
                has_tools=bool(asked.get("tools")),
                effort=effort if isinstance(effort, str) else None,
            )
        place = (name, api_key, api_base, specification)
        if place not in self._models:
            given = {"api_key": api_key, "base_url": api_base, "specification": specification}
            access = {key: value for key, value in given.items() if value is not None}
            self._models[place] = self._load(name, **access)
        return self._models[place]

    def completion(
        self, model: str, messages: list[Any], *args: Any, **options: Any
    ) -> ModelResponse:
        """Send a request and return the whole response."""
        client, conversation, arguments = self._prepared(model, messages, options)
        try:
            message: Message = client.send_message_sync(
                conversation, stream=False, output=None, **arguments
            )
        except ModelError as error:
            raise exception_of(error, model) from error
        return response_of(message)

    async def acompletion(
        self, model: str, messages: list[Any], *args: Any, **options: Any
    ) -> ModelResponse:
        """Send a request and return the whole response, asynchronously."""
        client, conversation, arguments = self._prepared(model, messages, options)
        try:
            message: Message = await client.send_message(
                conversation, stream=False, output=None, **arguments
            )
        except ModelError as error:
            raise exception_of(error, model) from error
        return response_of(message)

    def streaming(  # type: ignore[override]
        self, model: str, messages: list[Any], *args: Any, **options: Any
    ) -> Iterator[ModelResponseStream]:  # pyright: ignore[reportIncompatibleMethodOverride] - litellm takes both kinds of chunk
        """Send a request and yield its chunks."""
        return _chunks(model, self._prepared(model, messages, options))

    def astreaming(  # type: ignore[override]
        self, model: str, messages: list[Any], *args: Any, **options: Any
    ) -> AsyncIterator[ModelResponseStream]:  # pyright: ignore[reportIncompatibleMethodOverride] - as above
        """Send a request and yield its chunks, asynchronously."""
        return _achunks(model, self._prepared(model, messages, options))

    def _prepared(self, model: str, messages: list[Any], options: Mapping[str, Any]) -> Prepared:
        parameters: Mapping[str, Any] = options.get("optional_params") or {}
        client = self.model_of(model, options.get("api_key"), options.get("api_base"), parameters)
        headers: Mapping[str, Any] = options.get("headers") or {}
        arguments = {"repair": "auto", **arguments_of(client, model, parameters, headers)}
        return client, conversation_of(messages), arguments


def _chunks(model: str, prepared: Prepared) -> Iterator[ModelResponseStream]:
    client, conversation, arguments = prepared
    chunks = _chunks_of(client, arguments)
    with client.stream_sync(conversation, output=None, **arguments) as stream:
        for batch in stream.batches():
            yield from chunks.feed(batch)
        if stream.error is not None:
            raise exception_of(stream.error, model) from stream.error
        yield from chunks.end(stream.message)


async def _achunks(model: str, prepared: Prepared) -> AsyncIterator[ModelResponseStream]:
    client, conversation, arguments = prepared
    chunks = _chunks_of(client, arguments)
    feed = chunks.feed
    async with client.stream(conversation, output=None, **arguments) as stream:
        async for batch in stream.batches():
            for chunk in feed(batch):
                yield chunk
        if stream.error is not None:
            raise exception_of(stream.error, model) from stream.error
        for chunk in chunks.end(stream.message):
            yield chunk


def _chunks_of(client: Model[Any], arguments: Mapping[str, Any]) -> Chunks:
    """Return the chunks of an answer to a request with these arguments."""
    return Chunks(declined_calls(client.get_config().extra_body, arguments.get("extra_body") or {}))
