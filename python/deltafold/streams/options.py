"""Keyword options that the entries of streams and bodies pass to `Decoder`."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Literal, TypedDict

from deltafold._core import Limits
from deltafold.message import data_types


class ChoicesOptions(TypedDict, total=False):
    """The keyword options of a decoder of every choice: those of `Decoder` except `choice`."""

    run_id: str | None
    model_id: str | None
    request_id: str | None
    status: int
    headers: Mapping[str, str] | None
    tools: Iterable[object] | None
    markup: "data_types.MarkupName | None"
    starts_in_thinking: bool
    tool_names: Mapping[str, str] | None
    provider_raw: bool
    logprobs: bool
    ends_without_reason: bool
    limits: Limits | None
    clock: Callable[[], datetime] | None


class DecoderOptions(ChoicesOptions, total=False):
    """The keyword options of `Decoder`, which every entry of this module takes."""

    choice: int | Literal["joined"]
