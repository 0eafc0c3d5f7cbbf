"""Tests of strands' own source distribution, run against the adapter.

They are the conformance tests of its models, and the tests of `process_stream`. Some of them name
exact events of Bedrock, and fail with a reason.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
SDISTS: Final = HERE.parents[2] / ".venv-frameworks" / "sdists"

DIFFERENT: Final = {
    "text and thinking have no `contentBlockStart`, as in the streams of Bedrock": (
        "test_process_stream[response1-exp_events1]",
        "test_process_stream_redacted[response0-exp_events0]",
        "test_process_stream_redacted[response1-exp_events1]",
    ),
    "the total is the sum of both counts, and the latency is measured": (
        "test_process_stream[response0-exp_events0]",
    ),
    "a stream without events is an error": ("test_process_stream[response2-exp_events2]",),
    "a signature arrives whole; of several, the last one counts": (
        "test_process_stream_with_signature",
    ),
    "a call has its id and name at its start": ("test_process_stream_tool_use_info_in_delta",),
}

OF_BEDROCK: Final = "test_structured_output_is_forced_when_provided_in_agent_invocation"
"""Conformance test whose agent has no model, so that it calls Bedrock."""


def run(*arguments: str) -> tuple[set[str], int, str]:
    """Run tests of the source distribution; return the failed, the number of the passed, and all.

    Its configuration files are left out: they import the clients of all providers.
    """
    (sources,) = SDISTS.glob("strands_agents-*/")
    ours = [str(HERE), str(HERE.parents[1] / "support")]
    paths = [*ours, str(sources), os.environ.get("PYTHONPATH", "")]
    options = ["-q", "-rf", "--noconftest", "-p", "no:cacheprovider", "-p", "handler_of_strands"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-o", "asyncio_mode=auto", *arguments],
        cwd=sources,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = set(re.findall(r"^FAILED .*::(test_\S+)", done.stdout, re.MULTILINE))
    passed = re.search(r"(\d+) passed", done.stdout)
    return failed, int(passed[1]) if passed else 0, done.stdout + done.stderr


def test_the_tests_of_process_stream_pass_but_for_named_differences() -> None:
    failed, passed, shown = run(
        "tests/strands/event_loop/test_streaming.py", "-k", "process_stream"
    )
    assert passed >= 6, shown[-2000:]
    assert failed == {name for names in DIFFERENT.values() for name in names}


def test_the_conformance_tests_pass_for_every_dialect() -> None:
    failed, passed, shown = run("tests_integ/models/test_conformance.py", "-k", f"not {OF_BEDROCK}")
    assert (failed, passed) == (set(), 6), shown[-2000:]
