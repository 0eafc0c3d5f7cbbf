"""Recordings for the models of the projects whose released sources have no tests of them.

In: a dialect.  Out: a sample of its recordings, and a server on the loopback interface for each.

Law: the runner compares what a model makes of a recording plain, accelerated and folded. An
exception of the model is an answer as well.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from corpus import recorded
from deltafold.testing import Recording, ReplayServer

PATHS: Final = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
}
ONE_IN: Final = 8


def recordings(dialect: str) -> pytest.MarkDecorator:
    """Return the mark that gives a test `path` and `body`: every eighth recording of a dialect."""
    cases = [
        pytest.param(PATHS[dialect], body, id=name.rpartition("/")[2])
        for name, body in recorded(dialect)[::ONE_IN]
    ]
    return pytest.mark.parametrize(("path", "body"), cases)


@contextmanager
def served(path: str, body: bytes) -> Generator[str]:
    """Serve a recording; yields the address of the server."""
    with ReplayServer({path: Recording.of_events(body)}, flat_out=True) as server:
        yield server.url


def answered(ask: Callable[[], object]) -> object:
    """Return what a model answers, or the exception that it raises."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - compared with the other runs
        return {"raised": type(error).__name__, "text": str(error)}


def plain(value: Any) -> object:
    """Return a value of pydantic, or one with `to_dict`, as a dict."""
    for name in ("model_dump", "to_dict"):
        if hasattr(value, name):
            return getattr(value, name)()
    return value
