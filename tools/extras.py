"""Tests each extra with the lowest and with the highest versions that its bounds allow.

In: the extras of pyproject.toml, and the wheel of this tree.  Out: for each suite and each end of
the bounds an environment in `.venv-extras/`, the tests run in it, and a table of versions.

Laws: the lowest version is the lower bound itself; packages that no extra names are the newest that
fit. An extra that no suite names is an error, except those of `NOT_RUN`, which say why.

usage: tools/extras.py [suite ...] [--end lowest|highest]
    from the environment of `make check NAME=extras`
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

ROOT: Final = Path(__file__).resolve().parent.parent
TOOLS: Final = Path(sys.executable).parent
PLACE: Final = TOOLS.parent / "environments"

End: TypeAlias = Literal["lowest", "highest"]
ENDS: Final[tuple[End, ...]] = ("lowest", "highest")


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests of some extras.

    Attributes:
        extras: the extras that are installed, each at one end of its bounds.
        beside: other packages that the tests import.
        tests: the files that use the extras.
        options: options of pytest.
    """

    extras: tuple[str, ...]
    beside: tuple[str, ...]
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()


_TESTS: Final = ("pytest", "pytest-timeout", "hypothesis", "anyio", "trio", "trustme", "jsonschema")
_OTHER_CLIENTS: Final = ("aiobotocore>=2.19", "cohere>=7", "google-genai>=3", "ollama", "httpx")
_FRAMEWORKS: Final = "tests/external/frameworks"
_IN_FRAMEWORKS: Final = ("-c", f"{_FRAMEWORKS}/pytest.ini", "--rootdir", _FRAMEWORKS)
_FRAMEWORK_TESTS: Final = ("pytest", "pytest-asyncio", "pytest-mock", "pytest-timeout")

SUITES: Final[Mapping[str, Suite]] = {
    "clients": Suite(
        ("anthropic", "openai", "httpx", "httpx2", "aiohttp"),
        (*_TESTS, "boto3", "brotli", "h2", "requests"),
        (
            "tests/compat/test_compat_anthropic.py",
            "tests/compat/test_compat_builders.py",
            "tests/compat/test_compat_openai.py",
            "tests/transports/test_connections.py",
            "tests/transports/test_http.py",
            "tests/transports/test_http2.py",
            "tests/models/test_model_calls.py",
            "tests/models/test_model_failures.py",
            "tests/transports/test_refusals.py",
            "tests/streams/test_timeouts.py",
        ),
    ),
    "mcp": Suite(("mcp",), (*_TESTS, "httpx2"), ("tests/agent/test_mcp_tools.py",)),
    "arrow": Suite(
        ("arrow", "testing", "prices", "cli"),
        _TESTS,
        ("tests/decode/test_arrow.py", "tests/cli/test_cli_columns.py"),
    ),
    # aiobotocore needs a newer aiohttp than deltafold.
    "adapters": Suite(
        ("anthropic", "openai", "mistral", "bedrock"),
        (*_TESTS, *_OTHER_CLIENTS),
        (
            "tests/models/test_adapters.py",
            "tests/models/test_environment.py",
            "tests/transports/test_no_connection.py",
        ),
    ),
    "tools": Suite(
        ("prices", "testing", "otel", "cli", "gateway", "httpx2", "openai", "anthropic"),
        (*_TESTS, "opentelemetry-sdk", "aiohttp", "httpx", "jedi"),
        (
            "tests/testing/test_cassettes.py",
            "tests/cli/test_cli.py",
            "tests/cli/test_cli_models.py",
            "tests/cli/test_cli_reading.py",
            "tests/messages/test_cost.py",
            "tests/models/test_otel.py",
            "tests/testing/test_recorder.py",
            "tests/testing/test_replay_server.py",
            "tests/messages/test_shown.py",
        ),
    ),
    "gateway": Suite(
        ("gateway", "openai", "anthropic"),
        (*_TESTS, *_OTHER_CLIENTS, "fastapi"),
        (
            "tests/gateway/test_gateway.py",
            "tests/docs/test_gateway_doc.py",
            "tests/gateway/test_gateway_fetching.py",
            "tests/gateway/test_gateway_going_on.py",
            "tests/gateway/test_gateway_hooks.py",
            "tests/gateway/test_gateway_replay.py",
        ),
    ),
    "langchain": Suite(
        ("langchain", "httpx2"),
        (*_FRAMEWORK_TESTS, "langchain-tests", "langchain-openai", "langchain-anthropic"),
        (f"{_FRAMEWORKS}/test_langchain.py", f"{_FRAMEWORKS}/test_langchain_users.py"),
        _IN_FRAMEWORKS,
    ),
    "openai-agents": Suite(
        ("openai-agents",),
        (*_FRAMEWORK_TESTS, "inline-snapshot"),
        (f"{_FRAMEWORKS}/test_openai_agents.py", f"{_FRAMEWORKS}/test_openai_agents_users.py"),
        _IN_FRAMEWORKS,
    ),
    "pydantic-ai": Suite(
        ("pydantic-ai",),
        (*_FRAMEWORK_TESTS, "pydantic-ai-slim[anthropic,openai]"),
        (
            f"{_FRAMEWORKS}/test_pydantic_ai.py",
            f"{_FRAMEWORKS}/test_pydantic_ai_requests.py",
            f"{_FRAMEWORKS}/test_pydantic_ai_users.py",
        ),
        _IN_FRAMEWORKS,
    ),
    "strands": Suite(
        ("strands",),
        (*_FRAMEWORK_TESTS, "strands-agents[openai]"),
        (f"{_FRAMEWORKS}/test_strands.py", f"{_FRAMEWORKS}/test_strands_users.py"),
        _IN_FRAMEWORKS,
    ),
    "litellm": Suite(
        ("litellm",),
        _FRAMEWORK_TESTS,
        (f"{_FRAMEWORKS}/test_litellm.py", f"{_FRAMEWORKS}/test_litellm_users.py"),
        _IN_FRAMEWORKS,
    ),
}
NOT_RUN: Final[Mapping[str, str]] = {
    "uvloop": "tests of the gateway replace asyncio's resolver; `make bench NAME=gateway` has it",
    "local": "torch needs several GB; `make check NAME=local` tests the newest versions",
    "demo": "its packages are those of the extras anthropic, openai, httpx2 and cli",
}


def main() -> int:
    """Run the suites that the command line names; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], default=[])
    parser.add_argument("--end", choices=ENDS)
    asked = parser.parse_args()
    ends: tuple[End, ...] = (cast("End", asked.end),) if asked.end else ENDS
    extras = read_extras((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (wheel,) = (ROOT / "dist").glob("*.whl")
    print("| suite | end | versions | tests |\n|---|---|---|---|")
    failed = 0
    for name in cast("list[str]", asked.suites) or SUITES:
        for end in ends:
            row, passed = one_row(name, SUITES[name], end, extras, wheel)
            print(row, flush=True)
            failed += not passed
    for name, reason in NOT_RUN.items():
        print(f"not run: {name}: {reason}")
    return 1 if failed else 0


def read_extras(text: str) -> dict[str, list[str]]:
    """Return the requirements of each extra, without extras that repeat others."""
    table = tomllib.loads(text)
    return cast("dict[str, list[str]]", table["project"]["optional-dependencies"])


def pinned(requirements: Iterable[str]) -> list[str]:
    """Return requirements that allow the lower bounds only.

    Raises:
        ValueError: a requirement has no lower bound.
    """
    found: list[str] = []
    for requirement in requirements:
        match = re.fullmatch(r"([A-Za-z0-9._-]+)>=([0-9.]+)(?:,<[0-9.]+)?(; .+)?", requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no lower bound of the form name>=version")
        found.append(f"{match[1]}=={match[2]}{match[3] or ''}")
    return found


def one_row(
    name: str, suite: Suite, end: End, extras: Mapping[str, list[str]], wheel: Path
) -> tuple[str, bool]:
    """Install the environment of a suite, run it, and return a row and whether it passed."""
    place = PLACE / f"{name}-{end}"
    python = place / "bin" / "python"
    bounds = list(dict.fromkeys(one for extra in suite.extras for one in extras[extra]))
    wanted = pinned(bounds) if end == "lowest" else bounds
    uv("venv", "--quiet", "--clear", "--python", sys.executable, str(place))
    installed = uv(
        "pip", "install", "--quiet", "--python", str(python), str(wheel), *wanted, *suite.beside
    )
    if installed.returncode != 0:
        print(installed.stderr, file=sys.stderr)
        return f"| {name} | {end} | {', '.join(wanted)} | cannot be installed |", False
    command: list[str | Path] = [python, "-m", "pytest", "-q", *suite.options, *suite.tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout[-20_000:], done.stderr, file=sys.stderr)
    *_, last = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
    shown = ", ".join(versions(python, bounds))
    return f"| {name} | {end} | {shown} | {last.strip('= ')} |", done.returncode == 0


def versions(python: Path, requirements: Iterable[str]) -> list[str]:
    """Return the names and installed versions of packages."""
    names = [re.split(r"[<>=\[]", requirement)[0] for requirement in requirements]
    code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
    done = subprocess.run([python, "-c", code, *names], capture_output=True, text=True, check=True)
    return [f"{name} {at}" for name, at in zip(names, done.stdout.split(), strict=True)]


def uv(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run uv with the index that pip uses."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    index = os.environ.get("PIP_INDEX_URL") or configured.stdout.strip()
    environment = {**os.environ, **({"UV_DEFAULT_INDEX": index} if index else {})}
    return subprocess.run(
        [TOOLS / "uv", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
