"""Cost and timing of the call of a Model.

In: the vendor, the model, the token counts and the times of a stream.  Out: members of `Meta`.

Law: nothing is computed before somebody asks for it.
"""

from deltafold._core import StreamTimes
from deltafold.message import data_types


def cost_of_answer(
    usage: "data_types.Usage | None", vendor: str, asked: str, served: str | None
) -> "data_types.Cost":
    """Return the cost of an answer at the prices of the model that served it.

    Anthropic's server may hand an answer over to another model ("Refusals and fallback"). Elsewhere
    the name in a response may be any other, and the price is that of the model that was asked, as
    it is where the model that served has no price. Where that model has none, there is no cost.

    Args:
        usage: the token counts.
        vendor: a name of `vendors.py`.
        asked: the model of the request.
        served: the model that the response names, None if it names none.
    """
    from deltafold.dialects.model_names import same_model  # noqa: PLC0415 - as above
    from deltafold.message.cost import cost_of  # noqa: PLC0415 - few answers are asked for it

    cost = cost_of(usage, vendor, asked)
    if vendor != "anthropic" or cost.usd is None or not served or same_model(served, asked):
        return cost
    of_served = cost_of(usage, vendor, served)
    return cost if of_served.usd is None else of_served


def call_facts(
    vendor: str,
    model_id: str,
    served: str | None,
    times: StreamTimes,
    usage: "data_types.Usage | None",
) -> dict[str, object]:
    """Return the cost and the timing of a call, as members of `Meta`.

    The price list takes longer than the fold of a short message.

    Args:
        vendor: a name of `vendors.py`.
        model_id: the model of the request.
        served: the model that the response names, None if it names none.
        times: the times of the stream.
        usage: the token counts.
    """
    from deltafold.message.cost import Cost  # noqa: PLC0415 - few messages are asked for it
    from deltafold.message.timing import timing_of  # noqa: PLC0415 - as above

    try:
        cost = cost_of_answer(usage, vendor, model_id, served)
    except Exception:  # noqa: BLE001 - an answer that was paid for must stay readable
        cost = Cost()
    timing = timing_of(times, None if usage is None else usage.output_tokens)
    named = {
        "timeToFirstByte": timing.time_to_first_byte,
        "timeToFirstDelta": timing.time_to_first_delta,
        "timeToFirstText": timing.time_to_first_text,
        "tokensPerSecond": timing.tokens_per_second,
    }
    return {
        "cost_usd": cost.usd,
        "cost_source": cost.source,
        "cost_unpriced": cost.unpriced,
        "duration_ms": None if timing.duration is None else timing.duration * 1000,
        "timing": {name: value for name, value in named.items() if value is not None} or None,
    }
