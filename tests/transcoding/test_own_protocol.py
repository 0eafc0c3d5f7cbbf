"""A stream that is decoded and encoded in its own protocol stays equal for its client.

The official client reads the recording and what the encoder writes of it.  Beyond equality, the
written form may say more: a member that the client does not know by its vendor's name (thinking,
counts) is written under the protocol's own, `tool_calls` ends an answer with calls where the vendor
wrote `stop`, and counts follow the protocol (xAI leaves reasoning out of the completion, Gemini
counts what its tools read apart from the prompt).
"""

from collections.abc import Callable, Sequence
from typing import cast

import pytest

import judge_anthropic
import judge_bedrock
import judge_gemini
import judge_ollama
import judge_openai
from corpus import needs_corpus
from deltafold import Message
from judging import (
    Answer,
    Source,
    Stream,
    fixtures,
    object_of,
    plain,
    recordings,
    source_of,
    untranscoded,
    written,
    written_whole,
)
from samples import sampled

pytestmark = needs_corpus

Read = Callable[[Stream], Answer]

# The client of each protocol, and the least number of recordings that it reads.
READERS: dict[str, tuple[Read, int]] = {
    "openai-chat": (judge_openai.chat, 300),
    "openai-responses": (judge_openai.responses, 200),
    "anthropic-messages": (judge_anthropic.read, 150),
    "gemini": (judge_gemini.read, 90),
    "bedrock-converse": (judge_bedrock.read, 20),
    "ollama": (judge_ollama.read, 1),
}
# An answer without content and without an end is a failure; the client takes it for an answer.
EMPTY = frozenset({"openai-chat/req-llm__openrouter.minimax_minimax_m1.object_streaming"})


# Streams with something that their own protocol has no form for (docs/transcoding.md).
LOST = frozenset(
    {
        "bedrock-converse/blocks-astray",
        "gemini/code-execution",
        "gemini/parts-odd",
        "gemini/server-tools",
        "openai-chat/mistral-content-list",
        "openai-responses/reasoning-both",
    }
)


def counts_grow(source: Source) -> bool:
    """Return whether the vendor's counts are less than those of its protocol."""
    return source.dialect == "gemini" or "grok" in source.name or "__xai" in source.name


def calls_of(answer: Answer, source: Source) -> list[object]:
    """Return the calls; the client of Gemini reads no arguments that are streamed."""
    if source.dialect == "gemini" and (b"partialArgs" in source.body or b"willCont" in source.body):
        return []
    ids = source.dialect != "gemini"
    return [(ids and call[0], call[1], object_of(call[2])) for call in answer.calls]


def differences(source: Source, before: Answer, after: Answer) -> list[str]:
    found: list[str] = []
    if after.text != before.text:
        found.append("text")
    if plain(before.thinking) not in {"", plain(after.thinking)}:
        found.append("thinking")
    if calls_of(after, source) != calls_of(before, source):
        found.append("calls")
    if after.finish != before.finish and (before.finish, after.finish) != ("stop", "tool_calls"):
        found.append("finish")
    for name in ("input_tokens", "output_tokens"):
        old, new = getattr(before, name), getattr(after, name)
        more = old is not None and new is not None and new > old and counts_grow(source)
        if old is not None and old != new and not more:
            found.append(name)
    return found


@sampled(10)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings", "ignore:.*is not a valid")
@pytest.mark.parametrize("protocol", READERS)
def test_its_client_reads_the_same(protocol: str, every: int) -> None:
    read, least = READERS[protocol]
    count = 0
    found: list[tuple[str, list[str]]] = []
    for source in recordings()[::every]:
        if source.dialect != protocol or source.failed or source.name in EMPTY:
            continue
        try:
            before = read(untranscoded(source))
        except Exception:  # noqa: BLE001, S112 - a client that reads no recording is no oracle
            continue
        count += 1
        if different := differences(source, before, read(written(source, protocol))):
            found.append((source.name, different))
    assert count >= least // (2 * every)
    assert not found


# Reader of the additional facts of a protocol, and the least number of streams that have any.
BESIDE: dict[str, tuple[Callable[[Stream], Sequence[object]], int]] = {
    "openai-chat": (judge_openai.chat_media, 4),
    "openai-responses": (judge_openai.response_items, 200),
    "bedrock-converse": (judge_bedrock.own_blocks, 5),
}


@sampled(10)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings", "ignore:.*is not a valid")
@pytest.mark.parametrize("protocol", BESIDE)
def test_its_client_reads_what_only_the_protocol_has(protocol: str, every: int) -> None:
    read, least = BESIDE[protocol]
    count = 0
    found: list[tuple[str, Sequence[object], Sequence[object]]] = []
    for source in (*recordings()[::every], *fixtures()):
        if source.dialect != protocol or source.failed or source.name in EMPTY:
            continue
        try:
            before = read(untranscoded(source))
        except Exception:  # noqa: BLE001, S112 - a client that reads no recording is no oracle
            continue
        count += bool(before)
        stream = written(source, protocol)
        # Each content of a message of Responses becomes a message, and unnamed items get names.
        after = [one for one in read(stream) if protocol != "openai-responses" or one in before]
        is_noted = protocol == "openai-responses" and "provider_state" in stream.notes
        if after != before and not is_noted and source.name not in LOST:
            found.append((source.name, before, after))
    assert count >= least // (every)
    assert not found


@pytest.mark.parametrize("name", sorted(LOST))
def test_a_loss_in_its_own_protocol_is_noted(name: str) -> None:
    (source,) = (one for one in fixtures() if one.name == name)
    assert written(source, source.dialect).notes & {"annotations", "item", "part", "provider_state"}


def test_raw_reasoning_of_responses_stays_raw() -> None:
    for name in ("reasoning-raw", "reasoning-open-responses"):
        (source,) = (one for one in fixtures() if one.name == f"openai-responses/{name}")
        for stream in (written(source, source.dialect), written_whole(source, source.dialect)):
            assert b'"reasoning_text"' in stream.body
            assert b'"summary_text"' not in stream.body


def test_ids_of_calls_stay_in_whole_bodies_and_are_noted_in_streams() -> None:
    (source,) = (one for one in fixtures() if one.name == "openai-responses/tool-call")
    whole, stream = written_whole(source, source.dialect), written(source, source.dialect)
    assert b'"id":"fc_1"' in whole.body
    assert "item" not in whole.notes
    assert b'"id":"fc_1"' not in stream.body
    assert "item" in stream.notes


@pytest.mark.parametrize("name", ["two-contents", "reasoning-both"])
def test_a_loss_of_an_item_of_responses_is_noted(name: str) -> None:
    (source,) = (one for one in fixtures() if one.name == f"openai-responses/{name}")
    assert "item" in written(source, source.dialect).notes
    assert "item" in written_whole(source, source.dialect).notes


def blocks(message: Message) -> list[object]:
    """Return the parts that only their provider understands."""
    return [part.block for part in message.parts if part.kind == "provider"]


def images(message: Message) -> list[object]:
    """Return the generated images."""
    return [(part.data, part.url) for part in message.parts if part.kind == "image"]


def sources_of(message: Message) -> list[object]:
    """Return the annotations of all texts, without the numbers that Chat's clients need."""
    parts = (part for part in message.parts if part.kind == "text")
    found = (annotation for part in parts for annotation in part.annotations or ())
    objects = (cast("dict[str, object]", annotation) for annotation in found)
    return [{k: v for k, v in one.items() if k != "index"} for one in objects]


def states(message: Message) -> list[object]:
    """Return the state of all thinking: signatures, encrypted forms and ids."""
    parts = (part for part in message.parts if part.kind == "thinking")
    return [part.provider_state for part in parts]


# Content that a client of the protocol receives: blocks, annotations, and the provider state.
KEPT: dict[str, tuple[Callable[[Message], list[object]], ...]] = {
    "anthropic-messages": (blocks, sources_of, states),
    "bedrock-converse": (blocks, images, sources_of, states),
    "gemini": (blocks, images, sources_of),
    "openai-chat": (blocks, images, sources_of, states),
    "openai-responses": (blocks, images, sources_of),
}


def covers(after: list[object], before: list[object]) -> bool:
    """Return whether each value is the old one, or an object with more members than that."""
    return len(after) == len(before) and all(
        new == old
        or (isinstance(new, dict) and isinstance(old, dict) and old.items() <= new.items())
        for new, old in zip(after, before, strict=True)
    )


@pytest.mark.parametrize("protocol", KEPT)
def test_what_only_the_provider_understands_is_kept(protocol: str) -> None:
    found: list[tuple[str, str]] = []
    count = 0
    for source in (*recordings(), *fixtures()):
        if source.dialect != protocol or source.failed or source.name in EMPTY:
            continue
        back = source_of(source.name, protocol, written(source, protocol).body).message
        for kept in KEPT[protocol]:
            count += bool(kept(source.message))
            if not covers(kept(back), kept(source.message)) and source.name not in LOST:
                found.append((source.name, kept.__name__))
    assert count > 0
    assert not found
