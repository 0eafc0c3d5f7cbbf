"""Loader of Models by name: `load_model("anthropic/claude-…")`.

In: a vendor and a model in one name, and a specification if the vendor has several.  Out: the
adapter, configured for that vendor.

Laws: nothing is guessed. An unknown vendor, or a dialect that the vendor does not support, is an
error that lists the supported ones.
"""

import difflib
from inspect import signature
from typing import Any, Final

from deltafold.contract.exceptions import MisuseError
from deltafold.models.adapters import adapter_of
from deltafold.models.base import Model
from deltafold.models.vendors import VENDORS, canonical_specification


def load_model(name: str, *, specification: str | None = None, **settings: Any) -> Model[Any]:  # noqa: ANN401 - config fields and the arguments of Model
    """Make a Model by the name of a vendor and a model.

    >>> model = load_model("anthropic/claude-sonnet-4-5", max_tokens=1000)
    >>> model = load_model("openrouter/meta-llama/llama-4", temperature=0)
    >>> model = load_model("qwen/qwen3-coder", specification="openai-chat+qwen-xml")
    >>> model = load_model("openai/gpt-5-mini", transport="aiohttp")

    Args:
        name: the vendor, a slash, and the vendor's name of the model; the vendor is a name of
            `vendors.py`, or "local" for a model of transformers in this process.
        specification: the dialect, optionally with a plus and the markup of the model's text
            (`deltafold.markup_names()`); None is the vendor's usual dialect without markup.
        settings: fields of the adapter's configuration, and keyword arguments of `Model`.

    Raises:
        MisuseError: the vendor is not known, or does not support the dialect.
        UnknownDialectError: the markup is not known.
        ValueError: a setting is wrong or unknown.
    """
    vendor_name, slash, model_id = name.partition("/")
    if not slash or not model_id:
        raise MisuseError(f"name must be a vendor, a slash and a model, not {name!r}")
    if specification is not None:
        specification = canonical_specification(specification)
    dialect, _, markup = (specification or "").partition("+")
    if vendor_name == "local":
        return _local(model_id, specification, markup, settings)
    vendor = VENDORS.get(vendor_name)
    if vendor is None:
        near = difflib.get_close_matches(vendor_name, VENDORS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(VENDORS)}"
        raise MisuseError(f"name: unknown vendor {vendor_name!r}{hint}")
    adapter = adapter_of(dialect or vendor.dialect)
    if adapter is None or (dialect and dialect not in vendor.addresses):
        raise MisuseError(
            f"specification: {vendor.name} speaks {', '.join(vendor.addresses)}, not {dialect!r}"
        )
    arguments = {key: settings.pop(key) for key in list(settings) if key in _MODEL_ARGUMENTS}
    model: Model[Any] = adapter(
        {"model_id": model_id, **settings}, vendor=vendor.name, markup=markup or None, **arguments
    )
    return model


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
