"""Portable settings as each API writes them: the members of a request body, written by hand.

In: nothing.  Out: one row a portable setting, with the body members of each dialect; None where the
API has no member.

Source: the references of the APIs and the types of their official clients (read 2026-11).
"""

import json
from typing import Any, Final, cast

from any_name import AnyName

MODELS: Final[dict[AnyName, str]] = {
    "openai-chat": "a-model",
    "openai-responses": "a-model",
    "anthropic-messages": "claude-opus-4-6",
    "gemini": "gemini-3-pro-preview",
    "bedrock-converse": "anthropic.claude-opus-4-6-v1",
    "cohere-chat": "command-a-reasoning-08-2025",
    "mistral": "a-model",
    "ollama": "gpt-oss:20b",
}

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
NAMED: Final[dict[str, Any]] = {"name": "response", "schema": SCHEMA}
"""The name is the one that a schema without a name gets."""

Cells = dict[AnyName, dict[str, Any] | None]


def cells(
    chat: dict[str, Any] | None,
    responses: dict[str, Any] | None,
    anthropic: dict[str, Any] | None,
    gemini: dict[str, Any] | None,
    bedrock: dict[str, Any] | None,
    cohere: dict[str, Any] | None,
    mistral: dict[str, Any] | None,
    ollama: dict[str, Any] | None,
) -> Cells:
    found = (chat, responses, anthropic, gemini, bedrock, cohere, mistral, ollama)
    return dict(zip(MODELS, found, strict=True))


def generation(**members: object) -> dict[str, Any]:
    return {"generationConfig": members}


def inference(**members: object) -> dict[str, Any]:
    return {"inferenceConfig": members}


def options(**members: object) -> dict[str, Any]:
    return {"options": members}


def calling(**members: object) -> dict[str, Any]:
    return {"toolConfig": {"functionCallingConfig": members}}


CELLS: Final[dict[str, Cells]] = {
    "max_tokens": cells(
        {"max_completion_tokens": 900},
        {"max_output_tokens": 900},
        {"max_tokens": 900},
        generation(maxOutputTokens=900),
        inference(maxTokens=900),
        {"max_tokens": 900},
        {"max_tokens": 900},
        options(num_predict=900),
    ),
    "temperature": cells(
        {"temperature": 0.5},
        {"temperature": 0.5},
        {"temperature": 0.5},
        generation(temperature=0.5),
        inference(temperature=0.5),
        {"temperature": 0.5},
        {"temperature": 0.5},
        options(temperature=0.5),
    ),
    "top_p": cells(
        {"top_p": 0.75},
        {"top_p": 0.75},
        {"top_p": 0.75},
        generation(topP=0.75),
        inference(topP=0.75),
        {"p": 0.75},
        {"top_p": 0.75},
        options(top_p=0.75),
    ),
    "top_k": cells(
        None,
        None,
        {"top_k": 7},
        generation(topK=7),
        {"additionalModelRequestFields": {"top_k": 7}},
        {"k": 7},
        {"top_k": 7},
        options(top_k=7),
    ),
    "stop_sequences": cells(
        {"stop": ["END", "STOP"]},
        None,
        {"stop_sequences": ["END", "STOP"]},
        generation(stopSequences=["END", "STOP"]),
        inference(stopSequences=["END", "STOP"]),
        {"stop_sequences": ["END", "STOP"]},
        {"stop": ["END", "STOP"]},
        options(stop=["END", "STOP"]),
    ),
    "seed": cells(
        {"seed": 11},
        None,
        None,
        generation(seed=11),
        None,
        {"seed": 11},
        {"random_seed": 11},
        options(seed=11),
    ),
    "frequency_penalty": cells(
        {"frequency_penalty": 0.25},
        None,
        None,
        generation(frequencyPenalty=0.25),
        None,
        {"frequency_penalty": 0.25},
        {"frequency_penalty": 0.25},
        options(frequency_penalty=0.25),
    ),
    "presence_penalty": cells(
        {"presence_penalty": 0.75},
        None,
        None,
        generation(presencePenalty=0.75),
        None,
        {"presence_penalty": 0.75},
        {"presence_penalty": 0.75},
        options(presence_penalty=0.75),
    ),
    "candidate_count": cells(
        {"n": 2}, None, None, generation(candidateCount=2), None, None, {"n": 2}, None
    ),
    "logprobs": cells(
        {"logprobs": True},
        {"include": ["message.output_text.logprobs"]},
        None,
        generation(responseLogprobs=True),
        None,
        {"logprobs": True},
        {"logprobs": True},
        {"logprobs": True},
    ),
    "top_logprobs": cells(
        {"top_logprobs": 3},
        {"top_logprobs": 3},
        None,
        generation(logprobs=3),
        None,
        None,
        {"top_logprobs": 3},
        {"top_logprobs": 3},
    ),
    "tool_choice": cells(
        {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
        {"tool_choice": {"type": "function", "name": "weather"}},
        {"tool_choice": {"type": "tool", "name": "weather"}},
        calling(mode="ANY", allowedFunctionNames=["weather"]),
        {"toolConfig": {"toolChoice": {"tool": {"name": "weather"}}}},
        None,
        {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
        None,
    ),
    "tool_choice: required": cells(
        {"tool_choice": "required"},
        {"tool_choice": "required"},
        {"tool_choice": {"type": "any"}},
        calling(mode="ANY"),
        {"toolConfig": {"toolChoice": {"any": {}}}},
        {"tool_choice": "REQUIRED"},
        {"tool_choice": "required"},
        None,
    ),
    "tool_choice: some tools": cells(
        {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [
                        {"type": "function", "function": {"name": "weather"}},
                        {"type": "function", "function": {"name": "time"}},
                    ],
                },
            }
        },
        {
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [
                    {"type": "function", "name": "weather"},
                    {"type": "function", "name": "time"},
                ],
            }
        },
        None,
        calling(mode="ANY", allowedFunctionNames=["weather", "time"]),
        None,
        None,
        None,
        None,
    ),
    "parallel_tool_calls": cells(
        {"parallel_tool_calls": False},
        {"parallel_tool_calls": False},
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        None,
        None,
        None,
        {"parallel_tool_calls": False},
        None,
    ),
    "reasoning_effort": cells(
        {"reasoning_effort": "high"},
        {"reasoning": {"effort": "high"}},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        generation(thinkingConfig={"thinkingLevel": "high"}),
        {
            "additionalModelRequestFields": {"thinking": {"type": "adaptive"}},
            "outputConfig": {"effort": "high"},
        },
        {"thinking": {"type": "enabled", "token_budget": 24576}},
        {"reasoning_effort": "high"},
        {"think": "high"},
    ),
    "reasoning_effort: none": cells(
        {"reasoning_effort": "none"},
        {"reasoning": {"effort": "none"}},
        {"thinking": {"type": "disabled"}},
        generation(thinkingConfig={"thinkingLevel": "low"}),
        {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}},
        {"thinking": {"type": "disabled"}},
        {"reasoning_effort": "none"},
        {"think": False},
    ),
    "reasoning_budget": cells(
        None,
        None,
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        generation(thinkingConfig={"thinkingBudget": 2000}),
        {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}}},
        {"thinking": {"type": "enabled", "token_budget": 2000}},
        None,
        None,
    ),
    "reasoning_summary": cells(
        None,
        {"reasoning": {"effort": "high", "summary": "auto"}},
        {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "high"},
        },
        generation(thinkingConfig={"thinkingLevel": "high", "includeThoughts": True}),
        {
            "additionalModelRequestFields": {
                "thinking": {"type": "adaptive", "display": "summarized"}
            },
            "outputConfig": {"effort": "high"},
        },
        None,
        None,
        None,
    ),
    "verbosity": cells(
        {"verbosity": "low"}, {"text": {"verbosity": "low"}}, None, None, None, None, None, None
    ),
    "output_schema": cells(
        {"response_format": {"type": "json_schema", "json_schema": NAMED}},
        {"text": {"format": {"type": "json_schema", **NAMED}}},
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        generation(responseMimeType="application/json", responseJsonSchema=SCHEMA),
        {
            "outputConfig": {
                "textFormat": {
                    "type": "json_schema",
                    "structure": {"jsonSchema": {"schema": json.dumps(SCHEMA)}},
                }
            }
        },
        {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
        {"response_format": {"type": "json_schema", "json_schema": NAMED}},
        {"format": SCHEMA},
    ),
    "output_schema: any object": cells(
        {"response_format": {"type": "json_object"}},
        {"text": {"format": {"type": "json_object"}}},
        None,
        generation(responseMimeType="application/json"),
        None,
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_object"}},
        {"format": "json"},
    ),
    "modalities": cells(
        {"modalities": ["text", "audio"]},
        None,
        None,
        generation(responseModalities=["TEXT", "AUDIO"]),
        None,
        None,
        None,
        None,
    ),
    "prediction": cells(
        {"prediction": {"type": "content", "content": "Hello"}},
        None,
        None,
        None,
        None,
        None,
        {"prediction": {"type": "content", "content": "Hello"}},
        None,
    ),
    "service_tier": cells(
        {"service_tier": "default"},
        {"service_tier": "default"},
        {"service_tier": "standard_only"},
        {"serviceTier": "standard"},
        {"serviceTier": {"type": "default"}},
        None,
        {"service_tier": "standard_only"},
        None,
    ),
    "service_tier: flex": cells(
        {"service_tier": "flex"},
        {"service_tier": "flex"},
        None,
        {"serviceTier": "flex"},
        {"serviceTier": {"type": "flex"}},
        None,
        None,
        None,
    ),
    "user": cells({"user": "u-1"}, {"user": "u-1"}, None, None, None, None, None, None),
    "safety_identifier": cells(
        {"safety_identifier": "u-1"},
        {"safety_identifier": "u-1"},
        {"metadata": {"user_id": "u-1"}},
        None,
        None,
        None,
        None,
        None,
    ),
    "metadata": cells(
        {"metadata": {"team": "t"}},
        {"metadata": {"team": "t"}},
        None,
        None,
        {"requestMetadata": {"team": "t"}},
        None,
        {"metadata": {"team": "t"}},
        None,
    ),
    "store": cells({"store": True}, {"store": True}, None, None, None, None, None, None),
    "prompt_cache_key": cells(
        {"prompt_cache_key": "k"},
        {"prompt_cache_key": "k"},
        None,
        None,
        None,
        None,
        {"prompt_cache_key": "k"},
        None,
    ),
    "cache_config": cells(
        None,
        None,
        {"cache_control": {"type": "ephemeral"}},
        None,
        None,
        None,
        None,
        None,
    ),
}
"""Body members of each portable setting. A name with a colon is another value of a setting."""

CONVERTED: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "user": {"anthropic-messages": {"metadata": {"user_id": "u-1"}}},
    "tool_choice": {"cohere-chat": {"tool_choice": "REQUIRED"}},
    "tool_choice: some tools": {
        "anthropic-messages": {"tool_choice": {"type": "any"}},
        "bedrock-converse": {"toolConfig": {"toolChoice": {"any": {}}}},
        "cohere-chat": {"tool_choice": "REQUIRED"},
        "mistral": {"tool_choice": "required"},
    },
    "reasoning_budget": {
        "openai-chat": {"reasoning_effort": "medium"},
        "openai-responses": {"reasoning": {"effort": "medium"}},
        "mistral": {"reasoning_effort": "medium"},
        "ollama": {"think": "medium"},
    },
    "cache_config": {
        "bedrock-converse": {
            "messages": [{"content": [{"text": "Hello"}, {"cachePoint": {"type": "default"}}]}]
        }
    },
}
"""Members that a setting becomes in a dialect that cannot be its source."""

_NAMELESS: Final = ("anthropic-messages", "gemini", "cohere-chat", "ollama")
_WITH_NAMES: Final = ("openai-chat", "openai-responses", "mistral")

NOTED: Final = {
    ("tool_choice", None, "cohere-chat"),
    *(("tool_choice: some tools", None, target) for target in CONVERTED["tool_choice: some tools"]),
    *(("reasoning_budget", None, target) for target in CONVERTED["reasoning_budget"]),
    ("reasoning_effort", None, "cohere-chat"),
    ("reasoning_effort: none", None, "gemini"),
    *(("output_schema", source, target) for source in _WITH_NAMES for target in _NAMELESS),
}
"""Row, source (None is every source) and target of values that arrive in another form: their notes
state the difference."""

BACK: Final = {
    ("reasoning_effort", "cohere-chat"),
    ("reasoning_effort: none", "gemini"),
}
"""Row and dialect whose members are read as another row: as a budget, or as another effort."""

_CONTAINERS: Final = {
    "additionalModelRequestFields",
    "generationConfig",
    "inferenceConfig",
    "metadata",
    "options",
    "outputConfig",
    "output_config",
    "reasoning",
    "text",
    "thinkingConfig",
    "toolConfig",
}
"""Objects in a body that hold settings beside each other."""

_SHOWN: Final = {
    ("reasoning_summary", "openai-responses"): ["reasoning.summary"],
    ("reasoning_summary", "anthropic-messages"): ["thinking.display"],
    ("reasoning_summary", "bedrock-converse"): ["additionalModelRequestFields.thinking.display"],
    ("reasoning_summary", "gemini"): ["generationConfig.thinkingConfig.includeThoughts"],
}
"""Members of a row whose body has other settings beside it."""

_TABLES: Final = (
    ("openai-chat", "openai-responses", "mistral", "ollama"),
    ("anthropic-messages", "bedrock-converse", "gemini", "cohere-chat"),
)


def members_in(members: dict[str, Any], outer: str = "") -> list[str]:
    """Return the dotted names of the members that hold settings."""
    found: list[str] = []
    for name, value in members.items():
        path = f"{outer}{name}"
        is_container = name in _CONTAINERS and isinstance(value, dict) and path != "metadata"
        if is_container or (path == "metadata" and "user_id" in value):
            found += members_in(cast("dict[str, Any]", value), f"{path}.")
        else:
            found.append(path)
    return found


def converted(row: str, dialect: str) -> dict[str, Any] | None:
    """Return the members that a setting becomes in a dialect that cannot be its source."""
    return CONVERTED[row].get(dialect) if row in CONVERTED else None


def cell(row: str, dialect: str) -> str:
    """Return a cell of the table in docs/requests.md."""
    members = CELLS[row][dialect] or converted(row, dialect)
    if members is None:
        return "-"
    is_noted = CELLS[row][dialect] is None or (row, None, dialect) in NOTED
    paths = _SHOWN.get((row, dialect)) or members_in(members)
    shown = ", ".join(f"`{path}`" for path in paths)
    return f"≈ {shown}" if is_noted else shown


def tables() -> str:
    """Return the tables of docs/requests.md."""
    written: list[str] = []
    for dialects in _TABLES:
        lines = [f"| setting | {' | '.join(dialects)} |", "|---" * (len(dialects) + 1) + "|"]
        lines += [
            f"| `{row}` | {' | '.join(cell(row, dialect) for dialect in dialects)} |"
            for row in CELLS
            if ":" not in row
        ]
        written.append("\n".join(lines))
    return "\n\n".join(written)
