"""Settings of models of `transformers` in this process."""

from typing import Annotated

from pydantic import ConfigDict, Field

from deltafold.dialects.settings import Count, Flag, ModelConfig, Positive, Share


class LocalConfig(ModelConfig):
    """Settings of a `transformers` pipeline in this process.

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
