"""The types of settings name what the configurations and the Model take, and nothing else."""

from typing import Any, Final

from deltafold.dialects import DIALECTS, LOCAL
from deltafold.models.call_inputs import _OPTIONS  # pyright: ignore[reportPrivateUsage]
from deltafold.models.loader import _MODEL_ARGUMENTS  # pyright: ignore[reportPrivateUsage]
from deltafold.models.setting_types import (
    CallSettings,
    LoadSettings,
    OutputOptions,
    StreamOptions,
)

FIELDS: Final = {
    name for row in (*DIALECTS.values(), LOCAL) for name in row.config_class.model_fields
}
ARGUMENTS: Final = {"tool_choice", "request_metadata"}
"""Fields of configurations that are arguments of a call too, with other types."""


def names(typed: Any) -> set[str]:  # noqa: ANN401 - a class of TypedDict
    return set(typed.__annotations__)


def test_a_call_takes_the_fields_of_all_configurations() -> None:
    assert names(CallSettings) == FIELDS - ARGUMENTS


def test_load_model_takes_the_arguments_of_a_model_too() -> None:
    assert names(LoadSettings) == FIELDS | _MODEL_ARGUMENTS


def test_a_stream_takes_the_options_of_a_call_too() -> None:
    assert names(StreamOptions) - names(CallSettings) == _OPTIONS - {"output"} | {"tee"}
    assert names(OutputOptions) - names(StreamOptions) == {"system_prompt", "stream"}
