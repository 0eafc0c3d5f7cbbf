"""The examples in the docstrings of public names run, over real HTTP against recordings.

`undemonstrated.py` lists the names without an example, and those whose example stands for code of
the caller. The lists may only shrink.
"""

from pathlib import Path

import pytest

from deltafold import MisuseError
from documentation import AnyProvider, Reader, surround
from introduced import introduce
from test_reference import PUBLIC, docstring_of, has_example
from undemonstrated import NOT_RUN, WITHOUT_EXAMPLE

SHOWN = sorted(filter(has_example, PUBLIC))


def test_the_names_without_an_example_are_listed_and_no_others() -> None:
    assert {*PUBLIC} - {*SHOWN} == WITHOUT_EXAMPLE
    assert {*SHOWN} >= NOT_RUN


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
