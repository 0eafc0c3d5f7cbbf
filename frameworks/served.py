"""Fixtures and written answers over real HTTP, for the tests of the adapters.

In: the name of a dialect and of a case of tests/fixtures.  Out: a server on the loopback interface
that answers every request with it, and deltafold models that call the server.

Law: bytes are sent one event per HTTP chunk, as a provider sends them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import deltafold
from deltafold.models.adapters import adapter_of
from deltafold.models.base import Model
from deltafold.testing import Recording, ReplayServer

FIXTURES: Final = Path(__file__).parents[1] / "tests" / "fixtures"
NAMES: Final = {
    "anthropic-messages": "claude-opus-4-8",
    "openai-chat": "gpt-5",
    "openai-responses": "gpt-5.2",
    "gemini": "gemini-3-pro-preview",
}
"""Requested model of each dialect; it is the one of the fixtures, so that their state goes back."""


def cases(dialect: str) -> list[str]:
    """Return the names of the streamed fixtures of a dialect."""
    return sorted(path.parent.name for path in (FIXTURES / dialect).glob("*/wire.sse"))


def body(dialect: str, case: str) -> bytes:
    """Return the bytes of a streamed fixture."""
    return (FIXTURES / dialect / case / "wire.sse").read_bytes()


def recording(dialect: str, case: str) -> Recording:
    """Return a streamed fixture as a recording."""
    return Recording.of_events(body(dialect, case))


@contextmanager
def served(*answers: Recording) -> Iterator[ReplayServer]:
    """Serve answers in their order; a single answer is served again and again."""
    recordings: Any = {"*": answers[0]} if len(answers) == 1 else list(answers)
    with ReplayServer(recordings) as server:
        yield server


def model(dialect: str, server: ReplayServer, **config: object) -> Model[Any]:
    """Return a deltafold model that calls a server."""
    make = adapter_of(dialect)
    if make is None:
        raise AssertionError(dialect)
    settings = {"model_id": NAMES[dialect], **config}
    return make(settings, base_url=server.url, api_key="key")


def folded(dialect: str, case: str) -> deltafold.Message | None:
    """Return the message of a fixture, folded by deltafold alone; None if its stream failed."""
    wire = body(dialect, case)
    with deltafold.stream([wire], dialect, model_id=NAMES[dialect]) as stream:
        for _ in stream.batches():
            pass
        return None if stream.error is not None else stream.ended_message()
