"""Rows of a user in the table of models: from code, from a file, and by an environment variable."""

import json
import subprocess
import sys
from collections.abc import Iterator
from os import environ
from pathlib import Path
from typing import Any

import pytest

import deltafold
from deltafold import MisuseError, add_models, load_model
from deltafold.dialects import model_table
from deltafold.dialects.model_table import facts_of, find_model, remove_added_models


@pytest.fixture(autouse=True)
def _only_ours() -> Iterator[None]:
    yield
    remove_added_models()


def test_a_row_goes_before_that_of_the_table() -> None:
    assert find_model("gpt-5.6-terra") is not None
    add_models({"gpt-5.6-terra": {"like": "gpt-5.6-terra", "max_output_tokens": 9}})
    model = load_model("openai/gpt-5.6-terra", api_key="k", max_tokens=100)
    assert model.model_info().max_output_tokens == 9
    rendered = model.row.render([deltafold.Message.user("q")], [], model.get_config())
    assert rendered.body["max_output_tokens"] == 16  # the least that the API takes


def test_a_deployment_has_the_facts_of_its_model() -> None:
    add_models({"prod": {"like": "gpt-5.6-terra"}})
    assert load_model("openai/prod", api_key="k").dialect == "openai-responses"
    assert load_model("openai/prod", api_key="k").supports("thinking") is True


def test_a_new_model_stands_for_newer_ones() -> None:
    row = {"vendor": "openai", "thinking": "always", "efforts": {"openai-chat": ["low", "max"]}}
    add_models({"gpt-8-sol": row})
    known = find_model("gpt-8.1-sol")
    assert known is not None
    assert known.name == "gpt-8.1-sol (taken as gpt-8-sol)"
    assert known.facts.efforts == {"openai-chat": ("low", "max")}


@pytest.mark.parametrize("kind", ["toml", "json"])
def test_a_file_has_rows(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"models.{kind}"
    rows = {"prod": {"like": "gpt-5.6-terra", "sampling": {"temperature": "never"}}}
    text = '[prod]\nlike = "gpt-5.6-terra"\nsampling.temperature = "never"\n'
    path.write_text(json.dumps(rows) if kind == "json" else text)
    add_models(path)
    facts = facts_of("prod")
    assert facts is not None
    assert (facts.name, facts.sampling) == ("prod", {"temperature": "never"})


def test_a_whole_table_goes_before_ours(tmp_path: Path) -> None:
    ours = Path(model_table.__file__).with_name("model_table.json")
    table = json.loads(ours.read_bytes())
    key = next(row for row in table["models"] if row == "gpt-5.6-terra")
    table["models"]["gpt-5.7-terra"] = table["models"][key]
    path = tmp_path / "newer.json"
    path.write_text(json.dumps(table))
    assert facts_of("gpt-5.7-terra") is None
    add_models(path)
    newer, known = facts_of("gpt-5.7-terra"), facts_of("gpt-5.6-terra")
    assert newer is not None
    assert known is not None
    assert newer.efforts == known.efforts


def test_an_environment_variable_names_a_file(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text('[prod]\nlike = "gpt-5.6-terra"\n')
    code = "import deltafold; print(deltafold.load_model('openai/prod', api_key='k').dialect)"
    for variable, dialect in ((str(path), "openai-responses"), ("", "openai-chat")):
        found = subprocess.run(
            [sys.executable, "-c", code],
            env={**environ, "DELTAFOLD_MODELS": variable},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == dialect


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ({"x": {"like": "nope"}}, "'x': the table has no model 'nope'"),
        ({"x": {"like": "gpt-5.2", "effort": {}}}, "no fact 'effort'; did you mean 'efforts'"),
        ({"x": {"like": "gpt-5.2", "name": "y"}}, "no fact 'name'"),
        ({"x": {}}, "neither like nor vendor"),
        ({"x": 3}, "an object of facts, not 3"),
        ({"x": {"like": "gpt-5.2", "thinking": "maybe"}}, "thinking must be of never, optional"),
        ({"x": {"like": "gpt-5.2", "sampling": {"top_p": "no"}}}, "sampling must be of always"),
        ({"x": {"like": "gpt-5.2", "max_output_tokens": "many"}}, "max_output_tokens: .*integer"),
    ],
)
def test_a_wrong_row_names_the_model_and_the_fact(rows: Any, match: str) -> None:  # noqa: ANN401
    with pytest.raises(MisuseError, match=match):
        add_models(rows)
    assert facts_of("x") is None


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text("[prod\n")
    with pytest.raises(MisuseError, match=r"models\.toml"):
        add_models(path)
    with pytest.raises(FileNotFoundError):
        add_models(tmp_path / "absent.toml")
    listed = tmp_path / "models.json"
    listed.write_text("[]")
    with pytest.raises(MisuseError, match="there are no rows"):
        add_models(listed)
