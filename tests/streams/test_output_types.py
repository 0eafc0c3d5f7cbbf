"""Static types of outputs, and the types of partial outputs that the command writes.

The calls of `assert_type` are checks of mypy and of basedpyright, which read this file in the lint
gate. The generated module is checked by both in the same way.
"""

import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, assert_type, get_type_hints

import pytest

import deltafold
import recipe_types
from deltafold import Answer, AsyncDeltaStream, DeltaStream, Message, Model, Output
from deltafold import AsyncOutputStream as Awaited
from deltafold import OutputStream as Waited
from deltafold.cli import main
from deltafold.cli.types import module_of_type
from deltafold.contract.exceptions import MisuseError
from recipe_types import RecipePartial, StepPartial
from recipes import City, Dish, Place, Recipe

TYPES = Path(recipe_types.__file__)


def check_streams(model: Model[Any]) -> None:
    """Check the types of streams; never called."""
    assert_type(model.stream("a"), AsyncDeltaStream)
    assert_type(model.stream_sync("a", [], "b", temperature=0.5), DeltaStream)
    assert_type(model.stream("a", output=Recipe), Awaited[Recipe])
    assert_type(model.stream_sync("a", [], output=Place), Waited[Place])
    assert_type(model.stream_sync("a", output=City, system_prompt="b"), Waited[City])
    assert_type(model.stream_sync("a", output=list[Dish]), Waited[list[Dish]])
    assert_type(model.stream_sync("a", output={"type": "object"}), Waited[object])
    typed = Output(Recipe, partial=RecipePartial)
    assert_type(typed, Output[Recipe, RecipePartial])
    with model.stream_sync("a", output=typed) as stream:
        assert_type(stream, Waited[Recipe, RecipePartial])
        assert_type(stream.partial, RecipePartial)
        assert_type(stream.partial.get("steps", []), list[StepPartial])
        assert_type(stream.final_output(), Recipe)
        accepted: DeltaStream = stream
        assert accepted is stream
    assert_type(Output(Place), Output[Place, Mapping[str, object]])
    assert_type(model.stream_sync("a", output=Output(Place)).partial, Mapping[str, object])
    either = Output[Place | Dish](Place | Dish)
    assert_type(model.stream_sync("a", output=either).final_output(), Place | Dish)


async def check_messages(model: Model[Any]) -> None:
    """Check the types of answers; never called."""
    assert_type(await model.send_message("a"), Message)
    assert_type(await model.send_message("a", [], output=Recipe), Answer[Recipe])
    assert_type(await model.send_message("a", output=Output(Place)), Answer[Place])
    assert_type(model.send_message_sync("a", stream=False), Message)
    assert_type(model.send_message_sync("a", output=Place, stream=False).output, Place)
    async with model.stream("a", output=Recipe) as stream:
        assert_type(stream.partial, Mapping[str, object])
        assert_type(await stream.final_output(), Recipe)


def test_the_types_of_the_command_are_those_of_the_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["types", "recipes:Recipe"]) == 0
    assert capsys.readouterr().out == TYPES.read_text("utf-8")
    assert main(["types", "recipes:Recipe", "--check", str(TYPES)]) == 0
    assert main(["types", "recipes:Dish", "--check", str(TYPES)]) == 1
    assert "is not what" in capsys.readouterr().err


def test_every_member_is_optional() -> None:
    assert RecipePartial.__required_keys__ == frozenset()
    assert get_type_hints(RecipePartial)["steps"] == list[StepPartial]
    assert get_type_hints(StepPartial) == {"text": str, "minutes": int | None}


@pytest.mark.parametrize("place", ["recipes:Price", "recipes:Place", "recipes:City"])
def test_a_written_module_can_be_imported(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = place.partition(":")[2]
    (tmp_path / f"written_{name}.py").write_text(module_of_type(place), "utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    partial = getattr(import_module(f"written_{name}"), f"{name}Partial")
    assert partial.__total__ is False
    assert get_type_hints(partial)


def test_objects_inside_of_a_definition_get_a_class() -> None:
    text = module_of_type("deltafold:Message")
    assert "class ToolCallPart_payloadPartial(TypedDict, total=False):" in text
    compile(text, "types", "exec")


def test_a_type_that_is_no_object_gets_an_alias() -> None:
    text = module_of_type("recipes:Dishes")
    assert 'DishesPartial: TypeAlias = "list[DishPartial]"' in text
    assert "class DishPartial(TypedDict, total=False):" in text


@pytest.mark.parametrize(
    "place", ["recipes", "recipes:None_", "no_such_module:A", "recipes:date.x"]
)
def test_a_wrong_place_is_a_usage_error(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MisuseError):
        module_of_type(place)
    assert main(["types", place]) == 2
    assert capsys.readouterr().err.startswith("deltafold: types:")


def test_the_command_finds_modules_of_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    b: int\n", "utf-8"
    )
    command = [sys.executable, "-m", "deltafold", "types", "shop:A"]
    package = Path(deltafold.__file__).parent.parent
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(package), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "class APartial(TypedDict, total=False):" in ran.stdout
