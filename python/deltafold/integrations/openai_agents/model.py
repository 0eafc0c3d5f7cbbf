"""The model and the provider of openai-agents over deltafold models.

In: instructions, items, settings and tools of the SDK.  Out: its `ModelResponse`, or events of the
Responses API.

Laws: each call has a generation span with its input, output, usage and failure, as the SDK's own
models have. Leaving a stream closes its connection.
"""

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from agents import AgentOutputSchemaBase, Handoff, ModelResponse, ModelSettings, ModelTracing, Tool
from agents import Model as AgentsModel
from agents import ModelProvider as AgentsModelProvider
from agents.items import TResponseInputItem, TResponseStreamEvent
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest
from agents.tracing import GenerationSpanData, Span, SpanError, generation_span
from agents.usage import Usage
from openai.types.responses import Response
from openai.types.responses.response_prompt_param import ResponsePromptParam

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.usage import Usage as Counts
from deltafold.errors.model_error import ModelError
from deltafold.integrations.openai_agents.events import Events
from deltafold.integrations.openai_agents.failures import advice_of, exception_of, model_error_of
from deltafold.integrations.openai_agents.history import conversation_of
from deltafold.integrations.openai_agents.requests import (
    RESPONSES,
    choice_of,
    fields_of,
    tools_of,
)
from deltafold.message.messages import Message
from deltafold.models.base import Model
from deltafold.models.loader import load_model
from deltafold.streams.encoded import message_deltas


class DeltafoldAgentsModel(AgentsModel):
    """A model of the Agents SDK that any `deltafold.Model` answers.

    >>> Agent(name="Tides", model=DeltafoldAgentsModel(deltafold.AnthropicModel(config)))

    Args:
        model: the model of deltafold, of any dialect, whose configuration has the defaults; or
            its name, as `deltafold.load_model` takes it.
    """

    def __init__(self, model: Model[Any] | str) -> None:
        self.client: Model[Any] = load_model(model) if isinstance(model, str) else model

    async def close(self) -> None:
        """Close the client that the deltafold model made."""
        await self.client.aclose()

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return what the failure says about another try; None for failures of others."""
        error = model_error_of(request.error)
        return None if error is None else advice_of(error)

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 - the name in the SDK
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: ResponsePromptParam | None = None,
    ) -> ModelResponse:
        """Send a request and return the whole response.

        Raises:
            openai.APIError: the request failed; `__cause__` is the `ModelError`.
            ModelBehaviorError: the answer was cut, or it is empty.
            UserError: the dialect does not have a setting, a tool or a prompt.
        """
        conversation, options = self._arguments(
            system_instructions,
            input,
            model_settings,
            tools,
            output_schema,
            handoffs,
            (previous_response_id, conversation_id, prompt),
        )
        with self._span(model_settings, tracing, input) as span:
            try:
                message: Message = await self.client.send_message(
                    conversation, stream=False, output=None, **options
                )
            except ModelError as error:
                raise exception_of(error) from error
            _note_usage(span, message.meta.usage)
            events = Events()
            for delta in message_deltas(message):
                for _ in events.feed(delta):
                    pass
            response = events.end(message, None).response
            _note_output(span, response, tracing)
        stored = self.client.dialect == RESPONSES
        return ModelResponse(
            output=response.output,
            usage=usage_of(response),
            response_id=response.id if stored else None,
        )

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 - the name in the SDK
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: ResponsePromptParam | None = None,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Send a request and yield its events; errors are those of `get_response`."""
        conversation, options = self._arguments(
            system_instructions,
            input,
            model_settings,
            tools,
            output_schema,
            handoffs,
            (previous_response_id, conversation_id, prompt),
        )
        with self._span(model_settings, tracing, input) as span:
            events = Events()
            stream = self.client.stream(conversation, output=None, **options)
            async with stream:
                async for batch in stream.batches():
                    for event in events.feed(batch):
                        yield event
                _note_usage(span, stream.usage)
                error = stream.error
                if error is not None:
                    raise exception_of(error) from error
                head = stream.response
                request_id = None if head is None else head.request_id
                last = events.end(stream.message, request_id)
            _note_output(span, last.response, tracing)
            yield last

    def _arguments(
        self,
        instructions: str | None,
        given: str | list[TResponseInputItem],
        settings: ModelSettings,
        tools: list[Tool],
        output: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        stored: tuple[str | None, str | None, ResponsePromptParam | None],
    ) -> tuple[list[Message], dict[str, Any]]:
        previous_response_id, conversation_id, prompt = stored
        fields = fields_of(
            self.client,
            settings,
            output,
            previous_response_id=previous_response_id,
            conversation_id=conversation_id,
        )
        specs, of_provider = tools_of(self.client, tools, handoffs)
        choice, members = choice_of(settings.tool_choice, specs)
        if prompt is not None:
            members["prompt"] = dict(prompt)
        if members:
            known = fields.get("extra_body") or self.client.get_config().extra_body
            fields["extra_body"] = {**known, **members}
        include = (*fields.pop("include", ()), *of_provider.pop("include", ()))
        if include:
            fields["include"] = include
        conversation = conversation_of(instructions, given)
        options = {"tool_specs": specs, "tool_choice": choice, "repair": "auto"}
        return conversation, {**options, **fields, **of_provider}

    @contextmanager
    def _span(
        self,
        settings: ModelSettings,
        tracing: ModelTracing,
        given: str | list[TResponseInputItem],
    ) -> Generator[Span[GenerationSpanData]]:
        """Open the span of a call, and record its failure."""
        config = settings.to_traceable_dict()
        if not tracing.include_data():
            config.pop("metadata", None)
        with generation_span(
            model=self.client.model_id,
            model_config={**config, "provider": self.client.provider_id},
            disabled=tracing.is_disabled(),
        ) as span:
            if tracing.include_data():
                items = [{"role": "user", "content": given}] if isinstance(given, str) else given
                span.span_data.input = cast("Any", items)
            try:
                yield span
            except Exception as error:
                shown = str(error) if tracing.include_data() else type(error).__name__
                failure = SpanError(message="Error getting response", data={"error": shown})
                span.set_error(failure)
                raise


class DeltafoldProvider(AgentsModelProvider):
    """Finds models by the name of a vendor and a model.

    >>> RunConfig(model="anthropic/claude-opus-4-8", model_provider=DeltafoldProvider())

    Args:
        load: makes the deltafold model of a name; the default is `deltafold.load_model`.
        default: the name that stands for no name.
    """

    def __init__(
        self, load: Callable[[str], Model[Any]] = load_model, *, default: str | None = None
    ) -> None:
        self._load = load
        self._default = default
        self._models: dict[str, DeltafoldAgentsModel] = {}

    def get_model(self, model_name: str | None) -> AgentsModel:
        """Return the model of a name; the same one each time.

        Raises:
            MisuseError: the name is missing, or its vendor is unknown.
        """
        name = model_name or self._default
        if name is None:
            raise MisuseError("model: name a model, or pass default= to DeltafoldProvider")
        if name not in self._models:
            self._models[name] = DeltafoldAgentsModel(self._load(name))
        return self._models[name]

    async def aclose(self) -> None:
        """Close the clients of all models."""
        for model in self._models.values():
            await model.close()


def usage_of(response: Response) -> Usage:
    """Return the counts of a response; the request counts without them too."""
    usage = response.usage
    if usage is None:
        return Usage(requests=1)
    return Usage(
        requests=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_details=usage.input_tokens_details,
        output_tokens_details=usage.output_tokens_details,
    )


def _note_usage(span: Span[GenerationSpanData], usage: Counts | None) -> None:
    """Record the counts of an answer on its span, of a failed one too."""
    counts = usage or Counts()
    read, written = counts.cache_read_tokens or 0, counts.cache_write_tokens or 0
    span.span_data.usage = {
        "requests": 1,
        "input_tokens": counts.input_tokens or 0,
        "output_tokens": counts.output_tokens or 0,
        "total_tokens": counts.total_tokens or 0,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "output_tokens_details": {"reasoning_tokens": counts.reasoning_tokens or 0},
    }


def _note_output(span: Span[GenerationSpanData], response: Response, tracing: ModelTracing) -> None:
    """Record an answer on its span."""
    if tracing.include_data():
        span.span_data.output = [item.model_dump() for item in response.output]
