"""Cost of a call: from the bytes of a usage record to US dollars, each token charged once.

The counts are those of the reports that got it wrong; the prices are those of the installed list,
so that a row reads: so many tokens at the price of input, so many at that of a cache read, and so
on.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

import deltafold
from any_name import AnyName
from deltafold import Usage
from deltafold.message.cost import Cost, Prices, cost_of, listed_model


def anthropic(start: Mapping[str, object], delta: Mapping[str, object]) -> bytes:
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {"id": "m", "model": "m", "usage": start}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": delta},
        {"type": "message_stop"},
    ]
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


def chat(usage: dict[str, object]) -> bytes:
    chunk: dict[str, object] = {
        "id": "c",
        "choices": [{"delta": {}, "finish_reason": "stop"}],
        "usage": usage,
    }
    return b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(chunk).encode()


def gemini(usage: dict[str, object]) -> bytes:
    chunk = {
        "candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}],
        "usageMetadata": usage,
    }
    return b"data: %b\n\n" % json.dumps(chunk).encode()


@dataclass(frozen=True)
class Golden:
    """Bytes, and the tokens that are to be charged at each price."""

    dialect: AnyName
    vendor: str
    model_id: str
    body: bytes
    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


GOLDEN = {
    "no cache": Golden(
        "openai-chat",
        "openai",
        "gpt-5",
        chat({"prompt_tokens": 1000, "completion_tokens": 100}),
        input=1000,
        output=100,
    ),
    "cached tokens are part of the prompt": Golden(
        "openai-chat",
        "openai",
        "gpt-5",
        chat(
            {
                "prompt_tokens": 1000,
                "completion_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 800},
            }
        ),
        input=200,
        output=100,
        cache_read=800,
    ),
    "reasoning is part of the output": Golden(
        "openai-chat",
        "openai",
        "gpt-5",
        chat(
            {
                "prompt_tokens": 1000,
                "completion_tokens": 300,
                "completion_tokens_details": {"reasoning_tokens": 250},
            }
        ),
        input=1000,
        output=300,
    ),
    "cached tokens stand beside the prompt": Golden(
        "anthropic-messages",
        "anthropic",
        "claude-sonnet-4-5",
        anthropic(
            {
                "input_tokens": 200,
                "cache_read_input_tokens": 800,
                "cache_creation_input_tokens": 100,
                "output_tokens": 1,
            },
            {"output_tokens": 100},
        ),
        input=200,
        output=100,
        cache_read=800,
        cache_write=100,
    ),
    "counts told twice are charged once": Golden(
        "anthropic-messages",
        "anthropic",
        "claude-sonnet-4-5",
        anthropic(
            {"input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 1},
            {"input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 100},
        ),
        input=200,
        output=100,
        cache_read=800,
    ),
    "everything from the cache": Golden(
        "anthropic-messages",
        "anthropic",
        "claude-sonnet-4-5",
        anthropic(
            {"input_tokens": 0, "cache_read_input_tokens": 1000, "output_tokens": 1},
            {"output_tokens": 10},
        ),
        input=0,
        output=10,
        cache_read=1000,
    ),
    "thoughts stand beside the candidates": Golden(
        "gemini",
        "google",
        "gemini-2.5-flash",
        gemini(
            {
                "promptTokenCount": 1000,
                "cachedContentTokenCount": 800,
                "candidatesTokenCount": 100,
                "thoughtsTokenCount": 50,
                "totalTokenCount": 1150,
            }
        ),
        input=200,
        output=150,
        cache_read=800,
    ),
    "old names of cached tokens": Golden(
        "openai-chat",
        "deepseek",
        "deepseek-chat",
        chat(
            {
                "prompt_tokens": 1000,
                "completion_tokens": 100,
                "prompt_cache_hit_tokens": 800,
                "prompt_cache_miss_tokens": 200,
            }
        ),
        input=200,
        output=100,
        cache_read=800,
    ),
}


@pytest.mark.parametrize("golden", GOLDEN.values(), ids=list(GOLDEN))
def test_each_token_is_charged_once_at_its_own_price(golden: Golden) -> None:
    listed = listed_model(golden.vendor, golden.model_id)
    assert listed is not None
    prices = listed.prices
    per_million = (
        golden.input * (prices.input or 0)
        + golden.output * (prices.output or 0)
        + golden.cache_read * (prices.cache_read or 0)
        + golden.cache_write * (prices.cache_write or 0)
    )
    usage = deltafold.fold(golden.body, golden.dialect).meta.usage
    cost = cost_of(usage, golden.vendor, golden.model_id)
    assert cost.source == "genai-prices"
    assert cost.usd == pytest.approx(per_million / 1e6)
    assert per_million > 0


def test_a_cache_entry_that_lives_for_an_hour_costs_more() -> None:
    written = {"input_tokens": 0, "cache_creation_input_tokens": 1000, "output_tokens": 0}
    hour = {**written, "cache_creation": {"ephemeral_1h_input_tokens": 1000}}
    costs = [
        cost_of(
            deltafold.fold(anthropic(usage, {"output_tokens": 0}), "anthropic-messages").meta.usage,
            "anthropic",
            "claude-sonnet-4-5",
        ).usd
        for usage in (written, hour)
    ]
    assert costs[0] is not None
    assert costs[1] is not None
    assert costs[1] > costs[0] > 0


def test_a_cost_that_the_provider_states_wins() -> None:
    usage = Usage(input_tokens=1000, output_tokens=1000, total_tokens=2000, cost=0.25)
    assert cost_of(usage, "openai", "gpt-5") == Cost(0.25, "provider")
    stated_zero = Usage(input_tokens=1, output_tokens=1, total_tokens=2, cost=0.0)
    assert cost_of(stated_zero, "openai", "gpt-5") == Cost(0.0, "provider")


@pytest.mark.parametrize(
    ("usage", "vendor", "model_id"),
    [
        (None, "openai", "gpt-5"),
        (Usage(), "openai", "gpt-5"),
        (Usage(input_tokens=1, output_tokens=1), "openai", "no-such-model"),
        (Usage(input_tokens=1, output_tokens=1), "nobody", "gpt-5"),
        (Usage(input_tokens=1, output_tokens=1), "", ""),
        (Usage(input_tokens=1, output_tokens=1, cache_read_tokens=5), "openai", "gpt-5"),
    ],
)
def test_what_is_not_known_is_none_and_never_zero(
    usage: Usage | None, vendor: str, model_id: str
) -> None:
    assert cost_of(usage, vendor, model_id) == Cost(None, None)


def test_model_info_shows_the_listed_window_and_prices() -> None:
    info = deltafold.load_model("anthropic/claude-sonnet-4-5").model_info()
    assert info.context_window_tokens == 200_000
    assert info.prices is not None
    assert (info.prices.input, info.prices.output) == (3.0, 15.0)
    assert deltafold.load_model("anthropic/unheard-of").model_info().prices is None


def test_vendors_have_the_names_of_the_price_list() -> None:
    for vendor, model_id in (
        ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("google-vertex", "gemini-2.5-flash"),
        ("moonshot", "kimi-k2-0905-preview"),
        ("xai", "grok-4-0709"),
    ):
        listed = listed_model(vendor, model_id)
        assert listed is not None, vendor
        assert listed.prices != Prices()
