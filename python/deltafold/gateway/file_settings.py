"""Settings of a Model that a file of the gateway gives, by their types.

In: an entry of a TOML file.  Out: the arguments of `Model` in their types; the fields of the
configuration have types of their own, which the Model checks.

Law: a value of a wrong type is refused before the server listens, not at the first call.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Final, Never, cast

from pydantic import BaseModel, BeforeValidator, StrictBool, StrictInt, StrictStr
from pydantic_core import PydanticCustomError

from deltafold.contract.near_names import did_you_mean
from deltafold.transports.timeouts import Timeouts

_LIMITS: Final = tuple(field.name for field in fields(Timeouts))


def _refused(_: object) -> Never:
    raise PydanticCustomError("of_a_program", "a file cannot give it, only a program")


def _known(limits: object) -> object:
    unknown = [name for name in _members(limits) if name not in _LIMITS]
    if unknown:
        hint = did_you_mean(unknown[0], _LIMITS) or f"; there are {', '.join(_LIMITS)}"
        raise PydanticCustomError(
            "unknown_limit", "there is no limit {name}{hint}", {"name": unknown[0], "hint": hint}
        )
    return limits


def _members(limits: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", limits) if isinstance(limits, Mapping) else {}


_OfAProgram = Annotated[None, BeforeValidator(_refused)]


class FileSettings(BaseModel):
    """Arguments of `Model`; those that stand for objects of a program are refused.

    None stands for a setting that a file does not give; TOML has no such value.
    """

    base_url: StrictStr | None = None
    api_key: StrictStr | None = None
    specification: StrictStr | None = None
    transport: StrictStr | None = None
    timeouts: Annotated[Timeouts, BeforeValidator(_known)] | None = None
    resend_lost: StrictBool | None = None
    max_connections: StrictInt | None = None
    starts_in_thinking: StrictBool | None = None
    ends_without_reason: StrictBool | None = None
    client: _OfAProgram = None
    error_mapper: _OfAProgram = None
    hooks: _OfAProgram = None
    telemetry: _OfAProgram = None
