"""Plugin of pytest that runs tests of strands' source distribution against the adapter.

In: chunks that a test of `process_stream` makes up, and the models of the conformance tests.  Out:
the adapter's events in place of the chunks; models of deltafold over a local server.

Laws: the chunks become the frames that Bedrock sends, and the adapter's events keep their order and
content. `contentBlockIndex` is taken out of events, because the chunks of the tests have none.
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from answering import AnsweringServer
from served import model
from strands.event_loop import streaming

from deltafold import Decoder, MessageAssembler
from deltafold.integrations.strands import DeltafoldStrandsModel
from deltafold.integrations.strands.events import Events
from deltafold.integrations.strands.failures import exception_of
from deltafold.integrations.strands.history import wire_of
from event_stream import event as frame

SERVER = AnsweringServer({})
DIALECTS = ("anthropic-messages", "openai-chat", "openai-responses")


def _without_index(event: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {key: one for key, one in body.items() if key != "contentBlockIndex"}
        for name, body in event.items()
    }


async def handled(chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield the adapter's events of the chunks of a stream."""
    decoder, folded = Decoder("bedrock-converse"), MessageAssembler()
    events = Events("filter")
    index = 0

    def told(batch: Any) -> list[Any]:
        folded.consume(batch)
        return [_without_index(one) for one in events.feed(batch)]

    async for chunk in chunks:
        for name, body in chunk.items():
            members = {**wire_of(body)}
            if name.startswith("contentBlock"):
                members["contentBlockIndex"] = index
                index += name == "contentBlockStop"
            for one in told(decoder.feed(frame(name, members))):
                yield one
    for one in told(decoder.close()):
        yield one
    error = folded.get_error()
    if error is not None:
        raise exception_of(error)
    for one in events.end(folded.build_final_message()):
        yield _without_index(one)


@pytest.fixture(autouse=True)
def use_the_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the adapter in front of `process_stream`."""
    own = streaming.process_stream

    def through(chunks: Any, *rest: Any) -> Any:
        return own(handled(chunks), *rest)

    monkeypatch.setattr(streaming, "process_stream", through)


@pytest.fixture
def agenerator() -> Callable[[list[Any]], AsyncIterator[Any]]:
    """Make an asynchronous iterator, as the fixture of strands does."""

    async def items(values: list[Any]) -> AsyncIterator[Any]:
        for value in values:
            yield value

    return items


@pytest.fixture
def alist() -> Callable[[Any], Any]:
    """Collect an asynchronous iterator, as the fixture of strands does."""

    async def collect(items: Any) -> list[Any]:
        return [item async for item in items]

    return collect


@pytest.fixture
def moto_env() -> None:
    """Stand for the environment of AWS, which these tests do not call."""


@pytest.fixture
def moto_mock_aws() -> None:
    """Stand for the services of AWS, which these tests do not call."""


@pytest.fixture(scope="session", autouse=True)
def the_server() -> Iterator[None]:
    """Serve the models of the conformance tests."""
    with SERVER:
        yield


def _provider(dialect: str) -> SimpleNamespace:
    def create_model() -> DeltafoldStrandsModel:
        return DeltafoldStrandsModel(model(dialect, SERVER))

    return SimpleNamespace(id=dialect, mark=(), create_model=create_model)


def _module(name: str, **members: Any) -> None:
    """Replace a module of the tests, which imports the clients of all providers."""
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(members)


_module("tests_integ.conftest", retry_on_flaky=lambda *_, **__: lambda test: test)
_module(
    "tests_integ.models.providers",
    ProviderInfo=SimpleNamespace,
    all_providers=[_provider(dialect) for dialect in DIALECTS],
    **dict.fromkeys(("cohere", "llama", "mistral")),
)
