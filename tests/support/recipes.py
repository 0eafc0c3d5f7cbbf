"""Types of outputs that several tests ask for, and the type of their partial values."""

from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Step(BaseModel):
    """Step of a recipe."""

    text: str = Field(min_length=1)
    minutes: int | None = Field(default=None, ge=0)


class Recipe(BaseModel):
    """Recipe of one dish."""

    title: str
    serves: int = 2
    level: Literal["easy", "hard"] = "easy"
    steps: list[Step] = []
    tags: dict[str, str] | None = None
    variant: "Recipe | None" = None


@dataclass
class Place:
    """Place on a map."""

    name: str
    tags: list[str] = field(default_factory=list[str])


class Price(BaseModel):
    """Price whose member has no name of Python."""

    amount: float | None = Field(default=None, alias="amount-in-€")
    until: date | Literal[7, 30] | None = None
    seller: Annotated[Place, Field(description="Shop.")] | None = None


class Dish(BaseModel):
    """Dish whose type fits into every strict subset."""

    title: str
    serves: int = 2
    level: Literal["easy", "hard"] = "easy"
    steps: list[Step] = []


class City(TypedDict):
    """City of a country."""

    city: str
    country: str


Dishes = list[Dish]
