"""Settings of openai-chat: OpenAI's Chat Completions API."""

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from deltafold.dialects.portable import (
    LOGPROBS,
    RESPONSE_FORMAT,
    at_most_stops,
    only_words,
    within,
)
from deltafold.dialects.reasoning import ANY_EFFORT, CHAT_THINKING
from deltafold.dialects.settings import Flag, ModelConfig, Object, Penalty, Positive, Whole
from deltafold.dialects.settings_table import (
    AS_MEMBER,
    COMMON,
    SettingTable,
    converted,
    copied,
    no_member,
    same,
    written,
)


class OpenAIChatConfig(ModelConfig):
    """Settings of openai-chat.

    >>> from deltafold.dialects import dialect_of
    >>> config = OpenAIChatConfig(model_id="gpt-5.6-terra", max_tokens=100)
    >>> rendered = dialect_of("openai-chat").render([Message.user("Hi")], [], config)
    >>> rendered.body["max_completion_tokens"]
    100

    Attributes:
        thinking: `{type: "enabled" | "disabled"}`, by which DeepSeek, Moonshot and Z.ai switch
            thinking; `reasoning_effort="none"` becomes it at these vendors.
        candidate_count: the provider's `n`.
        replay_reasoning: the member in which this vendor wants its reasoning back; None, as OpenAI
            wants it, sends none.
        system_messages: "first" for a server whose chat template takes one system message, at the
            beginning; later ones become marked texts of the user. "anywhere" sends them where they
            stand; None decides by the model.
        replay_reasoning_turns: the turns whose reasoning is sent: those of the open tool loop;
            those with tool calls too, and every turn of a request with tools; or all.
        reasoning_placeholder: text of `replay_reasoning` in a message of a tool turn, and of a
            request with tools, that has no reasoning: it was empty, or another model wrote the
            message. None sends no reasoning there.
        joined_choices: whether the choices of an answer are pieces of one: this vendor writes its
            text and each of its calls as separate choices. Ignored if several answers are asked
            for.
        lone_references: whether a `$ref` in a schema of a tool or of the output has nothing beside
            it, and points into `$defs`: this vendor refuses other references. The keywords beside
            one go into a definition of its own. A `type` beside `anyOf` or `oneOf` goes into their
            branches, except at the root.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    thinking: Object | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    seed: Whole | None = None
    candidate_count: Positive | None = None
    parallel_tool_calls: Flag | None = None
    verbosity: str | None = None
    response_format: Object | None = None
    service_tier: str | None = None
    logprobs: Flag | None = None
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=20)] | None = None
    metadata: Object | None = None
    store: Flag | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    user: str | None = None
    prediction: Object | None = None
    modalities: tuple[str, ...] | None = None
    audio: Object | None = None
    max_tokens_member: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens"
    include_usage: bool = True
    system_messages: Literal["anywhere", "first"] | None = None
    replay_reasoning: (
        Literal["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"] | None
    ) = None
    replay_reasoning_turns: Literal["open", "tool_turns", "all"] = "open"
    reasoning_placeholder: str | None = None
    joined_choices: bool = False
    lone_references: bool = False


_FORM: Final = "selects the form of a Chat body"

SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("top_p", "seed", "parallel_tool_calls", "verbosity", "service_tier"),
    **same("top_logprobs", "metadata", "store", "prompt_cache_key", "safety_identifier", "user"),
    **same("prediction"),
    "temperature": copied("temperature").means(within("temperature", 0, 2)),
    "frequency_penalty": copied("frequency_penalty").means(within("frequency_penalty", -2, 2)),
    "presence_penalty": copied("presence_penalty").means(within("presence_penalty", -2, 2)),
    "stop_sequences": copied("stop").means(at_most_stops(4)),
    "candidate_count": copied("n"),
    "max_tokens": converted("max_completion_tokens", "max_tokens"),
    "max_tokens_member": no_member("selects the member of max_tokens").shapes(_FORM),
    "logprobs": copied("logprobs").means(LOGPROBS),
    "reasoning_effort": copied("reasoning_effort").means(ANY_EFFORT),
    "thinking": copied("thinking").means(CHAT_THINKING),
    "response_format": copied("response_format").means(RESPONSE_FORMAT),
    "output_schema": written("response_format", reason=AS_MEMBER),
    "modalities": copied("modalities").means(only_words("modalities", "text", "audio")),
    "audio": copied("audio").stays("voice and format of OpenAI's audio"),
    "include_usage": converted("stream_options").shapes("every other API sends usage unasked"),
    "tool_choice": converted("tool_choice"),
    "system_messages": no_member("selects the form of later system messages").shapes(_FORM),
    "replay_reasoning": no_member(
        "selects the member of assistant messages that has reasoning"
    ).shapes(_FORM),
    "replay_reasoning_turns": no_member(
        "selects the assistant messages that have reasoning"
    ).shapes(_FORM),
    "reasoning_placeholder": no_member("text of assistant messages without reasoning").shapes(
        _FORM
    ),
    "joined_choices": no_member("selects the form of the answer").shapes(_FORM),
    "lone_references": no_member("selects the form of references in schemas").shapes(_FORM),
}
"""Counterpart of each setting in the request body."""
