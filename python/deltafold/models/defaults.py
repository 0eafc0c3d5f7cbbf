"""Vendor and protocol of a model where a user names neither.

In: the name of a model, and the settings that are given for it.  Out: the vendor whose API has the
model, and the dialect of its requests.

Laws: a name that the table of models does not have decides nothing: its vendor has to be written,
and the vendor's usual dialect is taken. A setting that one dialect alone has asks for that dialect.
Source: the table of models (`model_table.py`).
"""

import re
from collections.abc import Collection, Mapping
from typing import Final, cast

from deltafold.contract.exceptions import MisuseError
from deltafold.dialects import DIALECTS
from deltafold.dialects.model_fit import CHAT
from deltafold.dialects.model_names import BEDROCK_PLACE
from deltafold.dialects.model_table import KnownModel, find_model, near_models
from deltafold.dialects.settings import ModelConfig
from deltafold.models.vendors import VENDORS, Vendor

_BEDROCK: Final = re.compile(rf"arn:aws[a-z-]*:bedrock:|{BEDROCK_PLACE.pattern}")
_HOSTS: Final = "openrouter", "together", "fireworks", "groq", "ollama", "vllm"
"""Some vendors that host models of others, for an error."""


def vendor_of(model_id: str) -> Vendor:
    """Return the vendor whose own API has a model.

    >>> vendor_of("gpt-5.6-terra").name, vendor_of("us.anthropic.claude-sonnet-5-v1:0").name
    ('openai', 'bedrock')

    Raises:
        MisuseError: it is not known; the error names vendors that may have it.
    """
    if _BEDROCK.match(model_id):
        return VENDORS["bedrock"]
    known = find_model(model_id)
    facts = None if known is None else known.facts
    vendor = None if facts is None else VENDORS.get(facts.vendor)
    endpoints = () if facts is None else facts.endpoints or ()
    if vendor is not None and not vendor.addresses.keys().isdisjoint(endpoints):
        return vendor
    if model_id in VENDORS:
        raise MisuseError(
            f"name: {model_id!r} is a vendor: write a slash and its name of a model behind it; "
            f"`deltafold models {model_id}` shows its protocols and its key"
        )
    authors = () if vendor is None else (vendor.name,)
    likely = ", ".join(f"{one}/{model_id}" for one in (*authors, *_HOSTS))
    near = near_models(model_id) if known is None else []
    meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise MisuseError(
        f"name: {model_id!r} names no vendor, and its own is not known: write the one that you "
        f"call before a slash, as in {likely}; `deltafold models` lists all{meant}"
    )


def vendor_speaking(name: str, dialect: str) -> Vendor:
    """Return the vendor of a name, which speaks a dialect.

    Raises:
        MisuseError: there is no such vendor, or it speaks other dialects.
    """
    vendor = VENDORS.get(name)
    if vendor is None:
        raise MisuseError(f"unknown vendor {name!r}; known: {', '.join(sorted(VENDORS))}")
    if dialect not in vendor.addresses:
        raise MisuseError(f"vendor: {name} speaks {' and '.join(vendor.addresses)}, not {dialect}")
    return vendor


def fields_for(vendor: Vendor, config_class: type[ModelConfig]) -> dict[str, object]:
    """Return the settings that a vendor needs, as far as a dialect has them."""
    known = config_class.model_fields
    return {name: value for name, value in vendor.defaults.items() if name in known}


def usual_dialect(vendor: Vendor, known: KnownModel | None, fields: Collection[str] = ()) -> str:
    """Return the dialect of a model's requests where none is asked for.

    Args:
        vendor: the vendor.
        known: the facts about the model, None if it is not known.
        fields: names of the settings that are given.
    """
    usual, other = vendor.dialect, vendor.thinking_dialect
    endpoints = None if known is None else known.facts.endpoints
    if other is None or known is None or endpoints is None or other not in endpoints:
        return usual
    if usual not in endpoints:
        return other
    if known.facts.thinking in {None, "never"}:
        return usual
    has, lacks = (DIALECTS[one].config_class.model_fields for one in (usual, other))
    return usual if any(name in has and name not in lacks for name in fields) else other


def dialect_beside(
    own: str, vendor: Vendor, known: KnownModel | None, *, has_tools: bool, effort: str | None
) -> str:
    """Return the dialect of a model's request that a client has written in a dialect of its own.

    The client's own dialect comes first where the model takes the request in it, because nothing
    has to be translated then.

    Args:
        own: the dialect of the client.
        vendor: the vendor.
        known: the facts about the model, None if it is not known.
        has_tools: whether the request offers tools.
        effort: the effort of the request, None if it has none.
    """
    usual = usual_dialect(vendor, known)
    endpoints = None if known is None else known.facts.endpoints
    if own != vendor.dialect or own not in (endpoints or ()):
        return usual
    return own if not has_tools or _takes_tools(known, own, effort) else usual


def _takes_tools(known: KnownModel | None, dialect: str, effort: str | None) -> bool:
    """Return whether a model takes function tools in a dialect, beside an effort."""
    condition = None if known is None or dialect != CHAT else known.facts.chat_tools
    if condition == "unless_effort":
        return effort in {None, "none"}
    return effort == "none" if condition == "effort_none" else condition != "never"


def fields_of(config: object) -> dict[str, object]:
    """Return the settings that are given with a Model, by name.

    Raises:
        TypeError: they are neither a configuration nor a mapping.
    """
    if isinstance(config, ModelConfig):
        return config.fields_set()
    if isinstance(config, Mapping):
        return dict(cast("Mapping[str, object]", config))
    raise TypeError(f"config must be a ModelConfig or a mapping, not {type(config).__name__}")
