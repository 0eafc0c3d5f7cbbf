"""Reading a usage record for the price list genai-prices.

In: a `Usage` with the provider's own record.  Out: `Billed`: the counts that the list prices, the
context that chooses a price, and the names of what nobody prices.

Laws: the provider's record is read by the extractors of the list, which know modalities, lifetimes
of cache entries and searches. A reading that contradicts the counts of the contract is not used,
because the contract corrects its counts by the total that the provider states. Cohere and
Perplexity are the exception: they bill other counts than the ones that the model read and wrote.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, cast

from deltafold.contract.kinds import json_array, json_object
from deltafold.contract.usage import Usage

# Providers that bill other counts than those of the contract. Cohere leaves out the tokens that it
# inserts into the prompt; Perplexity adds reasoning and citations to the completion. Source:
# docs.cohere.com, "How does Cohere's pricing work", `billed_units`; docs.perplexity.ai, "Pricing:
# Sonar Deep Research" (read 2026-11).
_BILLED_APART: Final = frozenset({"cohere", "perplexity"})

# Extractors of other bodies than an answer's.
_OTHER_FLAVORS: Final = frozenset({"embeddings", "images", "live", "ocr", "ocr_annotated"})

# Tiers that cost more than the listed price. If the list has no price of such a tier, the cost is
# a lower bound.
_DEAR: Final = frozenset({"fast", "priority"})

# Members of Anthropic's `server_tool_use` that cost no more than their tokens, or that the list
# prices. Source: platform.claude.com, "Pricing: specific tool pricing" (read 2026-11).
_PRICED_TOOLS: Final = frozenset(
    {"tool_search_requests", "web_fetch_requests", "web_search_requests"}
)


@dataclass(frozen=True, slots=True)
class Billed:
    """What one request is billed for.

    Attributes:
        counts: the counts, by their names in the price list.
        context: what chooses among the prices of a model: its tier, speed or processing.
        unpriced: names of what is billed and has no count in the price list.
    """

    counts: Mapping[str, Any]
    context: Mapping[str, str]
    unpriced: tuple[str, ...]

    def without_price(self, priced: Any) -> Iterator[str]:  # noqa: ANN401 - of genai-prices
        """Yield the names of what a calculation of the price list left out of its amount."""
        for name, count in self.counts.items():
            listed = getattr(priced.model_price, f"{name}_kcount", None)
            if count and not name.endswith("_tokens") and listed is None:
                yield name
        # Variants of a model that another provider lists do not apply.
        own = any(model is priced.model for model in priced.provider.models)
        variants = (priced.model.price_variants or ()) if own else ()
        for name, word in self.context.items():
            if word in _DEAR and not any(one.when.get(name) == word for one in variants):
                yield name


def billed(usage: Usage, price_list: ModuleType, provider_id: str) -> Billed:
    """Read a usage record for the price list.

    Args:
        usage: the record.
        price_list: the module `genai_prices`.
        provider_id: a provider of the list.

    Raises:
        LookupError: the list has no such provider.
    """
    details = usage.details or {}
    raw = usage.raw or {}
    counts = _extracted(usage, price_list, provider_id) or _counts(usage)
    return Billed(counts, _context(details, raw), tuple(_unpriced(details, raw)))


def stated_cost(usage: Usage) -> float | None:
    """Return the cost that the provider states, in US dollars.

    OpenRouter states its fee for a request with the caller's own key, and beside it what the
    provider behind it charges for that key. Source: openrouter.ai/docs, "Usage accounting" and
    "Bring your own keys" (read 2026-11).
    """
    if usage.cost is None or not usage.raw or usage.raw.get("is_byok") is not True:
        return usage.cost
    charged = (json_object(usage.raw.get("cost_details")) or {}).get("upstream_inference_cost")
    return usage.cost + charged if isinstance(charged, int | float) else usage.cost


def extra_iterations(usage: Usage) -> Iterator[tuple[Usage, str | None]]:
    """Yield the usage of Anthropic's iterations that the record's own counts leave out.

    They are those of a compaction, of an advisor, and of models that declined before another one
    served the answer. Each comes with its model, None for the model of the answer. Tier and speed
    are those of the request.
    Source: platform.claude.com, "Compaction: understanding usage", "Advisor tool: usage and
    billing", "Refusals and fallback" (read 2026-11).
    """
    raw = usage.raw or {}
    listed = json_array(raw.get("iterations"))
    entries = [entry for one in listed if (entry := json_object(one)) is not None]
    served = [entry for entry in entries if entry.get("type") == "fallback_message"]
    serving = served[-1].get("model") if served else None
    for entry in entries:
        model = entry.get("model")
        own = model if isinstance(model, str) and model else None
        of_answer = entry.get("type") in {"message", "fallback_message"}
        if of_answer and (serving is None or own is None or own == serving):
            continue
        counts = [_count(entry.get(name)) for name in ("input_tokens", "output_tokens")]
        cached = [
            _count(entry.get(name))
            for name in ("cache_read_input_tokens", "cache_creation_input_tokens")
        ]
        of_request = {name: raw[name] for name in ("service_tier", "speed") if name in raw}
        record = {**entry, **of_request}
        yield (
            Usage(
                input_tokens=counts[0] + sum(cached),
                output_tokens=counts[1],
                cache_read_tokens=cached[0],
                cache_write_tokens=cached[1],
                details={"raw": record},
            ),
            own,
        )


def _extracted(usage: Usage, price_list: ModuleType, provider_id: str) -> dict[str, Any] | None:
    """Return the counts that an extractor of the provider reads from its record."""
    raw = usage.raw
    provider = _provider(price_list, provider_id)
    if raw is None:
        return None
    body = {"usage": raw, "usageMetadata": raw}
    known = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens or 0)
    for extractor in provider.extractors or ():
        if extractor.api_flavor in _OTHER_FLAVORS:
            continue
        try:
            found: Any = provider.extract_usage(body, api_flavor=extractor.api_flavor)[1]
        except ValueError:  # the record of another flavor
            continue
        read = cast("dict[str, Any]", vars(found))
        counts = {name: count for name, count in read.items() if count}
        names = ("input_tokens", "output_tokens", "cache_read_tokens")
        if provider.id in _BILLED_APART or known == tuple(counts.get(name, 0) for name in names):
            return counts
    return None


def _provider(price_list: ModuleType, provider_id: str) -> Any:  # noqa: ANN401 - of genai-prices
    snapshot: Any = price_list.data_snapshot.get_snapshot()
    return snapshot.find_provider(None, provider_id, None)


def _counts(usage: Usage) -> dict[str, Any]:
    """Return the counts of a record that no extractor reads."""
    details = usage.details or {}
    counted = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_reasoning_tokens": usage.reasoning_tokens,
        "input_audio_tokens": details.get("audioInputTokens"),
        "output_audio_tokens": details.get("audioOutputTokens"),
    }
    return {name: count for name, count in counted.items() if isinstance(count, int) and count}


def _context(details: Mapping[str, object], raw: Mapping[str, object]) -> dict[str, str]:
    """Return what chooses among the prices: a tier, a speed, or the processing of a batch.

    Anthropic's record calls a batch a tier; its other tiers have the listed prices. The tiers of
    the others are in the details, or under Gemini's name.
    """
    if "batch" in {details.get("processing"), raw.get("service_tier")}:
        return {"processing": "batch"}
    tier = details.get("service_tier", raw.get("serviceTier"))
    words = {"service_tier": tier, "speed": raw.get("speed")}
    return {name: word.lower() for name, word in words.items() if isinstance(word, str) and word}


def _unpriced(details: Mapping[str, object], raw: Mapping[str, object]) -> Iterator[str]:
    """Yield the names of what is billed beside the tokens and that the list has no count for."""
    yield from _positive(details.get("billedCalls"))
    tools = json_object(raw.get("server_tool_use")) or {}
    yield from (name for name in _positive(tools) if name not in _PRICED_TOOLS)
    # xAI, and the connectors of Mistral.
    yield from _positive(raw.get("server_side_tool_usage_details"))
    yield from _positive({"num_sources_used": raw.get("num_sources_used")})
    yield from _positive(raw.get("connectors"))
    # Anthropic charges a tenth more for inference in one country.
    if raw.get("inference_geo") == "us":
        yield "inference_geo"


def _positive(record: object) -> list[str]:
    return [name for name, count in (json_object(record) or {}).items() if _count(count)]


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
