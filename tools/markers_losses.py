"""Members that the library loses without a warning: true losses, which wait to be kept.

Law: a row goes when its members are kept; the check names it as stale then.
"""

from collections.abc import Sequence
from typing import Final

from markers_accepted import Row
from markers_judge import LOST, REFUSED, UNKNOWN_EVENT, WRONG_PLACE

_TERMINAL: Final = r"(answer:|response\.failed:response\.)"
_NOT_READ: Final = "not read"
_FAILED: Final = "not read from an answer that failed"


def _loss(
    protocol: str,
    path: str,
    reason: str = _NOT_READ,
    *,
    sdk: str = ".*",
    kinds: Sequence[str] = (LOST,),
) -> Row:
    return Row(protocol, path, reason, sdk=sdk, kinds=kinds, is_loss=True)


LOSSES: Final = (
    _loss("anthropic-messages", r"request:messages\[\]<system>\.(clear_at|output_config).*"),
    _loss("bedrock-converse", r".*\.image\.error\.message"),
    _loss("bedrock-converse", r"contentBlockStart:.*\.start\.image\.format"),
    _loss("bedrock-converse", r"modelStreamErrorException:.*\.original(Message|StatusCode)"),
    _loss("cohere-chat", r"(answer:logprobs\[\]|content-delta:logprobs)\..*"),
    _loss("cohere-chat", r"answer:message\.citations\[\].*", "a citation without a text"),
    _loss("cohere-chat", r"(answer|message-end):(delta\.)?usage\.billed_units\..*"),
    _loss("cohere-chat", r"(message-end:id|message-end:delta\.error|debug:prompt)"),
    _loss(
        "gemini", r"\w+:candidates\[\]\.(avgLogprobs|continuationToken|finishMessage|tokenCount)"
    ),
    _loss("gemini", r"\w+:candidates\[\]\.logprobsResult\..*"),
    _loss("gemini", r"\w+:(candidates\[\]|promptFeedback)\.safetyRatings\[\]\..*"),
    _loss("gemini", r"\w+:(createTime|modelStatus\..*)"),
    _loss("gemini", r"\w+:promptFeedback\.blockReason(Message)?"),
    _loss(
        "gemini-interactions",
        r"[\w.]+:.*\.annotations\[\]<.*",
        "annotations of a thought's summary",
    ),
    _loss("gemini-interactions", r"[\w.]+:.*<thought>\.summary\[\]<image>\..*"),
    _loss("gemini-interactions", r"[\w.]+:(\w+\.)?(\w+_)?usage\..*_by_modality\[\]\..*"),
    _loss("gemini-interactions", r"[\w.]+:(\w+\.)?(\w+_)?usage\.grounding_tool_count\[\]\..*"),
    _loss("gemini-interactions", r"[\w.]+:(\w+\.)?(\w+_)?usage\.(initial_input|total)_tokens"),
    _loss("gemini-interactions", r"step\.stop:step_usage\..*"),
    _loss(
        "gemini-interactions",
        r"(answer:|interaction\.\w+:(interaction\.)?)"
        r"continuation_(token|ids\[\])",
    ),
    _loss(
        "gemini-interactions",
        r"(answer:|interaction\.completed:interaction\.)"
        r"(created|updated|agent|service_tier|environment_id|errors.*)",
    ),
    _loss("gemini-interactions", r"(answer:steps\[\]|step\.start:step)<model_output>\.error\..*"),
    _loss("mistral", r".*content\[\]<thinking>\.(closed|thinking\[\]<(tool_)?reference>\..*)"),
    _loss("mistral", r"\w+:choices\[\]\.(delta|message)\.(prefix|index|tool_call_id|metadata.*)"),
    _loss("mistral", r"\w+:choices\[\]\.(delta|message)\.tool_calls\[\]\.type"),
    _loss("mistral", r"answer:choices\[\]\.messages\[\].*"),
    _loss("mistral", r"\w+:choices\[\]\.logprobs\.content\[\]\.top_logprobs\[\]\.token_id"),
    _loss("openai-chat", r"answer:(mcp_list_tools|usage_breakdown).*", sdk="groq"),
    _loss("openai-chat", r"\w+:openrouter_metadata\..*", sdk="openrouter"),
    _loss(
        "openai-chat", r"answer:choices\[\]\.message\.(content\[\]|model|name).*", sdk="openrouter"
    ),
    _loss("openai-chat", r"chunk:(alignment|error\.metadata).*", sdk="openrouter"),
    _loss("openai-chat", r"\w+:(warnings|prompt|choices).*", sdk="together"),
    _loss("openai-responses", rf"{_TERMINAL}(completed_at|created_at|service_tier)", _FAILED),
    _loss("openai-responses", rf"{_TERMINAL}error\.(misalignment\..*|param|type)|error:param"),
    _loss(
        "openai-responses",
        rf"{_TERMINAL}(conversation|input_transformations|moderation|tool_usage)\W.*",
        _FAILED,
    ),
    _loss("openai-responses", rf"{_TERMINAL}prompt_cache_diagnostics.*", _FAILED),
    _loss("openai-responses", r"request:input\[\]<message (EasyInputMessageParam|Message)>\.role"),
    _loss("openai-responses", r"request:input\[\]<message ResponseOutputMessageParam>\.id"),
    _loss(
        "openai-responses",
        r"request:",
        "a reference to an item, which needs no type, is refused without it",
        kinds=(REFUSED,),
    ),
    _loss(
        "openai-responses",
        rf"{_TERMINAL}(openrouter_metadata|alignment|safeguard_results|error|error_type)\b.*",
        sdk="openrouter",
    ),
    _loss(
        "openai-responses",
        r".*:(response\.)?(output_text|incomplete_details\.reason|status)",
        sdk="openrouter",
    ),
    _loss(
        "openai-responses",
        r"response\.(fusion_call|debug)\b.*",
        sdk="openrouter",
        kinds=(LOST, UNKNOWN_EVENT, WRONG_PLACE),
    ),
    _loss("openai-responses", r"response\.function_call_arguments\.done:name", sdk="openrouter"),
)
"""Losses that are known."""
