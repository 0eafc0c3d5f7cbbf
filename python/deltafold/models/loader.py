"""Loader of Models by name: `load_model("anthropic/claude-…")`.

In: a vendor and a model in one name, and a specification if the vendor has several.  Out: the
adapter, configured for that vendor.

Laws: nothing is guessed. What a name leaves out is what the table of models says. An unknown
vendor, or a dialect that the vendor does not support, is an error that lists the supported ones.
"""

from collections.abc import Collection
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Unpack

from deltafold.contract.exceptions import MisuseError
from deltafold.contract.near_names import did_you_mean
from deltafold.dialects import DIALECTS
from deltafold.dialects.model_table import find_model
from deltafold.models.adapters import adapter_of
from deltafold.models.base import Model
from deltafold.models.defaults import dialect_beside, usual_dialect, vendor_of
from deltafold.models.vendors import VENDORS, Vendor, canonical_specification

if TYPE_CHECKING:
    from deltafold.models.setting_types import LoadSettings


def load_model(
    name: str, *, specification: str | None = None, **settings: Unpack["LoadSettings"]
) -> Model[Any]:
    """Make a Model by the name of a vendor and a model.

    >>> model = load_model("anthropic/claude-sonnet-5-5", max_tokens=1000)
    >>> model = load_model("openrouter/meta-llama/llama-4", temperature=0)
    >>> model = load_model("qwen/qwen3-coder", specification="openai-chat+qwen-xml")
    >>> (
    ...     load_model("openai/gpt-5.6-terra").dialect,
    ...     load_model("openai-chat/gpt-5.6-terra").dialect,
    ... )
    ('openai-responses', 'openai-chat')

    OpenAI's models that think speak Responses: Chat Completions refuses their tools or has no such
    model. A setting that Chat alone has, such as `seed`, asks for Chat.

    Args:
        name: the vendor, a slash, and the vendor's name of the model; the vendor is a name of
            `vendors.py`, a protocol, which stands for its author, or "local" for a model of
            transformers in this process. The vendor may be left out where the table of models has
            it.
        specification: the dialect, optionally with a plus and the markup of the model's text
            (`deltafold.markup_names()`); None is the usual dialect of the vendor and the model,
            without markup.
        settings: fields of the adapter's configuration, and keyword arguments of `Model`.

    Raises:
        MisuseError: the vendor is not known, or does not support the dialect.
        UnknownDialectError: the markup is not known.
        ValueError: a setting is wrong or unknown.
    """
    if specification is not None:
        specification = canonical_specification(specification)
    dialect, _, markup = (specification or "").partition("+")
    vendor_name, _, model_id = name.partition("/")
    if vendor_name == "local" and model_id:
        return _local(model_id, specification, markup, {**settings})
    vendor, model_id, protocol = _named(name)
    dialect = dialect or protocol or _usual(vendor, model_id, settings, settings.get("known_as"))
    if protocol is not None and dialect != protocol:
        raise MisuseError(f"name: {name!r} names {protocol}, and specification {dialect}")
    adapter = adapter_of(dialect)
    if adapter is None or dialect not in vendor.addresses:
        raise MisuseError(
            f"specification: {vendor.name} speaks {', '.join(vendor.addresses)}, not {dialect!r}"
        )
    given: dict[str, Any] = {**settings}
    arguments = {key: given.pop(key) for key in list(given) if key in _MODEL_ARGUMENTS}
    arguments["markup"] = markup or None
    model: Model[Any] = adapter({"model_id": model_id, **given}, vendor=vendor.name, **arguments)
    return model


def _named(name: str) -> tuple[Vendor, str, str | None]:
    """Return the vendor, the model and the protocol of a name; None for the usual protocol."""
    first, slash, model_id = name.partition("/")
    if not name or (slash and not model_id):
        raise MisuseError(f"name must be a vendor, a slash and a model, not {name!r}")
    if not slash or name.startswith("arn:"):
        _refuse_colon(name)
        return vendor_of(name), name, None
    vendor = VENDORS.get(first)
    if vendor is not None:
        return vendor, model_id, None
    row = DIALECTS.get(first)
    author = None if row is None else VENDORS.get(row.author)
    if author is not None:
        return author, model_id, first
    hint = did_you_mean(first, VENDORS) or (
        f"; for another server of Chat Completions write vllm/{model_id} and its base_url;"
        f" there are {', '.join(VENDORS)}"
    )
    raise MisuseError(f"name: unknown vendor {first!r}{hint}")


def _refuse_colon(name: str) -> None:
    """Raise for a vendor before a colon, as pydantic-ai and langchain write it."""
    vendor, colon, model_id = name.partition(":")
    is_vendor = vendor in VENDORS or vendor in DIALECTS
    if colon and model_id and is_vendor and find_model(name) is None:
        raise MisuseError(
            f"name: {name!r} has a colon behind the vendor; did you mean '{vendor}/{model_id}'?"
        )


def specification_beside(own: str, name: str, *, has_tools: bool, effort: str | None) -> str | None:
    """Return the dialect of a request to a model that a client has written in a dialect of its own.

    Args:
        own: the dialect of the client.
        name: as `load_model` takes it.
        has_tools: whether the request offers tools.
        effort: the effort of the request, None if it has none.

    Raises:
        MisuseError: the vendor is not known.
    """
    if name.startswith("local/"):
        return None
    vendor, model_id, protocol = _named(name)
    if protocol is not None or vendor.thinking_dialect is None:
        return protocol
    known = find_model(model_id)
    return dialect_beside(own, vendor, known, has_tools=has_tools, effort=effort)


def specification_for(name: str, fields: Collection[str]) -> str | None:
    """Return the dialect in which `load_model` speaks to a model that is given settings in calls.

    Args:
        name: as `load_model` takes it.
        fields: names of the settings.

    Raises:
        MisuseError: the vendor is not known.
    """
    if name.startswith("local/"):
        return None
    vendor, model_id, protocol = _named(name)
    return protocol or _usual(vendor, model_id, fields, None)


def _usual(vendor: Vendor, model_id: str, fields: Collection[str], known_as: object) -> str:
    if vendor.thinking_dialect is None:
        return vendor.dialect
    known = find_model(known_as if isinstance(known_as, str) else model_id)
    return usual_dialect(vendor, known, fields)


def _local(
    model_id: str, specification: str | None, markup: str, settings: dict[str, Any]
) -> Model[Any]:
    if specification is not None and not specification.startswith("openai-chat+"):
        raise MisuseError(
            "specification: a local model speaks plain text: name its markup, as in "
            "'openai-chat+qwen-xml'"
        )
    from deltafold.models.local import LocalModel  # noqa: PLC0415 - loaded where it is asked for

    arguments = {key: settings.pop(key) for key in list(settings) if key in _MODEL_ARGUMENTS}
    return LocalModel({"model_id": model_id, **settings}, markup=markup or None, **arguments)


# `load_model` passes the excluded arguments to Model itself.
_MODEL_ARGUMENTS: Final = frozenset(
    name
    for name, parameter in signature(Model).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY and name not in {"vendor", "markup"}
)
