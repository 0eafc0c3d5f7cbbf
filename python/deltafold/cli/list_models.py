"""`deltafold models`: what a model name may be, and what is known about a model.

In: a part of a name.  Out: the vendors with their protocols, addresses and keys, or the facts about
one model.
"""

from dataclasses import asdict
from importlib.util import find_spec
from os import environ

from deltafold import VENDORS, MisuseError, UnknownDialectError, Vendor, load_model
from deltafold.cli.exits import EXIT_DONE, EXIT_USAGE, complain
from deltafold.cli.table import print_table
from deltafold.contract.near_names import did_you_mean
from deltafold.dialects.model_table import KnownModel, find_model, near_models, table_sources
from deltafold.message.cost import Prices


def list_models(name: str | None) -> int:
    """List the vendors, or show what is known about a model; returns the exit code.

    A name is that of a model if it has a vendor before a slash, or if the table of models has it.
    """
    is_vendor = name is None or any(name in known for known in VENDORS)
    if name is not None and ("/" in name or (not is_vendor and find_model(name) is not None)):
        return _show(name)
    rows = [
        (
            ", ".join((vendor.name, *vendor.aliases)),
            ", ".join(vendor.addresses),
            key_of(vendor),
            next(iter(vendor.addresses.values())) or "-",
        )
        for vendor in {row.name: row for row in VENDORS.values()}.values()
        if name is None or any(name in known for known in (vendor.name, *vendor.aliases))
    ]
    if not rows:
        complain(_unknown(name or ""))
        return EXIT_USAGE
    print_table(("vendor", "protocols, the usual one first", "key", "address"), rows)
    print("\nA model is vendor/model, for example anthropic/claude-sonnet-5-5.")
    return EXIT_DONE


def _unknown(name: str) -> str:
    """Say that a name is none of a vendor or of a model, and which one was probably meant."""
    vendor, colon, model_id = name.partition(":")
    if colon and vendor in VENDORS:
        return f"{name!r} has a colon behind the vendor; did you mean '{vendor}/{model_id}'?"
    hint = did_you_mean(name, (*VENDORS, *near_models(name)))
    return (
        f"no vendor has {name!r} in its name, and the table of models does not have it"
        f"{hint or '; deltafold models lists the vendors'}"
    )


def key_of(vendor: Vendor) -> str:
    """Return the variable of a vendor's key, and whether it is set."""
    variables = (*vendor.earlier_key_variables, vendor.key_variable, vendor.token_variable)
    named = [variable for variable in variables if variable is not None]
    found = next((variable for variable in named if environ.get(variable, "").strip()), None)
    if found is not None:
        return f"{found} (set)"
    return "none needed" if vendor.key_variable is None else f"{named[0]} (not set)"


def _shown(prices: Prices) -> str:
    named = asdict(prices).items()
    return ", ".join(
        f"{name.replace('_', ' ')} {price:g}" for name, price in named if price is not None
    )


def _facts(known: KnownModel | None, dialect: str) -> list[tuple[str, str]]:
    """Return the rows of the table's facts; one that no source establishes has none."""
    if known is None:
        return []
    facts = known.facts
    efforts = (facts.efforts or {}).get(dialect)
    refused = [name for name, when in (facts.sampling or {}).items() if when == "never"]
    found = (
        ("taken as", facts.name if known.is_stand_in else None),
        ("protocols of its vendor", ", ".join(facts.endpoints or ()) or None),
        ("thinking", facts.thinking),
        ("efforts", None if efforts is None else ", ".join(efforts) or "none at all"),
        ("a forced tool", facts.forced_tools and facts.forced_tools.replace("_", " ")),
        ("refuses", ", ".join(refused) or None),
        ("is shut down on", facts.retired),
        ("successor", facts.successor),
        ("table of models", table_sources()["month"]),
    )
    return [(name, value) for name, value in found if value is not None]


def _show(name: str) -> int:
    try:
        model = load_model(name, api_key="unused")
        info = model.model_info()
    except (MisuseError, UnknownDialectError, ValueError) as problem:
        complain(problem)
        return EXIT_USAGE
    tokens = "{:,} tokens".format
    window, most, prices = info.context_window_tokens, info.max_output_tokens, info.prices
    known = info.capabilities
    known_row = find_model(model.model_id)
    rows = [
        ("vendor", info.provider_id),
        ("protocol", info.specification),
        ("context window", "unknown" if window is None else tokens(window)),
        ("maximum of output", "unknown" if most is None else tokens(most)),
        ("capabilities", "unknown" if known is None else ", ".join(sorted(known))),
        ("dollars a million tokens", "unknown" if prices is None else _shown(prices)),
        *_facts(known_row, info.specification),
    ]
    print_table((name, ""), rows)
    if known_row is None or known_row.is_stand_in:
        near = [f"{info.provider_id}/{one}" for one in near_models(model.model_id)]
        if near:
            print(f"\nThe table of models does not have it. Did you mean {' or '.join(near)}?")
    if prices is None and find_spec("genai_prices") is None:
        print("\nPrices are those of genai-prices: pip install 'deltafold[prices]'")
    return EXIT_DONE
