"""Partial outputs of recipes:Recipe, written by `deltafold types`."""

from typing import TypedDict


class RecipePartial(TypedDict, total=False):
    """Partial value of `Recipe`."""

    title: str
    serves: int
    level: str
    steps: "list[StepPartial]"
    tags: dict[str, str] | None
    variant: "RecipePartial | None"


class StepPartial(TypedDict, total=False):
    """Partial value of `Step`."""

    text: str
    minutes: int | None
