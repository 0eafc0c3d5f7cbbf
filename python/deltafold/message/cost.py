"""Cost of a call, in US dollars.

In: a `Usage`, the vendor and the model.  Out: a `Cost`: the amount and its source.

Laws: a cost that the provider states takes precedence. A cached token is charged once, at its own
price. An unknown price is None, never 0. Nothing is fetched: prices come from the installed
genai-prices (extra `prices`). Without that package only stated costs are known.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias

from deltafold.contract.usage import Usage
from deltafold.message.billing import billed, extra_iterations, stated_cost

CostSource: TypeAlias = Literal["provider", "genai-prices"]

# Vendors that the price list knows under another name.
_PRICE_LIST_NAMES: Final[Mapping[str, str]] = {
    "bedrock": "aws",
    "google-vertex": "google",
    "moonshot": "moonshotai",
    "xai": "x-ai",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one call.

    Attributes:
        usd: US dollars, None if neither the provider nor the price list has a cost.
        source: source of the amount, None if there is no amount.
        unpriced: names of what is billed and not in the amount, such as `web_search_call`.
    """

    usd: float | None = None
    source: CostSource | None = None
    unpriced: tuple[str, ...] = ()

    @property
    def is_lower_bound(self) -> bool:
        """Whether something is billed that the amount leaves out."""
        return bool(self.unpriced)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of one model, in US dollars per million tokens; None if a price is unknown.

    If the price rises with the length of the prompt, the lowest price is given.
    """

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None


@dataclass(frozen=True, slots=True)
class ListedModel:
    """Entry of the price list: the prices of a model and its context window in tokens."""

    prices: Prices
    context_window_tokens: int | None


def cost_of(usage: Usage | None, vendor: str, model_id: str) -> Cost:
    """Return the cost of a call.

    Input tokens include cached tokens, as in every `Usage`. Tokens that are read from or written to
    the cache have prices of their own, if the list has them; all others have the price of input.

    >>> cost_of(message.meta.usage, "anthropic", "claude-sonnet-5-5").usd

    Args:
        usage: the usage record; None gives an unknown cost.
        vendor: a name of `vendors.py`.
        model_id: the name that the vendor gives to the model.
    """
    if usage is None:
        return Cost()
    stated = stated_cost(usage)
    if stated is not None:
        return Cost(stated, "provider")
    price_list = _price_list()
    if price_list is None or usage.input_tokens is None or usage.output_tokens is None:
        return Cost()
    amount, unpriced = 0.0, list[str]()
    parts = [(usage, model_id), *((one, own or model_id) for one, own in extra_iterations(usage))]
    for one, priced_model in parts:
        of_part = _listed_cost(one, price_list, vendor, priced_model)
        if of_part is not None:
            amount += of_part[0]
            unpriced += of_part[1]
        elif one is usage:
            return Cost()
        else:
            unpriced.append(f"iterations[{priced_model}]")
    return Cost(amount, "genai-prices", tuple(dict.fromkeys(unpriced)))


def _listed_cost(
    usage: Usage, price_list: ModuleType, vendor: str, model_id: str
) -> tuple[float, list[str]] | None:
    """Return the price of one record and the names of what it leaves out; None without a price."""
    provider_id = _PRICE_LIST_NAMES.get(vendor, vendor)
    try:
        with warnings.catch_warnings():
            # An older price list may lack a kind of token; the tokens then have the price of the
            # whole.
            warnings.simplefilter("ignore")
            bill = billed(usage, price_list, provider_id)
            priced = price_list.calc_price(
                price_list.Usage(**bill.counts),
                model_id,
                provider_id=provider_id,
                price_context=bill.context or None,
            )
    except (LookupError, ValueError):  # no such vendor or model; counts that contradict each other
        return None
    return float(priced.total_price), [*bill.unpriced, *bill.without_price(priced)]


def listed_model(vendor: str, model_id: str) -> ListedModel | None:
    """Return the entry of a model in the price list, None without the list or without an entry."""
    price_list = _price_list()
    if price_list is None:
        return None
    try:
        priced: Any = price_list.calc_price(
            price_list.Usage(input_tokens=0, output_tokens=0),
            model_id,
            provider_id=_PRICE_LIST_NAMES.get(vendor, vendor),
        )
    except (LookupError, ValueError):
        return None
    listed = priced.model_price
    prices = Prices(
        input=_price(listed, "input_mtok"),
        output=_price(listed, "output_mtok"),
        cache_read=_price(listed, "cache_read_mtok"),
        cache_write=_price(listed, "cache_write_mtok"),
        reasoning=_price(listed, "output_reasoning_mtok"),
    )
    return ListedModel(prices, priced.model.context_window)


def _price(listed: object, name: str) -> float | None:
    price: Any = getattr(listed, name, None)
    base = getattr(price, "base", price)
    return None if base is None else float(base)


@cache
def _price_list() -> ModuleType | None:
    try:
        return import_module("genai_prices")
    except ModuleNotFoundError:
        return None
