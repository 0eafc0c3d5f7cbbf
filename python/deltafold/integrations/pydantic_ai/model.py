"""The model of pydantic-ai over a deltafold model.

In: the framework's messages, settings and request parameters.  Out: its `ModelResponse`, or a
stream of its events.

Laws: the request is rendered by the dialect of the deltafold model, with the settings of the
request over its own. The framework prepares the request as it does for its own models: output
modes, tool visibility, native tools, instructions. Leaving the context of a stream closes the
connection.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import (
    Model,
    ModelRequestParameters,
    StreamedResponse,
    check_allow_model_requests,
)
from pydantic_ai.models._tool_choice import support_tool_forcing, tool_forcing_unavailable_reason
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.profiles import ModelProfile, ModelProfileSpec
from pydantic_ai.settings import ModelSettings

from deltafold.errors.model_error import ModelError
from deltafold.integrations.pydantic_ai.failures import exception_of
from deltafold.integrations.pydantic_ai.history import conversation_of
from deltafold.integrations.pydantic_ai.native_tools import ALL
from deltafold.integrations.pydantic_ai.settings import (
    choice_of,
    fields_of,
    profile_of,
    tools_of,
    unsupported_settings,
)
from deltafold.integrations.pydantic_ai.streamed_response import DeltafoldStreamedResponse, Deltas
from deltafold.message.messages import Message
from deltafold.models.base import Model as DeltafoldClient
from deltafold.models.loader import load_model
from deltafold.specs.tool_specs import ToolChoice, ToolSpec
from deltafold.streams.encoded import message_deltas

if TYPE_CHECKING:
    from pydantic_ai._run_context import RunContext

_THINKING_REMEDY = "Set the model setting `thinking=False`"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request in the terms of deltafold."""

    messages: list[Message]
    tools: list[ToolSpec]
    choice: ToolChoice | None
    fields: dict[str, Any]


class DeltafoldModel(Model[Any]):
    """A model of pydantic-ai that any `deltafold.Model` answers.

    >>> model = DeltafoldModel(deltafold.OpenAIChatModel({"model_id": "gpt-5.6-terra"}))
    >>> agent = pydantic_ai.Agent(model, tools=[weather])

    Args:
        model: the model of deltafold, of any dialect, whose configuration has the defaults; or
            its name, as `deltafold.load_model` takes it.
        settings: settings of the framework that are used in each request.
        profile: changes of the framework's profile of the model.
    """

    unsupported_settings = frozenset({"timeout", "max_retries"})

    def __init__(
        self,
        model: DeltafoldClient[Any] | str,
        *,
        settings: ModelSettings | None = None,
        profile: ModelProfileSpec | None = None,
    ) -> None:
        super().__init__(settings=settings, profile=profile)
        self.client: DeltafoldClient[Any] = load_model(model) if isinstance(model, str) else model

    @property
    def model_name(self) -> str:
        """The provider's name of the model."""
        return self.client.model_id

    @property
    def system(self) -> str:
        """Name of the vendor."""
        return self.client.provider_id

    @classmethod
    def supported_native_tools(cls) -> frozenset[type[AbstractNativeTool]]:
        """Return the native tools that some dialect has; the profile has those of the model's."""
        return ALL

    def _unsupported_settings(self) -> frozenset[str]:
        return self.unsupported_settings | unsupported_settings(self.client)

    def _provider_model_profile(self) -> ModelProfile:
        return profile_of(self.client)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Send a request and return the whole response.

        Raises:
            ModelAPIError: the request failed.
        """
        check_allow_model_requests()
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        asked = await self._asked(messages, settings, parameters)
        try:
            message: Message = await self.client.send_message(
                asked.messages,
                asked.tools,
                tool_choice=asked.choice,
                stream=False,
                output=None,
                repair="auto",
                **asked.fields,
            )
        except ModelError as error:
            raise exception_of(error, self.model_name) from error
        response = self._response(parameters, _whole(message))
        async for _ in response:
            pass
        response.add_logprobs(message)
        return response.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: "RunContext[Any] | None" = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Send a request and return the response while it arrives.

        Raises:
            ModelAPIError: the request was refused, or the connection failed before any event.
        """
        check_allow_model_requests()
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        asked = await self._asked(messages, settings, parameters)
        stream = self.client.stream(
            asked.messages, asked.tools, tool_choice=asked.choice, repair="auto", **asked.fields
        )
        async with stream:
            response = self._response(parameters, stream.batches())
            response.follow(stream)
            await response.begin()
            yield response

    def _response(
        self, parameters: ModelRequestParameters, batches: AsyncIterator[Deltas]
    ) -> DeltafoldStreamedResponse:
        return DeltafoldStreamedResponse(
            model_request_parameters=parameters,
            _batches=batches,
            _model_name=self.model_name,
            _provider_name=self.system,
        )

    async def _asked(
        self,
        messages: list[ModelMessage],
        given: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> _Asked:
        settings = given or ModelSettings()
        dialect = self.client.dialect
        reason = tool_forcing_unavailable_reason(
            self.profile,
            thinking=self._request_thinks(settings, parameters),
            thinking_remedy=_THINKING_REMEDY,
        )
        can_force = support_tool_forcing(self.model_name, settings, reason)
        choice, tools = choice_of(
            dialect, settings, parameters, tools_of(parameters), can_force=can_force
        )
        instructions = self._get_instruction_parts(messages, parameters) or []
        conversation = await conversation_of(
            messages, instructions, dialect=dialect, provider_name=self.system
        )
        return _Asked(conversation, tools, choice, fields_of(self.client, settings, parameters))

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        """Close the client that the deltafold model made."""
        await self.client.aclose()


async def _whole(message: Message) -> AsyncIterator[Deltas]:
    yield message_deltas(message)
