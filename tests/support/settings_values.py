"""A value for each setting of each dialect, for tests that walk the tables of settings.

In: the row of a dialect and the name of a setting.  Out: a value that is not the default.
"""

from typing import Any, Final

from deltafold.dialects import Dialect

VALUES: Final[dict[str, Any]] = {
    "temperature": 0.5,
    "max_tokens": 77,
    "top_p": 0.25,
    "top_k": 7,
    "seed": 11,
    "stop_sequences": ("END", "STOP"),
    "frequency_penalty": 0.25,
    "presence_penalty": 0.75,
    "tool_choice": {"mode": "required"},
    "provider_tools": ({"type": "server_tool"},),
    "provider_tool_positions": (0,),
    "system_as_instructions": True,
    "cache_config": {"strategy": "auto", "lifetime": "1h"},
    "extra_body": {"extra": 1},
    "extra_headers": {"x-own": "1"},
    "extra_query": {"q": "1"},
    "parallel_tool_calls": False,
    "thinking": {"type": "enabled"},
    "metadata": {"user": "u"},
    "service_tier": "flex",
    "reasoning_effort": "low",
    "output_schema": {"json_schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
    "candidate_count": 2,
    "top_logprobs": 3,
    "logprobs": True,
    "store": True,
    "modalities": ("text", "audio"),
    "include": ("message.output_text.logprobs",),
    "max_tool_calls": 4,
    "truncation": "auto",
    "background": True,
    "encrypted_reasoning": True,
    "include_usage": False,
    "max_tokens_member": "max_tokens",
    "replay_reasoning": "reasoning_content",
    "replay_reasoning_turns": "all",
    "system_messages": "first",
    "reasoning_placeholder": " ",
    "joined_choices": True,
    "strict_settings": True,
    "lone_references": True,
    "response_modalities": ("TEXT", "IMAGE"),
    "safety_settings": ({"category": "c"},),
    "additional_model_response_field_paths": ("/path",),
    "guardrails": ({"block": True},),
    "documents": ("a document", {"data": {"text": "another"}}),
    "strict_tools": True,
    "priority": 2,
    "safe_prompt": True,
    "request_metadata": {"team": "t"},
    "think": "low",
    "format": "json",
    "keep_alive": "5m",
    "truncate": False,
    "shift": False,
    "do_sample": True,
    "num_beams": 2,
    "min_p": 0.5,
    "no_repeat_ngram_size": 3,
    "repetition_penalty": 1.5,
}
"""A value for each setting that is neither free text nor an object."""

OWN_VALUES: Final[dict[str, dict[str, Any]]] = {
    "bedrock-converse": {
        "provider_tools": ({"systemTool": {"name": "search"}},),
        "service_tier": {"type": "flex"},
    },
    "gemini": {
        "provider_tools": ({"googleSearch": {}},),
        "generation_config": {"audioTimestamp": True},
        "tool_config": {"retrievalConfig": {"languageCode": "de"}},
    },
    "ollama": {"options": {"num_ctx": 4096}},
}
"""Values that differ in one dialect."""


def value_of(row: Dialect, name: str) -> object:
    """Return a value for a setting; free text and objects are made from the type of the field."""
    own = OWN_VALUES.get(row.name, {})
    if name in own or name in VALUES:
        return own.get(name, VALUES.get(name))
    is_object = "dict" in str(row.config_class.model_fields[name].annotation)
    return {"member": name} if is_object else name


def beside(row: Dialect, name: str) -> dict[str, object]:
    """Return the setting without which this one changes nothing."""
    if name == "provider_tool_positions":
        return {"provider_tools": value_of(row, "provider_tools")}
    return {}
