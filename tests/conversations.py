"""Conversations that every dialect must be able to say, one table for all of them.

In: a dialect.  Out: messages, tools and settings; `tests/requests/<dialect>/<name>.json` holds what
becomes of them.

Law: what is the provider's own in a conversation (signatures, encrypted reasoning) has the form in
which the decoder of the dialect leaves it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltafold import (
    CacheConfig,
    FileRefPart,
    ImagePart,
    Message,
    ThinkingPart,
    ToolCallPart,
    ToolChoice,
    ToolSpec,
)
from deltafold.dialects import CONFIGS, Rendered, config_class, dialect_of
from deltafold.models import ModelConfig

GOLDEN = Path(__file__).parent / "requests"
DIALECTS = list(CONFIGS)

MODELS = {
    "anthropic-messages": "claude-opus-4-8",
    "openai-chat": "gpt-5.2",
    "openai-responses": "gpt-5.2",
    "gemini": "gemini-3-pro-preview",
    "bedrock-converse": "anthropic.claude-opus-4-8:0",
    "ollama": "qwen3",
    "cohere-chat": "command-a-03-2026",
    "mistral": "magistral-medium-latest",
}

PNG = "iVBORw0KGgo="
PDF = "data:application/pdf;name=report.pdf;base64,JVBERi0="
WEATHER = ToolSpec(
    name="weather",
    description="The weather in a city",
    parameter_schema={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
)
TIME = ToolSpec(name="time", parameter_schema={"type": "object", "properties": {}})


@dataclass(frozen=True)
class Case:
    """One conversation.

    Attributes:
        messages: the conversation, given the dialect that it is rendered in.
        settings: what all configurations have in common.
        own: further settings of a dialect.
    """

    name: str
    messages: Callable[[str], Sequence[Message]]
    tools: Sequence[ToolSpec] = ()
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    own: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])

    def config(self, dialect: str) -> ModelConfig:
        fields = {"model_id": MODELS[dialect], **self.settings, **self.own.get(dialect, {})}
        return config_class(dialect).model_validate(fields)

    def render(self, dialect: str) -> Rendered:
        module = dialect_of(dialect)
        return module.render(self.messages(dialect), self.tools, self.config(dialect))

    def golden(self, dialect: str) -> Path:
        return GOLDEN / dialect / f"{self.name}.json"


def state(dialect: str, data: Mapping[str, object], model_id: str = "") -> dict[str, object]:
    return {"dialect": dialect, "modelId": model_id or MODELS[dialect], "data": dict(data)}


SIGNED: Mapping[str, Mapping[str, object]] = {
    "anthropic-messages": {"signature": "c2ln"},
    "openai-chat": {"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2ln"}]},
    "openai-responses": {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Both at once."}],
        "encrypted_content": "c2ln",
    },
    "gemini": {"thoughtSignature": "c2ln"},
    "bedrock-converse": {"signature": "c2ln"},
    "cohere-chat": {"type": "tool_plan"},
    "mistral": {"type": "thinking", "signature": "c2ln", "closed": True},
}


def thought(dialect: str, text: str = "Both at once.", model_id: str = "") -> ThinkingPart:
    """Make the reasoning of a model as its decoder leaves it."""
    data = SIGNED.get(dialect)
    signed = None if data is None else state(dialect, data, model_id)
    return ThinkingPart(text=text, provider_state=signed)


def call(call_id: str, name: str = "weather", raw: str = '{"city": "Brest"}') -> ToolCallPart:
    return ToolCallPart(tool_call_id=call_id, tool_name=name, raw_args_text=raw)


def own_call(dialect: str, call_id: str, model_id: str = "") -> ToolCallPart:
    """Make the first call of a turn as the decoder leaves it: Gemini signs it."""
    made = call(call_id)
    if dialect != "gemini":
        return made
    signed = state(dialect, {"thoughtSignature": "c2ln"}, model_id)
    return made.model_copy(update={"provider_state": signed})


def rich(dialect: str) -> list[Message]:
    return [
        Message.system("Be brief."),
        Message.user(
            "What do you see?",
            ImagePart(mime_type="image/png", data=PNG),
            FileRefPart(path=PDF, mime_type="application/pdf"),
        ),
        Message.assistant(
            thought(dialect),
            "Looking.",
            own_call(dialect, "call_1"),
            call("call_2", "time", "{}"),
        ),
        Message.tool_result("call_1", "rain"),
        Message.tool_result("call_2", {"hour": 9}, is_error=True),
    ]


CASES = [
    Case(
        "rich",
        rich,
        (WEATHER, TIME),
        {
            "temperature": 0.5,
            "max_tokens": 2048,
            "top_p": 0.9,
            "stop_sequences": ("END",),
            "tool_choice": ToolChoice.tool("weather"),
            "cache_config": CacheConfig(lifetime="1h"),
        },
        {
            "anthropic-messages": {
                "top_k": 40,
                "thinking": {"type": "adaptive"},
                "output_config": {
                    "effort": "high",
                    "format": {"type": "json_schema", "schema": {"type": "object"}},
                },
                "metadata": {"user_id": "u"},
                "parallel_tool_calls": True,
            },
            "openai-chat": {
                "reasoning_effort": "high",
                "seed": 7,
                "response_format": {"type": "json_object"},
                "metadata": {"user": "u"},
                "parallel_tool_calls": True,
            },
            "openai-responses": {
                "reasoning": {"effort": "high", "summary": "auto"},
                "text": {"format": {"type": "json_object"}},
                "metadata": {"user": "u"},
                "parallel_tool_calls": True,
            },
            "gemini": {
                "top_k": 40,
                "seed": 7,
                "thinking": {"includeThoughts": True, "thinkingLevel": "HIGH"},
                "response_schema": {"type": "object"},
            },
            "bedrock-converse": {
                "additional_model_request_fields": {"thinking": {"type": "adaptive"}},
                "request_metadata": {"user": "u"},
            },
            "ollama": {"top_k": 40, "seed": 7, "think": "high", "format": "json"},
            "cohere-chat": {
                "top_k": 40,
                "seed": 7,
                "thinking": {"type": "enabled", "token_budget": 1024},
                "response_format": {"type": "json_object"},
            },
            "mistral": {
                "seed": 7,
                "prompt_mode": "reasoning",
                "response_format": {"type": "json_object"},
                "metadata": {"user": "u"},
            },
        },
    ),
]
"""All conversations."""


def golden_of(case: Case, dialect: str) -> dict[str, Any]:
    """Return what a golden file holds: the request, and what it does not say."""
    rendered = case.render(dialect)
    whole: dict[str, Any] = {
        "path": dialect_of(dialect).request_path(case.config(dialect), stream=True),
        "body": rendered.body,
        "notes": list(rendered.notes),
        "toolNames": dict(rendered.tool_names),
        "callIds": dict(rendered.call_ids),
    }
    return {name: value for name, value in whole.items() if value}


def bless() -> None:
    """Rewrite all golden files from what the code does now."""
    for dialect in DIALECTS:
        (GOLDEN / dialect).mkdir(parents=True, exist_ok=True)
        for case in CASES:
            text = json.dumps(golden_of(case, dialect), indent=2, ensure_ascii=False)
            case.golden(dialect).write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    bless()
