"""Signed and encrypted content goes back to its provider byte for byte, and to no other.

The recordings lie beside the project, at `../shared/corpus` or where `DELTAFOLD_CORPUS` says;
without them there is nothing to test.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from any_name import AnyName
from conversations import DIALECTS
from corpus import CORPUS, needs_corpus
from deltafold import Decoder, Message, MessageAssembler
from deltafold.dialects import dialect_of

MODEL = "the-model-that-was-asked"

# Members of state that only their provider can read.
SECRETS = {
    "signature",
    "data",
    "encrypted_content",
    "thoughtSignature",
    "thought_signature",
    "redactedContent",
}
MIN_LENGTH = 8  # a shorter one could stand anywhere by chance

pytestmark = needs_corpus


def recorded(dialect: AnyName) -> Iterator[tuple[str, Message]]:
    """Yield the message of each recording of a dialect whose parts carry state."""
    lines = (CORPUS / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        if row["dialect"] != dialect:
            continue
        decoder, assembler = Decoder(dialect, run_id="run", model_id=MODEL), MessageAssembler()
        body = (CORPUS / row["file"]).read_bytes()
        for batch in (decoder.feed(body), decoder.close()):
            assembler.consume(batch)
        message = assembler.snapshot()
        if any(part.provider_state for part in message.parts):
            yield row["file"], message


def secrets_of(message: Message) -> set[str]:
    states = [part.provider_state for part in message.parts if part.provider_state]
    return {secret for state in states for secret in found(state["data"])}


def found(value: Any, name: str = "") -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        for member, inner in cast("dict[str, Any]", value).items():
            yield from found(inner, member)
    elif isinstance(value, list):
        for inner in listed(value):
            yield from found(inner, name)
    elif isinstance(value, str) and name in SECRETS and len(value) >= MIN_LENGTH:
        yield value


def listed(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON
    return list(value)


def next_request(message: Message, dialect: str, model_id: str) -> set[str]:
    """Return every text of the request that follows a message, its calls answered."""
    held = json.dumps([part.provider_state for part in message.parts])
    fields: dict[str, object] = {"model_id": model_id}
    if dialect == "openai-chat":
        wants = [name for name in ("reasoning_details", "thinking_blocks") if f'"{name}"' in held]
        fields["replay_reasoning"] = wants[0] if wants else None
    results = [Message.tool_result(call.tool_call_id, "done") for call in message.tool_calls]
    history = [Message.user("Go"), message, *results]
    config = dialect_of(dialect).config_class.model_validate(fields)
    body = dialect_of(dialect).render(history, [], config).body
    return set(texts(json.loads(json.dumps(body))))


def texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast("dict[str, Any]", value).values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in listed(value):
            yield from texts(inner)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_state_goes_back_to_its_own_model_and_to_no_other(dialect: str) -> None:
    streams = 0
    for name, message in recorded(dialect):
        secrets = secrets_of(message)
        streams += bool(secrets)
        assert secrets <= next_request(message, dialect, MODEL), name
        assert secrets.isdisjoint(next_request(message, dialect, "another-model")), name
        for other in DIALECTS:
            if other != dialect and secrets:
                assert secrets.isdisjoint(next_request(message, other, MODEL)), (name, other)
    # The others give nothing that only they can read, or no recording of them holds any.
    assert (streams > 0) == (dialect not in {"ollama", "cohere-chat", "mistral"})
