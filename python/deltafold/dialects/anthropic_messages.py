"""Messages to the body of Anthropic's Messages API.

Laws: `system` stands apart from the turns; turns of one speaker are one message; the results of all
calls of a turn go into one user message, before any text; thinking goes back with its signature or
not at all; empty text does not go.
Source: the Messages API reference, summarised in the protocol notes on anthropic-messages, part 7
(read 2026-11).
"""

from collections.abc import Callable, Mapping, Sequence
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
from deltafold.models.config import AnthropicConfig, ToolChoice, ToolSpec

DIALECT: Final = "anthropic-messages"

# The API requires a limit; this one is valid for every model that it serves.
DEFAULT_MAX_TOKENS: Final = 4096

_Block: TypeAlias = dict[str, object]

# Citations that the API takes back; annotations of other providers have other types.
_CITATION_TYPES = frozenset(
    {
        "char_location",
        "page_location",
        "content_block_location",
        "web_search_result_location",
        "search_result_location",
    }
)
_TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


def request_body(
    messages: Sequence[Message], tools: Sequence[ToolSpec], config: AnthropicConfig
) -> dict[str, object]:
    """Render a streaming request.

    Raises:
        MisuseError: a message holds a part that this dialect has no form for; the error names it.
    """
    system = [
        {"type": "text", "text": part.text}
        for message in messages
        if message.role is Role.SYSTEM
        for part in message.parts
        if isinstance(part, TextPart) and part.text
    ]
    body: dict[str, object] = {
        "model": config.model_id,
        "max_tokens": DEFAULT_MAX_TOKENS if config.max_tokens is None else config.max_tokens,
        "messages": _turns(messages, config.model_id),
        "stream": True,
    }
    optional: dict[str, object] = {
        "system": system or None,
        "tools": [_tool(tool) for tool in tools] or None,
        "tool_choice": config.tool_choice and _tool_choice(config.tool_choice),
        "temperature": config.temperature,
        "top_p": config.top_p,
        "top_k": config.top_k,
        "stop_sequences": config.stop_sequences and list(config.stop_sequences),
        "thinking": config.thinking,
        "output_config": config.output_config,
        "metadata": config.metadata,
        "service_tier": config.service_tier,
    }
    if config.cache_config is not None and config.cache_config.strategy == "auto":
        optional["cache_control"] = {"type": "ephemeral"}
    body.update((name, value) for name, value in optional.items() if value is not None)
    return {**body, **config.extra_body}


def _tool(tool: ToolSpec) -> _Block:
    rendered: _Block = {"name": tool.name, "input_schema": tool.parameter_schema}
    if tool.description is not None:
        rendered["description"] = tool.description
    if tool.strict is not None:
        rendered["strict"] = tool.strict
    return rendered


def _tool_choice(choice: ToolChoice) -> _Block:
    if choice.mode == "tool":
        return {"type": "tool", "name": choice.name}
    return {"type": _TOOL_CHOICES[choice.mode]}


def _turns(messages: Sequence[Message], model_id: str) -> list[_Block]:
    answered = answered_calls(messages)
    turns: list[tuple[str, list[_Block]]] = []
    for message in messages:
        if message.role is Role.SYSTEM:
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = [
            block
            for part in message.parts
            if (block := _block(part, model_id, answered)) is not None
        ]
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    return [{"role": role, "content": _results_first(blocks)} for role, blocks in turns]


def _results_first(blocks: list[_Block]) -> list[_Block]:
    return sorted(blocks, key=lambda block: block.get("type") != "tool_result")


def _block(part: MessagePart, model_id: str, answered: frozenset[str]) -> _Block | None:
    """Render one part, None where it says nothing here."""
    state = own_state(part, DIALECT, model_id)
    match part:
        case TextPart():
            return _text(part)
        case ThinkingPart():
            return _thinking(part, state)
        case ToolCallPart():
            return _tool_use(part, state) if is_sendable(part, answered) else None
        case ToolResultPart():
            return _tool_result(part)
        case ImagePart():
            return _image(part)
        case ProviderPart():
            return part.block if part.dialect == DIALECT else None
        case _:
            raise unsupported(part, "a request to anthropic-messages")


def _text(part: TextPart) -> _Block | None:
    if not part.text:
        return None
    citations: list[object] = [
        note
        for note in part.annotations or ()
        if isinstance(note, Mapping)
        and cast("Mapping[str, object]", note).get("type") in _CITATION_TYPES
    ]
    block: _Block = {"type": "text", "text": part.text}
    if citations:
        block["citations"] = citations
    return block


def _tool_use(call: ToolCallPart, state: Mapping[str, object] | None) -> _Block:
    block: _Block = {
        "type": "tool_use",
        "id": call.tool_call_id,
        "name": call.tool_name,
        "input": call.arguments or {},
    }
    # A call that a running server-side program made says so when it goes back.
    return block | {"caller": state["caller"]} if state and "caller" in state else block


def _thinking(part: ThinkingPart, state: Mapping[str, object] | None) -> _Block | None:
    if state is None:
        return None
    if part.redacted:
        return {"type": "redacted_thinking", "data": state.get("data", "")}
    if "signature" not in state:
        return None
    return {"type": "thinking", "thinking": part.text, "signature": state["signature"]}


def _image(part: ImagePart) -> _Block:
    source: _Block = {"type": "base64", "media_type": part.mime_type, "data": part.data}
    if part.url is not None:
        source = {"type": "url", "url": part.url}
    return {"type": "image", "source": source}


def _result_content(part: ToolResultPart) -> str | list[_Block]:
    if not isinstance(part.content, list):
        return result_text(part)
    renderers: dict[type, Callable[..., _Block | None]] = {TextPart: _text, ImagePart: _image}
    blocks: list[_Block] = []
    for inner in part.content:
        render = renderers.get(type(inner))
        if render is None:
            raise unsupported(inner, "a tool result")
        block = render(inner)
        if block is not None:
            blocks.append(block)
    return blocks


def _tool_result(part: ToolResultPart) -> _Block:
    content = _result_content(part)
    block: _Block = {
        "type": "tool_result",
        "tool_use_id": part.tool_call_id,
        "content": content,
    }
    if part.is_error:
        block["is_error"] = True
    return block
