"""Settings of models of `transformers` in this process."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from deltafold.dialects.settings import Count, Flag, ModelConfig, Positive, Share
from deltafold.dialects.settings_table import (
    COMMON,
    MODEL_ID,
    PROVIDER_TOOLS,
    TOOL_POSITIONS,
    SettingTable,
    copied,
    each_stays,
    no_member,
    same,
    written,
)


class LocalConfig(ModelConfig):
    """Settings of a `transformers` pipeline in this process.

    >>> LocalConfig(model_id="any", do_sample=True, seed=7).seed
    7

    Attributes:
        do_sample: whether to sample; None samples where a temperature above 0 is set.
        seed: makes sampling repeatable.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Count | None = None
    min_p: Share | None = None
    do_sample: Flag | None = None
    num_beams: Positive | None = None
    repetition_penalty: Annotated[float, Field(strict=True, gt=0)] | None = None
    no_repeat_ngram_size: Count | None = None
    seed: Count | None = None


_GENERATION: Final = ("generation",)
_SAMPLING: Final = "a setting of `transformers`"

SETTINGS: Final[SettingTable] = {
    **COMMON,
    **same("top_p", "top_k", within=_GENERATION),
    **each_stays(_SAMPLING, same("min_p", "num_beams", within=_GENERATION)),
    **each_stays(_SAMPLING, same("repetition_penalty", within=_GENERATION)),
    **each_stays(_SAMPLING, same("no_repeat_ngram_size", within=_GENERATION)),
    **same("seed"),
    "model_id": no_member("loaded before the call").shapes(MODEL_ID),
    "provider_tools": no_member("no provider runs tools; the setting is noted").stays(
        PROVIDER_TOOLS
    ),
    "provider_tool_positions": no_member("no provider runs tools").shapes(TOOL_POSITIONS),
    "reasoning_effort": no_member("chat templates have no effort"),
    "output_schema": no_member("generation follows no schema"),
    "max_tokens": written("generation", reason="no request is parsed"),
    "temperature": written("generation", reason="no request is parsed"),
    "do_sample": written("generation", reason="no request is parsed").stays(_SAMPLING),
    "stop_sequences": copied(*_GENERATION, "stop_strings"),
    "tool_choice": no_member("chat templates have no choice of tools; a choice is noted"),
    "extra_body": written("generation", reason="no request is parsed").stays(_SAMPLING),
}
"""Counterpart of each setting in the request body."""
