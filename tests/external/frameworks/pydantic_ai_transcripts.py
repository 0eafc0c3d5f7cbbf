"""Transcripts of answers in pydantic-ai, and the fixtures that its own models read differently.

In: a model of the framework.  Out: the transcript of one streamed request; the known differences.

Law: a difference has a reason. The tests fail for a difference without a reason, and for a reason
without a difference.
"""

import json
import re
from typing import Any, Final

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters

QUESTION: Final = [ModelRequest(parts=[UserPromptPart("When is high tide?")])]
_MADE_UP: Final = re.compile(r"pyd_ai_[0-9a-f]{32}|call_[0-9a-f]{16}")


async def streamed(model: Model[Any]) -> tuple[list[ModelResponseStreamEvent], ModelResponse]:
    """Send a question, and return the events and the response.

    Raises:
        AgentRunError: the request failed.
    """
    async with model.request_stream(QUESTION, None, ModelRequestParameters()) as stream:
        events = [event async for event in stream]
        return events, stream.get()


async def transcript(model: Model[Any]) -> object:
    """Return the transcript of the answer to a question, or the name of its failure."""
    try:
        _, response = await streamed(model)
    except Exception as error:  # noqa: BLE001 - the failure is the transcript
        return type(error).__name__
    return of_response(response)


def of_response(response: ModelResponse) -> object:
    """Return the parts, the finish reason, the counts and the state of a response."""
    usage = response.usage
    reason = response.finish_reason
    if reason == "stop" and response.tool_calls:
        reason = "tool_call"  # the framework's model of Responses says stop for both
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    return [_shown(part) for part in response.parts], reason, counts, response.state


def _shown(part: ModelResponsePart) -> object:
    match part:
        case TextPart():
            return "text", part.content
        case ThinkingPart():
            return "thinking", part.content, part.signature
        case ToolCallPart():
            made_up = _MADE_UP.fullmatch(str(part.tool_call_id))
            name = "made up" if made_up else str(part.tool_call_id)
            return "call", name, part.tool_name, _parsed(part.args)
        case _:
            return part.part_kind, getattr(part, "tool_name", None)


def _parsed(args: object) -> object:
    if args in (None, ""):
        return {}
    try:
        return json.loads(args) if isinstance(args, str) else args
    except ValueError:
        return args


DIFFERENCES: Final = {
    "the framework takes a stream without an end as complete": (
        "anthropic-messages/cut-mid-args",
        "anthropic-messages/cut-mid-event",
        "openai-chat/cut-mid-args",
        "openai-chat/cut-mid-text",
        "openai-chat/cut-with-whole-args",
        "openai-chat/no-finish-reason-call",
        "openai-responses/args-ciphertext-cut",
        "openai-responses/cancelled",
        "openai-responses/cut-before-completed",
        "openai-responses/cut-mid-args",
        "openai-responses/cut-mid-code",
    ),
    "the framework takes an error for an empty answer, or has no category for it": (
        "anthropic-messages/error-code-in-details",
        "anthropic-messages/json-error-body",
        "openai-chat/deepseek-no-resource",
        "openai-chat/error-array-body",
        "openai-chat/groq-error",
        "openai-chat/json-error-body",
        "openai-chat/llama-cpp-error-field",
        "openai-chat/object-error",
        "openai-chat/xai-error",
        "openai-responses/failed-silent",
        "openai-responses/json-error-body",
        "openai-responses/policy",
        "openai-responses/whole-body-failed",
        "openai-responses/xai-error",
    ),
    "the framework cannot read the frames": (
        "anthropic-messages/no-event-lines",
        "anthropic-messages/usage-only-in-delta",
        "anthropic-messages/whole-body",
        "openai-chat/invalid-utf8",
        "openai-chat/joined-events",
        "openai-chat/keep-alives",
        "openai-chat/whole-body",
        "openai-responses/whole-body",
        "openai-responses/whole-body-incomplete",
    ),
    "the framework does not read these counts of a vendor": (
        "openai-chat/databricks-usage",
        "openai-chat/deepseek-cache-members",
        "openai-chat/groq",
        "openai-chat/llama-cpp-timings",
        "openai-chat/mistral-calls",
        "openai-chat/perplexity",
        "openai-chat/usage-null-later",
        "openai-chat/xai",
        "openai-chat/xai-cached-exceeds-prompt",
    ),
    "the framework takes the first of two finish reasons, or does not know the word": (
        "openai-chat/finish-twice",
        "openai-chat/finish-without-delta",
        "openai-chat/sensitive",
    ),
    "the framework joins, splits or loses calls and their arguments": (
        "openai-chat/custom-tool",
        "openai-chat/empty-object-first",
        "openai-chat/function-call",
        "openai-chat/id-late",
        "openai-chat/id-repeated-with-whole-arguments",
        "openai-chat/id-shared-and-index-always-zero",
        "openai-chat/id-shared-announced-together",
        "openai-chat/id-shared-by-calls",
        "openai-chat/id-shared-on-every-fragment",
        "openai-chat/id-shared-without-arguments",
        "openai-chat/id-shared-without-index",
        "openai-chat/ids-new-per-fragment",
        "openai-chat/index-always-zero",
        "openai-chat/name-repeated",
        "openai-responses/args-ciphertext",
        "openai-responses/args-ciphertext-completed",
        "openai-responses/args-ciphertext-item-done",
        "openai-responses/args-ciphertext-never-plain",
        "openai-responses/call-id-only",
        "openai-responses/call-members",
        "openai-responses/calls-of-one-call-id",
        "openai-responses/calls-of-one-call-id-only-done",
        "openai-responses/custom-tool",
        "openai-responses/custom-tool-by-tool-search",
        "openai-responses/custom-tool-in-namespace",
        "openai-responses/custom-tool-of-the-input",
        "openai-responses/ids-odd",
        "openai-responses/kinds-only-in-completed",
        "openai-responses/namespace",
        "openai-responses/namespaces-of-one-name",
        "openai-responses/no-names",
    ),
    "the framework leaves this content out": (
        "anthropic-messages/fallback",
        "anthropic-messages/fallback-iterations",
        "anthropic-messages/filled-message-start",
        "anthropic-messages/server-tool",
        "anthropic-messages/unknown-block",
        "openai-chat/audio",
        "openai-chat/images",
        "openai-chat/mistral-content-list",
        "openai-chat/openrouter-encrypted",
        "openai-chat/openrouter-only-encrypted",
        "openai-responses/annotations-only-done",
        "openai-responses/approval",
        "openai-responses/audio",
        "openai-responses/custom-tool-undeclared",
        "openai-responses/items-only-done",
        "openai-responses/local-shell",
        "openai-responses/output-only-in-completed",
        "openai-responses/reasoning-open-responses",
        "openai-responses/reasoning-summary-only-done",
        "openai-responses/type-only-in-event-name",
        "openai-responses/unknown-item",
    ),
    "the framework reads the pieces of items by ids and indexes that do not hold": (
        "anthropic-messages/spliced-message-start",
        "openai-responses/content-index-always-zero",
        "openai-responses/done-only-in-completed",
        "openai-responses/ids-all-the-same",
        "openai-responses/ids-rotate",
        "openai-responses/ids-rotate-no-index",
        "openai-responses/index-odd",
        "openai-responses/missing-suffix",
        "openai-responses/no-content-index",
        "openai-responses/no-names-whole-items",
        "openai-responses/output-index-always-zero-no-ids",
        "openai-responses/reasoning-raw",
        "openai-responses/reasoning-summary",
    ),
    "the framework keeps halves of surrogate pairs, which no JSON can hold": (
        "anthropic-messages/lone-surrogate",
        "anthropic-messages/surrogate-pair-split",
        "openai-chat/lone-surrogate",
        "openai-chat/surrogate-pair-split",
        "openai-responses/surrogate-pair-split",
    ),
    "the framework reads unknown events, a second choice, or what follows the end": (
        "anthropic-messages/unknown-events",
        "openai-chat/two-choices",
        "openai-responses/after-the-end",
    ),
}
"""Fixtures that the framework's own models read differently, by the reason."""
