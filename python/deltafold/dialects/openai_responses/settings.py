"""Settings of openai-responses: OpenAI's Responses API."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from deltafold.dialects.portable import (
    at_least,
    read_text_format,
    within,
    words,
    write_logprobs,
    write_text_format,
)
from deltafold.dialects.reasoning import ANY_EFFORT, SUMMARY
from deltafold.dialects.settings import Flag, ModelConfig, Object, Positive
from deltafold.dialects.settings_table import (
    AS_MEMBER,
    COMMON,
    Conversion,
    Counterpart,
    SettingTable,
    converted,
    copied,
    each_stays,
    no_member,
    same,
    written,
)


class OpenAIResponsesConfig(ModelConfig):
    """Settings of openai-responses.

    >>> config = OpenAIResponsesConfig(
    ...     model_id="gpt-5.6-terra", reasoning={"effort": "low"}
    ... )
    >>> config.reasoning, config.store
    ({'effort': 'low'}, False)

    Attributes:
        store: whether the provider keeps the response. The default False makes each request
            self-contained. None sends no member, which means True at OpenAI.
        system_as_instructions: whether the first system message is sent as `instructions`, which do
            not carry over through `previous_response_id`; otherwise it is a message of the input.
        encrypted_reasoning: whether to ask for reasoning that can be sent back without being
            stored. None asks if `store` is False and the model reasons: `reasoning` is set, or the
            model has the name of a reasoning model. Other models refuse this request.
        reasoning: `{effort, summary}`.
        text: `{format, verbosity}`; structured output is a format.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system_as_instructions: bool = False
    store: Flag | None = False
    encrypted_reasoning: Flag | None = None
    reasoning: Object | None = None
    text: Object | None = None
    include: tuple[str, ...] | None = None
    parallel_tool_calls: Flag | None = None
    max_tool_calls: Positive | None = None
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=20)] | None = None
    previous_response_id: str | None = None
    conversation: str | Object | None = None
    truncation: Literal["auto", "disabled"] | None = None
    background: Flag | None = None
    metadata: Object | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    user: str | None = None

    @classmethod
    def _advice(cls, name: str) -> str:
        instead = _OF_CHAT.get(name, "")
        if instead is None:
            return ": Responses has no such setting; for Chat, load 'openai-chat/…'"
        return f"; use {instead}" if instead else super()._advice(name)


_OF_CHAT: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("seed", "frequency_penalty", "presence_penalty", "candidate_count")),
    **dict.fromkeys(("prediction", "modalities", "audio")),
    "verbosity": "text={'verbosity': …}",
    "response_format": "output_schema",
    "logprobs": "top_logprobs and include=('message.output_text.logprobs',)",
}
"""Settings of Chat, and what Responses has instead; None for nothing."""

_LOGPROBS: Final = "message.output_text.logprobs"


def _read_include(value: Sequence[str], conversion: Conversion) -> Mapping[str, object]:
    others = [word for word in value if word != _LOGPROBS]
    if others:
        conversion.drop(f"include ({', '.join(others)})", "items of this API")
    return {"logprobs": True} if _LOGPROBS in value else {}


def _write_include(values: Mapping[str, Any], conversion: Conversion) -> object:
    return (_LOGPROBS,) if write_logprobs(values, conversion) else None


def _read_summary(value: object, conversion: Conversion) -> Mapping[str, object]:
    if value != "auto":
        conversion.change(SUMMARY, f"the length {value} is a word of this API")
    return {SUMMARY: True}


def _write_summary(values: Mapping[str, Any], _conversion: Conversion) -> object:
    return "auto" if values[SUMMARY] else None


_TIERS: Final = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")
_HERE: Final = "a function of this API"
_STORED: Final = "the provider has the earlier conversation, and the messages do not"


SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("top_p", "top_logprobs", "parallel_tool_calls", "store", "metadata"),
    **same("prompt_cache_key", "safety_identifier", "user"),
    **each_stays(_STORED, same("previous_response_id", "conversation")),
    **each_stays(_HERE, same("max_tool_calls", "truncation", "background")),
    "temperature": copied("temperature").means(within("temperature", 0, 2)),
    "max_tokens": copied("max_output_tokens").means(at_least("max_tokens", 16)),
    "stop_sequences": no_member("the API has no stop sequences"),
    "service_tier": copied("service_tier").means(
        words("service_tier", {word: word for word in _TIERS})
    ),
    "tool_choice": converted("tool_choice"),
    "reasoning": copied("reasoning").means(
        replace(ANY_EFFORT, member=("effort",)),
        Counterpart((SUMMARY,), ("summary",), _read_summary, _write_summary),
    ),
    "reasoning_effort": written("reasoning", "include", reason=AS_MEMBER),
    "text": copied("text").means(
        Counterpart(("output_schema",), ("format",), read_text_format, write_text_format),
        Counterpart(("verbosity",), ("verbosity",)),
    ),
    "output_schema": written("text", reason=AS_MEMBER),
    "include": converted("include").means(
        Counterpart(("logprobs", "top_logprobs"), (), _read_include, _write_include)
    ),
    "encrypted_reasoning": converted("include").shapes("asks for reasoning in this API's form"),
    "system_as_instructions": converted("instructions", "input").shapes(
        "selects the member of the first system message"
    ),
}
"""Counterpart of each setting in the request body."""
