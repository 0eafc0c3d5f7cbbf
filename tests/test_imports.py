"""What importing deltafold loads: no SDK, no HTTP client, no event loop."""

import json
import subprocess
import sys

# Beside the standard library, deltafold imports pydantic and what pydantic imports.
ALLOWED = {
    "annotated_types",
    "deltafold",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}

REPORT = """
import json, sys
before = set(sys.modules)
import deltafold
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def loaded() -> set[str]:
    answer = subprocess.run([sys.executable, "-c", REPORT], capture_output=True, check=True)
    return set(json.loads(answer.stdout))


def test_importing_loads_pydantic_and_nothing_else_that_is_installed() -> None:
    names = loaded()
    assert "deltafold" in names
    # The interpreter's own build facts, which are named after the platform.
    others = {name for name in names if not name.startswith("_sysconfigdata")}
    assert others - sys.stdlib_module_names <= ALLOWED


def test_importing_loads_nothing_that_talks_to_a_network() -> None:
    assert not loaded() & {"asyncio", "ssl"}


def test_the_parser_of_http_is_loaded_when_a_client_is_made() -> None:
    code = (
        "import sys\n"
        "from deltafold.models import Http1Client, load_model\n"
        "before = 'httptools' in sys.modules\n"
        "Http1Client()\n"
        "print(before, 'httptools' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert answer.stdout.split() == [b"False", b"True"]
