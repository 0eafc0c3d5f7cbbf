"""`completion`, `response` and `message` of `deltafold.compat`: the SDK's final objects."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from typing import Any, Final

import anthropic
import openai
import pytest
from openai.types.chat import ChatCompletion

import deltafold
from any_name import AnyName
from corpus import needs_corpus
from deltafold import Message, MisuseError, ModelError
from deltafold.compat import anthropic as fast_anthropic
from deltafold.compat import openai as fast_openai
from deltafold.contract.kinds import json_array, json_object
from sdk_clients import anthropic_client, openai_client
from sdk_objects import recordings

DONE: Final = b"data: [DONE]\n\n"


def chat_of_sdk(body: bytes) -> object:
    chat: Any = openai_client([body]).chat.completions
    with chat.stream(model="m", messages=[]) as stream:
        return stream.get_final_completion()


def response_of_sdk(body: bytes) -> object:
    responses: Any = openai_client([body]).responses
    with responses.stream(model="m", input="x") as stream:
        return stream.get_final_response()


def message_of_sdk(body: bytes) -> object:
    messages: Any = anthropic_client([body]).messages
    with messages.stream(model="m", max_tokens=5, messages=[]) as stream:
        return stream.get_final_message()


Made = Callable[[Message], object]
MADE: Final[dict[str, tuple[Callable[[bytes], object], Made]]] = {
    "openai-chat": (chat_of_sdk, fast_openai.completion),
    "openai-responses": (response_of_sdk, fast_openai.response),
    "anthropic-messages": (message_of_sdk, fast_anthropic.message),
}

JOINED: Final = "the SDK joins the texts of members that each chunk repeats"
LAST: Final = "the SDK takes the value of the last chunk alone"
VENDOR: Final = "a member of a vendor without a place in the message"
ECHO: Final = "the API repeats the request, which the message does not hold"
OURS: Final = "deltafold writes the value that the SDK drops"
TYPED: Final = "the SDK's type needs the member"

PATHS: Final[dict[str, dict[str, str]]] = {
    "anthropic-messages": {
        "/usage/iterations": OURS,
        "/usage/fallback_credit": OURS,
        "/content/0/caller": "the caller of a call that the model itself made is not kept",
        "/content/0/input/message": "the SDK forgets the input of a call of MCP",
        "/context_management": OURS,
    },
    "openai-chat": {
        "/choices/0/message/role": JOINED,
        "/choices/0/message/name": JOINED,
        "/choices/0/message/channel": JOINED,
        "/choices/0/message/reasoning_details*": JOINED,
        "/choices/0/message/tool_calls/0/index": "the index of the pieces is no member of a call",
        "/choices/0/message/reasoning": "reasoning has one name, reasoning_content",
        "/choices/0/message/reasoning_content": "reasoning has one name, reasoning_content",
        "/choices/0/message/content": "an empty text is no text",
        "/choices/0/message/token_id": VENDOR,
        "/choices/0/message/graph_data": VENDOR,
        "/choices/0/text": VENDOR,
        "/choices/0/native_finish_reason": VENDOR,
        "/provider": VENDOR,
        "/x_groq*": LAST,
        "/time_info": OURS,
        "/graph_data": OURS,
        "/sla_metrics": VENDOR,
        "/prompt_filter_results": OURS,
        "/choices/0/content_filter_results*": LAST,
        "/usage/cost/*": LAST,
        "/service_tier": LAST,
        "/system_fingerprint": LAST,
        "/usage": LAST,
        "/choices/0/finish_reason": LAST,
        "/choices/0/logprobs/*": "tokens of a refusal are under content",
        "/choices": "a message is one answer",
    },
    "openai-responses": {
        **dict.fromkeys(
            (
                "/background",
                "/conversation",
                "/frequency_penalty",
                "/instructions",
                "/max_output_tokens",
                "/presence_penalty",
                "/prompt_cache_retention",
                "/reasoning",
                "/store",
                "/temperature",
                "/text",
                "/tool_choice",
                "/tools",
                "/top_logprobs",
                "/top_p",
                "/truncation",
            ),
            ECHO,
        ),
        "/output_text": VENDOR,
        "/metadata/system_fingerprint": VENDOR,
        "/output/0/content/0/annotations/0/end_index": TYPED,
        "/output/0/content/0/annotations/0/start_index": TYPED,
        "/output/0/content/0/annotations/0/title": TYPED,
        "/output/0/content/0/logprobs": TYPED,
        "/output/0/encrypted_content": "Azure encrypts the same reasoning anew for each event",
        "/output/0/status": "a server leaves it out of one event",
        "/output/0/id": "xAI gives the same item another id in its last event",
    },
}
"""Members that may differ, by a pattern of their path, with the reason."""

PARAGRAPHS: Final = "the paragraphs of a summary are one part"

RECORDINGS: Final = {
    "anthropic-sdk__incomplete_partial_json_response": "the SDK keeps a call that was cut",
    "pydantic-ai__openai_responses.openai_responses_model_mcp_list_tools_stream_backfills_missing_"
    "results": "the SDK takes the order of the last event, the message that of the arrival",
    "mirascope__call_with_thinking.openai_gpt_5_responses.stream.0": PARAGRAPHS,
    "pydantic-ai__openai_responses.openai_responses_thinking_part_iter": PARAGRAPHS,
    "vercel-ai__openai.responses.openai-image-generation-tool.1": "an empty text is no text",
    "vercel-ai__openai.responses.openai-shell-container.1": "the last event has another text than "
    "the deltas, which the message keeps",
    "vercel-ai__xai.responses.xai-image-generation-tool.1": "0 is no time of an answer",
    "vercel-ai__xai.responses.xai-x-search-tool": "the order is that of the arrival",
}
"""Recordings that differ as a whole."""

FAILURES: Final = (
    openai.OpenAIError,
    anthropic.AnthropicError,
    AssertionError,
    AttributeError,
    RuntimeError,
)
"""What the SDKs raise for a body without a whole answer."""

LEAST_EQUAL: Final = {"anthropic-messages": 160, "openai-chat": 115, "openai-responses": 80}
"""Recordings without a difference but those of the repeated request."""


def paths(ours: object, theirs: object, path: str = "") -> Iterator[str]:
    """Yield the paths of the members that differ."""
    members, others = json_object(ours), json_object(theirs)
    items, further = json_array(ours), json_array(theirs)
    if members is not None and others is not None:
        for name in {*members, *others}:
            if name in members and name in others:
                yield from paths(members[name], others[name], f"{path}/{name}")
            else:
                yield f"{path}/{name}"
    elif items and len(items) == len(further):
        for one, other in zip(items, further, strict=True):
            yield from paths(one, other, f"{path}/0")
    elif ours != theirs:
        yield path


@needs_corpus
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the SDK itself
@pytest.mark.parametrize("dialect", MADE)
def test_a_final_object_equals_that_of_the_sdk(dialect: AnyName) -> None:
    of_sdk, of_message = MADE[dialect]
    wrong: dict[str, set[str]] = {}
    count = equal = 0
    for name, body in recordings(dialect):
        try:
            theirs: Any = of_sdk(body)
            message = deltafold.fold(body, dialect, logprobs=True)
        except (*FAILURES, ModelError):
            continue  # the SDK has no final object, or there is no whole answer
        try:
            ours: Any = of_message(message)
        except MisuseError:
            assert not message.parts
            continue
        count += 1
        found = set(
            paths(
                ours.model_dump(mode="json", exclude_none=True, warnings=False),
                theirs.model_dump(mode="json", exclude_none=True, warnings=False),
            )
        )
        equal += not any(PATHS[dialect].get(path) != ECHO for path in found)
        new = {path for path in found if not any(fnmatch(path, known) for known in PATHS[dialect])}
        if new and name not in RECORDINGS:
            wrong[name] = new
    assert wrong == {}
    assert count > 150
    assert equal >= LEAST_EQUAL[dialect]


def test_a_completion_has_the_time_and_the_counts_of_the_provider() -> None:
    body = (
        b'data: {"id":"c","object":"chat.completion.chunk","created":1700000000,"model":"m",'
        b'"service_tier":"default","choices":[{"index":0,"delta":{"content":"Hi"},'
        b'"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,"queue_time":0.5}}\n\n'
    ) + DONE
    made = fast_openai.completion(deltafold.fold(body, "openai-chat"))
    assert isinstance(made, ChatCompletion)
    assert (made.created, made.service_tier) == (1700000000, "default")
    assert made.usage is not None
    assert made.usage.model_extra == {"queue_time": 0.5}
    assert made.choices[0].message.content == "Hi"


def test_an_answer_of_another_provider_has_the_counts_of_the_contract() -> None:
    body = (
        b'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],'
        b'"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1,"totalTokenCount":4}}\n\n'
    )
    message = deltafold.fold(body, "gemini")
    made = fast_openai.completion(message)
    assert made.usage is not None
    assert (made.usage.prompt_tokens, made.usage.completion_tokens) == (3, 1)
    other = fast_anthropic.message(message)
    assert (other.usage.input_tokens, other.usage.output_tokens) == (3, 1)


def test_what_is_no_answer_has_no_final_object() -> None:
    with pytest.raises(MisuseError):
        fast_openai.completion(Message.user("Hi"))
