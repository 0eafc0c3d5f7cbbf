"""The examples in the docstrings of public names run, over real HTTP against recordings.

Every public name has one. `undemonstrated.py` lists those whose example stands for code of the
caller; the list may only shrink.
"""

import doctest
from pathlib import Path

import pytest

from any_provider import AnyProvider
from deltafold import MisuseError
from documentation import Reader, surround
from introduced import introduce
from public_names import PUBLIC, docstring_of, has_example
from stated_outputs import WIDEST
from undemonstrated import NOT_RUN

SHOWN = sorted(filter(has_example, PUBLIC))


def test_every_public_name_has_an_example() -> None:
    assert {*PUBLIC} == {*SHOWN}
    assert {*SHOWN} >= NOT_RUN


def test_no_line_of_an_example_is_wider_than_its_box() -> None:
    for name in SHOWN:
        for shown in doctest.DocTestParser().get_examples(docstring_of(name)):
            prompted = (f">>> {line}" for line in shown.source.splitlines())
            assert all(len(line) <= WIDEST for line in (*prompted, *shown.want.splitlines())), name


@pytest.mark.parametrize("name", SHOWN)
def test_the_example_of_a_name_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = name.rpartition(".")[0]
    known = {
        path: value
        for path, value in PUBLIC.items()
        if path.rpartition(".")[0] in {"deltafold", module}
    }
    with AnyProvider() as server:
        names = surround(tmp_path, server, monkeypatch)
        introduce(names, known)
        names["server"] = server
        with Reader(names) as reader:
            if name in NOT_RUN:
                with pytest.raises((AttributeError, KeyError, MisuseError, NameError)):
                    reader.run_examples(docstring_of(name))
            else:
                reader.run_examples(docstring_of(name))
