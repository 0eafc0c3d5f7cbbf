"""The model of strands over a deltafold model.

In: messages, tools and choices of the framework.  Out: its events, or an object of a pydantic
class.

Laws: settings are those of the deltafold model. Leaving a stream, or cancelling its task, closes
its connection.
"""

import threading
from collections.abc import AsyncGenerator, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel
from strands.agent.agent_metadata import AgentMetadata
from strands.models import Model as StrandsModel
from strands.types.content import Messages, SystemContentBlock
from strands.types.streaming import StreamEvent
from strands.types.tools import ToolChoice as StrandsChoice
from strands.types.tools import ToolSpec as StrandsTool

from deltafold.errors.model_error import ModelError
from deltafold.integrations.strands.events import Events
from deltafold.integrations.strands.failures import exception_of
from deltafold.integrations.strands.history import conversation_of
from deltafold.message.fallbacks import declined_calls
from deltafold.models.base import Model
from deltafold.models.loader import load_model
from deltafold.specs.tool_specs import ToolChoice, ToolSpec

T = TypeVar("T", bound=BaseModel)


class DeltafoldStrandsModel(StrandsModel):
    """A model of strands that any `deltafold.Model` answers.

    >>> strands.Agent(
    ...     DeltafoldStrandsModel(deltafold.GeminiModel(config)), tools=[high_tide]
    ... )

    Args:
        model: the model of deltafold, of any dialect, whose configuration has the settings; or
            its name, as `deltafold.load_model` takes it.
        context_window_limit: the size of the context window in tokens; None takes the size that is
            known for the model.
    """

    def __init__(self, model: Model[Any] | str, *, context_window_limit: int | None = None) -> None:
        self.client: Model[Any] = load_model(model) if isinstance(model, str) else model
        self._limit = context_window_limit

    @property
    def config(self) -> dict[str, Any]:
        """The settings in force; strands writes the member `model_id` to its traces."""
        return self.get_config()

    def get_config(self) -> dict[str, Any]:
        """Return the settings of the deltafold model, and `context_window_limit` if it is known."""
        settings = cast("dict[str, Any]", self.client.get_config().model_dump(exclude_unset=True))
        limit = self._limit or self.client.model_info().context_window_tokens
        return settings if limit is None else {**settings, "context_window_limit": limit}

    def update_config(self, **model_config: Any) -> None:
        """Change settings for the streams to come.

        Raises:
            ValueError: a setting is wrong or unknown.
        """
        if "context_window_limit" in model_config:
            self._limit = model_config.pop("context_window_limit")
        self.client.update_config(**model_config)

    async def stream(
        self,
        messages: Messages,
        tool_specs: list[StrandsTool] | None = None,
        system_prompt: str | None = None,
        *,
        tool_choice: StrandsChoice | None = None,
        system_prompt_content: list[SystemContentBlock] | None = None,
        invocation_state: dict[str, Any] | None = None,
        cancel_signal: threading.Event | None = None,
        agent_metadata: AgentMetadata | None = None,
        structured_output_model: type[BaseModel] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send a request and yield the events of the answer.

        Args:
            messages: the conversation.
            tool_specs: the tools that the model may call.
            system_prompt: the system prompt as a text.
            tool_choice: the choice of a tool.
            system_prompt_content: the system prompt as blocks; it replaces the text.
            invocation_state: objects for the hooks of the deltafold model.
            cancel_signal: strands reads it between the events.
            agent_metadata: not used.
            structured_output_model: not used, because strands forces a tool for it.
            kwargs: not used.

        Raises:
            ModelThrottledException: the limit of requests is reached, or the provider is
                overloaded; the error is a `ModelError` too.
            ContextWindowOverflowException: the conversation is too long; the error is a
                `ModelError` too.
            ModelError: the request failed otherwise, or the stream was cut.
        """
        conversation = conversation_of(
            messages, system_prompt, system_prompt_content, self.client.dialect
        )
        tools = [_tool(tool) for tool in tool_specs or ()]
        stream = self.client.stream(
            conversation,
            tools,
            tool_choice=_choice(tool_choice) if tools else None,
            invocation_state=invocation_state,
            output=None,
            repair="auto",
        )
        events = Events(declined_calls(self.client.get_config().extra_body))
        feed = events.feed
        async with stream:
            async for batch in stream.batches():
                for event in feed(batch):
                    yield event
            error = stream.error
            if error is not None:
                raise exception_of(error) from error
            for event in events.end(stream.message):
                yield event

    async def structured_output(
        self,
        output_model: type[T],
        prompt: Messages,
        system_prompt: str | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[dict[str, T | Any], None]:
        """Ask for an object of a class, and yield it as `output`.

        The request has the schema of the class where the API has structured output, else a tool.

        Raises:
            ModelError: the request failed, or the stream was cut.
            OutputError: the answer is not an object of the class; the error is a `ValueError` too.
        """
        conversation = conversation_of(prompt, system_prompt, None, self.client.dialect)
        async with self.client.stream(conversation, output=output_model) as stream:
            try:
                output = await stream.final_output()
            except ModelError as error:
                raise exception_of(error) from error
        yield {"output": output}


def _tool(tool: StrandsTool) -> ToolSpec:
    schema = cast("Mapping[str, Any]", tool["inputSchema"])
    return ToolSpec(
        name=tool["name"],
        description=tool["description"] or None,
        parameter_schema=dict(schema.get("json", schema)),
    )


def _choice(choice: StrandsChoice | None) -> ToolChoice | None:
    match cast("Mapping[str, Any] | None", choice):
        case None:
            return None
        case {"tool": {"name": str(name)}}:
            return ToolChoice.tool(name)
        case {"any": _}:
            return ToolChoice(mode="required")
        case _:
            return ToolChoice(mode="auto")
