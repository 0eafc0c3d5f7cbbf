"""Subinterpreters: the import of deltafold is refused there, and the main interpreter works."""

import subprocess
import sys
import textwrap

import pytest

WORK = """
import deltafold
body = (
    b'data: {"choices":[{"index":0,"delta":{"content":"a","tool_calls":[{"index":0,"id":"c",'
    b'"function":{"name":"f","arguments":"{}"}}]}}]}\\n\\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n'
)
message = deltafold.fold(body, "openai-chat")
assert isinstance(message, deltafold.Message) and message.text == "a"
for delta in deltafold.stream(iter([body]), "openai-chat"):
    assert isinstance(delta.kind, deltafold.DeltaKind), delta
"""
IN_SUBINTERPRETERS = """
try:
    import _interpreters  # CPython 3.13
    make = lambda: _interpreters.create("legacy")
    def run(at, code):
        failed = _interpreters.run_string(at, code)
        return "" if failed is None else failed.formatted
    destroy = _interpreters.destroy
except ImportError:
    import _xxsubinterpreters as _interpreters
    make, destroy = lambda: _interpreters.create(isolated=False), _interpreters.destroy
    def run(at, code):
        try:
            _interpreters.run_string(at, code)
        except _interpreters.RunFailedError as failed:
            return str(failed)
        return ""
for _ in range(3):
    at = make()
    found = run(at, WORK)
    assert "ImportError" in found, found
    assert "main interpreter" in found, found
    if DESTROYS:
        destroy(at)
"""


@pytest.mark.parametrize("destroys", [True, False])
@pytest.mark.parametrize("main_is_first", [True, False])
def test_a_subinterpreter_is_refused_and_the_main_one_works(
    *, main_is_first: bool, destroys: bool
) -> None:
    before = "exec(WORK)" if main_is_first else ""
    program = f"WORK, DESTROYS = {WORK!r}, {destroys}\n{before}\n{IN_SUBINTERPRETERS}\nexec(WORK)"
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "ModuleNotFoundError: No module named '_xxsubinterpreters'" in done.stderr:
        pytest.skip("this Python has no subinterpreters")
    assert (done.returncode, done.stderr) == (0, "")
