"""Plugin of pytest that puts deltafold beneath a project while its own tests run.

In: `--takeover` (plain, accelerated or folded), `--takeover-of` (the project) and
`--takeover-report`.  Out: a JSON file with the outcome of each test, the answers that it noted, and
the counts of clients, streams and objects.

Laws: the tests and the project are unchanged. No connection leaves the machine, in any mode.
`accelerated` accelerates each client of openai and anthropic, `folded` puts `stream` below what
reads their objects (`beneath`, `readings`).
"""

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final

import anthropic
import beneath
import openai
import pytest
import readings
from stand_ins import stand_in

from deltafold.compat import anthropic as fast_anthropic
from deltafold.compat import message_of
from deltafold.compat import openai as fast_openai

_LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost", "", None})
_READS: Final = (
    (openai.Stream, "__iter__"),
    (openai.AsyncStream, "__aiter__"),
    (anthropic.Stream, "__iter__"),
    (anthropic.AsyncStream, "__aiter__"),
)
_OUTCOMES: Final = pytest.StashKey[dict[str, str]]()
_ANSWERS: Final = pytest.StashKey[dict[str, object]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the check."""
    group = parser.getgroup("takeover")
    group.addoption("--takeover", choices=("plain", "accelerated", "folded"), default="plain")
    group.addoption("--takeover-of", default="")
    group.addoption("--takeover-report", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Put deltafold in place, before a test module is imported."""
    config.stash[_OUTCOMES] = {}
    config.stash[_ANSWERS] = {}
    _stay_local()
    project, mode = config.getoption("--takeover-of"), config.getoption("--takeover")
    stand_in(project)
    if mode == "accelerated":
        # The bases of all clients, also of those of Azure, Bedrock and Vertex.
        for base in (openai.OpenAI.__base__, openai.AsyncOpenAI.__base__):
            _accelerate_each(base, fast_openai.accelerate)
        for base in (anthropic.Anthropic.__base__, anthropic.AsyncAnthropic.__base__):
            _accelerate_each(base, fast_anthropic.accelerate)
        for kind, name in _READS:
            _count_faster(kind, name)
    elif mode == "folded":
        beneath.fold_streams()
        readings.fold_readings(project)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Note the outcome of a test: its worst phase."""
    report = yield
    outcomes = item.config.stash[_OUTCOMES]
    says = report.when == "call" or report.outcome != "passed"
    if says and outcomes.get(item.nodeid) != "failed":
        outcomes[item.nodeid] = report.outcome
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the report."""
    file = session.config.getoption("--takeover-report")
    if file:
        stash = session.config.stash
        found = {
            "outcomes": stash[_OUTCOMES],
            "counts": dict(beneath.COUNTED),
            "answers": stash[_ANSWERS],
        }
        Path(file).write_text(json.dumps(found, default=repr), encoding="utf-8")


@pytest.fixture
def answer(request: pytest.FixtureRequest) -> Callable[[object], None]:
    """Return the function that notes what a model answered, for the comparison of the runs."""
    answers, name = request.config.stash[_ANSWERS], request.node.nodeid

    def note(value: object) -> None:
        answers[name] = value

    return note


def _accelerate_each(kind: Any, accelerate: Any) -> None:
    """Accelerate each client of a class and of its subclasses."""
    made = kind.__init__

    @wraps(made)
    def make(self: Any, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        accelerate(self)
        beneath.COUNTED["clients"] += 1

    kind.__init__ = make


def _count_faster(kind: Any, name: str) -> None:
    """Count the streams that are read through the iterator of an accelerated client."""
    plain = getattr(kind, name)

    @wraps(plain)
    def reads(self: Any) -> Any:
        with suppress(TypeError):
            message_of(self)
            beneath.COUNTED["faster"] += 1
        return plain(self)

    setattr(kind, name, reads)


def _stay_local() -> None:
    """Let names and addresses of other machines be unknown."""
    look_up, connect = socket.getaddrinfo, socket.socket.connect

    @wraps(look_up)
    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in _LOCAL:
            raise socket.gaierror(socket.EAI_NONAME, "the check stays on this machine")
        return look_up(host, *arguments, **options)

    def connect_locally(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in _LOCAL:
            raise ConnectionRefusedError("the check stays on this machine")
        connect(self, address)

    socket.getaddrinfo = getaddrinfo
    patched: Any = socket.socket
    patched.connect = connect_locally
