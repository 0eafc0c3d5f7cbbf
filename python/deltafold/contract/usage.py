"""Usage record of the contract.

In: counts of tokens.  Out: a frozen pydantic model.

Law: an unknown count is None, never 0.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pydantic import ConfigDict, Field, model_serializer

from deltafold._core import LazyDict
from deltafold.contract.kinds import json_object
from deltafold.contract.wire_models import WireModel, blueprint, make_lazy


class Usage(WireModel):
    """Tokens that one request has used so far, and the cost that the provider stated.

    `input_tokens` counts the whole prompt, cached tokens included. `output_tokens` counts all
    generated tokens, reasoning included. `total_tokens` is their sum. `cost` is in US dollars. An
    unknown member is None. `details` has `raw`, the record as the provider wrote it, and where they
    are known `audioInputTokens`, `audioOutputTokens`, `service_tier` (a tier with prices of its
    own) and `billedCalls` (numbers of calls that are billed apart from tokens, by kind).

    >>> message.meta.usage.input_tokens, message.meta.usage.output_tokens
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    total_tokens: int | None = Field(default=None, ge=0)
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_read_tokens: int | None = Field(default=None, ge=0)
    cache_write_tokens: int | None = Field(default=None, ge=0)
    reasoning_tokens: int | None = Field(default=None, ge=0)
    details: dict[str, object] | None = None

    @property
    def raw(self) -> Mapping[str, object] | None:
        """The record as the provider wrote it, with all of its own counts; None without one."""
        return json_object((self.details or {}).get("raw"))

    if not TYPE_CHECKING:  # a checker would take the attribute as leave for any
        __dict__ = LazyDict("Usage")

    def _shown(self) -> Iterator[tuple[str, object]]:
        return ((name, value) for name, value in super()._shown() if name != "details")

    @model_serializer(mode="plain")
    def _to_wire(self) -> dict[str, object]:
        wire: dict[str, object] = {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "totalTokens": self.total_tokens,
        }
        rare = {
            "cost": self.cost,
            "cacheReadTokens": self.cache_read_tokens,
            "cacheWriteTokens": self.cache_write_tokens,
            "reasoningTokens": self.reasoning_tokens,
            "details": self.details,
        }
        wire.update((name, value) for name, value in rare.items() if value is not None)
        return wire


_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


def sum_of_usage(records: Iterable[Usage]) -> Usage:
    """Return the counts of several requests together; a count that none of them has is None."""
    sums: dict[str, int | float] = {}
    for record in records:
        for name in (*_COUNTS, "cost"):
            count: int | float | None = getattr(record, name)
            if count is not None:
                sums[name] = sums.get(name, 0) + count
    return Usage.model_validate(sums)


USAGE_BLUEPRINT: Final = blueprint(Usage, **dict.fromkeys(Usage.model_fields))
"""A usage record that a fold has counted."""

make_lazy(Usage, Usage.model_fields)
