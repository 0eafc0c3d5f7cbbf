"""Messages to the body of OpenAI's Chat Completions API, and of the many that copy it.

Laws: system messages stay where they stand; each answer to a tool call is a `tool` message of its
own, directly after the assistant's; arguments go back as the text that came, where that text is an
object; usage is asked for, because nobody sends it unasked.
Source: the Chat Completions reference, summarised in the protocol notes on openai-chat, part 8
(read 2026-11).
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, cast

from deltafold.dialects.replay import (
    answered_calls,
    is_sendable,
    own_state,
    result_text,
    unsupported,
)
from deltafold.messages import (
    ImagePart,
    Message,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.models.config import OpenAIChatConfig, ToolChoice, ToolSpec

DIALECT: Final = "openai-chat"

_Object: TypeAlias = dict[str, object]


def request_body(
    messages: Sequence[Message], tools: Sequence[ToolSpec], config: OpenAIChatConfig
) -> dict[str, object]:
    """Render a streaming request.

    Raises:
        MisuseError: a message holds a part that this dialect has no form for; the error names it.
    """
    body: _Object = {
        "model": config.model_id,
        "messages": _messages(messages, config),
        "stream": True,
    }
    optional: _Object = {
        "stream_options": {"include_usage": True} if config.include_usage else None,
        "tools": [_tool(tool) for tool in tools] or None,
        "tool_choice": config.tool_choice and _tool_choice(config.tool_choice),
        config.max_tokens_member: config.max_tokens,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "stop": config.stop_sequences and list(config.stop_sequences),
        "frequency_penalty": config.frequency_penalty,
        "presence_penalty": config.presence_penalty,
        "seed": config.seed,
        "parallel_tool_calls": config.parallel_tool_calls,
        "reasoning_effort": config.reasoning_effort,
        "response_format": config.response_format,
        "service_tier": config.service_tier,
        "logprobs": config.logprobs,
        "top_logprobs": config.top_logprobs,
    }
    body.update((name, value) for name, value in optional.items() if value is not None)
    return {**body, **config.extra_body}


def _tool(tool: ToolSpec) -> _Object:
    function: _Object = {"name": tool.name, "parameters": tool.parameter_schema}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _tool_choice(choice: ToolChoice) -> str | _Object:
    if choice.mode == "tool":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode


def _messages(messages: Sequence[Message], config: OpenAIChatConfig) -> list[_Object]:
    answered = answered_calls(messages)
    loop_start = _open_loop_start(messages)
    rendered: list[_Object] = []
    for position, message in enumerate(messages):
        match message.role:
            case Role.SYSTEM:
                rendered.append({"role": "system", "content": message.text})
            case Role.USER:
                rendered.append({"role": "user", "content": _user_content(message)})
            case Role.ASSISTANT:
                turn = _assistant(message, answered)
                if position > loop_start:
                    turn.update(_reasoning(message, config))
                if len(turn) > 1:
                    rendered.append(turn)
            case Role.TOOL:
                rendered.extend(_tool_messages(message.parts))
    return rendered


def _open_loop_start(messages: Sequence[Message]) -> int:
    """Return where the last user message stands: the tool loop after it is still open."""
    positions = (i for i in range(len(messages) - 1, -1, -1) if messages[i].role is Role.USER)
    return next(positions, -1)


def _user_content(message: Message) -> str | list[_Object]:
    if all(isinstance(part, TextPart) for part in message.parts):
        return message.text
    content: list[_Object] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, ImagePart):
            url = part.url or f"data:{part.mime_type};base64,{part.data}"
            content.append({"type": "image_url", "image_url": {"url": url}})
        else:
            raise unsupported(part, "a user message of openai-chat")
    return content


def _assistant(message: Message, answered: frozenset[str]) -> _Object:
    """Render what was said; thinking and other providers' blocks are no part of it."""
    said: list[str] = []
    refused: list[str] = []
    calls: list[_Object] = []
    for part in message.parts:
        match part:
            case TextPart():
                (refused if part.refusal else said).append(part.text)
            case ToolCallPart():
                if is_sendable(part, answered):
                    calls.append(_tool_call(part))
            case ThinkingPart() | ProviderPart():
                continue
            case _:
                raise unsupported(part, "an assistant message of openai-chat")
    turn: _Object = {"role": "assistant"}
    if text := "".join(said):
        turn["content"] = text
    if refusal := "".join(refused):
        turn["refusal"] = refusal
    if calls:
        turn["tool_calls"] = calls
    return turn


def _tool_call(call: ToolCallPart) -> _Object:
    if call.input_format == "text":
        custom: _Object = {"name": call.tool_name, "input": call.raw_args_text}
        return {"id": call.tool_call_id, "type": "custom", "custom": custom}
    arguments = "{}"
    if call.arguments is not None:
        # The text as it came, unless it was an object in disguise (nothing, null, a string that
        # holds one).
        is_plain = call.raw_args_text.lstrip().startswith("{")
        arguments = call.raw_args_text if is_plain else json.dumps(call.arguments)
    function: _Object = {"name": call.tool_name, "arguments": arguments}
    return {"id": call.tool_call_id, "type": "function", "function": function}


def _reasoning(message: Message, config: OpenAIChatConfig) -> _Object:
    """Return the reasoning in the member in which this vendor wants it back."""
    if config.replay_reasoning == "reasoning_content" and message.thinking:
        return {"reasoning_content": message.thinking}
    if config.replay_reasoning == "reasoning_details":
        details: list[object] = []
        for part in message.parts:
            state = own_state(part, DIALECT, config.model_id) or {}
            found = state.get("reasoning_details")
            if isinstance(found, list):
                details.extend(cast("list[object]", found))
        if details:
            return {"reasoning_details": details}
    return {}


def _tool_messages(parts: Iterable[MessagePart]) -> list[_Object]:
    return [
        {"role": "tool", "tool_call_id": part.tool_call_id, "content": result_text(part)}
        for part in parts
        if isinstance(part, ToolResultPart)
    ]
