"""Cost of an answer beside the price list's own reading of it, and what a cost leaves out.

The price list has extractors for bodies, and prices by tier, speed and batch. The number that
deltafold computes of a folded answer is the one that these give for the body.
"""

import json
import warnings
from dataclasses import dataclass
from typing import Any

import pytest

import deltafold
from any_name import AnyName
from deltafold import Message, Usage
from deltafold.message.cost import Cost, cost_of
from deltafold.models import AnthropicModel
from deltafold.testing import Recording, ReplayServer

genai_prices: Any = pytest.importorskip("genai_prices")

Body = dict[str, Any]


def messages(usage: Body) -> Body:
    said = {"content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-opus-4-8"}
    return {**head, **said, "usage": usage}


def chat(model: str, usage: Body, **members: object) -> Body:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "Hi"},
        "finish_reason": "stop",
    }
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": model}
    return {**head, "choices": [choice], "usage": usage, **members}


SAID: Body = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
}


def response(model: str, *items: Body, **members: object) -> Body:
    head = {"id": "r", "object": "response", "created_at": 1, "status": "completed"}
    return {**head, "model": model, "output": [*items, SAID], "usage": RESPONSES, **members}


def gemini(usage: Body, model: str) -> Body:
    candidate = {"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


MESSAGES: Body = {"input_tokens": 1000, "output_tokens": 2000}
CHAT: Body = {"prompt_tokens": 1000, "completion_tokens": 2000, "total_tokens": 3000}
RESPONSES: Body = {
    "input_tokens": 1000,
    "output_tokens": 2000,
    "total_tokens": 3000,
    "input_tokens_details": {"cached_tokens": 500},
    "output_tokens_details": {"reasoning_tokens": 700},
}
GEMINI: Body = {"promptTokenCount": 1000, "candidatesTokenCount": 2000, "totalTokenCount": 3000}
AN_HOUR: Body = {
    "cache_read_input_tokens": 50_000,
    "cache_creation_input_tokens": 30_000,
    "cache_creation": {
        "ephemeral_5m_input_tokens": 10_000,
        "ephemeral_1h_input_tokens": 20_000,
    },
}
SEARCHES: Body = {"server_tool_use": {"web_search_requests": 10, "web_fetch_requests": 3}}
BEDROCK: Body = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
    "stopReason": "end_turn",
    "usage": {
        "inputTokens": 1000,
        "outputTokens": 2000,
        "totalTokens": 33_000,
        "cacheReadInputTokens": 10_000,
        "cacheWriteInputTokens": 20_000,
        "cacheDetails": [
            {"ttl": "1h", "inputTokens": 15_000},
            {"ttl": "5m", "inputTokens": 5000},
        ],
    },
}
COHERE: Body = {
    "id": "x",
    "finish_reason": "COMPLETE",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
    "usage": {
        "billed_units": {"input_tokens": 100, "output_tokens": 20},
        "tokens": {"input_tokens": 1500, "output_tokens": 25},
        "cached_tokens": 1000,
    },
}
RESEARCH: Body = {
    "reasoning_tokens": 4000,
    "citation_tokens": 3000,
    "num_search_queries": 20,
}


def modal(name: str, **counts: int) -> Body:
    """Return a list of Gemini's counts by modality."""
    return {name: [{"modality": kind, "tokenCount": count} for kind, count in counts.items()]}


@dataclass(frozen=True)
class Case:
    """A body, and how the price list is asked about it."""

    dialect: str
    vendor: str
    provider: str
    flavor: str
    model_id: str
    body: Body
    context: dict[str, str] | None = None


def claude(usage: Body, **context: str) -> Case:
    model = "claude-opus-4-8"
    body = messages({**MESSAGES, **usage})
    return Case(
        "anthropic-messages", "anthropic", "anthropic", "default", model, body, context or None
    )


def openai_chat(tier: str) -> Case:
    body = chat("gpt-5", CHAT, service_tier=tier)
    context = {"service_tier": tier}
    return Case("openai-chat", "openai", "openai", "chat", "gpt-5", body, context)


def openai_responses(tier: str) -> Case:
    body = response("gpt-5.5", service_tier=tier)
    context = {"service_tier": tier}
    return Case("openai-responses", "openai", "openai", "responses", "gpt-5.5", body, context)


def google(usage: Body, model: str = "gemini-2.5-flash", **context: str) -> Case:
    body = gemini({**GEMINI, **usage}, model)
    return Case("gemini", "google", "google", "default", model, body, context or None)


def vendor(name: str, provider: str, model: str, usage: Body, flavor: str = "chat") -> Case:
    body = chat(model, {**CHAT, **usage})
    dialect = "mistral" if name == "mistral" else "openai-chat"
    return Case(dialect, name, provider, flavor, model, body)


CACHED: Body = {"prompt_tokens_details": {"cached_tokens": 500}}
AUDIO: Body = {
    "prompt_tokens_details": {"audio_tokens": 600},
    "completion_tokens_details": {"audio_tokens": 1500, "reasoning_tokens": 0},
}
WRITTEN: Body = {"prompt_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 400}}
REASONED: Body = {
    "total_tokens": 3500,
    "completion_tokens_details": {"reasoning_tokens": 500},
    "prompt_tokens_details": {"cached_tokens": 100},
}
THOUGHTS: Body = {
    "thoughtsTokenCount": 500,
    "cachedContentTokenCount": 400,
    "totalTokenCount": 3500,
}
MIXED = modal("promptTokensDetails", TEXT=100, AUDIO=900)
PICTURE = modal("candidatesTokensDetails", IMAGE=1290)
SPEAKER = "gemini-3.8-flash-tts"

CASES = {
    "messages": claude({}),
    "messages, entries of an hour": claude(AN_HOUR),
    "messages, web searches": claude(SEARCHES),
    "messages, fast": claude({"speed": "fast"}, speed="fast"),
    "messages, batch": claude({"service_tier": "batch"}, processing="batch"),
    "messages, standard tier": claude({"service_tier": "standard"}),
    **{f"chat, {tier}": openai_chat(tier) for tier in ("default", "flex", "priority", "fast")},
    **{
        f"responses, {tier}": openai_responses(tier)
        for tier in ("default", "flex", "priority", "fast")
    },
    "chat, audio": vendor("openai", "openai", "gpt-audio", AUDIO),
    "chat, cache write": vendor("openai", "openai", "gpt-5.6", WRITTEN),
    "gemini, thoughts": google(THOUGHTS),
    "gemini, audio": google(MIXED),
    "gemini, cached audio": google(
        {**MIXED, "cachedContentTokenCount": 800, **modal("cacheTokensDetails", AUDIO=800)}
    ),
    "gemini, image": google(PICTURE, "gemini-2.5-flash-image"),
    "gemini, image of 3": google(PICTURE, "gemini-3-pro-image-preview"),
    "gemini, speech": google(
        modal("candidatesTokensDetails", AUDIO=2000), "gemini-2.5-flash-preview-tts"
    ),
    "gemini, prompt of tools": google({"toolUsePromptTokenCount": 5000}),
    "gemini, flex": google({"serviceTier": "FLEX"}, SPEAKER, service_tier="flex"),
    "gemini, priority": google({"serviceTier": "PRIORITY"}, SPEAKER, service_tier="priority"),
    "cohere": Case("cohere-chat", "cohere", "cohere", "default", "command-a-03-2025", COHERE),
    "bedrock, entries of an hour": Case(
        "bedrock-converse", "bedrock", "aws", "default", "us.anthropic.claude-opus-4-8", BEDROCK
    ),
    "xai, reasoning": vendor("xai", "x-ai", "grok-4", REASONED),
    "perplexity": vendor("perplexity", "perplexity", "sonar-deep-research", RESEARCH, "default"),
    "groq": vendor("groq", "groq", "openai/gpt-oss-120b", CACHED, "default"),
    "mistral": vendor("mistral", "mistral", "mistral-large-latest", CACHED, "default"),
    "deepseek": vendor("deepseek", "deepseek", "deepseek-chat", CACHED),
    "moonshot": vendor("moonshot", "moonshotai", "kimi-k2.5", {**CACHED, "cached_tokens": 500}),
    "messages of vertex": Case(
        "anthropic-messages",
        "google-vertex",
        "google",
        "anthropic",
        "claude-opus-4-8",
        messages({**MESSAGES, **AN_HOUR}),
    ),
    "responses of azure": Case(
        "openai-responses", "azure", "azure", "responses", "gpt-5", response("gpt-5")
    ),
}


def usage_of(body: Body, dialect: AnyName) -> Usage:
    usage = deltafold.fold(json.dumps(body).encode(), dialect).meta.usage
    assert usage is not None
    return usage


def listed(case: Case) -> float:
    """Return the cost by the extractor and the prices of the list alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = genai_prices.extract_usage(
            {**case.body, "model": case.model_id, "modelVersion": case.model_id},
            provider_id=case.provider,
            api_flavor=case.flavor,
        )
        return float(found.calc_price(price_context=case.context).total_price)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_cost_is_that_of_the_price_list(case: Case) -> None:
    cost = cost_of(usage_of(case.body, case.dialect), case.vendor, case.model_id)
    assert cost.source == "genai-prices"
    assert cost.usd == pytest.approx(listed(case))
    assert cost.unpriced == ()


def test_tiers_speeds_and_batches_have_prices_of_their_own() -> None:
    prices = {name: listed(case) for name, case in CASES.items()}
    assert prices["messages, batch"] < prices["messages"] < prices["messages, fast"]
    for name in ("chat", "responses"):
        tiers = [prices[f"{name}, {tier}"] for tier in ("flex", "default", "priority")]
        assert sorted(set(tiers)) == tiers


def test_the_tier_of_a_stream_is_in_the_details_of_its_usage() -> None:
    chunks: list[Body] = [
        {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": CHAT},
    ]
    by_tier: dict[str, Usage] = {}
    for tier in ("default", "flex"):
        bodies = [{"id": "c", "model": "gpt-5", "service_tier": tier, **chunk} for chunk in chunks]
        lines = [b"data: %b\n\n" % json.dumps(body).encode() for body in bodies]
        usage = deltafold.fold(b"".join([*lines, b"data: [DONE]\n\n"]), "openai-chat").meta.usage
        assert usage is not None
        by_tier[tier] = usage
    assert by_tier["default"].details == {"raw": CHAT}
    assert by_tier["flex"].details == {"service_tier": "flex", "raw": CHAT}
    body = chat("gpt-5", CHAT, service_tier="flex")
    assert cost_of(by_tier["flex"], "openai", "gpt-5") == cost_of(
        usage_of(body, "openai-chat"), "openai", "gpt-5"
    )


def test_a_batch_is_half_the_price() -> None:
    usage = Usage(input_tokens=1000, output_tokens=2000, total_tokens=3000)
    batch = usage.model_copy(update={"details": {"processing": "batch"}})
    half, whole = (cost_of(one, "openai", "gpt-5").usd for one in (batch, usage))
    assert whole is not None
    assert half == pytest.approx(whole / 2)


# OpenRouter with the caller's own key.

BYOK: Body = {
    **CHAT,
    "cost": 0.00165,
    "is_byok": True,
    "cost_details": {"upstream_inference_cost": 0.033},
}


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (BYOK, 0.03465),
        ({**BYOK, "is_byok": False}, 0.00165),
        ({**BYOK, "cost": 0}, 0.033),
        ({**BYOK, "cost_details": {"upstream_inference_cost": None}}, 0.00165),
        ({**BYOK, "cost_details": None}, 0.00165),
    ],
)
def test_an_own_key_costs_the_fee_and_what_the_provider_charges(usage: Body, usd: float) -> None:
    model = "anthropic/claude-sonnet-4.5"
    read = usage_of(chat(model, usage), "openai-chat")
    assert read.cost == usage["cost"]
    cost = cost_of(read, "openrouter", model)
    assert cost.usd == pytest.approx(usd)
    assert (cost.source, cost.unpriced) == ("provider", ())


# Iterations that the counts of an answer leave out.

COMPACTION: Body = {"type": "compaction", "input_tokens": 150_000, "output_tokens": 3500}
ANSWERED: Body = {"type": "message", "input_tokens": 4000, "output_tokens": 200}
COMPACTED: Body = {
    "input_tokens": 4000,
    "output_tokens": 200,
    "iterations": [COMPACTION, ANSWERED],
}


def advised(model: str) -> Body:
    advice = {"type": "advisor_message", "model": model, "input_tokens": 2543, "output_tokens": 18}
    return {**COMPACTED, "iterations": [ANSWERED, advice]}


def claude_cost(usage: Body) -> Cost:
    return cost_of(usage_of(messages(usage), "anthropic-messages"), "anthropic", "claude-opus-4-8")


def test_a_compaction_is_paid_for_and_is_not_part_of_the_context() -> None:
    usage = usage_of(messages(COMPACTED), "anthropic-messages")
    assert usage.input_tokens == 4000
    both = {"input_tokens": 154_000, "output_tokens": 3700}
    assert claude_cost(COMPACTED).usd == pytest.approx(claude_cost(both).usd)
    batch = claude_cost({**COMPACTED, "service_tier": "batch"}).usd
    assert batch == pytest.approx(claude_cost({**both, "service_tier": "batch"}).usd)


def test_an_advisor_is_paid_for_at_its_own_price() -> None:
    alone = claude_cost({**ANSWERED})
    advice = Usage(input_tokens=2543, output_tokens=18)
    haiku = cost_of(advice, "anthropic", "claude-haiku-4-5").usd
    assert alone.usd is not None
    assert haiku is not None
    assert claude_cost(advised("claude-haiku-4-5")).usd == pytest.approx(alone.usd + haiku)
    unknown = claude_cost(advised("claude-of-next-year"))
    assert unknown == Cost(alone.usd, "genai-prices", ("iterations[claude-of-next-year]",))


def test_a_model_that_declined_is_paid_for_at_its_own_price() -> None:
    declined = {"type": "message", "model": "claude-fable-5", "input_tokens": 535}
    served = {**ANSWERED, "type": "fallback_message", "model": "claude-opus-4-8"}
    cost = claude_cost({**ANSWERED, "iterations": [{**declined, "output_tokens": 7}, served]})
    attempt = Usage(input_tokens=535, output_tokens=7)
    of_declined = cost_of(attempt, "anthropic", "claude-fable-5").usd
    alone = claude_cost(ANSWERED).usd
    assert alone is not None
    assert of_declined is not None
    assert cost.usd == pytest.approx(alone + of_declined)


@pytest.mark.parametrize("iterations", [None, 5, {}, [], [None, 5], [{"type": "message"}]])
def test_iterations_that_say_nothing_cost_nothing(iterations: object) -> None:
    assert claude_cost({**ANSWERED, "iterations": iterations}) == claude_cost(ANSWERED)


# Lower bounds.


def searched(count: int) -> Body:
    action = {"type": "search", "query": "tide"}
    call = {"type": "web_search_call", "status": "completed", "action": action}
    return response("gpt-5", *({**call, "id": f"ws_{number}"} for number in range(count)))


def test_calls_that_are_billed_apart_make_a_lower_bound() -> None:
    usage = usage_of(searched(3), "openai-responses")
    assert usage.details is not None
    assert usage.details["billedCalls"] == {"web_search_call": 3}
    cost = cost_of(usage, "openai", "gpt-5")
    plain = cost_of(usage_of(response("gpt-5"), "openai-responses"), "openai", "gpt-5")
    assert (cost.usd, plain.is_lower_bound) == (plain.usd, False)
    assert cost.unpriced == ("web_search_call",)
    assert cost.is_lower_bound


def test_calls_that_a_response_states_twice_count_once() -> None:
    used: dict[str, Any] = {
        "web_search": {"num_requests": 3},
        "image_gen": {"output_tokens": 40, "details": {}},
    }
    usage = usage_of({**searched(2), "tool_usage": used}, "openai-responses")
    assert usage.details is not None
    assert usage.details["billedCalls"] == {"web_search_call": 3, "image_generation_call": 1}
    unused = {"web_search": {"num_requests": 0}, "image_gen": {"output_tokens": 0}, "new": None}
    usage = usage_of({**searched(0), "tool_usage": unused}, "openai-responses")
    assert usage.details == {"raw": RESPONSES}


GROUNDED = gemini(GEMINI, "gemini-2.5-flash")
GROUNDED["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["tide", "moon"]}


@pytest.mark.parametrize(
    ("vendor", "model_id", "dialect", "body", "unpriced"),
    [
        ("google", "gemini-2.5-flash", "gemini", GROUNDED, ("webSearchQueries",)),
        (
            "xai",
            "grok-4",
            "openai-chat",
            chat("grok-4", {**CHAT, "num_sources_used": 5}),
            ("num_sources_used",),
        ),
        (
            "anthropic",
            "claude-opus-4-8",
            "anthropic-messages",
            messages({**MESSAGES, "server_tool_use": {"new_tool_requests": 2}}),
            ("new_tool_requests",),
        ),
        (
            "anthropic",
            "claude-opus-4-8",
            "anthropic-messages",
            messages({**MESSAGES, "inference_geo": "us"}),
            ("inference_geo",),
        ),
        # The list has no fast mode for this provider.
        (
            "google-vertex",
            "claude-opus-4-8",
            "anthropic-messages",
            messages({**MESSAGES, "speed": "fast"}),
            ("speed",),
        ),
        (
            "bedrock",
            "us.anthropic.claude-opus-4-8",
            "bedrock-converse",
            {**BEDROCK, "serviceTier": {"type": "priority"}},
            ("service_tier",),
        ),
        (
            "bedrock",
            "us.anthropic.claude-opus-4-8",
            "bedrock-converse",
            {**BEDROCK, "serviceTier": {"type": "default"}},
            (),
        ),
    ],
)
def test_a_cost_names_what_it_leaves_out(
    vendor: str, model_id: str, dialect: str, body: Body, unpriced: tuple[str, ...]
) -> None:
    cost = cost_of(usage_of(body, dialect), vendor, model_id)
    assert cost.usd
    assert cost.unpriced == unpriced


def test_a_stated_cost_is_complete() -> None:
    usage = {**CHAT, "num_sources_used": 5, "cost": 0.25}
    cost = cost_of(usage_of(chat("grok-4", usage), "openai-chat"), "xai", "grok-4")
    assert cost == Cost(0.25, "provider")


def test_messages_and_streams_say_what_their_cost_leaves_out() -> None:
    body = json.dumps(messages({**MESSAGES, "inference_geo": "us"})).encode()
    with (
        ReplayServer() as server,
        AnthropicModel({"model_id": "claude-opus-4-8"}, base_url=server.url, api_key="k") as model,
    ):
        for _ in range(2):
            server.queue(Recording.of(body, content_type="application/json"))
        with model.stream_sync([Message.user("Go")]) as stream:
            meta = stream.final_message().meta
            assert stream.cost_usd == meta.cost_usd
            assert stream.cost_unpriced == meta.cost_unpriced == ("inference_geo",)
            assert stream.is_lower_bound
            assert meta.is_lower_bound
        message = model.send_message_sync([Message.user("Go")])
    wire: Body = message.to_dict()
    assert wire["meta"]["costUnpriced"] == ["inference_geo"]
    assert json.loads(message.to_json())["meta"]["costUnpriced"] == ["inference_geo"]
    assert Message.from_json(message.to_json()).meta.cost_unpriced == ("inference_geo",)
    assert not Message.user("Go").meta.is_lower_bound
