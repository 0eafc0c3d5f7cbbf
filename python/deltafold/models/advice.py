"""Advice about a call that its provider refused, from what is known about its model and its server.

In: the refusal, and the call.  Out: a sentence that says what to do; None if nothing is known.
Source: the table of models (`model_table.json`).
"""

from typing import Final, NamedTuple
from urllib.parse import urlsplit

from deltafold.contract.kinds import ErrorCode
from deltafold.dialects.model_table import find_model, near_models
from deltafold.dialects.settings import ModelConfig
from deltafold.errors.model_error import ModelError
from deltafold.models.vendors import VENDORS
from deltafold.transports.secrets import shown_url

_BAD_REQUEST: Final = 400
_NO_MODEL: Final = "model_not_found"
_NO_SUCH_PATH: Final = frozenset({404, 405})
_SETTINGS: Final = frozenset(
    {
        "effort",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "maxoutputtokens",
        "parallel_tool_calls",
        "penalty",
        "reasoning",
        "stop",
        "temperature",
        "thinking",
        "tool_choice",
        "top_k",
        "top_p",
        "topk",
        "topp",
    }
)
"""Words of refusals that are about a setting which depends on the model."""


class RequestAddress(NamedTuple):
    """Address of a request.

    Attributes:
        base_url: the address, "" if only an SDK has it.
        path: the path below it.
    """

    base_url: str
    path: str

    @property
    def url(self) -> str:
        """The whole address without secrets, the path alone if only an SDK has the rest."""
        return shown_url(f"{self.base_url.rstrip('/')}{self.path}") if self.base_url else self.path


def advice_of(
    error: ModelError, config: ModelConfig, dialect: str, vendor: str, address: RequestAddress
) -> str | None:
    """Return what to do about a refusal.

    Args:
        error: the refusal.
        config: the settings of the call.
        dialect: the dialect of the call.
        vendor: name of the vendor.
        address: the address of the request.
    """
    return _of_name(error, config) or (
        _of_path(error, dialect, vendor, address)
        if error.status in _NO_SUCH_PATH
        else _of_setting(error, config)
    )


def _of_name(error: ModelError, config: ModelConfig) -> str | None:
    """Say when a model was shut down, and what replaces it, or which name was meant."""
    if error.code is not ErrorCode.NOT_FOUND:
        return None
    known = find_model(config.known_as or config.model_id)
    if known is None or known.is_stand_in:
        is_about_it = error.provider_code == _NO_MODEL or config.model_id in error.message
        near = near_models(config.model_id) if is_about_it else []
        return f"did you mean {' or '.join(map(repr, near))}?" if near else None
    if known.facts.retired is None:
        return None
    facts = known.facts
    instead = f"; its successor is {facts.successor}" if facts.successor else ""
    return f"its vendor shuts {facts.name} down on {facts.retired}{instead}"


def _of_path(error: ModelError, dialect: str, vendor: str, address: RequestAddress) -> str | None:
    """Name the address of the request, and what is unusual about it."""
    if error.provider_code == _NO_MODEL:
        return None
    row = VENDORS.get(vendor)
    own = None if row is None else row.addresses.get(dialect)
    said = f"the request went to {address.url}"
    if address.base_url.rstrip("/") in {"", own}:
        return said
    given, path = urlsplit(address.base_url).path.rstrip("/"), address.path.partition("?")[0]
    usual = urlsplit(own or "").path.rstrip("/")
    first = "/".join(path.split("/", 2)[:2])
    if given.endswith(path):
        said += f"; base_url ends before {path}"
    elif given.endswith(first) and not usual.endswith(first):
        said += f"; base_url ends before {first}"
    elif usual and not given:
        said += f"; base_url usually ends with {usual}"
    if row is not None and dialect == row.thinking_dialect:
        said += (
            f"; if this server has no {dialect}, load '{row.dialect}/…', or pass "
            f"specification={row.dialect!r}"
        )
    return said


def _of_setting(error: ModelError, config: ModelConfig) -> str | None:
    """Name the row of the table that stands for a newer model."""
    if error.status != _BAD_REQUEST or config.strict_settings:
        return None
    known = find_model(config.known_as or config.model_id)
    if known is None or not known.is_stand_in or not _names_setting(error.message):
        return None
    return (
        f"{config.model_id} is newer than the table of models, and its settings were fitted to "
        f"{known.facts.name}: known_as='…' names another model, and strict_settings=True sends "
        "what was written"
    )


def _names_setting(message: str) -> bool:
    text = message.lower()
    return any(word in text for word in _SETTINGS)
