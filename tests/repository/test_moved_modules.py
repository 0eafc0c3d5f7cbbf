"""Names of modules that moved."""

import importlib
import subprocess
import sys

import pytest

MOVED = {
    "deltafold.conversation.run_entries": "deltafold.conversation.history.run_entries",
    "deltafold.cost": "deltafold.message.cost",
    "deltafold.exceptions": "deltafold.contract.exceptions",
}


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_is_the_module_at_its_new_place(old: str) -> None:
    found = importlib.import_module(old)
    assert found is importlib.import_module(MOVED[old])
    assert found.__name__ == MOVED[old]
    assert found.__spec__ is not None
    assert found.__spec__.name == MOVED[old]


def test_no_moved_module_is_loaded_before_its_old_name_is_imported() -> None:
    program = (
        "import sys, deltafold\n"
        "assert 'deltafold.message.cost' not in sys.modules\n"
        "from deltafold.cost import cost_of\n"
        "import deltafold.exceptions\n"
        "assert deltafold.exceptions.MisuseError is deltafold.MisuseError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
