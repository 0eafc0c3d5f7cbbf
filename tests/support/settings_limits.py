"""Settings that a dialect takes in part: values outside of a range, and combinations it refuses.

In: nothing.  Out: members of a request, with the members of the new body and the text of the note.

Source: the references of the APIs, and the pages that deltafold/dialects/reasoning.py names.
"""

from dataclasses import dataclass
from typing import Any, Final

from any_name import AnyName
from settings_cells import calling, generation, inference


@dataclass(frozen=True, slots=True)
class Limit:
    """A setting that a target takes in part.

    Attributes:
        source: dialect of the members.
        members: the members of the request.
        target: dialect of the new body.
        sent: members of the new body.
        absent: members that the new body does not have.
        says: text of the note.
        model_id: model of the target; None is the one of `MODELS`.
    """

    source: str
    members: dict[str, Any]
    target: AnyName
    sent: dict[str, Any]
    says: str
    absent: tuple[str, ...] = ()
    model_id: str | None = None


CLAUDE: Final = "anthropic-messages"
CHAT: Final = "openai-chat"
LIMITS: Final = [
    Limit(CHAT, {"temperature": 1.5}, CLAUDE, {"temperature": 1.0}, "takes 0 to 1"),
    Limit(
        CHAT,
        {"temperature": 1.75},
        "mistral",
        {"temperature": 1.5},
        "takes 0 to 1.5",
    ),
    Limit(
        CHAT, {"temperature": 1.5}, "bedrock-converse", inference(temperature=1.0), "takes 0 to 1"
    ),
    Limit(CHAT, {"top_p": 1.0}, "cohere-chat", {"p": 0.99}, "takes 0.01 to 0.99"),
    Limit(CHAT, {"frequency_penalty": -1.0}, "cohere-chat", {"frequency_penalty": 0.0}, "0 to 1"),
    Limit("cohere-chat", {"k": 3}, CHAT, {}, "has no top_k", ("top_k",)),
    Limit(CHAT, {"max_tokens": 5}, "openai-responses", {"max_output_tokens": 16}, "at least 16"),
    Limit(
        "gemini",
        generation(stopSequences=["a", "b", "c", "d", "e"]),
        CHAT,
        {"stop": ["a", "b", "c", "d"]},
        "at most 4: 'e' is left out",
    ),
    Limit(
        "gemini",
        generation(stopSequences=["\n\n", "END"]),
        CLAUDE,
        {"stop_sequences": ["END"]},
        "white space",
    ),
    Limit(CHAT, {"seed": 2**40}, "gemini", {}, "32 bits", ("generationConfig",)),
    Limit(CHAT, {"seed": -1}, "mistral", {}, "refuses -1", ("random_seed",)),
    Limit(
        CHAT, {"temperature": 0.5}, CLAUDE, {}, "refuses it", ("temperature",), "claude-opus-4-7"
    ),
    Limit(
        CHAT,
        {"temperature": 0.5, "top_p": 0.5},
        CLAUDE,
        {"temperature": 0.5},
        "refuses it beside temperature",
        ("top_p",),
        "claude-sonnet-4-5",
    ),
    Limit(
        CHAT,
        {"temperature": 0.0, "reasoning_effort": "low"},
        CLAUDE,
        {"thinking": {"type": "adaptive"}},
        "refuses it while it thinks",
        ("temperature",),
    ),
    Limit(
        CHAT,
        {"reasoning_effort": "high", "max_completion_tokens": 8000},
        CLAUDE,
        {"thinking": {"type": "enabled", "budget_tokens": 6400}, "max_tokens": 8000},
        "80% of max_tokens",
        ("output_config",),
        "claude-sonnet-4-5-20250929",
    ),
    Limit(
        CHAT,
        {"reasoning_effort": "high", "max_completion_tokens": 800},
        CLAUDE,
        {"max_tokens": 800},
        "too small for thinking",
        ("thinking",),
        "claude-sonnet-4-5",
    ),
    Limit(
        CHAT,
        {"reasoning_effort": "high", "tool_choice": "required"},
        CLAUDE,
        {"tool_choice": {"type": "any"}},
        "forced tool",
        ("thinking",),
        "claude-sonnet-4-5",
    ),
    Limit(
        CHAT,
        {"reasoning_effort": "minimal"},
        CLAUDE,
        {"output_config": {"effort": "low"}},
        "no effort minimal",
    ),
    Limit(
        CHAT,
        {"reasoning_effort": "xhigh"},
        CLAUDE,
        {"output_config": {"effort": "high"}},
        "no effort xhigh",
    ),
    Limit(
        "gemini",
        generation(thinkingConfig={"thinkingBudget": -1}),
        CLAUDE,
        {"thinking": {"type": "enabled", "budget_tokens": 10666}},
        "50% of max_tokens",
        (),
        "claude-sonnet-4-5",
    ),
    Limit(
        CHAT,
        {"reasoning_effort": "medium"},
        "gemini",
        generation(thinkingConfig={"thinkingBudget": 8192}),
        "8192 tokens",
        (),
        "gemini-2.5-flash",
    ),
    Limit(
        CHAT,
        {"reasoning_effort": "none"},
        "gemini",
        generation(thinkingConfig={"thinkingBudget": 128}),
        "takes 128 to 32768",
        (),
        "gemini-2.5-pro",
    ),
    Limit(
        CLAUDE,
        {"max_tokens": 64000, "thinking": {"type": "enabled", "budget_tokens": 32000}},
        "gemini",
        generation(thinkingConfig={"thinkingBudget": 24576}),
        "24576 is sent",
        (),
        "gemini-2.5-flash",
    ),
    Limit(CHAT, {"reasoning_effort": "high"}, "gemini", {}, "cannot think", (), "gemini-2.0-flash"),
    Limit(CHAT, {"reasoning_effort": "high"}, "ollama", {"think": True}, "no level", (), "qwen3"),
    Limit(
        CHAT,
        {"reasoning_effort": "high"},
        "bedrock-converse",
        {
            "additionalModelRequestFields": {
                "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}
            }
        },
        "",
        ("outputConfig",),
        "us.amazon.nova-2-lite-v1:0",
    ),
    Limit(
        CHAT,
        {"reasoning_effort": "high"},
        "bedrock-converse",
        {"additionalModelRequestFields": {"reasoning_effort": "high"}},
        "",
        ("outputConfig",),
        "openai.gpt-oss-120b-1:0",
    ),
    Limit(
        CHAT,
        {"reasoning_effort": "deep"},
        "gemini",
        {},
        "has no effort deep",
        ("generationConfig",),
    ),
    Limit(CHAT, {"reasoning_effort": "deep"}, "mistral", {"reasoning_effort": "deep"}, ""),
    Limit(
        "openai-responses",
        {"reasoning": {"effort": "low", "context": "all_turns"}},
        CHAT,
        {"reasoning_effort": "low"},
        "reasoning.context",
    ),
    Limit(CHAT, {"top_logprobs": 2, "logprobs": True}, CLAUDE, {}, "has no top_logprobs"),
    Limit(CHAT, {"service_tier": "scale"}, CLAUDE, {}, "has no scale", ("service_tier",)),
    Limit(CHAT, {"modalities": ["text"], "n": 1, "logprobs": False}, CLAUDE, {}, ""),
    Limit(
        CHAT,
        {"max_tokens": 100, "max_completion_tokens": 200},
        CLAUDE,
        {"max_tokens": 200},
        "extra_body (max_tokens)",
    ),
    Limit(CHAT, {"made_up": 1}, CLAUDE, {}, "extra_body (made_up)", ("made_up",)),
    Limit(
        CHAT,
        {"user": "a", "safety_identifier": "b"},
        CLAUDE,
        {"metadata": {"user_id": "b"}},
        "user: safety_identifier is sent",
    ),
    Limit(
        "gemini",
        calling(mode="VALIDATED", allowedFunctionNames=["time"]),
        CHAT,
        {"tool_choice": {"type": "allowed_tools"}},
        "VALIDATED becomes auto",
    ),
    Limit(
        "gemini",
        generation(responseSchema={"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}),
        CHAT,
        {"response_format": {"json_schema": {"schema": {"type": "object"}}}},
        "",
    ),
    Limit(
        CLAUDE,
        {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
        CHAT,
        {"response_format": {"json_schema": {"schema": {"type": "object"}}}},
        "",
    ),
    Limit(
        "openai-responses", {"previous_response_id": "r"}, CHAT, {}, "the provider has the earlier"
    ),
]
