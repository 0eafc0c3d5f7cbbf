"""Renderer of the input of a `transformers` chat template and of `generate`.

Laws: the conversation has the form of openai-chat, which chat templates expect. The arguments of a
call are an object instead of its text. Settings have the names of `GenerationConfig`.
Source: the transformers documentation, chat templates and tool use, 5.x (read 2026-11).
"""

import json
from typing import Any, Final, cast

from deltafold.dialects.local.settings import SETTINGS, LocalConfig
from deltafold.dialects.openai_chat import render as openai_chat
from deltafold.dialects.openai_chat.settings import OpenAIChatConfig
from deltafold.dialects.rendered import NoteCode, Object, Rendering, given

DIALECT: Final = openai_chat.DIALECT
"""Dialect of the chunks that the generated text is wrapped in."""

DEFAULT_MAX_TOKENS: Final = 1024
"""`generate` would stop after 20 tokens."""


IDENTIFIERS: Final = openai_chat.IDENTIFIERS


def body_of(rendering: Rendering, config: LocalConfig) -> Object:
    """Return `messages` and `tools` for the template, and `generation` for the model."""
    own = OpenAIChatConfig(model_id=config.model_id)
    chat = openai_chat.body_of(rendering.with_config(own), own)
    if config.tool_choice is not None and config.tool_choice.mode != "auto":
        rendering.note(NoteCode.SETTING_DROPPED, "a template has no tool_choice")
    if config.provider_tools:
        rendering.note(NoteCode.SETTING_DROPPED, "a template has no provider_tools")
    sampled = config.do_sample
    if sampled is None:
        sampled = config.temperature is not None and config.temperature > 0
    generation = given(
        {
            "max_new_tokens": config.max_tokens or DEFAULT_MAX_TOKENS,
            "do_sample": sampled,
            "temperature": config.temperature if sampled else None,
        }
    )
    settings = rendering.settings(SETTINGS)
    generation |= cast("Object", settings.pop("generation", {}))
    return {
        "messages": [_with_objects(turn) for turn in cast("list[Object]", chat["messages"])],
        "tools": chat.get("tools"),
        "generation": generation | dict(config.extra_body),
        "seed": None,
        **settings,
    }


def _with_objects(turn: Object) -> Object:
    """Parse the arguments of a turn's calls."""
    calls = cast("list[dict[str, Any]] | None", turn.get("tool_calls"))
    if not calls:
        return turn
    parsed = [
        {**call, "function": {**function, "arguments": json.loads(function["arguments"])}}
        for call in calls
        if (function := call.get("function")) is not None
    ]
    return {**turn, "tool_calls": parsed}
