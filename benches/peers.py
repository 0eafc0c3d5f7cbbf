"""The peers, each through its own public streaming API on the same bytes.

In: a dialect and feeds.  Out: a function that reads them all once and returns the text.

Where a peer reads events instead of bytes (llm-babel and linguafranca), orjson parses them first,
as a user of it would.  What a peer leaves as text for its caller to parse is parsed by the bench's
check and costs it nothing.
"""

import asyncio
import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import orjson

from readers import MakeRead, Read, Said
from transports import (
    BASE_URL,
    anthropic_client,
    async_anthropic_client,
    async_openai_client,
    client,
    old_client,
    openai_client,
)

# No price list is downloaded during the measurement.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

_ASK: Final = "?"
_MODEL: Final = {"openai-chat": "m", "anthropic-messages": "claude-sonnet-4-5"}


def _module(name: str) -> Any:  # noqa: ANN401 - the lint environment has none of the peers
    return import_module(name)


def sdk_helper(dialect: str, chunks: Sequence[bytes]) -> Read:
    """The SDK's stream helper, to its final message."""
    if dialect == "openai-chat":
        chat = openai_client(chunks).chat.completions

        def read_chat() -> Said:
            with chat.stream(model="m", messages=[{"role": "user", "content": _ASK}]) as stream:
                message = stream.get_final_completion().choices[0].message
            return message.content or _only_call(message)

        return read_chat
    messages = anthropic_client(chunks).messages

    def read_anthropic() -> Said:
        with messages.stream(
            model="m", max_tokens=10, messages=[{"role": "user", "content": _ASK}]
        ) as stream:
            block: Any = stream.get_final_message().content[-1]
        said: Said = block.input if block.type == "tool_use" else block.text
        return said

    return read_anthropic


def _only_call(message: Any) -> str:  # noqa: ANN401 - the SDK's classes differ by call
    arguments: str = message.tool_calls[0].function.arguments
    return arguments


def sdk_create(dialect: str, chunks: Sequence[bytes]) -> Read:
    """The SDK's events one by one, their text joined."""
    return _chat_create(chunks) if dialect == "openai-chat" else _anthropic_create(chunks)


def _chat_create(chunks: Sequence[bytes]) -> Read:
    chat = openai_client(chunks).chat.completions

    def read() -> Said:
        stream = chat.create(model="m", messages=[{"role": "user", "content": _ASK}], stream=True)
        said: list[str] = []
        for chunk in stream:
            for choice in chunk.choices:
                said.append(choice.delta.content or "")
                calls = choice.delta.tool_calls or ()
                said.extend((call.function and call.function.arguments) or "" for call in calls)
        return "".join(said)

    return read


def _anthropic_create(chunks: Sequence[bytes]) -> Read:
    messages = anthropic_client(chunks).messages

    def read() -> Said:
        stream = messages.create(
            model="m", max_tokens=10, messages=[{"role": "user", "content": _ASK}], stream=True
        )
        said: list[str] = []
        for event in stream:
            if event.type == "content_block_delta":
                if event.delta.type == "text_delta":
                    said.append(event.delta.text)
                elif event.delta.type == "input_json_delta":
                    said.append(event.delta.partial_json)
        return "".join(said)

    return read


def litellm(dialect: str, chunks: Sequence[bytes]) -> Read:
    """`completion(stream=True)` and `stream_chunk_builder`."""
    module = _module("litellm")
    module.suppress_debug_info = True
    question = [{"role": "user", "content": _ASK}]
    if dialect == "openai-chat":
        model = "openai/m"
        http: Any = openai_client(chunks)
    else:
        model = f"anthropic/{_MODEL[dialect]}"
        http = _module("litellm.llms.custom_httpx.http_handler").HTTPHandler(
            client=old_client(chunks)
        )

    def read() -> Said:
        stream = module.completion(
            model=model, messages=question, stream=True, client=http, api_key="unused"
        )
        message = module.stream_chunk_builder(list(stream), messages=question).choices[0].message
        return message.content or _only_call(message)

    return read


def pydantic_ai(dialect: str, chunks: Sequence[bytes]) -> Read:
    """`model_request_stream`, every event taken, then the response."""
    direct = _module("pydantic_ai.direct")
    question = [_module("pydantic_ai.messages").ModelRequest.user_text_prompt(_ASK)]
    if dialect == "openai-chat":
        provider = _module("pydantic_ai.providers.openai").OpenAIProvider(
            openai_client=async_openai_client(chunks)
        )
        model = _module("pydantic_ai.models.openai").OpenAIChatModel("m", provider=provider)
    else:
        provider = _module("pydantic_ai.providers.anthropic").AnthropicProvider(
            anthropic_client=async_anthropic_client(chunks)
        )
        model = _module("pydantic_ai.models.anthropic").AnthropicModel(
            _MODEL[dialect], provider=provider
        )

    async def request() -> Said:
        async with direct.model_request_stream(model, question) as stream:
            async for _ in stream:
                pass
            response = stream.get() if hasattr(stream, "get") else stream.response
        part = response.parts[-1]
        said: Said = part.args if part.part_kind == "tool-call" else part.content
        return said

    runner = asyncio.Runner()

    def read() -> Said:
        return runner.run(request())

    return read


def langchain(dialect: str, chunks: Sequence[bytes]) -> Read:
    """`model.stream()`, the chunks added up."""
    if dialect == "openai-chat":
        model = _module("langchain_openai").ChatOpenAI(
            model="m",
            api_key="unused",
            base_url=f"{BASE_URL}/v1",
            http_client=client(chunks),
            max_retries=0,
            stream_usage=True,
        )
    else:
        model = _module("langchain_anthropic").ChatAnthropic(
            model=_MODEL[dialect], api_key="unused", max_retries=0
        )
        # It takes no HTTP client; its own is a cached property.
        vars(model)["_client"] = anthropic_client(chunks)

    def read() -> Said:
        whole: Any = None
        for chunk in model.stream(_ASK):
            whole = chunk if whole is None else whole + chunk
        said: Said = whole.text or whole.tool_calls[0]["args"]
        return said

    return read


def _events(chunks: Sequence[bytes]) -> list[Any]:
    """Framing and parsing, as written by hand for a library that reads events."""
    lines = b"".join(chunks).split(b"\n")
    return [orjson.loads(line[6:]) for line in lines if line.startswith(b"data: {")]


def llm_babel(dialect: str, chunks: Sequence[bytes]) -> Read:
    """orjson, then `fold_stream`, the text of its emits joined."""
    fold_stream = _module("llm_transform.registry").fold_stream

    def read() -> Said:
        emits = fold_stream(dialect, _events(chunks))
        return "".join(emit["text"] for emit in emits if emit["kind"] == "text")

    return read


def linguafranca(dialect: str, chunks: Sequence[bytes]) -> Read:
    """orjson, then `collect_response_stream_json`."""
    module = _module("linguafranca")
    names = module.FormatName
    chat = dialect == "openai-chat"
    name = names.OPENAI_CHAT_COMPLETIONS if chat else names.ANTHROPIC_MESSAGES

    def read() -> Said:
        value = module.collect_response_stream_json(_events(chunks), format_name=name).value
        if chat:
            said: Said = value["choices"][0]["message"]["content"]
            return said
        return "".join(block["text"] for block in value["content"])

    return read


SDK_CREATE: Final = "SDK create, iterated"
SDK_HELPER: Final = "SDK helper, final message"

SDKS: Final[dict[str, MakeRead]] = {SDK_CREATE: sdk_create, SDK_HELPER: sdk_helper}
FRAMEWORKS: Final[dict[str, MakeRead]] = {
    "pydantic-ai": pydantic_ai,
    "langchain": langchain,
    "litellm": litellm,
}
CONVERTERS: Final[dict[str, MakeRead]] = {
    "orjson, llm-babel": llm_babel,
    "orjson, linguafranca": linguafranca,
}
